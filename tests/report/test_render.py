"""A table as Markdown and as LaTeX, to the letter."""

import re

from bleuprint.report.render import latex, markdown
from bleuprint.report.score_frame import score_frame
from bleuprint.report.score_tables import tables_by_test_set, wide_bleu_table
from bleuprint.report.table import Cell, Column, Row, Table, text_table
from result_rows import TWO_SYSTEMS, frame


def text_cells(line):
    return [cell.strip() for cell in line.strip("| ").split(" | ")]


def test_markdown():
    (scores, *_) = tables_by_test_set(score_frame(frame(*TWO_SYSTEMS, missing="small"))).values()
    head, rule, *rows = markdown(scores).splitlines()
    assert len({len(line) for line in (head, rule, *rows)}) == 1, "columns are aligned"
    assert all(line.startswith("| ") and line.endswith(" |") for line in (head, rule, *rows))
    assert text_cells(head) == ["System", "BLEU", "Δ BLEU", "human agreement", "FLOPs"]
    assert re.fullmatch(r"\| :-+ (\| -+: ){4}\|", rule)
    assert [text_cells(row) for row in rows] == [
        ["Baseline: tiny", "31.1 [30.1, 33.1]", "–", "–", "3.3e18"],
        ["small", "**41.1 [40.1, 43.1]**", "+10.0‡ p=0.001", "≥ 85%", "3.3e18"],
    ]


def test_cells_that_markdown_and_latex_would_take_for_commands():
    table = text_table(["[name]"], ["n<m"], [("[x]", "<b>"), ("*", "1|2")])
    text = markdown(table)
    assert "<" not in text and "| &lt;b> |" in text and "1\\|2" in text
    lines = latex(table, "c").split("\n")
    assert r"{}[name] & n$<$m \\" in lines
    assert r"{}[x] & $<$b$>$ \\" in lines and r"{}* & 1$|$2 \\" in lines


def test_latex():
    records = frame(*TWO_SYSTEMS)
    assert (
        latex(wide_bleu_table(score_frame(records)), "Made of 5 % & more_or_less")
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


def test_latex_escapes_what_tex_reads():
    odd = "a_b&c%d$e#f{g}h~i^j\\k<l>m|n±o–p†q‡r≥s"
    column = Column(odd, group=odd)
    table = Table([column], [Row({column: Cell(odd)})])
    escaped = (
        r"a\_b\&c\%d\$e\#f\{g\}h\textasciitilde{}i\textasciicircum{}j\textbackslash{}k"
        r"$<$l$>$m$|$n$\pm$o--p$^{\dagger}$q$^{\ddagger}$r$\geq$s"
    )
    lines = latex(table, odd).splitlines()
    assert f"\\caption{{{escaped}}}" in lines
    assert f"\\multicolumn{{1}}{{c}}{{{escaped}}} \\\\" in lines
    assert lines.count(f"{escaped} \\\\") == 2


def test_markdown_keeps_a_bar_inside_its_cell():
    assert markdown(text_table([], ["a|b"], [["c|d"]])) == "| a\\|b |\n| ---: |\n| c\\|d |\n"
