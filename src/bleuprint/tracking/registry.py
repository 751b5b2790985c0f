"""MLflow's model registry: which trained system is the best of a corpus, as chosen by the user.

A version links to the weights by path and SHA-256; they are not copied.
"""

from typing import TYPE_CHECKING

from bleuprint.config.experiment import Settings
from bleuprint.config.paths import Cell
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import sha256_of
from bleuprint.tracking import store, sync
from bleuprint.tracking.artifacts import FILES

if TYPE_CHECKING:
    from mlflow.entities.model_registry import ModelVersion
    from mlflow.tracking import MlflowClient

BEST, _SUM = "best", "weights.sha256"


def register(settings: Settings, cell: Cell) -> str:
    """Give a training the alias `best` in the model named after its corpus.

    Returns a line that names the version; a version of the same weights and scores is used again.
    Raises UserError if there are no averaged weights or scores, or MLflow cannot be used.
    """
    weights = cell.models / "averaged" / "model.safetensors"
    if not weights.exists():
        raise UserError(f"{weights}: no such file; run: dvc pull, or dvc repro")
    trained = sync.read_cell(settings, cell)
    if trained is None:
        raise UserError(f"{cell.results}: no training with these settings; run: dvc repro")
    if trained.problem:
        raise UserError(trained.problem)
    if trained.decoding is None:
        raise UserError(f"{cell.results / 'scores.json'}: no scores of this training: dvc repro")
    scores = {name: f"{score:.2f}" for name, score in trained.decoding.summary.items()}
    names = {name: str(value) for name, value in cell._asdict().items()}
    tags = {**names, **scores, "weights": weights.as_posix(), _SUM: sha256_of(weights)}
    with store.failures_named():
        client = store.client()
        experiment = store.experiment(client, settings.experiment).experiment_id
        run, _ = sync.log_cell(client, experiment, trained)
        assert run is not None
        version = _version(client, cell, run.info.run_id, tags)
        client.set_registered_model_alias(cell.corpus, BEST, version.version)
    return f"{cell.corpus} version {version.version} is {BEST}: {cell}, {weights.as_posix()}"


def _version(
    client: "MlflowClient", cell: Cell, run_id: str, tags: dict[str, str]
) -> "ModelVersion":
    """The version with these tags, created if necessary."""
    if not client.search_registered_models(f"name = '{cell.corpus}'"):
        note = f"Translates {cell.corpus}. Its alias `{BEST}` is the version chosen last."
        client.create_registered_model(cell.corpus, description=note)
    for version in client.search_model_versions(f"name = '{cell.corpus}'"):
        if tags.items() <= version.tags.items():
            return version
    source = f"runs:/{run_id}/{FILES}"
    return client.create_model_version(cell.corpus, source, run_id, tags=tags)
