"""The lines of a test set with the outputs of several systems, ranked for the page."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, zip_longest
from statistics import fmean

from bleuprint.config.paths import Cell
from bleuprint.report.page.context import ReportContext
from bleuprint.report.system_results import SystemResult
from bleuprint.scoring.sentence_scores import sentence_bleu
from bleuprint.tracking.cell_results import CellResults

# Lines of each short list: a system's best and worst, those where systems differ most.
MOST = 5
# Systems whose outputs are shown.
SYSTEMS = 6


@dataclass(frozen=True)
class Output:
    """A system's translations, and the BLEU of each line."""

    lines: Sequence[str]
    bleu: Sequence[float]


@dataclass(frozen=True)
class SetLines:
    """A test set; lines count from 0. `outputs` are by system; `left_out` counts the others."""

    corpus: str
    test: str
    languages: tuple[str, str]
    baseline: str
    sources: Sequence[str]
    references: Sequence[str]
    outputs: Mapping[str, Output]
    left_out: int

    def best(self, system: str) -> list[int]:
        """Lines by BLEU, the highest first; among equals the longest, which say most."""
        bleu = self.outputs[system].bleu
        return self._ranked(lambda line: (-bleu[line], -len(self.references[line])))

    def worst(self, system: str) -> list[int]:
        """Lines by BLEU, the lowest first; among equals the longest."""
        bleu = self.outputs[system].bleu
        return self._ranked(lambda line: (bleu[line], -len(self.references[line])))

    @cached_property
    def spread(self) -> list[float]:
        """The highest BLEU of each line minus its lowest."""
        by_line = zip(*(output.bleu for output in self.outputs.values()), strict=True)
        return [max(scores) - min(scores) for scores in by_line]

    @cached_property
    def differing(self) -> list[int]:
        """Lines where systems' BLEU differs, those where it differs most first."""
        lines = self._ranked(lambda line: (-self.spread[line], line))
        return [line for line in lines if self.spread[line] > 0]

    def by_interest(self) -> list[int]:
        """All lines, the most informative first, in case there is room for only some.

        First the short lists; then in turn a line where systems differ, one that all translate
        well, one that all translate badly, and one of an even sample of the set.
        """
        first = [each(system)[:MOST] for system in self.outputs for each in (self.best, self.worst)]
        means = list(map(fmean, zip(*(o.bleu for o in self.outputs.values()), strict=True)))
        ranked = self._ranked(lambda line: (-means[line], line))
        # the golden section's multiples, modulo 1: any number of the first ones lie evenly
        even = self._ranked(lambda line: (line * 0.6180339887498949) % 1)
        turns = chain(*zip_longest(self.differing, ranked, ranked[::-1], even))
        lines = dict.fromkeys(chain(self.differing[:MOST], *first, turns))
        return [line for line in lines if line is not None]

    def _ranked(self, key: Callable[[int], object]) -> list[int]:
        return sorted(range(len(self.sources)), key=key)  # type: ignore[arg-type]


def lines_of_sets(context: ReportContext) -> Iterator[SetLines]:
    """Every test set, with the outputs of the first seed.

    Raises UserError if a file is not the one that was scored.
    """
    columns: dict[tuple[str, str], list[SystemResult]] = {}
    for result in context.results:
        columns.setdefault((result.corpus, result.test), []).append(result)
    for results in columns.values():
        yield _read(context, results)


def shown_systems(results: Sequence[SystemResult], most: int = SYSTEMS) -> list[str]:
    """At most `most` systems of a test set, in their order.

    The baseline and the best are chosen first, then those with the smallest p.
    """
    best = max(results, key=lambda result: result.bleu.mean)

    def rank(result: SystemResult) -> tuple[bool, bool, float, float]:
        difference = result.difference
        if difference is None:
            return False, False, 0.0, 0.0
        return True, result is not best, difference.p, -abs(difference.bleu)

    chosen = {result.system for result in sorted(results, key=rank)[:most]}
    return [s.system for s in results if s.system in chosen]


def _read(context: ReportContext, results: Sequence[SystemResult]) -> SetLines:
    corpus, test = results[0].corpus, results[0].test
    entry = context.settings.corpus(corpus)
    outputs, systems = {}, shown_systems(results)
    for system in systems:
        cell = Cell(system, corpus, context.settings.seeds[0])
        run = CellResults.open(context.settings, cell, context.root)
        references, translations = run.lines(test)
        bleu = sentence_bleu(translations, references, entry.target)
        outputs[system] = Output(translations, bleu)
    return SetLines(
        corpus=corpus,
        test=test,
        languages=(entry.source, entry.target),
        baseline=results[0].system,
        sources=run.sources(test),
        references=references,
        outputs=outputs,
        left_out=len(results) - len(systems),
    )
