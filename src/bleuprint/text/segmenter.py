"""Finds the words of Japanese, Chinese and Thai, which are written without spaces between them.

Each language has one segmenter, with its dictionary from a package index. They were chosen among
those that are maintained and always give the same words:

- Japanese: fugashi, which is MeCab, with UniDic (unidic-lite): sacreBLEU's analyzer of Japanese,
  three times as fast as SudachiPy, which has longer words.
- Chinese: rjieba, the words of jieba, twenty times as fast.
- Thai: PyThaiNLP's dictionary-based `newmm`, in pure Python.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.util import find_spec

from bleuprint.runtime.errors import UserError
from bleuprint.runtime.wording import join_with_and
from bleuprint.text.unicode import replace_white_space

# The token for a space of the sentence: Unicode's picture of a space.
SPACE_SIGN = "\u2420"

# The number of characters that are segmented at once. MeCab and newmm take quadratic time for a
# long run of one kind of characters.
_WINDOW = 2_000

_TWO_LETTER_CODES = {"jpn": "ja", "zho": "zh", "cmn": "zh", "tha": "th"}
# The packages for each language. The extra of this project that installs them has the name of the
# language: pip install '.[ja]'.
_PACKAGES = {"ja": ("fugashi", "unidic-lite"), "zh": ("rjieba",), "th": ("pythainlp",)}


def has_segmenter(language: str) -> bool:
    """Whether sentences of a language (two or three letters) are segmented by `Segmenter`."""
    return _code(language) in _PACKAGES


def segmenter_packages(languages: Iterable[str]) -> list[str]:
    """Return the packages whose versions decide the words of some languages."""
    packages: list[str] = []
    for language in languages:
        packages.extend(_PACKAGES.get(_code(language), ()))
    return packages


def check_segmenter(languages: Sequence[str]) -> None:
    """Check that one of the languages of a corpus has a segmenter, and that it is installed.

    Raises:
        ValueError: None of the languages has a segmenter, or a package is missing.
    """
    segmented = [language for language in languages if has_segmenter(language)]
    if not segmented:
        raise ValueError(
            f"tokenize.name segmenter is for ja, zh and th, and this corpus has "
            f"{join_with_and(languages)}: use moses"
        )
    for language in segmented:
        code = _code(language)
        for package in _PACKAGES[code]:
            # Importing a package takes time; finding it does not.
            if find_spec(package.replace("-", "_")) is None:
                raise ValueError(
                    f"tokenize.name segmenter, language {language!r}: {package} is not installed: "
                    f"pip install -c constraints.txt -e '.[{code}]'"
                )


class Segmenter:
    """Splits sentences of one language into words. A space of the sentence is a token, ␠.

    The tokens, joined again, are exactly the sentence with single spaces, except that a ␠ of the
    sentence becomes a space.
    """

    def __init__(self, language: str) -> None:
        """Load the segmenter of a language.

        Raises:
            UserError: A package is not installed.
        """
        try:
            check_segmenter([language])
        except ValueError as error:
            raise UserError(str(error)) from None
        self._segment = _LOADERS[_code(language)]()

    def tokenize(self, sentence: str) -> list[str]:
        """Return the words and spaces of a sentence."""
        text = " ".join(replace_white_space(sentence).split())
        words: list[str] = []
        for window in _windows(text):
            words.extend(self._segment(window))
        return list(_with_space_tokens(text, words))

    def detokenize(self, tokens: Sequence[str]) -> str:
        """Return the sentence of some words and spaces."""
        text = "".join(tokens).replace(SPACE_SIGN, " ")
        return " ".join(text.split())


def _windows(text: str) -> Iterator[str]:
    """Yield a text in parts that are short enough to be segmented.

    A part ends after a space or a punctuation mark if it contains one.
    """
    start = 0
    while start < len(text):
        window = text[start : start + _WINDOW]
        is_last = start + _WINDOW >= len(text)
        if not is_last:
            end = max(window.rfind(mark) for mark in " 。，、") + 1
            if end > 0:
                window = window[:end]
        yield window
        start += len(window)


def _with_space_tokens(text: str, words: Iterable[str]) -> Iterator[str]:
    """Yield the words of a text, with the token ␠ for each space between them.

    Some segmenters return a space as a word, some within a word, and some leave it out.

    Args:
        text: The text with single spaces.
        words: Its words as a segmenter returns them.
    """
    position = 0
    for word in words:
        for part in word.split():
            if text.startswith(" ", position):
                yield SPACE_SIGN
                position += 1
            if not text.startswith(part, position):
                raise AssertionError(f"{text!r}: the segmenter changed it at {part!r}")
            yield part
            position += len(part)


def _code(language: str) -> str:
    """Return the two-letter code of a language that has a segmenter."""
    return _TWO_LETTER_CODES.get(language, language)


def _load_japanese() -> Callable[[str], Iterable[str]]:
    """Return MeCab's function that splits Japanese text into words."""
    import fugashi
    import unidic_lite

    # fugashi would prefer another dictionary if one is installed, so this one is named.
    folder = unidic_lite.DICDIR
    tagger = fugashi.GenericTagger(f'-Owakati -r "{folder}/mecabrc" -d "{folder}"')

    def segment(text: str) -> list[str]:
        """Return the words of a text, which MeCab separates by spaces."""
        words: list[str] = tagger.parse(text).split(" ")
        return words

    return segment


def _load_chinese() -> Callable[[str], Iterable[str]]:
    """Return rjieba's function that splits Chinese text into words."""
    import rjieba

    def segment(text: str) -> Iterable[str]:
        """Return the words of a text."""
        words: Iterable[str] = rjieba.cut(text)
        return words

    return segment


def _load_thai() -> Callable[[str], Iterable[str]]:
    """Return PyThaiNLP's function that splits Thai text into words."""
    # Otherwise PyThaiNLP creates a folder for downloads in the user's home, which `newmm` does not
    # need.
    os.environ.setdefault("PYTHAINLP_READ_ONLY", "1")
    from pythainlp.tokenize import word_tokenize

    def segment(text: str) -> Iterable[str]:
        """Return the words of a text."""
        words: Iterable[str] = word_tokenize(text, engine="newmm")
        return words

    return segment


_LOADERS = {"ja": _load_japanese, "zh": _load_chinese, "th": _load_thai}
