"""Text from outside is shown by every output and executed by none.

It comes from params.yaml, from published numbers and from results of others. A terminal would obey
control characters in it, a browser markup, a spreadsheet formulas, and a shell substitutions.
"""

import csv
import html
import io
import json
import re
import shlex
from dataclasses import replace

import pytest
from markdown_it import MarkdownIt

from bleuprint.config.citation import LicenseAndCitation
from bleuprint.config.published import Published
from bleuprint.pipeline.release import _TEMPLATES, _public_address
from bleuprint.report import frame as frames
from bleuprint.report import notes
from bleuprint.report.citations import citations
from bleuprint.report.overview import everything, one_screen
from bleuprint.report.published.literature import with_published_numbers
from bleuprint.report.render import bullets, latex, markdown
from bleuprint.report.score_frame import score_frame
from bleuprint.report.score_tables import tables_by_test_set, wide_bleu_table
from bleuprint.report.table import Cell, Column, Row, Table, text_table
from bleuprint.report.terminal import show
from bleuprint.runtime.foreign_text import print_escaped, remove_controls, spreadsheet_cell
from recipes import SETTINGS
from result_rows import compared_with, record, records_from_rows

# A title of the terminal's window, ESC [2J, which clears the screen, CSI of C1, DEL, NUL, a bell, a
# line separator, and an override and an isolate of the direction.
CONTROLS = "\x1b]0;owned\x07\x1b[2J\x9b31m\x7f\x00\u2028\u202e\u2066"
# Control characters, line separators and marks of direction; tab and line feed are no danger.
CONTROL_CHARACTER = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"
)
# Links, images, HTML and a definition of a link, as Markdown would read them.
MARKUP = (
    "[x](javascript:alert(1)) ![y](http://host/p.png) <img src=x onerror=alert(1)> [r]: x a\\|b"
)
# The same with a formula and commands of shells and TeX.
HOSTILE_TEXT = f"=cmd|'/C calc'!A1 {CONTROLS}{MARKUP} $(id) `id` 'quoted' 100% {{x}} \\input{{y}}"


def records_with_description(about):
    """Return the records of base and of the external system others.

    Args:
        about: The text with which params.yaml describes the external system.
    """
    base = record("base", "news-en-de", "first", bleu=20.0)
    others = record(
        "others", "news-en-de", "first", bleu=24.0, about=about, **compared_with("base", p=0.01)
    )
    return records_from_rows(base, others)


def hostile_records():
    """Return the records of base and of an external system that HOSTILE_TEXT describes."""
    return records_with_description(HOSTILE_TEXT)


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch):
    """Let the terminal have 400 columns, so that no text is wrapped."""
    monkeypatch.setenv("COLUMNS", "400")


def control_characters(text):
    """Return the control characters of a text, except tabs and line feeds."""
    return CONTROL_CHARACTER.findall(text)


def test_control_characters_are_removed():
    assert len(control_characters(CONTROLS)) == 9
    assert control_characters(remove_controls(CONTROLS)) == []
    assert remove_controls("a\x1bb\u202ec\u2028d") == "a bc d"


def test_characters_that_belong_to_spelling_are_kept():
    """Persian and German need some invisible characters; removing them would misspell words."""
    soft_hyphen = "\u00ad"
    zero_width_joiner = "\u200d"
    arabic_vowel_sign = "\u064e"
    text = f"a\tb\n{soft_hyphen}c{zero_width_joiner}{arabic_vowel_sign}"

    assert control_characters(text) == []
    assert remove_controls(text) == text


def test_the_notes_of_table_md_contain_no_control_characters():
    text = bullets(notes.all_notes(hostile_records()))

    assert "owned" in text  # The printable part of a control sequence is still shown.
    assert control_characters(text) == []


def test_table_tex_contains_no_control_characters():
    """A record says what its system is, with control characters around the word `owned`."""
    records = hostile_records()
    table = wide_bleu_table(score_frame(records))
    caption = " ".join(notes.all_notes(records))

    text = latex(table, caption)

    assert "owned" in text  # The printable part of a control sequence is still shown.
    assert control_characters(text) == []


def test_table_csv_contains_no_control_characters():
    text = frames.csv_text(hostile_records())

    assert "owned" in text  # The printable part of a control sequence is still shown.
    assert control_characters(text) == []


def test_control_characters_in_results_of_others_are_removed(tmp_path):
    r"""A results.json may come from a stranger; printing its names could take over the terminal.

    In JSON, control characters are escapes, such as \u001b, so the file itself looks harmless.
    """
    path = tmp_path / "results.json"
    records_with_description("plain").save(path)
    hostile_name = json.dumps(f"others{CONTROLS}x").strip('"')
    path.write_text(path.read_text("utf-8").replace("others", hostile_name), "utf-8")

    records = frames.read_without_costs(path)

    assert len(records.runs) == 2
    for table in (records.runs, records.metrics):
        all_cells = " ".join(str(cell) for cell in table.to_numpy().ravel())
        assert control_characters(all_cells) == []


def test_the_overview_on_the_terminal_contains_no_control_characters(capsys):
    """Both views of `bleuprint table` show a record whose description has control characters."""
    records = hostile_records()
    note = f"a line {CONTROLS}"

    show([*one_screen(records), *everything(records), note])

    assert control_characters(capsys.readouterr().out) == []


def test_a_table_on_the_terminal_shows_control_characters_as_escapes(capsys):
    """CONTROLS, in heads and cells here, would set the window's title and clear the screen."""
    heads = [CONTROLS]
    number_heads = [f"n{CONTROLS}"]
    row = (f"a{CONTROLS}b", f"1{CONTROLS}")

    show([text_table(heads, number_heads, [row])])

    printed = capsys.readouterr().out
    assert control_characters(printed) == []
    assert r"a\x1b]0;owned\x07\x1b[2J\x9b31m\x7f\x00\u2028\u202e\u2066b" in printed


def test_messages_show_control_characters_as_escapes(capsys):
    """Tabs and line feeds are printed as they are; all other control characters as text."""
    print_escaped(f"one{CONTROLS}\ntwo\tthree")

    printed = capsys.readouterr().out
    assert control_characters(printed) == []
    assert "two\tthree\n" in printed


def html_of_markdown(text):
    """Return the HTML that an independent reader of Markdown makes."""
    reader = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    return reader.render(text)


# Texts that Markdown would take for links, headings, quotes, lists, emphasis or code.
MARKDOWN_SYNTAX = [
    MARKUP,
    "# a",
    "> b",
    "- c",
    "+ d",
    "1. e",
    "2) f",
    "=== g",
    "a_b_ _c_ **d** `e` &lt;",
]


def test_a_markdown_list_shows_texts_as_they_are():
    page = html_of_markdown(bullets(MARKDOWN_SYNTAX))

    items = re.findall("<li>([^<>]*)</li>", page)
    assert [html.unescape(item) for item in items] == MARKDOWN_SYNTAX


@pytest.fixture
def markdown_table_page():
    """Return the HTML of a Markdown table with a row for each text, and a score that is best."""
    name = Column(MARKUP, is_text=True)
    number = Column("n|m\\")
    best = Cell("1.0 [0.5, 2.0]", 1.0, is_bold=True)
    rows = [Row({name: Cell(text), number: best}) for text in MARKDOWN_SYNTAX]
    return html_of_markdown(markdown(Table([name, number], rows)))


def test_a_markdown_table_shows_heads_and_cells_as_they_are(markdown_table_page):
    """A Markdown program turns our table into HTML, which must show the same characters.

    Heads and cells contain what Markdown would read as links, images, bold type and HTML.
    """
    heads = re.findall("<th[^>]*>([^<>]*)</th>", markdown_table_page)
    cells = re.findall("<td[^>]*>([^<>]*)</td>", markdown_table_page)

    assert [html.unescape(head) for head in heads] == [MARKUP, "n|m\\"]
    assert [html.unescape(cell) for cell in cells] == MARKDOWN_SYNTAX


def test_a_markdown_table_has_no_links_or_images_from_outside(markdown_table_page):
    assert "<a" not in markdown_table_page
    assert "<img" not in markdown_table_page


def test_a_markdown_table_shows_the_best_score_in_bold(markdown_table_page):
    count = markdown_table_page.count("<strong>1.0 [0.5, 2.0]</strong>")
    assert count == len(MARKDOWN_SYNTAX)


def test_a_link_definition_from_outside_does_not_turn_an_interval_into_a_link():
    """Table.md shows BLEU with an interval, as 20.0 [19.0, 22.0].

    A paragraph `[19.0, 22.0]: ADDRESS` in a description would make each [19.0, 22.0] a link.
    """
    records = records_with_description("]\n\n[19.0, 22.0]: javascript:alert(1)")
    (table,) = tables_by_test_set(score_frame(records)).values()

    page = html_of_markdown(f"{markdown(table)}\n{bullets(notes.all_notes(records))}")

    assert "[19.0, 22.0]" in page
    assert "javascript" in page
    assert "<a" not in page


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        ("=1+1", "'=1+1"),
        ("+49 30", "'+49 30"),
        ("-ours", "'-ours"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1", "'\t=1"),
        ("\tx", "'\tx"),
        (" =1", "' =1"),
        ("\r=1", "' =1"),
        ("＝1+1", "'＝1+1"),
    ],
)
def test_a_text_that_a_spreadsheet_would_compute_is_quoted(value, cell):
    assert spreadsheet_cell(value) == cell


@pytest.mark.parametrize("value", ["-1.3", "+0.5", "-1e-5", -1.3, None, "a=b", ""])
def test_a_number_or_plain_text_is_not_quoted_for_spreadsheets(value):
    assert spreadsheet_cell(value) == value


def csv_row(records, system, metric):
    """Return the row of table.csv with a metric of a system on all lines."""
    table = csv.DictReader(io.StringIO(frames.csv_text(records)))
    for row in table:
        if row["system"] == system and row["metric"] == metric and not row["group"]:
            return row
    raise AssertionError("there is no such row")


def test_table_csv_quotes_formulas_of_published_numbers():
    """A spreadsheet runs a cell that begins with = or +; an apostrophe before it makes it text."""
    number = Published(
        "=HYPERLINK(1)", "+cmd", "news-en-de", "first", bleu=20.5, metric="sacrebleu"
    )
    records = with_published_numbers(hostile_records(), [number])

    row = csv_row(records, "'=HYPERLINK(1)", "bleu")

    assert row["published"] == "'+cmd"


def test_table_csv_quotes_formulas_of_external_systems():
    assert csv_row(hostile_records(), "others", "bleu")["about"].startswith("'=cmd|")


def test_table_csv_keeps_numbers():
    """TER is 9 below BLEU in these records."""
    assert float(csv_row(hostile_records(), "base", "ter")["value"]) == 11.0


def test_table_csv_keeps_negative_differences():
    """A text that begins with - is quoted, as a spreadsheet might run it; a number must not be."""
    records = records_from_rows(
        record("base", "news-en-de", "first", bleu=20.0),
        record("x", "news-en-de", "first", bleu=18.7, **compared_with("base", p=0.5)),
    )

    difference = csv_row(records, "x", "bleu")["difference"]

    assert float(difference) == pytest.approx(18.7 - 20.0)


def test_citations_contain_no_control_characters():
    """Licenses and BibTeX of a corpus are typed by users, or copied from elsewhere."""
    settings = SETTINGS["phrasebook"]
    hostile = LicenseAndCitation(f"a{CONTROLS}b", f"@misc{{k, title = {{t{CONTROLS}u}}}}")
    corpora = {}
    for name, corpus in settings.corpora.items():
        sources = dict.fromkeys(corpus.license_and_citation, hostile)
        corpora[name] = replace(corpus, license_and_citation=sources)

    text = citations(replace(settings, corpora=corpora))

    assert "owned" in text  # The printable part of a control sequence is still shown.
    assert control_characters(text) == []


def test_the_clone_command_of_a_release_quotes_its_address():
    """A model card tells readers to type `git clone ADDRESS bleuprint`.

    The shell must take this address as one word and run neither `touch` nor `id`.
    """
    address = "https://host/$(touch${IFS}x);`id`'\"&&.git"

    quoted_address = _public_address(address)

    assert quoted_address is not None
    words = shlex.split(f"git clone {quoted_address} bleuprint")  # as a shell splits them
    assert words == ["git", "clone", address, "bleuprint"]


def test_a_plain_address_is_not_quoted():
    assert _public_address("https://host/a.git") == "https://host/a.git"


@pytest.mark.parametrize(
    "address",
    [
        pytest.param("/home/me/a", id="local path"),
        pytest.param("git@host:a", id="SSH"),
        pytest.param("https://me:secret@host/a", id="password"),
        pytest.param("https://host/a\nrm x", id="line break"),
    ],
)
def test_an_address_that_is_not_public_is_not_shown(address):
    assert _public_address(address) is None


def test_templates_of_a_release_print_no_control_characters():
    template = _TEMPLATES.from_string("{{ text }}|{{ number }}|{{ none }}")

    assert control_characters(template.render(text=CONTROLS, number=1, none=None)) == []
    assert template.render(text="a\n\tb", number=1, none=None) == "a\n\tb|1|None"
