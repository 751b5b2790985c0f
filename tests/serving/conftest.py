import pytest

from bleuprint.config.experiment import load_settings
from bleuprint.config.paths import Run
from bleuprint.serving.translator import load_translator


@pytest.fixture
def translator(toy, monkeypatch):
    """The toy project's, which is the working folder."""
    monkeypatch.chdir(toy)
    settings = load_settings()
    return load_translator(Run("micro", "toy", 1), settings.system_settings("micro").decode)
