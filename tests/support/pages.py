"""The report page taken apart by Python's own parser of HTML."""

from dataclasses import dataclass, field
from html.parser import HTMLParser

# Elements that have no end.
_EMPTY = {"meta", "link", "br", "input", "img", "hr"}


@dataclass
class Table:
    caption: str = ""
    heads: list[str] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)
    marks: list[str] = field(default_factory=list)

    def row(self, name):
        """The cells of the row whose first line is `name`, by their heads."""
        (found,) = [row for row in self.rows if row[0].split("\n")[0] == name]
        return dict(zip(self.heads, (name, *found[1:]), strict=True))


def page_of(section):
    """A page of this section alone."""
    return Page(f'<section id="{section.anchor}">{section.body}</section>')


class Page(HTMLParser):
    """All attributes, all ids, the text of each section, and all tables."""

    def __init__(self, text):
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
        found = {name: value or "" for name, value in attributes}
        self.attributes += [(tag, name, value) for name, value in found.items()]
        self.ids += [found["id"]] if "id" in found else []
        if tag == "section":
            self._section = found["id"]
            self.sections[self._section], self.tables[self._section] = "", []
        elif tag == "table":
            self.tables[self._section].append(Table())
        elif tag == "tr":
            self._table.rows.append([])
            self._table.marks.append(found.get("class", ""))
        elif tag == "td":
            self._table.rows[-1].append("")
        elif tag == "th":
            self._table.heads.append("")
        if tag not in _EMPTY:
            self._open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in _EMPTY:
            self.handle_endtag(tag)

    def handle_endtag(self, tag):
        assert self._open.pop() == tag
        if tag == "section":
            self._section = ""
        elif tag == "thead":
            del self._table.rows[0], self._table.marks[0]

    def handle_data(self, text):
        if self._section:
            self.sections[self._section] += text
        if "td" in self._open:
            self._table.rows[-1][-1] += text
        elif "th" in self._open:
            self._table.heads[-1] += text
        elif "caption" in self._open:
            self._table.caption += text

    def values(self, name):
        return [value for _, attribute, value in self.attributes if attribute == name]

    @property
    def _table(self):
        return self.tables[self._section][-1]
