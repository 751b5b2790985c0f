"""The translations of two systems: paired tests, breakdowns, the most changed sentences."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import pandas as pd

from bleuprint.report.compare_tables import Pair, not_comparable, paired
from bleuprint.report.grid import Column, Grid, Row
from bleuprint.report.system_results import SIGNIFICANT
from bleuprint.runtime.errors import UserError
from bleuprint.scoring.sentence_scores import sentence_bleu
from bleuprint.text.unicode import blank_unprinted
from bleuprint.tracking.cell_results import CellResults


@dataclass(frozen=True)
class Details:
    """What to show of the translations: on a corpus, of one or all test sets, of one seed.

    `sentences` is the number of improved, and of worsened sentences. Without a `seed`, the first
    that both sides have.
    """

    corpus: str
    test: str | None = None
    seed: int | None = None
    sentences: int = 10


def translations(pair: Pair, details: Details) -> Iterator[str | Grid]:
    """On each test set: paired tests, breakdowns and the most changed sentences.

    Raises UserError at once if there is no such seed or test set.
    """
    seeds, corpus = pair.seeds, details.corpus
    seed = details.seed if details.seed is not None else next(iter(seeds), None)
    if seed not in seeds:
        raise UserError(f"params.yaml: no seed {seed}; seeds are {seeds}")
    runs = [side.results(corpus, seed) for side in pair.sides]
    tests = [test for test in runs[0].scores if test in runs[1].scores]
    if details.test not in (None, *tests):
        raise UserError(
            f"corpus {corpus}: no test set {details.test!r}; there are: {', '.join(tests)}"
        )
    chosen = tests if details.test is None else [details.test]
    return chain.from_iterable(_on_test(pair, runs, test, details.sentences) for test in chosen)


def _on_test(
    pair: Pair, runs: Sequence[CellResults], test: str, sentences: int
) -> Iterator[str | Grid]:
    _, corpus, seed = runs[0].cell
    yield f"{pair.first} and {pair.second} on {corpus}, seed {seed}, test set {test}"
    if reason := not_comparable([[run] for run in runs], test):
        yield f"not compared: {reason}"
        return
    yield from _breakdown(pair, runs, test)
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


def _breakdown(pair: Pair, runs: Sequence[CellResults], test: str) -> Iterator[str | Grid]:
    """A test set with one seed: paired tests, and BLEU by length and word frequency."""
    both = [run.scores_of(test) for run in runs]
    p = paired(runs, test)
    yield (
        f"difference in BLEU: {_significance(p.bootstrap)} (paired bootstrap), "
        f"{_significance(p.randomization)} (approximate randomization)"
    )
    lengths = [pd.DataFrame(scores["by_length"]) for scores in both]
    yield _buckets(pair, lengths, "source tokens", "lines", ".1f")
    if all(scores["by_count"] is not None for scores in both):
        counts = [pd.DataFrame(scores["by_count"]).drop(columns="found") for scores in both]
        yield _buckets(pair, counts, "times in training", "words", ".1%")


def _significance(p: float) -> str:
    return f"p={p:.4f}{', n.s.' if p >= SIGNIFICANT else ''}"


def _buckets(
    pair: Pair, both: Sequence[pd.DataFrame], head: str, size_head: str, form: str
) -> Grid:
    """A figure by bucket; the tables of both sides have the columns bucket, size and figure."""
    first, second = (table.set_axis(["bucket", "size", "figure"], axis=1) for table in both)
    rows = []
    for bucket in first.merge(second, on="bucket").itertuples(index=False):
        name, size, a, _, b = bucket
        rows.append(Row((name, f"{size:,}", format(a, form), format(b, form), f"{b - a:+{form}}")))
    columns = Column(head, left=True), Column(size_head), *pair.columns(more=("difference",))
    return Grid(columns, tuple(rows))
