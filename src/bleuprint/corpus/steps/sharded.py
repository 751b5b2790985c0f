"""Runs a stage on the training text of a corpus, as a whole or in shards.

A stage is a `Step`. It processes each shard of the training text into a folder of its own; then it
gathers the shards, in the order of their numbers, into its output. So the output does not depend on
the number of shards, nor on the order in which they were processed.
"""

import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

from bleuprint.config import paths
from bleuprint.config.corpus import Corpus
from bleuprint.corpus.stage_text import text_of_stage
from bleuprint.corpus.steps.directions import join_pairs, texts_of_all_pairs
from bleuprint.corpus.steps.filter_stats import FilterStats, read_filter_stats
from bleuprint.corpus.steps.shard import AllShards, Shard, TextToIndex, WholeText, Work
from bleuprint.corpus.steps.text_index import (
    training_text_sha256,
    with_text_index,
    write_text_index,
)
from bleuprint.runtime import fingerprint
from bleuprint.runtime.atomic_files import atomic_folder
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.regular_files import read_bytes
from bleuprint.text.parallel import Block, TextFolder

# The file in a shard's folder that identifies its settings and the whole training text.
_ORIGIN_FILE = "made-of"
# The folder beside the folders of the shards with the index of the training text.
INDEX_FOLDER = "index"


@dataclass(frozen=True)
class Step(ABC):
    """One data stage on one corpus.

    The fields that subclasses add are the settings of the stage: `settings_sha256` hashes them by
    name, so renaming such a field changes the fingerprint of the settings.

    Attributes:
        stage: The name of the stage in dvc.yaml.
        corpus: The name of the corpus, or of one language pair of it.
        input_text: The text that the stage reads.
        output: The folder that the stage writes.
        filter_stats_path: The file for the filtering statistics of the stage.
    """

    stage: ClassVar[str]
    corpus: str
    input_text: TextFolder
    output: Path
    filter_stats_path: Path

    @classmethod
    @abstractmethod
    def for_corpus(cls, name: str, corpus: Corpus, root: Path = Path()) -> Self:
        """Set up this stage for one corpus: what it reads and writes, and its settings.

        Args:
            name: Corpus name, such as `multi30k`.
            corpus: The settings of the corpus.
            root: The project folder; by default the current folder.
        """

    @abstractmethod
    def process_shard(self, shard: Shard, part: Path, workers: int) -> None:
        """Process one part of the training text, for example on one of several machines.

        Args:
            shard: Which part of the training text to read.
            part: The folder to write to. `gather` reads it.
            workers: The number of processes.
        """

    @abstractmethod
    def gather(self, parts: Sequence[Path], workers: int) -> None:
        """Combine the processed parts of the training text into the output of the stage.

        The filtering statistics are written as well: how many pairs were kept, changed and dropped.

        Args:
            parts: The folders that `process_shard` has written, in the order of the text.
            workers: The number of processes.
        """

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
        """A hash of the stage's settings, by which results of other settings are recognized.

        The settings are all fields of this object except paths, texts, and fields without a value.
        """
        settings: dict[str, Any] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None and not isinstance(value, Path | TextFolder):
                settings[field.name] = value
        return fingerprint.of_settings(settings)

    def new_filter_stats(self) -> FilterStats:
        """Create the filtering statistics of this stage, to which data sets are then added.

        They will say how many pairs were kept, changed by each edit, and dropped by each rule.
        """
        return FilterStats(
            stage=self.stage,
            corpus=self.corpus,
            settings=self.settings_sha256,
            rules=self.rules,
            edits=self.edit_names,
        )

    def write_index(self, folder: Path) -> None:
        """Read the training text once, and write what the processes of its shards need of it.

        Args:
            folder: The folder to write to. `with_index` reads it.
        """
        write_text_index(self.input_text, folder)

    def with_index(self, folder: Path) -> Self:
        """Return this stage with an index, by which it finds a shard without reading the others.

        Args:
            folder: The folder that `write_index` has written. If it does not exist, nothing
                changes: a process then reads the training text up to the end of its shard.

        Raises:
            UserError: The training text has changed since it was indexed.
        """
        remedy = f"Remove {folder}, or index the text again with --index"
        return replace(self, input_text=with_text_index(self.input_text, folder, remedy))

    @property
    def texts_of_all_pairs(self) -> list[TextFolder]:
        """The input texts of all language pairs of the corpus, `input_text` among them."""
        return texts_of_all_pairs(self.corpus, self.input_text)

    def shard_blocks(self, shard: Shard) -> tuple[Iterator[Block], int]:
        """Read a shard, that is, one of several equal parts of the training text.

        Returns:
            The sentence pairs of the shard in blocks, and their number.
        """
        text_pair_count = self.input_text.count("train")
        start, stop = shard.bounds(text_pair_count)
        blocks = self.input_text.blocks("train", start, stop)
        # The last shard ends with the text, which `bounds` expresses by None.
        if stop is None:
            stop = text_pair_count
        return blocks, stop - start


class StepFiles(NamedTuple):
    """What every `Step` reads and writes.

    Attributes:
        corpus: The name of the corpus.
        input_text: The text that the stage reads.
        output: The folder that the stage writes.
        filter_stats_path: The file for its filtering statistics.
    """

    corpus: str
    input_text: TextFolder
    output: Path
    filter_stats_path: Path


def step_files(
    name: str,
    corpus: Corpus,
    root: Path,
    *,
    stage: str,
    input_folder: str,
    output_folder: str,
) -> StepFiles:
    """Return which text a stage reads, and which folder and file it writes.

    The stage tokenize, for example, reads data/split/CORPUS and writes data/tokens/CORPUS. Each
    stage also writes a file of filtering statistics: how many pairs it kept, changed and dropped.

    Args:
        name: Corpus name, such as `multi30k`.
        corpus: The settings of the corpus.
        root: The project folder.
        stage: The name of the stage, such as `tokenize`.
        input_folder: The folder in data/ that the stage reads, such as `split`.
        output_folder: The folder in data/ that the stage writes, such as `tokens`.
    """
    return StepFiles(
        corpus=name,
        input_text=text_of_stage(input_folder, name, corpus, root),
        output=paths.corpus_folder(name, output_folder, root),
        filter_stats_path=paths.filter_stats_file(name, stage, root),
    )


def run_step(step: Step, shards_folder: Path, work: Work, workers: int) -> None:
    """Run a stage on a training text, which may be divided into equal parts, its shards.

    To use several machines, start a process that indexes the text, then one process for each shard,
    and then a last process that gathers all shards into the output. Without the first one, the
    processes of the shards read the whole text. Without shards, one process does it all.

    Args:
        step: The stage, set up for a corpus.
        shards_folder: The folder for processed shards.
        work: What this process does: index the text, process one shard, gather all shards, or
            process and gather the whole text.
        workers: The number of worker processes that it may start.

    Raises:
        UserError: A shard to gather is missing, or was made from another text or other settings; or
            the text has changed since it was indexed.
    """
    index_folder = paths.pair_folder(shards_folder / INDEX_FOLDER, step.corpus)
    match work:
        case TextToIndex():
            with atomic_folder(index_folder) as folder:
                step.write_index(folder)
        case Shard():
            indexed_step = step.with_index(index_folder)
            # The origin, hashes of the settings and the text, is compared when shards are gathered.
            origin = _origin(indexed_step)
            _process_shard(indexed_step, work, shards_folder, workers, origin)
        case AllShards():
            _gather_shards(step, work, shards_folder, workers)
        case WholeText():
            _process_whole_text(step, shards_folder, workers)


def _process_shard(
    step: Step, shard: Shard, shards_folder: Path, workers: int, origin: str
) -> None:
    """Process one part of a training text, and write the result to a folder when it is complete.

    Args:
        step: The stage, set up for a corpus.
        shard: Which part of the training text to process.
        shards_folder: The folder in which each shard has a folder.
        workers: The number of processes.
        origin: A text that identifies the input text and the settings, by their hashes. It is
            stored with the shard; when shards are combined, all must have the same origin.
    """
    with atomic_folder(_shard_folder(step, shard, shards_folder)) as part:
        step.process_shard(shard, part, workers)
        (part / _ORIGIN_FILE).write_text(origin)


def _gather_shards(step: Step, shards: AllShards, shards_folder: Path, workers: int) -> None:
    """Combine the processed parts of a training text, its shards, into the output of a stage.

    Args:
        step: The stage, set up for a corpus.
        shards: How many shards there are.
        shards_folder: The folder in which each shard has a folder.
        workers: The number of processes.

    Raises:
        UserError: A shard is missing; or it was made from another text or with other settings, for
            example because params.yaml has changed since.
    """
    origin = _origin(step)
    parts = []
    for shard in Shard.all(shards.total):
        part = _shard_folder(step, shard, shards_folder)
        if not part.is_dir():
            raise UserError(f"{part}: shard {shard} is missing. Process it before you gather")
        if read_bytes(part / _ORIGIN_FILE) != origin.encode():
            raise UserError(
                f"{part}: this shard was made from another text or with other settings. Remove all "
                f"shards, then process them again: rm -r {shards_folder}"
            )
        parts.append(part)
    step.gather(parts, workers)


def _process_whole_text(step: Step, shards_folder: Path, workers: int) -> None:
    """Run a stage in one process, without dividing the training text.

    The text is processed like a single shard, whose folder is temporary.

    Args:
        step: The stage, set up for a corpus.
        shards_folder: The folder in which each shard has a folder.
        workers: The number of worker processes.
    """
    only_shard = Shard(number=1, total=1)
    # No origin is needed. It identifies the settings of a shard that another process will gather.
    _process_shard(step, only_shard, shards_folder, workers, origin="")
    part = _shard_folder(step, only_shard, shards_folder)
    try:
        step.gather([part], workers)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _shard_folder(step: Step, shard: Shard, shards_folder: Path) -> Path:
    """Return the folder of a processed shard; each language pair of a corpus has its own."""
    return paths.pair_folder(shards_folder / str(shard), step.corpus)


def _origin(step: Step) -> str:
    """Return what a shard is made from: the settings and all files of the text, as SHA-256."""
    return " ".join([step.settings_sha256, *training_text_sha256(step.input_text)])


def run_step_on_pairs(
    step_class: type[Step],
    name: str,
    corpus: Corpus,
    work: Work,
    workers: int,
    *,
    has_summary: bool = True,
) -> None:
    """Run a stage on each language pair of a corpus, and join what it wrote.

    Most corpora have one language pair. A corpus for a multilingual system has several.

    Args:
        step_class: The stage, such as `Filtering`.
        name: Corpus name, such as `multi30k`.
        corpus: The settings of the corpus.
        work: What this process does: process one part of the training text (a shard), combine the
            processed shards, or do both for the whole text.
        workers: The number of processes.
        has_summary: Whether to print how many pairs each rule dropped or changed.
    """
    shards_folder = paths.shards_folder(name, step_class.stage)
    for pair_name, pair in corpus.language_pairs(name).items():
        step = step_class.for_corpus(pair_name, pair)
        if has_summary:
            run_and_print(step, shards_folder, work, workers)
        else:
            run_step(step, shards_folder, work, workers)
    # A process of a single shard, or of an index, writes no output yet that could be joined.
    if not isinstance(work, Shard | TextToIndex):
        join_pairs(name, corpus, step_class.stage)


def run_and_print(step: Step, shards_folder: Path, work: Work, workers: int) -> None:
    """Run a stage, then print how many training pairs it kept, changed and dropped.

    Args:
        step: The stage, set up for a corpus.
        shards_folder: The folder for processed shards, the parts of a training text.
        work: What this process does: process one shard, combine all shards, or do both for the
            whole text.
        workers: The number of worker processes that it may start.
    """
    run_step(step, shards_folder, work, workers)
    # Without the other shards, the numbers are not known yet.
    if isinstance(work, Shard | TextToIndex):
        return
    train = read_filter_stats(step.filter_stats_path)["train"]
    print(f"{step.stage} {step.corpus}: {train.summary}")


def run_on_pairs(name: str, corpus: Corpus, stage: str, run: Callable[[str, Corpus], None]) -> None:
    """Run a stage on each language pair of a corpus, and join what it wrote.

    Most corpora have one language pair. A corpus for a multilingual system has several.

    Args:
        name: Corpus name, such as `multi30k`.
        corpus: The settings of the corpus.
        stage: The name of the stage, such as `split`.
        run: The function that runs the stage on one language pair, called with the name of the
            pair and its settings.
    """
    for pair_name, pair in corpus.language_pairs(name).items():
        run(pair_name, pair)
    join_pairs(name, corpus, stage)
