r"""numbers.tex: every number of the report as `\bleuprint{NAME}`, for papers."""

from collections.abc import Iterator

import pandas as pd

from bleuprint.config.paths import Cell
from bleuprint.report import cost_columns
from bleuprint.report.frame import Records, trained
from bleuprint.report.grid import NONE, tex_text
from bleuprint.report.paired import p_text
from bleuprint.report.system_results import SystemResult, system_results

# What each training cost, by the names of the columns of results() where there is one.
_COSTS = {
    "parameters": cost_columns.COUNTED["Parameters"],
    "updates": cost_columns.COUNTED["Updates"],
    "target_tokens": cost_columns.COUNTED["Target tokens"],
    "training_flops": cost_columns.COUNTED["FLOPs"],
    "train_time": cost_columns.MEASURED["Time"],
    "train_tokens_per_second": cost_columns.MEASURED["Tokens/s"],
    "peak_memory": cost_columns.MEASURED["Memory"],
    "mfu": cost_columns.MEASURED["MFU"],
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
    trainings = trained(records.cells).drop_duplicates(Cell._fields)
    for (system, corpus), seeds in trainings.groupby(["system", "corpus"], sort=False):
        cells = {name: cell(seeds) for name, cell in _COSTS.items()}
        cells["hours"] = _hours(seeds.train_seconds.mean())
        known = {name: tex_text(cell) for name, cell in cells.items() if cell != NONE}
        numbers |= {f"{system}/{corpus}/{name}": cell for name, cell in known.items()}
    return numbers | {name: cost for name, cost in total_cost(records).items() if cost != NONE}


def total_cost(records: Records) -> dict[str, str]:
    """The cost of all trainings together; hours only if all were timed.

    Rows that differ only in averaging or decoding share a training.
    """
    trainings = trained(records.cells).drop_duplicates("training_sha256")
    hours = trainings.train_seconds.sum(skipna=False)
    device_hours = (trainings.train_seconds * trainings.devices.astype(float)).sum(skipna=False)
    return {
        "trainings": str(len(trainings)),
        "training_flops": cost_columns.power(trainings.training_flops.sum()),
        "hours": _hours(hours),
        "device_hours": _hours(device_hours),
    }


def _hours(seconds: float) -> str:
    return NONE if pd.isna(seconds) else f"{seconds / 3600:,.2f}"


def _scores(result: SystemResult) -> Iterator[tuple[str, str]]:
    """Scores with interval or deviation, and differences with their p: =0.012, in math mode."""
    for metric, score in result.scores.items():
        yield metric, f"{score.mean:.1f}"
        yield f"{metric}_signature", tex_text(result.rows[metric, ""][0].signature)
        ends = {"low": score.low, "high": score.high, "deviation": score.deviation}
        for end, value in ends.items():
            if value is not None:
                yield f"{metric}_{end}", f"{value:.1f}"
    for metric, difference in result.differences.items():
        prefix = "" if metric == "bleu" else f"{metric}_"
        yield f"{prefix}difference", f"{difference.value:+z.1f}"
        p = {"p": difference.p, "p_randomization": difference.randomization}
        for name, value in (p | {"p_holm": difference.corrected}).items():
            if value is not None:
                yield f"{prefix}{name}", p_text(value).removeprefix("p")
        if difference.agreement:
            yield f"{prefix}human_agreement", tex_text(difference.agreement)
