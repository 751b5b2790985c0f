"""The records of an experiment: what was measured, a row a metric, and the facts of each run.

Every table, chart and file of the report is made from them; results.json has both.
"""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import pandas as pd

from bleuprint.config.paths import Run
from bleuprint.report.results_file import read_results
from bleuprint.runtime.files import atomic_file, check_regular_file, report_as_damage
from bleuprint.runtime.foreign_text import clean_value, spreadsheet_cell
from bleuprint.runtime.wording import counted
from bleuprint.scoring.floor import MIN_SENTENCES
from bleuprint.tracking.timings import read_training_cost

REPORTS = Path("reports")
RESULTS = REPORTS / "results.json"
# The measured columns, committed for clones that have no timings/.
COSTS = REPORTS / "costs.csv"
_RUN = "run: make reproduce"

# Each column of results() with its meaning and unit. A value that is not known is missing.
COLUMNS: dict[str, str] = dict(pd.read_csv(Path(__file__).with_name("columns.csv")).to_numpy())
RUN_AND_TEST = [*Run._fields, "test"]
# The columns of the two lists in results.json.
METRIC_COLUMNS = [*COLUMNS][: [*COLUMNS].index("standard_error") + 1]
# Of table.csv: what was measured, and what is known of rows that were not trained here.
_CSV = [*[*COLUMNS][: [*COLUMNS].index("source")], "about"]
RUN_COLUMNS = [
    *RUN_AND_TEST,
    *("source", "target", "about", "lines", "parameters", "updates", "source_tokens"),
    *("target_tokens", "training_flops", "models", "engine", "precision", "scored_with"),
    *("settings_sha256", "training_sha256", "binary_sha256", "averaged_sha256", "decode_sha256"),
    *("sources_sha256", "references_sha256", "hypotheses_sha256"),
]
# What was measured of a training, by the types of columns that may be missing in every row; of one
# that was resumed with others, processes and threads are all of them: "1 + 2".
COST_DTYPES = {
    "train_seconds": "float64",
    **dict.fromkeys(("device", "processes", "threads", "commit"), "str"),
    "train_tokens_per_second": "float64",
    **dict.fromkeys(("peak_memory", "devices"), "Int64"),
    **dict.fromkeys(("sustained_flops", "training_flops_by_time", "peak_flops", "mfu"), "float64"),
    "versions": "str",
}
# Columns that are not called as the field of tracking's Training.
_NAMES = {
    "seconds": "train_seconds",
    "tokens_per_second": "train_tokens_per_second",
    "flops_by_time": "training_flops_by_time",
}
# What is equal in all corpora of a task.
_TEXTS = ["source", "target", "test", "sources_sha256", "references_sha256"]
_TRAINING = [*Run._fields, "training_sha256"]
# Whole numbers, which are missing where a system is not trained here.
_WHOLE = (
    *("parameters", "updates", "source_tokens", "target_tokens", "training_flops"),
    *("models",),
)
_FIGURES = (
    *("value", "ci_low", "ci_high", "difference", "p", "p_holm", "p_randomization"),
    "standard_error",
)
_OF_TESTS = ("p", "p_holm", "p_randomization", "standard_error")


@dataclass(frozen=True, eq=False)
class Records:
    """`metrics`: a row for each metric of a run's test set, and of a group of its lines.

    `runs`: a row for each system, corpus, seed and test set, with the facts of the training and
    fingerprints, and what was measured of its cost. `published`: the published numbers on these
    test sets, which results.json does not have: published/literature.py attaches them.
    """

    runs: pd.DataFrame
    metrics: pd.DataFrame
    published: pd.DataFrame = field(default_factory=pd.DataFrame)

    @classmethod
    def from_rows(cls, runs: Sequence[Any], metrics: Sequence[Any]) -> Self:
        """The records of these rows, without control characters.

        Whole numbers stay whole where others are missing.
        """
        runs = [{name: clean_value(value) for name, value in row.items()} for row in runs]
        metrics = [{name: clean_value(value) for name, value in row.items()} for row in metrics]
        facts = pd.DataFrame(runs, columns=RUN_COLUMNS)
        for name in _WHOLE:
            if facts[name].isna().any():
                facts[name] = pd.Series([row.get(name) for row in runs], dtype=object)
        figures = pd.DataFrame(metrics, columns=METRIC_COLUMNS).astype(
            dict.fromkeys(_FIGURES, float)
        )
        return cls(facts, _tested(facts, figures))

    def select_runs(self, kept: "pd.Series[bool]") -> "Records":
        """The records of the runs that are kept."""
        runs = self.runs[kept]
        return Records(runs, self.metrics.merge(runs[RUN_AND_TEST], on=RUN_AND_TEST))

    def save(self, path: Path) -> None:
        """Write the records as JSON: two lists of objects, one a line, exactly repeatable."""
        lists = []
        for name, table in (
            ("runs", self.runs[RUN_COLUMNS]),
            ("metrics", self.metrics[METRIC_COLUMNS]),
        ):
            rows = table.astype(object).where(table.notna(), None).to_dict("records")
            lines = (json.dumps(row, ensure_ascii=False, allow_nan=False) for row in rows)
            lists.append(f'"{name}": [\n' + ",\n".join(lines) + "\n]")
        with atomic_file(path) as partial:
            partial.write_text(f"{{{', '.join(lists)}}}\n", encoding="utf-8", newline="\n")

    def to_frame(self) -> pd.DataFrame:
        """One row a metric, with the facts of its run."""
        return self.metrics.merge(self.runs, on=RUN_AND_TEST, how="left").reindex(
            columns=list(COLUMNS)
        )


def _tested(runs: pd.DataFrame, metrics: pd.DataFrame) -> pd.DataFrame:
    """The metrics without the tests over too few sentences, which older versions stored."""
    several = runs.groupby(["system", "corpus", "test"]).seed.transform("nunique") > 1
    is_over_sentences = ~several | runs.training_sha256.isna()
    few = runs[is_over_sentences & (runs.lines < MIN_SENTENCES)]
    if few.empty:
        return metrics
    keys = pd.MultiIndex.from_frame(few[RUN_AND_TEST])
    below_floor = pd.MultiIndex.from_frame(metrics[RUN_AND_TEST]).isin(keys)
    metrics = metrics.copy()
    metrics.loc[below_floor, list(_OF_TESTS)] = float("nan")
    return metrics


def task_names(runs: pd.DataFrame) -> dict[str, str]:
    """Return the name of the task of each corpus, in the order of the runs.

    Corpora are of one task if they have the same test sets: the same bytes of sources and
    references. They differ in preparation alone, and their systems are rows of one table. Stages
    copy published test sets as they are, and detokenized translations are scored against them, so
    that translations of any preparation are compared line by line.

    The name is that of the only corpus, always with its language pair, or the pair with the first
    of several corpora. A task whose test sets are of several pairs is called as the corpus.
    """
    corpora_of: dict[frozenset[tuple[str, ...]], list[str]] = {}
    for corpus, sets in runs.drop_duplicates(["corpus", "test"]).groupby("corpus", sort=False):
        texts = frozenset(sets[_TEXTS].itertuples(index=False, name=None))
        corpora_of.setdefault(texts, []).append(str(corpus))
    names: dict[str, str] = {}
    for texts, corpora in corpora_of.items():
        pairs = {f"{source}-{target}" for source, target, *_ in texts}
        pair = pairs.pop() if len(pairs) == 1 else ""
        first = corpora[0]
        if len(corpora) > 1:
            name = f"{pair} ({first}, …)" if pair else f"{first}, …"
        else:
            name = first if pair in first else f"{first} ({pair})"
        names |= dict.fromkeys(corpora, name)
    return names


def table_row_name(system: str, corpus: str, tasks: Mapping[str, str]) -> str:
    """Return the name of a row: the system's, with the corpus if its task has several."""
    shares_task = list(tasks.values()).count(tasks[corpus]) > 1
    return f"{system}, {corpus}" if shares_task else system


def trained_runs(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs of systems that are trained here."""
    return runs[runs.training_sha256.notna()]


def one_row_per_training(runs: pd.DataFrame) -> pd.DataFrame:
    """The first run of each training."""
    return trained_runs(runs).drop_duplicates(list(Run._fields))


def load(root: Path = Path()) -> Records:
    """The records that were saved in reports/, with what was measured of them."""
    return read(root / RESULTS, root)


def read(path: Path, root: Path, otherwise: str = _RUN) -> Records:
    """The records of a results.json, with what `root` or the costs.csv beside it say of them.

    `otherwise`: what to do if there is none.
    """
    records = read_without_costs(path, otherwise)
    # beside a file of another name, as of a colleague, costs.csv may be anything
    costs = path.with_name(COSTS.name) if path.name == RESULTS.name else None
    measured = with_training_costs(records.runs, root, costs)
    return Records(measured, records.metrics)


def read_without_costs(path: Path, otherwise: str = _RUN) -> Records:
    """The records of a results.json alone."""
    content = read_results(path, otherwise)
    return Records.from_rows(content["runs"], content["metrics"])


def with_training_costs(
    records: pd.DataFrame, root: Path, costs: Path | None = None
) -> pd.DataFrame:
    """The runs with the measured columns, missing where nothing was measured.

    Figures in `root` come first, then those of `costs` (its reports/costs.csv) for the same
    training.
    """
    keys = one_row_per_training(records)[_TRAINING]
    read = (read_training_cost(Run(*row[:3]), row[3], root) for row in keys.to_numpy())
    found = pd.DataFrame([dataclasses.asdict(each) if each else {} for each in read])
    found = found.rename(columns=_NAMES).reindex(columns=list(COST_DTYPES)).astype(COST_DTYPES)
    found = found.set_index(pd.MultiIndex.from_frame(keys))
    if (path := costs or root / COSTS).exists():
        with report_as_damage(path, f"{_RUN}, or restore it: git checkout {path}"):
            check_regular_file(path)
            # names such as 4000 and NA are texts
            types = {**dict.fromkeys(_TRAINING, "str"), "seed": "int64", **COST_DTYPES}
            stored = pd.read_csv(path, dtype=types, keep_default_na=False, na_values=[""])
            recorded = stored.drop_duplicates(_TRAINING, keep="last")
            recorded = recorded.set_index(_TRAINING).reindex(found.index, columns=list(COST_DTYPES))
        found = found.where(found.train_seconds.notna(), recorded)
    return records.merge(found.reset_index(), on=_TRAINING, how="left")


def machine_text(device: str, processes: int | str, threads: int | str) -> str:
    """Return what a training ran on; processes and threads of several machines are `1 + 2`."""
    shape = f"{device}, {processes} x"
    if str(threads).isdigit():
        return f"{shape} {counted(int(threads), 'thread')}"
    return f"{shape} {threads} threads"


def costs_csv(records: pd.DataFrame) -> str:
    """The measured columns, a row for each training."""
    columns = [*_TRAINING, *COST_DTYPES]
    text: str = one_row_per_training(records).to_csv(
        columns=columns, index=False, lineterminator="\n"
    )
    return text


def runs_in(records: pd.DataFrame) -> list[Run]:
    """Each training once, in the order of the records."""
    return [Run(*row) for row in one_row_per_training(records)[list(Run._fields)].to_numpy()]


def csv_text(records: Records) -> str:
    """Return what was measured as CSV, after a row for each published BLEU, as printed."""
    # of objects: whole numbers stay whole where others are missing
    rows = [records.to_frame().astype(object)]
    if not records.published.empty:
        bleu = records.published[~records.published.metric.isin(["loss", "perplexity"])]
        rows.insert(0, bleu.assign(value=bleu.printed).astype(object))
    together = pd.concat(rows).reindex(columns=_CSV)
    safe = {
        name: pd.Series([spreadsheet_cell(value) for value in column], dtype=object)
        for name, column in together.items()
    }
    text: str = pd.DataFrame(safe).to_csv(index=False, lineterminator="\n")
    return text
