"""What one would change next: rules on the outputs, each with the figures it goes by.

A rule looks at one training or score and gives its evidence, or None. The thresholds are rules of
thumb: large enough that what passes them is worth a look, not a promise that a change will help.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from bleuprint.report.page.history import Validation
from bleuprint.report.records import Record
from bleuprint.report.system_results import SIGNIFICANT, Difference, Standing
from bleuprint.runtime.html import counted
from bleuprint.scoring.breakdown import ByCount, ByLength

# A validation loss that the last quarter of the training took down by 1 % is still falling.
FALLING, QUARTER = 0.01, 0.25
# One that ends 2 % above its lowest has turned: less is within what two validations differ by.
RISEN = 0.02
# A length ratio this far off 1 costs BLEU by itself: its brevity penalty is exp(1 - 1 / ratio).
LENGTH = 0.03
# BLEU of a few lines says little.
LINES, WORDS = 30, 50
# Long sentences, or rare words, that do less than this share as well as short or frequent ones.
WORSE = 0.75
# Words that stand fewer than ten times in the training text.
RARE = ("0", "1", "2-4", "5-9")
FREQUENT = "100+"
LONG = ("31-40", "41-50", "over 50")
SHORT = ("1-10", "11-20")


@dataclass(frozen=True)
class Advice:
    """What to try, why, and the figures that say so, one for each training or score."""

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
        (one for one in validations[:-1] if one.update <= start),
        key=lambda one: one.update,
        default=validations[0],
    )
    if last.loss > min(one.loss for one in validations) or last.loss > (1 - FALLING) * before.loss:
        return None
    return (
        f"validation loss fell from {before.loss:.3f} (update {before.update:,}) "
        f"to {last.loss:.3f} at the end (update {last.update:,})"
    )


def turned(validations: Sequence[Validation]) -> str | None:
    """The lowest loss came before the end, and the last is well above it."""
    if not validations:
        return None
    best, last = min(validations, key=lambda one: one.loss), validations[-1]
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
    """A test set of which no score says much."""
    return counted(lines, "sentence") if lines < LINES else None


def long_worse(buckets: Sequence[ByLength]) -> str | None:
    """Long sentences do much worse than short ones; BLEU is weighed by lines."""
    short, long = (_mean_bleu(buckets, names) for names in (SHORT, LONG))
    if short is None or long is None or long >= WORSE * short:
        return None
    return f"BLEU {long:.1f} from 31 tokens on, {short:.1f} up to 20"


def rare_worse(buckets: Sequence[ByCount] | None) -> str | None:
    """Rare words are found much less often than frequent ones."""
    rare, frequent = (_share(buckets or (), names) for names in (RARE, (FREQUENT,)))
    if rare is None or frequent is None or rare >= WORSE * frequent:
        return None
    return f"{rare:.0%} of the rare words are found, {frequent:.0%} of the frequent ones"


def undecided(difference: Difference | None) -> str | None:
    """A difference that may well be chance."""
    if difference is None or difference.significant:
        return None
    return f"{difference.bleu:+.1f} BLEU against {difference.baseline}, p={difference.p:.3f}"


def alike(one: Standing, baseline: Standing) -> str | None:
    """The translations are the baseline's, byte for byte, with every seed."""
    pairs = zip(one.records, baseline.records, strict=True)
    if one.difference is None or any(
        (a.data.hypotheses, a.bleu.score) != (b.data.hypotheses, b.bleu.score) for a, b in pairs
    ):
        return None
    return f"the same translations as {one.difference.baseline}"


# What the record of a system's first seed may lead to, and the rule that looks for evidence.
_OF_RECORDS: tuple[tuple[str, str, Callable[[Record], str | None]], ...] = (
    (
        "Correct the length of the translations",
        "BLEU punishes what is too short, and words too many are wrong words. Try another "
        "decode.length_penalty.alpha (higher: longer), and look at what the filters drop.",
        lambda record: length_off(record.length.ratio),
    ),
    (
        "Look at long sentences",
        "They do much worse than short ones. Does the filter drop long training pairs "
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
    """Advice that the scores alone give."""
    of_each = [(f"{one.system}, {one.corpus}, {one.test}", one) for one in standings]
    seeds = len(standings[0].records)
    baselines = {(one.corpus, one.test): one for one in standings if one.difference is None}
    same = {where: alike(one, baselines[one.corpus, one.test]) for where, one in of_each}
    few = _evidence((where, too_few(one.records[0].lines)) for where, one in of_each)
    if few:
        yield Advice(
            "Test on more sentences",
            f"Fewer than {LINES} say little: no test of significance is to be trusted with them.",
            few,
        )
    if copies := _evidence(same.items()):
        yield Advice(
            "Look why systems translate alike",
            "Their translations are the same byte for byte. Is what differs in their settings "
            "used at all, and is it the right model that translated?",
            copies,
        )
    unsure = _evidence(
        (where, undecided(one.difference)) for where, one in of_each if same[where] is None
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
            "With one, a difference says something of these two trainings, not yet of the two "
            "systems: another seed may change BLEU by several tenths. Set seeds: [1, 2, 3].",
            ("every system was trained once",),
        )
    elif seeds == 2:
        yield Advice(
            "Train with more seeds",
            "The t-test over two has little to go by: it seldom finds a true difference, and two "
            "differences that are close by luck make p small. Set seeds: [1, 2, 3] or more.",
            ("every system was trained twice",),
        )
    for title, why, rule in _OF_RECORDS:
        if evidence := _evidence(_first_seeds(of_each, rule)):
            yield Advice(title, why, evidence)
    engines = _engines(standings)
    if len(engines) > 1:
        yield Advice(
            "Translate all systems alike",
            "They used different engines or precisions, so that a part of a difference may come "
            "from there. Set decode.engine and decode.precision to the same.",
            tuple(engines),
        )


def on_histories(
    validations: Sequence[tuple[str, Sequence[Validation]]], longer: str
) -> Iterator[Advice]:
    """Advice that the validations of trainings give, each with a name.

    `longer` names the settings that say how long the trainings are.
    """
    falling = _evidence((where, still_falling(of)) for where, of in validations)
    if falling:
        yield Advice(
            "Train longer",
            f"Validation loss was still falling when training ended: raise {longer}.",
            falling,
        )
    overfitted = _evidence((where, turned(of)) for where, of in validations)
    if overfitted:
        yield Advice(
            "Stop earlier, or regularise",
            "Validation loss rose again before the end: the model learns its training text by "
            "heart. Set train.patience, average the best checkpoints, raise dropout, or add text.",
            overfitted,
        )


def _evidence(found: Iterable[tuple[str, str | None]]) -> tuple[str, ...]:
    return tuple(f"{where}: {text}" for where, text in found if text is not None)


def _first_seeds(
    of_each: Sequence[tuple[str, Standing]], rule: Callable[[Record], str | None]
) -> Iterator[tuple[str, str | None]]:
    """What the rule says of each system's first seed."""
    for where, one in of_each:
        seed = f", seed {one.records[0].seed}" if len(one.records) > 1 else ""
        yield f"{where}{seed}", rule(one.records[0])


def _engines(standings: Sequence[Standing]) -> list[str]:
    """Each engine with its precision, and the systems that used it."""
    systems: dict[str, dict[str, None]] = {}
    for record in (record for one in standings for record in one.records):
        name = f"{record.decode['engine']} with {record.decode['precision']}"
        systems.setdefault(name, {})[record.system] = None
    return [f"{name}: {', '.join(of)}" for name, of in systems.items()]


def _mean_bleu(buckets: Sequence[ByLength], names: Sequence[str]) -> float | None:
    chosen = [one for one in buckets if one.tokens in names]
    lines = sum(one.lines for one in chosen)
    return sum(one.lines * one.bleu for one in chosen) / lines if lines >= LINES else None


def _share(buckets: Sequence[ByCount], names: Sequence[str]) -> float | None:
    chosen = [one for one in buckets if one.count in names]
    words = sum(one.words for one in chosen)
    return sum(one.found for one in chosen) / words if words >= WORDS else None
