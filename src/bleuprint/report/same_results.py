"""Which results two reports share, and from which stage on the other ones differ."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bleuprint.config.paths import Run
from bleuprint.report.frame import RUN_AND_TEST, RUN_COLUMNS, Records, machine_text
from bleuprint.scoring.file_warnings import WARNING
from bleuprint.scoring.floor import MATCHED_4_GRAMS
from bleuprint.scoring.metric import SCORE
from bleuprint.scoring.metrics import METRICS

# Fingerprints of what made a result; all else is the result.
_NOT_COMPARED = {
    *(*RUN_AND_TEST, "about", "settings_sha256", "binary_sha256", "training_sha256"),
    *("averaged_sha256", "decode_sha256", "scored_with"),
}
# Figures that are there only if the translations are odd, which their hash tells.
_OF_TRANSLATIONS = {MATCHED_4_GRAMS, WARNING}
# The facts in which a stage's own outputs show; what was measured is of the stage score.
_OF_STAGES = {
    "split": {"source", "target", "lines", "sources_sha256", "references_sha256"},
    "binarize": {"binary_sha256"},
    "train": {"training_sha256", "parameters", "updates", "source_tokens", "target_tokens"},
    "translate": {"hypotheses_sha256", "models", "engine", "precision", "loss"},
}
# Metrics of other stages than score.
_OF_STAGES |= {each.stage: {each.key} for each in METRICS.values() if each.stage != SCORE}
# What differs if one side is trained here and the other is not.
_IS_TRAINED = "is_trained"
# What may be why results differ, and the facts in which it shows.
_CAUSES = {
    "settings": ("settings_sha256",),
    "test set": ("sources_sha256", "references_sha256"),
    "data": ("binary_sha256",),
}
# One result: facts, and metrics with their group, by name.
Result = Mapping[str, Any]


@dataclass(frozen=True)
class ResultPair:
    """One result of two reports.

    Attributes:
        first: The result in the first report.
        second: The result in the second report.
        differing_names: The facts and metrics that differ; empty if the bytes are equal.
    """

    first: Result
    second: Result
    differing_names: tuple[str, ...]

    @property
    def is_same(self) -> bool:
        """Whether the translations and all scores have the same bytes."""
        return not self.differing_names

    @property
    def run(self) -> Run:
        """The system, corpus and seed."""
        return Run(self.first["system"], self.first["corpus"], int(self.first["seed"]))

    @property
    def bleu(self) -> tuple[float, float]:
        """BLEU in the first and in the second report."""
        return self.first["bleu"][0], self.second["bleu"][0]

    @property
    def score_stage(self) -> str:
        """The stage that scored the first, as in dvc.lock."""
        return f"score@{'-'.join(map(str, self.run))}"

    @property
    def first_differing_stage(self) -> str:
        """The kind of the first stage from which they differ, by the names."""
        made_by = ("binary_sha256", "training_sha256")
        differing = {*self.differing_names, *filter(self.differs, made_by)}
        stages = (kind for kind, names in _OF_STAGES.items() if differing & names)
        return next(stages, SCORE)

    def differs(self, name: str) -> bool:
        return bool(self.first.get(name) != self.second.get(name))

    def causes(self) -> Iterator[str]:
        """What was recorded that may be why they differ."""
        if _IS_TRAINED in self.differing_names:
            yield "one is an external system, the other was trained"
        causes = [cause for cause, names in _CAUSES.items() if any(map(self.differs, names))]
        yield from causes
        if self.differs("training_sha256") and not {"settings", "data"} & {*causes}:
            yield "code of the training"
        if self.differs("scored_with"):
            yield f"scored with {_changed(*self._both('scored_with'), ', ')}"
        first, second = (side["bleu"][-1] for side in (self.first, self.second))
        if first != second:
            yield f"signature {_changed(first, second, '|')}"

    def environment(self, portable: bool) -> Iterator[str]:
        """Versions and machines of the trainings, as far as both are known and differ.

        `portable`: whether both trained with portable arithmetic, which no machine changes.
        """
        if self.differs("versions") and all(self._both("versions")):
            yield _changed(*self._both("versions"), ", ")
        machines = [
            machine_text(side["device"], side["processes"], side["threads"])
            for side in (self.first, self.second)
            if side["device"]
        ]
        if len(set(machines)) == 2:
            native = "" if portable else ": native arithmetic rounds differently on each"
            yield f"machine {' and '.join(machines)}{native}"

    def _both(self, name: str) -> tuple[str, str]:
        return self.first.get(name) or "", self.second.get(name) or ""


def compare_records(first: Records, second: Records) -> tuple[list[ResultPair], list[str]]:
    """Compare the results that two reports share.

    Of systems that are not trained here, what translated is not compared.

    Args:
        first: The records of the first report.
        second: The records of the second report.

    Returns:
        The results of both, in the order of the first report, and the metrics that only one of
        them has, such as COMET, which are not compared.
    """
    results_a = _by_key(first)
    results_b = _by_key(second)
    metrics_a = set(first.metrics.metric) - _OF_TRANSLATIONS
    metrics_b = set(second.metrics.metric) - _OF_TRANSLATIONS
    common_metrics = metrics_a & metrics_b
    results = []
    for key, result_a in results_a.items():
        if key in results_b:
            result_b = results_b[key]
            names = _differing_names(result_a, result_b, common_metrics)
            results.append(ResultPair(result_a, result_b, tuple(names)))
    return results, sorted(metrics_a ^ metrics_b)


def _differing_names(
    first: Result, second: Result, common_metrics: Collection[str]
) -> Iterator[str]:
    """Yield the facts, and the metrics that both reports have, in which a result differs."""
    for name in dict.fromkeys((*first, *second)):
        metric, _, _ = name.partition(" (")
        is_compared = name not in _NOT_COMPARED and (
            name in RUN_COLUMNS or metric in common_metrics
        )
        if is_compared and first.get(name) != second.get(name):
            yield name
    if _is_trained(first) != _is_trained(second):
        yield _IS_TRAINED


def _is_trained(result: Result) -> bool:
    """Whether a result is of a system that was trained here."""
    return result["training_sha256"] is not None


def _by_key(records: Records) -> dict[tuple[Any, ...], dict[str, Any]]:
    """The results by system, corpus, seed and test set, with None for what is missing."""
    runs = records.runs.astype(object).where(records.runs.notna(), None)
    found = {tuple(row[name] for name in RUN_AND_TEST): row for row in runs.to_dict("records")}
    metrics = records.metrics.astype(object).where(records.metrics.notna(), None)
    for row in metrics.itertuples(index=False):
        name = f"{row.metric} ({row.group})" if row.group else row.metric
        result = found[row.system, row.corpus, row.seed, row.test]
        result[name] = row.value, row.ci_low, row.ci_high, row.units, row.signature
    return found


def _changed(first: str, second: str, separator: str) -> str:
    """The parts of two lists in which they differ: torch 2.13.0 and torch 2.12.0."""
    sides = first.split(separator), second.split(separator)
    own = [
        [part for part in side if part not in other]
        for side, other in zip(sides, sides[::-1], strict=True)
    ]
    return " and ".join(", ".join(parts) or "none" for parts in own)
