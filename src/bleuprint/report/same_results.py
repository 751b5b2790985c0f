"""Compares the results of two reports: which are equal, and from which stage on the others differ.

A report may be that of a colleague who repeated the experiment. `compare_records` returns a
`ResultPair` for each result that both reports have. The commands `verify` and `reproduce` print
them.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import pandas as pd

from bleuprint.config.paths import Run
from bleuprint.report.frame import RUN_AND_TEST, RUN_COLUMNS, Records
from bleuprint.report.training_costs import machine_text
from bleuprint.scoring.file_warnings import WARNING
from bleuprint.scoring.metric import SCORE
from bleuprint.scoring.metrics import METRICS
from bleuprint.scoring.minimum_for_test import MATCHED_4_GRAMS

# Columns that are not part of the result: its key, and the fingerprints of what it was made from.
_NOT_COMPARED = {
    *RUN_AND_TEST,
    "about",
    "settings_sha256",
    "binary_sha256",
    "training_sha256",
    "averaged_sha256",
    "decode_sha256",
    "scored_with",
}
# Figures that are stored only of unusual translations, whose SHA-256 says the same.
_FIGURES_OF_TRANSLATIONS = {MATCHED_4_GRAMS, WARNING}
# The columns and metrics that are outputs of a stage, in the order in which the stages run. All
# other metrics are outputs of the stage score.
_OUTPUTS_BY_STAGE = {
    "split": {"source", "target", "lines", "sources_sha256", "references_sha256"},
    "binarize": {"binary_sha256"},
    "train": {"training_sha256", "parameters", "updates", "source_tokens", "target_tokens"},
    "translate": {"hypotheses_sha256", "models", "engine", "precision", "loss"},
}
for _metric in METRICS.values():
    if _metric.stage != SCORE:
        _OUTPUTS_BY_STAGE[_metric.stage] = {_metric.key}
# The name of the difference between a trained system and an external one.
_IS_TRAINED = "is_trained"
# What may be the reason for other results, with the fingerprints that show it.
_FINGERPRINTS_BY_CAUSE = {
    "settings": ["settings_sha256"],
    "test set": ["sources_sha256", "references_sha256"],
    "data": ["binary_sha256"],
}


class ComparedScore(NamedTuple):
    """A score of a result, as far as it is compared."""

    value: float
    ci_low: float | None
    ci_high: float | None
    units: int
    signature: str


# A run's result on a test set, by name: the columns of `runs` in results.json, and the scores by
# metric, with the group of lines in parentheses: `bleu (length 1-10)`.
Result = Mapping[str, Any]


@dataclass(frozen=True)
class ResultPair:
    """The results of the same run on the same test set in two reports, such as two colleagues'.

    Attributes:
        first: The result in the first report: the columns of results.json and the scores, by name.
        second: The result in the second report.
        differing_names: The names of the columns and scores that differ, such as `bleu`; empty if
            the results are equal.
    """

    first: Result
    second: Result
    differing_names: tuple[str, ...]

    @property
    def is_same(self) -> bool:
        """Return whether the translations and all scores have the same bytes."""
        return not self.differing_names

    @property
    def run(self) -> Run:
        """The system, corpus and seed."""
        return Run(self.first["system"], self.first["corpus"], int(self.first["seed"]))

    @property
    def bleu(self) -> tuple[float, float]:
        """BLEU in the first and in the second report."""
        return self.first["bleu"].value, self.second["bleu"].value

    @property
    def score_stage(self) -> str:
        """The stage that scored the run, as dvc.lock names it: `score@tiny-news-1`."""
        run = self.run
        return f"score@{run.system}-{run.corpus}-{run.seed}"

    @property
    def first_differing_stage(self) -> str:
        """The first stage of the pipeline whose outputs differ in both reports, such as `train`.

        All later stages may differ only because of it, so it is where to look for the reason.
        """
        differing_names = set(self.differing_names)
        # Results are compared without these hashes of data and training. But here, they show that
        # an early stage had other outputs.
        for fingerprint in ("binary_sha256", "training_sha256"):
            if self.differs(fingerprint):
                differing_names.add(fingerprint)
        # The stages are listed in the order in which they run.
        for stage, outputs in _OUTPUTS_BY_STAGE.items():
            if differing_names & outputs:
                return stage
        return SCORE  # The last stage: only scores differ.

    def differs(self, name: str) -> bool:
        """Return whether the two results have different values in a column or a score.

        Args:
            name: The name of the column or score, such as `training_sha256` or `bleu`.
        """
        return bool(self.first.get(name) != self.second.get(name))

    def causes(self) -> Iterator[str]:
        """Yield what may be the reason for the difference between the two results.

        Results store fingerprints, that is, hashes of their inputs, such as settings and texts. If
        a fingerprint differs, this input is a possible reason. Versions of the scoring libraries
        and BLEU's signatures are compared, too.
        """
        if _IS_TRAINED in self.differing_names:
            yield "one is an external system, the other was trained"
        differing_inputs = []
        for cause, fingerprints in _FINGERPRINTS_BY_CAUSE.items():
            if any(self.differs(fingerprint) for fingerprint in fingerprints):
                differing_inputs.append(cause)
        yield from differing_inputs
        # The fingerprint of a training covers its settings, its data and its code. If the first two
        # are equal, the code differs.
        has_equal_inputs = "settings" not in differing_inputs and "data" not in differing_inputs
        if self.differs("training_sha256") and has_equal_inputs:
            yield "code of the training"
        if self.differs("scored_with"):
            first_versions, second_versions = self._texts("scored_with")
            yield f"scored with {_differing_parts(first_versions, second_versions, ', ')}"
        first_signature = self.first["bleu"].signature
        second_signature = self.second["bleu"].signature
        if first_signature != second_signature:
            yield f"signature {_differing_parts(first_signature, second_signature, '|')}"

    def environment(self, is_portable: bool) -> Iterator[str]:
        """Yield how the environments of the two training runs differ: libraries, then machines.

        Args:
            is_portable: Whether both training runs used portable arithmetic, which gives the same
                results on every machine. Otherwise another machine may be the reason for the
                difference, and the text says so.
        """
        first_versions, second_versions = self._texts("versions")
        if first_versions and second_versions and first_versions != second_versions:
            yield _differing_parts(first_versions, second_versions, ", ")
        first_machine = _training_machine(self.first)
        second_machine = _training_machine(self.second)
        if first_machine and second_machine and first_machine != second_machine:
            reason = "" if is_portable else ": native arithmetic rounds differently on each"
            yield f"machine {first_machine} and {second_machine}{reason}"

    def _texts(self, column: str) -> tuple[str, str]:
        """Return the texts of both results in a column, such as `versions`; empty if missing."""
        return self.first.get(column) or "", self.second.get(column) or ""


def _training_machine(result: Result) -> str:
    """Return the machine on which a result's system was trained, such as `CPU, 1 x 8 threads`.

    The text is empty if the machine is not known, for example for an external system.
    """
    if not result["device"]:
        return ""
    return machine_text(result["device"], result["processes"], result["threads"])


def _differing_parts(first: str, second: str, separator: str) -> str:
    """Return how two lists differ, without the parts that both of them contain.

    For example, `torch 2.13.0, numpy 2.4.0` and `torch 2.12.0, numpy 2.4.0` give `torch 2.13.0 and
    torch 2.12.0`.

    Args:
        first: The first list, as one text.
        second: The second list.
        separator: What stands between the parts of a list, such as a comma and a space.
    """
    first_parts = first.split(separator)
    second_parts = second.split(separator)
    only_in_first = [part for part in first_parts if part not in second_parts]
    only_in_second = [part for part in second_parts if part not in first_parts]
    return f"{', '.join(only_in_first) or 'none'} and {', '.join(only_in_second) or 'none'}"


def compare_records(first: Records, second: Records) -> tuple[list[ResultPair], list[str]]:
    """Compare the results that two reports have in common.

    A result consists of the translations of a test set by a system, trained with one seed, and of
    their scores.

    Args:
        first: The results of the first report, as results.json stores them.
        second: The results of the second report.

    Returns:
        The results that both reports have, in the order of the first report, and the metrics that
        only one of the reports has, such as COMET, which are not compared.
    """
    first_results = _results_by_key(first)
    second_results = _results_by_key(second)
    # Some figures are stored only for unusual translations, such as ones with few matches. If one
    # report lacks them, its translations differ, which is found without them.
    first_metrics = set(first.metrics.metric) - _FIGURES_OF_TRANSLATIONS
    second_metrics = set(second.metrics.metric) - _FIGURES_OF_TRANSLATIONS
    common_metrics = first_metrics & second_metrics
    metrics_of_one_report = first_metrics ^ second_metrics  # In one report, but not in both.
    pairs = []
    for key, first_result in first_results.items():
        if key in second_results:
            second_result = second_results[key]
            differing_names = _differing_names(first_result, second_result, common_metrics)
            pairs.append(ResultPair(first_result, second_result, tuple(differing_names)))
    return pairs, sorted(metrics_of_one_report)


def _results_by_key(records: Records) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Return the results of a report, each as one dict of its facts and scores.

    Args:
        records: The results of the report, as results.json stores them: a table of runs and a
            table of metrics, which are joined here.

    Returns:
        The results by system, corpus, seed and test set. The dict of a result contains the columns
        of its run, such as `hypotheses_sha256`, and its scores by name, such as `bleu`, or `bleu
        (length 1-10)` for a group of lines.
    """
    results: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in _none_for_missing(records.runs).to_dict("records"):
        key = tuple(row[column] for column in RUN_AND_TEST)
        results[key] = {str(column): value for column, value in row.items()}
    for row in _none_for_missing(records.metrics).itertuples(index=False):
        name = f"{row.metric} ({row.group})" if row.group else row.metric
        score = ComparedScore(row.value, row.ci_low, row.ci_high, row.units, row.signature)
        results[row.system, row.corpus, row.seed, row.test][name] = score
    return results


def _none_for_missing(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table with None in place of NaN, so that two missing values are equal."""
    return table.astype(object).where(table.notna(), None)


def _differing_names(
    first: Result, second: Result, common_metrics: Collection[str]
) -> Iterator[str]:
    """Yield the names of the columns and scores in which two results differ.

    Only outcomes are compared, such as BLEU and the hash of the translations. The inputs of a
    result, such as its settings, are not: they may differ without an effect on the result.

    Args:
        first: The result in the first report.
        second: The result in the second report.
        common_metrics: The metrics that both reports have; other metrics are not compared.
    """
    for name in dict.fromkeys([*first, *second]):
        # A score of a group of lines has a name such as `bleu (length 1-10)`; its metric is `bleu`.
        metric, _, _ = name.partition(" (")
        is_in_both_reports = name in RUN_COLUMNS or metric in common_metrics
        is_compared = is_in_both_reports and name not in _NOT_COMPARED
        if is_compared and first.get(name) != second.get(name):
            yield name
    if _is_trained(first) != _is_trained(second):
        yield _IS_TRAINED


def _is_trained(result: Result) -> bool:
    """Return whether the system of a result is trained in its project."""
    return result["training_sha256"] is not None
