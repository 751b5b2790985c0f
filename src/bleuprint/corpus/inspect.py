"""The command inspect: runs clean, dedup and filter on the first pairs of a corpus."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bleuprint.config import paths
from bleuprint.config.experiment import Corpus
from bleuprint.corpus.clean import Cleaning
from bleuprint.corpus.dedup import Deduplication
from bleuprint.corpus.download.download import download_corpus
from bleuprint.corpus.download.fetch import Source
from bleuprint.corpus.filter import Filtering
from bleuprint.corpus.steps.ledger import SetCounts, read_ledgers
from bleuprint.corpus.steps.sharded import Step, run_step
from bleuprint.text.parallel import TextFolder


def inspect_corpus(
    name: str, corpus: Corpus, pairs: int, source: Source, scratch: Path, workers: int
) -> dict[str, SetCounts]:
    """The counts of train in clean, dedup and filter, as in their ledgers.

    Only the first `pairs` pairs of each file are read: later duplicates are not found. Outputs go
    to a temporary folder below `scratch`; those of the stages are not changed.
    """
    scratch.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=scratch) as folder:
        root = Path(folder)
        raw = TextFolder(paths.folder(name, "raw", root), corpus.source, corpus.target)
        ledger = paths.ledger(name, "download", root)
        download_corpus(name, corpus.files, raw, ledger, source, pairs)
        steps: dict[str, Step] = {
            "clean": Cleaning.of(name, corpus, root),
            "dedup": Deduplication.of(name, corpus, root),
            "filter": Filtering.of(name, corpus, root),
        }
        for stage, step in steps.items():
            run_step(step, paths.shards(name, stage, root), None, workers)
        ledgers = read_ledgers(name, root, list(steps))
        return {stage: sets["train"] for stage, sets in ledgers.items()}


def report(stages: dict[str, SetCounts], samples: int) -> Iterator[str]:
    """The lines that `bleuprint inspect` prints, rule by rule."""
    for stage, counts in stages.items():
        yield f"{stage}: {counts.pairs_in:,} pairs in, {counts.pairs_out:,} out"
        for action, rules in ("changed", counts.changed), ("dropped", counts.dropped):
            for rule, count in rules.items():
                yield f"  {rule}: {count:,} {action} ({count / max(counts.pairs_in, 1):.2%})"
                yield from _samples(counts.samples.get(rule, [])[:samples])


def _samples(samples: Iterable[dict[str, Any]]) -> Iterator[str]:
    for sample in samples:
        number = f"{sample['pair']:>10}"
        for side in ("source", "target"):
            yield f"{number}  {visible(sample[side])}"
            number = " " * len(number)
            new = sample.get(f"new_{side}", sample[side])
            if new != sample[side]:
                yield f"{number}> {visible(new)}"


def visible(text: str) -> str:
    """`text` with characters that are not printable as Python's escapes."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
