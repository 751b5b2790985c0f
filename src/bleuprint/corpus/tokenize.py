"""The stage tokenize: sentences to tokens separated by spaces."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Self

from bleuprint.config.experiment import Corpus
from bleuprint.corpus.steps.filtering import FilteredBlock, FilterStep
from bleuprint.corpus.steps.ledger import Ledger, SetCounts
from bleuprint.corpus.steps.sharded import step_files
from bleuprint.rules.rule import Edits, edited
from bleuprint.text.parallel import Block, Pair, TextFolder, packed
from bleuprint.text.tokenizers import Tokenize, tokenizer_for


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
    def of(cls, name: str, corpus: Corpus, root: Path = Path()) -> Self:
        """The stage with the settings and paths of a corpus."""
        files = step_files(name, corpus, "split", "tokens", root, cls.stage)
        return cls(*files, corpus.tokenize, corpus.clean, frozenset(corpus.files.given()))

    def block_filter(self, name: str) -> "Callable[[], _BlockTokenizer]":
        edits = self.edits if name in self.given and name != "train" else ()
        return partial(_BlockTokenizer, self.before.languages, self.settings, edits)

    def write_held_out(self, after: TextFolder, ledger: Ledger, workers: int) -> None:
        """Tokenize the held-out sets."""
        for name in self.before.held_out():
            blocks = self.before.blocks(name)
            self.filter_set(name, blocks, None, after, ledger.open(name), workers)


class _BlockTokenizer:
    """Tokenizes blocks of pairs."""

    def __init__(self, languages: tuple[str, str], settings: Tokenize, edits: Edits) -> None:
        self._languages, self._edits = languages, edits
        self._tokenizers = [tokenizer_for(language, settings) for language in languages]

    def __call__(self, block: Block) -> FilteredBlock:
        pairs = [
            Pair(self._tokens(0, source), self._tokens(1, target))
            for source, target in block.pairs()
        ]
        return FilteredBlock(*packed(pairs), SetCounts(len(pairs), len(pairs)))

    def _tokens(self, side: int, sentence: str) -> str:
        """The tokens of a source sentence (side 0) or a target sentence, separated by spaces."""
        if self._edits:
            sentence = edited(sentence, self._languages[side], self._edits)
        return " ".join(self._tokenizers[side].tokenize(sentence))
