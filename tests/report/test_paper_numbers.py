"""numbers.tex: the numbers of records made by hand, and what LaTeX makes of the file."""

import re
import subprocess

from bleuprint.report.paper_numbers import numbers_tex, paper_numbers
from requirements import needs_programs
from result_rows import TWO_SYSTEMS, against, frame, record

ROWS = [
    {**row, "facts": {**of, "training_sha256": of["system"] + of["corpus"]}}
    for row in TWO_SYSTEMS
    for of in [row["facts"]]
]
RECORDS = frame(*ROWS, missing="small")
FIRST = "small/news-en-de/first"
needs_latex = needs_programs("pdflatex")


def test_numbers_of_one_seed():
    numbers = paper_numbers(RECORDS)
    # record() has BLEU - 1 and + 2 as the interval; against() has p
    expected = {
        "bleu": "41.1",
        "bleu_low": "40.1",
        "bleu_high": "43.1",
        "chrf2": "61.1",
        "ter": "32.1",
        "difference": "+10.0",
        "p": "=0.001",
        "p_randomization": "=0.001",
        "p_holm": "=0.001",
        "human_agreement": r"$\geq$ 85 \%",
        "ter_difference": "+10.0",
        "bleu_signature": r"nrefs:1$|$tok:13a$|$version:2.6.0",
    }
    assert (
        expected.items()
        <= {name.removeprefix(f"{FIRST}/"): number for name, number in numbers.items()}.items()
    )
    # 43,200 s; nothing was timed of small, so that not all was
    costs = {"parameters": "2.57M", "training_flops": "3.3e18", "train_time": "12:00:00"}
    costs |= {"hours": "12.00", "peak_memory": "2.5 GB", "mfu": r"35.1\%", "updates": "8,000"}
    assert {f"tiny/news-en-de/{name}": cost for name, cost in costs.items()}.items() <= (
        numbers.items()
    )
    for absent in ("small/news-en-de/hours", "hours"):
        assert absent not in numbers
    for absent in ("bleu_deviation", "difference", "p"):
        assert f"tiny/news-en-de/first/{absent}" not in numbers


def test_small_p_has_no_equals_sign():
    rows = [record("a", "news-en-de", "t", 30.0)]
    rows.append(record("b", "news-en-de", "t", 31.0, **against("a", 0.0004)))
    assert paper_numbers(frame(*rows))["b/news-en-de/t/p"] == "<0.001"


def test_numbers_of_two_seeds_and_costs_of_all():
    # a/news twice, of which one row shares a training with b/talks; 43,200 s each
    rows = [
        record("a", "news-en-de", "t", 30.0, seed=1, training_sha256="1"),
        record("a", "news-en-de", "t", 32.0, seed=2, training_sha256="2"),
        record("b", "news-en-de", "t", 32.0, training_sha256="1", **against("a", 0.3)),
        record(
            *("b", "news-en-de", "t", 32.0),
            **{"seed": 2, "training_sha256": "4", "training_flops": 2e18, **against("a", 0.3)},
        ),
    ]
    numbers = paper_numbers(frame(*rows))
    assert numbers["a/news-en-de/t/bleu"] == "31.0"
    assert numbers["a/news-en-de/t/bleu_deviation"] == "1.4"  # the root of 2
    assert "a/news-en-de/t/bleu_low" not in numbers
    # differences 2 and 0: t = 1 with one degree of freedom, of which p is 1/2
    assert numbers["b/news-en-de/t/difference"] == "+1.0"
    assert numbers["b/news-en-de/t/p"] == "=0.500"
    whole = {name: number for name, number in numbers.items() if "/" not in name}
    assert whole == {"trainings": "3", "hours": "36.00", "training_flops": "8.6e18"}


def test_the_file_defines_each_number():
    line = r"^\\expandafter\\newcommand\\csname bleuprint/(.*?)\\endcsname\{(.*)\}$"
    found = re.findall(line, numbers_tex(RECORDS), re.MULTILINE)
    assert dict(found) == paper_numbers(RECORDS) and len(found) > 100


def _latex(folder, body):
    (folder / "numbers.tex").write_text(numbers_tex(RECORDS), encoding="utf-8")
    source = rf"\documentclass{{article}}\input{{numbers}}\begin{{document}}{body}\end{{document}}"
    (folder / "paper.tex").write_text(source, encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "paper"]
    # a log is wrapped in the middle of words otherwise
    env = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "max_print_line": "1000"}
    return subprocess.run(
        command,
        cwd=folder,
        env=env,
        encoding="latin-1",
        capture_output=True,
        timeout=120,
    )


@needs_latex
def test_latex_reads_every_number(tmp_path):
    numbers = paper_numbers(RECORDS)
    said = "".join(rf"\typeout{{number {name} is \bleuprint{{{name}}}}}" for name in numbers)
    text = rf"\section{{\bleuprint{{{FIRST}/bleu}}}}$p\bleuprint{{{FIRST}/p}}$"
    text += rf"\bleuprint{{{FIRST}/human_agreement}}"
    text += rf"\texttt{{\bleuprint{{{FIRST}/bleu_signature}}}}"
    length = r"\ifdim\bleuprint{tiny/news-en-de/hours}pt>11pt\typeout{LONG}\fi"  # a number to TeX
    done = _latex(tmp_path, text + length + said)
    assert done.returncode == 0, done.stdout
    printed = dict(re.findall(r"^number (\S+) is (.*)$", done.stdout, re.MULTILINE))
    plain = {name: number for name, number in numbers.items() if "\\" not in number}
    assert plain.items() <= printed.items() and set(printed) == set(numbers)
    assert "LONG" in done.stdout and (tmp_path / "paper.pdf").exists()


@needs_latex
def test_latex_refuses_a_number_that_is_not_there(tmp_path):
    done = _latex(tmp_path, rf"\bleuprint{{{FIRST}/bleu_hgih}}")
    assert done.returncode != 0
    assert "\\bleuprintNoSuchNumber" in done.stdout
