"""A grid as Markdown and as LaTeX, to the letter."""

import re

from bleuprint.report import main_table
from bleuprint.report.grid import Column, Grid, Row, filled_columns, latex, markdown
from result_rows import TWO_SYSTEMS, frame


def text_cells(line):
    return [cell.strip() for cell in line.strip("| ").split(" | ")]


def test_markdown():
    scores = main_table.scores(frame(*TWO_SYSTEMS, missing="small"))
    head, rule, *rows = markdown(scores).splitlines()
    assert len({len(line) for line in (head, rule, *rows)}) == 1, "columns are aligned"
    assert all(line.startswith("| ") and line.endswith(" |") for line in (head, rule, *rows))
    assert text_cells(head) == [
        "System",
        "news-en-de BLEU first",
        "news-en-de difference first",
        "news-en-de people agree first",
        "news-en-de BLEU second",
        "news-en-de difference second",
        "news-en-de FLOPs",
        "talks-en-fr BLEU",
        "talks-en-fr difference",
        "talks-en-fr people agree",
        "talks-en-fr FLOPs",
    ]
    assert re.fullmatch(r"\| :-+ (\| -+: ){10}\|", rule)
    assert [text_cells(row) for row in rows] == [
        [
            "tiny (baseline)",
            *("31.1 [30.1, 33.1]", "–", "–"),
            *("32.2 [31.2, 34.2]", "–"),
            "3.3e18",
            *("33.3 [32.3, 35.3]", "–", "–"),
            "5.0e17",
        ],
        [
            "small",
            *("**41.1 [40.1, 43.1]**", "+10.0‡ p=0.001", "≥ 85 %"),
            *("**42.2 [41.2, 44.2]**", "+10.0 n.s. p=0.050"),
            "3.3e18",
            *("**43.3 [42.3, 45.3]**", "+10.0‡ p=0.049", "≥ 85 %"),
            "3.3e18",
        ],
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
        latex(main_table.scores(records), "Made of 5 % & more_or_less")
        == r"""\begin{table}
\centering
\caption{Made of 5 \% \& more\_or\_less}
\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%
\begin{tabular}{lrrrrrrrrrr}
\toprule
 & \multicolumn{6}{c}{news-en-de} & \multicolumn{4}{c}{talks-en-fr} \\
\cmidrule(lr){2-7} \cmidrule(lr){8-11}
System & BLEU first & difference first & AGREE first & SECOND & COSTS & BLEU & DCOSTS \\
\midrule
tiny (baseline) & 31.1 [30.1, 33.1] & -- & -- & WW & -- & 3.3e18 & YY & 5.0e17 \\
small & BB41.1 [40.1, 43.1]} & +10.0$^{\ddagger}$ p=0.001 & ≥ & ZZ & 3.3e18 & XX & 3.3e18 \\
\bottomrule
\end{tabular}}
\end{table}
""".replace("XX", r"BB43.3 [42.3, 45.3]} & +10.0$^{\ddagger}$ p=0.049 & ≥")
        .replace("YY", "33.3 [32.3, 35.3] & -- & --")
        .replace("ZZ", "BB42.2 [41.2, 44.2]} & +10.0 n.s. p=0.050")
        .replace("WW", "32.2 [31.2, 34.2]")
        .replace("BB", r"\textbf{")
        .replace("DCOSTS", "difference & AGREE & COSTS")
        .replace("SECOND", "BLEU second & difference second")
        .replace("AGREE", "people agree")
        .replace("≥", r"$\geq$ 85 \%")
        .replace("COSTS", "FLOPs")
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
