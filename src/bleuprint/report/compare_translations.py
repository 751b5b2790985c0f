"""The translations of two systems: scores, paired tests, breakdowns, the most changed sentences."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

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


@dataclass(frozen=True)
class Change:
    """The sentence-level BLEU of two systems in a line, counted from 1."""

    line: int
    first: float
    second: float

    @property
    def delta(self) -> float:
        return self.second - self.first


def translations(pair: Pair, details: Details) -> Iterator[str | Grid]:
    """On each test set: scores, paired tests, breakdowns and the most changed sentences.

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
        some = [change for change in changed if sign * change.delta > 0]
        yield from _sentences(some, sentences, texts)


def changes(
    first: Sequence[str], second: Sequence[str], references: Sequence[str], language: str
) -> list[Change]:
    """Each line's sentence-level BLEU."""
    scores = (sentence_bleu(lines, references, language) for lines in (first, second))
    return [Change(line, *both) for line, both in enumerate(zip(*scores, strict=True), 1)]


def _sentences(
    changed: Sequence[Change], most: int, texts: Sequence[tuple[str, Sequence[str]]]
) -> Iterator[str]:
    """The largest changes first, among equals the first line first."""
    width = max(len(label) for label, _ in texts)
    for change in sorted(changed, key=lambda change: -abs(change.delta))[:most]:
        scores = f"from {change.first:.1f} to {change.second:.1f}"
        yield f"\nline {change.line}: {change.delta:+.1f}, {scores}"
        for label, lines in texts:
            yield f"  {label:{width}}  {blank_unprinted(lines[change.line - 1])}"
    if not changed:
        yield "no sentence"


def _breakdown(pair: Pair, runs: Sequence[CellResults], test: str) -> Iterator[str | Grid]:
    """A test set with one seed: scores, paired tests, and BLEU by length and word frequency."""
    both = [run.scores_of(test) for run in runs]
    yield _headline(pair, both)
    p = paired(runs, test)
    yield (
        f"\ndifference in BLEU: {_significance(p.bootstrap)} (paired bootstrap), "
        f"{_significance(p.randomization)} (approximate randomization)"
    )
    lengths = [
        {b["tokens"]: (b["lines"], b["bleu"]) for b in scores["by_length"]} for scores in both
    ]
    yield _buckets(pair, ("source tokens", "lines"), lengths, "{:.1f}".format)
    if all(scores["by_count"] is not None for scores in both):
        counts = [
            {b["count"]: (b["words"], 100 * b["accuracy"]) for b in scores["by_count"] or ()}
            for scores in both
        ]
        yield _buckets(pair, ("times in training", "words"), counts, "{:.1f} %".format)


def _significance(p: float) -> str:
    return f"p={p:.4f}{', n.s.' if p >= SIGNIFICANT else ''}"


def _headline(pair: Pair, both: Sequence[Any]) -> Grid:
    rows = []
    for metric, label in (("bleu", "BLEU"), ("chrf", "chrF2"), ("ter", "TER")):
        first, second = (scores[metric] for scores in both)
        cells = [f"{s['score']:.1f} [{s['low']:.1f}, {s['high']:.1f}]" for s in (first, second)]
        rows.append(Row((label, *cells, f"{second['score'] - first['score']:+.1f}")))
    first, second = (scores["bleu"]["length_ratio"] for scores in both)
    rows.append(Row(("length ratio", f"{first:.3f}", f"{second:.3f}", f"{second - first:+.3f}")))
    return Grid(pair.columns("", more=("difference",)), tuple(rows))


def _buckets(
    pair: Pair,
    labels: tuple[str, str],
    both: Sequence[Mapping[str, tuple[int, float]]],
    form: Callable[[float], str],
) -> Grid:
    """A figure by bucket; `both` map the buckets of each side to its size and figure."""
    first, second = both
    rows = []
    for name in (name for name in first if name in second):
        (size, a), (_, b) = first[name], second[name]
        rows.append(Row((name, f"{size:,}", form(a), form(b), f"{b - a:+.1f}")))
    name, size_label = labels
    sides = pair.columns(more=("difference",))
    return Grid((Column(name, left=True), Column(size_label), *sides), tuple(rows))
