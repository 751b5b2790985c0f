r"""numbers.tex: every number of the report as `\bleuprint{NAME}`, for papers."""

from collections.abc import Callable, Iterator

import pandas as pd

from bleuprint.report.cost_columns import COUNTED, MEASURED, power
from bleuprint.report.frame import Records, trainings
from bleuprint.report.grid import NONE, tex_text
from bleuprint.report.paired import p_text
from bleuprint.report.system_results import SystemResult, signed, system_results

# What each training cost, by the names of the columns of results() where there is one.
_COSTS: dict[str, Callable[[pd.DataFrame], str]] = {
    "parameters": COUNTED["Parameters"],
    "updates": COUNTED["Updates"],
    "target_tokens": COUNTED["Target tokens"],
    "training_flops": COUNTED["FLOPs"],
    "train_time": MEASURED["Time"],
    "train_tokens_per_second": MEASURED["Tokens/s"],
    "peak_memory": MEASURED["Memory"],
    "mfu": MEASURED["MFU"],
    "hours": lambda seeds: _hours(seeds.train_seconds.mean()),
}
# Expandable, so that \num and \edef can use it; an unknown name is an undefined control sequence.
_HEAD = r"""% Written by: bleuprint numbers > numbers.tex
% \input this file, then \bleuprint{SYSTEM/CORPUS/TEST/bleu}.
\newcommand\bleuprint[1]{\ifcsname bleuprint/#1\endcsname
  \csname bleuprint/#1\endcsname\else\bleuprintNoSuchNumber{#1}\fi}
"""


def numbers_tex(records: Records) -> str:
    r"""The file: a \newcommand for each number, by its name."""
    return _HEAD + "".join(
        f"\\expandafter\\newcommand\\csname bleuprint/{name}\\endcsname{{{text}}}\n"
        for name, text in paper_numbers(records).items()
    )


def paper_numbers(records: Records) -> dict[str, str]:
    """The numbers as LaTeX by name; what was not measured or tested has none.

    SYSTEM/CORPUS/TEST/ with a score, and SYSTEM/CORPUS/ with a cost; the cost of all trainings
    together has neither.
    """
    numbers = dict[str, str]()
    for result in system_results(records):
        place = "/".join((result.system, result.corpus, result.test))
        numbers |= {f"{place}/{name}": number for name, number in _scores(result)}
    of_cells = trainings(records.cells)
    for (system, corpus), seeds in of_cells.groupby(["system", "corpus"], sort=False):
        cells = {name: cell(seeds) for name, cell in _COSTS.items()}
        numbers |= {
            f"{system}/{corpus}/{name}": tex_text(c) for name, c in cells.items() if c != NONE
        }
    # rows that differ only in averaging or decoding share a training
    every = of_cells.drop_duplicates("training_sha256")
    numbers["trainings"] = str(len(every))
    numbers["training_flops"] = power(every.training_flops.sum())
    if every.train_seconds.notna().all():
        numbers["hours"] = _hours(every.train_seconds.sum())
    return numbers


def _hours(seconds: float) -> str:
    return NONE if pd.isna(seconds) else f"{seconds / 3600:,.2f}"


def _scores(result: SystemResult) -> Iterator[tuple[str, str]]:
    """Scores with interval or deviation, and differences with their p: =0.012, in math mode."""
    for metric, score in result.scores.items():
        yield metric, f"{score.mean:.1f}"
        yield f"{metric}_signature", tex_text(result.rows[metric, ""][0].signature)
        for end in ("low", "high", "deviation"):
            if (value := getattr(score, end)) is not None:
                yield f"{metric}_{end}", f"{value:.1f}"
    for metric, difference in result.differences.items():
        prefix = "" if metric == "bleu" else f"{metric}_"
        yield f"{prefix}difference", signed(difference.value, difference.significant)
        tests = {"p": difference.p, "p_holm": difference.corrected}
        if len(result.seeds) == 1:
            tests["p_randomization"] = result.rows[metric, ""][0].p_randomization
        for name, p in tests.items() if difference.is_tested else ():
            yield f"{prefix}{name}", p_text(p).removeprefix("p")
        if difference.agreement:
            yield f"{prefix}human_agreement", tex_text(difference.agreement)
