"""Choose the languages of a user's files: by the option --languages, or by the names of the files.

The command new-corpus uses these functions for every format. A translation memory also names its
languages inside the file (memory_languages.py), and so may the header of a table
(table_columns.py).
"""

import re
from collections.abc import Sequence
from pathlib import Path

from bleuprint.runtime.errors import UserError
from bleuprint.runtime.wording import join_with_and
from bleuprint.text.language_codes import code_of_language_name, is_listed, language_code

# A language code, such as de, deu or pt-BR.
_CODE = re.compile(r"[A-Za-z]{2,3}([-_][A-Za-z0-9]{1,8})*")

# The codes of source and target.
Languages = tuple[str, str]


def parse_language(code: str) -> str:
    """Return this project's code for a language code that the user typed: `de` for `ger`.

    Raises:
        UserError: The text is not a language code.
    """
    if _CODE.fullmatch(code):
        return language_code(code)
    named_language = code_of_language_name(code)
    hint = f"{code} is {named_language}" if named_language else "use one such as de"
    raise UserError(f"--languages {code}: not a language code of two or three letters; {hint}")


def check_two_languages(files: Sequence[Path], source: str, target: str) -> Languages:
    """Return the languages of source and target if they differ.

    Args:
        files: The files, for the message.
        source: The code of the source language.
        target: The code of the target language.

    Raises:
        UserError: Both are the same language.
    """
    if source == target:
        raise UserError(
            f"{join_with_and(files)}: source and target are both {source}. For text in "
            f"one language, such as simplification, give the target a code for local use: "
            f"--languages {source} qaa"
        )
    return source, target


def languages_of_two_files(files: Sequence[Path]) -> Languages:
    """Return the languages that the names of two files end in: `de` of a.en-de.de or a-de.txt.

    Args:
        files: The files of source and target.

    Raises:
        UserError: A name contains no language, or both names end in the same language.
    """
    file_languages = []
    for path in files:
        languages_in_name = find_languages(path)
        if not languages_in_name:
            example = example_languages(find_languages(files[0]) + find_languages(files[1]))
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
    """Return the last two languages in the name of a file; None if it contains fewer."""
    languages = find_languages(path)
    if len(languages) < 2:
        return None
    return languages[-2], languages[-1]


def find_languages(path: Path) -> list[str]:
    """Find the languages in the name of a file, in order.

    They are codes in lower case or names of languages, between characters that are not letters. The
    first part of the name is skipped: it names the text.
    """
    parts = re.split(r"[^A-Za-z]+", path.name)
    languages = []
    for part in parts[1:]:
        if part.islower() and is_listed(part):
            languages.append(language_code(part))
            continue
        named_language = code_of_language_name(part)
        if named_language:
            languages.append(named_language)
    return languages


def example_languages(known_languages: Sequence[str]) -> str:
    """Return two languages for an example in a message, such as `nl en`.

    Args:
        known_languages: Languages that the example should contain; more than two are cut.
    """
    examples = list(dict.fromkeys(known_languages))
    if set(examples) <= {"en"}:
        examples.append("de")
    if "en" not in examples:
        examples.append("en")
    source, target = examples[:2]
    return f"{source} {target}"
