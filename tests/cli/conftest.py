"""A project for the tests of new-corpus."""

import functools

import pytest

from bleuprint.text.language_likelihoods import LanguageLikelihoods
from bleuprint.training import fitted_systems
from root import ROOT


@pytest.fixture(autouse=True, scope="session")
def languages_identified_once():
    """Identify the languages of equal sentences once, since most tests have the same text."""
    likelihoods = LanguageLikelihoods.likelihoods

    @functools.cache
    def cached_likelihoods(model, sentences):
        return likelihoods(model, sentences)

    def likelihoods_from_cache(model, sentences):
        return cached_likelihoods(model, tuple(sentences))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LanguageLikelihoods, "likelihoods", likelihoods_from_cache)
        yield


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Return the current folder: a project with the recipe `own` and an empty folder inputs.

    new-corpus measures nothing there: it takes a training to need 0.01 seconds per pair.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(fitted_systems, "seconds_per_pair", lambda *_: 0.01)
    (tmp_path / "inputs").mkdir()
    (tmp_path / "recipes").mkdir()
    recipe = (ROOT / "recipes" / "own.yaml").read_text(encoding="utf-8")
    for name in ("recipes/own.yaml", "params.yaml"):
        (tmp_path / name).write_text(recipe, encoding="utf-8")
    return tmp_path
