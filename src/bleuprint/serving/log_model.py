"""An exported system as a model version in MLflow, which load_model loads without this project."""

from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

from bleuprint.config.experiment import Settings
from bleuprint.config.paths import Cell
from bleuprint.decoding.ctranslate2_convert import Precision
from bleuprint.runtime import environment, fingerprint
from bleuprint.runtime.files import sha256_of
from bleuprint.serving.export import export, packages
from bleuprint.tracking import runs, store
from bleuprint.tracking.cell_results import CellResults
from bleuprint.tracking.sync import read_cell, sync

# The tag of a model version with the fingerprint of what was exported.
EXPORTED = "bleuprint.exported"
_DESCRIPTION = 5000  # characters, at most


def log_model(settings: Settings, cell: Cell, precision: Precision) -> str:
    """Log the export of a cell to the run of its training; returns the version's address.

    The same export is not logged twice. Raises UserError if the cell cannot be exported (see
    export), was trained with other settings, or if MLflow fails.
    """
    results = CellResults.open(settings, cell)
    environment.work().mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=environment.work(), prefix="model.") as temporary:
        folder = Path(temporary, "exported")
        export(settings, cell, folder, precision)
        list(sync(settings))  # makes its run if necessary
        with store.failures_named():
            return _log(settings, results, folder)


def _log(settings: Settings, results: CellResults, folder: Path) -> str:
    import mlflow
    from mlflow.models import Model

    client, cell = store.client(), results.cell
    name, mark = f"{cell.system}-{cell.corpus}", _fingerprint(folder)
    held = client.search_model_versions(f"name = '{name}' and tags.`{EXPORTED}` = '{mark}'")
    if held:
        return f"models:/{name}/{held[0].version}"
    trained = read_cell(settings, cell)
    assert trained is not None  # CellResults.open has found it
    experiment = store.experiment(client, settings.experiment).experiment_id
    run = runs.find(client, experiment, trained.description.tags)
    assert run is not None  # the sync has made it
    mlflow.set_tracking_uri(store.uri())
    mlflow.set_registry_uri(store.uri())
    mlflow.set_experiment(experiment_id=experiment)
    tags = {**{key: str(value) for key, value in cell._asdict().items()}, EXPORTED: mark}
    needed = ["mlflow", *packages(settings.corpus(cell.corpus))]
    info = Model.log(
        None,
        flavor=mlflow.pyfunc,
        name=name,
        run_id=run.info.run_id,
        registered_model_name=name,
        tags=tags,
        python_model=str(Path(__file__).with_name("mlflow_model.py")),
        artifacts={"exported": str(folder)},
        input_example=_example(results),
        pip_requirements=[f"{package}=={version(package)}" for package in needed],
    )
    number = str(info.registered_model_version)
    for key, value in tags.items():
        client.set_model_version_tag(name, number, key, value)
    readme = (folder / "README.md").read_text(encoding="utf-8")
    client.update_model_version(name, number, readme[:_DESCRIPTION])
    for metric, score in trained.scores.items():
        client.log_metric(run.info.run_id, metric, score, model_id=info.model_id)
    return f"models:/{name}/{number}"


def _fingerprint(folder: Path) -> str:
    """Of all that decides translations."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    names = {str(path.relative_to(folder)): path for path in files if path.name != "README.md"}
    return fingerprint.of_settings({name: sha256_of(path) for name, path in names.items()})


def _example(results: CellResults) -> list[str] | None:
    """The first sentence of the first test set, if it was pulled."""
    for test in results.tests:
        if results.files(test)["sources"].exists():
            return results.sources(test)[:1]
    return None
