"""The table's text, and that no number can stand under another's name."""

import io
import itertools
import json
import re
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pandas
import pytest

import result_trees as trees
from bleuprint import table
from bleuprint.results import Timing, Training
from bleuprint.table import Column, Grid, Row
from result_trees import record, rows_of, timings

# Two systems, a corpus with two test sets, one with one, every figure told from the others.
RECORDS = [
    record("tiny", "news-en-de", "first", 31.11),
    record("tiny", "news-en-de", "second", 32.22),
    record("tiny", "talks-en-fr", "only", 33.33, training_flops=5e17),
    record("small", "news-en-de", "first", 41.11, paired=trees.against("tiny", 0.000999)),
    record("small", "news-en-de", "second", 42.22, paired=trees.against("tiny", 0.05)),
    record("small", "talks-en-fr", "only", 43.33, paired=trees.against("tiny", 0.049)),
]


def text_cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("| ").split(" | ")]


def test_markdown() -> None:
    scores = table.scores(RECORDS, timings=timings(RECORDS, missing="small"))
    head, rule, *rows = table.markdown(scores).splitlines()
    assert len({len(line) for line in (head, rule, *rows)}) == 1, "columns are aligned"
    assert all(line.startswith("| ") and line.endswith(" |") for line in (head, rule, *rows))
    assert text_cells(head) == [
        "System",
        "news-en-de BLEU first",
        "news-en-de BLEU second",
        "news-en-de FLOPs, counted",
        "news-en-de FLOPs, by time",
        "talks-en-fr BLEU",
        "talks-en-fr FLOPs, counted",
        "talks-en-fr FLOPs, by time",
    ]
    assert re.fullmatch(r"\| :-+ (\| -+: ){7}\|", rule)
    assert [text_cells(row) for row in rows] == [
        [
            "tiny (baseline)",
            "31.1 [30.1, 33.1]",
            "32.2 [31.2, 34.2]",
            "3.3e18",
            "1.6e18",
            "33.3 [32.3, 35.3]",
            "5.0e17",
            "2.3e15",
        ],
        [
            "small",
            "41.1 [40.1, 43.1] p=0.001",
            "42.2 [41.2, 44.2] p=0.050 n.s.",
            "3.3e18",
            "–",
            "43.3 [42.3, 45.3] p=0.049",
            "3.3e18",
            "–",
        ],
    ]


def test_latex() -> None:
    assert (
        table.latex(table.scores(RECORDS), "Made of 5 % & more_or_less")
        == r"""\begin{table}
\centering
\caption{Made of 5 \% \& more\_or\_less}
\begin{tabular}{lrrrrrrr}
\toprule
 & \multicolumn{4}{c}{news-en-de} & \multicolumn{3}{c}{talks-en-fr} \\
\cmidrule(lr){2-5} \cmidrule(lr){6-8}
System & BLEU first & BLEU second & COSTS & BLEU & COSTS \\
\midrule
tiny (baseline) & 31.1 [30.1, 33.1] & 32.2 [31.2, 34.2] & 3.3e18 & -- & YY & 5.0e17 & -- \\
small & 41.1 [40.1, 43.1] p=0.001 & ZZ & 3.3e18 & -- & XX & 3.3e18 & -- \\
\bottomrule
\end{tabular}
\end{table}
""".replace("XX", "43.3 [42.3, 45.3] p=0.049")
        .replace("YY", "33.3 [32.3, 35.3]")
        .replace("ZZ", "42.2 [41.2, 44.2] p=0.050 n.s.")
        .replace("COSTS", "FLOPs, counted & FLOPs, by time")
    )


def test_latex_escapes_what_tex_reads() -> None:
    odd = "a_b&c%d$e#f{g}h~i^j\\k<l>m|n±o–p"
    grid = Grid((Column(odd, odd),), (Row((odd,)),))
    escaped = (
        r"a\_b\&c\%d\$e\#f\{g\}h\textasciitilde{}i\textasciicircum{}j\textbackslash{}k"
        r"$<$l$>$m$|$n$\pm$o--p"
    )
    lines = table.latex(grid, odd).splitlines()
    assert f"\\caption{{{escaped}}}" in lines
    assert f"\\multicolumn{{1}}{{c}}{{{escaped}}} \\\\" in lines
    assert lines.count(f"{escaped} \\\\") == 2


def test_markdown_keeps_a_bar_inside_its_cell() -> None:
    grid = Grid((Column("a|b"),), (Row(("c|d",)),))
    assert table.markdown(grid) == "| a\\|b |\n| ---: |\n| c\\|d |\n"


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_the_order_of_records_moves_no_number(order: tuple[int, ...]) -> None:
    expected = rows_of(table.scores(RECORDS)), rows_of(table.scores(RECORDS, "chrf"))
    shuffled = [RECORDS[3 * system + i] for i in order for system in (1, 0)]
    assert [one.system for one in shuffled[:2]] == ["small", "tiny"]
    assert (rows_of(table.scores(shuffled)), rows_of(table.scores(shuffled, "chrf"))) == expected


def test_chrf_stands_in_its_own_table() -> None:
    rows = rows_of(table.scores(RECORDS, "chrf"))
    assert rows["small"] == {
        "System": "small",
        "news-en-de chrF2 first": "61.1 [60.1, 62.1]",
        "news-en-de chrF2 second": "62.2 [61.2, 63.2]",
        "talks-en-fr chrF2": "63.3 [62.3, 64.3]",
    }


def test_a_corpus_without_its_pair_in_the_name_shows_it() -> None:
    named = [replace(one, corpus="news") for one in RECORDS[:1]]
    assert table.scores(named).columns[1] == Column("BLEU", "news (en-de)")


@pytest.mark.parametrize(
    ("bootstrap", "randomisation", "shown"),
    [
        (0.049, 0.05, "p=0.049 (randomisation 0.050)"),
        (0.05, 0.0499, "p=0.050 n.s. (randomisation 0.050)"),
        (0.06, 0.9, "p=0.060 n.s."),
        (0.049, 0.001, "p=0.049"),
    ],
)
def test_tests_that_disagree_are_shown(bootstrap: float, randomisation: float, shown: str) -> None:
    paired = trees.against("tiny", bootstrap, randomisation)
    records = [RECORDS[0], record("small", "news-en-de", "first", 41.11, paired=paired)]
    cell = rows_of(table.scores(records))["small"]["news-en-de BLEU"]
    assert cell == f"41.1 [40.1, 43.1] {shown}"
    assert "Where approximate randomisation says otherwise" in " ".join(table.notes(records))


def test_several_seeds() -> None:
    seeds = [
        record("tiny", "news-en-de", "only", 30.0, seed=7),
        record("tiny", "news-en-de", "only", 33.0, seed=2),
        record("small", "news-en-de", "only", 40.0, seed=7, paired=trees.against("tiny", 0.2)),
        record("small", "news-en-de", "only", 42.0, seed=2, paired=trees.against("tiny", 0.001)),
    ]
    rows = rows_of(table.scores(seeds))
    # 30 and 33 are 1.5 from their mean: sd sqrt(2 * 1.5^2 / 1) = 2.12; 40 and 42: 1.41.
    assert rows["tiny (baseline)"]["news-en-de BLEU"] == "31.5 ± 2.1"
    assert rows["small"]["news-en-de BLEU"] == "41.0 ± 1.4 p=0.200 n.s."
    notes = " ".join(table.notes(seeds))
    assert "standard deviation over the seeds 7, 2" in notes
    assert "from tiny on the translations of seed 7" in notes
    assert "seed" not in " ".join(table.notes(RECORDS))


def test_notes_name_the_baseline_and_what_is_not_significant() -> None:
    notes = " ".join(table.notes(RECORDS))
    assert "difference in BLEU from tiny; n.s.: not significant (p of 0.05 or more)" in notes
    assert "95 % interval" in notes
    assert "p:" not in " ".join(table.notes(RECORDS[:3]))
    assert "Published" not in notes


def test_notes_name_engines_where_they_differ() -> None:
    same = " ".join(table.notes(RECORDS))
    assert "engine" not in same
    int8 = {**RECORDS[0].decode, "engine": "ctranslate2", "precision": "int8"}
    mixed = [replace(one, decode=int8) if one.system == "small" else one for one in RECORDS]
    expected = (
        "Not all systems translated with the same engine and precision. "
        "pytorch float32: tiny; ctranslate2 int8: small."
    )
    assert expected in table.notes(mixed)


def test_costs_counted_and_measured() -> None:
    grid = table.costs(RECORDS, timings(RECORDS, missing="small"))
    rows = {row.cells[:2]: row.cells[2:] for row in grid.rows}
    counted = ("2.57M", "8,000", "8.12M", "3.3e18")
    measured = ("12:00:00", "51,234", "1.6e18 (4 x 9.5e12, paper)", "35.1 % of 9.3e12, known")
    where = ("Fast Chip, 8 x 4 threads", "abcdef01")
    assert rows["tiny", "news-en-de"] == (*counted, *measured, *where)
    assert rows["tiny", "talks-en-fr"][3:5] == ("5.0e17", "0:01:01")
    assert rows["small", "news-en-de"] == (*counted, "–", "–", "–", "–", "–", "–")
    heads = [f"{column.group} {column.label}".strip() for column in grid.columns]
    assert heads == [
        *("System", "Corpus"),
        *("counted Parameters", "counted Updates", "counted Target tokens", "counted FLOPs"),
        *("measured Time", "measured Tokens/s"),
        *("measured Seconds x devices x sustained FLOPS", "measured MFU"),
        *("measured Device", "measured Commit"),
    ]
    assert list(rows) == [
        ("tiny", "news-en-de"),
        ("tiny", "talks-en-fr"),
        ("small", "news-en-de"),
        ("small", "talks-en-fr"),
    ]


def test_costs_are_means_over_seeds() -> None:
    seeds = [
        record("tiny", "news-en-de", test, 30.0, seed=seed, target_tokens=tokens)
        for seed, tokens in ((1, 1_000_000), (2, 2_000_000))
        for test in ("first", "second")
    ]
    measured = timings(seeds)
    slow = Training(100.0, "Slow Chip", 1, 2, None, 100.0)
    fast = Training(40.0, "Fast Chip", 1, 2, None, 300.0)
    measured |= {seeds[0].cell: Timing(slow, 1.0), seeds[2].cell: Timing(fast, 1.0)}
    (row,) = table.costs(seeds, measured).rows
    assert row.cells[4] == "1.50M"
    devices = "Slow Chip, 1 x 2 threads; Fast Chip, 1 x 2 threads"
    # timings of an older version: what they do not tell is left open
    assert row.cells[6:] == ("0:01:10", "200", "–", "–", devices, "–")
    rates = (
        {"devices": 1, "sustained_from": "measured", "peak_from": "measured"},
        {"devices": 2, "sustained_from": "measured", "peak_from": "measured"},
    )
    costs = ((2e12, 4e14, 2e12, 0.25), (4e12, 8e14, 4e12, 0.5))
    names = ("sustained_flops", "flops_by_time", "peak_flops", "mfu")
    for one, rate, cost in zip((seeds[0], seeds[2]), rates, costs, strict=True):
        training = replace(slow, **rate, **dict(zip(names, cost, strict=True)))
        measured[one.cell] = Timing(training, 1.0)
    (row,) = table.costs(seeds, measured).rows
    assert row.cells[8] == "6.0e14 (1; 2 x 3.0e12, measured)"
    assert row.cells[9] == "37.5 % of 3.0e12, measured"
    assert table.scores(seeds, timings=measured).rows[0].cells[-2:] == ("3.3e18", "6.0e14")


def test_csv_reads_back_whole() -> None:
    text = table.csv_text(RECORDS, timings(RECORDS, missing="small"))
    frame = pandas.read_csv(io.StringIO(text), dtype={"hypotheses_sha256": str})
    assert len(frame) == len(RECORDS)
    for row, one in zip(frame.to_dict("records"), RECORDS, strict=True):
        assert [row[name] for name in ("system", "corpus", "seed", "test", "source", "target")] == [
            *(one.system, one.corpus, one.seed, one.test, one.source, one.target),
        ]
        assert (row["bleu"], row["bleu_low"], row["bleu_high"]) == (
            *(one.bleu.score, one.bleu.low, one.bleu.high),
        )
        assert (row["chrf2"], row["chrf2_low"], row["chrf2_high"]) == (
            *(one.chrf.score, one.chrf.low, one.chrf.high),
        )
        assert (row["bleu_signature"], row["chrf2_signature"]) == (
            *(one.bleu.signature, one.chrf.signature),
        )
        assert row["training_flops"] == one.training_flops
        for name in ("engine", "precision", "beam", "alpha", "penalty"):
            assert row[name] == one.decode[name]
        assert row["hypotheses_sha256"] == one.data.hypotheses
    small = frame[frame.system == "small"]
    assert small.train_seconds.isna().all() and small.device.isna().all()
    assert (small.baseline == "tiny").all()
    assert list(small.p_bootstrap) == [0.000999, 0.05, 0.049]
    assert list(small.p_randomisation) == [0.000999, 0.05, 0.049]
    assert list(small.ter) == pytest.approx([32.11, 33.22, 34.33])
    assert list(small.length_ratio) == [0.98] * 3
    tiny = frame[frame.system == "tiny"]
    assert tiny.p_bootstrap.isna().all()
    assert list(tiny.train_seconds) == [43_200.0, 43_200.0, 61.0]
    assert list(tiny.training_flops_by_time) == pytest.approx([1.6416e18, 1.6416e18, 2.318e15])
    told = tiny[["devices", "sustained_flops", "sustained_from", "peak_flops", "peak_from", "mfu"]]
    assert list(told.iloc[0]) == [4, 9.5e12, "paper", 9.3e12, "known", 0.3509]
    assert small.training_flops_by_time.isna().all() and small.mfu.isna().all()


def test_plain_fits_the_terminal_in_blocks() -> None:
    grid = table.scores(RECORDS)
    wide = table.plain(grid, 200)
    assert wide.count("System") == 1
    for width in (40, 60, 80, 110):
        text = table.plain(grid, width)
        assert all(len(line) <= max(width, 48) for line in text.splitlines())
        assert text.count("System") > 1
        words = [re.findall(r"\d\d\.\d \[|p=0\.\d{3}|\de\d\d", one) for one in (wide, text)]
        assert sorted(words[0]) == sorted(words[1])
    # A group that fits a block is not torn.
    blocks = table.plain(grid, 120).split("\n\n")
    assert [block.split("\n")[0].split() for block in blocks] == [["news-en-de"], ["talks-en-fr"]]


def test_plain_puts_heads_over_their_columns() -> None:
    lines = table.plain(table.scores(RECORDS), 200).splitlines()
    start = lines[1].index("BLEU second")
    end = start + len("BLEU second")
    assert lines[-1][:end].endswith("42.2 [41.2, 44.2] p=0.050 n.s.")
    assert lines[-2][:end].endswith("32.2 [31.2, 34.2]")
    # A group wider than its columns makes room for itself.
    narrow = Grid((Column("a", "a long group"), Column("b", "next")), (Row(("1", "2")),))
    assert table.plain(narrow, 80).splitlines()[0] == "a long group  next"


def test_the_command_prints_the_table_and_where_to_look(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "bleuprint.table"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    expected = "bleuprint: error: reports/results.json: no such file; run: dvc repro\n"
    assert done.stderr == expected
    (tmp_path / "reports").mkdir()
    text = json.dumps([asdict(one) for one in RECORDS])
    (tmp_path / "reports" / "results.json").write_text(text, encoding="utf-8")
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    for part in ("43.3 [42.3, 45.3] p=0.049", "2.57M", "reports/table.md", "make ui"):
        assert part in done.stdout
