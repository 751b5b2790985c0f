"""A logged model translates as the pipeline does, in a process without this project."""

import os
import shutil
from pathlib import Path

import pytest

from bleuprint.config.experiment import load
from bleuprint.config.paths import Cell
from bleuprint.serving.log_model import log_model
from bleuprint.serving.translator import load_translator
from bleuprint.tracking import store

# Characters at which Python splits lines, and others that tools lose.
_TORTURE = "a\rb\u2028c\x85d\x1ce\x00f\ufeff"


@pytest.fixture
def no_server(monkeypatch):
    """Forget MLflow's store, which it keeps for the whole process, as another process would."""
    import mlflow

    for name in ("MLFLOW_TRACKING_URI", "MLFLOW_EXPERIMENT_ID", "DVC_ROOT"):
        monkeypatch.setenv(name, "set, and so restored")

    def forget():
        mlflow.set_tracking_uri(None)
        mlflow.set_registry_uri(None)
        for name in ("MLFLOW_TRACKING_URI", "MLFLOW_EXPERIMENT_ID", "DVC_ROOT"):
            os.environ.pop(name, None)

    forget()
    yield forget
    forget()


def test_a_model_version_translates(toy, tmp_path, mldatabase, monkeypatch, no_server):
    pytest.importorskip("ctranslate2", reason="needs CTranslate2")
    import mlflow

    project = tmp_path / "project"
    shutil.copytree(toy, project)
    shutil.copy(mldatabase, project / "mlflow.db")
    monkeypatch.chdir(project)
    settings, cell = load(), Cell("micro", "toy", 1)
    address = log_model(settings, cell, "float32")
    assert address == "models:/micro-toy/1"
    assert log_model(settings, cell, "int8") == "models:/micro-toy/2"
    assert not list((project / "work").glob("model.*"))
    no_server()
    mlflow.set_tracking_uri(store.uri())
    model = mlflow.pyfunc.load_model(address)
    assert (
        model.metadata.signature.to_dict()["inputs"]
        == model.metadata.signature.to_dict()["outputs"]
    )
    sentences = Path("data/split/toy/test.x.de").read_text("utf-8").split("\n")[:20]
    sentences += ["", _TORTURE]
    translate = load_translator(settings, cell, settings.system("micro").decode)
    expected = [each.best[0].text for each in translate(sentences)]
    assert model.predict(sentences) == expected
    with pytest.raises(mlflow.MlflowException, match="type"):
        model.predict([1])


def test_the_code_that_is_logged_needs_nothing_of_this_project():
    from bleuprint.serving import mlflow_model

    source = mlflow_model.__file__
    assert "bleuprint" not in Path(source).read_text("utf-8")
