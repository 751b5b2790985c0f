"""Numbers of README.md and docs/ are led back to the right entries of results.json."""

import pytest

from root import ROOT
from tools.way_back import QuotedNumber, explain, figures_of, find_numbers

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("number", "around", "entry"),
    [
        (
            "90.1",
            "`table3-phrasebook`: base 90.1 ± 0.6",
            "base, phrasebook-en-de, phrasebook: bleu",
        ),
        ("0.6", "`table3-phrasebook`: base 90.1 ± 0.6", "base, phrasebook-en-de, phrasebook: bleu"),
        ("41.0", "| Transformer-Tiny | 41.0 | table2-multi30k", "recipes/table2-multi30k.yaml"),
    ],
)
def test_the_entry_is_that_of_the_system_beside_the_number(capsys, number, around, entry):
    recipe = next(name for name in ("table3-phrasebook", "table2-multi30k") if name in around)
    assert explain(QuotedNumber(ROOT / "README.md", 1, number, (recipe,), around), ROOT)
    assert f"results.json: {entry}" in capsys.readouterr().out


def test_a_number_of_no_report_is_told(capsys):
    assert not explain(QuotedNumber(ROOT / "README.md", 1, "12.34", ("copy",), "copy 12.34"), ROOT)
    assert "not in the reports of copy" in capsys.readouterr().out


def test_numbers_are_found_by_line_and_not_in_code(tmp_path):
    (page := tmp_path / "page.md").write_text(
        "`copy` 1.5\nand 2.5, `3.5`, 6.5 GB\n\n| copy | 4.5 |\n| x | 5.5 |\n"
    )
    found = [(quoted.line, quoted.number) for quoted in find_numbers(page, ["copy"])]
    assert found == [(1, "1.5"), (2, "2.5"), (4, "4.5")]


def test_a_figure_names_its_commit_and_minutes():
    figure = next(figures_of("copy", ROOT))
    assert len(figure.commit) == 10
    assert figure.minutes > 0
