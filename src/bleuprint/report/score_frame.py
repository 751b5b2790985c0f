"""The scores of a report as one frame: a row for each metric of a row of a table.

With several seeds, values are means over them. Published numbers are rows, too.
"""

from collections.abc import Iterator
from functools import lru_cache
from math import nan
from typing import Any

import pandas as pd

from bleuprint.report.frame import Records, machine_text, table_row_name, task_names
from bleuprint.report.paired import p_text
from bleuprint.rules.letters import SCRIPTS
from bleuprint.scoring.floor import MATCHED_4_GRAMS, reason_not_tested
from bleuprint.scoring.human_agreement import agreement_text, human_agreement
from bleuprint.scoring.metric import Agreement
from bleuprint.scoring.metrics import METRICS
from bleuprint.scoring.significance import SIGNIFICANCE_LEVEL

# A system on a test set of a corpus.
SYSTEM_AND_TEST = ["system", "corpus", "test"]
# What tables say of a system whose translations were not made here.
NOT_TRAINED = " (external)"
_SCORE = [*SYSTEM_AND_TEST, "metric", "group"]
_COSTS = [
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


@lru_cache(maxsize=4)  # all tables of a report are made from the same records
def score_frame(records: Records) -> pd.DataFrame:
    """Return the scores of an experiment.

    Args:
        records: The records of its results.json.

    Returns:
        A row for each published number, then for each system, corpus, test set, metric and
        group of lines, in the order of the records, with these columns:

        - `system`, `corpus`, `test`, `metric`, `group` as in the records; `task` and `row_name`,
          the name of the table and of its row (frame.task_names);
        - `value`, the mean over seeds; `deviation`, their standard deviation, or `ci_low` and
          `ci_high`, the 95% interval; `ci_width`, the mean width of the intervals of all seeds;
          `units`, the number of lines, words or documents; `signature`;
        - `baseline`, the row that it is compared with; `difference` from it, `p` and `p_holm`,
          missing where they are not known; `standard_error`, the standard error over lines;
          `difference_deviation`, over seeds; `agreement`, the human agreement in per cent where the
          difference is significant;
        - `why_untested`, why no difference of the row is tested, or empty; `is_too_low`, whether
          all its translations match too few 4-grams for a test;
        - facts of the row: `source`, `target`, `lines`, `references_sha256`, `seeds` (their
          number), `first_seed`, `is_trained`, whether the system is trained here, and the means of
          what its trainings cost;
        - the texts that tables show: `value_text`, the value; `score_text`, also with its interval
          or deviation; `mark`; `difference_text`, the difference with its mark and p;
          `agreement_text`;
        - `is_published`, whether it is a published number, whose texts are as printed.
    """
    facts = _facts(records)
    metrics = _with_baselines(records.metrics, facts)
    grouped = metrics.groupby(_SCORE, sort=False)
    scores = grouped.agg(
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
        difference_deviation=("delta", "std"),
        baseline_signature=("baseline_signature", "first"),
    )
    scores = scores.reset_index().merge(facts, on=SYSTEM_AND_TEST, how="left")
    _keep_what_applies(scores)
    _add_texts(scores)
    scores["is_published"] = False
    if records.published.empty:
        return scores
    numbers = _published_rows(records.published, scores)
    return pd.concat([numbers, scores], ignore_index=True)


def computed_scores(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the scores that were computed here, without published numbers."""
    return scores[~scores.is_published]


def published_scores(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the published numbers."""
    return scores[scores.is_published]


def by_test_set(scores: pd.DataFrame) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """Yield each task and test set with its scores, in the order of those computed here."""
    for place in computed_scores(scores)[["task", "test"]].drop_duplicates().itertuples():
        is_here = (scores.task == place.task) & (scores.test == place.test)
        yield place.task, place.test, scores[is_here]


def select_metric(scores: pd.DataFrame, metric: str, group: str = "") -> pd.DataFrame:
    """Return the scores in a metric, of all lines or of a group of them."""
    return scores[(scores.metric == metric) & (scores.group == group)]


def bleu_rows(scores: pd.DataFrame) -> list[Any]:
    """Return the BLEU of each row of the tables, as named tuples with the columns of the frame."""
    return list(select_metric(computed_scores(scores), "bleu").itertuples(index=False))


def display_name(row: Any) -> str:
    """Return the name of a row, marked if its translations were not made here."""
    if row.is_trained or row.is_published:
        return str(row.row_name)
    return f"{row.row_name}{NOT_TRAINED}"


def is_significant(difference: float, p: float) -> bool:
    return bool(p < SIGNIFICANCE_LEVEL and difference != 0)


def format_difference(difference: float, is_significant: bool) -> str:
    """Return +8.7; a significant difference has as many decimals as keep it from reading +0.0."""
    digits = 1
    if is_significant and difference:
        while float(f"{difference:.{digits}f}") == 0:
            digits += 1
    return f"{difference:+z.{digits}f}"


def floor_between(first: Any, second: Any) -> str:
    """Return why the difference of two rows on a test set is not tested, or an empty text.

    Args:
        first: The baseline, with the columns `is_trained`, `is_too_low`, `seeds` and `lines`.
        second: The other row.
    """
    are_trained = first.is_trained and second.is_trained
    is_over_sentences = bool(not are_trained or second.seeds == 1)
    are_both_low = bool(first.is_too_low and second.is_too_low)
    return reason_not_tested(int(second.lines), is_over_sentences, are_both_low)


def agreement(metric: str, signature: str, target: str) -> Agreement | None:
    """Return how often people prefer the better system, depending on the difference.

    Args:
        metric: The metric.
        signature: The signature of the scores.
        target: The target language.

    Returns:
        None for a metric, or the model of a metric, without coefficients, and for symbols that are
        no language.
    """
    if target not in SCRIPTS or metric not in METRICS:
        return None
    return METRICS[metric].agreement_of(signature)


def _published_rows(numbers: pd.DataFrame, scores: pd.DataFrame) -> pd.DataFrame:
    """Return published numbers as rows of the frame of these scores."""
    tasks = dict(zip(scores.corpus, scores.task, strict=True))
    rows = numbers.assign(
        task=numbers.corpus.map(tasks),
        score_text=numbers.printed,
        value_text=numbers.printed,
        is_published=True,
    )
    rows = rows.reindex(columns=scores.columns)
    # whole numbers stay whole where others are missing, and truth values stay truth values
    for name, dtype in scores.dtypes.items():
        if rows[name].isna().all() and dtype in (int, bool):
            rows[name] = dtype.type(0)
    for name in ("group", "signature", "why_untested", "mark", "difference_text", "agreement_text"):
        rows[name] = ""
    return rows


def _facts(records: Records) -> pd.DataFrame:
    """Return the facts of each system on each test set of a corpus."""
    runs = records.runs
    grouped = runs.groupby(SYSTEM_AND_TEST, sort=False)
    facts = grouped.agg(
        source=("source", "first"),
        target=("target", "first"),
        training_sha256=("training_sha256", "first"),
        lines=("lines", "first"),
        references_sha256=("references_sha256", "first"),
        seeds=("seed", "size"),
        first_seed=("seed", "first"),
    )
    facts = facts.join(_costs(runs))
    # it is the same for all metrics, and missing for those that are not tested
    facts["baseline"] = records.metrics.groupby(SYSTEM_AND_TEST).baseline.first()
    seeds_too_low = select_metric(records.metrics, MATCHED_4_GRAMS).groupby(SYSTEM_AND_TEST).size()
    facts["is_too_low"] = seeds_too_low.reindex(facts.index, fill_value=0) == facts.seeds
    facts["is_trained"] = facts.training_sha256.notna()
    facts = facts.reset_index()
    tasks = task_names(runs)
    facts["task"] = facts.corpus.map(tasks)
    places = zip(facts.system, facts.corpus, strict=True)
    facts["row_name"] = [table_row_name(system, corpus, tasks) for system, corpus in places]
    facts["why_untested"] = _floors(facts)
    return facts


def _costs(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the mean costs of the trainings of each row, and the devices."""
    numbers = runs.reindex(columns=_COSTS).apply(pd.to_numeric)
    costs = runs[SYSTEM_AND_TEST].join(numbers).groupby(SYSTEM_AND_TEST, sort=False).mean()
    machines = runs.reindex(columns=[*SYSTEM_AND_TEST, "device", "processes", "threads"])
    costs["device"] = [
        _devices(of_row) for _, of_row in machines.groupby(SYSTEM_AND_TEST, sort=False)
    ]
    return costs


def _floors(facts: pd.DataFrame) -> list[str]:
    """Return for each row why its difference from the baseline is not tested, or an empty text."""
    by_name = {(row.task, row.test, row.row_name): row for row in facts.itertuples()}
    floors = []
    for row in facts.itertuples():
        baseline = by_name.get((row.task, row.test, row.baseline))
        floors.append("" if baseline is None else floor_between(baseline, row))
    return floors


def _devices(runs: pd.DataFrame) -> str | None:
    """Return what the trainings of a row ran on, None if it is not known."""
    known = runs[runs.device.notna()]
    shapes = [machine_text(row.device, row.processes, row.threads) for row in known.itertuples()]
    return "; ".join(dict.fromkeys(shapes)) or None


def _with_baselines(metrics: pd.DataFrame, facts: pd.DataFrame) -> pd.DataFrame:
    """Return the metrics with their `delta` from the baseline of the same seed."""
    metrics = metrics.drop(columns="baseline").merge(
        facts[[*SYSTEM_AND_TEST, "task", "row_name", "baseline"]], on=SYSTEM_AND_TEST, how="left"
    )
    metrics["standard_error"] = metrics.standard_error.fillna(0.0)
    place = ["task", "test", "baseline", "seed", "metric", "group"]
    columns = ["task", "test", "row_name", "seed", "metric", "group", "value", "signature"]
    of_baseline = metrics[columns].rename(
        columns={
            "row_name": "baseline",
            "value": "baseline_value",
            "signature": "baseline_signature",
        }
    )
    # the column is empty, and of another type, where no row has a baseline
    metrics["baseline"] = metrics.baseline.astype(object)
    of_baseline["baseline"] = of_baseline.baseline.astype(object)
    metrics = metrics.merge(of_baseline, on=place, how="left")
    metrics["ci_width"] = metrics.ci_high - metrics.ci_low
    metrics["delta"] = metrics.value - metrics.baseline_value
    return metrics.drop(columns=["task", "row_name", "baseline"])


def _keep_what_applies(scores: pd.DataFrame) -> None:
    """Remove intervals where there are deviations, and differences that mean nothing."""
    is_over_seeds = (scores.seeds > 1) & scores.is_trained
    has_deviation = is_over_seeds & (scores.group == "")
    scores.loc[~has_deviation, "deviation"] = nan
    scores.loc[has_deviation, ["ci_low", "ci_high"]] = nan
    scores.loc[~is_over_seeds, "difference_deviation"] = nan
    is_tested = scores.p.notna()
    is_comparable = scores.signature == scores.baseline_signature
    is_below_floor = scores.why_untested != ""
    rows = pd.MultiIndex.from_frame(scores[["task", "test", "row_name"]])
    baselines = pd.MultiIndex.from_frame(scores[["task", "test", "baseline"]])
    has_baseline = baselines.isin(rows)
    is_known = has_baseline & (is_tested | (is_below_floor & is_comparable))
    scores.loc[~is_known, ["difference", "p", "p_holm", "difference_deviation"]] = nan


def _add_texts(scores: pd.DataFrame) -> None:
    """Add the columns of texts, and the human agreement."""
    texts = []
    for score in scores.itertuples(index=False):
        digits = METRICS[score.metric].digits if score.metric in METRICS else 1
        mark = _mark(score)
        found = {
            "value_text": f"{score.value:.{digits}f}",
            "score_text": _score_text(score, digits),
            "mark": mark,
            "difference_text": _change_text(score, mark),
            "agreement": nan,
            "agreement_text": "",
        }
        if mark:
            fitted = agreement(score.metric, score.signature, score.target)
            if fitted is not None:
                per_cent = human_agreement(fitted, score.difference)
                found["agreement"] = per_cent
                found["agreement_text"] = agreement_text(fitted, per_cent)
        texts.append(found)
    columns = ["value_text", "score_text", "mark", "difference_text", "agreement", "agreement_text"]
    scores[columns] = pd.DataFrame(texts, index=scores.index, columns=columns)


def _score_text(score: Any, digits: int) -> str:
    """Return 31.5 ± 2.1 of several seeds, otherwise 31.1 [30.1, 33.1] or the value alone."""
    if pd.notna(score.deviation):
        digits = digits or 1
        return f"{score.value:.{digits}f} ± {score.deviation:.{digits}f}"
    if pd.notna(score.ci_low):
        return f"{score.value:.{digits}f} [{score.ci_low:.{digits}f}, {score.ci_high:.{digits}f}]"
    return f"{score.value:.{digits}f}"


def _mark(score: Any) -> str:
    """Return † where p is below SIGNIFICANCE_LEVEL, ‡ where corrected p is, too, or nothing."""
    if not is_significant(score.difference, score.p):
        return ""
    return "‡" if score.p_holm < SIGNIFICANCE_LEVEL else "†"


def _change_text(score: Any, mark: str) -> str:
    """Return +8.7‡ p=0.001, -0.2 n.s. p=0.410, +3.1 if it is not tested, or nothing."""
    if pd.isna(score.difference):
        return ""
    number = format_difference(score.difference, bool(mark))
    if pd.isna(score.p):
        return number
    return f"{number}{mark or ' n.s.'} {p_text(score.p)}"
