"""The records from the results of all runs, checked to belong together."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bleuprint.config.experiment import Settings
from bleuprint.config.paths import Run
from bleuprint.config.runs import all_runs, settings_sha256
from bleuprint.report.frame import (
    RESULTS,
    RUN_AND_TEST,
    Records,
    load,
    table_row_name,
    task_names,
    with_training_costs,
)
from bleuprint.report.paired import OfTest, holm, paired_differences
from bleuprint.report.published import literature
from bleuprint.runs.results import Results
from bleuprint.runtime import fingerprint
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.wording import join_with_and
from bleuprint.scoring.floor import MATCHED_4_GRAMS, reason_not_tested
from bleuprint.scoring.metric import DIGITS
from bleuprint.scoring.metrics import METRICS
from bleuprint.scoring.output_errors import CUT_OFF
from bleuprint.scoring.significance import evaluate_metric

_OF_TRAINING = ("parameters", "updates", "source_tokens", "target_tokens")
_Row = dict[str, Any]
_AGAIN = "run: make reproduce, or if it runs nothing: dvc repro --force --single-item report"


def collect(settings: Settings, root: Path = Path()) -> Records:
    """The records of every run in `settings`, in its order.

    Raises UserError naming the run and the file if one has no result yet, or if its files do not
    belong together.
    """
    opened = {run: Results.open(settings, run, root).check() for run in all_runs(settings)}
    runs = [_run(results, test) for results in opened.values() for test in results.tests]
    metrics = dict[tuple[Run, str], list[_Row]]()
    tasks = task_names(pd.DataFrame(runs))
    for task in dict.fromkeys(tasks.values()):
        by_row = [
            [opened[Run(row, corpus, seed)] for seed in settings.seeds]
            for corpus in tasks
            if tasks[corpus] == task
            for row in settings.system_names_on(corpus)
        ]
        for test in by_row[0][0].tests:
            metrics |= _of_test(tasks, [row for row in by_row if test in row[0].tests], test)
    ordered = (metrics[run, test] for run, results in opened.items() for test in results.tests)
    records = Records.from_rows(runs, list(chain.from_iterable(ordered)))
    _check_signatures(records)
    measured = Records(with_training_costs(records.runs, root), records.metrics)
    return literature.attach(measured, settings.published)


def load_checked(settings: Settings, root: Path = Path()) -> Records:
    """Return the records of the last report; raises UserError unless it is of these settings."""
    records = load(root)
    check_settings(records, settings, RESULTS)
    return literature.attach(records, settings.published)


def check_settings(
    records: Records, settings: Settings, path: Path, otherwise: str = _AGAIN
) -> None:
    """Raise UserError unless the records are those of these settings.

    Published numbers are not part of the records, and may differ.

    Args:
        records: The records.
        settings: The settings.
        path: The file of the records, for the message.
        otherwise: What to do about other settings, for the message.
    """
    rows = records.runs.drop_duplicates(list(Run._fields))
    runs = [Run(*row) for row in rows[list(Run._fields)].itertuples(index=False)]
    has_same_runs = runs == all_runs(settings)
    if has_same_runs and _has_models_of(records, settings):
        fingerprints = [settings_sha256(settings, run) for run in runs]
        if fingerprints == list(rows.settings_sha256):
            return
    raise UserError(f"{path}: was made with another params.yaml; {otherwise}")


def _has_models_of(records: Records, settings: Settings) -> bool:
    """Whether the models of metrics are those of params.yaml, by their names in signatures."""
    for metric in METRICS.values():
        of_metric = records.metrics[records.metrics.metric == metric.key]
        models = {metric.model_of(signature) for signature in of_metric.signature.unique()}
        if models - {""} != set(settings.metric_models(metric.key)):
            return False
    return True


def _of_test(
    tasks: Mapping[str, str], rows: Sequence[Sequence[Results]], test: str
) -> dict[tuple[Run, str], list[_Row]]:
    """The metrics of each row's seeds, tested against the first row.

    `tasks`: the name of the task of each corpus.
    """
    baseline, *others = rows
    system, corpus, _ = baseline[0].run
    baseline_name = table_row_name(system, corpus, tasks)
    metrics = _metrics([results for row in rows for results in row], test)
    found = {run: _placed(run, test, of_run) for run, of_run in metrics.items()}
    tested = list[tuple[float, list[_Row]]]()
    for row in others:
        first, second = ([metrics[results.run] for results in side] for side in (baseline, row))
        trained = row[0].is_trained and baseline[0].is_trained
        is_below_floor = bool(_floor(first, second, trained, row[0].scores_of(test)["lines"]))
        for key, of in paired_differences(first, second, trained).items():
            seeds = [found[results.run][key] for results in row]
            is_tested = of.p is not None and not is_below_floor
            for number, target in enumerate(seeds):
                target["baseline"] = baseline_name
                target["difference"] = round(of.difference, DIGITS)
                if of.p is not None and is_tested:
                    target["p"] = round(of.p, DIGITS)
                    target["p_randomization"] = of.tests[number].randomization
                    target["standard_error"] = of.tests[number].standard_error
            if of.p is not None and is_tested:
                tested.append((of.p, seeds))
    _correct(tested)
    return {(run, test): list(metrics.values()) for run, metrics in found.items()}


def _floor(first: Sequence[OfTest], second: Sequence[OfTest], trained: bool, lines: int) -> str:
    """Why the difference of two rows, each by seed, is not tested; empty if it is."""
    are_both_low = all((MATCHED_4_GRAMS, "") in of_seed for of_seed in (*first, *second))
    is_over_sentences = not trained or len(second) == 1
    return reason_not_tested(lines, is_over_sentences, are_both_low)


def _correct(tested: Sequence[tuple[float, Sequence[_Row]]]) -> None:
    """Add p by Holm's correction, of each metric for all rows, and of all errors together.

    `tested`: each p with the rows that have it, one a seed.
    """
    families: dict[tuple[str, str], list[tuple[float, Sequence[_Row]]]] = {}
    for p, rows in tested:
        metric = METRICS[rows[0]["metric"]]
        family = "error" if metric.kind == "error" else metric.key
        families.setdefault((family, rows[0]["group"]), []).append((p, rows))
    for members in families.values():
        corrected = holm([p for p, _ in members])
        for p_holm, (_, rows) in zip(corrected, members, strict=True):
            for row in rows:
                row["p_holm"] = round(p_holm, DIGITS)


def _metrics(runs: Sequence[Results], test: str) -> dict[Run, OfTest]:
    """What was measured on a test set, by run.

    A run has no count of translations that the maximum length cut if there are none. Where another
    run has one, theirs is 0; of systems that are not trained here nobody knows.
    """
    found = {results.run: results.metrics(test) for results in runs}
    key = CUT_OFF, ""
    if any(key in of_run for of_run in found.values()):
        for results in runs:
            if key not in found[results.run] and results.is_trained:
                statistics = np.array([[0.0, 1.0]] * results.scores_of(test)["lines"])
                none_cut = evaluate_metric(METRICS[CUT_OFF], statistics, signature="")
                found[results.run] = {**found[results.run], key: none_cut}
    return found


def _placed(run: Run, test: str, of_run: OfTest) -> dict[tuple[str, str], _Row]:
    """The rows of a run's metrics, without their statistics."""
    place = {**run._asdict(), "test": test}
    return {
        key: place | {name: value for name, value in each.items() if name != "statistics"}
        for key, each in of_run.items()
    }


def _run(results: Results, test: str) -> _Row:
    """The facts of a run, and the fingerprints of what made its translations of a test set."""
    corpus, scores = (
        results.settings.corpus(results.run.corpus).language_pair_of_test(test),
        results.scores_of(test),
    )
    row = {
        **results.run._asdict(),
        "test": test,
        "source": corpus.source,
        "target": corpus.target,
        "about": results.settings.about_system(results.run.system, results.run.corpus),
        "lines": scores["lines"],
        "scored_with": scores["scored_with"],
        "settings_sha256": settings_sha256(results.settings, results.run),
        **{f"{side}_sha256": scores[side] for side in ("sources", "references", "hypotheses")},
    }
    if not results.is_trained:
        return row
    training, decode = results.training, results.translation.decode
    return row | {
        **{name: getattr(training, name) for name in _OF_TRAINING},
        "training_flops": training.flops,
        "models": results.translation.models,
        "engine": "pytorch",
        "precision": decode["precision"],
        "training_sha256": training.fingerprint,
        "binary_sha256": training.data,
        "averaged_sha256": fingerprint.of_settings(asdict(results.translation.averaged)),
        "decode_sha256": fingerprint.of_settings(decode),
    }


def _check_signatures(records: Records) -> None:
    """Raise UserError if runs were scored by different versions of a metric."""
    same = ["references_sha256", "metric", "group"]  # the tokenizer of BLEU is the test set's
    with_texts = records.metrics.merge(
        records.runs[[*RUN_AND_TEST, "references_sha256"]], on=RUN_AND_TEST
    )
    alike = with_texts.drop_duplicates([*same, "signature"])
    for (_, metric, _), signatures in alike.groupby(same).signature:
        if len(signatures) > 1:
            rows = alike.loc[signatures.index]
            of = zip(rows.signature, rows.system, rows.corpus, strict=True)
            places = [f"{each} ({system} on {corpus})" for each, system, corpus in of]
            raise UserError(
                f"{METRICS[metric].label} of different versions: {join_with_and(places)}; to "
                "score all again with one version, run dvc repro --force --single-item STAGE for "
                f"each of the stages {METRICS[metric].stage} of dvc.yaml"
            )
