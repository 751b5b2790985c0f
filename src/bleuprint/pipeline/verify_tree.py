"""Whether the working tree belongs together: outputs as DVC recorded them, scores as translated."""

from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd

from bleuprint.config.experiment import Settings, load
from bleuprint.config.paths import INPUTS
from bleuprint.pipeline.dvc_lock import check_whole, open_repo
from bleuprint.pipeline.params_files import current_params
from bleuprint.pipeline.verify_again import held_out_in_training, page_differs, translations
from bleuprint.pipeline.verify_chain import (
    check_average,
    check_training,
    check_versions,
    not_computed,
    preparation,
    runs,
)
from bleuprint.report.frame import REPORTS, RESULTS, read, save
from bleuprint.report.record_checks import LISTS
from bleuprint.report.records import collect
from bleuprint.report.report import PAGE, tables
from bleuprint.report.same_results import Verdict, changed_columns
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.schema import load_yaml
from bleuprint.tracking.cell_results import CellResults
from bleuprint.tracking.outside_results import open_results, results_folder, rows_of

_MOST = 9


def lines(root: Path = Path()) -> tuple[list[str], Verdict]:
    """What does not belong together, in at most ten lines; what was checked if all does.

    Raises UserError at a mistake in params.yaml.
    """
    settings = load(root / "params.yaml")
    checked = [f"{RESULTS} is what the report computes from results/"]
    problems = list(dict.fromkeys(beyond_dvc(settings, root)))
    if (lock := root / "dvc.lock").exists():
        recorded = load_yaml(lock).get("stages") or {}
        problems += _outputs(recorded, root)
        problems += not_computed(recorded, root)
        checked.append("every stage's settings, code, inputs and outputs are those of dvc.lock")
        # the run cache has no stage whose outputs DVC does not cache
        cached = [stage for stage in recorded.values() if not _is_report(stage)]
        if unseen := sum(not runs(stage, root) for stage in cached):
            checked.append(
                f"but that {unseen} of {len(cached)} stages computed their outputs is not known "
                "here, where they have not run"
            )
    else:
        problems.append(
            f"{lock}: no such file: what computed results/ is not known; get it from git, or run: "
            "bleuprint settle"
        )
    if not problems:
        problems, translated = translations(settings, root)
        checked.append(translated)
        if not problems and page_differs(settings, root):
            checked.append(f"but {REPORTS / PAGE} is edited, or older than what was measured")
    if not problems:
        return [f"the working tree belongs together: {', '.join(checked)}"], Verdict.SAME_BYTES
    shown = list(islice(problems, _MOST))
    more = len(problems) - len(shown)
    return [*shown, *([f"and {more} more"] if more else [])], Verdict.DIFFERENT


def beyond_dvc(settings: Settings, root: Path) -> Iterator[str]:
    """What does not belong together by what the outputs say of themselves, DVC aside."""
    yield from preparation(settings, root)
    yield from held_out_in_training(settings, root)
    yield from _results(settings, root)


def _results(settings: Settings, root: Path) -> Iterator[str]:
    """What is wrong with the results of the cells; if nothing is, with those of the report."""
    fine = True
    for cell in rows_of(settings):
        if not (root / results_folder(settings, cell)).exists():
            continue  # DVC, or the report, says so
        try:
            run = open_results(settings, cell, root).check()
            if isinstance(run, CellResults):
                _ = run.curves
                check_training(run)
                check_average(run)
            check_versions(run)
        except UserError as error:
            fine = False
            yield str(error)
    if fine:
        try:
            yield from _records(settings, root)
        except UserError as error:
            yield str(error)


def _records(settings: Settings, root: Path) -> Iterator[str]:
    """The columns of results.json, or the tables, that the report would not write so."""
    path, records = root / RESULTS, collect(settings, root)
    with TemporaryDirectory(prefix="bleuprint-") as temporary:
        save(records, again := Path(temporary, RESULTS.name))
        if path.exists() and again.read_bytes() == path.read_bytes():
            yield from _tables(settings, records, root)
            return
        stored, computed = read(path, root), read(again, root)
    for place, column, old, new in changed_columns(stored, computed):
        if column in LISTS:
            yield f"{path}: {column} of {place} differ from those of results/"
        else:
            yield f"{path}: {column} {old} of {place}, but results/ give {new}"


def _tables(settings: Settings, records: pd.DataFrame, root: Path) -> Iterator[str]:
    """The tables that are not what the report writes of the records."""
    for name, text in tables(settings, records, root).items():
        path = root / REPORTS / name
        if path.exists() and path.read_bytes() != text.encode():
            yield (
                f"{path}: not what the report writes of results/; "
                "run: dvc repro --force --single-item report"
            )


def _is_report(stage: Mapping[str, Any]) -> bool:
    """Whether all outputs of a stage of dvc.lock are in git, in reports/."""
    return all(Path(out["path"]).is_relative_to(REPORTS) for out in stage.get("outs", ()))


def _outputs(recorded: Mapping[str, Any], root: Path) -> Iterator[str]:
    """What `dvc status` finds: each path once, by the first stage that names it.

    `recorded`: the stages of dvc.lock.
    """
    from dvc.repo import lock_repo

    check_whole(root / "dvc.lock")
    with open_repo(root) as repo, lock_repo(repo), current_params(root):
        # the names of stages have a path in front of them if this is not run from the root
        status: dict[str, list[Any]] = {
            name.rpartition(":")[2]: changes for name, changes in repo.status().items()
        }
    new = [name for name in status if name not in recorded]
    for name in new:
        del status[name]
        yield f"{name}: has not run yet; run: dvc repro"
    found, absent = dict[str, str](), set[str]()
    for kind in ("changed outs", "changed deps"):
        for name, changes in status.items():
            for change in changes:
                paths = change.get(kind, {}) if isinstance(change, Mapping) else {}
                for path, state in paths.items():
                    if path == "inputs":
                        continue  # files that no corpus may name: see the next
                    if path == str(INPUTS) and kind == "changed deps":
                        found[f"{name}: {path}"] = f"{name}: its files in inputs/ have changed"
                    elif isinstance(state, Mapping):  # settings
                        keys = ", ".join(f"{key} {how}" for key, how in state.items())
                        found[f"{name}: {path}"] = f"{name}: {path}: {keys} since it ran"
                    elif kind == "changed outs" and state in ("deleted", "not in cache"):
                        absent.add(path)
                    elif not any(Path(each).is_relative_to(path) for each in (*found, *absent)):
                        found[path] = f"{name}: {path} {state} since it ran"
    if absent:
        yield f"outputs of stages that are not here: {len(absent)}; run: dvc pull, or dvc repro"
    yield from found.values()
    for name, changes in status.items():
        yield from (f"{name}: {change}" for change in changes if isinstance(change, str))
