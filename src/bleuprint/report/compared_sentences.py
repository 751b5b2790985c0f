"""The sentences that improved or worsened most from one system to another, for `compare`."""

from collections.abc import Iterator, Sequence

import pandas as pd

from bleuprint.report.compared_systems import ReportedSystem, ScoresPair
from bleuprint.runtime.wording import join_with_and
from bleuprint.scoring.sacrebleu_metrics import sentence_bleu
from bleuprint.text.unicode import replace_unprintable


def sentence_comparison(
    first: ReportedSystem, second: ReportedSystem, pair: ScoresPair, sentences: int
) -> Iterator[str]:
    """Yield the sentences whose translation improved or worsened most from one system to another.

    Sentences are ranked by the change of their sentence BLEU, and shown with source, reference and
    both translations. If the systems have several seeds, only the first seed is compared.

    Args:
        first: The first system.
        second: The second system.
        pair: Their scores on the test set of the sentences.
        sentences: How many improved and how many worsened sentences are shown.
    """
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
    # Pairs in place of a dict: a system might be named `source`, too.
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
    """Return how much the BLEU of each sentence changes from one system to another.

    Args:
        first: The translations of the first system.
        second: The translations of the second system.
        references: The references.
        language: The target language, such as `de`.

    Returns:
        A row for each line, with the line's number from 1 as the index, and the columns `first`
        and `second`, the sentence BLEU of both systems, and `difference`.
    """
    first_bleu = sentence_bleu(first, references, language)
    second_bleu = sentence_bleu(second, references, language)
    line_numbers = range(1, len(references) + 1)
    changes = pd.DataFrame({"first": first_bleu, "second": second_bleu}, index=line_numbers)
    changes["difference"] = changes["second"] - changes["first"]
    return changes


def _largest_changes(
    changes: pd.DataFrame, sentences: int, labeled_lines: Sequence[tuple[str, Sequence[str]]]
) -> Iterator[str]:
    """Yield the lines that show the sentences whose BLEU changed most, the largest change first.

    Args:
        changes: For each line, by its number from 1, the sentence BLEU `first` and `second` of
            both systems, and their `difference`.
        sentences: The maximum number of sentences.
        labeled_lines: The texts that are shown of a sentence, in order. Each has a label, such as
            `source`, and the lines of the whole test set, such as all source lines.
    """
    if changes.empty:
        yield "no sentence"
        return
    label_width = max(len(label) for label, _ in labeled_lines)
    # The sort is stable: among equal changes, the earlier line comes first.
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
