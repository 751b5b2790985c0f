"""The stage tokenize: split the sentences of all sets into tokens separated by spaces.

The tokenizer is the one that `tokenize` in params.yaml names; its code is in the package text.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

from bleuprint.config.corpus import Corpus
from bleuprint.corpus.steps.filter_stats import FilterStats, SetCounts
from bleuprint.corpus.steps.filtering import FilteredBlock, FilterStep
from bleuprint.corpus.steps.sharded import step_files
from bleuprint.rules.rule import Edits, apply_edits
from bleuprint.text.parallel import Block, Pair, TextFolder, encode_pairs
from bleuprint.text.tokenizers import Tokenize, tokenize_to_line, tokenizer_for


@dataclass(frozen=True)
class Tokenizing(FilterStep):
    """The stage tokenize on one corpus.

    Attributes:
        settings: The settings of the tokenizer.
        edits: The edits of the stage clean.
        sets_with_files: The names of the sets that were published with the corpus. The stage clean
            left the held-out ones as they are, so the edits are applied to them here: the model
            must read them in the form of its training text.
    """

    stage = "tokenize"
    settings: Tokenize
    edits: Edits
    sets_with_files: frozenset[str]

    @classmethod
    def for_corpus(cls, name: str, corpus: Corpus, root: Path = Path()) -> Self:
        """Set up the tokenization of one corpus: what it reads and writes, and by which tokenizer.

        Args:
            name: Corpus name, such as `multi30k`.
            corpus: The settings of the corpus.
            root: The project folder; by default the current folder.
        """
        # Reads data/split/NAME, and writes data/tokens/NAME and a file of statistics.
        files = step_files(
            name,
            corpus,
            root,
            stage=cls.stage,
            input_folder="split",
            output_folder="tokens",
        )
        return cls(
            corpus=name,
            input_text=files.input_text,
            output=files.output,
            filter_stats_path=files.filter_stats_path,
            settings=corpus.tokenize,
            edits=corpus.clean,
            sets_with_files=frozenset(corpus.files.set_names()),
        )

    def filter_block(self, name: str, block: Block) -> FilteredBlock:
        """Tokenize the sentence pairs of a block; all pairs are kept.

        The edits of the cleaning stage, such as Unicode normalization, have already changed the
        training text, and the sets that were drawn from it. Published validation and test sets are
        edited here, so that the model reads them in the form of its training text.

        Args:
            name: The data set of the block, such as `train` or `test.flickr2016`.
            block: Consecutive sentence pairs.

        Returns:
            The tokenized pairs, and their number.
        """
        # Sets other than the published ones were drawn from the training text.
        was_cleaned = name == "train" or name not in self.sets_with_files
        tokenized_sides = []
        for language, sentences in zip(self.input_text.languages, block.sentences(), strict=True):
            if self.edits and not was_cleaned:
                sentences = [apply_edits(sentence, language, self.edits) for sentence in sentences]
            tokenizer = tokenizer_for(language, self.settings)
            lines = [tokenize_to_line(tokenizer, sentence) for sentence in sentences]
            tokenized_sides.append(lines)
        sources, targets = tokenized_sides
        pairs = [Pair(source, target) for source, target in zip(sources, targets, strict=True)]
        source_bytes, target_bytes = encode_pairs(pairs)
        counts = SetCounts()
        counts.count_kept(len(block))
        return FilteredBlock(source_bytes, target_bytes, counts)

    def write_held_out(
        self,
        output_text: TextFolder,
        filter_stats: FilterStats,
        workers: int,
    ) -> None:
        """Tokenize the validation and test sets.

        Args:
            output_text: The folder to write to.
            filter_stats: The statistics of the stage, to which each set's pairs are added.
            workers: The number of processes.
        """
        for set_name in self.input_text.held_out():
            self.filter_set(
                set_name,
                blocks=self.input_text.blocks(set_name),
                # Only for the progress bar: these sets are too small to count them first.
                pair_count=None,
                output_text=output_text,
                counts=filter_stats.add_set(set_name),
                workers=workers,
            )
