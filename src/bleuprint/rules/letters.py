"""Checks of the characters of a sentence."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Annotated, ClassVar

from bleuprint.rules.rule import SideCheck
from bleuprint.rules.scripts import SCRIPTS, count_letters, count_scripted, count_written_in
from bleuprint.runtime.schema import Range

Share = Annotated[float, Range(0, 1)]


@dataclass(frozen=True)
class Alphabetic(SideCheck):
    """Drops a pair with a side whose share of letters among its characters is less than `min`.

    Spaces do not count; letters of any script do, with their accents and vowel signs.
    """

    rank: ClassVar[int] = 60
    min: Share

    def passes(self, sentence: str, language: str) -> bool:  # noqa: ARG002
        return _share(count_letters(sentence), sum(map(len, sentence.split()))) >= self.min


@dataclass(frozen=True)
class Script(SideCheck):
    """Drops a pair with a side whose share of letters in its language's scripts is less than `min`.

    A side without letters is kept.
    """

    rank: ClassVar[int] = 70
    known_languages: ClassVar[Collection[str]] = SCRIPTS.keys()
    min: Share

    def passes(self, sentence: str, language: str) -> bool:
        own = count_written_in(sentence, language)
        return _share(own, count_scripted(sentence)) >= self.min


def _share(part: int, whole: int) -> float:
    """`part / whole`; 1 of an empty whole."""
    return part / whole if whole else 1.0
