"""The lines of a test set with the outputs of several systems, ranked for the page."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path

from bleuprint.config.paths import Cell, folder
from bleuprint.report.page.material import Material
from bleuprint.report.system_results import Standing
from bleuprint.scoring.sentence_scores import sentence_bleu
from bleuprint.text.parallel import TextFolder, read_lines
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
        means = [
            sum(s) / len(s) for s in zip(*(o.bleu for o in self.outputs.values()), strict=True)
        ]
        ranked = self._ranked(lambda line: (-means[line], line))
        # the golden section's multiples, modulo 1: any number of the first ones lie evenly
        even = self._ranked(lambda line: (line * 0.6180339887498949) % 1)
        turns = _in_turn(self.differing, ranked, ranked[::-1], even)
        return list(dict.fromkeys(chain(self.differing[:MOST], *first, turns)))

    def _ranked(self, key: Callable[[int], object]) -> list[int]:
        return sorted(range(len(self.sources)), key=key)  # type: ignore[arg-type]


def lines_of_sets(material: Material) -> Iterator[SetLines]:
    """Every test set, with the outputs of the first seed.

    Raises UserError where a file is not the one that was scored.
    """
    columns: dict[tuple[str, str], list[Standing]] = {}
    for standing in material.standings:
        columns.setdefault((standing.corpus, standing.test), []).append(standing)
    for (corpus, test), standings in columns.items():
        yield _read(material, corpus, test, standings)


def shown_systems(standings: Sequence[Standing], most: int = SYSTEMS) -> list[str]:
    """At most `most` systems of a test set, in their order.

    The baseline and the best are chosen first, then those with the smallest p.
    """
    best = max(standings, key=lambda standing: standing.bleu.mean)

    def rank(standing: Standing) -> tuple[bool, bool, float, float]:
        difference = standing.difference
        if difference is None:
            return False, False, 0.0, 0.0
        return True, standing is not best, difference.p, -abs(difference.bleu)

    chosen = {standing.system for standing in sorted(standings, key=rank)[:most]}
    return [s.system for s in standings if s.system in chosen]


def _read(material: Material, corpus: str, test: str, standings: Sequence[Standing]) -> SetLines:
    settings, root = material.settings, material.root
    entry = settings.corpus(corpus)
    outputs, references = {}, list[str]()
    systems = shown_systems(standings)
    for system in systems:
        cell = Cell(system, corpus, settings.seeds[0])
        references, translations = CellResults.open(settings, cell, root).lines(test)
        outputs[system] = Output(
            translations, sentence_bleu(translations, references, entry.target)
        )
    return SetLines(
        corpus=corpus,
        test=test,
        languages=(entry.source, entry.target),
        baseline=standings[0].system,
        sources=list(read_lines(_sources(material, corpus, test))),
        references=references,
        outputs=outputs,
        left_out=len(standings) - len(systems),
    )


def _sources(material: Material, corpus: str, test: str) -> Path:
    entry = material.settings.corpus(corpus)
    texts = TextFolder(folder(corpus, "split", material.root), entry.source, entry.target)
    return texts.files(f"test.{test}")[0]


def _in_turn(*lists: Sequence[int]) -> Iterator[int]:
    for rank in range(max(map(len, lists), default=0)):
        yield from (each[rank] for each in lists if rank < len(each))
