"""The stage clean: turn the raw files of a corpus into one training text of normalized sentences.

`Cleaning` is the stage. `RawText` is what it reads: the downloaded text and the synthetic texts.

Validation and test sets are copied byte for byte, so that systems are scored on what was published.
The stage tokenize applies the same edits to these sets.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

from bleuprint.config import paths
from bleuprint.config.corpus import Corpus
from bleuprint.config.synthetic import synthetic_folder
from bleuprint.corpus.steps.filter_stats import SetCounts
from bleuprint.corpus.steps.filtering import FilteredBlock, FilterStep
from bleuprint.corpus.steps.joined_text import JoinedText
from bleuprint.corpus.steps.sharded import step_files
from bleuprint.rules.rule import Edits, apply_edit
from bleuprint.text.parallel import Block, Pair, encode_pairs
from bleuprint.text.unicode import collapse_spaces, replace_white_space

# The name of the rule that drops a pair with an empty side, in the filtering statistics.
EMPTY_SIDE_RULE = "empty_side"


@dataclass(frozen=True)
class RawText(JoinedText):
    """The downloaded text of a corpus, with its synthetic texts appended to the training text.

    The downloaded text comes first, because the stage dedup keeps the first of equal pairs.

    Attributes:
        synthetic: The folders of the synthetic texts, in the order in which they are read. A text
            that is repeated n times has n entries.
    """

    synthetic: tuple[Path, ...]

    @classmethod
    def for_corpus(cls, name: str, corpus: Corpus, root: Path = Path()) -> Self:
        """Find the folders of a corpus's downloaded text and of its synthetic training texts.

        A synthetic text contains sentences that a system translated, as in back-translation.

        Args:
            name: Corpus name, such as `multi30k`.
            corpus: The settings of the corpus.
            root: The project folder; by default the current folder.
        """
        synthetic_folders = []
        for text_name, text in corpus.files.synthetic_texts().items():
            # The setting `repeat` upsamples a text: it is read this many times.
            times = text.repeat or 1
            for _ in range(times):
                synthetic_folders.append(synthetic_folder(name, text_name, root))
        return cls(
            path=paths.download_folder(name, root),
            source=corpus.source,
            target=corpus.target,
            synthetic=tuple(synthetic_folders),
        )

    @property
    def training_folders(self) -> list[Path]:
        """The folder of the downloaded text, then those of the synthetic texts."""
        return [self.path, *self.synthetic]


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
        """Set up the cleaning of one corpus: what it reads and writes, and the edits to apply.

        Args:
            name: Corpus name, such as `multi30k`.
            corpus: The settings of the corpus; `corpus.clean` are the edits.
            root: The project folder; by default the current folder.
        """
        # Writes data/clean/NAME/together and a file of statistics.
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
            # In place of `files.input_text`, which is the downloaded text alone.
            input_text=RawText.for_corpus(name, corpus, root),
            output=paths.cleaned_folder(name, root),
            filter_stats_path=files.filter_stats_path,
            edits=corpus.clean,
        )

    @property
    def rules(self) -> tuple[str, ...]:
        """The only rule that drops a pair here: one of its sides is empty."""
        return (EMPTY_SIDE_RULE,)

    @property
    def edit_names(self) -> tuple[str, ...]:
        """The names of the edits that may change a pair."""
        return tuple(edit.name() for edit in self.edits)

    def filter_block(self, name: str, block: Block) -> FilteredBlock:  # noqa: ARG002
        """Clean a block of sentence pairs, and drop pairs whose source or target is empty.

        Args:
            name: The data set of the block. It is always `train`, so it is not used.
            block: Consecutive sentence pairs.

        Returns:
            The cleaned pairs that are kept; and how many pairs were kept, changed and dropped.
        """
        counts = SetCounts()
        kept_pairs = []
        for number, pair in block.numbered_pairs():
            cleaned_pair = self.clean(number, pair, counts)
            if cleaned_pair is not None:
                counts.count_kept()
                kept_pairs.append(cleaned_pair)
        source, target = encode_pairs(kept_pairs)
        return FilteredBlock(source, target, counts)

    def clean(self, number: int, pair: Pair, counts: SetCounts) -> Pair | None:
        """Clean a sentence pair: apply the edits, such as Unicode normalization, one by one.

        After the edits, several spaces in a row become one. If the user chose no edits, the pair
        keeps all its spaces.

        Args:
            number: The number of the pair in the training text, counted from 1.
            pair: The raw pair.
            counts: Statistics of the cleaning. Each edit that changes the pair is recorded here,
                and so is the pair if it is dropped.

        Returns:
            The cleaned pair; None if its source or target is empty, so that the pair is dropped.
        """
        source_language, target_language = self.input_text.languages
        for edit in self.edits:
            edited_pair = Pair(
                source=apply_edit(edit, pair.source, source_language),
                target=apply_edit(edit, pair.target, target_language),
            )
            if edited_pair != pair:
                counts.record_changed(edit.name(), number, pair, edited_pair)
                pair = edited_pair
        if _is_blank(pair.source) or _is_blank(pair.target):
            counts.record_dropped(EMPTY_SIDE_RULE, number, pair)
            return None
        if not self.edits:
            return pair
        return Pair(collapse_spaces(pair.source), collapse_spaces(pair.target))


def _is_blank(sentence: str) -> bool:
    """Return whether a sentence contains only white space."""
    return not replace_white_space(sentence).strip(" ")
