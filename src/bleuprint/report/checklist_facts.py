"""What the files of an experiment record, for its checklist."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from bleuprint.config.experiment import Settings
from bleuprint.config.paths import Cell, ledger
from bleuprint.corpus.steps.ledger import STAGES, read_ledgers
from bleuprint.report import cost_columns
from bleuprint.report.citations import citations
from bleuprint.report.frame import COSTS, RESULTS, trained
from bleuprint.report.grid import NONE
from bleuprint.report.page.funnel import kept
from bleuprint.report.paper_numbers import total_cost
from bleuprint.report.system_results import METRICS, OUTSIDE, PLACE, system_results
from bleuprint.runtime.flatten import dotted
from bleuprint.runtime.html import counted

PARAMS = "params.yaml"
UNCOMMITTED = "a training ran with changes that were not committed (+)"


@dataclass(frozen=True)
class Fact:
    """Files with what they say, and what they do not say."""

    evidence: tuple[tuple[str, str], ...]
    missing: str = ""


def recorded_facts(settings: Settings, records: pd.DataFrame, root: Path) -> dict[str, Fact]:
    """The facts of checklist.csv by name."""
    trainings = trained(records).drop_duplicates(Cell._fields)
    return {
        **_corpora(settings),
        **_counts(settings, root),
        **_results(settings, records),
        **_costs(trainings),
        **_software(trainings),
    }


def _fact(file: object, *lines: str) -> Fact:
    return Fact(tuple((str(file), line) for line in lines))


def _by_name(texts: Mapping[str, str]) -> list[str]:
    """A line for each text, after the names that share it."""
    names: dict[str, list[str]] = {}
    for name, text in texts.items():
        names.setdefault(text, []).append(name)
    return [f"{', '.join(alike)}: {text}" for text, alike in names.items()]


def _corpora(settings: Settings) -> dict[str, Fact]:
    """Facts of the texts and their preparation."""
    corpora = settings.corpora
    works = re.findall(r"^@\w+\{([^,\s]+)", citations(settings), re.MULTILINE)
    licenses, files, prepared = dict[str, str](), dict[str, str](), dict[str, str]()
    for name, corpus in corpora.items():
        given = corpus.license_and_citation.items()
        licenses[name] = "; ".join(f"{key}: {' '.join(of.license.split())}" for key, of in given)
        sides = corpus.files.sides().values()
        files[name] = ", ".join(dict.fromkeys(str(side.url or side.path) for side in sides))
        keys = {**corpus.deciding(), **dict.fromkeys(("files", "source", "target"))}
        deciding = dotted(keys).items()
        prepared[name] = ", ".join(k if value == "{}" else f"{k} {value}" for k, value in deciding)
    languages = {name: f"{corpus.source} to {corpus.target}" for name, corpus in corpora.items()}
    return {
        "citations": _fact("bleuprint cite", f"{counted(len(works), 'work')}: {', '.join(works)}"),
        "licenses": _fact(PARAMS, *_by_name(licenses)),
        "languages": _fact(PARAMS, *_by_name(languages)),
        "sources": _fact(PARAMS, *_by_name(files)),
        "preparation": _fact(PARAMS, *_by_name(prepared)),
    }


def _counts(settings: Settings, root: Path) -> dict[str, Fact]:
    """Facts of the ledgers, which a clone has after `dvc pull`."""

    def of_all(last: str, text: Callable[[str], str]) -> Fact:
        missing = [
            name
            for name in settings.corpora
            if not all(ledger(name, stage, root).exists() for stage in STAGES)
        ]
        known = [name for name in settings.corpora if name not in missing]
        evidence = tuple((ledger(name, last).as_posix(), text(name)) for name in known)
        absent = f"the ledgers of {', '.join(missing)} are not here; run: dvc pull"
        return Fact(evidence, absent if missing else "")

    def sizes(name: str) -> str:
        sets = read_ledgers(name, root, STAGES[-1:])[STAGES[-1]]
        return ", ".join(f"{part} {counts.pairs_out:,} pairs" for part, counts in sets.items())

    def excluded(name: str) -> str:
        counts = kept(name, root)
        rules = ", ".join(counts.most()) or "nothing"
        return f"{counts.left:,} of {counts.candidates:,} training pairs kept; dropped by {rules}"

    return {"sizes": of_all(STAGES[-1], sizes), "excluded": of_all("*", excluded)}


def _systems(settings: Settings) -> Fact:
    """The settings of the systems: of the baseline their number, of others what differs."""
    (baseline, given), *others = ((name, settings.dotted(name)) for name in settings.systems)
    lines = [f"systems.{baseline}: {counted(len(given), 'setting')}"]
    for name, system in others:
        keys = [key for key in {**given, **system} if given.get(key) != system.get(key)]
        pairs = (f"{key} {system.get(key, NONE)} ({given.get(key, NONE)})" for key in keys)
        lines.append(f"{name}: those of {baseline}, but {', '.join(pairs) or 'for its name'}")
    for corpus, rows in (settings.outside or {}).items():
        lines += [f"outside.{corpus}.{n} ({OUTSIDE}): {row.about}" for n, row in rows.items()]
    return _fact(PARAMS, *lines)


def _results(settings: Settings, records: pd.DataFrame) -> dict[str, Fact]:
    """Facts of the systems and their scores."""
    scores, tests = list[str](), dict[str, str]()
    for result in system_results(records):
        place, of = f"{result.corpus}, {result.test}", result.difference
        against = f"; {of} against {of.baseline}" if of else ""
        scores.append(f"{result.name} on {place}: BLEU {result.bleu}{against}")
        references = f"SHA-256 of references {result.first.references_sha256}"
        tests[place] = f"{result.first.lines:,} lines, {references}"
    shown = (
        "scores are means ± standard deviations over them; p is of a paired t-test"
        if len(settings.seeds) > 1
        else "scores are of a single run, in brackets the 95 % interval of 1,000 bootstrap "
        "resamples of the test set's lines; p is of a paired bootstrap"
    )
    trainings = counted(records.training_sha256.nunique(), "training")
    evaluations = counted(len(trained(records)), "evaluation")
    files = records[records.outside.notna()].drop_duplicates(PLACE)
    others = f"; {counted(len(files), 'file')} of translations {OUTSIDE}" if len(files) else ""
    signatures = (
        f"{name} {signature}"
        for metric, name in METRICS.items()
        for signature in records[f"{metric}_signature"].dropna().unique()
    )
    return {
        "settings": _systems(settings),
        "seeds": _fact(PARAMS, f"seeds {', '.join(map(str, settings.seeds))}: {shown}"),
        "scores": _fact(RESULTS, *scores),
        "tests": _fact(RESULTS, *_by_name(tests)),
        "runs": _fact(
            RESULTS,
            f"{trainings}; {evaluations}, one by system, corpus, seed and test set{others}",
        ),
        "measures": _fact(RESULTS, *signatures),
    }


def _costs(trainings: pd.DataFrame) -> dict[str, Fact]:
    """Facts of the cost: counted, and measured as far as it was."""

    def by_system(cell: Callable[[pd.DataFrame], str]) -> list[str]:
        groups = trainings.groupby(["system", "corpus"], sort=False)
        return _by_name({" on ".join(place): cell(seeds) for place, seeds in groups})

    total = total_cost(trainings)
    budget = ", ".join(f"{name} {cost}" for name, cost in total.items() if cost != NONE)
    times = [f"{line} (h:mm:ss)" for line in by_system(cost_columns.MEASURED["Time"])]
    untimed = "" if total["hours"] != NONE else f"{COSTS} lacks the time of a training"
    device = cost_columns.TEXTS["Device"](trainings)
    return {
        "parameters": _fact(RESULTS, *by_system(cost_columns.COUNTED["Parameters"])),
        "flops": _fact(
            RESULTS, *(f"{line} FLOPs" for line in by_system(cost_columns.counted_flops))
        ),
        "budget": replace(_fact(COSTS, budget), missing=untimed),
        "runtime": replace(_fact(COSTS, *times), missing=untimed),
        "infrastructure": _measured("device", [device] if device != NONE else []),
    }


def _software(trainings: pd.DataFrame) -> dict[str, Fact]:
    """Facts of the code, and of where outputs are."""
    commits, versions = (list(trainings[n].dropna().unique()) for n in ("commit", "versions"))
    trained = _measured("commit", [f"trained at commit {commit}" for commit in commits])
    changed = any(commit.endswith("+") for commit in commits)
    pinned = _fact("constraints.txt", "the version of every dependency")
    libraries = _measured("versions", versions)
    return {
        "commit": replace(trained, missing=UNCOMMITTED) if changed else trained,
        "versions": Fact((*libraries.evidence, *pinned.evidence), libraries.missing),
        "training_code": _fact("dvc.yaml", "stages download to train; run by: dvc repro"),
        "scoring_code": _fact("dvc.yaml", "stages average to report; run by: dvc repro"),
        "models": _fact("dvc.lock", "models/, in DVC's cache; to share them: bleuprint release"),
        "tables": _fact("reports/table.md", "written by: dvc repro"),
    }


def _measured(column: str, lines: Sequence[str]) -> Fact:
    """A fact of costs.csv, where a training that was not measured has none."""
    fact = _fact(COSTS, *lines)
    return fact if lines else replace(fact, missing=f"{COSTS} has no {column}")
