"""Which two columns of a table are the source and the target: by its header, or by their text."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from bleuprint.corpus.download.archive import open_member
from bleuprint.rules.language_id import LanguageId, likelihood
from bleuprint.runtime.errors import UserError
from bleuprint.text.language_codes import is_listed, language_named, language_of

# The number of lines at the beginning of a table that are read to choose its columns.
_LINES_READ = 1000
# A property of cells, such as containing letters, counts for a column if more than this share of
# its cells have the property.
_MAJORITY = 0.5
# The number of cells whose language is identified, joined into one text.
_IDENTIFIED_CELLS = 200
# A column holds categories, not sentences, if the number of different cells is below this share of
# all cells. The rule applies from this number of cells on; fewer cells may repeat by chance.
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
_SIDE_NAMES = ({"source", "src"}, {"target", "tgt", "trg", "translation"})


@dataclass(frozen=True)
class Column:
    """A column of a table: its `number` from 1, and the `cells` of its first lines."""

    number: int
    cells: list[str]

    @property
    def name(self) -> str:
        """The cell in the first line."""
        return self.cells[0]

    def fault(self, has_header: bool) -> str:
        """Return why the column cannot be text in a language; an empty string if it can be.

        Args:
            has_header: Whether the first line contains names, which are not judged.
        """
        all_cells = self.cells[1:] if has_header else self.cells
        cells = [cell for cell in all_cells if cell]
        cells_with_letters = [cell for cell in cells if any(map(str.isalpha, cell))]
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
        text = " ".join(self.cells[1 : _IDENTIFIED_CELLS + 1])  # without the header, if any
        return likelihood(text, language) >= _MIN_RELATIVE_LIKELIHOOD


@dataclass(frozen=True)
class Chosen:
    """The columns of source and target, by number, or by name if the first line is a header.

    `languages`: their languages if the header names them. `about`: a line for the user.
    """

    columns: tuple[int, int] | tuple[str, str]
    languages: tuple[str, str] | None
    about: str


def choose_columns(
    path: Path, given: Sequence[str] | None, languages: Sequence[str] | None
) -> Chosen:
    """Choose the columns of source and target of a .tsv file.

    Args:
        path: the file.
        given: the user's choice: two numbers from 1, or two names in the first line.
        languages: the codes of source and target if they are known.

    Raises:
        UserError: a column does not exist or is not text, or the choice is not clear.
    """
    columns = _read_columns(path)
    header_languages = _header_languages(columns)
    header_columns = None
    if not given:
        header_columns = _by_header(path, columns, header_languages, languages)

    if given:
        source, target = [_given(path, columns, choice) for choice in given]
        is_chosen_by_name = not all(choice.isdigit() for choice in given)
        has_header = is_chosen_by_name or (
            source.number in header_languages and target.number in header_languages
        )
    elif header_columns:
        source, target = header_columns
        has_header = True
    else:
        source, target = _by_text(path, columns, languages)
        has_header = False
    _check_choice(path, columns, source, target, has_header)

    named_languages = None
    if source.number in header_languages and target.number in header_languages:
        named_languages = header_languages[source.number], header_languages[target.number]
    source_name = source.name.strip()
    target_name = target.name.strip()
    all_names = [column.name.strip() for column in columns]
    # A column can be chosen by its name only if no other column has the same name.
    are_names_unique = all_names.count(source_name) == 1 and all_names.count(target_name) == 1
    if has_header and are_names_unique:
        about = (
            f"{path}: source is column {source.number}, {source_name!r}, "
            f"target is column {target.number}, {target_name!r}"
        )
        return Chosen((source_name, target_name), named_languages, about)
    about = f"{path}: source is column {source.number}, target is column {target.number}"
    return Chosen((source.number, target.number), named_languages, about)


def _header_languages(columns: Sequence[Column]) -> dict[int, str]:
    """Return the languages that the header names, by the number of the column, from 1."""
    languages = {}
    for column in columns:
        language = _language_in(column.name)
        # A column of keys may be called id, which is also the code of Indonesian.
        if language and not column.fault(has_header=True):
            languages[column.number] = language
    return languages


def _check_choice(
    path: Path, columns: Sequence[Column], source: Column, target: Column, has_header: bool
) -> None:
    """Raise UserError if source and target are one column, or if one of them is not text."""
    if source.number == target.number:
        raise UserError(
            f"{path}: column {source.number} is given twice; name the source column, then the "
            f"target column: --columns SOURCE TARGET. {_listed(columns)}"
        )
    for column in (source, target):
        fault = column.fault(has_header)
        if fault:
            raise UserError(
                f"{path}: column {column.number} {fault}, not sentences in a language. "
                f"Name two others: --columns SOURCE TARGET. {_listed(columns)}"
            )


def _read_columns(path: Path) -> list[Column]:
    """The columns of the first lines, as many as the shortest line has."""
    with open_member(path, str(path), ()) as stream:
        lines = [line.decode("utf-8-sig", errors="replace") for line in islice(stream, _LINES_READ)]
    rows = [line.rstrip("\r\n").split("\t") for line in lines]
    if not rows:
        raise UserError(f"{path}: an empty file")
    width = min(map(len, rows))
    if width < 2:
        shortest = next(n for n, row in enumerate(rows, 1) if len(row) == width)
        raise UserError(
            f"{path}:{shortest}: the line has no tab. A .tsv file has a pair a line, source and "
            "target with a tab between them"
        )
    return [Column(at + 1, [row[at] for row in rows]) for at in range(width)]


def _language_in(cell: str) -> str | None:
    """The language that the name of a column says: `en`, `text_de`, `English`, `sentence (nl)`."""
    if language := language_named(cell):
        return language
    parts = [part for part in re.split(r"[^A-Za-z]+", cell) if part]
    if is_listed(cell) and len(parts) <= 3:  # en, pt-BR, sr_Latn_RS
        return language_of(cell)
    for part in reversed(parts):
        if len(parts) > 1 and part.islower() and is_listed(part):
            return language_of(part)
        if language := language_named(part):
            return language
    return None


def _with_name(columns: Sequence[Column], names: set[str]) -> Column | None:
    """The one column whose name is one of these."""
    found = [column for column in columns if column.name.strip().lower() in names]
    return found[0] if len(found) == 1 else None


def _given(path: Path, columns: Sequence[Column], name: str) -> Column:
    """The column of a number or a name."""
    if name.isdigit():
        found = [column for column in columns if column.number == int(name)]
    else:
        found = [column for column in columns if column.name.strip() == name]
    if len(found) != 1:
        count = "no column" if not found else f"{len(found)} columns"
        raise UserError(f"{path}:1: {count} {name!r}. {_listed(columns)}")
    return found[0]


def _by_header(
    path: Path,
    columns: Sequence[Column],
    header_languages: dict[int, str],
    languages: Sequence[str] | None,
) -> list[Column] | None:
    """The columns whose names say the languages, or source and target; None without such names."""
    sides = [_with_name(columns, names) for names in _SIDE_NAMES]
    if sides[0] and sides[1]:
        return [sides[0], sides[1]]
    wanted = languages or [*dict.fromkeys(header_languages.values())]
    if len({*header_languages.values()}) < 2 or not {*wanted} <= {*header_languages.values()}:
        return None
    chosen = []
    for language in wanted:
        chosen += [each for each in columns if header_languages.get(each.number) == language]
    if len(chosen) == 2:
        return chosen
    if languages is None and len(wanted) > 2:
        raise UserError(
            f"{path}:1: columns in {', '.join(wanted)}. Name two languages, such as: "
            f"--languages {wanted[0]} {wanted[1]}"
        )
    raise UserError(
        f"{path}:1: several columns are in one language. Name two: --columns SOURCE TARGET. "
        f"{_listed(columns)}"
    )


def _by_text(
    path: Path, columns: Sequence[Column], languages: Sequence[str] | None
) -> list[Column]:
    """The two columns of text, or of several those in the languages, in the languages' order."""
    texts = [column for column in columns if not column.fault(has_header=False)]
    if len(texts) == 2:
        return _in_order(texts[0], texts[1], languages)
    if len(texts) < 2:
        faults = "; ".join(
            f"column {column.number} {fault}"
            for column in columns
            if (fault := column.fault(has_header=False))
        )
        raise UserError(f"{path}: two columns of sentences are needed, but {faults}")
    if languages and {*languages} <= {*LanguageId.known_languages}:
        found = [
            [column for column in texts if column.is_likely(language)] for language in languages
        ]
        if all(len(each) == 1 for each in found) and found[0] != found[1]:
            return [found[0][0], found[1][0]]
    raise UserError(
        f"{path}: {len(texts)} columns of text. Name two: --columns SOURCE TARGET. "
        f"{_listed(columns)}"
    )


def _in_order(first: Column, second: Column, languages: Sequence[str] | None) -> list[Column]:
    """The two columns, exchanged if only then their text may be in the languages."""
    if languages is None or not {*languages} <= {*LanguageId.known_languages}:
        return [first, second]
    source, target = languages
    fits_in_order = first.is_likely(source) and second.is_likely(target)
    fits_exchanged = second.is_likely(source) and first.is_likely(target)
    if fits_exchanged and not fits_in_order:
        return [second, first]
    return [first, second]


def _listed(columns: Sequence[Column]) -> str:
    """The columns, and how each begins."""
    return f"Columns: {', '.join(_shown(columns))}"


def _shown(columns: Sequence[Column]) -> Iterator[str]:
    """Each column with its first cell that is not empty."""
    for column in columns:
        first = next((cell for cell in column.cells if cell.strip()), "")
        yield f"{column.number} ({first.strip()[:_SHOWN_CHARACTERS]!r})"
