"""From the stages' outputs to MLflow: completes the runs that are there, makes those that are not.

The outputs know no time of day. A run made from them ends when it is made and began as long before
as its training took; the points of its curves lie as far apart as the rates measured there say.
Its tag `bleuprint.times` says so.
"""

import dataclasses
import json
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bleuprint.config.experiment import Settings
from bleuprint.config.paths import Cell, folder
from bleuprint.decoding.translation_record import TRANSLATION, Translation
from bleuprint.runtime import fingerprint
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import read_object, sha256_of
from bleuprint.text.parallel import TextFolder
from bleuprint.tracking import runs, store, ui_views
from bleuprint.tracking.runs import Content, Data, Description, Point
from bleuprint.tracking.timings import Training, timing

if TYPE_CHECKING:
    from mlflow.entities import Run
    from mlflow.tracking import MlflowClient

FILES, PAGE, TIMES, REPORT = (
    "files.json",
    "index.html",
    "bleuprint.times",
    "bleuprint.report",
)
_LISTED, _PAGE_SUM = "bleuprint.files", "bleuprint.page"
_REBUILT = "rebuilt: ended when it was synchronised; durations and distances as measured"


@dataclass(frozen=True)
class Trained:
    """A finished training as MLflow is to show it; `problem`: why its scores are left out."""

    description: Description
    group: str
    content: Content
    seconds: float
    problem: str = ""


def sync(settings: Settings, root: Path = Path(), make: bool = True) -> Iterator[str]:
    """Bring MLflow to what the outputs say, and tell what was done, a line for each run.

    Without `make`, no run is made for a training. Doing it again changes nothing. Raises UserError
    where MLflow cannot be reached or used.
    """
    found = [one for cell in cells(settings) if (one := trained(settings, cell, root))]
    yield from _sync(settings, found, root, make)


def sync_all(settings: Settings, root: Path = Path()) -> Iterator[str]:
    """Sync, and tell of each cell what cannot be logged. Raises UserError where nothing can."""
    known = {cell: trained(settings, cell, root) for cell in cells(settings)}
    found = [one for one in known.values() if one]
    changes = 0
    for line in _sync(settings, found, root, make=True):
        changes += 1
        yield line
    for cell, one in known.items():
        if one is None:
            where = f"no training with these settings in {cell.results}"
            yield f"{cell}: {where}: dvc pull or dvc repro"
        elif one.problem:
            yield f"{cell}: its scores are left out: {one.problem}"
    missing = len(known) - len(found)
    if not found:
        raise UserError(f"nothing to log: {missing} of {missing} trainings missing")
    if not changes:
        whole = missing == 0 and not any(one.problem for one in found)
        but = "" if whole else " but what is named above"
        yield f"nothing to log: MLflow at {store.uri()} has all of {settings.experiment}{but}"


def _sync(settings: Settings, found: Sequence[Trained], root: Path, make: bool) -> Iterator[str]:
    with store.failures_named():
        client = store.client()
        if make and found:
            store.experiment(client, settings.experiment)
        if experiment := store.find_experiment(client, settings.experiment):
            yield from _runs(client, experiment.experiment_id, found, root, make)
            yield from _report(client, experiment.experiment_id, settings, root)
            tests = _columns(found)
            if tests and ui_views.decorate(client, experiment, settings, tests):
                yield f"experiment {settings.experiment}: columns and charts"


def cells(settings: Settings) -> list[Cell]:
    return [Cell(*one) for one in product(settings.systems, settings.corpora, settings.seeds)]


def trained(settings: Settings, cell: Cell, root: Path) -> Trained | None:
    """What the outputs hold of a cell; None where it is not trained, or with other settings."""
    facts_path = root / cell.results / "training.json"
    if not facts_path.exists():
        return None
    facts = read_object(facts_path, ("fingerprint", "settings", "code", "data", "parameters"))
    system, corpus = settings.system(cell.system), settings.corpus(cell.corpus)
    if facts["settings"] != fingerprint.of_settings(system.model, system.train, cell.seed):
        return None
    values = {
        "model": dataclasses.asdict(system.model),
        "train": dataclasses.asdict(system.train),
        "parameters": facts["parameters"],
    }
    description = Description(
        settings.experiment, cell, facts["fingerprint"], facts["data"], values, facts["code"]
    )
    group, measured = description.group(), timing(cell, root).training
    commit = measured.commit if measured else None
    content = runs.beginning(description, group, commit, corpus)
    points = _points(cell, measured, root)
    scores, problem = _scores(settings, cell, facts["fingerprint"], root)
    summary = {
        **{
            f"{name}/{test}": of[name]["score"]
            for test, of in scores.items()
            for name in ui_views.SCORES
        },
        **_cost(facts, measured),
    }
    tags = {
        **content.tags,
        "bleuprint.code": facts["code"],
        "bleuprint.data": facts["data"],
    }
    if measured:
        tags |= {"device": measured.device, "versions": measured.versions or "unknown"}
    if scores:
        decode = Translation.read(root / cell.results / TRANSLATION).decode
        tags |= runs.parameters({"decode": decode})
    data = [runs.test_data(cell.corpus, test, of, corpus) for test, of in scores.items()]
    content = dataclasses.replace(
        content, tags=tags, points=points, summary=summary, data=[*content.data, *data]
    )
    seconds = measured.seconds if measured else 0.0
    return Trained(description, group, content, seconds, problem)


def keep(
    client: "MlflowClient", experiment: str, one: Trained, root: Path, make: bool = True
) -> tuple["Run | None", str]:
    """The run of a training, with all that is known of it, and what was done to it, if anything."""
    cell, mark = one.description.cell, one.description.fingerprint
    run, done = runs.find(client, experiment, cell, mark), "completed"
    if run is None and make:
        tags = {**one.content.tags, TIMES: _REBUILT}
        content = dataclasses.replace(one.content, tags=tags)
        run, done = runs.create(client, experiment, content, one.seconds), "made"
    if run is None:
        return None, ""
    changed = done == "made" or runs.complete(client, run, one.content)
    if run.info.status != "FINISHED" and done != "made":
        client.set_terminated(run.info.run_id, "FINISHED")
        changed = True
    changed = _list_files(client, run, cell, root) or changed
    return run, done if changed else ""


def _runs(
    client: "MlflowClient", experiment: str, found: Sequence[Trained], root: Path, make: bool
) -> Iterator[str]:
    kept = []
    for one in found:
        run, done = keep(client, experiment, one, root, make)
        kept += [one] if run else []
        if done:
            yield f"run {one.content.name}: {done}"
    for group, some in groupby(sorted(kept, key=lambda one: one.group), lambda one: one.group):
        siblings = list(some)
        moved = runs.nest(client, experiment, siblings[0].description, group)
        parent = runs.find_by(client, experiment, {runs.PARENT: group})
        if not parent:
            continue
        means = _means(runs.of_group(client, experiment, group), siblings[0].content.data)
        if runs.complete(client, parent, means) or moved:
            yield f"run {parent.info.run_name}: nested, with means over seeds"


def _means(children: Sequence["Run"], data: Sequence[Data]) -> Content:
    """What their parent holds: means and standard deviations of what all that are scored have.

    They are taken over MLflow's runs: other seeds' outputs may lie on another machine.
    """
    scored = [run for run in children if any(map(ui_views.is_score, run.data.metrics))]
    some = sorted(scored or children, key=lambda run: int(run.data.tags["seed"]))
    summary: dict[str, float] = {}
    for name in some[0].data.metrics:
        shown = ui_views.is_score(name) or name.startswith("total/")
        if shown and all(name in run.data.metrics for run in some):
            values = [run.data.metrics[name] for run in some]
            summary[name] = round(statistics.mean(values), 6)
            if ui_views.is_score(name) and len(values) > 1:
                summary[f"{name}_deviation"] = round(statistics.stdev(values), 6)
    shared = {
        name: text
        for name, text in some[0].data.tags.items()
        if name.startswith(("decode.", "mlflow.source."))
        and all(run.data.tags.get(name) == text for run in some)
    }
    seeds = ", ".join(run.data.tags["seed"] for run in some)
    return Content("", {"seeds": seeds, **shared}, "", summary=summary, data=data)


def _points(cell: Cell, measured: Training | None, root: Path) -> list[Point]:
    """The curves of curves.json, their times reckoned from the rates measured, if they were."""
    path = root / cell.results / "curves.json"
    if not path.exists():
        return []
    curves = read_object(path, ("training", "validation"))
    rates = list((measured and measured.rates) or [])
    points, seconds, tokens, at = [], 0.0, 0, {}
    for number, entry in enumerate(curves["training"]):
        rate = rates[number] if number < len(rates) else 0.0
        seconds += (entry["tokens"] - tokens) / rate if rate else 0.0
        tokens, at[entry["update"]] = entry["tokens"], seconds
        values = {f"train/{k}": v for k, v in entry.items() if k not in ("update", "tokens")}
        if rate:
            values["train/tokens_per_second"] = rate
        points += [Point(name, entry["update"], v, seconds) for name, v in values.items()]
    for entry in curves["validation"]:
        update = entry["update"]
        when = max((t for u, t in at.items() if u <= update), default=0.0)
        values = {f"valid/{k}": v for k, v in entry.items() if k != "update"}
        points += [Point(name, update, v, when) for name, v in values.items()]
    return points


def _scores(settings: Settings, cell: Cell, mark: str, root: Path) -> tuple[dict[str, Any], str]:
    """scores.json, if it is of this training, and of the files beside it; else why it is not."""
    results = root / cell.results
    if not (results / "scores.json").exists() or not (results / TRANSLATION).exists():
        return {}, ""
    try:
        translation = Translation.read(path := results / TRANSLATION)
        translation.check_model(path, mark, results / "training.json")
        scores = read_object(results / "scores.json")
        for test, of in scores.items():
            _check(settings, cell, test, of, translation, root)
    except UserError as error:
        return {}, str(error)
    return scores, ""


def _check(
    settings: Settings, cell: Cell, test: str, scores: Any, translation: Translation, root: Path
) -> None:
    """Raise UserError unless a test set's scores are of these translations and references.

    The text of a corpus is checked where it is here: results may have been pulled alone.
    """
    path, corpus = root / cell.results / "scores.json", settings.corpus(cell.corpus)
    if not {*ui_views.SCORES, "sources", "references", "hypotheses", "lines"} <= scores.keys():
        raise UserError(f"{path}: {test} was not written by this version; run: dvc repro")
    texts = TextFolder(root / folder(cell.corpus, "split"), corpus.source, corpus.target)
    sources, references = texts.files(f"test.{test}")
    hypotheses = root / cell.results / "hypotheses" / references.name
    if not hypotheses.exists():
        raise UserError(f"{hypotheses}: no such file; run: dvc pull, or dvc repro")
    decode = settings.system(cell.system).decode
    translation.check(root / cell.results / TRANSLATION, decode, hypotheses)
    files = {"sources": sources, "references": references, "hypotheses": hypotheses}
    for name, file in files.items():
        if file.exists() and sha256_of(file) != scores[name]:
            raise UserError(f"{path}: of another file than {file}; run: dvc repro")


def _cost(facts: Mapping[str, Any], measured: Training | None) -> dict[str, float]:
    cost = {}
    if "flops" in facts and "target_tokens" in facts:  # 10**12: MLflow shows all digits
        cost = {"teraflop": facts["flops"] / 1e12, "target_tokens": float(facts["target_tokens"])}
    if measured:
        cost["seconds"] = measured.seconds
    return {f"total/{name}": value for name, value in cost.items()}


def files_of(cell: Cell, root: Path) -> list[Path]:
    """What a cell's stages have written, as far as it is here."""
    folders = (cell.models / "checkpoints", cell.models / "averaged", cell.results)
    here = [path for folder in folders for path in (root / folder).rglob("*")]
    return sorted(path for path in here if path.is_file() and not path.name.startswith("."))


def _list_files(client: "MlflowClient", run: "Run", cell: Cell, root: Path) -> bool:
    """Keep the list of a run's files, with sums, as an artifact; whether it was written anew.

    Sums take a while to work out: not again where the training, and the files' sizes and the sums
    of what was made of it, are those of the list. A list with weights stays where here are none.
    """
    files = files_of(cell, root)
    small = {path: sha256_of(path) for path in files if root / cell.results in path.parents}
    seen = [
        (path.relative_to(root).as_posix(), small.get(path, path.stat().st_size)) for path in files
    ]
    weights = any(path.suffix == ".safetensors" for path in files)
    mark = f"{'with' if weights else 'without'} weights {fingerprint.of_settings(seen)}"
    held = run.data.tags.get(_LISTED, "")
    if mark == held or (held.startswith("with ") and not weights):
        return False
    entries = [
        {
            "path": path.relative_to(root).as_posix(),
            "bytes": path.stat().st_size,
            "sha256": small.get(path) or sha256_of(path),
        }
        for path in files
    ]
    text = json.dumps({"relative_to": "the project's root", "files": entries}, indent=2)
    client.log_text(run.info.run_id, text + "\n", FILES)
    client.set_tag(run.info.run_id, _LISTED, mark)
    return True


def _report(
    client: "MlflowClient", experiment: str, settings: Settings, root: Path
) -> Iterator[str]:
    """A run of its own for the report page: the page is of all the others together."""
    page, table = (root / "reports" / name for name in (PAGE, "table.md"))
    if not page.exists():
        return
    mark = {REPORT: settings.experiment}
    note = (
        f"The report of experiment **{settings.experiment}**: artifact `{PAGE}`, and `table.md` "
        "for its table alone.\n\nTo make it again: `dvc repro report`"
    )
    content = Content("report", {**mark, "mlflow.source.name": "stages/report.py"}, note)
    run = runs.find_by(client, experiment, mark) or runs.create(client, experiment, content, 0.0)
    total = sha256_of(page)
    if run.data.tags.get(_PAGE_SUM) != total:
        for path in (page, table):
            if path.exists():
                client.log_artifact(run.info.run_id, str(path))
        client.set_tag(run.info.run_id, _PAGE_SUM, total)
        yield "run report: the page attached"


def _columns(found: Sequence[Trained]) -> list[str]:
    """The test scores there are, as metrics are called."""
    names = (name for one in found for name in one.content.summary if ui_views.is_score(name))
    return list(dict.fromkeys(names))
