"""The text that the stage dedup reads: the outputs of clean and of the stages of parts."""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

from bleuprint.config.corpus import Corpus
from bleuprint.config.pair_name import PairName
from bleuprint.config.parts import part_folder
from bleuprint.config.paths import cleaned_folder
from bleuprint.corpus.steps.joined_text import JoinedText
from bleuprint.rules.rule import Edits


@dataclass(frozen=True)
class CleanedText(JoinedText):
    """The training text of a corpus before duplicates are removed, with its held-out sets.

    The parts of the corpus come first. They are cleaned and filtered. The other training texts,
    which come after them, are only cleaned; the stage filter filters them after dedup.

    Attributes:
        parts: The folders of the parts, in the order in which they are read.
    """

    parts: tuple[Path, ...]

    @classmethod
    def for_corpus(cls, name: str, corpus: Corpus, root: Path = Path()) -> Self:
        """Find the folders of the parts of a corpus, and of its other text.

        Args:
            name: The name of the corpus, such as `many`; or of one of its language pairs, if it has
                several: `many/en-de`.
            corpus: The settings of the corpus or language pair.
            root: The project's folder.
        """
        pair_name = PairName.parse(name)
        part_folders = []
        for part in corpus.files.parts():
            # Stages of parts know the name that the text has in the whole corpus.
            part_name = pair_name.text_name(part)
            part_folders.append(part_folder(pair_name.corpus, part_name, "filter", root))
        return cls(
            path=cleaned_folder(name, root),
            source=corpus.source,
            target=corpus.target,
            parts=tuple(part_folders),
        )

    @property
    def training_folders(self) -> list[Path]:
        """The folders of the parts, then the folder of the other training texts."""
        return [*self.parts, self.path]

    def count_in_parts(self) -> int:
        """Return the number of training pairs that the parts have together."""
        texts_of_parts = self.texts("train")[: len(self.parts)]
        return sum(text.count("train") for text in texts_of_parts)


def edits_of_parts(corpus: Corpus) -> tuple[Edits, ...]:
    """Return the edits of the parts of a corpus, each once, without the edits of the corpus itself.

    Args:
        corpus: The settings of the corpus or language pair.
    """
    found_edits: list[Edits] = []
    for part in corpus.files.parts():
        edits = corpus.only_text(part).clean
        if edits != corpus.clean and edits not in found_edits:
            found_edits.append(edits)
    return tuple(found_edits)
