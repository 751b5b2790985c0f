"""Tokenising a corpus."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Self

from bleuprint.config import paths
from bleuprint.config.experiment import Corpus
from bleuprint.corpus.steps.filtering import Sifted, gather_train, sift, sift_shard
from bleuprint.corpus.steps.ledger import Account, Ledger
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

    Sets that the corpus came with (`given`), which cleaning left alone, are read through its
    `edits` here: what the model gets to see looks like what it was trained on.
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
        """The stage as its settings and the layout have it."""
        return cls(
            name,
            corpus.tokenize,
            corpus.clean,
            frozenset(corpus.files.given()),
            TextFolder(paths.folder(name, "split", root), corpus.source, corpus.target),
            paths.folder(name, "tokens", root),
            paths.ledger(name, "tokenize", root),
        )

    def sift(self, shard: Shard, part: Path, workers: int) -> None:
        """Tokenise a shard of train."""
        sift_shard(
            *shard_blocks(self.before, shard),
            self._work(()),
            TextFolder(part, self.before.source, self.before.target),
            self._account,
            workers,
        )

    def gather(self, parts: Sequence[Path], workers: int) -> None:
        """Join the shards, and tokenise the other sets."""
        ledger = self._account
        with whole_folder(self.tokens) as unfinished:
            after = TextFolder(unfinished, self.before.source, self.before.target)
            gather_train(parts, after, ledger, self.before.count("train"))
            for name in self.before.held_out():
                progress = Progress(f"tokenize {self.corpus} {name}", None, "pairs")
                account = ledger.open(name)
                blocks, work = (
                    self.before.blocks(name),
                    self._work(self.edits if name in self.given else ()),
                )
                sift(blocks, work, after, name, progress, account, workers)
            ledger.write(self.ledger)

    def check_tests(self) -> None:
        """Raise UserError unless the tokens of the test sets are those of their text.

        Lines beyond the shorter one's end are not looked at.
        """
        after = TextFolder(self.tokens, self.before.source, self.before.target)
        for name in self.before.held_out():
            if not name.startswith("test."):
                continue
            made = self._work(self.edits if name in self.given else ())()
            both = zip(self.before.pairs(name), after.pairs(name), strict=False)
            for number, (text, tokens) in enumerate(both, start=1):
                for side, path in enumerate(after.files(name)):
                    if made.tokens(side, text[side]) != tokens[side]:
                        raise UserError(
                            f"{path}: line {number} is not what {self.before.files(name)[side]} "
                            "was tokenized to; run: dvc repro"
                        )

    def _work(self, edits: Edits) -> "partial[_Blocks]":
        return partial(_Blocks, (self.before.source, self.before.target), self.settings, edits)

    @property
    def _account(self) -> Ledger:
        return Ledger("tokenize", self.corpus, ())


class _Blocks:
    """Tokenises blocks, in whichever process."""

    def __init__(self, languages: tuple[str, str], settings: Tokenize, edits: Edits) -> None:
        self._languages, self._edits = languages, edits
        self._tokenizers = [tokenizer_for(language, settings) for language in languages]

    def __call__(self, block: Block) -> Sifted:
        pairs = [
            Pair(self.tokens(0, source), self.tokens(1, target)) for source, target in block.pairs()
        ]
        return Sifted(*packed(pairs), Account(len(pairs), len(pairs)))

    def tokens(self, side: int, sentence: str) -> str:
        """A sentence of the source (side 0) or the target, a space between its tokens."""
        if self._edits:
            sentence = edited(sentence, self._languages[side], self._edits)
        return " ".join(self._tokenizers[side].tokenize(sentence))
