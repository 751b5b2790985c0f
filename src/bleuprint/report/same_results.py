"""Whether two reports have the same results: the same bytes, or the same within seeds' noise."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import IntEnum
from math import sqrt
from pathlib import Path
from statistics import fmean, median, variance
from typing import Any

from bleuprint.config.paths import Run
from bleuprint.report.frame import KEY, REPORTS, RESULTS, RUNS, Records, machine, stored, trained
from bleuprint.report.score_frame import PLACE
from bleuprint.runtime.errors import UserError
from bleuprint.scoring.file_warnings import WARNING
from bleuprint.scoring.floor import MATCHED

# Fingerprints of what made a result; all else is the result.
_NOT_COMPARED = {
    *(*KEY, "external", "settings_sha256", "binary_sha256", "training_sha256"),
    *("averaged_sha256", "decode_sha256", "scored_with"),
}
# Figures that are there only if the translations are odd, which their hash tells.
_OF_TRANSLATIONS = {MATCHED, WARNING}
# The facts in which a stage's own outputs show; what was measured is of the stage score.
_OF_STAGES = {
    "split": {"source", "target", "lines", "sources_sha256", "references_sha256"},
    "binarize": {"binary_sha256"},
    "train": {"training_sha256", "parameters", "updates", "source_tokens", "target_tokens"},
    "translate": {"hypotheses_sha256", "models", "engine", "precision", "loss"},
    "comet": {"comet"},
}
# What may be why results differ, and the facts in which it shows.
_CAUSES = {
    "settings": ("settings_sha256",),
    "test set": ("sources_sha256", "references_sha256"),
    "data": ("binary_sha256",),
}
# One result: facts, and metrics with their group, by name.
Result = Mapping[str, Any]
# The standard deviation of BLEU over seeds, by the SHA-256 of the references; None: not measured.
Deviation = Callable[[str], float | None]


class Verdict(IntEnum):
    """How two results of one run and test set compare; the exit status of `bleuprint verify`."""

    SAME_BYTES = 0
    WITHIN_NOISE = 3
    NOISE_UNKNOWN = 4
    DIFFERENT = 5


@dataclass(frozen=True)
class Compared:
    """A result in two reports. `difference`: mean BLEU of the second minus that of the first, over
    the seeds that both have; `noise`: see `seeds_noise`, None if it is not known; `names`: what
    differs.
    """

    first: Result
    second: Result
    names: tuple[str, ...]
    difference: float
    noise: float | None

    @property
    def cell(self) -> Run:
        return Run(self.first["system"], self.first["corpus"], int(self.first["seed"]))

    @property
    def external(self) -> bool:
        """Whether one side is an external system, whose difference no noise of seeds explains."""
        return bool(self.first["external"] or self.second["external"])

    @property
    def bleu(self) -> tuple[float, float]:
        return self.first["bleu"][0], self.second["bleu"][0]

    @property
    def verdict(self) -> Verdict:
        """Noise explains other translations of the same lines, if BLEU has the same signature."""
        if not self.names:
            return Verdict.SAME_BYTES
        same_lines = not {"references_sha256", "sources_sha256", "lines"} & {*self.names}
        signed = self.first["bleu"][-1] == self.second["bleu"][-1]
        if self.external or not same_lines or not signed or "hypotheses_sha256" not in self.names:
            return Verdict.DIFFERENT
        if self.noise is None:
            return Verdict.NOISE_UNKNOWN
        within = abs(self.difference) <= self.noise
        return Verdict.WITHIN_NOISE if within else Verdict.DIFFERENT

    @property
    def scored_by(self) -> str:
        """The stage that scored the first, as in dvc.lock."""
        return f"score@{'-'.join(map(str, self.cell))}"

    @property
    def stage(self) -> str:
        """The kind of the first stage from which they differ, by the names."""
        made_by = ("binary_sha256", "training_sha256")
        differing = {*self.names, *filter(self.differs, made_by)}
        stages = (kind for kind, names in _OF_STAGES.items() if differing & names)
        return next(stages, "score")

    def differs(self, name: str) -> bool:
        return bool(self.first.get(name) != self.second.get(name))

    def causes(self) -> Iterator[str]:
        """What was recorded that may be why they differ."""
        if "external" in self.names:
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
            machine(side["device"], side["processes"], side["threads"])
            for side in (self.first, self.second)
            if side["device"]
        ]
        if len(set(machines)) == 2:
            native = "" if portable else ": native arithmetic rounds differently on each"
            yield f"machine {' and '.join(machines)}{native}"

    def _both(self, name: str) -> tuple[str, str]:
        return self.first.get(name) or "", self.second.get(name) or ""


def compared(
    first: Records, second: Records, deviation: Deviation = lambda _: None
) -> tuple[list[Compared], list[str]]:
    """Every result that both reports have, in the order of the first.

    And the metrics that only one of them has, such as COMET, which are not compared. Of `external`
    only whether it is empty is compared.
    """
    here, there = _by_key(first), _by_key(second)
    measured = [{*records.metrics.metric} - _OF_TRANSLATIONS for records in (first, second)]
    common, left_out = measured[0] & measured[1], measured[0] ^ measured[1]
    seeds: dict[tuple[Any, ...], list[tuple[Result, Result]]] = {}
    for key in (key for key in here if key in there):
        seeds.setdefault((*key[:2], key[3]), []).append((here[key], there[key]))
    results = []
    for pairs in seeds.values():
        ours, theirs = ([pair[side]["bleu"][0] for pair in pairs] for side in (0, 1))
        difference = fmean(theirs) - fmean(ours)
        noise = seeds_noise(ours, theirs) if len(pairs) > 1 else None
        if noise is None and pairs[0][0]["hypotheses_sha256"] != pairs[0][1]["hypotheses_sha256"]:
            known = deviation(pairs[0][0]["references_sha256"])
            noise = None if known is None else pairs_noise(known)
        for one, other in pairs:
            names = [
                name
                for name in dict.fromkeys((*one, *other))
                if one.get(name) != other.get(name)
                and name not in _NOT_COMPARED
                and (name in RUNS or name.partition(" (")[0] in common)
            ]
            if bool(one["external"]) != bool(other["external"]):
                names.append("external")
            results.append(Compared(one, other, tuple(names), difference, noise))
    return results, sorted(left_out)


def seeds_noise(first: Sequence[float], second: Sequence[float]) -> float:
    """The largest difference of two means, over as many seeds each, that is noise at 95 %.

    Of Student's t for two samples with one variance (that of two runs of the same experiment):
    t(0.975; 2n - 2) * sqrt((s1^2 + s2^2) / n).
    """
    n = len(first)
    from scipy.special import stdtrit  # scipy.stats would take half a second to load

    return float(stdtrit(2 * n - 2, 0.975)) * sqrt((variance(first) + variance(second)) / n)


def pairs_noise(deviation: float) -> float:
    """The difference that 95 % of pairs of runs stay below, by the deviation of one over seeds."""
    return 1.96 * deviation * sqrt(2)


def deviations(root: Path = Path()) -> dict[str, float]:
    """The standard deviation of BLEU over seeds, by the SHA-256 of the references.

    The median over all systems which have several seeds in reports/ and its folders, so that no
    unstable one decides: of (n - 1) s^2 / m, where m is the median of chi-squared with n - 1
    degrees of freedom, the root.
    """
    from scipy.special import chdtri  # scipy.stats would take half a second to load

    variances = defaultdict[str, list[float]](list)
    for path in sorted((root / REPORTS).rglob(RESULTS.name)):
        with suppress(UserError):
            records = stored(path)
            bleu = records.metrics.query("metric == 'bleu' and group == ''")
            scored = bleu.merge(trained(records.runs)[[*KEY, "references_sha256"]], on=KEY)
            for (references, *_), scores in scored.groupby(["references_sha256", *PLACE]).value:
                if (freedom := len(scores) - 1) > 0:
                    ratio = freedom / float(chdtri(freedom, 0.5))
                    variances[references].append(ratio * scores.var())
    return {references: sqrt(median(each)) for references, each in variances.items()}


def _by_key(records: Records) -> dict[tuple[Any, ...], dict[str, Any]]:
    """The results by system, corpus, seed and test set, with None for what is missing."""
    cells = records.runs.astype(object).where(records.runs.notna(), None)
    found = {tuple(row[name] for name in KEY): row for row in cells.to_dict("records")}
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
