"""Read the columns of a table (.tsv), and tell which of them contain sentences in a language.

table_columns.py chooses the source and the target column from them.
"""

import re
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from bleuprint.corpus.download.archive import open_member
from bleuprint.rules.language_id import likelihood
from bleuprint.runtime.errors import UserError

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
SHOWN_CHARACTERS = 30
# A cell that is a key, not text: an identifier that joins several words (app.title, saveButton,
# item_2), or a short code (AE, DE-AT, 12).
_KEY = re.compile(
    r"(?=\S*([A-Za-z0-9][._:/#\\-][A-Za-z0-9_]|[a-z][A-Z]|_|[0-9]))[!-~]+|[A-Z0-9]{1,3}"
)


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
        """Return why a column of a table does not look like sentences in a language.

        Numbers, keys such as `app.title`, and categories such as `news` are not sentences.

        Args:
            has_header: Whether the first cell is a column name, which is not judged.

        Returns:
            The end of a message that begins with "column 3"; an empty string if there is no
            problem.
        """
        all_cells = self.cells[1:] if has_header else self.cells
        cells = [cell for cell in all_cells if cell]
        cells_with_letters = [cell for cell in cells if _has_letter(cell)]
        if len(cells_with_letters) <= _MAJORITY * len(all_cells):
            return "has hardly any words"
        keys = [cell for cell in cells if _KEY.fullmatch(cell)]
        if len(keys) > _MAJORITY * len(cells):
            return f"contains keys such as {keys[0][:SHOWN_CHARACTERS]!r}"
        different_cells = set(cells)
        # Categories such as `news` repeat in many cells. A short table is not judged by this, since
        # a few sentences may repeat by chance.
        is_long_enough = len(cells) >= _MIN_CELLS_TO_COUNT
        if is_long_enough and len(different_cells) < _MIN_DIFFERENT_SHARE * len(cells):
            return f"contains few different values, such as {cells[0][:SHOWN_CHARACTERS]!r}"
        return ""

    def is_likely(self, language: str) -> bool:
        """Return whether the text of the column may be in a language, such as `de`.

        The answer is no only if another language is at least ten times as likely.
        """
        # The first cell is skipped: it may be a column name.
        text = " ".join(self.cells[1 : _IDENTIFIED_CELLS + 1])
        return likelihood(text, language) >= _MIN_RELATIVE_LIKELIHOOD


def _has_letter(cell: str) -> bool:
    """Return whether a cell contains a letter."""
    return any(character.isalpha() for character in cell)


def read_columns(path: Path) -> list[Column]:
    """Read the columns of a table (.tsv) from its first lines.

    The shortest line determines the number of columns. Further cells of other lines, which may be
    notes, are ignored.

    Raises:
        UserError: The file is empty, or a line has no tab.
    """
    rows = []
    # The empty tuple: the table is not inside an archive. It may be compressed, as .tsv.gz.
    with open_member(path, str(path), ()) as stream:
        for line in islice(stream, _LINES_READ):
            text = line.decode("utf-8-sig", errors="replace")
            rows.append(text.rstrip("\r\n").split("\t"))
    if not rows:
        raise UserError(f"{path}: the file is empty")
    for line_number, row in enumerate(rows, 1):
        if len(row) < 2:
            raise UserError(
                f"{path}:{line_number}: the line has no tab. A .tsv file contains one "
                "sentence pair per line, with a tab between source and target"
            )
    column_count = min(len(row) for row in rows)
    columns = []
    for index in range(column_count):
        cells = [row[index] for row in rows]
        columns.append(Column(index + 1, cells))  # Columns are numbered from 1.
    return columns
