"""Runs a stage on the training text of a corpus, as a whole or in shards.

A stage is a `Step`. It processes each shard of the training text into a folder of its own; then it
gathers the shards, in the order of their numbers, into its output. So the output does not depend on
the number of shards, nor on the order in which they were processed.
"""

import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

from bleuprint.config import paths
from bleuprint.config.corpus import Corpus
from bleuprint.corpus.steps.directions import join_pairs, texts_of_all_pairs
from bleuprint.corpus.steps.filter_stats import FilterStats, read_filter_stats
from bleuprint.corpus.steps.shard import AllShards, Shard, WholeText, Work
from bleuprint.runtime import fingerprint
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import atomic_folder, read_bytes, sha256_of
from bleuprint.text.parallel import Block, TextFolder

# The file in a shard's folder that identifies its settings and the whole training text.
_ORIGIN_FILE = "made-of"


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
        """Create the step for a corpus.

        Args:
            name: The name of the corpus.
            corpus: The settings of the corpus.
            root: The folder of the project.
        """

    @abstractmethod
    def process_shard(self, shard: Shard, part: Path, workers: int) -> None:
        """Process one shard of the training text.

        Args:
            shard: The shard.
            part: The folder to write to.
            workers: The number of processes.
        """

    @abstractmethod
    def gather(self, parts: Sequence[Path], workers: int) -> None:
        """Write the output of the stage and its filtering statistics.

        Args:
            parts: The folders of all processed shards, in the order of their numbers.
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
        """The fingerprint of the settings: of all fields that are not paths or texts."""
        settings: dict[str, Any] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None and not isinstance(value, Path | TextFolder):
                settings[field.name] = value
        return fingerprint.of_settings(settings)

    def new_filter_stats(self) -> FilterStats:
        """Return filtering statistics for this stage, which contain no set yet."""
        return FilterStats(
            stage=self.stage,
            corpus=self.corpus,
            settings=self.settings_sha256,
            rules=self.rules,
            edits=self.edit_names,
        )

    @property
    def texts_of_all_pairs(self) -> list[TextFolder]:
        """The input texts of all language pairs of the corpus, `input_text` among them."""
        return texts_of_all_pairs(self.corpus, self.input_text)

    def shard_blocks(self, shard: Shard) -> tuple[Iterator[Block], int]:
        """Return the blocks of a shard of the training text, and the number of its pairs."""
        text_pairs = self.input_text.count("train")
        start, stop = shard.bounds(text_pairs)
        blocks = self.input_text.blocks("train", start, stop)
        shard_pairs = (text_pairs if stop is None else stop) - start
        return blocks, shard_pairs


class StepFiles(NamedTuple):
    """The fields that every `Step` has, in the same order.

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
    """Return the input and the outputs of a stage for a corpus.

    Args:
        name: The name of the corpus.
        corpus: The settings of the corpus.
        root: The folder of the project.
        stage: The name of the stage.
        input_folder: The folder in data/ that the stage reads, such as `split`.
        output_folder: The folder in data/ that the stage writes, such as `tokens`.
    """
    return StepFiles(
        corpus=name,
        input_text=TextFolder(
            path=paths.corpus_folder(name, input_folder, root),
            source=corpus.source,
            target=corpus.target,
        ),
        output=paths.corpus_folder(name, output_folder, root),
        filter_stats_path=paths.filter_stats_file(name, stage, root),
    )


def run_step(step: Step, shards_folder: Path, work: Work, workers: int) -> None:
    """Run a step: process one shard, gather all shards, or do both for the whole text.

    Args:
        step: The step.
        shards_folder: The folder for the processed shards.
        work: What this process works on.
        workers: The number of processes for it.

    Raises:
        UserError: A shard to gather is missing, or was made from another text or other settings.
    """
    match work:
        case Shard():
            _process_shard(step, work, shards_folder, workers, origin=_origin(step))
        case AllShards():
            _gather_shards(step, work, shards_folder, workers)
        case WholeText():
            _process_whole_text(step, shards_folder, workers)


def _process_shard(
    step: Step, shard: Shard, shards_folder: Path, workers: int, origin: str
) -> None:
    """Process a shard into its folder, which is written completely or not at all."""
    with atomic_folder(_shard_folder(step, shard, shards_folder)) as part:
        step.process_shard(shard, part, workers)
        (part / _ORIGIN_FILE).write_text(origin)


def _gather_shards(step: Step, shards: AllShards, shards_folder: Path, workers: int) -> None:
    """Write the output of a step from its shards, after comparing where they come from."""
    origin = _origin(step)
    parts = []
    for shard in Shard.all(shards.total):
        part = _shard_folder(step, shard, shards_folder)
        if not part.is_dir():
            raise UserError(f"{part}: shard {shard} is missing. Process it before you gather")
        if read_bytes(part / _ORIGIN_FILE) != origin.encode():
            raise UserError(
                f"{part}: made from another text or with other settings. Remove all shards, then "
                f"process them again: rm -r {shards_folder}"
            )
        parts.append(part)
    step.gather(parts, workers)


def _process_whole_text(step: Step, shards_folder: Path, workers: int) -> None:
    """Process the training text as one shard, gather it, and remove the shard's folder."""
    only_shard = Shard(number=1, total=1)
    # Nothing can change the text or the settings before this process gathers its own shard.
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
    """Return what a shard is made from: the settings and both sides of the text, as SHA-256."""
    source_file, target_file = step.input_text.files("train")
    return f"{step.settings_sha256} {sha256_of(source_file)} {sha256_of(target_file)}"


def run_step_on_pairs(
    step_class: type[Step],
    name: str,
    corpus: Corpus,
    work: Work,
    workers: int,
    *,
    has_summary: bool = True,
) -> None:
    """Run a step on each language pair of a corpus, and join what it wrote.

    Args:
        step_class: The stage.
        name: The name of the corpus.
        corpus: The settings of the corpus.
        work: What this process works on.
        workers: The number of processes.
        has_summary: Whether to print what each rule did to the training text.
    """
    shards_folder = paths.shards_folder(name, step_class.stage)
    for pair_name, pair in corpus.language_pairs(name).items():
        step = step_class.for_corpus(pair_name, pair)
        if has_summary:
            run_and_print(step, shards_folder, work, workers)
        else:
            run_step(step, shards_folder, work, workers)
    if not isinstance(work, Shard):
        join_pairs(name, corpus, step_class.stage)


def run_and_print(step: Step, shards_folder: Path, work: Work, workers: int) -> None:
    """Run a step; once its output is written, print what each rule did to the training text."""
    run_step(step, shards_folder, work, workers)
    if isinstance(work, Shard):
        return
    train = read_filter_stats(step.filter_stats_path)["train"]
    print(f"{step.stage} {step.corpus}: {train.summary}")


def run_on_pairs(name: str, corpus: Corpus, stage: str, run: Callable[[str, Corpus], None]) -> None:
    """Run a stage without shards on each language pair of a corpus, and join what it wrote.

    Args:
        name: The name of the corpus.
        corpus: The settings of the corpus.
        stage: The name of the stage.
        run: Runs the stage on one language pair; it gets the pair's name and its settings.
    """
    for pair_name, pair in corpus.language_pairs(name).items():
        run(pair_name, pair)
    join_pairs(name, corpus, stage)
