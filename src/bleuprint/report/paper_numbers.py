r"""numbers.tex: every number of the report as `\bleuprint{NAME}`, for papers.

LaTeX stops at a name that the file lacks, if the report's files have changed since, and if the
numbers were edited.
"""

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path

import pandas as pd

from bleuprint.config.paths import Cell
from bleuprint.report import cost_columns
from bleuprint.report.frame import COSTS, RESULTS, trained
from bleuprint.report.grid import NONE, tex_text
from bleuprint.report.system_results import (
    SystemResult,
    of_metric,
    p_text,
    system_results,
)

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
# \bleuprint is expandable, so that \num and \edef can use it. Needs a LaTeX of 2020 or later, whose
# \file_mdfive_hash:n and \tex_mdfivesum:D are the same in pdfTeX, LuaTeX and XeTeX.
_MACROS = r"""% Numbers of reports/: \input this file, then \bleuprint{SYSTEM/CORPUS/TEST/bleu}.
% Written by: bleuprint numbers > numbers.tex
\NeedsTeXFormat{LaTeX2e}[2020/02/02]
% The project's folder, as seen by LaTeX; empty: a copy without reports/, which is not checked.
\providecommand\bleuprintroot{.}
\ExplSyntaxOn
\cs_set:Npn \bleuprint #1
  { \cs_if_exist_use:cF { bleuprint / #1 } { \bleuprint_unknown:n {#1} } }
\cs_set_protected:Npn \bleuprint_unknown:n #1
  { \PackageError { bleuprint } { numbers.tex~has~no~number~\tl_to_str:n {#1} } { } }
\cs_set_protected:Npn \bleuprint_check:nn #1#2
  {
    \file_if_exist:nTF { \bleuprintroot / #1 }
      {
        \str_if_eq:eeF { \file_mdfive_hash:n { \bleuprintroot / #1 } } {#2}
          { \bleuprint_stop:n { #1~has~changed~since;~run:~bleuprint~numbers~>~numbers.tex } }
      }
      { \bleuprint_stop:n { no~\bleuprintroot / #1;~define~\string\bleuprintroot } }
  }
\cs_set_protected:Npn \bleuprint_stop:n #1
  { \PackageError { bleuprint } { numbers.tex:~#1 } { } \tex_end:D }
\cs_set_protected:Npn \bleuprint_checks:n #1
  {
    \tl_if_empty:oTF { \bleuprintroot }
      { \PackageWarning { bleuprint } { numbers.tex~is~not~compared~with~reports/ } }
      {#1}
  }
% Each definition enters the sum, without spaces, with the sum of those before.
\str_clear_new:N \l_bleuprint_sum_str
\cs_set_protected:Npn \bleuprintdefine #1#2
  {
    \cs_set:cpn { bleuprint / #1 } {#2}
    \str_set:Nn \l_tmpa_str { #1#2 }
    \str_remove_all:Nn \l_tmpa_str { ~ }
    \str_set:Nx \l_bleuprint_sum_str
      { \tex_mdfivesum:D { \l_bleuprint_sum_str \l_tmpa_str } }
  }
\cs_set_protected:Npn \bleuprintsum #1
  {
    \str_if_eq:eeF { \l_bleuprint_sum_str } {#1}
      { \bleuprint_stop:n { edited~by~hand;~run:~bleuprint~numbers~>~numbers.tex } }
  }
"""


def numbers_tex(records: pd.DataFrame, root: Path = Path()) -> str:
    """The file: its macros, the MD5 of the report's files in `root`, the numbers with theirs."""
    paths = [path for path in (RESULTS, COSTS) if (root / path).exists()]
    sums = {path: hashlib.md5((root / path).read_bytes()).hexdigest().upper() for path in paths}
    checks = "".join(
        f"  \\bleuprint_check:nn {{ {path.as_posix()} }} {{ {md5} }}\n"
        for path, md5 in sums.items()
    )
    numbers = paper_numbers(records)
    defined = "".join(f"\\bleuprintdefine{{{name}}}{{{text}}}\n" for name, text in numbers.items())
    return (
        f"{_MACROS}\\bleuprint_checks:n {{\n{checks}}}\n\\ExplSyntaxOff\n"
        f"{defined}\\bleuprintsum{{{_sum(numbers)}}}\n\\endinput\n"
    )


def _sum(numbers: Mapping[str, str]) -> str:
    """The MD5 that \\bleuprintdefine computes."""
    md5 = ""
    for name, text in numbers.items():
        defined = f"{md5}{name}{text}".replace(" ", "")
        md5 = hashlib.md5(defined.encode()).hexdigest().upper()
    return md5


def paper_numbers(records: pd.DataFrame) -> dict[str, str]:
    """The numbers as LaTeX by name; what was not measured or tested has none.

    SYSTEM/CORPUS/TEST/ with a score, and SYSTEM/CORPUS/ with a cost; the cost of all trainings
    together has neither.
    """
    numbers = dict[str, str]()
    for result in system_results(records):
        place = "/".join((result.system, result.corpus, result.test))
        numbers |= {f"{place}/{name}": number for name, number in _scores(result)}
    trainings = trained(records).drop_duplicates(Cell._fields)
    for (system, corpus), seeds in trainings.groupby(["system", "corpus"], sort=False):
        cells = {name: cell(seeds) for name, cell in _COSTS.items()}
        cells["hours"] = _hours(seeds.train_seconds.mean())
        known = {name: tex_text(cell) for name, cell in cells.items() if cell != NONE}
        numbers |= {f"{system}/{corpus}/{name}": cell for name, cell in known.items()}
    return numbers | {name: cost for name, cost in total_cost(records).items() if cost != NONE}


def total_cost(records: pd.DataFrame) -> dict[str, str]:
    """The cost of all trainings together; hours only if all were timed.

    Rows that differ only in averaging or decoding share a training.
    """
    trainings = trained(records).drop_duplicates("training_sha256")
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
        yield f"{metric}_signature", tex_text(result.first[f"{metric}_signature"])
        ends = {"low": score.low, "high": score.high, "deviation": score.deviation}
        for end, value in ends.items():
            if value is not None:
                yield f"{metric}_{end}", f"{value:.1f}"
    for metric, difference in result.differences.items():
        yield of_metric(metric, "difference"), f"{difference.value:+z.1f}"
        p = {"p": difference.p, "p_randomization": difference.randomization}
        for name, value in (p | {"p_holm": difference.corrected}).items():
            if value is not None:
                yield of_metric(metric, name), p_text(value).removeprefix("p")
        if difference.agreement is not None:
            agreement = tex_text(difference.agreement_text)
            yield of_metric(metric, "human_agreement"), agreement
