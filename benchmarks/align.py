"""Measures the alignment of documents cut from the phrasebook: F1 of beads, seconds and memory.

    python benchmarks/align.py --faults 0.05 0.15 --seeds 1 2 3
    python benchmarks/align.py --pairs 100000 --repeat 3
    python benchmarks/align.py --pairs 100000 --length 100000 --repeat 3

A bead is a group of sentences that translate each other. In a share of the pairs (`--faults`), a
sentence of one side is lost, joined with the next, or split in its middle. A bead counts as found
if exactly its sentences were aligned. The column `lengths` shows F1 after the first pass, which
sees lengths only; `words` shows F1 of the whole alignment. Seconds are the best of the repeats;
memory is the peak of the main process.
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

from bleuprint.corpus.alignment.align import Document, align, align_by_lengths, length_ratio
from bleuprint.corpus.alignment.gale_church import LengthScorer
from bleuprint.corpus.alignment.lattice import Bead, best_path
from bleuprint.runtime import environment
from documents import cut_into_documents, f1
from tools.phrasebook import english, french, german
from tools.phrasebook.grammar import Writer

TARGET_LANGUAGES = {"de": german, "fr": french}
# Shorter and longer sentences of the grammar are left out.
MIN_SPACES = 2
MAX_SPACES = 21
COLUMNS = (
    "| en to | pairs a document | faults | seed | sentences | lengths | words | seconds | MB |"
)


def main() -> None:
    """Print a row for each language, share of faults and seed."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    languages = list(TARGET_LANGUAGES)
    parser.add_argument("--pairs", type=int, default=14_000)
    parser.add_argument("--length", type=int, default=30, help="pairs a document")
    parser.add_argument("--faults", type=float, nargs="+", default=[0.05])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--languages", nargs="+", choices=languages, default=languages)
    parser.add_argument("--repeat", type=int, default=1)
    arguments = parser.parse_args()
    print(f"{environment.worker_count()} workers")
    print(COLUMNS)
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    for language in arguments.languages:
        pairs = list(islice(phrasebook_pairs(language), arguments.pairs))
        for fault_share in arguments.faults:
            for seed in arguments.seeds:
                documents, true_beads = cut_into_documents(
                    pairs, arguments.length, fault_share, seed
                )
                row = measured_row(documents, true_beads, arguments.repeat)
                start = f"| {language} | {arguments.length} | {fault_share:.0%} | {seed}"
                print(f"{start} | {row} |", flush=True)


def phrasebook_pairs(language: str) -> Iterator[tuple[str, str]]:
    """Yield different English sentences with their translations, without end.

    Args:
        language: The target language, a key of `TARGET_LANGUAGES`.
    """
    writer = Writer(1)
    sentences_seen = set[str]()
    while True:
        tree = writer.sentence()
        source = english.sentence(tree)
        target = TARGET_LANGUAGES[language].sentence(tree)
        has_fitting_length = MIN_SPACES <= source.count(" ") <= MAX_SPACES
        if has_fitting_length and source not in sentences_seen:
            sentences_seen.add(source)
            yield source, target


def measured_row(documents: list[Document], true_beads: list[list[Bead]], repeats: int) -> str:
    """Align the sentences of documents, and return the measured part of a row of the table.

    A bead is a small group of source and target sentences that translate each other. The alignment
    of a document is a list of beads, which is compared with the true one by F1.

    Args:
        documents: The documents.
        true_beads: The true beads of each document.
        repeats: How often the documents are aligned; the best time counts.
    """
    times = []
    for _ in range(repeats):
        start = time.monotonic()
        beads = list(align(documents, environment.worker_count()))
        times.append(time.monotonic() - start)
    source_count = sum(len(document.source) for document in documents)
    target_count = sum(len(document.target) for document in documents)
    f1_by_lengths = f1(true_beads, beads_by_lengths(documents))
    f1_by_words = f1(true_beads, beads)
    peak_kibibytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return (
        f"{source_count:,} + {target_count:,} | {f1_by_lengths:.4f} | {f1_by_words:.4f} "
        f"| {min(times):.1f} | {peak_kibibytes // 1024}"
    )


def beads_by_lengths(documents: list[Document]) -> Iterator[list[Bead]]:
    """Yield the beads of each document as aligned by sentence lengths alone, without words.

    This is the first of the two passes of the aligner.

    Args:
        documents: The documents, each with its source and its target sentences.
    """
    ratio = length_ratio(documents)
    for document in documents:
        band = align_by_lengths(ratio, document).band
        yield best_path(band, LengthScorer.from_sentences(*document, ratio))


if __name__ == "__main__":
    main()
