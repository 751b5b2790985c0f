"""The stage tokenize: sentences to tokens separated by spaces."""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

from bleuprint.config.corpus import Corpus
from bleuprint.corpus.steps.filtering import KeepOrDrop, PairwiseStep
from bleuprint.corpus.steps.ledger import Ledger
from bleuprint.corpus.steps.sharded import step_files
from bleuprint.rules.rule import Edits, edited
from bleuprint.text.parallel import Pair, TextFolder
from bleuprint.text.tokenizers import Tokenize, tokenizer_for


@dataclass(frozen=True)
class Tokenizing(PairwiseStep):
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

    def filter_for(self, name: str) -> KeepOrDrop:
        """Tokenizes pairs, and keeps all."""
        edits = self.edits if name in self.given and name != "train" else ()
        languages = self.before.languages
        tokenizers = [tokenizer_for(language, self.settings) for language in languages]

        def tokens(pair: Pair, side: int) -> str:
            sentence = edited(pair[side], languages[side], edits) if edits else pair[side]
            return " ".join(tokenizers[side].tokenize(sentence))

        return lambda _, pair, __: Pair(tokens(pair, 0), tokens(pair, 1))

    def write_held_out(self, after: TextFolder, ledger: Ledger, workers: int) -> None:
        """Tokenize the held-out sets."""
        for name in self.before.held_out():
            blocks = self.before.blocks(name)
            self.filter_set(name, blocks, None, after, ledger.open(name), workers)
