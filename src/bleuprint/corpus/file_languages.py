"""Choose the languages of a user's files: by the option --languages, or by the names of the files.

The command new-corpus uses these functions for every format. A translation memory also names its
languages inside the file (memory_languages.py), and so may the header of a table
(table_columns.py).
"""

import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from bleuprint.runtime.errors import UserError
from bleuprint.runtime.wording import join_with_and
from bleuprint.text.bcp47 import check_language_tag, with_usual_case
from bleuprint.text.language_codes import (
    code_of_language_name,
    is_listed,
    language_code,
    primary_subtag,
)

# A language code, such as de, deu or pt-BR.
_CODE = re.compile(r"[A-Za-z]{2,3}([-_][A-Za-z0-9]{1,8})*")

# A word of a file's name: a language code in lower case, perhaps with a script or a region; or any
# letters.
_WORD = re.compile(
    r"[a-z]{2,3}(?:[-_][A-Z][a-z]{3})?(?:[-_][A-Z]{2})?(?![A-Za-z])|[A-Za-z]+",
)

# The codes of source and target.
Languages = tuple[str, str]
# The parts of a file's name that say its format and compression.
NAME_EXTENSIONS = frozenset(
    {
        "txt",
        "tsv",
        "tmx",
        "csv",
        "json",
        "jsonl",
        "ndjson",
        "parquet",
        "zip",
        "tar",
        "tgz",
        "gz",
        "bz2",
        "xz",
        "zst",
    }
)
# Words for the roles of texts in machine translation: source, target, reference and hypothesis.
# Some of them are also codes of languages: `src` is Sardinian.
ROLE_WORDS = frozenset({"src", "source", "tgt", "trg", "target", "ref", "reference", "hyp"})


def parse_language(code: str) -> str:
    """Check a language that the user typed, and return its usual form.

    Args:
        code: The code of a language, or a tag with a script or a region, such as `zh-hant`.

    Returns:
        `de` for `ger`, and `zh-Hant` for `zh-hant`.

    Raises:
        UserError: The text is not a language code, or a part of it is unknown. If it is the name of
            a language, such as `German`, the message contains its code.
    """
    if _CODE.fullmatch(code):
        has_script_or_region = len(code) > len(primary_subtag(code))
        tag = with_usual_case(code) if has_script_or_region else language_code(code)
        try:
            check_language_tag(tag)
        except ValueError as error:
            raise UserError(f"--languages {code}: {error}") from None
        return tag
    code_of_name = code_of_language_name(code)
    advice = "Use one such as de"
    if code_of_name:
        advice = f"Use {code_of_name} for {code}"
    raise UserError(f"--languages {code}: not a language code of two or three letters. {advice}")


def check_two_languages(files: Sequence[Path | str], source: str, target: str) -> Languages:
    """Check that the source and the target language differ, and return both.

    Args:
        files: The user's files or their names, for messages.
        source: Code of the source language, such as `de`.
        target: Code of the target language, such as `en`.

    Raises:
        UserError: Both are the same language. The message proposes `qaa`, a code that the standard
            of language codes (ISO 639) reserves for private use.
    """
    if source == target:
        raise UserError(
            f"{join_with_and(files)}: source and target are both {source}. For text in "
            f"one language, such as simplification, give the target a code for local use: "
            f"--languages {source} qaa"
        )
    return source, target


def languages_of_two_files(files: Sequence[Path]) -> Languages:
    """Return the languages of a source file and a target file, by the names of the files.

    The language of a file is the last one in its name: `de` for a.en-de.de and for a-de.txt.

    Args:
        files: The source file, then the target file.

    Raises:
        UserError: A name contains no language, or both names contain the same one.
    """
    source_file, target_file = files
    file_languages = []
    for path in files:
        languages_in_name = find_languages(path)
        if not languages_in_name:
            # The example contains the language in the name of the other file, if there is one.
            known_languages = find_languages(source_file) + find_languages(target_file)
            example = example_languages(known_languages)
            raise UserError(
                f"{path}: the name of the file contains no language. Name both languages, such "
                f"as: --languages {example}"
            )
        file_languages.append(languages_in_name[-1])
    source, target = file_languages
    if source == target:
        raise UserError(
            f"{join_with_and(files)}: both names end in {source}. Name both languages, such as: "
            f"--languages {example_languages(file_languages)}"
        )
    return source, target


def languages_of_one_file(path: Path) -> Languages | None:
    """Return source and target language of a file of sentence pairs, by the name of the file.

    They are the last two languages in the name: `de` and `en` for news.de-en.tsv.

    Returns:
        The codes of both languages, or None if the name contains fewer than two.
    """
    languages = find_languages(path)
    if len(languages) < 2:
        return None
    return languages[-2], languages[-1]


def find_languages(path: Path) -> list[str]:
    """Find the languages in the name of a file, in order: `de` and `en` in news.de-English.txt.

    A language is written as a code in lower case, perhaps with a script or a region (pt-BR,
    zho_Hant), or as the name of a language. The first word is skipped, because it names the text:
    the `is` of is-it-true.txt is not the code of Icelandic. But all words count if each is a code,
    as in de-en.txt.zip.

    Returns:
        The codes or tags of the languages.
    """
    parts = [part for part in path.name.split(".") if part.lower() not in NAME_EXTENSIONS]
    words = _WORD.findall(".".join(parts))
    has_only_codes = all(_is_code(re.split("[-_]", word)[0]) for word in words)
    counted_words = words if has_only_codes else words[1:]
    languages = []
    for word in counted_words:
        language = _language_of_word(word)
        if language is not None:
            languages.append(language)
    return languages


def _language_of_word(word: str) -> str | None:
    """Return the language that a word of a file's name is; None if it is none.

    Args:
        word: Letters, such as `de` or `German`; or a code with a script or a region, such as
            `pt_BR`.

    Returns:
        The code, or the whole tag if its script and region are known.
    """
    code, *script_or_region = re.split("[-_]", word)
    if not _is_code(code):
        return code_of_language_name(word)
    if script_or_region:
        with suppress(UserError):
            return parse_language(word)
    return language_code(code)


def _is_code(word: str) -> bool:
    """Return whether a word of a file's name is a language code, in lower case."""
    return word.islower() and is_listed(word) and word not in ROLE_WORDS


def example_languages(known_languages: Sequence[str]) -> str:
    """Return two language codes for an example in an error message, such as `nl en`.

    Args:
        known_languages: Codes that the example should contain. Missing ones are filled up with `de`
            and `en`; of more than two, the first two are used.
    """
    # Each language once, in the order given.
    examples = list(dict.fromkeys(known_languages))
    if examples in ([], ["en"]):
        examples.append("de")
    if "en" not in examples:
        examples.append("en")
    source, target = examples[:2]
    return f"{source} {target}"
