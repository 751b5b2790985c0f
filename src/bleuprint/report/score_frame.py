"""The score frame: all scores of a report as one data frame, from which every table is made.

`score_frame` makes it from the records of results.json. It has a row for each metric of each table
row, with the columns of `ScoreRow`; with several seeds, values are means over them. Published
numbers are rows, too. Other modules select rows with `select_metric` and `by_test_set`, and read
them one by one with `score_rows`.
"""

from collections.abc import Iterator
from functools import lru_cache
from math import nan
from typing import NamedTuple

import pandas as pd

from bleuprint.report.frame import SYSTEM_AND_TEST, Records
from bleuprint.report.score_texts import format_score, format_tested_difference, significance_mark
from bleuprint.report.system_columns import system_columns
from bleuprint.rules.letters import SCRIPTS
from bleuprint.scoring.human_agreement import agreement_text, human_agreement
from bleuprint.scoring.metric import Agreement
from bleuprint.scoring.metrics import METRICS
from bleuprint.text.language_codes import language_code

# What tables append to the name of an external system, such as `online-a (external)`.
UNTRAINED_SUFFIX = " (external)"


class ScoreRow(NamedTuple):
    """A row of the score frame: one metric of a system on a test set, or a published number.

    Numbers that do not exist are NaN; texts that do not exist are empty, or None where noted.

    Attributes:
        system: The name of the system.
        corpus: The corpus on which it is trained.
        test: The test set.
        metric: The key of the metric, such as `bleu`.
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
        target: The target language, such as `de`.
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
        matches_too_few_4_grams: Whether all translations match too few 4-grams for a test
            (scoring/minimum_for_test.py).
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

    # What is scored, and the score.
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
    # The comparison with the baseline.
    difference: float
    p: float
    p_holm: float
    standard_error: float
    difference_deviation: float
    # The test set.
    source: str
    target: str
    lines: int
    references_sha256: str
    # The costs of training, as means over seeds.
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
    # The place of the row in the tables.
    baseline: str | None
    matches_too_few_4_grams: bool
    is_trained: bool
    task: str
    row_name: str
    why_untested: str
    # What tables show.
    value_text: str
    score_text: str
    mark: str
    difference_text: str
    agreement: float
    agreement_text: str
    is_published: bool


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
    """Return all scores of an experiment as one data frame, from which its tables are made.

    results.json has a row for each seed. Here, the seeds of a system become one row with their
    mean and deviation, and each score gets the texts that tables show. Published numbers, if there
    are any, come first.

    Args:
        records: The results of the experiment, with a row for each seed.

    Returns:
        A data frame with the columns of `ScoreRow`: a row for each published number, then for each
        system, corpus, test set, metric and group of lines, in the order of results.json.
    """
    systems = system_columns(records)
    metrics = _with_baseline_values(records.metrics, systems)
    # A group contains one score with each seed. What does not depend on the seed, such as the
    # signature, is equal in all its rows, so the first one is taken.
    seeds_of_score = metrics.groupby([*SYSTEM_AND_TEST, "metric", "group"], sort=False)
    scores = seeds_of_score.agg(
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
    scores = scores.reset_index().merge(systems, on=SYSTEM_AND_TEST, how="left")
    _keep_deviation_or_interval(scores)
    _remove_incomparable_differences(scores)
    _add_table_texts(scores)
    scores["is_published"] = False
    scores = scores[list(ScoreRow._fields)]
    if records.published.empty:
        return scores
    published_rows = _published_rows(records.published, scores)
    return pd.concat([published_rows, scores], ignore_index=True)


def score_rows(scores: pd.DataFrame) -> list[ScoreRow]:
    """Return rows of the data frame of scores as named tuples with typed fields.

    Args:
        scores: The data frame of all scores, or some of its rows.
    """
    table = scores[list(ScoreRow._fields)].copy()
    # pandas stores a missing text as NaN; a ScoreRow has None in its place.
    for column in ("baseline", "device"):
        texts = table[column].astype(object)
        table[column] = texts.where(texts.notna(), None)
    return [ScoreRow(*row) for row in table.itertuples(index=False, name=None)]


def computed_scores(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the scores that were computed here, without published numbers."""
    return scores[~scores.is_published]


def published_scores(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the published numbers."""
    return scores[scores.is_published]


def by_test_set(scores: pd.DataFrame) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """Yield the scores on each test set, from which one table is made.

    If corpora have the same test sets, their systems share a table; such corpora are called a task.
    Test sets that have only published numbers are skipped.

    Args:
        scores: The data frame of all scores, with the columns of `ScoreRow`.

    Yields:
        The name of the task, the name of the test set, and the scores of all systems on it.
    """
    test_sets = computed_scores(scores)[["task", "test"]].drop_duplicates()
    for task, test in test_sets.itertuples(index=False, name=None):
        yield task, test, scores[(scores.task == task) & (scores.test == test)]


def select_metric(scores: pd.DataFrame, metric: str, group: str = "") -> pd.DataFrame:
    """Select the scores in one metric, by default those that are computed over all lines.

    Args:
        scores: A data frame with the columns `metric` and `group`: all scores of the report, or
            the table of metrics in results.json.
        metric: The key of the metric, such as `bleu`.
        group: The group of lines that the scores are computed over, such as `length 1-10`; empty
            for all lines of the test set.
    """
    return scores[(scores.metric == metric) & (scores.group == group)]


def bleu_rows(scores: pd.DataFrame) -> list[ScoreRow]:
    """Return the BLEU of each system, without published numbers."""
    return score_rows(select_metric(computed_scores(scores), "bleu"))


def display_name(row: ScoreRow) -> str:
    """Return the name of a table row as readers see it, such as `base` or `online-a (external)`.

    The suffix marks external systems: their translations come from elsewhere and are scored here.
    """
    # Published numbers are not trained here either, but their row names already say "published".
    if row.is_trained or row.is_published:
        return row.row_name
    return f"{row.row_name}{UNTRAINED_SUFFIX}"


def agreement_model(metric: str, signature: str, target: str) -> Agreement | None:
    """Return the model that estimates human agreement from a difference in a metric.

    Human agreement is how often people prefer the system with the better score. For example, a
    small difference in BLEU is often not one that people see.

    Args:
        metric: The key of the metric, such as `bleu`.
        signature: The signature of the scores, which names a neural metric's model.
        target: The target language, such as `de`.

    Returns:
        The model; None if there is none for this metric, or if the text is not natural language but
        generated.
    """
    is_natural_language = language_code(target) in SCRIPTS
    if not is_natural_language or metric not in METRICS:
        return None
    return METRICS[metric].agreement_of(signature)


def _with_baseline_values(metrics: pd.DataFrame, systems: pd.DataFrame) -> pd.DataFrame:
    """Add to each metric of a run how much it differs from the baseline with the same seed.

    For example, if `big` has 31.0 BLEU with seed 1, and its baseline `base` has 30.0 with seed 1,
    the row of `big` gets the difference 1.0. Baselines are rows of the same table, so the table is
    merged with itself.

    Args:
        metrics: The table of metrics in results.json, a row for each metric of each run.
        systems: A row for each system and test set, with the name of its table row and of its
            baseline's row.

    Returns:
        The metrics with the new columns `seed_difference`, the value minus that of the baseline,
        `baseline_signature` and `ci_width`.
    """
    names = systems[[*SYSTEM_AND_TEST, "task", "row_name", "baseline"]]
    metrics = metrics.drop(columns="baseline").merge(names, on=SYSTEM_AND_TEST, how="left")
    # Without a significance test, there is no standard error. Callers test `if standard_error`, for
    # which NaN would count as true.
    metrics["standard_error"] = metrics.standard_error.fillna(0.0)
    metrics["ci_width"] = metrics.ci_high - metrics.ci_low
    # If no system has a baseline, pandas gives the column a type that cannot be merged with texts.
    metrics["baseline"] = metrics.baseline.astype(object)
    key = ["task", "test", "baseline", "seed", "metric", "group"]
    metrics = metrics.merge(_as_baselines(metrics), on=key, how="left")
    metrics["seed_difference"] = metrics.value - metrics.baseline_value
    return metrics.drop(columns=["task", "row_name", "baseline"])


def _as_baselines(metrics: pd.DataFrame) -> pd.DataFrame:
    """Rename the columns of all metrics so that other systems can be merged with their baseline.

    A system names its baseline in the column `baseline`, and the baseline its own name in the
    column `row_name`. Here, this becomes `baseline`, too: merging by that column then brings the
    `baseline_value` next to the value of each system that is compared with it.

    Args:
        metrics: The metrics of all runs, with the names of their table rows.
    """
    new_names = {
        "task": "task",
        "test": "test",
        "row_name": "baseline",
        "seed": "seed",
        "metric": "metric",
        "group": "group",
        "value": "baseline_value",
        "signature": "baseline_signature",
    }
    baselines = metrics[list(new_names)].rename(columns=new_names)
    return baselines.astype({"baseline": object})


def _keep_deviation_or_interval(scores: pd.DataFrame) -> None:
    """Set to NaN, in place, what tables do not show of a score: its deviation or its interval.

    Tables show a mean over several seeds with its deviation, such as `31.5 ± 2.1`, and a score of
    one seed with its confidence interval, such as `31.1 [30.1, 33.1]`. Scores of a group of lines,
    such as short ones, always have an interval. External systems have one file of translations, so
    they have no deviation over seeds.

    Args:
        scores: The scores, with the columns `deviation`, `ci_low`, `ci_high` and
            `difference_deviation`.
    """
    is_mean_over_seeds = (scores.seeds > 1) & scores.is_trained
    is_over_all_lines = scores.group == ""
    shows_deviation = is_mean_over_seeds & is_over_all_lines
    scores.loc[~shows_deviation, "deviation"] = nan
    scores.loc[shows_deviation, ["ci_low", "ci_high"]] = nan
    scores.loc[~is_mean_over_seeds, "difference_deviation"] = nan


def _remove_incomparable_differences(scores: pd.DataFrame) -> None:
    """Set each difference to NaN, in place, if its two scores cannot be compared.

    The scores of a system and its baseline can be compared if

    - the baseline is a row of the report, and
    - both were computed by the same version and options of the metric. This holds if their
      difference was tested for significance. An untested difference needs equal signatures, and a
      reason that it was not tested, such as too few sentences.

    Args:
        scores: The scores, with the columns `difference`, `p` and `why_untested`.
    """
    row_keys = pd.MultiIndex.from_frame(scores[["task", "test", "row_name"]])
    baseline_keys = pd.MultiIndex.from_frame(scores[["task", "test", "baseline"]])
    is_baseline_in_report = baseline_keys.isin(row_keys)
    is_tested = scores.p.notna()
    has_reason_not_to_test = scores.why_untested != ""
    has_equal_signatures = scores.signature == scores.baseline_signature
    is_comparable = is_tested | (has_reason_not_to_test & has_equal_signatures)
    is_kept = is_baseline_in_report & is_comparable
    scores.loc[~is_kept, ["difference", "p", "p_holm", "difference_deviation"]] = nan


def _add_table_texts(scores: pd.DataFrame) -> None:
    """Add to each score, in place, the columns that tables show.

    They are the score and its difference from the baseline as text, such as `31.1 [30.1, 33.1]`
    and `+8.7‡ p=0.001`, and for a significant difference the human agreement, that is, how often
    people prefer the better system.

    Args:
        scores: The scores.
    """
    rows = []
    for score in scores.itertuples(index=False):
        # results.json of another version may contain metrics that this version does not know.
        decimals = METRICS[score.metric].digits if score.metric in METRICS else 1
        mark = significance_mark(score.difference, score.p, score.p_holm)
        texts = {
            "value_text": f"{score.value:.{decimals}f}",
            "score_text": format_score(
                score.value, score.deviation, score.ci_low, score.ci_high, decimals
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
    """Return published numbers in the form of scores, so that tables can show both.

    Each number belongs to the same table as the systems on its corpus, and is shown as it was
    printed. Columns that published numbers lack are empty.

    Args:
        published: The published numbers, with the columns of `PublishedNumber`.
        scores: The scores of the systems, whose columns the rows get.
    """
    task_of_corpus = dict(zip(scores.corpus, scores.task, strict=True))
    rows = published.assign(
        task=published.corpus.map(task_of_corpus),
        score_text=published.printed,
        value_text=published.printed,
        is_published=True,
    )
    rows = rows.reindex(columns=scores.columns)
    # These rows are joined with the scores later. NaN would turn the scores' integers and booleans
    # into floats, so missing ones become 0 or False.
    for column, dtype in scores.dtypes.items():
        if rows[column].isna().all() and dtype in (int, bool):
            rows[column] = dtype.type(0)
    empty_texts = [
        "group",
        "signature",
        "why_untested",
        "mark",
        "difference_text",
        "agreement_text",
    ]
    rows[empty_texts] = ""
    return rows
