"""A grid as Markdown and as LaTeX, to the letter."""

import re

from bleuprint.report import main_table
from bleuprint.report.grid import Column, Grid, Row, filled_columns, latex, markdown
from result_rows import TWO_SYSTEMS, frame


def text_cells(line):
    return [cell.strip() for cell in line.strip("| ").split(" | ")]


def test_markdown():
    (scores, *_) = main_table.by_test_set(frame(*TWO_SYSTEMS, missing="small")).values()
    head, rule, *rows = markdown(scores).splitlines()
    assert len({len(line) for line in (head, rule, *rows)}) == 1, "columns are aligned"
    assert all(line.startswith("| ") and line.endswith(" |") for line in (head, rule, *rows))
    assert text_cells(head) == ["System", "BLEU", "difference", "people agree", "FLOPs"]
    assert re.fullmatch(r"\| :-+ (\| -+: ){4}\|", rule)
    assert [text_cells(row) for row in rows] == [
        ["tiny (baseline)", "31.1 [30.1, 33.1]", "–", "–", "3.3e18"],
        ["small", "**41.1 [40.1, 43.1]**", "+10.0‡ p=0.001", "≥ 85 %", "3.3e18"],
    ]


def test_a_column_without_a_value_is_left_out_and_marks_stay_with_their_cells():
    columns = tuple(map(Column, ("System", "empty", "score")))
    rows = Row(("a", "–", "1"), best=frozenset({2})), Row(("b", "–", "–"))
    assert filled_columns(Grid(columns, rows)) == Grid(
        (columns[0], columns[2]), (Row(("a", "1"), best=frozenset({1})), Row(("b", "–")))
    )
    assert filled_columns(Grid(columns, rows[1:])).columns == columns[:1]


def test_cells_that_markdown_and_latex_would_take_for_commands():
    columns = Column("[name]", left=True), Column("n<m")
    grid = Grid(columns, (Row(("[x]", "<b>")), Row(("*", "1|2"))))
    text = markdown(grid)
    assert "<" not in text and "| &lt;b> |" in text and "1\\|2" in text
    lines = latex(grid, "c").split("\n")
    assert r"{}[name] & n$<$m \\" in lines
    assert r"{}[x] & $<$b$>$ \\" in lines and r"{}* & 1$|$2 \\" in lines


def test_latex():
    records = frame(*TWO_SYSTEMS)
    assert (
        latex(main_table.across(records), "Made of 5 % & more_or_less")
        == r"""\begin{table}
\centering
\caption{Made of 5 \% \& more\_or\_less}
\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%
\begin{tabular}{lrrrrrrrrrrr}
\toprule
 & \multicolumn{4}{c}{news-en-de, first} & \multicolumn{3}{c}{news-en-de, second} & \multicolumn{4}{c}{talks-en-fr, only} \\
\cmidrule(lr){2-5} \cmidrule(lr){6-8} \cmidrule(lr){9-12}
System & BLEU & difference & people agree & FLOPs & BLEU & difference & FLOPs & BLEU & difference & people agree & FLOPs \\
\midrule
tiny (baseline) & 31.1 [30.1, 33.1] & -- & -- & 3.3e18 & 32.2 [31.2, 34.2] & -- & 3.3e18 & 33.3 [32.3, 35.3] & -- & -- & 5.0e17 \\
small & \textbf{41.1 [40.1, 43.1]} & +10.0$^{\ddagger}$ p=0.001 & $\geq$ 85 \% & 3.3e18 & \textbf{42.2 [41.2, 44.2]} & +10.0 n.s. p=0.050 & 3.3e18 & \textbf{43.3 [42.3, 45.3]} & +10.0$^{\ddagger}$ p=0.049 & $\geq$ 85 \% & 3.3e18 \\
\bottomrule
\end{tabular}}
\end{table}
"""  # noqa: E501
    )


def test_latex_escapes_what_tex_reads():
    odd = "a_b&c%d$e#f{g}h~i^j\\k<l>m|n±o–p†q‡r≥s"
    grid = Grid((Column(odd, odd),), (Row((odd,)),))
    escaped = (
        r"a\_b\&c\%d\$e\#f\{g\}h\textasciitilde{}i\textasciicircum{}j\textbackslash{}k"
        r"$<$l$>$m$|$n$\pm$o--p$^{\dagger}$q$^{\ddagger}$r$\geq$s"
    )
    lines = latex(grid, odd).splitlines()
    assert f"\\caption{{{escaped}}}" in lines
    assert f"\\multicolumn{{1}}{{c}}{{{escaped}}} \\\\" in lines
    assert lines.count(f"{escaped} \\\\") == 2
