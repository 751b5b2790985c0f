"""A training's decodings in MLflow: its own scores, and runs below it if there are several."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from bleuprint.comet.score import read_comet
from bleuprint.config.paths import Cell
from bleuprint.runtime import fingerprint
from bleuprint.scoring.metrics import DIGITS
from bleuprint.scoring.output_faults import ANY
from bleuprint.scoring.score import SetScores
from bleuprint.tracking import runs, ui_views
from bleuprint.tracking.cell_results import CellResults
from bleuprint.tracking.runs import Content

if TYPE_CHECKING:
    from mlflow.entities import Run
    from mlflow.tracking import MlflowClient

# Tags with the fingerprint of a decoding: of its own run, and of a training's that has its scores.
DECODING, SCORED = "bleuprint.decoding", "bleuprint.scored"


def decoding_of(results: CellResults, scores: Mapping[str, SetScores]) -> Content:
    """The content of a decoding's run, known by its training, its settings and its outputs."""
    record, corpus = results.translation, results.cell.corpus
    mark = fingerprint.of_settings(record.model, record.decode, record.hypotheses)
    summary: dict[str, float] = {}
    for test, metrics in scores.items():
        place = f"{corpus}/{test}"
        for kind in (name for name in ui_views.SCORES if name in metrics):
            summary[f"{kind}/{place}"] = metrics[kind]["score"]  # type: ignore[literal-required]
        if loss := metrics["loss"]:
            summary |= {f"loss/{place}": loss["loss"], f"perplexity/{place}": loss["perplexity"]}
        for fault in metrics.get("faults", ()):
            if fault["name"] == ANY:  # one of a dozen, which would hide other metrics in Compare
                summary[f"test_faulty_lines/{place}"] = float(len(fault["lines"]))
    if results.settings.comet and results.comet.exists():
        for test, comet in read_comet(results.comet).items():
            if test in scores and comet["hypotheses"] == scores[test]["hypotheses"]:
                summary[f"comet/{corpus}/{test}"] = round(100 * comet["score"], DIGITS)
    return _content(results.cell, mark, runs.parameters({"decode": record.decode}), summary)


def log_decodings(
    client: "MlflowClient", experiment: str, training: "Run", cell: Cell, decoding: Content
) -> bool:
    """Make or complete the runs of decodings below a training; returns whether anything changed.

    There are none while all scores are those of the training's own run, which is given as it was
    before it got those of `decoding`.
    """
    own, mark = training.data.tags.get(SCORED, ""), decoding.tags[DECODING]
    below = {runs.NESTED: training.info.run_id}
    if own in ("", mark) and runs.find(client, experiment, below) is None:
        return False
    changed = _log(client, experiment, below, decoding)
    if own not in ("", mark):
        params = {k: v for k, v in training.data.tags.items() if k.startswith("decode.")}
        scores = {k: v for k, v in training.data.metrics.items() if ui_views.is_of_test_set(k)}
        held = _content(cell, own, params, scores)
        changed |= _log(client, experiment, below, held)
    return changed


def _log(
    client: "MlflowClient", experiment: str, below: Mapping[str, str], content: Content
) -> bool:
    tags = {DECODING: content.tags[DECODING], **below}
    if run := runs.find(client, experiment, tags):
        return runs.complete(client, run, content)
    whole = Content(
        content.name, {**content.tags, **tags}, content.note, content.params, (), content.summary
    )
    runs.create(client, experiment, whole, seconds=0.0)
    return True


def _content(
    cell: Cell, mark: str, params: Mapping[str, str], summary: Mapping[str, float]
) -> Content:
    return Content(
        name=f"beam {params['decode.beam']}, alpha {params['decode.length_penalty.alpha']}",
        tags={
            **{name: str(value) for name, value in cell._asdict().items()},
            DECODING: mark,
            "mlflow.source.name": "stages/translate.py",
            "mlflow.source.type": "LOCAL",
        },
        note=f"Translations by the training above it: {cell}. The parameters are those of the "
        "search.",
        params=params,
        summary=summary,
    )
