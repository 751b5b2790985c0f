"""The stage tokenize: sentences to tokens separated by spaces."""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

from bleuprint.config.corpus import Corpus
from bleuprint.corpus.steps.filter_stats import FilterStats, SetCounts
from bleuprint.corpus.steps.filtering import FilteredBlock, FilterStep
from bleuprint.corpus.steps.sharded import step_files
from bleuprint.rules.rule import Edits, apply_edits
from bleuprint.text.parallel import Block, Pair, TextFolder, pack_pairs
from bleuprint.text.tokenizers import Tokenize, tokenize_to_line, tokenizer_for


@dataclass(frozen=True)
class Tokenizing(FilterStep):
    """The stage for one corpus.

    The sets in `given`, published with the corpus, were not cleaned: `edits` are applied to them
    here, so that the model reads them in the form of its training text.
    """

    stage = "tokenize"
    settings: Tokenize
    edits: Edits
    given: frozenset[str]

    @classmethod
    def for_corpus(cls, name: str, corpus: Corpus, root: Path = Path()) -> Self:
        """The stage with the settings and paths of a corpus."""
        files = step_files(
            name,
            corpus,
            root,
            stage=cls.stage,
            input_folder="split",
            output_folder="tokens",
        )
        return cls(
            *files,
            settings=corpus.tokenize,
            edits=corpus.clean,
            given=frozenset(corpus.files.given()),
        )

    def filter_block(self, name: str, block: Block) -> FilteredBlock:
        """Tokenizes pairs, and keeps all."""
        edits = self.edits if name in self.given and name != "train" else ()
        counts, sides = SetCounts(), []
        counts.count_kept(len(block))
        for language, side in zip(self.input_text.languages, block.sides(), strict=True):
            tokenizer = tokenizer_for(language, self.settings)
            lines = (apply_edits(line, language, edits) if edits else line for line in side)
            sides.append([tokenize_to_line(tokenizer, line) for line in lines])
        return FilteredBlock(*pack_pairs([*map(Pair, *sides)]), counts)

    def write_held_out(self, after: TextFolder, filter_stats: FilterStats, workers: int) -> None:
        """Tokenize the held-out sets."""
        for name in self.input_text.held_out():
            blocks = self.input_text.blocks(name)
            self.filter_set(name, blocks, None, after, filter_stats.add_set(name), workers)
