"""The command `bleuprint compare`: two systems of a report, or of the reports of two revisions.

`compare` parses the arguments and yields what the command prints: the settings that differ, a table
of scores with p-values, and the sentences that improved or worsened most. compared_systems.py reads
the scores of both systems, compared_settings.py finds the settings that differ, and
compared_sentences.py ranks the sentences.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pandas as pd

from bleuprint.config.experiment import Settings, load_resolved_settings, load_settings
from bleuprint.config.paths import RESOLVED
from bleuprint.report import frame
from bleuprint.report.compared_sentences import sentence_comparison
from bleuprint.report.compared_settings import deciding_settings, settings_comparison
from bleuprint.report.compared_systems import ReportedSystem, ScoresPair, SystemScores
from bleuprint.report.paired import (
    MetricKey,
    PairedDifference,
    format_p_value,
    paired_differences,
    paired_t_test,
)
from bleuprint.report.records import check_settings
from bleuprint.report.revision import revision_files
from bleuprint.report.score_frame import ScoreRow, agreement_model
from bleuprint.report.score_texts import format_difference
from bleuprint.report.table import DASH, Table, text_table
from bleuprint.report.terminal import wrap
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.wording import join_with_and
from bleuprint.scoring.human_agreement import (
    AGREEMENT_COLUMN,
    AGREEMENT_NOTE,
    agreement_text,
    human_agreement,
)
from bleuprint.scoring.metrics import METRICS
from bleuprint.scoring.significance import SIGNIFICANCE_LEVEL


@dataclass(frozen=True)
class _Argument:
    """An argument of the command, `SYSTEM, CORPUS@REVISION`; each part may be empty.

    Attributes:
        system: The name of the system.
        corpus: The name of the corpus.
        revision: The Git revision of the report; empty for the report of the working tree.
    """

    system: str
    corpus: str
    revision: str


def compare(
    first: str, second: str, corpus: str | None = None, sentences: int = 10
) -> Iterator[str | Table]:
    """Yield the lines and tables that `bleuprint compare` prints: how two systems differ.

    Both systems may be in the report of the working tree, or in the reports of two Git revisions.
    If neither argument names a system, each system that both reports contain is compared with
    itself, for example with its state at an older revision.

    Args:
        first: The first system, such as `base`, `base, wmt14@v1.0` or `@v1.0`: its name, a corpus
            and the Git revision of its report. A name or corpus that is missing is taken from the
            other argument. Without a revision, the report of the working tree is read.
        second: The second system, in the same form.
        corpus: The corpus to compare, if neither argument names one. By default, all corpora are
            compared, and no sentences are shown.
        sentences: How many improved and how many worsened sentences are shown.

    Raises:
        UserError: A system, corpus or report does not exist, or the systems cannot be compared.
    """
    if first == second == "@":
        raise UserError(
            "both arguments are @, the report of the working tree. Name a revision after one @. "
            "Is a variable not set?"
        )
    first_argument = _parse_argument(first)
    second_argument = _parse_argument(second)
    first_corpus = first_argument.corpus or corpus or second_argument.corpus
    second_corpus = second_argument.corpus or corpus or first_argument.corpus
    first_settings, first_records = _open_report(first_argument.revision)
    if second_argument.revision == first_argument.revision:
        second_settings, second_records = first_settings, first_records
    else:
        second_settings, second_records = _open_report(second_argument.revision)
    system_pairs = _system_pairs(first_argument, second_argument, first_settings, second_settings)
    if not system_pairs:
        raise UserError(
            f"{first} and {second}: the reports have no system of the same name. Name a system "
            "before each @"
        )
    are_corpora_different = first_corpus != second_corpus
    for first_name, second_name in system_pairs:
        first_system = ReportedSystem(
            first_name,
            first_corpus,
            first_argument.revision,
            first_settings,
            first_records,
            are_corpora_different=are_corpora_different,
        )
        second_system = ReportedSystem(
            second_name,
            second_corpus,
            second_argument.revision,
            second_settings,
            second_records,
            are_corpora_different=are_corpora_different,
        )
        yield from compare_systems(first_system, second_system, sentences)


def _system_pairs(
    first: _Argument, second: _Argument, first_settings: Settings, second_settings: Settings
) -> list[tuple[str, str]]:
    """Return the names of the systems to compare, in pairs.

    For example, `base` and `big` are one pair, and `base` and `@v1.0` compare `base` with its state
    at v1.0. If neither argument names a system, each system that both reports contain is compared
    with itself.

    Args:
        first: The first argument of the command.
        second: The second argument of the command.
        first_settings: The settings of the report that the first argument names.
        second_settings: The settings of the report that the second argument names.
    """
    if first.system or second.system:
        first_name = first.system or second.system
        second_name = second.system or first.system
        return [(first_name, second_name)]
    pairs = []
    for name in first_settings.trained_systems:
        if name in second_settings.trained_systems:
            pairs.append((name, name))
    return pairs


def _parse_argument(text: str) -> _Argument:
    """Parse an argument of the command, such as `base`, `base, wmt14@v1.0` or `@v1.0`.

    Parts that the argument does not name are empty. With `@` alone, all are: it means all systems
    in the report of the working tree.

    Raises:
        UserError: The argument is empty, or lacks the revision after the @.
    """
    row_name, at_sign, revision = text.partition("@")
    system, _, corpus = row_name.partition(",")
    if not system and not at_sign:
        raise UserError(
            f"{text!r} does not name a system. Write SYSTEM, SYSTEM@REVISION or @REVISION"
        )
    if row_name and at_sign and not revision.strip():
        raise UserError(f"{text!r}: the revision after the @ is missing. Is a variable not set?")
    return _Argument(system, corpus.strip(), revision)


def _open_report(revision: str) -> tuple[Settings, frame.Records]:
    """Read the settings and the results of a report, and check that they belong together.

    Args:
        revision: The Git revision of the report; empty for the report of the working tree.

    Raises:
        UserError: There is no such revision or report, or the results were computed with other
            settings.
    """
    if not revision:
        settings = load_settings()
        records = frame.load()
        check_settings(records, settings, frame.RESULTS)
        return settings, records
    with revision_files(revision, (RESOLVED, frame.RESULTS)) as root:
        settings = load_resolved_settings(root)
        records = frame.load(root)
        remedy = f"Name a revision that contains the results of its {RESOLVED}"
        check_settings(records, settings, root / frame.RESULTS, remedy)
        return settings, records


def compare_systems(
    first: ReportedSystem, second: ReportedSystem, sentences: int
) -> Iterator[str | Table]:
    """Yield how two systems differ, as lines and tables: in settings, scores and sentences.

    Only seeds and test sets that both systems have are compared. Sentences are shown only if the
    user chose a corpus and both reports come from the working tree: Git stores no translations.

    Args:
        first: The first system, with its report.
        second: The second system, with its report.
        sentences: How many improved and how many worsened sentences are shown.

    Raises:
        UserError: Both systems are the same, or have no seed or test set in common.
    """
    names = f"{first} and {second}"
    if str(first) == str(second):
        raise UserError(f"{first} cannot be compared with itself. Name another system or revision")
    seeds = [seed for seed in first.settings.seeds if seed in second.settings.seeds]
    if not seeds:
        raise UserError(f"{names} have no seed in common, so no runs can be paired")
    pairs = _pair_scores(first.scores(seeds), second.scores(seeds))
    if not pairs:
        raise UserError(f"{names} have no test set in common, so their scores cannot be compared")
    first_settings, second_settings = _settings_to_compare(first, second, pairs)
    are_settings_equal = first_settings == second_settings
    are_results_equal = all(pair.have_same_lines and pair.have_same_translations for pair in pairs)
    if are_settings_equal and are_results_equal:
        yield f"{names} have the same settings, translations and scores"
        return
    yield names
    yield from settings_comparison(first_settings, second_settings, [str(first), str(second)])
    yield from _score_comparison(first, second, pairs, seeds)
    yield ""
    if first.corpus and _are_in_working_tree(first, second):
        for pair in pairs:
            if pair.have_same_lines:
                yield from sentence_comparison(first, second, pair, sentences)


def _settings_to_compare(
    first: ReportedSystem, second: ReportedSystem, pairs: Sequence[ScoresPair]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the settings of each of two systems that can change its results, by their keys.

    Args:
        first: The first system, with its report.
        second: The second system, with its report.
        pairs: The scores of both systems on each test set.
    """
    common_corpora: list[str] = []
    if not first.are_corpora_different:
        # Each corpus once, although it may have several test sets.
        common_corpora = list(dict.fromkeys(pair.first.bleu.corpus for pair in pairs))
    are_trained = all(pair.are_trained for pair in pairs)
    return (
        deciding_settings(first, common_corpora, are_trained),
        deciding_settings(second, common_corpora, are_trained),
    )


def _are_in_working_tree(first: ReportedSystem, second: ReportedSystem) -> bool:
    """Return whether both reports come from the working tree, where their files can be read."""
    return not first.revision and not second.revision


def _pair_scores(
    first: Mapping[tuple[str, str], SystemScores], second: Mapping[tuple[str, str], SystemScores]
) -> list[ScoresPair]:
    """Pair the scores of two systems on each test set that both translate.

    Args:
        first: The scores of the first system, by corpus and test set.
        second: The scores of the second system, by corpus and test set.
    """
    return [ScoresPair(first[key], second[key]) for key in first if key in second]


class ScoreTexts(NamedTuple):
    """The texts of a row in the table of scores, in the order of its columns."""

    corpora: str
    test: str
    metric: str
    first_score: str
    second_score: str
    difference: str
    p_value: str
    agreement: str


def _score_comparison(
    first: ReportedSystem, second: ReportedSystem, pairs: Sequence[ScoresPair], seeds: Sequence[int]
) -> Iterator[str | Table]:
    """Yield a title, the table of scores of two systems, and sentences on how to read it.

    Args:
        first: The first system.
        second: The second system.
        pairs: The scores of both systems on each test set.
        seeds: The seeds that are compared.
    """
    rows = []
    for pair in pairs:
        for metric, p_value in p_values_by_metric(first, second, pair).items():
            rows.append(score_texts(metric, pair, p_value))
    yield "\nScores"
    heads = [str(first), str(second), "Δ", "p", AGREEMENT_COLUMN]
    yield text_table(["corpus", "test set", "score"], heads, rows)
    yield wrap(
        f"Seeds: {', '.join(map(str, seeds))}. p: p-value of the difference, not corrected for the "
        "number of tests. Several seeds: paired t-test over them. One seed: paired bootstrap over "
        "lines, or randomization for output errors. External systems: the largest p against each "
        f"seed. {DASH}: not tested, because the test sets differ, or because one seed of another "
        "revision has no translations to test. Output errors: lines with an error that their "
        "reference lacks."
    )
    for pair in pairs:
        if pair.why_untested:
            bleu = pair.second.bleu
            yield wrap(f"{bleu.corpus}, {bleu.test}: {pair.why_untested}, so without p.")
    if any(row.agreement != DASH for row in rows):
        yield wrap(AGREEMENT_NOTE)


def p_values_by_metric(
    first: ReportedSystem, second: ReportedSystem, pair: ScoresPair
) -> dict[str, float | None]:
    """Return the p-value of each metric that the table of scores shows.

    A test over the lines of a test set needs the files of both systems, which only the working tree
    contains. For other revisions, the report contains the score with each seed, so that a test over
    several seeds is still possible.

    Args:
        first: The first system.
        second: The second system.
        pair: Their scores on a test set.

    Returns:
        The p-values by the key of the metric; None where the difference is not tested.
    """
    shown_metrics = [metric for metric in pair.first.scores if _is_shown(metric, pair)]
    if pair.why_untested:
        return dict.fromkeys(shown_metrics)
    differences: dict[MetricKey, PairedDifference] = {}
    if pair.have_same_lines and _are_in_working_tree(first, second):
        differences = _differences_with_tests(first, second, pair)
    if not differences:
        return {metric: _p_value_over_seeds(metric, pair) for metric in shown_metrics}
    p_values: dict[str, float | None] = {}
    all_lines = ""  # The name of the group of lines that the table's scores are computed over.
    for metric in shown_metrics:
        difference = differences.get((metric, all_lines))
        p_values[metric] = None if difference is None else difference.p_value
    return p_values


def _differences_with_tests(
    first: ReportedSystem, second: ReportedSystem, pair: ScoresPair
) -> dict[MetricKey, PairedDifference]:
    """Return the difference between two systems in each metric, with its significance tests.

    They are computed from the files of scores: these contain statistics for each line of the test
    set, such as its matched n-grams, which the tests resample.

    Args:
        first: The first system.
        second: The second system.
        pair: Their scores on a test set.

    Returns:
        The differences by metric and group of lines.
    """
    test = pair.first.bleu.test
    first_values = [results.metrics(test) for results in first.open_results(pair.first)]
    second_values = [results.metrics(test) for results in second.open_results(pair.second)]
    return paired_differences(first_values, second_values, pair.are_trained)


def _is_shown(metric: str, pair: ScoresPair) -> bool:
    """Return whether the table of scores shows a metric of the first system.

    It shows quality scores, such as BLEU, that both systems have, and output errors, such as
    repeated words, that at least one of the systems makes.

    Args:
        metric: The key of the metric, such as `bleu`.
        pair: The scores of both systems on a test set.
    """
    if metric not in pair.second.scores or metric not in METRICS:
        return False
    kind = METRICS[metric].kind
    if kind == "error":
        error_counts = pair.first.seed_values(metric) + pair.second.seed_values(metric)
        return any(count > 0 for count in error_counts)
    return kind == "score"


def _p_value_over_seeds(metric: str, pair: ScoresPair) -> float | None:
    """Return the p-value of the paired t-test over seeds; None if it cannot be computed.

    The test requires two trained systems, several seeds, the same test set and the same signature,
    that is, the same version and options of the metric.

    Args:
        metric: The key of the metric, such as `bleu`.
        pair: The scores of both systems on a test set.
    """
    first_signature = pair.first.scores[metric].signature
    second_signature = pair.second.scores[metric].signature
    have_same_signature = first_signature == second_signature
    are_scores_comparable = have_same_signature and pair.have_same_lines
    first_values = pair.first.seed_values(metric)
    second_values = pair.second.seed_values(metric)
    has_one_seed = len(first_values) == 1
    if has_one_seed or not are_scores_comparable or not pair.are_trained:
        return None
    differences = []
    for first_value, second_value in zip(first_values, second_values, strict=True):
        differences.append(second_value - first_value)
    return paired_t_test(differences)


def score_texts(metric: str, pair: ScoresPair, p_value: float | None) -> ScoreTexts:
    """Return the row of a metric in the table that compares the scores of two systems.

    The row shows both scores, their difference and its p-value. For a significant difference it
    also shows the human agreement: an estimate of how often people prefer the better system. It is
    known for some metrics only.

    Args:
        metric: The key of the metric, such as `bleu`.
        pair: The scores of both systems on a test set.
        p_value: The p-value of the difference; None if it is not tested.
    """
    first = pair.first.scores[metric]
    second = pair.second.scores[metric]
    difference = second.value - first.value
    is_significant = p_value is not None and p_value < SIGNIFICANCE_LEVEL
    agreement = DASH
    if is_significant:
        model = agreement_model(metric, second.signature, second.target)
        if model is not None:
            agreement = agreement_text(model, human_agreement(model, difference))
    p_text = DASH
    if p_value is not None:
        # The head of the column is p, so a cell shows 0.012 or <0.001 without it.
        p_text = format_p_value(p_value).removeprefix("p").removeprefix("=")
        if not is_significant:
            p_text += " n.s."
    return ScoreTexts(
        corpora=join_with_and(dict.fromkeys([first.corpus, second.corpus])),
        test=first.test,
        metric=METRICS[metric].label,
        first_score=_score_or_mean(first),
        second_score=_score_or_mean(second),
        difference=format_difference(difference, is_significant),
        p_value=p_text,
        agreement=agreement,
    )


def _score_or_mean(score: ScoreRow) -> str:
    """Return a score as text: of one seed `31.1`, of several seeds the mean, `31.5 ± 2.1`."""
    has_several_seeds = pd.notna(score.deviation)
    # The text of a score of one seed would contain its confidence interval.
    return score.score_text if has_several_seeds else score.value_text
