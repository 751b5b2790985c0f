"""Whether two reports have the same results: the same bytes, or the same within seeds' noise."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from math import sqrt
from statistics import fmean, variance
from typing import Any

from bleuprint.config.paths import Cell
from bleuprint.report.frame import CELLS, KEY, Records

# The standard deviation of BLEU over seeds, if a report has one seed: docs/report.md says whence.
SEEDS_BLEU = 0.3

# Fingerprints of what made a result; all else is the result.
_FINGERPRINTS = (
    *("settings_sha256", "binary_sha256", "training_sha256"),
    *("averaged_sha256", "decode_sha256", "scored_with"),
)
_NOT_COMPARED = {*KEY, *_FINGERPRINTS, "outside"}
_TESTS = "tests: "
# The facts in which a stage's own outputs show; what was measured is of the stage score.
_OF_STAGES = {
    "split": ("source", "target", "lines", "sources_sha256", "references_sha256"),
    "binarize": ("binary_sha256",),
    "train": ("training_sha256", "parameters", "updates", "source_tokens", "target_tokens"),
    "translate": ("hypotheses_sha256", "models", "engine", "precision", "loss"),
    "comet": ("comet",),
}
# One result: facts, measures with their group, and the tests of these, by name.
Result = Mapping[str, Any]


class Verdict(IntEnum):
    """How two results of one cell and test set compare; the exit status of `bleuprint verify`."""

    SAME_BYTES = 0
    WITHIN_NOISE = 3
    DIFFERENT = 4


@dataclass(frozen=True)
class Compared:
    """A result in two reports. `difference`: mean BLEU of the second minus that of the first, over
    the seeds that both have; `noise`: see `seeds_noise`; `names`: what differs.
    """

    first: Result
    second: Result
    verdict: Verdict
    names: tuple[str, ...]
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
    def bleu(self) -> tuple[float, float]:
        return self.first["bleu"][0], self.second["bleu"][0]

    @property
    def scored_by(self) -> str:
        """The stage that scored the first, as in dvc.lock."""
        if self.first["outside"]:
            return f"score_outside@{self.cell.corpus}"
        return f"score@{'-'.join(map(str, self.cell))}"

    @property
    def stage(self) -> str:
        """The kind of the first stage from which they differ, by the names."""
        fingerprints = (name for name in _FINGERPRINTS[1:3] if self.differs(name))
        differing = {*self.names, *fingerprints}
        if all(name.startswith(_TESTS) for name in differing):
            return "report"
        stages = (kind for kind, names in _OF_STAGES.items() if differing & {*names})
        found = next(stages, "score")
        return "score_outside" if self.outside and found in ("translate", "score") else found

    def differs(self, name: str) -> bool:
        return bool(self.first.get(name) != self.second.get(name))

    def causes(self) -> Iterator[str]:
        """What was recorded that may be why they differ."""
        if "outside" in self.names:
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
        if self.differs("scored_with"):
            yield f"scored with {_changed(*self._both('scored_with'), ', ')}"
        first, second = (side["bleu"][-1] for side in (self.first, self.second))
        if first != second:
            yield f"signature {_changed(first, second, '|')}"

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

    def _both(self, name: str) -> tuple[str, str]:
        return self.first.get(name) or "", self.second.get(name) or ""


def compared(first: Records, second: Records) -> tuple[list[Compared], list[str]]:
    """Every result that both reports have, in the order of the first.

    And the measures that only one of them has, such as COMET, which are not compared. Tests between
    systems are compared if both have the same systems and seeds. Of `outside` only whether it is
    empty is compared.
    """
    sides = [_by_key(records) for records in (first, second)]
    measures = [records.measures.measure for records in (first, second)]
    common, left_out = {*measures[0]} & {*measures[1]}, sorted({*measures[0]} ^ {*measures[1]})
    same_cells = set(sides[0]) == set(sides[1])
    places: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
    for key in sides[0]:
        if key in sides[1]:
            places.setdefault((key[0], key[1], key[3]), []).append(key)
    results = []
    for keys in places.values():
        here, there = ([side[key] for key in keys] for side in sides)
        bleu = [[each["bleu"][0] for each in side] for side in (here, there)]
        difference, noise = fmean(bleu[1]) - fmean(bleu[0]), seeds_noise(*bleu)
        for pair in zip(here, there, strict=True):
            names = tuple(
                name
                for name in dict.fromkeys((*pair[0], *pair[1]))
                if pair[0].get(name) != pair[1].get(name)
                and name not in _NOT_COMPARED
                and (name in CELLS or _measure(name) in common)
                and (same_cells or not name.startswith(_TESTS))
            )
            outside = [bool(each["outside"]) for each in pair]
            if any(outside) and not all(outside):
                names += ("outside",)
            verdict = _verdict(pair, names, abs(difference) <= noise and not any(outside))
            results.append(Compared(*pair, verdict, names, difference, noise))
    return results, left_out


def seeds_noise(first: Sequence[float], second: Sequence[float]) -> float:
    """The largest difference of two means, over as many seeds each, that is noise at 95 %.

    Of Student's t for two samples with one variance (that of two runs of the same experiment):
    t(0.975; 2n - 2) * sqrt((s1^2 + s2^2) / n). With one seed: 1.96 * SEEDS_BLEU * sqrt(2).
    """
    n = len(first)
    if n == 1:
        return 1.96 * SEEDS_BLEU * sqrt(2)
    from scipy.special import stdtrit  # scipy.stats would take half a second to load

    return float(stdtrit(2 * n - 2, 0.975)) * sqrt((variance(first) + variance(second)) / n)


def _measure(name: str) -> str:
    """That of a score, or of a test."""
    return name.removeprefix(_TESTS).partition(" (")[0]


def _verdict(pair: Sequence[Result], names: tuple[str, ...], small: bool) -> Verdict:
    if not names:
        return Verdict.SAME_BYTES
    # scores of the same translations have no noise, and those of other references no comparison
    alike = {"references_sha256", "sources_sha256", "lines"} & {*names}
    signed = pair[0]["bleu"][-1] == pair[1]["bleu"][-1]
    if small and "hypotheses_sha256" in names and not alike and signed:
        return Verdict.WITHIN_NOISE
    return Verdict.DIFFERENT


def _by_key(records: Records) -> dict[tuple[Any, ...], dict[str, Any]]:
    """The results by system, corpus, seed and test set, with None for what is missing."""
    cells = records.cells.astype(object).where(records.cells.notna(), None)
    found = {tuple(row[name] for name in KEY): row for row in cells.to_dict("records")}
    measures = records.measures.astype(object).where(records.measures.notna(), None)
    for row in measures.itertuples(index=False):
        name = f"{row.measure} ({row.group})" if row.group else row.measure
        result = found[row.system, row.corpus, row.seed, row.test]
        result[name] = row.value, row.low, row.high, row.units, row.signature
        tests = row.baseline, row.difference, row.p, row.p_holm, row.p_randomization
        if row.baseline:
            result[f"{_TESTS}{name}"] = *tests, row.standard_error
    return found


def _changed(first: str, second: str, separator: str) -> str:
    """The parts of two lists in which they differ: torch 2.13.0 and torch 2.12.0."""
    sides = first.split(separator), second.split(separator)
    own = [
        [part for part in side if part not in other]
        for side, other in zip(sides, sides[::-1], strict=True)
    ]
    return " and ".join(", ".join(parts) or "none" for parts in own)
