"""Collects the records of a report, that is, the content of results.json, from all runs.

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
from bleuprint.scoring.metrics import METRICS, own_metrics
from bleuprint.scoring.own_metrics import is_own_metric

_REMEDY = "Run: make reproduce. If that runs nothing, run: dvc repro --force --single-item report"


def collect(settings: Settings, root: Path = Path()) -> Records:
    """Collect the results of all runs of an experiment, as results.json will store them.

    A run is a system, trained on a corpus with one seed. The stages of the pipeline have written
    its translations and scores. Here, these files are checked to belong together, systems are
    compared with their baseline, and published numbers are added.

    Args:
        settings: The settings of the experiment.
        root: The project's folder.

    Raises:
        UserError: A run has no results yet, or its files do not belong together; the message names
            the run and the file. Or a metric of own code has changed since the settings were read.
    """
    own_metrics(settings.metrics)  # This raises an error if a module has changed meanwhile.
    results_by_run = {}
    for run in all_runs(settings):
        results_by_run[run] = Results.open(settings, run, root).check()
    run_rows = []
    for results in results_by_run.values():
        for test in results.tests:
            run_rows.append(_run_row(results, test))
    tasks = task_names(pd.DataFrame(run_rows))
    metric_rows_by_run_and_test = _compared_metric_rows(settings, results_by_run, tasks)
    # Systems are compared by test set, but results.json lists all rows of a run together.
    ordered_metric_rows: list[MetricRow] = []
    for run, results in results_by_run.items():
        for test in results.tests:
            ordered_metric_rows += metric_rows_by_run_and_test[run, test]
    records = Records.from_rows(run_rows, ordered_metric_rows)
    _check_signatures(records)
    runs = with_training_costs(records.runs, root)
    return literature.with_published_numbers(Records(runs, records.metrics), settings.published)


def _run_row(results: Results, test: str) -> RunRow:
    """Return the row of results.json that describes a run and a test set, without its scores.

    It contains the size of the model, the amount of training, and the SHA-256 of settings, texts
    and translations. For an external system, which is not trained here, some of them are None.

    Args:
        results: The results of the run.
        test: The name of the test set.
    """
    run = results.run
    settings = results.settings
    # A corpus may have several language pairs; a test set has one of them.
    language_pair = settings.corpus(run.corpus).language_pair_of_test(test)
    scores = results.scores_of(test)
    row: RunRow = {
        "system": run.system,
        "corpus": run.corpus,
        "seed": run.seed,
        "test": test,
        "source": language_pair.source,
        "target": language_pair.target,
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
    """Fill in the fields of a row that only trained systems have: their training and decoding.

    Args:
        row: The row of results.json, in which these fields are None so far.
        results: The results of the run.
    """
    training = results.training
    translation = results.translation
    row["parameters"] = training.parameters
    row["updates"] = training.updates
    row["source_tokens"] = training.source_tokens
    row["target_tokens"] = training.target_tokens
    row["training_flops"] = training.flops
    row["models"] = translation.models
    # The only engine. The field remains since reports of version 1.0 may name another one.
    row["engine"] = "pytorch"
    row["precision"] = translation.decode["precision"]
    row["training_sha256"] = training.fingerprint
    row["binary_sha256"] = training.data
    row["averaged_sha256"] = fingerprint.of_settings(asdict(translation.averaged))
    row["decode_sha256"] = fingerprint.of_settings(translation.decode)


def _compared_metric_rows(
    settings: Settings, results_by_run: dict[Run, Results], tasks: dict[str, str]
) -> dict[tuple[Run, str], list[MetricRow]]:
    """Return the rows of all metrics, after each system was compared with its baseline.

    Corpora with the same test sets form a task. All systems of a task are compared with one
    baseline: the first system on the first of these corpora.

    Args:
        settings: The settings of the experiment.
        results_by_run: The results of all runs.
        tasks: The name of the task of each corpus.

    Returns:
        The rows of results.json by run and test set.
    """
    rows = {}
    for task in dict.fromkeys(tasks.values()):
        systems = _systems_of_task(task, settings, results_by_run, tasks)
        baseline = systems[0]
        for test in baseline.test_sets:
            systems_with_test = [system for system in systems if test in system.test_sets]
            for run, rows_of_run in metric_rows(systems_with_test, test).items():
                rows[run, test] = rows_of_run
    return rows


def _systems_of_task(
    task: str, settings: Settings, results_by_run: dict[Run, Results], tasks: dict[str, str]
) -> list[SystemResults]:
    """Return the systems of a task with the results of all their seeds, the baseline first.

    A task consists of all corpora with the same test sets, so its systems can be compared.

    Args:
        task: The name of the task.
        settings: The settings of the experiment.
        results_by_run: The results of all runs.
        tasks: The name of the task of each corpus.
    """
    systems = []
    for corpus, task_of_corpus in tasks.items():
        if task_of_corpus != task:
            continue
        for system in settings.system_names_on(corpus):
            runs = [Run(system, corpus, seed) for seed in settings.seeds]
            seeds = [results_by_run[run] for run in runs]
            systems.append(SystemResults(table_row_name(system, corpus, tasks), seeds))
    return systems


def _check_signatures(records: Records) -> None:
    """Check that all runs were scored with the same version and options of each metric.

    The signature of a score names both, such as `tok:13a|version:2.6.0`. Only runs with the same
    references are compared: BLEU's tokenizer, for example, depends on the target language.

    Raises:
        UserError: The scores of a metric have two signatures.
    """
    references = records.runs[[*RUN_AND_TEST, "references_sha256"]]
    metrics = records.metrics.merge(references, on=RUN_AND_TEST)
    shared_columns = ["references_sha256", "metric", "group"]
    # One row for each signature of a metric on the same references.
    signatures = metrics.drop_duplicates([*shared_columns, "signature"])
    for (_, metric_name, _), rows in signatures.groupby(shared_columns):
        if len(rows) == 1:
            continue
        examples = []
        for row in rows.itertuples():
            examples.append(f"{row.signature} ({row.system} on {row.corpus})")
        metric = METRICS[metric_name]
        raise UserError(
            f"{metric.label} was computed by different versions: {join_with_and(examples)}. To "
            "score all again with one version, run dvc repro --force --single-item STAGE for each "
            f"of the stages {metric.stage} of dvc.yaml"
        )


def load_checked(settings: Settings, root: Path = Path()) -> Records:
    """Read the results of the last report, and check that they belong to these settings.

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
    """Check that results were computed with these settings, and not with an older params.yaml.

    Numbers from papers, under `published` in params.yaml, may differ: results.json does not contain
    them, and tables read them from params.yaml.

    Args:
        records: The results, as results.json stores them.
        settings: The current settings.
        path: The path of results.json, for the message.
        remedy: What to do if the settings differ, for the message.

    Raises:
        UserError: The settings differ.
    """
    if not _have_settings(records, settings):
        raise UserError(f"{path} was computed with another params.yaml. {remedy}")


def _have_settings(records: Records, settings: Settings) -> bool:
    """Return whether results were computed with these settings.

    Four things must be equal: the list of runs, the models of neural metrics such as COMET, the
    metrics of own code, and for each run the hash of all settings that can change its results.

    Args:
        records: The results, as results.json stores them.
        settings: The current settings.
    """
    run_columns = list(Run._fields)
    rows = records.runs.drop_duplicates(run_columns)
    runs = [Run(*key) for key in rows[run_columns].itertuples(index=False)]
    if runs != all_runs(settings):
        return False
    if not _have_metric_models(records, settings):
        return False
    # The signature of such a metric is the name of its module, with the fingerprint of its code.
    # The module may be missing here: the results of an earlier Git revision name its own modules.
    own_names = [name for name in records.metrics.metric.unique() if is_own_metric(name)]
    is_own = records.metrics.metric.isin(own_names)
    if set(records.metrics.signature[is_own]) != set(settings.metrics):
        return False
    current_hashes = [settings_sha256(settings, run) for run in runs]
    return current_hashes == list(rows.settings_sha256)


def _have_metric_models(records: Records, settings: Settings) -> bool:
    """Return whether scores were computed with the models of neural metrics in the settings.

    A neural metric, such as COMET, names its model in the signature of its scores.

    Args:
        records: The results, as results.json stores them.
        settings: The current settings.
    """
    for metric in METRICS.values():
        scores = records.metrics[records.metrics.metric == metric.key]
        models = {metric.model_of(signature) for signature in scores.signature.unique()}
        models.discard("")  # The result for a metric without a model, such as BLEU.
        if models != set(settings.metric_models(metric.key)):
            return False
    return True
