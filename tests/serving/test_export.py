"""The README of an exported system: its scores, the licenses of its texts, its provenance."""

from copy import copy
from itertools import product

import pytest

from bleuprint.config.paths import Run
from bleuprint.config.system import Average
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import read_json
from bleuprint.runtime.html import escape_markdown
from bleuprint.scoring.metrics import METRICS
from bleuprint.serving.export import export, readme
from bleuprint.tracking.hardware import text_libraries
from mlservers import write_project
from systems import with_systems


def test_a_readme_has_scores_licenses_and_provenance(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    settings, run = write_project(tmp_path, seeds=(1,)), Run("tiny", "news-en-de", 1)
    text = readme(settings, run, "int8", "7 pairs")
    assert ", trained on 7 pairs, " in text
    scores = read_json(run.results_folder / "scores.json")
    for test, key in product(scores, ("bleu", "chrf2", "chrf2pp", "ter")):
        (score,) = (e for e in scores[test]["metrics"] if (e["metric"], e["group"]) == (key, ""))
        name, interval = METRICS[key].label, f"[{score['ci_low']:.2f}, {score['ci_high']:.2f}]"
        assert f"| {name} | {score['value']:.2f} | {interval} |\n" in text
        assert text.count(f"\n- {name}: `{score['signature']}`\n") == 1
    for name, about in settings.corpus(run.corpus).license_and_citation.items():
        assert f"- {name}: {escape_markdown(about.license)}\n" in text
    assert read_json(run.results_folder / "training.json")["fingerprint"] in text
    hypotheses = tmp_path / run.results_folder / "hypotheses" / "test.first.de"
    hypotheses.write_text("other\n")
    assert "had not been scored" in readme(settings, run, "int8", "7 pairs")


def test_an_ensemble_is_refused(tmp_path):
    settings, run = write_project(tmp_path, seeds=(1,)), Run("tiny", "news-en-de", 1)
    tiny = settings.system_settings("tiny")
    several = copy(tiny)  # whose training kept one
    object.__setattr__(several, "average", Average(last=3, ensemble=True))
    settings = with_systems(settings, {"tiny": several})
    with pytest.raises(
        UserError, match=r"^cannot export an ensemble\. Set average\.ensemble: false$"
    ):
        export(settings, run, tmp_path / "out", "float32")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("name", "languages", "needed"),
    [
        ("moses", ("en", "de"), ["sacremoses"]),
        ("spacy", ("en", "de"), ["spacy", "sacremoses"]),
        ("segmenter", ("ja", "en"), ["fugashi", "unidic-lite", "sacremoses"]),
        ("none", ("en", "de"), []),
    ],
)
def test_packages_of_the_tokenizers(tmp_path, name, languages, needed):
    corpus = write_project(tmp_path, seeds=(1,)).corpus("news-en-de")
    tokenize = copy(corpus.tokenize)
    object.__setattr__(tokenize, "name", name)  # the packages need not be installed
    changed = copy(corpus)
    for key, value in (("tokenize", tokenize), ("source", languages[0]), ("target", languages[1])):
        object.__setattr__(changed, key, value)
    assert text_libraries(changed) == [*needed, "subword-nmt"]
