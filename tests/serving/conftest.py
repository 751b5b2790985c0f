import pytest

from bleuprint.config.experiment import load
from bleuprint.config.paths import Run
from bleuprint.serving.translator import load_translator


@pytest.fixture
def translator(toy, monkeypatch):
    """The toy project's, which is the working folder."""
    monkeypatch.chdir(toy)
    settings = load()
    return load_translator(Run("micro", "toy", 1), settings.system("micro").decode)
