"""The score frame: all scores of a report as one data frame, from which every table is made.

`score_frame` makes it of the records. It has a row for each metric of each table row, with the
columns of `ScoreRow`; with several seeds, values are means over them. Published numbers are rows,
too. Other modules select rows with `select_metric` and `by_test_set`, and read them one by one
with `score_rows`.
"""

from collections.abc import Iterator
from functools import lru_cache
from math import nan
from typing import NamedTuple, Protocol

import pandas as pd

from bleuprint.report.frame import Records
from bleuprint.report.score_texts import format_score, format_tested_difference, significance_mark
from bleuprint.report.tasks import table_row_name, task_names
from bleuprint.report.training_costs import machine_text
from bleuprint.rules.letters import SCRIPTS
from bleuprint.scoring.floor import MATCHED_4_GRAMS, reason_not_tested
from bleuprint.scoring.human_agreement import agreement_text, human_agreement
from bleuprint.scoring.metric import Agreement
from bleuprint.scoring.metrics import METRICS

# The columns that identify a system on a test set of a corpus: a row of a table.
SYSTEM_AND_TEST = ["system", "corpus", "test"]
# What tables append to the name of an external system.
NOT_TRAINED = " (external)"


class ScoreRow(NamedTuple):
    """A row of the score frame: one metric of a system on a test set, or a published number.

    Numbers that do not exist are NaN; texts that do not exist are empty, or None where noted.

    Attributes:
        system: The name of the system.
        corpus: The corpus on which it is trained.
        test: The test set.
        metric: The key of the metric.
        group: The group of lines; empty for all lines.
        value: The score; the mean over seeds.
        deviation: The standard deviation over seeds.
        ci_low: The lower end of the 95% confidence interval, where there is no deviation.
        ci_high: The upper end of the interval.
        ci_width: The mean width of the intervals of all seeds.
        units: The number of lines, words or documents that the score is computed from.
        signature: The signature of the score.
        difference: The difference from the baseline, where it is comparable.
        p: The p-value of the difference.
        p_holm: The p-value after Holm's correction for all systems of the table.
        standard_error: The standard error of the difference over lines.
        difference_deviation: The standard deviation of the difference over seeds.
        source: The source language.
        target: The target language.
        lines: The number of lines of the test set.
        references_sha256: The SHA-256 of the references.
        seeds: The number of seeds.
        first_seed: The first seed.
        parameters: The number of parameters of the model.
        updates: The number of updates of a training run.
        source_tokens: The source tokens of a training run.
        target_tokens: The target tokens of a training run.
        training_flops: The floating-point operations of a training run, counted.
        train_seconds: The duration of a training run.
        train_tokens_per_second: The target tokens per second of a training run.
        peak_memory: The peak memory of a training run, in bytes.
        training_flops_by_time: The operations that the devices could do in the training time.
        mfu: The model FLOPs utilization, 0 to 1.
        device: The machines of the training runs; None if they are not known.
        baseline: The name of the row that the system is compared with; None for the baseline.
        is_too_low: Whether all translations match too few 4-grams for a test (scoring/floor.py).
        is_trained: Whether the system is trained here.
        task: The name of the table (tasks.py).
        row_name: The name of the row.
        why_untested: The reason why no difference of the row is tested; empty if it is tested.
        value_text: The value as tables show it.
        score_text: The value with its deviation or interval.
        mark: The significance mark of the difference.
        difference_text: The difference with its mark and p-value.
        agreement: The percentage of human agreement, where the difference is significant.
        agreement_text: The human agreement as tables show it.
        is_published: Whether it is a published number, whose texts are as printed.
    """

    system: str
    corpus: str
    test: str
    metric: str
    group: str
    value: float
    deviation: float
    ci_low: float
    ci_high: float
    ci_width: float
    units: float
    signature: str
    difference: float
    p: float
    p_holm: float
    standard_error: float
    difference_deviation: float
    source: str
    target: str
    lines: int
    references_sha256: str
    seeds: int
    first_seed: int
    parameters: float
    updates: float
    source_tokens: float
    target_tokens: float
    training_flops: float
    train_seconds: float
    train_tokens_per_second: float
    peak_memory: float
    training_flops_by_time: float
    mfu: float
    device: str | None
    baseline: str | None
    is_too_low: bool
    is_trained: bool
    task: str
    row_name: str
    why_untested: str
    value_text: str
    score_text: str
    mark: str
    difference_text: str
    agreement: float
    agreement_text: str
    is_published: bool


_COST_COLUMNS = [
    "parameters",
    "updates",
    "source_tokens",
    "target_tokens",
    "training_flops",
    "train_seconds",
    "train_tokens_per_second",
    "peak_memory",
    "training_flops_by_time",
    "mfu",
]
_TEXT_COLUMNS = [
    "value_text",
    "score_text",
    "mark",
    "difference_text",
    "agreement",
    "agreement_text",
]


@lru_cache(maxsize=4)  # All tables of a report are made from the same records.
def score_frame(records: Records) -> pd.DataFrame:
    """Return the score frame of an experiment.

    Args:
        records: The records of its results.json.

    Returns:
        A data frame with the columns of `ScoreRow`: a row for each published number, then for each
        system, corpus, test set, metric and group of lines, in the order of the records.
    """
    facts = _system_facts(records)
    metrics = _with_baseline_values(records.metrics, facts)
    by_score = metrics.groupby([*SYSTEM_AND_TEST, "metric", "group"], sort=False)
    scores = by_score.agg(
        value=("value", "mean"),
        deviation=("value", "std"),
        ci_low=("ci_low", "mean"),
        ci_high=("ci_high", "mean"),
        ci_width=("ci_width", "mean"),
        units=("units", "first"),
        signature=("signature", "first"),
        difference=("difference", "first"),
        p=("p", "first"),
        p_holm=("p_holm", "first"),
        standard_error=("standard_error", "mean"),
        difference_deviation=("seed_difference", "std"),
        baseline_signature=("baseline_signature", "first"),
    )
    scores = scores.reset_index().merge(facts, on=SYSTEM_AND_TEST, how="left")
    _remove_intervals_of_means(scores)
    _remove_unknown_differences(scores)
    _add_texts(scores)
    scores["is_published"] = False
    scores = scores[list(ScoreRow._fields)]
    if records.published.empty:
        return scores
    published_rows = _published_rows(records.published, scores)
    return pd.concat([published_rows, scores], ignore_index=True)


def score_rows(scores: pd.DataFrame) -> list[ScoreRow]:
    """Return the rows of a score frame, or of a part of it, one by one."""
    table = scores[list(ScoreRow._fields)].copy()
    # pandas stores a missing text as NaN.
    for name in ("baseline", "device"):
        table[name] = table[name].astype(object).where(table[name].notna(), None)
    return [ScoreRow(*row) for row in table.itertuples(index=False, name=None)]


def computed_scores(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the scores that were computed here, without published numbers."""
    return scores[~scores.is_published]


def published_scores(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the published numbers."""
    return scores[scores.is_published]


def by_test_set(scores: pd.DataFrame) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """Yield the scores of each test set, in the order of the records.

    Yields:
        The name of the task, the name of the test set, and its part of the score frame.
    """
    test_sets = computed_scores(scores)[["task", "test"]].drop_duplicates()
    for task, test in test_sets.itertuples(index=False, name=None):
        yield task, test, scores[(scores.task == task) & (scores.test == test)]


def select_metric(scores: pd.DataFrame, metric: str, group: str = "") -> pd.DataFrame:
    """Return the scores in one metric, by default those of all lines.

    Args:
        scores: The score frame, or the table of metrics of the records.
        metric: The key of the metric.
        group: The group of lines.
    """
    return scores[(scores.metric == metric) & (scores.group == group)]


def bleu_rows(scores: pd.DataFrame) -> list[ScoreRow]:
    """Return the BLEU of each system, without published numbers."""
    return score_rows(select_metric(computed_scores(scores), "bleu"))


def display_name(row: ScoreRow) -> str:
    """Return the name of a row as tables show it: external systems are marked as such."""
    if row.is_trained or row.is_published:
        return row.row_name
    return f"{row.row_name}{NOT_TRAINED}"


class ComparedSystem(Protocol):
    """What decides whether the difference of a system is tested; ScoreRow has these, too."""

    @property
    def is_trained(self) -> bool:
        """Whether the system is trained here."""

    @property
    def is_too_low(self) -> bool:
        """Whether all its translations match too few 4-grams."""

    @property
    def seeds(self) -> int:
        """The number of seeds."""

    @property
    def lines(self) -> int:
        """The number of lines of the test set."""


def reason_not_tested_against(baseline: ComparedSystem, system: ComparedSystem) -> str:
    """Return why the difference of a system from its baseline is not tested; empty if it is.

    A difference is not tested over too few sentences, or between two systems with too few matched
    4-grams (scoring/floor.py).
    """
    are_trained = baseline.is_trained and system.is_trained
    is_over_sentences = not are_trained or system.seeds == 1
    are_both_low = baseline.is_too_low and system.is_too_low
    return reason_not_tested(int(system.lines), bool(is_over_sentences), bool(are_both_low))


def agreement_model(metric: str, signature: str, target: str) -> Agreement | None:
    """Return how often people prefer the better system, depending on the difference in a metric.

    Args:
        metric: The key of the metric.
        signature: The signature of the scores.
        target: The target language.

    Returns:
        The coefficients; None if they are not known for the metric or its model, or if the target
        is no natural language.
    """
    if target not in SCRIPTS or metric not in METRICS:
        return None
    return METRICS[metric].agreement_of(signature)


def _system_facts(records: Records) -> pd.DataFrame:
    """Return what is known of each system on each test set, apart from its scores."""
    runs = records.runs
    facts = runs.groupby(SYSTEM_AND_TEST, sort=False).agg(
        source=("source", "first"),
        target=("target", "first"),
        training_sha256=("training_sha256", "first"),
        lines=("lines", "first"),
        references_sha256=("references_sha256", "first"),
        seeds=("seed", "size"),
        first_seed=("seed", "first"),
    )
    facts = facts.join(_mean_costs(runs))
    # The baseline is the same for all metrics that are tested, and missing for the other ones.
    facts["baseline"] = records.metrics.groupby(SYSTEM_AND_TEST).baseline.first()
    # The number of matched 4-grams is stored only for the seeds with too few of them.
    too_low = select_metric(records.metrics, MATCHED_4_GRAMS)
    seeds_too_low = too_low.groupby(SYSTEM_AND_TEST).size().reindex(facts.index, fill_value=0)
    facts["is_too_low"] = seeds_too_low == facts.seeds
    facts["is_trained"] = facts.training_sha256.notna()
    facts = facts.reset_index()
    tasks = task_names(runs)
    facts["task"] = facts.corpus.map(tasks)
    row_names = []
    for system, corpus in zip(facts.system, facts.corpus, strict=True):
        row_names.append(table_row_name(system, corpus, tasks))
    facts["row_name"] = row_names
    facts["why_untested"] = _reasons_not_tested(facts)
    return facts


def _mean_costs(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the mean costs of the training runs of each system, and their machines."""
    cost_columns = runs.reindex(columns=_COST_COLUMNS).apply(pd.to_numeric)
    costs = runs[SYSTEM_AND_TEST].join(cost_columns)
    costs = costs.groupby(SYSTEM_AND_TEST, sort=False).mean().astype("float64")
    machines = runs.reindex(columns=[*SYSTEM_AND_TEST, "device", "processes", "threads"])
    devices = []
    for _, runs_of_system in machines.groupby(SYSTEM_AND_TEST, sort=False):
        devices.append(_device_text(runs_of_system))
    costs["device"] = devices
    return costs


def _device_text(runs: pd.DataFrame) -> str | None:
    """Return the machines of the training runs of a system; None if they are not known."""
    machines: dict[str, None] = {}
    for run in runs[runs.device.notna()].itertuples():
        machines[machine_text(run.device, run.processes, run.threads)] = None
    return "; ".join(machines) or None


def _reasons_not_tested(facts: pd.DataFrame) -> list[str]:
    """Return for each system why its difference from the baseline is not tested, or ""."""
    systems = {}
    for system in facts.itertuples():
        systems[system.task, system.test, system.row_name] = system
    reasons = []
    for system in facts.itertuples():
        baseline = systems.get((system.task, system.test, system.baseline))
        if baseline is None:
            reasons.append("")
        else:
            reasons.append(reason_not_tested_against(baseline, system))
    return reasons


def _with_baseline_values(metrics: pd.DataFrame, facts: pd.DataFrame) -> pd.DataFrame:
    """Return the metrics of all runs next to the values of their baselines with the same seed.

    Args:
        metrics: The table of metrics of the records.
        facts: What `_system_facts` returns.

    Returns:
        The metrics with the columns `seed_difference`, the value minus that of the baseline,
        `baseline_signature` and `ci_width`.
    """
    names = facts[[*SYSTEM_AND_TEST, "task", "row_name", "baseline"]]
    metrics = metrics.drop(columns="baseline").merge(names, on=SYSTEM_AND_TEST, how="left")
    metrics["standard_error"] = metrics.standard_error.fillna(0.0)
    metrics["ci_width"] = metrics.ci_high - metrics.ci_low
    baseline_columns = {
        "task": "task",
        "test": "test",
        "row_name": "baseline",
        "seed": "seed",
        "metric": "metric",
        "group": "group",
        "value": "baseline_value",
        "signature": "baseline_signature",
    }
    baselines = metrics[list(baseline_columns)].rename(columns=baseline_columns)
    # Without any baseline, the column is empty and of another type, which cannot be merged.
    metrics["baseline"] = metrics.baseline.astype(object)
    baselines["baseline"] = baselines.baseline.astype(object)
    key = ["task", "test", "baseline", "seed", "metric", "group"]
    metrics = metrics.merge(baselines, on=key, how="left")
    metrics["seed_difference"] = metrics.value - metrics.baseline_value
    return metrics.drop(columns=["task", "row_name", "baseline"])


def _remove_intervals_of_means(scores: pd.DataFrame) -> None:
    """Remove the intervals of scores that have a deviation over seeds, and vice versa.

    A score over several seeds is shown with its deviation, and one of a single seed with its
    interval. A group of lines has an interval in both cases.
    """
    is_over_seeds = (scores.seeds > 1) & scores.is_trained
    has_deviation = is_over_seeds & (scores.group == "")
    scores.loc[~has_deviation, "deviation"] = nan
    scores.loc[has_deviation, ["ci_low", "ci_high"]] = nan
    scores.loc[~is_over_seeds, "difference_deviation"] = nan


def _remove_unknown_differences(scores: pd.DataFrame) -> None:
    """Remove the differences from rows that are not in the report, or not comparable.

    A difference that is tested is comparable. One below the floor is shown without a test, but
    only if both scores have the same signature.
    """
    row_keys = pd.MultiIndex.from_frame(scores[["task", "test", "row_name"]])
    baseline_keys = pd.MultiIndex.from_frame(scores[["task", "test", "baseline"]])
    has_baseline = baseline_keys.isin(row_keys)
    is_tested = scores.p.notna()
    is_below_floor = scores.why_untested != ""
    is_comparable = scores.signature == scores.baseline_signature
    is_known = has_baseline & (is_tested | (is_below_floor & is_comparable))
    scores.loc[~is_known, ["difference", "p", "p_holm", "difference_deviation"]] = nan


def _add_texts(scores: pd.DataFrame) -> None:
    """Add the columns that tables show: texts of scores and differences, human agreement."""
    rows = []
    for score in scores.itertuples(index=False):
        digits = METRICS[score.metric].digits if score.metric in METRICS else 1
        mark = significance_mark(score.difference, score.p, score.p_holm)
        texts = {
            "value_text": f"{score.value:.{digits}f}",
            "score_text": format_score(
                score.value, score.deviation, score.ci_low, score.ci_high, digits
            ),
            "mark": mark,
            "difference_text": format_tested_difference(score.difference, mark, score.p),
            "agreement": nan,
            "agreement_text": "",
        }
        if mark:
            model = agreement_model(score.metric, score.signature, score.target)
            if model is not None:
                percentage = human_agreement(model, score.difference)
                texts["agreement"] = percentage
                texts["agreement_text"] = agreement_text(model, percentage)
        rows.append(texts)
    scores[_TEXT_COLUMNS] = pd.DataFrame(rows, index=scores.index, columns=_TEXT_COLUMNS)


def _published_rows(published: pd.DataFrame, scores: pd.DataFrame) -> pd.DataFrame:
    """Return published numbers as rows of a score frame.

    Args:
        published: The published numbers of the records.
        scores: The score frame of the systems.
    """
    tasks = dict(zip(scores.corpus, scores.task, strict=True))
    rows = published.assign(
        task=published.corpus.map(tasks),
        score_text=published.printed,
        value_text=published.printed,
        is_published=True,
    )
    rows = rows.reindex(columns=scores.columns)
    # Counts and booleans keep their types: an empty column would turn them into floats.
    for name, dtype in scores.dtypes.items():
        if rows[name].isna().all() and dtype in (int, bool):
            rows[name] = dtype.type(0)
    for name in ("group", "signature", "why_untested", "mark", "difference_text", "agreement_text"):
        rows[name] = ""
    return rows
