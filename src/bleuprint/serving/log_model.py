"""An exported system as a model version in MLflow, which load_model loads without this project."""

from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

from bleuprint.cells.results import Results
from bleuprint.config.experiment import Settings
from bleuprint.config.paths import Cell
from bleuprint.decoding.ctranslate2_convert import Precision
from bleuprint.runtime import environment
from bleuprint.serving.export import export, packages
from bleuprint.tracking import runs, store
from bleuprint.tracking.sync import read_cell, sync

_DESCRIPTION = 5000  # characters, at most


def log_model(settings: Settings, cell: Cell, precision: Precision) -> str:
    """Log the export of a cell to the run of its training; returns the version's address.

    Raises UserError if the cell cannot be exported (see export), was trained with other settings,
    or if MLflow fails.
    """
    Results.open(settings, cell)  # raises if there is no such training
    environment.work().mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=environment.work(), prefix="model.") as temporary:
        folder = Path(temporary, "exported")
        export(settings, cell, folder, precision)
        list(sync(settings))  # makes its run if necessary
        with store.failures_named():
            return _log(settings, cell, folder)


def _log(settings: Settings, cell: Cell, folder: Path) -> str:
    import mlflow
    from mlflow.models import Model

    client, trained = store.client(), read_cell(settings, cell)
    assert trained is not None
    needed = ("mlflow", *packages(settings.corpus(cell.corpus)))
    experiment = store.experiment(client, trained.description.experiment)
    run = runs.find(client, experiment, trained.description)
    assert run is not None  # the sync has made it
    mlflow.set_tracking_uri(store.uri())
    mlflow.set_registry_uri(store.uri())
    mlflow.set_experiment(experiment_id=experiment)
    name, tags = f"{cell.system}-{cell.corpus}", {k: str(v) for k, v in cell._asdict().items()}
    info = Model.log(
        None,
        flavor=mlflow.pyfunc,
        name=name,
        run_id=run.info.run_id,
        registered_model_name=name,
        tags=tags,
        python_model=str(Path(__file__).with_name("mlflow_model.py")),
        artifacts={"exported": str(folder)},
        pip_requirements=[f"{package}=={version(package)}" for package in needed],
    )
    number = str(info.registered_model_version)
    for key, value in tags.items():
        client.set_model_version_tag(name, number, key, value)
    readme = (folder / "README.md").read_text(encoding="utf-8")
    client.update_model_version(name, number, readme[:_DESCRIPTION])
    return f"models:/{name}/{number}"
