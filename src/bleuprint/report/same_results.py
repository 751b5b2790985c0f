"""Whether two reports have the same results: the same bytes, or the same within seeds' noise."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from math import sqrt
from typing import Any

import pandas as pd

from bleuprint.config.paths import Cell
from bleuprint.report.frame import STORED
from bleuprint.report.system_results import METRICS, PLACE, of_metric

# The standard deviation of BLEU over seeds, if a report has one seed: docs/report.md says whence.
SEEDS_BLEU = 0.3

_KEY = [*Cell._fields, "test"]
# Fingerprints of what made a result; the other columns are the result.
_FINGERPRINTS = (
    *("settings_sha256", "binary_sha256", "training_sha256"),
    *("averaged_sha256", "decode_sha256", "scored_with"),
)
_TESTS = ("difference", "human_agreement", "p", "p_holm", "p_bootstrap", "p_randomization")
_OF_REPORT = [
    "baseline",
    *(of_metric(metric, name) for metric in METRICS for name in (*_TESTS, "standard_error")),
]
# The columns in which a stage's own outputs show; all others are of the stage score.
_OF_STAGES = {
    "split": ("source", "target", "lines", "sources_sha256", "references_sha256"),
    "binarize": ("binary_sha256",),
    "train": ("training_sha256", "parameters", "updates", "source_tokens", "target_tokens"),
    "translate": ("hypotheses_sha256", "models", "engine", "precision", "beam", "test_loss"),
    "score": tuple(name for name in METRICS if name != "comet"),
    "comet": ("comet", "comet_low", "comet_high", "comet_signature"),
}


class Verdict(IntEnum):
    """How two results of one cell and test set compare; the exit status of `bleuprint verify`."""

    SAME_BYTES = 0
    WITHIN_NOISE = 3
    DIFFERENT = 4


@dataclass(frozen=True)
class Compared:
    """A result in two reports. `difference`: mean BLEU of the second minus that of the first, over
    the seeds that both have; `noise`: see `seeds_noise`.
    """

    first: Mapping[str, Any]
    second: Mapping[str, Any]
    verdict: Verdict
    columns: tuple[str, ...]
    difference: float
    noise: float

    @property
    def cell(self) -> Cell:
        return Cell(self.first["system"], self.first["corpus"], int(self.first["seed"]))

    @property
    def outside(self) -> bool:
        """Whether one of the translations was not made here: they differ by no noise of seeds."""
        return bool(self.first["outside"] or self.second["outside"])

    @property
    def scored_by(self) -> str:
        """The stage that scored the first, as in dvc.lock."""
        if self.first["outside"]:
            return f"score_outside@{self.cell.corpus}"
        return f"score@{'-'.join(map(str, self.cell))}"

    @property
    def stage(self) -> str:
        """The kind of the first stage from which they differ, by the columns."""
        fingerprints = (name for name in _FINGERPRINTS[1:3] if self.differs(name))
        differing = {*self.columns, *fingerprints}
        if differing <= {*_OF_REPORT}:
            return "report"
        stages = (kind for kind, columns in _OF_STAGES.items() if differing & {*columns})
        found = next(stages, "score")
        return "score_outside" if self.outside and found in ("translate", "score") else found

    def differs(self, column: str) -> bool:
        return not _equal(self.first[column], self.second[column])

    def causes(self) -> Iterator[str]:
        """What was recorded that may be why they differ."""
        if "outside" in self.columns:
            yield "one is a row from outside, the other was trained"
        if self.differs("settings_sha256"):
            yield "settings"
        if self.differs("sources_sha256") or self.differs("references_sha256"):
            yield "test set"
        if self.differs("binary_sha256"):
            yield "data"
        elif self.differs("training_sha256") and not self.differs("settings_sha256"):
            yield "code of the training"
        if self.differs("averaged_sha256") and all(self._both("averaged_sha256")):
            yield "checkpoints that were averaged"
        if self.differs("scored_with") and all(self._both("scored_with")):
            yield f"scored with {_changed(*self._both('scored_with'), ', ')}"
        if self.differs("bleu_signature"):
            yield f"signature {_changed(*self._both('bleu_signature'), '|')}"

    def environment(self) -> Iterator[str]:
        """Versions and machines of the trainings, as far as both are known and differ."""
        if self.differs("versions") and all(self._both("versions")):
            yield _changed(*self._both("versions"), ", ")
        machines = [
            f"{side['device']}, {side['processes']} x {side['threads']} threads"
            for side in (self.first, self.second)
            if side["device"]
        ]
        if len(set(machines)) == 2:
            yield f"machine {machines[0]} and {machines[1]}"

    def _both(self, column: str) -> tuple[str, str]:
        return self.first[column] or "", self.second[column] or ""


def compared(
    first: pd.DataFrame, second: pd.DataFrame, left_out: Collection[str] = ()
) -> list[Compared]:
    """Every result that both reports have, in the order of the first.

    `left_out`: columns that one report lacks. Those of differences between systems are compared if
    both have the same systems and seeds. Of `outside` only whether it is empty is compared.
    """
    sides = [_by_key(records) for records in (first, second)]
    columns = [
        name
        for name in STORED
        if name not in (*_KEY, *_FINGERPRINTS, *left_out, "outside")
        and (set(sides[0]) == set(sides[1]) or name not in _OF_REPORT)
    ]
    common = pd.DataFrame([key for key in sides[0] if key in sides[1]], columns=_KEY)
    results = []
    for _, keys in common.groupby(PLACE, sort=False):
        here, there = (
            [side[key] for key in keys.itertuples(index=False, name=None)] for side in sides
        )
        bleu = [pd.Series([float(each["bleu"]) for each in side]) for side in (here, there)]
        difference, noise = float(bleu[1].mean() - bleu[0].mean()), seeds_noise(*bleu)
        for pair in zip(here, there, strict=True):
            differing = tuple(name for name in columns if not _equal(*(e[name] for e in pair)))
            from_outside = [bool(each["outside"]) for each in pair]
            if any(from_outside) and not all(from_outside):
                differing += ("outside",)
            small = abs(difference) <= noise and not any(from_outside)
            verdict = _verdict(differing, small)
            results.append(Compared(*pair, verdict, differing, difference, noise))
    return results


def seeds_noise(first: pd.Series, second: pd.Series) -> float:
    """The largest difference of two means, over as many seeds each, that is noise at 95 %.

    Of Student's t for two samples with one variance (that of two runs of the same experiment):
    t(0.975; 2n - 2) * sqrt((s1^2 + s2^2) / n). With one seed: 1.96 * SEEDS_BLEU * sqrt(2).
    """
    n = len(first)
    if n == 1:
        return 1.96 * SEEDS_BLEU * sqrt(2)
    from scipy.special import stdtrit  # scipy.stats would take half a second to load

    return float(stdtrit(2 * n - 2, 0.975)) * sqrt((first.var() + second.var()) / n)


def _verdict(differing: tuple[str, ...], small: bool) -> Verdict:
    if not differing:
        return Verdict.SAME_BYTES
    # scores of the same translations have no noise, and those of other references no comparison
    alike = ("references_sha256", "sources_sha256", "bleu_signature", "lines")
    if small and "hypotheses_sha256" in differing and not {*alike} & {*differing}:
        return Verdict.WITHIN_NOISE
    return Verdict.DIFFERENT


def _by_key(records: pd.DataFrame) -> dict[tuple[Any, ...], dict[str, Any]]:
    """The records as dictionaries, with None for what is missing."""
    known = records.astype(object).where(records.notna(), None)
    return {tuple(each[name] for name in _KEY): each for each in known.to_dict("records")}


def _equal(first: Any, second: Any) -> bool:
    return bool(first == second)


def _changed(first: str, second: str, separator: str) -> str:
    """The parts of two lists in which they differ: torch 2.13.0 and torch 2.12.0."""
    sides = first.split(separator), second.split(separator)
    own = [
        [part for part in side if part not in other]
        for side, other in zip(sides, sides[::-1], strict=True)
    ]
    return " and ".join(", ".join(parts) or "none" for parts in own)
