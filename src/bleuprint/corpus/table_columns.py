"""Choose the two columns of a table that are source and target, by its header or by its text.

`choose_columns` is the entry point. The command new-corpus calls it for .tsv files.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from bleuprint.corpus.download.archive import open_member
from bleuprint.rules.language_id import LanguageId, likelihood
from bleuprint.runtime.errors import UserError
from bleuprint.text.language_codes import code_of_language_name, is_listed, language_code

# The number of lines at the beginning of a table that are read to choose its columns.
_LINES_READ = 1000
# A property of cells, such as containing letters, counts for a column if more than this share of
# its cells have the property.
_MAJORITY = 0.5
# The number of cells whose language is identified, joined into one text.
_IDENTIFIED_CELLS = 200
# A column contains categories, not sentences, if the number of different cells is below this share
# of all cells. The rule applies from this number of cells on; fewer cells may repeat by chance.
_MIN_DIFFERENT_SHARE = 0.1
_MIN_CELLS_TO_COUNT = 20
# The smallest likelihood of a language for the text of a column, as a share of the likelihood of
# the likeliest language.
_MIN_RELATIVE_LIKELIHOOD = 0.1
# The number of characters of a cell that a message shows.
_SHOWN_CHARACTERS = 30
# A cell that is a key, not text: an identifier that joins several words (app.title, saveButton,
# item_2), or a short code (AE, DE-AT, 12).
_KEY = re.compile(
    r"(?=\S*([A-Za-z0-9][._:/#\\-][A-Za-z0-9_]|[a-z][A-Z]|_|[0-9]))[!-~]+|[A-Z0-9]{1,3}"
)
# The column names, in lower case, that mean source and target.
_SOURCE_NAMES = {"source", "src"}
_TARGET_NAMES = {"target", "tgt", "trg", "translation"}
# A language tag has at most three parts: a language, a script and a region, as in sr_Latn_RS.
_MAX_TAG_PARTS = 3


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        number: The number of the column, counted from 1.
        cells: The cells of the column in the first lines, the first line included, which may be a
            header.
    """

    number: int
    cells: list[str]

    @property
    def name(self) -> str:
        """The cell in the first line."""
        return self.cells[0]

    @property
    def stripped_name(self) -> str:
        """The cell in the first line, without white space around it."""
        return self.name.strip()

    def problem(self, has_header: bool) -> str:
        """Return why the column cannot be text in a language; an empty string if it can be.

        Args:
            has_header: Whether the first line contains names, which are not judged.
        """
        all_cells = self.cells[1:] if has_header else self.cells
        cells = [cell for cell in all_cells if cell]
        cells_with_letters = [cell for cell in cells if _has_letter(cell)]
        if len(cells_with_letters) <= _MAJORITY * len(all_cells):
            return "has hardly any words"
        keys = [cell for cell in cells if _KEY.fullmatch(cell)]
        if len(keys) > _MAJORITY * len(cells):
            return f"holds keys such as {keys[0][:_SHOWN_CHARACTERS]!r}"
        different_cells = set(cells)
        is_long_enough = len(cells) >= _MIN_CELLS_TO_COUNT
        if is_long_enough and len(different_cells) < _MIN_DIFFERENT_SHARE * len(cells):
            return f"holds few different values, such as {cells[0][:_SHOWN_CHARACTERS]!r}"
        return ""

    def is_likely(self, language: str) -> bool:
        """Return whether the text of the column may be in a language."""
        # The first cell is skipped: it may be a header.
        text = " ".join(self.cells[1 : _IDENTIFIED_CELLS + 1])
        return likelihood(text, language) >= _MIN_RELATIVE_LIKELIHOOD


def _has_letter(cell: str) -> bool:
    """Return whether a cell contains a letter."""
    return any(character.isalpha() for character in cell)


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
    path: Path, given_columns: Sequence[str] | None, languages: Sequence[str] | None
) -> ChosenColumns:
    """Choose the columns of source and target of a .tsv file.

    The user's choice comes first, then the names in the header, then the text of the columns.

    Args:
        path: The file.
        given_columns: The columns that the user gives: two numbers from 1, or two names in the
            first line. None to choose them here.
        languages: The codes of source and target, or None if they are unknown.

    Raises:
        UserError: A column does not exist or is not text, or the choice is unclear.
    """
    columns = _read_columns(path)
    header_languages = _header_languages(columns)
    if given_columns:
        source, target = [_find_column(path, columns, choice) for choice in given_columns]
        is_chosen_by_name = not all(choice.isdigit() for choice in given_columns)
        has_language_names = source.number in header_languages and target.number in header_languages
        has_header = is_chosen_by_name or has_language_names
    else:
        header_columns = _choose_by_header(path, columns, header_languages, languages)
        has_header = header_columns is not None
        source, target = header_columns or _choose_by_text(path, columns, languages)
    _check_choice(path, columns, source, target, has_header)
    return ChosenColumns(
        columns=_column_setting(columns, source, target, has_header),
        languages=_languages_of_columns(header_languages, source, target),
        about=_describe_choice(path, columns, source, target, has_header),
    )


def _can_be_named(
    columns: Sequence[Column], source: Column, target: Column, has_header: bool
) -> bool:
    """Return whether both columns have a name in the header that no other column has."""
    if not has_header:
        return False
    names = [column.stripped_name for column in columns]
    return names.count(source.stripped_name) == 1 and names.count(target.stripped_name) == 1


def _column_setting(
    columns: Sequence[Column], source: Column, target: Column, has_header: bool
) -> tuple[int, int] | tuple[str, str]:
    """Return the setting `columns` of the text: names if possible, otherwise numbers."""
    if _can_be_named(columns, source, target, has_header):
        return source.stripped_name, target.stripped_name
    return source.number, target.number


def _describe_choice(
    path: Path, columns: Sequence[Column], source: Column, target: Column, has_header: bool
) -> str:
    """Return a line for the user that says which columns were chosen."""
    if _can_be_named(columns, source, target, has_header):
        return (
            f"{path}: source is column {source.number}, {source.stripped_name!r}, "
            f"target is column {target.number}, {target.stripped_name!r}"
        )
    return f"{path}: source is column {source.number}, target is column {target.number}"


def _languages_of_columns(
    header_languages: dict[int, str], source: Column, target: Column
) -> tuple[str, str] | None:
    """Return the languages that the header names for two columns; None if one is missing."""
    if source.number not in header_languages or target.number not in header_languages:
        return None
    return header_languages[source.number], header_languages[target.number]


def _header_languages(columns: Sequence[Column]) -> dict[int, str]:
    """Return the languages that the header names, by the number of the column, from 1."""
    languages = {}
    for column in columns:
        language = _language_of_name(column.name)
        # A column of keys may be called id, which is also the code of Indonesian.
        if language and not column.problem(has_header=True):
            languages[column.number] = language
    return languages


def _check_choice(
    path: Path, columns: Sequence[Column], source: Column, target: Column, has_header: bool
) -> None:
    """Raise UserError if source and target are one column, or if one of them is not text."""
    if source.number == target.number:
        raise UserError(
            f"{path}: column {source.number} is given twice; name the source column, then the "
            f"target column: --columns SOURCE TARGET. {_list_columns(columns)}"
        )
    for column in (source, target):
        problem = column.problem(has_header)
        if problem:
            raise UserError(
                f"{path}: column {column.number} {problem}, not sentences in a language. "
                f"Name two others: --columns SOURCE TARGET. {_list_columns(columns)}"
            )


def _read_columns(path: Path) -> list[Column]:
    """Read the first lines of a table, and return as many columns as the shortest line has.

    Raises:
        UserError: The file is empty, or a line has no tab.
    """
    rows = []
    with open_member(path, str(path), ()) as stream:
        for line in islice(stream, _LINES_READ):
            text = line.decode("utf-8-sig", errors="replace")
            rows.append(text.rstrip("\r\n").split("\t"))
    if not rows:
        raise UserError(f"{path}: an empty file")
    for line_number, row in enumerate(rows, 1):
        if len(row) < 2:
            raise UserError(
                f"{path}:{line_number}: the line has no tab. A .tsv file has a pair a line, "
                "source and target with a tab between them"
            )
    column_count = min(len(row) for row in rows)
    columns = []
    for index in range(column_count):
        cells = [row[index] for row in rows]
        columns.append(Column(index + 1, cells))
    return columns


def _language_of_name(name: str) -> str | None:
    """Return the language that the name of a column means.

    Args:
        name: The name, such as `English`, `en`, `pt-BR`, `text_de` or `sentence (nl)`.

    Returns:
        The code of the language; None if the name means none.
    """
    named_language = code_of_language_name(name)
    if named_language:
        return named_language
    parts = [part for part in re.split(r"[^A-Za-z]+", name) if part]
    if is_listed(name) and len(parts) <= _MAX_TAG_PARTS:
        return language_code(name)
    # The language mostly stands at the end of a longer name.
    for part in reversed(parts):
        if len(parts) > 1 and part.islower() and is_listed(part):
            return language_code(part)
        named_language = code_of_language_name(part)
        if named_language:
            return named_language
    return None


def _column_with_name(columns: Sequence[Column], names: set[str]) -> Column | None:
    """Return the only column that has one of some names in lower case; None if there is not one."""
    matching = [column for column in columns if column.stripped_name.lower() in names]
    if len(matching) != 1:
        return None
    return matching[0]


def _find_column(path: Path, columns: Sequence[Column], choice: str) -> Column:
    """Return the column that the user gives by its number or its name.

    Raises:
        UserError: There is no such column, or several columns have this name.
    """
    if choice.isdigit():
        matching = [column for column in columns if column.number == int(choice)]
    else:
        matching = [column for column in columns if column.stripped_name == choice]
    if len(matching) != 1:
        count = f"{len(matching)} columns" if matching else "no column"
        raise UserError(f"{path}:1: {count} {choice!r}. {_list_columns(columns)}")
    return matching[0]


def _choose_by_header(
    path: Path,
    columns: Sequence[Column],
    header_languages: dict[int, str],
    languages: Sequence[str] | None,
) -> tuple[Column, Column] | None:
    """Choose the columns that are named source and target, or after the languages.

    Args:
        path: The file, for messages.
        columns: All columns.
        header_languages: The languages that the header names, by the number of the column.
        languages: The codes of source and target, or None if they are unknown.

    Returns:
        The columns of source and target; None if the header does not name them.

    Raises:
        UserError: The header names more than two languages, or one language several times.
    """
    source = _column_with_name(columns, _SOURCE_NAMES)
    target = _column_with_name(columns, _TARGET_NAMES)
    if source and target:
        return source, target
    named_languages = list(dict.fromkeys(header_languages.values()))
    wanted_languages = languages or named_languages
    if len(named_languages) < 2 or not set(wanted_languages) <= set(named_languages):
        return None
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
            f"{path}:1: columns in {', '.join(named_languages)}. Name two languages, such as: "
            f"--languages {named_languages[0]} {named_languages[1]}"
        )
    raise UserError(
        f"{path}:1: several columns are in one language. Name two: --columns SOURCE TARGET. "
        f"{_list_columns(columns)}"
    )


def _choose_by_text(
    path: Path, columns: Sequence[Column], languages: Sequence[str] | None
) -> tuple[Column, Column]:
    """Choose the only two columns of text, or of more columns those in the languages.

    Args:
        path: The file, for messages.
        columns: All columns.
        languages: The codes of source and target, or None if they are unknown.

    Returns:
        The columns of source and target.

    Raises:
        UserError: Fewer than two columns are text, or more than two and the choice is unclear.
    """
    text_columns = [column for column in columns if not column.problem(has_header=False)]
    if len(text_columns) < 2:
        raise UserError(
            f"{path}: two columns of sentences are needed, but {_list_problems(columns)}"
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
        f"{path}: {len(text_columns)} columns of text. Name two: --columns SOURCE TARGET. "
        f"{_list_columns(columns)}"
    )


def _list_problems(columns: Sequence[Column]) -> str:
    """List the columns that are not text, and why, for a message."""
    problems = []
    for column in columns:
        problem = column.problem(has_header=False)
        if problem:
            problems.append(f"column {column.number} {problem}")
    return "; ".join(problems)


def _order_by_language(
    first: Column, second: Column, languages: Sequence[str] | None
) -> tuple[Column, Column]:
    """Return two columns as source and target.

    They are exchanged if their text may be in the languages only in the other order.
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
    """Return whether text in all these languages can be identified."""
    return set(languages) <= set(LanguageId.known_languages)


def _list_columns(columns: Sequence[Column]) -> str:
    """List the columns for a message, each with the start of its first cell that is not empty."""
    descriptions = []
    for column in columns:
        first_text = ""
        for cell in column.cells:
            if cell.strip():
                first_text = cell.strip()
                break
        descriptions.append(f"{column.number} ({first_text[:_SHOWN_CHARACTERS]!r})")
    return f"Columns: {', '.join(descriptions)}"
