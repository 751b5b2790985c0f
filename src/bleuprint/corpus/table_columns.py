"""Choose the two columns of a table that are source and target, by its header or by its text.

`choose_columns` is the entry point. The command new-corpus calls it for .tsv, .csv, .jsonl and
.parquet files.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from bleuprint.config.corpus_files import File
from bleuprint.config.text_formats import TABLES_OF_RECORDS, Format
from bleuprint.corpus.file_languages import ROLE_WORDS
from bleuprint.corpus.table import SHOWN_CHARACTERS, Column, read_columns
from bleuprint.rules.language_id import LanguageId
from bleuprint.runtime.errors import UserError
from bleuprint.text.language_codes import code_of_language_name, is_listed, language_code

# The column names, in lower case, that mean source and target. Tables of human judgments have the
# target as the reference, besides outputs of systems.
_SOURCE_NAMES = {"source", "src"}
_TARGET_NAMES = {"target", "tgt", "trg", "translation"}
_REFERENCE_NAMES = {"ref", "reference"}
# The name of a column with the output of a system, beside a column that is named `src` or `source`.
# Otherwise it is the code of Maltese.
_MACHINE_TRANSLATION = "mt"
# A language tag has at most three parts: a language, a script and a region, as in sr_Latn_RS.
_MAX_TAG_PARTS = 3
# In a table without a header, the first line is a sentence pair. A sentence often contains a word
# that is also the code of a language, such as "to" (Tongan), so a longer text is not a column name.
_MAX_NAME_WORDS = 4


@dataclass(frozen=True)
class ChosenColumns:
    """The columns of source and target.

    Attributes:
        columns: The columns, by name if the first line is a header, otherwise by number from 1.
        languages: The languages of source and target if the header names them, otherwise None.
        about: A line for the user that says which columns were chosen.
    """

    columns: tuple[int, int] | tuple[str, str]
    languages: tuple[str, str] | None
    about: str


def choose_columns(
    file: File,
    text_format: Format,
    given_columns: Sequence[str] | None,
    languages: Sequence[str] | None,
) -> ChosenColumns:
    """Choose the columns of a table that contain the source and the target sentences.

    The columns are those that the user names; otherwise those whose names in the first line say so,
    such as `source` or `German`; otherwise those whose cells look like sentences.

    Args:
        file: The file of the table.
        text_format: The format of the table: tsv, csv, jsonl or parquet.
        given_columns: The source and the target column that the user names: two numbers from 1, or
            two names in the first line. None if the user names no columns.
        languages: The codes of source and target, such as `de` and `en`; None if they are unknown.

    Raises:
        UserError: A column does not exist or is not text, or the choice is unclear.
    """
    table = file.name
    columns = read_columns(file, text_format)
    header_languages = _header_languages(columns)
    if given_columns:
        source, target = [_find_column(table, columns, choice) for choice in given_columns]
        # The first line is a header if the user has named columns of it, or if the two columns are
        # named after languages there.
        is_chosen_by_name = not all(choice.isdecimal() for choice in given_columns)
        has_language_names = source.number in header_languages and target.number in header_languages
        has_header = is_chosen_by_name or has_language_names
    else:
        named_columns = _choose_by_header(table, columns, header_languages, languages)
        has_header = named_columns is not None
        source, target = named_columns or _choose_by_text(table, columns, languages)
    # The columns of some formats always have names.
    has_header |= text_format in TABLES_OF_RECORDS
    _check_choice(table, columns, source, target, has_header)
    return ChosenColumns(
        columns=_column_setting(columns, source, target, has_header),
        languages=_languages_of_columns(header_languages, source, target),
        about=_describe_choice(table, columns, source, target, has_header),
    )


def _can_be_named(
    columns: Sequence[Column], source: Column, target: Column, has_header: bool
) -> bool:
    """Return whether the source and the target column can be found again by their names.

    Args:
        columns: All columns of the table.
        source: The source column.
        target: The target column.
        has_header: Whether the first line contains column names. If it does, both names must be
            unique.
    """
    if not has_header:
        return False
    names = [column.stripped_name for column in columns]
    return names.count(source.stripped_name) == 1 and names.count(target.stripped_name) == 1


def _column_setting(
    columns: Sequence[Column], source: Column, target: Column, has_header: bool
) -> tuple[int, int] | tuple[str, str]:
    """Return the source and the target column as they are written to params.yaml.

    Column names are easier to read and to keep. Numbers, from 1, are written for a table without
    unique names.

    Args:
        columns: All columns of the table.
        source: The source column.
        target: The target column.
        has_header: Whether the first line contains column names.
    """
    if _can_be_named(columns, source, target, has_header):
        return source.stripped_name, target.stripped_name
    return source.number, target.number


def _describe_choice(
    table: str, columns: Sequence[Column], source: Column, target: Column, has_header: bool
) -> str:
    """Return a line for the user that says which columns of a table were chosen.

    Args:
        table: The name of the table.
        columns: All its columns.
        source: The source column.
        target: The target column.
        has_header: Whether the first line contains column names, which are then shown.
    """
    if _can_be_named(columns, source, target, has_header):
        return (
            f"{table}: source is column {source.number}, {source.stripped_name!r}, "
            f"target is column {target.number}, {target.stripped_name!r}"
        )
    return f"{table}: source is column {source.number}, target is column {target.number}"


def _languages_of_columns(
    header_languages: dict[int, str], source: Column, target: Column
) -> tuple[str, str] | None:
    """Return the languages of the source and the target column, by the names of the columns.

    Args:
        header_languages: The language that a column is named after, by the column's number.
        source: The source column.
        target: The target column.

    Returns:
        The codes of both languages; None if one of the columns is not named after a language.
    """
    if source.number not in header_languages or target.number not in header_languages:
        return None
    return header_languages[source.number], header_languages[target.number]


def _header_languages(columns: Sequence[Column]) -> dict[int, str]:
    """Return the languages after which columns of a table are named, such as German or text_de.

    Returns:
        The code of the language, such as `de`, by the number of the column, from 1. Columns with
        other names are missing.
    """
    has_source = _column_with_name(columns, _SOURCE_NAMES) is not None
    languages = {}
    for column in columns:
        is_output = has_source and column.stripped_name.lower() == _MACHINE_TRANSLATION
        language = None if is_output else _language_of_name(column.name)
        # A column with the name `id` mostly contains keys, although id is also the code of
        # Indonesian. So the cells must look like sentences, too.
        has_text = column.problem(has_header=True) == ""
        if language and has_text:
            languages[column.number] = language
    return languages


def _check_choice(
    table: str, columns: Sequence[Column], source: Column, target: Column, has_header: bool
) -> None:
    """Check that source and target are two different columns, and that both contain sentences.

    Args:
        table: The name of the table in messages.
        columns: All its columns, for messages.
        source: The chosen source column.
        target: The chosen target column.
        has_header: Whether the first line contains column names, which are not judged.

    Raises:
        UserError: Source and target are one column, or one of them does not contain sentences.
    """
    if source.number == target.number:
        raise UserError(
            f"{table}: column {source.number} is given twice. Name the source column, then the "
            f"target column: --columns SOURCE TARGET. {_list_columns(columns)}"
        )
    for column in (source, target):
        problem = column.problem(has_header)
        if problem:
            raise UserError(
                f"{table}: column {column.number} {problem}, not sentences in a language. "
                f"Name two others: --columns SOURCE TARGET. {_list_columns(columns)}"
            )


def _language_of_name(name: str) -> str | None:
    """Find a language in the name of a column.

    The name may be a language (`English`), its code (`en`, `pt-BR`), or longer (`text_de`,
    `sentence (nl)`).

    Returns:
        The code of the language, such as `en`; None if the name contains no language, or is as
        long as a sentence.
    """
    language = code_of_language_name(name)
    if language:
        return language
    words = [word for word in re.split(r"[^A-Za-z]+", name) if word]
    if len(words) > _MAX_NAME_WORDS:
        return None
    if name.strip().lower() in ROLE_WORDS:
        return None
    # The whole name is a code with at most a script and a region, such as sr_Latn_RS.
    if is_listed(name) and len(words) <= _MAX_TAG_PARTS:
        return language_code(name)
    # In a longer name, the language is mostly the last word.
    for word in reversed(words):
        is_code = word.islower() and is_listed(word) and word not in ROLE_WORDS
        if len(words) > 1 and is_code:
            return language_code(word)
        language = code_of_language_name(word)
        if language:
            return language
    return None


def _column_with_name(columns: Sequence[Column], names: set[str]) -> Column | None:
    """Find a column by several possible names.

    Args:
        columns: All columns of a table.
        names: The names in lower case, such as `source` and `src`.

    Returns:
        The column; None if no column or more than one has such a name.
    """
    matching = [column for column in columns if column.stripped_name.lower() in names]
    if len(matching) != 1:
        return None
    return matching[0]


def _find_column(table: str, columns: Sequence[Column], choice: str) -> Column:
    """Return the column that the user chose on the command line.

    Args:
        table: The name of the table in messages.
        columns: All its columns.
        choice: The number of the column, from 1, or its name in the first line.

    Raises:
        UserError: The column does not exist, or several columns have this name.
    """
    if choice.isdecimal():
        matching = [column for column in columns if column.number == int(choice)]
    else:
        matching = [column for column in columns if column.stripped_name == choice]
    if len(matching) != 1:
        count = f"{len(matching)} columns" if matching else "no column"
        raise UserError(f"{table}:1: {count} {choice!r}. {_list_columns(columns)}")
    return matching[0]


def _choose_by_header(
    table: str,
    columns: Sequence[Column],
    header_languages: dict[int, str],
    languages: Sequence[str] | None,
) -> tuple[Column, Column] | None:
    """Choose the source and the target column of a table by the names in its first line.

    The columns are named `source` and `target`, or after the two languages.

    Args:
        table: The name of the table in messages.
        columns: All columns.
        header_languages: The language that a column is named after, by the column's number.
        languages: The codes of source and target, such as `de` and `en`; None if they are unknown.

    Returns:
        The source and the target column; None if no columns have such names.

    Raises:
        UserError: The header names more than two languages, or one language several times.
    """
    source = _column_with_name(columns, _SOURCE_NAMES)
    target = _column_with_name(columns, _TARGET_NAMES)
    target = target or _column_with_name(columns, _REFERENCE_NAMES)
    if source and target:
        return source, target
    # Each language once, in the order of the columns.
    named_languages = list(dict.fromkeys(header_languages.values()))
    # If the user does not say which languages are wanted, the table must contain exactly two.
    wanted_languages = languages or named_languages
    has_wanted_languages = set(wanted_languages) <= set(named_languages)
    if len(named_languages) < 2 or not has_wanted_languages:
        return None
    # The columns of the first language, then of the second: one each if the choice is clear.
    chosen = []
    for language in wanted_languages:
        for column in columns:
            if header_languages.get(column.number) == language:
                chosen.append(column)
    if len(chosen) == 2:
        source, target = chosen
        return source, target
    if languages is None and len(named_languages) > 2:
        raise UserError(
            f"{table}:1: columns are named after {', '.join(named_languages)}. Name two "
            f"languages, such as: --languages {named_languages[0]} {named_languages[1]}"
        )
    raise UserError(
        f"{table}:1: several columns are in one language. Name two: --columns SOURCE TARGET. "
        f"{_list_columns(columns)}"
    )


def _choose_by_text(
    table: str, columns: Sequence[Column], languages: Sequence[str] | None
) -> tuple[Column, Column]:
    """Choose the source and the target column of a table by the text that its columns contain.

    Columns of numbers or keys are ignored. If more than two columns remain, the one in the source
    language and the one in the target language are chosen.

    Args:
        table: The name of the table in messages.
        columns: All columns.
        languages: The codes of source and target, such as `de` and `en`; None if they are unknown.

    Returns:
        The source and the target column.

    Raises:
        UserError: Fewer than two columns are text, or more than two and the choice is unclear.
    """
    text_columns = [column for column in columns if not column.problem(has_header=False)]
    if len(text_columns) < 2:
        raise UserError(
            f"{table}: two columns of sentences are needed, but {_list_problems(columns)}"
        )
    if len(text_columns) == 2:
        first, second = text_columns
        return _order_by_language(first, second, languages)
    if languages and _can_be_identified(languages):
        source_language, target_language = languages
        source_columns = [column for column in text_columns if column.is_likely(source_language)]
        target_columns = [column for column in text_columns if column.is_likely(target_language)]
        is_clear = len(source_columns) == 1 and len(target_columns) == 1
        if is_clear and source_columns != target_columns:
            return source_columns[0], target_columns[0]
    raise UserError(
        f"{table}: {len(text_columns)} columns contain text. Name two: --columns SOURCE TARGET. "
        f"{_list_columns(columns)}"
    )


def _list_problems(columns: Sequence[Column]) -> str:
    """List for an error message which columns do not contain sentences, and why.

    For example: `column 1 has hardly any words; column 2 contains keys such as 'app.title'`.
    """
    problems = []
    for column in columns:
        problem = column.problem(has_header=False)
        if problem:
            problems.append(f"column {column.number} {problem}")
    return "; ".join(problems)


def _order_by_language(
    first: Column, second: Column, languages: Sequence[str] | None
) -> tuple[Column, Column]:
    """Decide which of two columns is the source, and which the target.

    The first one is the source, unless the text shows the opposite.

    Args:
        first: The left column.
        second: The right column.
        languages: The codes of source and target, such as `de` and `en`; None if they are unknown.

    Returns:
        The source and the target column.
    """
    if languages is None or not _can_be_identified(languages):
        return first, second
    source_language, target_language = languages
    fits_in_order = first.is_likely(source_language) and second.is_likely(target_language)
    fits_exchanged = second.is_likely(source_language) and first.is_likely(target_language)
    if fits_exchanged and not fits_in_order:
        return second, first
    return first, second


def _can_be_identified(languages: Sequence[str]) -> bool:
    """Return whether the program can recognize text in all these languages."""
    return set(languages) <= set(LanguageId.known_languages)


def _list_columns(columns: Sequence[Column]) -> str:
    """List the columns of a table for an error message, each with the start of its text.

    For example: `Columns: 1 ('Ein Hund'), 2 ('A dog')`.
    """
    descriptions = []
    for column in columns:
        first_text = ""
        for cell in column.cells:
            if cell.strip():
                first_text = cell.strip()
                break
        descriptions.append(f"{column.number} ({first_text[:SHOWN_CHARACTERS]!r})")
    return f"Columns: {', '.join(descriptions)}"
