"""The report page, parsed by the HTML parser of Python's standard library."""

from dataclasses import dataclass, field
from html.parser import HTMLParser

# Elements without an end tag.
_EMPTY = {"meta", "link", "br", "input", "img", "hr"}


@dataclass
class Table:
    """A table of the page.

    Attributes:
        caption: The text of the caption.
        heads: The texts of the head cells.
        rows: The texts of the cells of each row, without the heads.
        marks: The class of each row, such as "baseline"; empty if it has none.
    """

    caption: str = ""
    heads: list[str] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)
    marks: list[str] = field(default_factory=list)

    def row(self, name):
        """Return the cells of the row with this name by their heads."""
        (row,) = [row for row in self.rows if row[0].split("\n")[0] == name]
        return dict(zip(self.heads, [name, *row[1:]], strict=True))


def page_of(section):
    """Return a page that consists of a section."""
    return Page(f'<section id="{section.anchor}">{section.body}</section>')


class Page(HTMLParser):
    """A parsed page.

    Attributes:
        attributes: The tag, the name and the value of each attribute.
        ids: The ids of all elements.
        sections: The text of each section by its id.
        tables: The tables of each section by its id.
    """

    def __init__(self, text):
        """Parse the HTML of a page; fail if an element has no end tag."""
        super().__init__()
        self.attributes: list[tuple[str, str, str]] = []
        self.ids: list[str] = []
        self.sections: dict[str, str] = {}
        self.tables: dict[str, list[Table]] = {}
        self._open: list[str] = []
        self._section = ""
        self.feed(text)
        self.close()
        assert not self._open

    def handle_starttag(self, tag, attributes):
        """Record the attributes of an element, and begin a section, table, row or cell.

        HTMLParser calls this method.
        """
        values = {}
        for name, value in attributes:
            values[name] = value or ""
            self.attributes.append((tag, name, values[name]))
        if "id" in values:
            self.ids.append(values["id"])
        if tag == "section":
            self._section = values["id"]
            self.sections[self._section] = ""
            self.tables[self._section] = []
        elif tag == "table":
            self.tables[self._section].append(Table())
        elif tag == "tr":
            self._table.rows.append([])
            self._table.marks.append(values.get("class", ""))
        elif tag == "td":
            self._table.rows[-1].append("")
        elif tag == "th":
            self._table.heads.append("")
        if tag not in _EMPTY:
            self._open.append(tag)

    def handle_startendtag(self, tag, attributes):
        """Treat an element such as `<path/>`, in SVG, as a start tag followed by an end tag."""
        self.handle_starttag(tag, attributes)
        if tag not in _EMPTY:
            self.handle_endtag(tag)

    def handle_endtag(self, tag):
        """Close an element, which must be the one that was opened last; HTMLParser calls this."""
        assert self._open.pop() == tag
        if tag == "section":
            self._section = ""
        elif tag == "thead":
            # The row of head cells was recorded as a row of the table.
            del self._table.rows[0], self._table.marks[0]

    def handle_data(self, text):
        """Add text to its section, and to its cell or caption; HTMLParser calls this method."""
        if self._section:
            self.sections[self._section] += text
        if "td" in self._open:
            self._table.rows[-1][-1] += text
        elif "th" in self._open:
            self._table.heads[-1] += text
        elif "caption" in self._open:
            self._table.caption += text

    def values(self, name):
        """Return the values of all attributes with this name."""
        return [value for _, attribute, value in self.attributes if attribute == name]

    @property
    def _table(self):
        """Return the table that is being parsed."""
        return self.tables[self._section][-1]
