"""A table as Markdown and as LaTeX, to the letter."""

import re

import pytest

from bleuprint.report.render import latex, markdown
from bleuprint.report.score_frame import score_frame
from bleuprint.report.score_tables import tables_by_test_set, wide_bleu_table
from bleuprint.report.table import Cell, Column, Row, Table, text_table
from result_rows import TWO_SYSTEMS, records_from_rows


def markdown_cells(line):
    """Return the cells of a line of a Markdown table."""
    return [cell.strip() for cell in line.strip("| ").split(" | ")]


@pytest.fixture(scope="module")
def markdown_lines():
    """Return the lines of a Markdown table with the scores of tiny and small on a test set."""
    tables = tables_by_test_set(score_frame(records_from_rows(*TWO_SYSTEMS, missing="small")))
    return markdown(tables["news-en-de, first"]).splitlines()


def test_the_columns_of_a_markdown_table_are_aligned(markdown_lines):
    """So that the file can be read as plain text, too, spaces fill all cells of a column."""
    lengths = {len(line) for line in markdown_lines}

    assert len(lengths) == 1
    for line in markdown_lines:
        assert line.startswith("| ")
        assert line.endswith(" |")


def test_a_markdown_table_aligns_names_left_and_numbers_right(markdown_lines):
    assert re.fullmatch(r"\| :-+ (\| -+: ){4}\|", markdown_lines[1])


def test_a_markdown_table_has_heads_and_rows_with_the_best_score_in_bold(markdown_lines):
    """Tiny, the baseline, has 31.11 BLEU and small 41.11; small was tested with p = 0.001."""
    head, _line_below_heads, *rows = markdown_lines

    assert markdown_cells(head) == ["System", "BLEU", "Δ BLEU", "human agreement", "FLOPs"]
    assert [markdown_cells(row) for row in rows] == [
        ["Baseline: tiny", "31.1 [30.1, 33.1]", "–", "–", "3.3e18"],
        ["small", "**41.1 [40.1, 43.1]**", "+10.0‡ p=0.001", "≥ 85%", "3.3e18"],
    ]


def test_markdown_escapes_html_and_bars():
    """`<b>` would start bold type, and a bar in `1|2` would start another cell."""
    table = text_table(["[name]"], ["n<m"], [("[x]", "<b>"), ("*", "1|2")])

    text = markdown(table)

    assert "<" not in text
    assert "| &lt;b> |" in text
    assert "1\\|2" in text


def test_latex_protects_the_beginning_of_a_row():
    """After the end of a row, LaTeX would read [ as the distance and * as an option.

    An empty group, {}, stands between them.
    """
    table = text_table(["[name]"], ["n<m"], [("[x]", "<b>"), ("*", "1|2")])

    lines = latex(table, caption="c").split("\n")

    assert r"{}[name] & n$<$m \\" in lines
    assert r"{}[x] & $<$b$>$ \\" in lines
    assert r"{}* & 1$|$2 \\" in lines


def test_a_table_is_written_as_latex_with_groups_of_columns():
    """Each of three test sets is a group of columns below a common head.

    In TWO_SYSTEMS, tiny has 31.11, 32.22 and 33.33 BLEU on them, and small 10 more on each, with
    the p-values 0.000999, 0.05 and 0.049. TeX would read parts of the caption as commands.
    """
    table = wide_bleu_table(score_frame(records_from_rows(*TWO_SYSTEMS)))

    text = latex(table, "Made of 5 % & more_or_less")

    assert (
        text
        == r"""\begin{table}
\centering
\caption{Made of 5 \% \& more\_or\_less}
\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%
\begin{tabular}{lrrrrrrrrrrr}
\toprule
 & \multicolumn{4}{c}{news-en-de, first} & \multicolumn{3}{c}{news-en-de, second} & \multicolumn{4}{c}{talks-en-fr, only} \\
\cmidrule(lr){2-5} \cmidrule(lr){6-8} \cmidrule(lr){9-12}
System & BLEU & $\Delta$ BLEU & human agreement & FLOPs & BLEU & $\Delta$ BLEU & FLOPs & BLEU & $\Delta$ BLEU & human agreement & FLOPs \\
\midrule
Baseline: tiny & 31.1 [30.1, 33.1] & -- & -- & 3.3e18 & 32.2 [31.2, 34.2] & -- & 3.3e18 & 33.3 [32.3, 35.3] & -- & -- & 5.0e17 \\
small & \textbf{41.1 [40.1, 43.1]} & +10.0$^{\ddagger}$ p=0.001 & $\geq$ 85\% & 3.3e18 & \textbf{42.2 [41.2, 44.2]} & +10.0 n.s. p=0.050 & 3.3e18 & \textbf{43.3 [42.3, 45.3]} & +10.0$^{\ddagger}$ p=0.049 & $\geq$ 85\% & 3.3e18 \\
\bottomrule
\end{tabular}}
\end{table}
"""  # noqa: E501
    )


def test_latex_escapes_what_tex_reads_as_commands():
    """The caption, the head of a group, the head of a column and a cell contain the same text."""
    text = "a_b&c%d$e#f{g}h~i^j\\k<l>m|n±o–p†q‡r≥s"
    column = Column(text, group=text)
    table = Table([column], [Row({column: Cell(text)})])

    lines = latex(table, caption=text).splitlines()

    escaped = (
        r"a\_b\&c\%d\$e\#f\{g\}h\textasciitilde{}i\textasciicircum{}j\textbackslash{}k"
        r"$<$l$>$m$|$n$\pm$o--p$^{\dagger}$q$^{\ddagger}$r$\geq$s"
    )
    assert f"\\caption{{{escaped}}}" in lines
    assert f"\\multicolumn{{1}}{{c}}{{{escaped}}} \\\\" in lines
    head_and_cell = 2
    assert lines.count(f"{escaped} \\\\") == head_and_cell


def test_markdown_keeps_a_bar_inside_its_cell():
    table = text_table([], ["a|b"], [["c|d"]])

    assert markdown(table) == "| a\\|b |\n| ---: |\n| c\\|d |\n"
