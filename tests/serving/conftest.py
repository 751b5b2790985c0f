"""The translator of the toy project, for the tests of this folder."""

import pytest

from bleuprint.config.experiment import load_settings
from bleuprint.config.paths import Run
from bleuprint.serving.translator import load_translator


@pytest.fixture
def translator(toy, monkeypatch):
    """Return the translator of the toy project, and make its folder the working folder."""
    monkeypatch.chdir(toy)
    settings = load_settings()
    return load_translator(Run("micro", "toy", 1), settings.system_settings("micro").decode)
