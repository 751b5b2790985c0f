"""Text that others wrote is shown by every output, and obeyed by none."""

import csv
import html
import io
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
from result_rows import against, frame, record

# A title of the terminal's window, a cleared screen, C1's CSI, DEL, NUL, a bell, a line separator,
# an override and an isolate of direction.
CONTROLS = "\x1b]0;owned\x07\x1b[2J\x9b31m\x7f\x00\u2028\u202e\u2066"
# What a terminal or a reader's eye would obey; of these only tab and line feed may be in an output.
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
MARKUP = (
    "[x](javascript:alert(1)) ![y](http://host/p.png) <img src=x onerror=alert(1)> [r]: x a\\|b"
)
ABOUT = f"=cmd|'/C calc'!A1 {CONTROLS}{MARKUP} $(id) `id` 'quoted' 100% {{x}} \\input{{y}}"
PLACE = "news-en-de", "first"


def records_of(about=ABOUT, system="others"):
    base = record("base", *PLACE, 20.0)
    return frame(base, record(system, *PLACE, 24.0, about=about, **against("base", 0.01)))


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    monkeypatch.setenv("COLUMNS", "400")


def obeyed(text):
    return OBEYED.findall(text)


def test_the_pattern_of_this_test_knows_all_of_them():
    assert len(obeyed(CONTROLS)) == 9
    assert obeyed(remove_controls(CONTROLS)) == [] == obeyed("a\tb\n\u00adc\u200d\u064e")
    # what belongs to the spelling stays
    assert remove_controls("a\tb\n\u00adc\u200d\u064e") == "a\tb\n\u00adc\u200d\u064e"
    assert remove_controls("a\x1bb\u202ec\u2028d") == "a bc d"


def test_reports_hold_no_control_characters():
    records = records_of()
    texts = {
        "table.md": bullets(notes.all_notes(records)),
        "table.tex": latex(
            wide_bleu_table(score_frame(records)), " ".join(notes.all_notes(records))
        ),
        "table.csv": frames.csv_text(records),
    }
    for name, text in texts.items():
        assert "owned" in text, name
        assert obeyed(text) == [], name


def test_results_of_others_have_none(tmp_path):
    records = records_of("plain", system="others")
    records.save(tmp_path / "results.json")
    text = (tmp_path / "results.json").read_text("utf-8")
    hostile = text.replace("others", f"others{CONTROLS}x".encode("unicode_escape").decode())
    hostile = re.sub(r"\\x(..)", r"\\u00\1", hostile)
    (tmp_path / "results.json").write_text(hostile, "utf-8")
    read = frames.read_without_costs(tmp_path / "results.json")
    assert len(read.runs) == 2
    assert obeyed(" ".join(map(str, read.runs.to_numpy().ravel()))) == []
    assert obeyed(" ".join(map(str, read.metrics.to_numpy().ravel()))) == []


def test_a_terminal_gets_none(capsys):
    records = records_of()
    cells = text_table([CONTROLS], [f"n{CONTROLS}"], [(f"a{CONTROLS}b", f"1{CONTROLS}")])
    show([*one_screen(records), *everything(records), cells, f"a line {CONTROLS}"])
    print_escaped(f"one{CONTROLS}\ntwo\tthree")
    printed = capsys.readouterr().out
    assert obeyed(printed) == []
    assert r"a\x1b]0;owned\x07\x1b[2J\x9b31m\x7f\x00\u2028\u202e\u2066b" in printed
    assert "two\tthree\n" in printed


def rendered(text):
    """The page that an independent reader of Markdown makes."""
    reader = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    return reader.render(text)


def test_markdown_shows_it_as_it_is():
    texts = [MARKUP, "# a", "> b", "- c", "+ d", "1. e", "2) f", "=== g", "a_b_ _c_ **d** `e` &lt;"]
    page = rendered(bullets(texts))
    items = re.findall("<li>([^<>]*)</li>", page)
    assert [html.unescape(item) for item in items] == texts
    name, number = Column(MARKUP, is_text=True), Column("n|m\\")
    best = Cell("1.0 [0.5, 2.0]", 1.0, is_best=True)
    rows = [Row({name: Cell(text.replace("\n", " ")), number: best}) for text in texts]
    table = Table([name, number], rows)
    page = rendered(markdown(table))
    assert "<a" not in page and "<img" not in page
    heads = [html.unescape(head) for head in re.findall("<th[^>]*>([^<>]*)</th>", page)]
    assert heads == [MARKUP, "n|m\\"]
    shown = [html.unescape(cell) for cell in re.findall("<td[^>]*>([^<>]*)</td>", page)]
    assert shown == texts
    assert page.count("<strong>1.0 [0.5, 2.0]</strong>") == len(texts)


def test_a_definition_turns_no_interval_into_a_link():
    about = "]\n\n[19.0, 22.0]: javascript:alert(1)"
    records = records_of(about)
    (table,) = tables_by_test_set(score_frame(records)).values()
    page = rendered(f"{markdown(table)}\n{bullets(notes.all_notes(records))}")
    assert "[19.0, 22.0]" in page and "javascript" in page
    assert "<a" not in page


@pytest.mark.parametrize(
    ("value", "expected"),
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
        ("-1.3", "-1.3"),
        ("+0.5", "+0.5"),
        ("-1e-5", "-1e-5"),
        (-1.3, -1.3),
        (None, None),
        ("a=b", "a=b"),
        ("", ""),
    ],
)
def test_a_cell_that_a_spreadsheet_would_compute(value, expected):
    assert spreadsheet_cell(value) == expected


def test_the_table_for_spreadsheets():
    number = Published("=HYPERLINK(1)", "+cmd", *PLACE, bleu=20.5, metric="sacrebleu")
    rows = list(
        csv.DictReader(io.StringIO(frames.csv_text(with_published_numbers(records_of(), [number]))))
    )
    assert rows[0]["system"] == "'=HYPERLINK(1)" and rows[0]["published"] == "'+cmd"
    (bleu,) = [
        r for r in rows if r["system"] == "others" and r["metric"] == "bleu" and not r["group"]
    ]
    assert bleu["about"].startswith("'=cmd|")
    (ter,) = [r for r in rows if r["system"] == "base" and r["metric"] == "ter"]
    assert float(ter["value"]) == 11.0
    worse = frame(record("base", *PLACE, 20.0), record("x", *PLACE, 18.7, **against("base", 0.5)))
    (bleu,) = [
        r
        for r in csv.DictReader(io.StringIO(frames.csv_text(worse)))
        if r["system"] == "x" and r["metric"] == "bleu" and not r["group"]
    ]
    assert float(bleu["difference"]) == pytest.approx(-1.3)


def test_references_have_no_control_characters():
    settings = SETTINGS["phrasebook"]
    hostile = LicenseAndCitation(f"a{CONTROLS}b", f"@misc{{k, title = {{t{CONTROLS}u}}}}")
    corpora = {
        name: replace(of, license_and_citation=dict.fromkeys(of.license_and_citation, hostile))
        for name, of in settings.corpora.items()
    }
    written = citations(replace(settings, corpora=corpora))
    assert "owned" in written and obeyed(written) == []


def test_the_command_of_a_card_has_the_address_as_one_word():
    address = "https://host/$(touch${IFS}x);`id`'\"&&.git"
    word = _public_address(address)
    assert word is not None
    assert shlex.split(f"git clone {word} bleuprint") == ["git", "clone", address, "bleuprint"]
    assert _public_address("https://host/a.git") == "https://host/a.git"
    for other in ("/home/me/a", "git@host:a", "https://me:secret@host/a", "https://host/a\nrm x"):
        assert _public_address(other) is None


def test_templates_print_no_control_characters():
    template = _TEMPLATES.from_string("{{ text }}|{{ number }}|{{ none }}")
    assert obeyed(template.render(text=CONTROLS, number=1, none=None)) == []
    assert template.render(text="a\n\tb", number=1, none=None) == "a\n\tb|1|None"
