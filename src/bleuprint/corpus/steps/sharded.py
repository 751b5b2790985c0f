"""Runs a stage on the training text of a corpus, whole or in shards.

A stage is a `Step`: it processes each shard of the training text into a folder of its own, then
gathers the shards, in the order of their numbers, into its output. Without shards, the training
text is one shard.
"""

import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import ClassVar, Self

from bleuprint.config import paths
from bleuprint.config.corpus import Corpus
from bleuprint.corpus.steps.directions import join_pairs, texts_of_all_pairs
from bleuprint.corpus.steps.filter_stats import FilterStats, read_filter_stats
from bleuprint.corpus.steps.shard import Shard
from bleuprint.runtime import fingerprint
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import atomic_folder, read_bytes, sha256_of
from bleuprint.text.parallel import Block, TextFolder

# The file of a shard that says of what it was made: settings, and the bytes of the whole text.
_MADE_OF = "made-of"


@dataclass(frozen=True)
class Step(ABC):
    """One stage on one corpus: it reads `before`, and writes `output` and `filter_stats`."""

    stage: ClassVar[str]
    corpus: str
    before: TextFolder
    output: Path
    filter_stats: Path

    @classmethod
    @abstractmethod
    def for_corpus(cls, name: str, corpus: Corpus, root: Path = Path()) -> Self:
        """The stage with the settings and paths of a corpus."""

    @abstractmethod
    def process_shard(self, shard: Shard, part: Path, workers: int) -> None:
        """Process a shard of train into the folder `part`."""

    @abstractmethod
    def gather(self, parts: Sequence[Path], workers: int) -> None:
        """Write the stage's output from the shards in `parts` and the held-out sets."""

    @property
    def rules(self) -> tuple[str, ...]:
        """The names of the rules that may drop a pair."""
        return ()

    @property
    def edit_names(self) -> tuple[str, ...]:
        """The names of the edits that may change a pair."""
        return ()

    @property
    def settings_sha256(self) -> str:
        """The fingerprint of the settings: of all fields except paths."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        kept = {n: v for n, v in values.items() if not isinstance(v, Path | TextFolder | None)}
        return fingerprint.of_settings(kept)

    def new_filter_stats(self) -> FilterStats:
        """The stage's filtering statistics, without sets."""
        names = self.rules, self.edit_names
        return FilterStats(self.stage, self.corpus, self.settings_sha256, *names)

    @property
    def texts_of_all_pairs(self) -> list[TextFolder]:
        """What the stage reads of all language pairs of the corpus, `before` among them."""
        return texts_of_all_pairs(self.corpus, self.before)

    def shard_blocks(self, shard: Shard) -> tuple[Iterator[Block], int]:
        """The blocks of a shard of train, and its number of pairs."""
        total = self.before.count("train")
        start, stop = shard.bounds(total)
        return self.before.blocks("train", start, stop), (total if stop is None else stop) - start


def run_step(step: Step, shards: Path, work: Shard | int | None, workers: int) -> None:
    """Process one shard, gather a number of shards, or do both for the whole text (None).

    Shards are kept in folders below `shards`, those of each language pair in a folder of its own.
    """
    # Of a text that is processed whole, nothing can change between its shard and the gathering.
    made_of = "" if work is None else _made_of(step)
    if not isinstance(work, int):
        folder = paths.of_pair(shards / str(work or Shard()), step.corpus)
        with atomic_folder(folder) as part:
            step.process_shard(work or Shard(), part, workers)
            (part / _MADE_OF).write_text(made_of)
    if isinstance(work, Shard):
        return
    parts = [paths.of_pair(shards / str(shard), step.corpus) for shard in Shard.all(work or 1)]
    try:
        for part in parts:
            if not part.is_dir():
                raise UserError(f"{part}: no such shard to gather")
            if read_bytes(part / _MADE_OF) != made_of.encode():
                what = "made of another text or under other settings"
                raise UserError(f"{part}: {what}: remove {part.parent}")
        step.gather(parts, workers)
    finally:
        if work is None:
            shutil.rmtree(parts[0], ignore_errors=True)


def _made_of(step: Step) -> str:
    """The fingerprint of the settings, and the SHA-256 of both sides of the training text."""
    return " ".join([step.settings_sha256, *map(sha256_of, step.before.files("train"))])


def run_and_print(step: Step, shards: Path, work: Shard | int | None, workers: int) -> None:
    """Run a step, and print what each rule did to train unless `work` is one shard."""
    run_step(step, shards, work, workers)
    if not isinstance(work, Shard):
        print(
            f"{step.stage} {step.corpus}: {read_filter_stats(step.filter_stats)['train'].summary}"
        )


def run_on_pairs(name: str, corpus: Corpus, stage: str, run: Callable[[str, Corpus], None]) -> None:
    """Run a stage on each language pair of a corpus, and join what it wrote.

    Args:
        name: The name of the corpus.
        corpus: The corpus.
        stage: The name of the stage.
        run: Runs the stage on the pair with this name.
    """
    for pair_name, pair in corpus.pairs(name).items():
        run(pair_name, pair)
    join_pairs(name, corpus, stage)


def run_step_on_pairs(
    kind: type[Step],
    name: str,
    corpus: Corpus,
    work: Shard | int | None,
    workers: int,
    run: Callable[[Step, Path, Shard | int | None, int], None] = run_and_print,
) -> None:
    """Run a step on each language pair of a corpus.

    Args:
        kind: The stage.
        name: The name of the corpus.
        corpus: The corpus.
        work: One shard to process, a number of shards to gather, or None for both at once.
        workers: The number of processes.
        run: Runs the step on one pair.
    """
    shards = paths.shards(name, kind.stage)
    for pair_name, pair in corpus.pairs(name).items():
        run(kind.for_corpus(pair_name, pair), shards, work, workers)
    if not isinstance(work, Shard):
        join_pairs(name, corpus, kind.stage)


def step_files(
    name: str, corpus: Corpus, before: str, after: str, root: Path, stage: str = ""
) -> tuple[str, TextFolder, Path, Path]:
    """A step's corpus, input, output and statistics; an empty `stage` is `after`."""
    text = TextFolder(paths.folder(name, before, root), corpus.source, corpus.target)
    return (
        name,
        text,
        paths.folder(name, after, root),
        paths.filter_stats(name, stage or after, root),
    )
