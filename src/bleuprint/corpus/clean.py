"""The stage clean: turn the raw files of a corpus into one training text of normalized sentences.

`Cleaning` is the stage. `RawText` is what it reads: the downloaded text and the synthetic texts.

Validation and test sets are copied byte for byte, so that systems are scored on what was published.
The stage tokenize applies the same edits to these sets.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from bleuprint.config import paths
from bleuprint.config.corpus import Corpus
from bleuprint.config.synthetic import synthetic_folder
from bleuprint.corpus.steps.filter_stats import SetCounts
from bleuprint.corpus.steps.filtering import FilteredBlock, FilterStep
from bleuprint.corpus.steps.sharded import step_files
from bleuprint.rules.rule import Edits, apply_edit
from bleuprint.text.parallel import Block, Pair, TextFolder, pack_pairs
from bleuprint.text.unicode import collapse_spaces, replace_white_space

# The name of the rule that drops a pair with an empty side, in the filtering statistics.
EMPTY = "empty_side"


@dataclass(frozen=True)
class RawText(TextFolder):
    """The downloaded text of a corpus, with its synthetic texts appended to the training text.

    The downloaded text comes first, because the stage dedup keeps the first of equal pairs.

    Attributes:
        synthetic: The folders of the synthetic texts, in the order in which they are read. A text
            that is repeated n times has n entries.
    """

    synthetic: tuple[Path, ...]

    @classmethod
    def for_corpus(cls, name: str, corpus: Corpus, root: Path = Path()) -> Self:
        """Find the downloaded and the synthetic texts of a corpus.

        Args:
            name: The name of the corpus.
            corpus: The settings of the corpus.
            root: The folder of the experiment.
        """
        synthetic_folders = []
        for text_name, text in corpus.files.synthetic_texts().items():
            repeats = text.repeat or 1
            synthetic_folders += [synthetic_folder(name, text_name, root)] * repeats
        downloaded = paths.download_folder(name, root)
        return cls(downloaded, corpus.source, corpus.target, tuple(synthetic_folders))

    def count(self, name: str) -> int:
        """Return the number of pairs of a set, synthetic pairs included."""
        return sum(text.count(name) for text in self._texts(name))

    def blocks(self, name: str, start: int = 0, stop: int | None = None) -> Iterator[Block]:
        """Yield the pairs of a set in blocks, as if all texts were one file.

        Args:
            name: The name of the set.
            start: The index of the first pair, counted from 0 over all texts.
            stop: The index after the last pair; None to read to the end.
        """
        text_start = 0
        for text in self._texts(name):
            text_stop = text_start + text.count(name)
            first_in_text = max(0, start - text_start)
            # None reads the text to its end, where the reader checks that both sides end there.
            stop_in_text = None
            if stop is not None and stop < text_stop:
                stop_in_text = max(0, stop - text_start)
            for block in text.blocks(name, first_in_text, stop_in_text):
                yield replace(block, first=text_start + block.first)
            text_start = text_stop

    def _texts(self, name: str) -> list[TextFolder]:
        """Return the texts that make up a set, in the order in which they are read."""
        folders = [self.path]
        if name == "train":
            folders += self.synthetic
        return [TextFolder(folder, self.source, self.target) for folder in folders]


@dataclass(frozen=True)
class Cleaning(FilterStep):
    """The stage clean on one corpus.

    Attributes:
        edits: The edits that are applied to each sentence of the training text, in this order.
    """

    stage = "clean"
    edits: Edits

    @classmethod
    def for_corpus(cls, name: str, corpus: Corpus, root: Path = Path()) -> Self:
        """Create the stage with the settings and paths of a corpus.

        Args:
            name: The name of the corpus.
            corpus: The settings of the corpus.
            root: The folder of the experiment.
        """
        files = step_files(
            name,
            corpus,
            root,
            stage=cls.stage,
            input_folder="raw",
            output_folder="clean",
        )
        return cls(
            corpus=name,
            input_text=RawText.for_corpus(name, corpus, root),
            output=files.output,
            filter_stats_path=files.filter_stats_path,
            edits=corpus.clean,
        )

    @property
    def rules(self) -> tuple[str, ...]:
        """The only rule that drops a pair here: one of its sides is empty."""
        return (EMPTY,)

    @property
    def edit_names(self) -> tuple[str, ...]:
        """The names of the edits that may change a pair."""
        return tuple(edit.name() for edit in self.edits)

    def filter_block(self, name: str, block: Block) -> FilteredBlock:  # noqa: ARG002
        """Clean the pairs of a block of the training text.

        Args:
            name: The name of the set. Only the training text comes here, so it is not used.
            block: The pairs.

        Returns:
            The cleaned pairs that are kept, and the counts of the rule and the edits.
        """
        counts = SetCounts()
        kept_pairs = []
        for number, pair in block.numbered_pairs():
            cleaned_pair = self.clean(number, pair, counts)
            if cleaned_pair is not None:
                counts.count_kept()
                kept_pairs.append(cleaned_pair)
        source, target = pack_pairs(kept_pairs)
        return FilteredBlock(source, target, counts)

    def clean(self, number: int, pair: Pair, counts: SetCounts) -> Pair | None:
        """Apply the edits to a pair. Without edits the pair keeps its bytes, extra spaces included.

        Args:
            number: The number of the pair in the training text, counted from 1.
            pair: The raw pair.
            counts: Counts each edit that changes the pair, and the rule if it drops the pair.

        Returns:
            The cleaned pair; None if one of its sides is empty.
        """
        source_language, target_language = self.input_text.languages
        for edit in self.edits:
            source = apply_edit(edit, pair.source, source_language)
            target = apply_edit(edit, pair.target, target_language)
            edited_pair = Pair(source, target)
            if edited_pair != pair:
                counts.record_changed(edit.name(), number, pair, edited_pair)
                pair = edited_pair
        if _is_blank(pair.source) or _is_blank(pair.target):
            counts.record_dropped(EMPTY, number, pair)
            return None
        if self.edits:
            return Pair(collapse_spaces(pair.source), collapse_spaces(pair.target))
        return pair


def _is_blank(sentence: str) -> bool:
    """Return whether a sentence contains only white space."""
    return not replace_white_space(sentence).strip(" ")
