"""The stage clean: raw files to one training text of normalized sentences.

Validation and test sets are copied byte for byte, so that systems are scored on what was published;
the stage tokenize applies the same edits to them.
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

EMPTY = "empty_side"


@dataclass(frozen=True)
class RawText(TextFolder):
    """The downloaded text of a corpus; train is continued by that in the folders `synthetic`.

    So of equal pairs dedup, which keeps the first, keeps the one of the downloaded text.
    """

    synthetic: tuple[Path, ...]

    @classmethod
    def for_corpus(cls, name: str, corpus: Corpus, root: Path = Path()) -> Self:
        """The text of a corpus, with its synthetic texts as often as they are to be repeated."""
        synthetic = [
            synthetic_folder(name, part, root)
            for part, text in corpus.files.synthetic_texts().items()
            for _ in range(text.repeat or 1)
        ]
        return cls(paths.given(name, root), corpus.source, corpus.target, tuple(synthetic))

    def count(self, name: str) -> int:
        return sum(folder.count(name) for folder in self._folders(name))

    def blocks(self, name: str, start: int = 0, stop: int | None = None) -> Iterator[Block]:
        before = 0
        for folder in self._folders(name):
            after = before + folder.count(name)
            end = None if stop is None or stop >= after else max(0, stop - before)
            for block in folder.blocks(name, max(0, start - before), end):
                yield replace(block, first=block.first + before)
            before = after

    def _folders(self, name: str) -> list[TextFolder]:
        folders = [self.path, *(self.synthetic if name == "train" else ())]
        return [TextFolder(folder, *self.languages) for folder in folders]


@dataclass(frozen=True)
class Cleaning(FilterStep):
    """The stage for one corpus."""

    stage = "clean"
    edits: Edits

    @classmethod
    def for_corpus(cls, name: str, corpus: Corpus, root: Path = Path()) -> Self:
        """The stage with the settings and paths of a corpus."""
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
        return (EMPTY,)

    @property
    def edit_names(self) -> tuple[str, ...]:
        return tuple(edit.name() for edit in self.edits)

    def filter_block(self, name: str, block: Block) -> FilteredBlock:  # noqa: ARG002
        counts, kept = SetCounts(), []
        for number, pair in block.numbered_pairs():
            if (new := self.clean(number, pair, counts)) is not None:
                counts.count_kept()
                kept.append(new)
        return FilteredBlock(*pack_pairs(kept), counts)

    def clean(self, number: int, pair: Pair, counts: SetCounts) -> Pair | None:
        """Apply the edits to a pair; None if a side is empty.

        Without edits it stays as it is, also its spaces.
        """
        languages = self.input_text.languages
        for edit in self.edits:
            source = apply_edit(edit, pair.source, languages[0])
            target = apply_edit(edit, pair.target, languages[1])
            if source != pair.source or target != pair.target:
                counts.record_changed(edit.name(), number, pair, new := Pair(source, target))
                pair = new
        new = (
            Pair(collapse_spaces(pair.source), collapse_spaces(pair.target)) if self.edits else pair
        )
        if replace_white_space(new.source).strip(" ") and replace_white_space(new.target).strip(
            " "
        ):
            return new
        counts.record_dropped(EMPTY, number, pair)
        return None
