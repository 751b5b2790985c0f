"""The translations of two systems: paired tests and the most changed sentences."""

from collections.abc import Iterator, Sequence

import pandas as pd

from bleuprint.report.compare_tables import Pair, not_comparable, paired
from bleuprint.report.system_results import p_text
from bleuprint.scoring.sentence_scores import sentence_bleu
from bleuprint.text.unicode import blank_unprinted
from bleuprint.tracking.cell_results import CellResults


def translations(pair: Pair, sentences: int) -> Iterator[str]:
    """On each test set: paired tests and the most changed sentences.

    They are of the first corpus and seed of the pair; `sentences` is the number of improved, and of
    worsened ones.
    """
    runs = [side.results(pair.corpora[0], pair.seeds[0]) for side in pair.sides]
    for test in (test for test in runs[0].scores if test in runs[1].scores):
        yield from _on_test(pair, runs, test, sentences)


def _on_test(pair: Pair, runs: Sequence[CellResults], test: str, sentences: int) -> Iterator[str]:
    _, corpus, seed = runs[0].cell
    yield f"{pair.first} and {pair.second} on {corpus}, seed {seed}, test set {test}"
    if reason := not_comparable([[run] for run in runs], test):
        yield f"not compared: {reason}"
        return
    p = paired(runs, test)
    yield (
        f"difference in BLEU: {p_text(p.bootstrap)} (paired bootstrap), "
        f"{p_text(p.randomization)} (approximate randomization)"
    )
    (references, first), (_, second) = (run.lines(test) for run in runs)
    changed = changes(first, second, references, runs[0].texts.target)
    labels = ("source", "reference", *map(str, pair.sides))
    # pairs: a system may be called source or reference
    texts = list(zip(labels, (runs[0].sources(test), references, first, second), strict=True))
    for name, sign in (("improved", 1), ("worsened", -1)):
        yield f"\nMost {name}, by BLEU of the sentence:"
        yield from _sentences(changed[sign * changed.delta > 0], sentences, texts)


def changes(
    first: Sequence[str], second: Sequence[str], references: Sequence[str], language: str
) -> pd.DataFrame:
    """The sentence-level BLEU of each line, counted from 1: first, second and delta."""
    sides = {"first": first, "second": second}
    bleu = {side: sentence_bleu(lines, references, language) for side, lines in sides.items()}
    table = pd.DataFrame(bleu, index=range(1, len(references) + 1))
    return table.assign(delta=table.second - table.first)


def _sentences(
    changed: pd.DataFrame, most: int, texts: Sequence[tuple[str, Sequence[str]]]
) -> Iterator[str]:
    """The largest changes first; ties in the order of lines."""
    width = max(len(label) for label, _ in texts)
    largest = changed.sort_values("delta", key=abs, ascending=False, kind="stable").head(most)
    for change in largest.itertuples():
        scores = f"from {change.first:.1f} to {change.second:.1f}"
        yield f"\nline {change.Index}: {change.delta:+.1f}, {scores}"
        for label, lines in texts:
            yield f"  {label:{width}}  {blank_unprinted(lines[change.Index - 1])}"
    if changed.empty:
        yield "no sentence"
