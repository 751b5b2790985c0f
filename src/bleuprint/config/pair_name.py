"""The name of a language pair: CORPUS, or CORPUS/DIRECTION if the corpus has several directions."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from bleuprint.runtime.tag_pattern import LANGUAGE_TAG

# SOURCE-TARGET. Each language begins with two or three lower-case letters, and no other part of a
# tag looks like this. So only one hyphen of `pt-BR-zh-Hant` can separate the languages.
_DIRECTION = re.compile(f"(?P<source>{LANGUAGE_TAG})-(?P<target>{LANGUAGE_TAG})")


def split_direction(direction: str) -> tuple[str, str]:
    """Return the languages of a direction: `en` and `zh-Hant` for `en-zh-Hant`.

    Args:
        direction: The direction, SOURCE-TARGET.

    Raises:
        ValueError: The text is not a direction.
    """
    match = _DIRECTION.fullmatch(direction)
    if match is None:
        raise ValueError(f"{direction!r} is not a direction. Write SOURCE-TARGET, such as en-de")
    return match["source"], match["target"]


def direction_of_text(name: str, directions: Iterable[str]) -> str:
    """Return the direction with which the name of a text or test set begins.

    Args:
        name: The name in a corpus with several directions, such as `en-zh-Hant-news`.
        directions: The directions of the corpus. If the name begins with several, such as `en-zh`
            and `en-zh-Hant`, the longest one is meant.

    Raises:
        KeyError: The name begins with none of the directions.
    """
    matching = [direction for direction in directions if name.startswith(f"{direction}-")]
    if not matching:
        raise KeyError(name)
    return max(matching, key=len)


@dataclass(frozen=True)
class PairName:
    """The name of a language pair, CORPUS or CORPUS/DIRECTION.

    Attributes:
        corpus: The name of the corpus.
        direction: The direction, SOURCE-TARGET; empty for a corpus without directions.
    """

    corpus: str
    direction: str

    @classmethod
    def parse(cls, name: str) -> "PairName":
        """Split a name, CORPUS or CORPUS/DIRECTION, into its parts."""
        corpus, _, direction = name.partition("/")
        return cls(corpus, direction)

    @property
    def subfolder(self) -> str:
        """The folder of this pair in a folder of the corpus; empty, no subfolder, for one pair."""
        return self.direction

    def text_name(self, name_in_pair: str) -> str:
        """Return the name that a text or test set of this pair has in the whole corpus.

        The text `news` of the direction en-de is called `en-de-news`. In a corpus with one language
        pair, the name stays `news`.

        Args:
            name_in_pair: The name within the pair, such as `news`.
        """
        if not self.direction:
            return name_in_pair
        return f"{self.direction}-{name_in_pair}"

    def set_name(self, name_in_pair: str) -> str:
        """Return the set of the whole corpus that contains a set of this language pair.

        The test set `test.news` of the direction en-de is the set `test.en-de-news` of the corpus.
        `train` and `valid` keep their names, because all directions are trained and validated on
        together.

        Args:
            name_in_pair: A set of the pair (`train`, `valid` or `test.NAME`), or a text of it, such
                as `train.NAME`.
        """
        set_kind, dot, name = name_in_pair.partition(".")
        if not dot:  # The whole training or validation set.
            return set_kind
        return f"{set_kind}.{self.text_name(name)}"

    def set_label(self, name_in_pair: str) -> str:
        """Return what messages call a set of this pair: `en-de train`, or `train` for one pair."""
        return f"{self.direction} {name_in_pair}".strip()
