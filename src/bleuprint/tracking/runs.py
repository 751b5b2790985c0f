"""Runs of MLflow: what one is to hold, and how it is found, made and completed.

A run is found by the fingerprint of its training. Runs that differ in their seed alone bear one
group's mark; where there are two of them, they are nested below a parent.
"""

import json
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bleuprint.config.corpus_files import Parts
from bleuprint.config.experiment import Corpus
from bleuprint.config.paths import Cell, folder
from bleuprint.runtime import fingerprint
from bleuprint.tracking import store

if TYPE_CHECKING:
    from mlflow.entities import Run
    from mlflow.tracking import MlflowClient

FINGERPRINT, GROUP, PARENT = "bleuprint.fingerprint", "bleuprint.group", "bleuprint.parent"
NOTE, NESTED, COMMIT = "mlflow.note.content", "mlflow.parentRunId", "mlflow.source.git.commit"
# MLflow's limits: characters of a digest and of a parameter, metrics and others at a time.
_DIGEST, _VALUE, _METRICS, _OTHERS = 36, 6000, 1000, 100


@dataclass(frozen=True)
class Description:
    """What a run is of: the names under which MLflow shows and finds it."""

    experiment: str
    cell: Cell
    fingerprint: str
    data: str
    settings: Mapping[str, Any]
    code: str

    def group(self) -> str:
        """The mark of the trainings that differ in their seed alone."""
        system, corpus, _ = self.cell
        return fingerprint.of_settings(system, corpus, self.settings, self.data, self.code)


@dataclass(frozen=True)
class Point:
    """A value on a curve, `seconds` after its run began."""

    name: str
    update: int
    value: float
    seconds: float


@dataclass(frozen=True)
class Data:
    """A dataset of a run, used for `context`: training, validation or testing."""

    name: str
    digest: str
    context: str
    path: str
    urls: tuple[str, ...] = ()
    pairs: int | None = None


@dataclass(frozen=True)
class Content:
    """What a run is to hold; `summary` are metrics of the whole run, which may change."""

    name: str
    tags: Mapping[str, str]
    note: str
    params: Mapping[str, str] = field(default_factory=dict)
    points: Sequence[Point] = ()
    summary: Mapping[str, float] = field(default_factory=dict)
    data: Sequence[Data] = ()


def beginning(
    description: Description, group: str, commit: str | None, corpus: Corpus | None
) -> Content:
    """What is known of a training when it begins."""
    cell = description.cell
    return Content(
        name=" ".join(map(str, cell)),
        tags={
            **_tags(cell),
            "commit": commit or "unknown",
            FINGERPRINT: description.fingerprint,
            GROUP: group,
            "mlflow.source.name": "stages/train.py",
            "mlflow.source.type": "LOCAL",
            **({COMMIT: commit.split()[0].rstrip("+")} if commit else {}),
        },
        note=_note(cell, commit),
        params=parameters(description.settings),
        data=[
            _data(cell.corpus, "train", "training", description.data, corpus),
            _data(cell.corpus, "valid", "validation", description.data, corpus),
        ],
    )


def test_data(corpus: str, test: str, scores: Mapping[str, Any], settings: Corpus) -> Data:
    """A test set; `scores` are those of scores.json, which know its files' sums."""
    digest = fingerprint.of_settings(scores["sources"], scores["references"])
    return _data(corpus, f"test.{test}", "testing", digest, settings, scores["lines"])


def parameters(settings: Mapping[str, Any]) -> dict[str, str]:
    """Settings as MLflow holds them: text, one level deep."""
    return {name: str(value)[:_VALUE] for name, value in flat(settings)}


def flat(settings: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, Any]]:
    for key, value in settings.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def find(client: "MlflowClient", experiment: str, cell: Cell, fingerprint: str) -> "Run | None":
    """The run of a training; rows that differ in decoding alone have one fingerprint."""
    return find_by(client, experiment, {**_tags(cell), FINGERPRINT: fingerprint})


def find_by(client: "MlflowClient", experiment: str, tags: Mapping[str, str]) -> "Run | None":
    found = _search(client, experiment, tags)
    return found[0] if found else None


def create(
    client: "MlflowClient", experiment: str, content: Content, seconds: float | None = None
) -> "Run":
    """A new run; with `seconds` one that has ended now and took so long."""
    now = int(time.time() * 1000)
    tags = {**content.tags, NOTE: content.note}
    start = now if seconds is None else now - round(seconds * 1000)
    run = client.create_run(experiment, start_time=start, run_name=content.name, tags=tags)
    complete(client, run, content)
    if seconds is not None:
        client.set_terminated(run.info.run_id, "FINISHED", end_time=now)
    return run


def complete(client: "MlflowClient", run: "Run", content: Content) -> bool:
    """Add what the run lacks of its content and replace what has changed; whether that was any.

    Parameters cannot be changed, and a note may be the user's own: they are left as they are.
    """
    from mlflow.entities import Metric, Param, RunTag

    held, now = run.data, int(time.time() * 1000)
    wanted = {NOTE: held.tags.get(NOTE, content.note), **content.tags}
    tags = [RunTag(key, text) for key, text in wanted.items() if held.tags.get(key) != text]
    params = [Param(k, text) for k, text in content.params.items() if k not in held.params]
    steps = steps_of(client, run, {point.name for point in content.points})
    metrics = [
        Metric(point.name, point.value, run.info.start_time + round(1000 * point.seconds), step)
        for point in content.points
        if (step := point.update) not in steps[point.name]
    ]
    metrics += [
        Metric(name, value, now, 0)
        for name, value in content.summary.items()
        if not same(held.metrics.get(name), value)
    ]
    for start in range(0, len(metrics), _METRICS):
        client.log_batch(run.info.run_id, metrics=metrics[start : start + _METRICS])
    for start in range(0, max(len(params), len(tags)), _OTHERS // 2):
        some = slice(start, start + _OTHERS // 2)
        client.log_batch(run.info.run_id, params=params[some], tags=tags[some])
    return bool(_add_data(client, run, content.data) or metrics or params or tags)


def same(held: float | None, value: float) -> bool:
    return held is not None and (held == value or (math.isnan(held) and math.isnan(value)))


def steps_of(client: "MlflowClient", run: "Run", names: Iterable[str]) -> dict[str, set[int]]:
    """The updates at which each metric is logged already."""
    return {
        name: {point.step for point in client.get_metric_history(run.info.run_id, name)}
        if name in run.data.metrics
        else set()
        for name in names
    }


def nest(client: "MlflowClient", experiment: str, description: Description, group: str) -> bool:
    """Put a group's runs below a parent where they are of several seeds; whether any was moved."""
    runs = of_group(client, experiment, group)
    if len({run.data.tags["seed"] for run in runs}) < 2:
        return False
    with store.lock():
        parent = find_by(client, experiment, {PARENT: group})
        parent = parent or create(client, experiment, _parent(description, group), seconds=0)
    identity = parent.info.run_id
    orphans = [run for run in runs if run.data.tags.get(NESTED) != identity]
    for run in orphans:
        client.set_tag(run.info.run_id, NESTED, identity)
    return bool(orphans)


def _parent(description: Description, group: str) -> Content:
    system, corpus, _ = description.cell
    return Content(
        name=f"{system} {corpus}",
        tags={"system": system, "corpus": corpus, PARENT: group},
        note=f"System **{system}** on corpus **{corpus}**: the runs below differ in their seed "
        "alone. Test scores are means over them, `..._deviation` their standard deviations.",
        params=parameters(description.settings),
    )


def of_group(client: "MlflowClient", experiment: str, group: str) -> list["Run"]:
    """The runs of trainings that differ in their seed alone, as MLflow holds them now."""
    return _search(client, experiment, {GROUP: group})


def _search(client: "MlflowClient", experiment: str, tags: Mapping[str, str]) -> list["Run"]:
    wanted = " and ".join(f"tags.`{name}` = '{value}'" for name, value in tags.items())
    return list(client.search_runs([experiment], wanted, max_results=1000))


def _tags(cell: Cell) -> dict[str, str]:
    return {"system": cell.system, "corpus": cell.corpus, "seed": str(cell.seed)}


def _note(cell: Cell, commit: str | None) -> str:
    """Markdown: what this is, and the command that repeats it."""
    stage = "-".join(map(str, cell))
    at = f"at commit `{commit.rstrip('+')}`" if commit else "with this code"
    changed = ", whose code had changes that are not in it," if commit and "+" in commit else ""
    return (
        f"System **{cell.system}** on corpus **{cell.corpus}** with seed {cell.seed}.\n\n"
        f"To repeat it {at}{changed} with the same `params.yaml`:\n\n"
        f"```\ndvc repro score@{stage}\n```\n\n"
        f"Its files, with their sizes and SHA-256, are listed in the artifact `files.json`."
    )


def _data(
    corpus: str,
    name: str,
    context: str,
    digest: str,
    settings: Corpus | None,
    pairs: int | None = None,
) -> Data:
    stage = "split" if context == "testing" else "binary"
    parts: Parts = settings.files.sets().get(name, {}) if settings else {}
    urls = [file.url or file.path or "" for text in parts.values() for file in text.files]
    path = folder(corpus, stage).as_posix()
    return Data(
        f"{corpus} {name}", digest[:_DIGEST], context, path, tuple(dict.fromkeys(urls)), pairs
    )


def _add_data(client: "MlflowClient", run: "Run", data: Sequence[Data]) -> bool:
    from mlflow.entities import Dataset, DatasetInput, InputTag

    inputs = run.inputs.dataset_inputs if run.inputs else []
    held = {(one.dataset.name, one.dataset.digest) for one in inputs}
    new = [one for one in data if (one.name, one.digest) not in held]
    if not new:
        return False
    made = []
    for one in new:
        url = next((url for url in one.urls if url.startswith("http")), None)
        place = {"url": url} if url else {"uri": one.path}
        source = json.dumps({**place, "prepared": one.path, "files": one.urls})
        profile = None if one.pairs is None else json.dumps({"num_rows": one.pairs})
        dataset = Dataset(one.name, one.digest, "http" if url else "local", source, profile=profile)
        made.append(DatasetInput(dataset, [InputTag("mlflow.data.context", one.context)]))
    client.log_inputs(run.info.run_id, made)
    return True
