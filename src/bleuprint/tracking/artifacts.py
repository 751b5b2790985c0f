"""The artifacts of MLflow's runs: the list of a training's files, and the report."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from bleuprint.config.paths import Cell
from bleuprint.runtime import fingerprint
from bleuprint.runtime.files import sha256_of
from bleuprint.tracking import runs
from bleuprint.tracking.runs import Content

if TYPE_CHECKING:
    from mlflow.entities import Run
    from mlflow.tracking import MlflowClient

FILES, PAGE, REPORT = "files.json", "index.html", "bleuprint.report"
_LISTED, _PAGE_SUM = "bleuprint.files", "bleuprint.page"


def log_file_list(client: "MlflowClient", run: "Run", cell: Cell) -> bool:
    """Log the list of a cell's files, with SHA-256, as an artifact; returns whether it was logged.

    Weights are hashed only if the list is new, that is if a file's size or the hash of a result
    has changed. A list with weights is kept if the weights are not here.
    """
    folders = (cell.models / "averaged", cell.models / "checkpoints", cell.results)
    files = {
        path.as_posix(): path
        for folder in folders
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.startswith(".")
    }
    results = cell.results.as_posix()
    seen = [
        (name, sha256_of(path) if name.startswith(results) else path.stat().st_size)
        for name, path in files.items()
    ]
    weights = any(name.endswith(".safetensors") for name in files)
    mark = f"{'with' if weights else 'without'} weights {fingerprint.of_settings(seen)}"
    held = run.data.tags.get(_LISTED, "")
    if mark == held or (held.startswith("with ") and not weights):
        return False
    entries = [
        {"path": name, "bytes": path.stat().st_size, "sha256": sha256_of(path)}
        for name, path in files.items()
    ]
    text = json.dumps({"relative_to": "the project's root", "files": entries}, indent=2)
    client.log_text(run.info.run_id, text + "\n", FILES)
    client.set_tag(run.info.run_id, _LISTED, mark)
    return True


def log_report(client: "MlflowClient", experiment: str, name: str) -> Iterator[str]:
    """A separate run holds the report page, which covers all runs."""
    page, table = Path("reports", PAGE), Path("reports", "table.md")
    if not page.exists():
        return
    tags = {REPORT: name}
    note = (
        f"The report of experiment **{name}**: artifact `{PAGE}`, and `table.md` "
        "for its table alone.\n\nTo make it again: `dvc repro report`"
    )
    content = Content("report", {**tags, "mlflow.source.name": "stages/report.py"}, note)
    run = runs.find(client, experiment, tags) or runs.create(client, experiment, content, 0.0)
    digest = sha256_of(page)
    if run.data.tags.get(_PAGE_SUM) != digest:
        for path in (page, table):
            if path.exists():
                client.log_artifact(run.info.run_id, str(path))
        client.set_tag(run.info.run_id, _PAGE_SUM, digest)
        yield "run report: the page attached"
