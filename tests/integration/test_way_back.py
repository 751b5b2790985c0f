"""Numbers of README.md and docs/ are led back to the right entries of results.json."""

import pytest

from root import ROOT
from tools.way_back import QuotedNumber, explain, figures_of, find_numbers

pytestmark = pytest.mark.slow


def quote(number, recipe, text):
    """Make a number that the first line of the README quotes from the report of a recipe."""
    return QuotedNumber(ROOT / "README.md", 1, number, (recipe,), text)


@pytest.mark.parametrize(
    ("number", "recipe", "text", "entry"),
    [
        pytest.param(
            "90.1",
            "table3-phrasebook",
            "`table3-phrasebook`: base 90.1 ± 0.6",
            "results.json: base, phrasebook-en-de, phrasebook: bleu",
            id="score",
        ),
        pytest.param(
            "0.6",
            "table3-phrasebook",
            "`table3-phrasebook`: base 90.1 ± 0.6",
            "results.json: base, phrasebook-en-de, phrasebook: bleu",
            id="interval of a score",
        ),
        pytest.param(
            "41.0",
            "table2-multi30k",
            "| Transformer-Tiny | 41.0 | table2-multi30k",
            "results.json: recipes/table2-multi30k.yaml",
            id="published score",
        ),
    ],
)
def test_a_number_in_the_readme_is_traced_to_the_result_of_the_system_that_its_sentence_names(
    capsys, number, recipe, text, entry
):
    """`explain` prints where a number comes from: an entry of a committed results.json.

    A published score is in the recipe that the entry names.
    """
    is_explained = explain(quote(number, recipe, text), ROOT)

    assert is_explained
    assert entry in capsys.readouterr().out


def test_a_number_that_no_report_contains_is_reported(capsys):
    """The sentence says that the recipe copy has the result 12.34; its report lacks this number."""
    is_explained = explain(quote("12.34", "copy", "copy 12.34"), ROOT)

    assert not is_explained
    assert "not in the reports of copy" in capsys.readouterr().out


def test_numbers_are_found_in_lines_that_name_a_recipe(tmp_path):
    """The paragraph in lines 1 and 2, and the row in line 4, name the recipe copy; line 5 does not.

    Numbers in code (3.5) and sizes (6.5 GB) are not results.
    """
    page = tmp_path / "page.md"
    page.write_text("`copy` 1.5\nand 2.5, `3.5`, 6.5 GB\n\n| copy | 4.5 |\n| x | 5.5 |\n")

    lines_and_numbers = []
    for quoted in find_numbers(page, ["copy"]):
        lines_and_numbers.append((quoted.line, quoted.number))

    assert lines_and_numbers == [(1, "1.5"), (2, "2.5"), (4, "4.5")]


def test_a_figure_names_the_commit_and_the_minutes_of_its_trainings():
    figure = next(figures_of("copy", ROOT))

    assert len(figure.commit) == 10  # hexadecimal digits of a shortened commit
    assert figure.minutes > 0
