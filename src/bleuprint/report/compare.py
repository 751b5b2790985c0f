"""The command `bleuprint compare`: two systems of a report, or of the reports of two revisions.

`compare` parses the arguments and yields what the command prints: the settings that differ, a table
of scores with p-values, and the sentences that improved or worsened most. compared_systems.py reads
the scores of both sides.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pandas as pd

from bleuprint.config.dotted_settings import dotted_settings
from bleuprint.config.experiment import Settings, load_resolved_settings, load_settings
from bleuprint.config.paths import RESOLVED
from bleuprint.report import frame
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
from bleuprint.report.table import NONE, Table, text_table
from bleuprint.report.terminal import wrap
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.flatten import flatten_settings
from bleuprint.runtime.wording import join_with_and
from bleuprint.scoring.human_agreement import (
    AGREEMENT_COLUMN,
    AGREEMENT_NOTE,
    agreement_text,
    human_agreement,
)
from bleuprint.scoring.metrics import METRICS
from bleuprint.scoring.sacrebleu_metrics import sentence_bleu
from bleuprint.scoring.significance import SIGNIFICANCE_LEVEL
from bleuprint.text.unicode import replace_unprintable


@dataclass(frozen=True)
class _Argument:
    """What an argument of the command names; each part may be empty.

    Attributes:
        system: The name of the system.
        corpus: The name of the corpus.
        revision: The Git revision; empty for the working tree.
    """

    system: str
    corpus: str
    revision: str


def compare(
    first: str, second: str, corpus: str | None = None, sentences: int = 10
) -> Iterator[str | Table]:
    """Yield the lines and tables that compare two systems.

    Args:
        first: The first side: SYSTEM, SYSTEM@REVISION or @REVISION. SYSTEM may be `SYSTEM, CORPUS`,
            as tables name rows. A system or corpus that is not named is that of the other side; if
            no side names a system, all systems that both reports have are compared. Without a
            revision, the working tree is compared.
        second: The second side, in the same form.
        corpus: The only corpus to compare, if neither side names one. With a corpus, sentences are
            shown, too.
        sentences: How many improved and how many worsened sentences are shown.

    Raises:
        UserError: A side does not exist, or the sides cannot be compared.
    """
    if first == second == "@":
        raise UserError("both sides are the working tree: is a variable not set?")
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
        raise UserError(f"{first} and {second}: no system of the same name")
    for first_system, second_system in system_pairs:
        first_side = ReportedSystem(
            first_system,
            first_corpus,
            first_argument.revision,
            first_settings,
            first_records,
            on_different_corpora=first_corpus != second_corpus,
        )
        second_side = ReportedSystem(
            second_system,
            second_corpus,
            second_argument.revision,
            second_settings,
            second_records,
            on_different_corpora=first_corpus != second_corpus,
        )
        yield from compare_sides(first_side, second_side, sentences)


def _system_pairs(
    first: _Argument, second: _Argument, first_settings: Settings, second_settings: Settings
) -> list[tuple[str, str]]:
    """Return which systems are compared: those that are named, or all that both reports have."""
    if first.system or second.system:
        return [(first.system or second.system, second.system or first.system)]
    pairs = []
    for name in first_settings.trained_systems:
        if name in second_settings.trained_systems:
            pairs.append((name, name))
    return pairs


def _parse_argument(text: str) -> _Argument:
    """Return what an argument of the command names."""
    row_name, at_sign, revision = text.partition("@")
    system, _, corpus = row_name.partition(",")
    if not system and not at_sign:
        raise UserError(f"{text!r}: write SYSTEM, SYSTEM@REVISION or @REVISION")
    if row_name and at_sign and not revision.strip():
        raise UserError(f"{text!r}: no revision after the @: is a variable not set?")
    return _Argument(system, corpus.strip(), revision)


def _open_report(revision: str) -> tuple[Settings, frame.Records]:
    """Return the settings and records of a revision; an empty one is the working tree."""
    if not revision:
        settings = load_settings()
        records = frame.load()
        check_settings(records, settings, frame.RESULTS)
        return settings, records
    with revision_files(revision, (RESOLVED, frame.RESULTS)) as root:
        settings = load_resolved_settings(root)
        records = frame.load(root)
        remedy = f"name a revision whose results are of its {RESOLVED}"
        check_settings(records, settings, root / frame.RESULTS, remedy)
        return settings, records


def compare_sides(
    first: ReportedSystem, second: ReportedSystem, sentences: int
) -> Iterator[str | Table]:
    """Yield what differs between two sides: settings, scores and sentences.

    Args:
        first: The first side.
        second: The second side.
        sentences: How many improved and how many worsened sentences are shown.

    Raises:
        UserError: Both sides are the same, or have no seed or test set in common.
    """
    names = f"{first} and {second}"
    if str(first) == str(second):
        raise UserError(f"{first}: compared with itself")
    seeds = [seed for seed in first.settings.seeds if seed in second.settings.seeds]
    if not seeds:
        raise UserError(f"{names}: no seed in common")
    pairs = _pair_scores(first.scores(seeds), second.scores(seeds))
    if not pairs:
        raise UserError(f"{names}: no test set in common")
    corpora: dict[str, None] = {}
    if not first.on_different_corpora:
        corpora = dict.fromkeys(pair.first.bleu.corpus for pair in pairs)
    are_trained = all(pair.are_trained for pair in pairs)
    first_settings = _deciding_settings(first, corpora, are_trained)
    second_settings = _deciding_settings(second, corpora, are_trained)
    are_same_results = all(pair.have_same_lines and pair.have_same_translations for pair in pairs)
    if first_settings == second_settings and are_same_results:
        yield f"{names}: nothing differs: settings, translations, scores"
        return
    yield names
    yield from _differing_settings(first_settings, second_settings, [str(first), str(second)])
    yield from _score_comparison(first, second, pairs, seeds)
    yield ""
    are_files_here = not first.revision and not second.revision
    if first.corpus and are_files_here:
        for pair in pairs:
            if pair.have_same_lines:
                yield from _sentence_comparison(first, second, pair, sentences)


def _pair_scores(
    first: Mapping[tuple[str, str], SystemScores], second: Mapping[tuple[str, str], SystemScores]
) -> list[ScoresPair]:
    """Return the scores of both sides on each test set that both have."""
    return [ScoresPair(first[key], second[key]) for key in first if key in second]


def _deciding_settings(
    side: ReportedSystem, corpora: Iterable[str], are_trained: bool
) -> dict[str, str]:
    """Return the settings that decide the results of a side, by keys such as `train.optimizer`.

    Args:
        side: The side.
        corpora: The corpora that both sides have; none if the sides are on different corpora.
        are_trained: Whether the systems of both sides are trained here. An external system has
            files of translations in place of settings.
    """
    settings = side.settings
    if side.on_different_corpora and side.corpus:
        system = settings.trained_systems_on(side.corpus).get(side.system) if are_trained else None
        corpus = settings.corpus(side.corpus).deciding_settings()
        deciding = flatten_settings(system or {})
        deciding |= flatten_settings({"corpus": corpus, "seeds": settings.seeds})
        return deciding
    if are_trained:
        deciding = dotted_settings(settings, side.system)
    else:
        deciding = flatten_settings(_translation_files(side, corpora))
    texts = {corpus: settings.corpus(corpus).deciding_settings() for corpus in corpora}
    deciding |= flatten_settings({"corpora": texts, "seeds": settings.seeds})
    return deciding


def _translation_files(side: ReportedSystem, corpora: Iterable[str]) -> dict[str, object]:
    """Return the settings of an external system on each corpus; None for a trained system."""
    settings = side.settings
    by_corpus = settings.all_systems.get(side.system, {})
    files: dict[str, object] = {}
    for corpus in corpora:
        is_trained = settings.is_trained(side.system)
        files[corpus] = None if is_trained else by_corpus.get(corpus)
    return files


def _differing_settings(
    first: Mapping[str, str], second: Mapping[str, str], heads: Sequence[str]
) -> Iterator[str | Table]:
    """Yield a table of the settings that differ, or a line if none does.

    Args:
        first: The settings of the first side, by key.
        second: The settings of the second side.
        heads: The names of both sides.
    """
    rows = []
    for key in dict.fromkeys([*first, *second]):
        first_value = first.get(key, NONE)
        second_value = second.get(key, NONE)
        if first_value != second_value:
            rows.append((key, first_value, second_value))
    if not rows:
        yield "the same: settings"
        return
    yield "\nSettings"
    yield text_table(["settings"], heads, rows)


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
    """Yield the table of scores and how to read it."""
    rows = []
    for pair in pairs:
        for metric, p_value in p_values_by_metric(first, second, pair).items():
            rows.append(score_texts(metric, pair, p_value))
    yield "\nScores"
    heads = [str(first), str(second), "Δ", "p", AGREEMENT_COLUMN]
    yield text_table(["corpus", "test set", "score"], heads, rows)
    yield wrap(
        f"Seeds: {', '.join(map(str, seeds))}. p: paired t-test over several seeds, of one "
        "paired bootstrap over lines (output errors: randomization), of an external system the "
        f"largest against each seed, each alone, not corrected; {NONE}: other test sets, or one "
        "seed of another revision. Output errors: lines with an error that their reference lacks."
    )
    for pair in pairs:
        if pair.why_untested:
            bleu = pair.second.bleu
            yield wrap(f"{bleu.corpus}, {bleu.test}: {pair.why_untested}, so without p.")
    if any(row.agreement != NONE for row in rows):
        yield wrap(AGREEMENT_NOTE)


def p_values_by_metric(
    first: ReportedSystem, second: ReportedSystem, pair: ScoresPair
) -> dict[str, float | None]:
    """Return the p-value of each metric that the table of scores shows.

    The files of both sides, if they are in the working tree, allow tests over lines. Otherwise
    only the values of several seeds can be tested.

    Args:
        first: The first side.
        second: The second side.
        pair: Their scores on a test set.

    Returns:
        The p-values by the key of the metric; None where the difference is not tested.
    """
    differences: dict[MetricKey, PairedDifference] = {}
    are_files_here = not first.revision and not second.revision
    if pair.have_same_lines and are_files_here:
        test = pair.first.bleu.test
        first_values = [results.metrics(test) for results in first.open_results(pair.first)]
        second_values = [results.metrics(test) for results in second.open_results(pair.second)]
        differences = paired_differences(first_values, second_values, pair.are_trained)
    p_values: dict[str, float | None] = {}
    for metric in pair.first.scores:
        if not _is_shown(metric, pair):
            continue
        if pair.why_untested:
            p_values[metric] = None
        elif differences:
            difference = differences.get((metric, ""))
            p_values[metric] = difference.p_value if difference else None
        else:
            p_values[metric] = _p_value_over_seeds(metric, pair)
    return p_values


def _is_shown(metric: str, pair: ScoresPair) -> bool:
    """Return whether a metric is a score that both sides have, or an error that occurs."""
    if metric not in pair.second.scores or metric not in METRICS:
        return False
    kind = METRICS[metric].kind
    if kind == "error":
        counts = pair.first.seed_values(metric) + pair.second.seed_values(metric)
        return any(count > 0 for count in counts)
    return kind == "score"


def _p_value_over_seeds(metric: str, pair: ScoresPair) -> float | None:
    """Return the p-value of the paired t-test over seeds; None if there is nothing to test.

    The test requires two trained systems, several seeds, the same test set and the same signature.
    """
    first_signature = pair.first.scores[metric].signature
    second_signature = pair.second.scores[metric].signature
    have_same_signature = first_signature == second_signature
    if not (have_same_signature and pair.have_same_lines and pair.are_trained):
        return None
    first_values = pair.first.seed_values(metric)
    second_values = pair.second.seed_values(metric)
    differences = []
    for first_value, second_value in zip(first_values, second_values, strict=True):
        differences.append(second_value - first_value)
    return paired_t_test(differences) if len(differences) > 1 else None


def score_texts(metric: str, pair: ScoresPair, p_value: float | None) -> ScoreTexts:
    """Return the row of a metric in the table of scores.

    Args:
        metric: The key of the metric.
        pair: The scores of both sides.
        p_value: The p-value of the difference; None if it is not tested.
    """
    first = pair.first.scores[metric]
    second = pair.second.scores[metric]
    difference = second.value - first.value
    is_significant = p_value is not None and p_value < SIGNIFICANCE_LEVEL
    agreement = NONE
    if is_significant:
        model = agreement_model(metric, second.signature, second.target)
        if model is not None:
            agreement = agreement_text(model, human_agreement(model, difference))
    p_text = NONE
    if p_value is not None:
        # The head of the column says p, so that a cell shows 0.012 or <0.001.
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
    """Return a score without its interval; a mean over seeds with its deviation."""
    return score.value_text if pd.isna(score.deviation) else score.score_text


def _sentence_comparison(
    first: ReportedSystem, second: ReportedSystem, pair: ScoresPair, sentences: int
) -> Iterator[str]:
    """Yield the sentences of the first seed that improved most, and those that worsened most."""
    test = pair.first.bleu.test
    first_results = first.open_results(pair.first)[0]
    second_results = second.open_results(pair.second)[0]
    corpora = join_with_and(dict.fromkeys([first_results.run.corpus, second_results.run.corpus]))
    seed = first_results.run.seed
    yield f"{first} and {second} on {corpora}, seed {seed}, test set {test}"
    references, first_translations = first_results.references_and_translations(test)
    _, second_translations = second_results.references_and_translations(test)
    changes = sentence_bleu_changes(
        first_translations, second_translations, references, pair.first.bleu.target
    )
    # A list of pairs and no dict, since a system may be called source or reference.
    labeled_lines = [
        ("source", first_results.source_lines(test)),
        ("reference", references),
        (str(first), first_translations),
        (str(second), second_translations),
    ]
    yield "\nMost improved, by BLEU of the sentence:"
    yield from _largest_changes(changes[changes.difference > 0], sentences, labeled_lines)
    yield "\nMost worsened, by BLEU of the sentence:"
    yield from _largest_changes(changes[changes.difference < 0], sentences, labeled_lines)


def sentence_bleu_changes(
    first: Sequence[str], second: Sequence[str], references: Sequence[str], language: str
) -> pd.DataFrame:
    """Return how the BLEU of each sentence changed.

    Args:
        first: The translations of the first side.
        second: The translations of the second side.
        references: The references.
        language: The target language.

    Returns:
        A row for each line, with the line's number from 1 as the index, and the columns `first`
        and `second`, the sentence BLEU of both sides, and `difference`.
    """
    first_bleu = sentence_bleu(first, references, language)
    second_bleu = sentence_bleu(second, references, language)
    line_numbers = range(1, len(references) + 1)
    changes = pd.DataFrame({"first": first_bleu, "second": second_bleu}, index=line_numbers)
    changes["difference"] = changes.second - changes["first"]
    return changes


def _largest_changes(
    changes: pd.DataFrame, sentences: int, labeled_lines: Sequence[tuple[str, Sequence[str]]]
) -> Iterator[str]:
    """Yield the sentences that changed most; equal changes stay in the order of lines.

    Args:
        changes: The changes, as `sentence_bleu_changes` returns them.
        sentences: The maximum number of sentences.
        labeled_lines: The texts to show of each line, each with its label: all lines of the source,
            the reference, and both translations.
    """
    if changes.empty:
        yield "no sentence"
        return
    label_width = max(len(label) for label, _ in labeled_lines)
    ranked = changes.sort_values("difference", key=abs, ascending=False, kind="stable")
    for change in ranked.head(sentences).itertuples():
        line_number = change.Index
        yield (
            f"\nline {line_number}: {change.difference:+z.1f}, from {change.first:.1f} to "
            f"{change.second:.1f}"
        )
        for label, lines in labeled_lines:
            line = replace_unprintable(lines[line_number - 1])
            yield f"  {label:{label_width}}  {line}"
