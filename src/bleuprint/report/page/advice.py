"""Advice on what to change next: rules on the outputs, each with its evidence.

A rule examines one training or score and returns its evidence as text, or None. The thresholds are
rules of thumb: a result beyond them is worth a look; a change is not certain to help.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from bleuprint.report.page.history import Validation
from bleuprint.report.records import Record
from bleuprint.report.system_results import SIGNIFICANT, Difference, Standing
from bleuprint.runtime.html import counted
from bleuprint.scoring.breakdown import ByCount, ByLength

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
FREQUENT = "100+"
LONG = ("31-40", "41-50", "over 50")
SHORT = ("1-10", "11-20")


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


def long_worse(buckets: Sequence[ByLength]) -> str | None:
    """Long sentences score much lower than short ones; means of BLEU are weighted by lines."""
    short, long = (_mean_bleu(buckets, names) for names in (SHORT, LONG))
    if short is None or long is None or long >= WORSE * short:
        return None
    return f"BLEU {long:.1f} from 31 tokens on, {short:.1f} up to 20"


def rare_worse(buckets: Sequence[ByCount] | None) -> str | None:
    """Rare words are translated right much less often than frequent ones."""
    rare, frequent = (_share(buckets or (), names) for names in (RARE, (FREQUENT,)))
    if rare is None or frequent is None or rare >= WORSE * frequent:
        return None
    return f"{rare:.0%} of the rare words are found, {frequent:.0%} of the frequent ones"


def undecided(difference: Difference | None) -> str | None:
    """A difference that is not significant."""
    if difference is None or difference.significant:
        return None
    return f"{difference.bleu:+.1f} BLEU against {difference.baseline}, p={difference.p:.3f}"


def alike(standing: Standing, baseline: Standing) -> str | None:
    """The translations are the baseline's, byte for byte, with every seed."""
    pairs = zip(standing.records, baseline.records, strict=True)
    if standing.difference is None or any(
        (a.data.hypotheses, a.bleu.score) != (b.data.hypotheses, b.bleu.score) for a, b in pairs
    ):
        return None
    return f"the same translations as {standing.difference.baseline}"


# Title, reason and rule of the advice on the record of a system's first seed.
_OF_RECORDS: tuple[tuple[str, str, Callable[[Record], str | None]], ...] = (
    (
        "Correct the length of the translations",
        "BLEU penalizes translations that are too short, and surplus words are wrong words. Try "
        "another decode.length_penalty.alpha (higher: longer), and look at what the filters drop.",
        lambda record: length_off(record.length.ratio),
    ),
    (
        "Look at long sentences",
        "They score much lower than short ones. Does the filter drop long training pairs "
        "(filter.length)? A larger model or longer training may help.",
        lambda record: long_worse(record.by_length),
    ),
    (
        "Help rare words",
        "Words with fewer than ten occurrences in the training text are missed often. "
        "Try more text, fewer BPE merges, or train.bpe_dropout.",
        lambda record: rare_worse(record.by_count),
    ),
)


def on_records(standings: Sequence[Standing]) -> Iterator[Advice]:
    """Advice from the scores."""
    named = [(f"{s.system}, {s.corpus}, {s.test}", s) for s in standings]
    seeds = len(standings[0].records)
    baselines = {(s.corpus, s.test): s for s in standings if s.difference is None}
    same = {where: alike(s, baselines[s.corpus, s.test]) for where, s in named}
    few = _evidence((where, too_few(s.records[0].lines)) for where, s in named)
    if few:
        yield Advice(
            "Test on more sentences",
            f"Fewer than {LINES} say little: no test of significance is to be trusted with them.",
            few,
        )
    if copies := _evidence(same.items()):
        yield Advice(
            "Check why systems translate alike",
            "Their translations are the same byte for byte. Is what differs in their settings "
            "used at all, and is it the right model that translated?",
            copies,
        )
    unsure = _evidence(
        (where, undecided(s.difference)) for where, s in named if same[where] is None
    )
    if unsure:
        yield Advice(
            "Get more evidence where systems do not differ significantly",
            f"p of {SIGNIFICANT} or more: the difference may be chance. Train with more seeds "
            f"(now {seeds}), or test on more sentences; until then, count them as equal.",
            unsure,
        )
    if seeds == 1:
        yield Advice(
            "Train with several seeds",
            "With one, a difference compares two trainings, not yet two systems: another seed may "
            "change BLEU by several tenths. Set seeds: [1, 2, 3].",
            ("every system was trained once",),
        )
    elif seeds == 2:
        yield Advice(
            "Train with more seeds",
            "The t-test over two has little power: it seldom detects a true difference, and two "
            "differences that are equal by chance make p small. Set seeds: [1, 2, 3] or more.",
            ("every system was trained twice",),
        )
    for title, why, rule in _OF_RECORDS:
        if evidence := _evidence(_first_seeds(named, rule)):
            yield Advice(title, why, evidence)
    engines = _engines(standings)
    if len(engines) > 1:
        yield Advice(
            "Translate all systems alike",
            "They used different engines or precisions, which may cause a part of a "
            "difference. Set decode.engine and decode.precision to the same.",
            tuple(engines),
        )


def on_histories(
    validations: Sequence[tuple[str, Sequence[Validation]]], longer: str
) -> Iterator[Advice]:
    """Advice from the validations of trainings, each with a name.

    `longer` names the settings that limit the length of the trainings.
    """
    falling = _evidence((where, still_falling(curve)) for where, curve in validations)
    if falling:
        yield Advice(
            "Train longer",
            f"Validation loss was still falling when training ended: raise {longer}.",
            falling,
        )
    overfitted = _evidence((where, turned(curve)) for where, curve in validations)
    if overfitted:
        yield Advice(
            "Stop earlier, or regularize",
            "Validation loss rose again before the end: the model overfits its training "
            "text. Set train.patience, average the best checkpoints, raise dropout, or add text.",
            overfitted,
        )


def _evidence(results: Iterable[tuple[str, str | None]]) -> tuple[str, ...]:
    return tuple(f"{where}: {text}" for where, text in results if text is not None)


def _first_seeds(
    named: Sequence[tuple[str, Standing]], rule: Callable[[Record], str | None]
) -> Iterator[tuple[str, str | None]]:
    """The rule's evidence for each system's first seed."""
    for where, standing in named:
        seed = f", seed {standing.records[0].seed}" if len(standing.records) > 1 else ""
        yield f"{where}{seed}", rule(standing.records[0])


def _engines(standings: Sequence[Standing]) -> list[str]:
    """Each engine with its precision, and the systems that used it."""
    systems: dict[str, dict[str, None]] = {}
    for record in (record for standing in standings for record in standing.records):
        name = f"{record.decode['engine']} with {record.decode['precision']}"
        systems.setdefault(name, {})[record.system] = None
    return [f"{name}: {', '.join(users)}" for name, users in systems.items()]


def _mean_bleu(buckets: Sequence[ByLength], names: Sequence[str]) -> float | None:
    chosen = [bucket for bucket in buckets if bucket.tokens in names]
    lines = sum(bucket.lines for bucket in chosen)
    return sum(bucket.lines * bucket.bleu for bucket in chosen) / lines if lines >= LINES else None


def _share(buckets: Sequence[ByCount], names: Sequence[str]) -> float | None:
    chosen = [bucket for bucket in buckets if bucket.count in names]
    words = sum(bucket.words for bucket in chosen)
    return sum(bucket.found for bucket in chosen) / words if words >= WORDS else None
