"""What DVC takes for up to date after `dvc commit --force`: each output against what it records.

DVC compares hashes, and a commit makes those of edited files the right ones. Outputs also say from
what they were made; where they do not, DVC's run cache knows what a stage gave first.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bleuprint.config.experiment import Corpus, Settings
from bleuprint.config.paths import folder, ledger
from bleuprint.corpus.clean import Cleaning
from bleuprint.corpus.dedup import Deduplication
from bleuprint.corpus.filter import Filtering
from bleuprint.corpus.steps.ledger import read_ledgers
from bleuprint.corpus.steps.sharded import settings_sha256
from bleuprint.corpus.tokenize import Tokenizing
from bleuprint.dataset.binarize import Binarizing
from bleuprint.pipeline.first_difference import is_account
from bleuprint.runtime import fingerprint
from bleuprint.runtime.code import code_fingerprint
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import read_object, sha256_of
from bleuprint.runtime.schema import load_yaml
from bleuprint.runtime.versions import versions
from bleuprint.scoring.score import SetScores
from bleuprint.tracking.cell_results import CellResults, ScoredTranslations
from bleuprint.training.averaging import MODEL, average, parameters_in
from bleuprint.training.history import CHECKPOINTS
from bleuprint.training.job import Fingerprints, Job

_STEPS = (Cleaning, Deduplication, Filtering, Tokenizing, Binarizing)


def preparation(settings: Settings, root: Path) -> Iterator[str]:
    """The ledgers of the data stages that ran with other settings, or that do not add up."""
    for name, corpus in settings.corpora.items():
        yield from _sums(name, root)
        for stage, expected in _settings_of_ledgers(name, corpus, root).items():
            path = ledger(name, stage, root)
            if path.exists() and read_object(path, ("settings",))["settings"] != expected:
                yield (
                    f"{path}: {stage} ran with other settings than params.yaml; "
                    f"{_again(stage, name)}"
                )


def _sums(corpus: str, root: Path) -> Iterator[str]:
    """The ledgers whose pairs in are not those dropped and out, or not those of the stage before.

    That before clean counts texts, of which a set may have several.
    """
    before: dict[str, int] = {}
    stages = [
        stage for stage in ("clean", "dedup", "filter") if ledger(corpus, stage, root).exists()
    ]
    for stage, sets in read_ledgers(corpus, root, stages).items():
        for name, counts in sets.items():
            given, dropped = counts.pairs_in, sum(counts.dropped.values())
            if given != dropped + counts.pairs_out or given != before.get(name, given):
                yield (
                    f"{ledger(corpus, stage, root)}: {name}: {given:,} pairs in, {dropped:,} "
                    f"dropped, {counts.pairs_out:,} out, after {before.get(name, given):,} before: "
                    f"does not add up; {_again(stage, corpus)}"
                )
        before = {name: counts.pairs_out for name, counts in sets.items()}


def check_training(run: CellResults) -> None:
    """Raise UserError unless the training's code, data and counts are those that are here."""
    job = Job(
        run.cell,
        run.settings.system_on(run.cell.system, run.cell.corpus),
        folder(run.cell.corpus, "binary", run.root),
        folder(run.cell.corpus, "split", run.root),
        code_fingerprint("train", run.root),
    )
    path, again = run.path / "training.json", _again("train", *run.cell)
    end = run.curves.training[-1] if run.curves and run.curves.training else None
    if end and end.update == run.training.updates and end.tokens != run.training.target_tokens:
        raise UserError(
            f"{path}: {run.training.target_tokens:,} target tokens, but curves.json has "
            f"{end.tokens:,}; {again}"
        )
    if run.training.code != job.code:
        raise UserError(f"{path}: trained by other code than src/; {again}")
    if job.corpus.exists() and job.texts.exists():
        here = Fingerprints.from_job(job)
        if run.training.data != here.data:
            raise UserError(f"{path}: trained on other data than {job.corpus}; {again}")
        if run.training.fingerprint != here.all:
            raise UserError(f"{path}: its fingerprint is not that of its parts; {again}")


def check_average(run: CellResults) -> None:
    """Raise UserError unless the averaged model, if it is here, is the mean of the checkpoints.

    And unless it has the parameters that training.json counts.
    The mean is computed again if the checkpoints are here: a pull may bring the results alone.
    """
    models, again = run.root / run.cell.models, _again("average", *run.cell)
    for path in sorted((models / "averaged").rglob(MODEL)):
        described = read_object(path, ("fingerprint", "averaged"))
        if described["fingerprint"] != run.training.fingerprint:
            raise UserError(f"{path}: of another training than {run.path}/training.json; {again}")
        weights, digest = path.with_name("model.safetensors"), described["averaged"].get("sha256")
        if digest and weights.exists() and sha256_of(weights) != digest:
            raise UserError(f"{weights}: has changed since it was averaged; {again}")
        if weights.exists() and (found := parameters_in(weights)) != run.training.parameters:
            raise UserError(
                f"{run.path}/training.json: {run.training.parameters:,} parameters, but {weights} "
                f"has {found:,}; {_again('train', *run.cell)}"
            )
    if not all((models / name).exists() for name in (f"checkpoints/{CHECKPOINTS}", "averaged")):
        return
    system = run.settings.system_on(run.cell.system, run.cell.corpus)
    with TemporaryDirectory(prefix="bleuprint-") as temporary:
        average(models / "checkpoints", system.average, computed := Path(temporary, "averaged"))
        for path in sorted(computed.rglob("*.*")):
            here = models / "averaged" / path.relative_to(computed)
            if not here.exists() or here.read_bytes() != path.read_bytes():
                raise UserError(f"{here}: is not the average of the checkpoints; {again}")
        updates = read_object(computed / MODEL)["averaged"]["updates"]
    if run.translation.averaged.get("updates") != updates:
        raise UserError(
            f"{run.path}/translation.json: translated by an average of the checkpoints "
            f"{run.translation.averaged.get('updates')}, but averaged are {updates}; "
            f"{_again('translate', *run.cell)}"
        )


def check_versions(run: ScoredTranslations) -> None:
    """Raise UserError if the results were scored with other versions than are installed.

    Or by an earlier version of this project, which counted no faults.
    """
    for scores in run.scores.values():
        if absent := SetScores.__optional_keys__ - {"by_document"} - scores.keys():
            raise UserError(
                f"{run.path}/scores.json: no {min(absent)}; "
                f"run: dvc repro --force --single-item {run.stage}"
            )
        if (scored := scores["scored_with"]) != (installed := versions()):
            old, new = ({*side.split(", ")} for side in (scored, installed))
            raise UserError(
                f"{run.path}/scores.json: scored with {_listed(old - new)}, but installed: "
                f"{_listed(new - old)}; run: dvc repro --force --single-item {run.stage}"
            )


def not_computed(stages: Mapping[str, Any], root: Path) -> Iterator[str]:
    """The stages that once gave other outputs from the same settings, code and inputs.

    By DVC's run cache, in which every run and every commit leaves an entry, the first of them by
    time. Outputs that only tell how a stage ran are not compared.
    """
    for name, stage in stages.items():
        entries = runs(stage, root)
        if len(entries) < 2:
            continue
        first = min(entries, key=lambda path: path.stat().st_mtime_ns)
        sums = [
            {out["path"]: out["md5"] for out in of["outs"] if not is_account(out["path"])}
            for of in (load_yaml(first), stage)
        ]
        if changed := [path for path in sums[0] if sums[0][path] != sums[1].get(path)]:
            kind, _, of = name.partition("@")
            yield (
                f"{name}: {', '.join(changed)} not as it was computed first, from the same inputs "
                f"and code: committed after an edit, or of another version or machine; "
                f"{_again(kind, of)} (if it stays so, remove {first.relative_to(root)})"
            )


def runs(stage: Mapping[str, Any], root: Path) -> list[Path]:
    """The entries of DVC's run cache for a stage of dvc.lock; none where it was only pulled."""
    from dvc.utils import dict_sha256

    key = {**stage, "outs": [out["path"] for out in stage.get("outs", ())]}
    digest = dict_sha256(key, exclude=["size", "nfiles"])
    return list((root / ".dvc/cache/runs" / digest[:2] / digest).glob("*"))


def _settings_of_ledgers(name: str, corpus: Corpus, root: Path) -> dict[str, str]:
    steps = (step.of(name, corpus, root) for step in _STEPS)
    return {
        "download": fingerprint.of_settings(corpus.files),
        **{step.stage: settings_sha256(step) for step in steps},
        "split": fingerprint.of_settings(corpus.split, corpus.dedup.decontaminate),
    }


def _listed(names: set[str]) -> str:
    return ", ".join(sorted(names)) or "none"


def _again(stage: str, *item: object) -> str:
    name = "@".join(filter(None, (stage, "-".join(map(str, item)))))
    return f"run: dvc repro --force --single-item {name}"
