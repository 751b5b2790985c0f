"""Two systems beside each other, sentence by sentence too, for the terminal.

The report page shows sentences of all systems; here it is two of them, and the most changed first.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bleuprint.config.experiment import Settings
from bleuprint.config.paths import Cell, folder
from bleuprint.corpus.test_sets import names_of_test_sets
from bleuprint.report.grid import Column, Grid, Row
from bleuprint.report.main_table import METRICS
from bleuprint.report.records import scored_lines, scores_of, verified
from bleuprint.report.system_results import SIGNIFICANT
from bleuprint.runtime.errors import UserError
from bleuprint.scoring.sentence_scores import sentence_bleu
from bleuprint.scoring.significance import paired_tests
from bleuprint.text.parallel import TextFolder, read_lines
from bleuprint.text.unicode import blank_unprinted


@dataclass(frozen=True)
class Comparison:
    """What is compared: two systems on a corpus, of one seed."""

    first: str
    second: str
    corpus: str
    seed: int

    @property
    def cells(self) -> tuple[Cell, Cell]:
        return (
            Cell(self.first, self.corpus, self.seed),
            Cell(self.second, self.corpus, self.seed),
        )


@dataclass(frozen=True)
class Change:
    """The sentence-level BLEU of two systems in a line, counted from 1."""

    line: int
    first: float
    second: float

    @property
    def delta(self) -> float:
        return self.second - self.first


def compare(
    settings: Settings,
    compared: Comparison,
    test: str | None,
    sentences: int,
    root: Path = Path(),
) -> Iterator[str | Grid]:
    """Lines and tables on one test set, or on each: scores, tests, buckets, `sentences` both ways.

    Raises UserError for what params.yaml does not have, and where something is not scored.
    """
    _check(settings, compared)
    entry = settings.corpus(compared.corpus)
    for cell in compared.cells:
        verified(settings, cell, root)
    texts = TextFolder(folder(compared.corpus, "split", root), entry.source, entry.target)
    tests = names_of_test_sets(entry, texts)
    if test is not None and test not in tests:
        raise UserError(
            f"corpus {compared.corpus}: no test set {test!r}; there are: {', '.join(tests)}"
        )
    for name in tests if test is None else [test]:
        yield from _on_test(settings, compared, name, sentences, root)


def changes(
    first: Sequence[str], second: Sequence[str], references: Sequence[str], language: str
) -> list[Change]:
    """Each line's sentence-level BLEU."""
    scores = (sentence_bleu(lines, references, language) for lines in (first, second))
    pairs = zip(*scores, strict=True)
    return [Change(number, one, other) for number, (one, other) in enumerate(pairs, 1)]


def _check(settings: Settings, compared: Comparison) -> None:
    for system in (compared.first, compared.second):
        settings.system(system)
    if compared.first == compared.second:
        raise UserError(f"system {compared.first}: compared with itself; name two systems")
    if compared.seed not in settings.seeds:
        raise UserError(f"params.yaml: no seed {compared.seed}; seeds are {list(settings.seeds)}")


def _on_test(
    settings: Settings, compared: Comparison, test: str, sentences: int, root: Path
) -> Iterator[str | Grid]:
    both = [scores_of(cell, test, root) for cell in compared.cells]
    (references, first), (_, second) = (
        scored_lines(settings, cell, test, root) for cell in compared.cells
    )
    entry = settings.corpus(compared.corpus)
    systems = {compared.first: first, compared.second: second}
    p_values = paired_tests(systems, references, entry.target)[compared.second]
    yield (
        f"{compared.first} and {compared.second} on {compared.corpus}, seed {compared.seed}, "
        f"test set {test}"
    )
    yield _headline(compared, both)
    yield (
        f"\ndifference in BLEU: {_tested(p_values.bootstrap)} (paired bootstrap), "
        f"{_tested(p_values.randomization)} (approximate randomisation)"
    )
    yield _by_length(compared, both)
    if both[0]["by_count"] is not None:
        yield _by_count(compared, both)
    texts = TextFolder(folder(compared.corpus, "split", root), entry.source, entry.target)
    sources = list(read_lines(texts.files(f"test.{test}")[0]))
    labels = ("source", "reference", compared.first, compared.second)
    # pairs: a system may be called source or reference
    shown = list(zip(labels, (sources, references, first, second), strict=True))
    found = changes(first, second, references, entry.target)
    for name, sign in (("improved", 1), ("worsened", -1)):
        yield f"\nMost {name}, by BLEU of the sentence:"
        yield from _sentences(
            [one for one in found if sign * one.delta > 0], sign, sentences, shown
        )


def _sentences(
    found: Sequence[Change], sign: int, most: int, texts: Sequence[tuple[str, Sequence[str]]]
) -> Iterator[str]:
    """The largest changes first, among equals the first line first."""
    width = max(len(label) for label, _ in texts)
    for one in sorted(found, key=lambda one: -sign * one.delta)[:most]:
        yield f"\nline {one.line}: {one.delta:+.1f}, from {one.first:.1f} to {one.second:.1f}"
        for label, lines in texts:
            yield f"  {label:{width}}  {blank_unprinted(lines[one.line - 1])}"
    if not found:
        yield "no sentence"


def _tested(p: float) -> str:
    return f"p={p:.4f}{', n.s.' if p >= SIGNIFICANT else ''}"


def _headline(compared: Comparison, both: Sequence[Any]) -> Grid:
    rows = []
    for metric, label in METRICS.items():
        scores = [one[metric] for one in both]
        cells = [f"{one['score']:.1f} [{one['low']:.1f}, {one['high']:.1f}]" for one in scores]
        rows.append(Row((label, *cells, f"{scores[1]['score'] - scores[0]['score']:+.1f}")))
    ratios = [one["bleu"]["length_ratio"] for one in both]
    shown = [f"{ratio:.3f}" for ratio in ratios]
    rows.append(Row(("length ratio", *shown, f"{ratios[1] - ratios[0]:+.3f}")))
    return Grid(_columns("", compared), tuple(rows))


def _by_length(compared: Comparison, both: Sequence[Any]) -> Grid:
    """Both have the same buckets: these go by the sources."""
    rows = []
    for one, other in zip(*(scores["by_length"] for scores in both), strict=True):
        cells = f"{one['lines']:,}", f"{one['bleu']:.1f}", f"{other['bleu']:.1f}"
        rows.append(Row((one["tokens"], *cells, f"{other['bleu'] - one['bleu']:+.1f}")))
    return Grid(_columns("source tokens", compared, "lines"), tuple(rows))


def _by_count(compared: Comparison, both: Sequence[Any]) -> Grid:
    rows = []
    for buckets in zip(*(scores["by_count"] for scores in both), strict=True):
        first, second = (100 * bucket["accuracy"] for bucket in buckets)
        cells = f"{buckets[0]['words']:,}", f"{first:.1f} %", f"{second:.1f} %"
        rows.append(Row((buckets[0]["count"], *cells, f"{second - first:+.1f}")))
    return Grid(_columns("times in training", compared, "words"), tuple(rows))


def _columns(label: str, compared: Comparison, *size: str) -> tuple[Column, ...]:
    names = (*size, compared.first, compared.second, "difference")
    return (Column(label, left=True), *map(Column, names))
