"""Collects the records of a report from the results of all runs, checked to belong together.

`collect` is what the report stage calls; `load_checked` reads the records of the last report for
commands. metric_rows.py compares the systems with the baseline.
"""

from dataclasses import asdict
from pathlib import Path

import pandas as pd

from bleuprint.config.experiment import Settings
from bleuprint.config.paths import Run
from bleuprint.config.runs import all_runs, settings_sha256
from bleuprint.report.frame import RESULTS, RUN_AND_TEST, Records, load
from bleuprint.report.metric_rows import SystemResults, metric_rows
from bleuprint.report.published import literature
from bleuprint.report.results_file import MetricRow, RunRow
from bleuprint.report.tasks import table_row_name, task_names
from bleuprint.report.training_costs import with_training_costs
from bleuprint.runs.results import Results
from bleuprint.runtime import fingerprint
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.wording import join_with_and
from bleuprint.scoring.metrics import METRICS

_REMEDY = "run: make reproduce, or if it runs nothing: dvc repro --force --single-item report"


def collect(settings: Settings, root: Path = Path()) -> Records:
    """Return the records of all runs of an experiment, from the files of their stages.

    Args:
        settings: The settings of the experiment.
        root: The project's folder.

    Raises:
        UserError: A run has no results yet, or its files do not belong together; the message names
            the run and the file.
    """
    results_by_run = {}
    for run in all_runs(settings):
        results_by_run[run] = Results.open(settings, run, root).check()
    run_rows = []
    for results in results_by_run.values():
        for test in results.tests:
            run_rows.append(_run_row(results, test))
    tasks = task_names(pd.DataFrame(run_rows))
    metric_rows_by_run_and_test = _compared_metric_rows(settings, results_by_run, tasks)
    ordered_metric_rows: list[MetricRow] = []
    for run, results in results_by_run.items():
        for test in results.tests:
            ordered_metric_rows += metric_rows_by_run_and_test[run, test]
    records = Records.from_rows(run_rows, ordered_metric_rows)
    _check_signatures(records)
    runs = with_training_costs(records.runs, root)
    return literature.with_published_numbers(Records(runs, records.metrics), settings.published)


def _run_row(results: Results, test: str) -> RunRow:
    """Return the row of a run's test set: size, training and fingerprints of its translations."""
    run = results.run
    settings = results.settings
    corpus = settings.corpus(run.corpus).language_pair_of_test(test)
    scores = results.scores_of(test)
    row: RunRow = {
        "system": run.system,
        "corpus": run.corpus,
        "seed": run.seed,
        "test": test,
        "source": corpus.source,
        "target": corpus.target,
        "about": settings.about_system(run.system, run.corpus),
        "lines": scores["lines"],
        "parameters": None,
        "updates": None,
        "source_tokens": None,
        "target_tokens": None,
        "training_flops": None,
        "models": None,
        "engine": None,
        "precision": None,
        "scored_with": scores["scored_with"],
        "settings_sha256": settings_sha256(settings, run),
        "training_sha256": None,
        "binary_sha256": None,
        "averaged_sha256": None,
        "decode_sha256": None,
        "sources_sha256": scores["sources"],
        "references_sha256": scores["references"],
        "hypotheses_sha256": scores["hypotheses"],
    }
    if results.is_trained:
        _add_training(row, results)
    return row


def _add_training(row: RunRow, results: Results) -> None:
    """Add to a row what external systems lack: the training, the model average and the search."""
    training = results.training
    translation = results.translation
    row["parameters"] = training.parameters
    row["updates"] = training.updates
    row["source_tokens"] = training.source_tokens
    row["target_tokens"] = training.target_tokens
    row["training_flops"] = training.flops
    row["models"] = translation.models
    row["engine"] = "pytorch"
    row["precision"] = translation.decode["precision"]
    row["training_sha256"] = training.fingerprint
    row["binary_sha256"] = training.data
    row["averaged_sha256"] = fingerprint.of_settings(asdict(translation.averaged))
    row["decode_sha256"] = fingerprint.of_settings(translation.decode)


def _compared_metric_rows(
    settings: Settings, results_by_run: dict[Run, Results], tasks: dict[str, str]
) -> dict[tuple[Run, str], list[MetricRow]]:
    """Return the rows of all metrics by run and test set, compared with the baselines.

    Each task has its own baseline: the first system on the first of the task's corpora.

    Args:
        settings: The settings of the experiment.
        results_by_run: The results of all runs.
        tasks: The name of the task of each corpus.
    """
    rows = {}
    for task in dict.fromkeys(tasks.values()):
        corpora = [corpus for corpus in tasks if tasks[corpus] == task]
        systems = []
        for corpus in corpora:
            for system in settings.system_names_on(corpus):
                runs = [Run(system, corpus, seed) for seed in settings.seeds]
                seeds = [results_by_run[run] for run in runs]
                systems.append(SystemResults(table_row_name(system, corpus, tasks), seeds))
        baseline = systems[0]
        for test in baseline.test_sets:
            systems_with_test = [system for system in systems if test in system.test_sets]
            for run, rows_of_run in metric_rows(systems_with_test, test).items():
                rows[run, test] = rows_of_run
    return rows


def _check_signatures(records: Records) -> None:
    """Raise UserError if runs were scored by different versions of a metric.

    The signature of BLEU contains its tokenizer, which depends on the target language. So only
    runs with the same references must have the same signature.
    """
    references = records.runs[[*RUN_AND_TEST, "references_sha256"]]
    metrics = records.metrics.merge(references, on=RUN_AND_TEST)
    compared_columns = ["references_sha256", "metric", "group"]
    versions = metrics.drop_duplicates([*compared_columns, "signature"])
    for (_, metric_name, _), rows in versions.groupby(compared_columns):
        if len(rows) == 1:
            continue
        examples = []
        for row in rows.itertuples():
            examples.append(f"{row.signature} ({row.system} on {row.corpus})")
        metric = METRICS[metric_name]
        raise UserError(
            f"{metric.label} of different versions: {join_with_and(examples)}. To score all again "
            "with one version, run dvc repro --force --single-item STAGE for each of the stages "
            f"{metric.stage} of dvc.yaml"
        )


def load_checked(settings: Settings, root: Path = Path()) -> Records:
    """Return the records of the last report.

    Args:
        settings: The settings of the experiment.
        root: The project's folder.

    Raises:
        UserError: There is no report, or it was written with other settings.
    """
    records = load(root)
    check_settings(records, settings, RESULTS)
    return literature.with_published_numbers(records, settings.published)


def check_settings(records: Records, settings: Settings, path: Path, remedy: str = _REMEDY) -> None:
    """Raise UserError unless the records were made with these settings.

    Published numbers are not part of the records, so they may differ.

    Args:
        records: The records.
        settings: The settings that are expected.
        path: The file of the records, for the message.
        remedy: What to do if the settings differ, for the message.
    """
    if not _have_settings(records, settings):
        raise UserError(f"{path}: was made with another params.yaml; {remedy}")


def _have_settings(records: Records, settings: Settings) -> bool:
    """Return whether the records have the runs, metric models and fingerprints of the settings."""
    run_columns = list(Run._fields)
    rows = records.runs.drop_duplicates(run_columns)
    runs = [Run(*key) for key in rows[run_columns].itertuples(index=False)]
    if runs != all_runs(settings) or not _have_metric_models(records, settings):
        return False
    fingerprints = [settings_sha256(settings, run) for run in runs]
    return fingerprints == list(rows.settings_sha256)


def _have_metric_models(records: Records, settings: Settings) -> bool:
    """Return whether the models of metrics, such as COMET's, are those of params.yaml.

    The records name the model of a metric in its signature; a metric without a model has an empty
    name.
    """
    for metric in METRICS.values():
        metric_rows_of_key = records.metrics[records.metrics.metric == metric.key]
        signatures = metric_rows_of_key.signature.unique()
        models = {metric.model_of(signature) for signature in signatures}
        models.discard("")
        if models != set(settings.metric_models(metric.key)):
            return False
    return True
