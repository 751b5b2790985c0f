"""The artifacts of MLflow's run of the report."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from bleuprint.runtime.files import sha256_of
from bleuprint.tracking import runs
from bleuprint.tracking.runs import Content

if TYPE_CHECKING:
    from mlflow.tracking import MlflowClient

PAGE, REPORT = "index.html", "bleuprint.report"
_PAGE_SUM = "bleuprint.page"


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
