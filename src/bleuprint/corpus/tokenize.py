"""The stage tokenize: sentences to tokens separated by spaces."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Self

from bleuprint.config import paths
from bleuprint.config.experiment import Corpus
from bleuprint.corpus.steps.filtering import (
    FilteredBlock,
    filter_blocks,
    filter_shard,
    gather_train,
)
from bleuprint.corpus.steps.ledger import Ledger, SetCounts
from bleuprint.corpus.steps.shard import Shard
from bleuprint.corpus.steps.sharded import shard_blocks
from bleuprint.rules.rule import Edits, edited
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import whole_folder
from bleuprint.runtime.progress import Progress
from bleuprint.text.parallel import Block, Pair, TextFolder, packed
from bleuprint.text.tokenizers import Tokenize, tokenizer_for


@dataclass(frozen=True)
class Tokenizing:
    """The stage for one corpus.

    The sets in `given`, published with the corpus, were not cleaned: `edits` are applied to them
    here, so that the model reads them in the form of its training text.
    """

    corpus: str
    settings: Tokenize
    edits: Edits
    given: frozenset[str]
    before: TextFolder
    tokens: Path
    ledger: Path

    @classmethod
    def of(cls, name: str, corpus: Corpus, root: Path = Path()) -> Self:
        """The stage with the settings and paths of a corpus."""
        return cls(
            name,
            corpus.tokenize,
            corpus.clean,
            frozenset(corpus.files.given()),
            TextFolder(paths.folder(name, "split", root), corpus.source, corpus.target),
            paths.folder(name, "tokens", root),
            paths.ledger(name, "tokenize", root),
        )

    def process_shard(self, shard: Shard, part: Path, workers: int) -> None:
        """Tokenize a shard of train."""
        ledger = Ledger("tokenize", self.corpus, ())
        blocks, pairs = shard_blocks(self.before, shard)
        tokenizer = self._tokenizer("train")
        filter_shard(blocks, pairs, tokenizer, self.before.at(part), ledger, workers)

    def gather(self, parts: Sequence[Path], workers: int) -> None:
        """Join the shards of train, and tokenize the held-out sets."""
        ledger = Ledger("tokenize", self.corpus, ())
        with whole_folder(self.tokens) as unfinished:
            after = self.before.at(unfinished)
            gather_train(parts, after, ledger, self.before.count("train"))
            for name in self.before.held_out():
                progress = Progress(f"tokenize {self.corpus} {name}", None, "pairs")
                blocks, counts = self.before.blocks(name), ledger.open(name)
                tokenizer = self._tokenizer(name)
                filter_blocks(blocks, tokenizer, after, name, progress, counts, workers)
            ledger.write(self.ledger)

    def check_tests(self) -> None:
        """Raise UserError if a line of tokens of a test set differs from its text tokenized.

        Lines of one without a line of the other are not compared.
        """
        after = self.before.at(self.tokens)
        for name in self.before.held_out():
            if not name.startswith("test."):
                continue
            tokenizer = self._tokenizer(name)()
            lines = zip(self.before.pairs(name), after.pairs(name), strict=False)
            for number, (text, tokens) in enumerate(lines, start=1):
                for side, path in enumerate(after.files(name)):
                    if tokenizer.tokens(side, text[side]) != tokens[side]:
                        raise UserError(
                            f"{path}: line {number} is not what {self.before.files(name)[side]} "
                            "was tokenized to; run: dvc repro"
                        )

    def _tokenizer(self, name: str) -> "partial[_BlockTokenizer]":
        edits = self.edits if name in self.given and name != "train" else ()
        return partial(_BlockTokenizer, self.before.languages, self.settings, edits)


class _BlockTokenizer:
    """Tokenizes blocks of pairs."""

    def __init__(self, languages: tuple[str, str], settings: Tokenize, edits: Edits) -> None:
        self._languages, self._edits = languages, edits
        self._tokenizers = [tokenizer_for(language, settings) for language in languages]

    def __call__(self, block: Block) -> FilteredBlock:
        pairs = [
            Pair(self.tokens(0, source), self.tokens(1, target)) for source, target in block.pairs()
        ]
        return FilteredBlock(*packed(pairs), SetCounts(len(pairs), len(pairs)))

    def tokens(self, side: int, sentence: str) -> str:
        """The tokens of a source sentence (side 0) or a target sentence, separated by spaces."""
        if self._edits:
            sentence = edited(sentence, self._languages[side], self._edits)
        return " ".join(self._tokenizers[side].tokenize(sentence))
