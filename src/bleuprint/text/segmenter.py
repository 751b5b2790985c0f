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
from bleuprint.text.language_codes import language_code
from bleuprint.text.unicode import replace_white_space

# The token for a space of the sentence: Unicode's picture of a space.
SPACE_SIGN = "\u2420"

# The number of characters that are split into words at once. MeCab and newmm take quadratic time
# for a long run of one kind of characters.
_MAX_PART_LENGTH = 2_000

# The packages for each language. The extra of this project that installs them has the name of the
# language: pip install '.[ja]'.
_PACKAGES = {"ja": ("fugashi", "unidic-lite"), "zh": ("rjieba",), "th": ("pythainlp",)}


def has_segmenter(language: str) -> bool:
    """Return whether `Segmenter` splits text of a language, such as `ja`, into words."""
    return language_code(language) in _PACKAGES


def segmenter_packages(languages: Iterable[str]) -> list[str]:
    """Return the names of the Python packages that split text of some languages into words.

    Their versions are recorded with the results, since another version may find other words. A
    language with spaces between words needs no such package.

    Args:
        languages: The codes of the languages, such as `ja`.
    """
    packages: list[str] = []
    for language in languages:
        packages.extend(_PACKAGES.get(language_code(language), ()))
    return packages


def check_segmenter(languages: Sequence[str]) -> None:
    """Check that one of the languages of a corpus has a segmenter, and that it is installed.

    A segmenter finds the words of a language without spaces between them: Japanese, Chinese, Thai.

    Args:
        languages: The codes of the corpus's languages, such as `ja` and `en`.

    Raises:
        ValueError: None of the languages has a segmenter, or a package is missing.
    """
    segmented_languages = [language for language in languages if has_segmenter(language)]
    if not segmented_languages:
        raise ValueError(
            f"tokenize.name segmenter is for ja, zh and th, but this corpus has "
            f"{join_with_and(languages)}. Use moses"
        )
    for language in segmented_languages:
        code = language_code(language)
        for package in _PACKAGES[code]:
            # Importing the module of a package takes time; finding it does not.
            module_name = package.replace("-", "_")
            if find_spec(module_name) is None:
                raise ValueError(
                    f"tokenize.name segmenter, language {language!r}: the package {package} "
                    f"is not installed. Install it: pip install -c constraints.txt -e '.[{code}]'"
                )


class Segmenter:
    """Splits sentences of one language into words. A space of the sentence is a token, ␠.

    The tokens, joined again, are exactly the sentence with single spaces, except that a ␠ of the
    sentence becomes a space.
    """

    def __init__(self, language: str) -> None:
        """Load the library that finds the words of a language.

        Args:
            language: The code of the language: Japanese, Chinese or Thai.

        Raises:
            UserError: A package is not installed.
        """
        try:
            check_segmenter([language])
        except ValueError as error:
            raise UserError(str(error)) from None
        load_segmenter = _LOADERS[language_code(language)]
        self._split_into_words = load_segmenter()

    def tokenize(self, sentence: str) -> list[str]:
        """Split a sentence into its words, and the token ␠ for each space.

        A long sentence is given to the library in parts, since its time grows with the square of
        the length.
        """
        text = " ".join(replace_white_space(sentence).split())
        words: list[str] = []
        for part in _short_parts(text):
            words.extend(self._split_into_words(part))
        return list(_with_space_tokens(text, words))

    def detokenize(self, tokens: Sequence[str]) -> str:
        """Join words and the tokens ␠ to a sentence, in which each ␠ becomes a space."""
        text = "".join(tokens).replace(SPACE_SIGN, " ")
        return " ".join(text.split())


def _short_parts(text: str) -> Iterator[str]:
    """Yield a text in parts that are short enough for a library that splits text into words.

    A part ends after the last space or punctuation mark that fits, so that no word is cut. Without
    such a mark, it ends at the maximum length.
    """
    start = 0
    while start < len(text):
        part = text[start : start + _MAX_PART_LENGTH]
        is_last_part = start + _MAX_PART_LENGTH >= len(text)
        if not is_last_part:
            last_mark = max(part.rfind(mark) for mark in " 。，、")  # -1 if there is no mark.
            if last_mark >= 0:
                part = part[: last_mark + 1]
        yield part
        start += len(part)


def _with_space_tokens(text: str, words: Iterable[str]) -> Iterator[str]:
    """Yield the words of a text, with the token ␠ for each space between them.

    Libraries that split a text into words treat spaces differently: some return a space as a word
    or within a word, some omit it. So the spaces are taken from the text itself, by following its
    words from the beginning to the end.

    Args:
        text: The text with single spaces.
        words: Its words, as a library returns them.

    Raises:
        AssertionError: The words differ from the text.
    """
    position = 0
    for word in words:
        for word_without_space in word.split():
            if text.startswith(" ", position):
                yield SPACE_SIGN
                position += 1
            if not text.startswith(word_without_space, position):
                raise AssertionError(
                    f"{text!r}: the segmenter changed it at {word_without_space!r}"
                )
            yield word_without_space
            position += len(word_without_space)


def _load_japanese() -> Callable[[str], Iterable[str]]:
    """Load MeCab with the dictionary UniDic; return a function that splits Japanese into words."""
    import fugashi
    import unidic_lite

    # fugashi would prefer another dictionary if one is installed, so this one is named. The option
    # -Owakati makes MeCab return the words separated by spaces.
    dictionary = unidic_lite.DICDIR
    tagger = fugashi.GenericTagger(f'-Owakati -r "{dictionary}/mecabrc" -d "{dictionary}"')

    def split_into_words(text: str) -> list[str]:
        """Return the words of a Japanese text."""
        words: list[str] = tagger.parse(text).split(" ")
        return words

    return split_into_words


def _load_chinese() -> Callable[[str], Iterable[str]]:
    """Load rjieba; return a function that splits Chinese text into words."""
    import rjieba

    def split_into_words(text: str) -> Iterable[str]:
        """Return the words of a Chinese text."""
        words: Iterable[str] = rjieba.cut(text)
        return words

    return split_into_words


def _load_thai() -> Callable[[str], Iterable[str]]:
    """Load PyThaiNLP; return a function that splits Thai text into words."""
    # Must be set before the import. Otherwise PyThaiNLP creates a folder for downloads in the
    # user's home, which its method `newmm` does not need.
    os.environ.setdefault("PYTHAINLP_READ_ONLY", "1")
    from pythainlp.tokenize import word_tokenize

    def split_into_words(text: str) -> Iterable[str]:
        """Return the words of a Thai text."""
        words: Iterable[str] = word_tokenize(text, engine="newmm")
        return words

    return split_into_words


_LOADERS = {"ja": _load_japanese, "zh": _load_chinese, "th": _load_thai}
