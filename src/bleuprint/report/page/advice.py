"""Advice on what to change next: rules on the outputs, each with its evidence.

A rule examines one training or score and returns its evidence as text, or None. The thresholds are
rules of thumb: a result beyond them is worth a look; a change is not certain to help.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from bleuprint.report.system_results import (
    SIGNIFICANT,
    Difference,
    SystemResult,
    system_results,
)
from bleuprint.runtime.html import counted
from bleuprint.training.history import Validation

# A validation loss that fell by 1 % in the last quarter of the training is still falling.
FALLING, QUARTER = 0.01, 0.25
# One that ends 2 % above its minimum has risen: less is noise between two validations.
RISEN = 0.02
# A length ratio this far from 1 lowers BLEU: the brevity penalty is exp(1 - 1 / ratio).
LENGTH = 0.03
# Fewer lines or words give no reliable mean.
LINES, WORDS = 30, 50
# Long sentences, or rare words, score below this share of short or frequent ones.
WORSE = 0.75
# Words that occur fewer than ten times in the training text.
RARE = ("0", "1", "2-4", "5-9")
FREQUENT = ("100+",)
LONG = ("31-40", "41-50", "over 50")
SHORT = ("1-10", "11-20")

# An entry of scores.json's by_length or by_count.
Bucket = Mapping[str, Any]


@dataclass(frozen=True)
class Advice:
    """What to try, why, and the evidence, one text per training or score."""

    title: str
    why: str
    evidence: tuple[str, ...]


def still_falling(validations: Sequence[Validation]) -> str | None:
    """The loss of the last validation is the lowest, and well below that a quarter before."""
    if len(validations) < 2:
        return None
    last = validations[-1]
    start = (1 - QUARTER) * last.update
    before = max(
        (validation for validation in validations[:-1] if validation.update <= start),
        key=lambda validation: validation.update,
        default=validations[0],
    )
    if (
        last.loss > min(validation.loss for validation in validations)
        or last.loss > (1 - FALLING) * before.loss
    ):
        return None
    return (
        f"validation loss fell from {before.loss:.3f} (update {before.update:,}) "
        f"to {last.loss:.3f} at the end (update {last.update:,})"
    )


def turned(validations: Sequence[Validation]) -> str | None:
    """The lowest loss came before the end, and the last is well above it."""
    if not validations:
        return None
    best, last = min(validations, key=lambda validation: validation.loss), validations[-1]
    if last.loss < (1 + RISEN) * best.loss:
        return None
    return (
        f"validation loss was lowest at update {best.update:,} ({best.loss:.3f}) "
        f"and ended at {last.loss:.3f} (update {last.update:,})"
    )


def length_off(ratio: float) -> str | None:
    """Translations are longer or shorter than their references."""
    if abs(ratio - 1) < LENGTH:
        return None
    return f"{abs(ratio - 1):.1%} too {'long' if ratio > 1 else 'short'}"


def too_few(lines: int) -> str | None:
    """A test set that is too small for reliable scores."""
    return counted(lines, "sentence") if lines < LINES else None


def long_worse(buckets: Sequence[Bucket]) -> str | None:
    """Long sentences score much lower than short ones; means of BLEU are weighted by lines."""
    chosen = [[b for b in buckets if b["tokens"] in names] for names in (SHORT, LONG)]
    if any(sum(b["lines"] for b in side) < LINES for side in chosen):
        return None
    short, long = (
        np.average([b["bleu"] for b in side], weights=[b["lines"] for b in side]) for side in chosen
    )
    if long >= WORSE * short:
        return None
    return f"BLEU {long:.1f} from 31 tokens on, {short:.1f} up to 20"


def rare_worse(buckets: Sequence[Bucket] | None) -> str | None:
    """Rare words are translated right much less often than frequent ones."""
    chosen = [[b for b in buckets or () if b["count"] in names] for names in (RARE, FREQUENT)]
    words = [sum(b["words"] for b in side) for side in chosen]
    if min(words) < WORDS:
        return None
    rare, frequent = (
        sum(b["found"] for b in side) / total for side, total in zip(chosen, words, strict=True)
    )
    if rare >= WORSE * frequent:
        return None
    return f"{rare:.0%} of the rare words are found, {frequent:.0%} of the frequent ones"


def undecided(difference: Difference | None) -> str | None:
    """A difference that is not significant."""
    if difference is None or difference.significant:
        return None
    return f"{difference.bleu:+.1f} BLEU against {difference.baseline}, p={difference.p:.3f}"


def alike(result: SystemResult, baseline: SystemResult) -> str | None:
    """The translations are the baseline's, byte for byte, with every seed."""
    ours, theirs = (
        each.seeds[["hypotheses_sha256", "bleu"]].to_numpy() for each in (result, baseline)
    )
    same = result.difference is not None and np.array_equal(ours, theirs)
    return f"the same translations as {baseline.system}" if same else None


def on_records(records: pd.DataFrame) -> list[Advice]:
    """Advice from the scores."""
    named = [(f"{r.system}, {r.corpus}, {r.test}", r) for r in system_results(records)]
    baselines = {(r.corpus, r.test): r for _, r in named if r.difference is None}
    same = {name: alike(r, baselines[r.corpus, r.test]) for name, r in named}
    differing = [(name, r) for name, r in named if same[name] is None]
    seeds = records.seed.nunique()
    first = [(f"{name}, seed {r.first.seed}" if seeds > 1 else name, r.first) for name, r in named]
    engines = records.groupby(["engine", "precision"], sort=False).system.unique()
    users = [f"{' with '.join(key)}: {', '.join(systems)}" for key, systems in engines.items()]
    return _with_evidence(
        Advice(
            "Test on more sentences",
            f"Fewer than {LINES} say little: no test of significance is to be trusted with them.",
            _evidence((name, too_few(r.first.lines)) for name, r in named),
        ),
        Advice(
            "Check why systems translate alike",
            "Their translations are the same byte for byte. Are the settings in which they differ "
            "used at all, and did the right model translate?",
            _evidence(same.items()),
        ),
        Advice(
            "Get more evidence where systems do not differ significantly",
            f"p of {SIGNIFICANT} or more: the difference may be chance. Train with more seeds "
            f"(now {seeds}), or test on more sentences; until then, count them as equal.",
            _evidence((name, undecided(r.difference)) for name, r in differing),
        ),
        Advice(
            "Train with several seeds",
            "With one, a difference compares two trainings, not yet two systems: another seed may "
            "change BLEU by several tenths. Set seeds: [1, 2, 3].",
            ("every system was trained once",) if seeds == 1 else (),
        ),
        Advice(
            "Train with more seeds",
            "The t-test over two has little power: it seldom detects a true difference, and two "
            "differences that are equal by chance make p small. Set seeds: [1, 2, 3] or more.",
            ("every system was trained twice",) if seeds == 2 else (),
        ),
        Advice(
            "Correct the length of the translations",
            "BLEU penalizes translations that are too short, and surplus words are wrong words. "
            "Try another decode.length_penalty.alpha (higher: longer), and look at what the "
            "filters drop.",
            _evidence((name, length_off(record.length_ratio)) for name, record in first),
        ),
        Advice(
            "Look at long sentences",
            "They score much lower than short ones. Does the filter drop long training pairs "
            "(filter.length)? A larger model or longer training may help.",
            _evidence((name, long_worse(record.by_length)) for name, record in first),
        ),
        Advice(
            "Help rare words",
            "Words with fewer than ten occurrences in the training text are missed often. "
            "Try more text, fewer BPE merges, or train.bpe_dropout.",
            _evidence((name, rare_worse(record.by_count)) for name, record in first),
        ),
        Advice(
            "Translate all systems alike",
            "They used different engines or precisions, which may cause a part of a "
            "difference. Set decode.engine and decode.precision to the same.",
            tuple(users) if len(users) > 1 else (),
        ),
    )


def on_curves(validations: Sequence[tuple[str, Sequence[Validation]]], longer: str) -> list[Advice]:
    """Advice from the validations of trainings, each with a name.

    `longer` names the settings that limit the length of the trainings.
    """
    return _with_evidence(
        Advice(
            "Train longer",
            f"Validation loss was still falling when training ended: raise {longer}.",
            _evidence((name, still_falling(curve)) for name, curve in validations),
        ),
        Advice(
            "Stop earlier, or regularize",
            "Validation loss rose again before the end: the model overfits its training "
            "text. Set train.patience, average the best checkpoints, raise dropout, or add text.",
            _evidence((name, turned(curve)) for name, curve in validations),
        ),
    )


def _with_evidence(*advice: Advice) -> list[Advice]:
    return [each for each in advice if each.evidence]


def _evidence(results: Iterable[tuple[str, str | None]]) -> tuple[str, ...]:
    return tuple(f"{name}: {text}" for name, text in results if text is not None)
