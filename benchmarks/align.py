"""Alignment of documents cut from the phrasebook: F1 of beads, seconds and memory.

    python benchmarks/align.py --faults 0.05 0.15 --seeds 1 2 3
    python benchmarks/align.py --pairs 100000 --repeat 3
    python benchmarks/align.py --pairs 100000 --length 100000 --repeat 3

Of a pair in each 1/faults, a sentence of one side is lost, joined with the next, or split in its
middle. A bead counts as found if exactly its sentences were aligned. `lengths`: the first pass
alone. The grammar writes more pairs than the corpus has with another seed. Seconds are the best of
the repeats, and those of the whole alignment; peak memory is that of the main process.
"""

import argparse
import resource
import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))

from bleuprint.corpus.alignment.align import Document, align, align_by_lengths
from bleuprint.corpus.alignment.gale_church import LengthScorer
from bleuprint.corpus.alignment.lattice import Bead, best_path
from bleuprint.runtime import environment
from documents import cut, f1
from tools.phrasebook import english, french, german
from tools.phrasebook.grammar import Writer

_LANGUAGES = {"de": german, "fr": french}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=14_000)
    parser.add_argument("--length", type=int, default=30, help="pairs a document")
    parser.add_argument("--faults", type=float, nargs="+", default=[0.05])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--languages", nargs="+", choices=_LANGUAGES, default=list(_LANGUAGES))
    parser.add_argument("--repeat", type=int, default=1)
    given = parser.parse_args()
    print(f"{environment.worker_count()} workers")
    print(
        "| en to | pairs a document | faults | seed | sentences | lengths | words | seconds | MB |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    for language in given.languages:
        pairs = list(islice(_pairs(language), given.pairs))
        for faults in given.faults:
            for seed in given.seeds:
                documents, truth = cut(pairs, given.length, faults, seed)
                seconds, found = min(
                    (_timed(documents) for _ in range(given.repeat)), key=lambda run: run[0]
                )
                sentences = " + ".join(
                    f"{sum(len(text[side]) for text in documents):,}" for side in (0, 1)
                )
                print(
                    f"| {language} | {given.length} | {faults:.0%} | {seed} | {sentences} "
                    f"| {f1(truth, _by_lengths(documents)):.4f} | {f1(truth, found):.4f} "
                    f"| {seconds:.1f} | {_peak_mb()} |",
                    flush=True,
                )


def _pairs(language: str) -> Iterator[tuple[str, str]]:
    writer, seen = Writer(1), set[str]()
    while True:
        tree = writer.sentence()
        source, target = english.sentence(tree), _LANGUAGES[language].sentence(tree)
        if 1 < source.count(" ") < 22 and source not in seen:
            seen.add(source)
            yield source, target


def _timed(documents: list[Document]) -> tuple[float, list[list[Bead]]]:
    begin = time.monotonic()
    found = list(align(documents, environment.worker_count()))
    return time.monotonic() - begin, found


def _by_lengths(documents: list[Document]) -> Iterator[list[Bead]]:
    sides = [sum(len(line) for text in documents for line in text[side]) for side in (0, 1)]
    for text in documents:
        ratio = sides[1] / sides[0]
        yield best_path(
            align_by_lengths(ratio, text).band, LengthScorer.from_sentences(*text, ratio)
        )


def _peak_mb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


if __name__ == "__main__":
    main()
