"""Words of Japanese, Chinese and Thai, which are written without spaces between them.

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
from itertools import chain

from bleuprint.runtime.errors import UserError
from bleuprint.runtime.wording import join_with_and
from bleuprint.text.unicode import replace_white_space

# A space of the sentence, as a token: Unicode's picture of it.
SPACE = "\u2420"

# Characters that are segmented at once: MeCab and newmm take quadratic time for rows of one kind.
_WINDOW = 2_000

_TWO_LETTERS = {"jpn": "ja", "zho": "zh", "cmn": "zh", "tha": "th"}
# The packages by language; the extra of this project that installs them is called like it.
_PACKAGES = {"ja": ("fugashi", "unidic-lite"), "zh": ("rjieba",), "th": ("pythainlp",)}


def has_segmenter(language: str) -> bool:
    """Whether sentences of a language (two or three letters) are segmented by `Segmenter`."""
    return _code(language) in _PACKAGES


def segmenter_packages(languages: Iterable[str]) -> list[str]:
    """The packages whose versions decide the words of these languages."""
    return [name for language in languages for name in _PACKAGES.get(_code(language), ())]


def check_segmenter(languages: Sequence[str]) -> None:
    """Raise ValueError if none of `languages` has a segmenter, or one is not installed.

    The packages are found without importing them.
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
            if find_spec(package.replace("-", "_")) is None:
                raise ValueError(
                    f"tokenize.name segmenter, language {language!r}: {package} is not installed: "
                    f"pip install -c constraints.txt -e '.[{code}]'"
                )


class Segmenter:
    """The words of one language; a space of the sentence is a token, ␠.

    Joined again, the tokens are the sentence with single spaces, exactly; a ␠ of the sentence
    becomes a space. Raises UserError if the segmenter is not installed.
    """

    def __init__(self, language: str) -> None:
        try:
            check_segmenter([language])
        except ValueError as error:
            raise UserError(str(error)) from None
        self._words = _LOADERS[_code(language)]()

    def tokenize(self, sentence: str) -> list[str]:
        text = " ".join(replace_white_space(sentence).split())
        words = chain.from_iterable(map(self._words, _windows(text)))
        return list(_with_spaces(text, words))

    def detokenize(self, tokens: Sequence[str]) -> str:
        return " ".join("".join(tokens).replace(SPACE, " ").split())


def _windows(text: str) -> Iterator[str]:
    """A text in parts, of which one that is longer ends after a space or a mark, if it has any."""
    start = 0
    while start < len(text):
        window = text[start : start + _WINDOW]
        if start + _WINDOW < len(text):
            end = max(window.rfind(mark) for mark in " 。，、") + 1
            window = window[: end or _WINDOW]
        yield window
        start += len(window)


def _with_spaces(text: str, words: Iterable[str]) -> Iterator[str]:
    """The words of a text, with a token for each space between them.

    Segmenters return spaces as words, within words, or not at all.
    """
    place = 0
    for word in words:
        for part in word.split():
            if text.startswith(" ", place):
                yield SPACE
                place += 1
            if not text.startswith(part, place):
                raise AssertionError(f"{text!r}: the segmenter changed it at {part!r}")
            yield part
            place += len(part)


def _code(language: str) -> str:
    return _TWO_LETTERS.get(language, language)


def _japanese() -> Callable[[str], Iterable[str]]:
    import fugashi
    import unidic_lite

    # by name, since fugashi prefers another dictionary if that is installed too
    folder = unidic_lite.DICDIR
    tagger = fugashi.GenericTagger(f'-Owakati -r "{folder}/mecabrc" -d "{folder}"')
    return lambda text: tagger.parse(text).split(" ")


def _chinese() -> Callable[[str], Iterable[str]]:
    import rjieba

    return lambda text: rjieba.cut(text)


def _thai() -> Callable[[str], Iterable[str]]:
    # it makes a folder for downloads in the user's home otherwise, of which `newmm` needs none
    os.environ.setdefault("PYTHAINLP_READ_ONLY", "1")
    from pythainlp.tokenize import word_tokenize

    return lambda text: word_tokenize(text, engine="newmm")


_LOADERS = {"ja": _japanese, "zh": _chinese, "th": _thai}
