"""The toy corpora of the Transformer's courses: the copy task, and a sentence.

The copy task is that of The Annotated Transformer: ten symbols out of ten, the first always 1. The
sentence comes alone, and as one of 54 that cannot be told apart without reading the source.
"""

from collections.abc import Iterator
from functools import cache
from itertools import product
from random import Random

# Pairs of the copy task: the training of 2022 sees 20 epochs of 20 batches of 80 sentences.
COPY_SPLITS = {"train": 32_000, "valid": 200, "test": 50}
_SYMBOLS = [str(number) for number in range(1, 11)]
_LENGTH = 10
_SEED = 1729

# "P" pads the source, as the notebook writes it.
_SENTENCE = {"de": "ich mochte ein bier P", "en": "i want a beer"}
# Its last three words and what may stand for each, and what may follow, German to English.
_WORDS = (
    {"mochte": "want", "sah": "saw", "trank": "drank"},
    {"ein": "a", "kein": "no"},
    {"bier": "beer", "wasser": "water", "wein": "wine"},
    {"": "", "jetzt": "now", "heute": "today"},
)


def copy_task(split: str) -> Iterator[str]:
    """The sentences of a split, equal on both sides; none of them is in another split."""
    return iter(_copy_task()[split])


def toy_sentence(language: str) -> Iterator[str]:
    """The one sentence, in German (de) or English (en)."""
    return iter([_SENTENCE[language]])


def toy_sentences(language: str) -> Iterator[str]:
    """It and all others of its words, in the same order in both languages."""
    for words in product(*(of.items() for of in _WORDS)):
        german, english = zip(*words, strict=True)
        yield " ".join({"de": ("ich", *german), "en": ("i", *english)}[language]).rstrip()


@cache
def _copy_task() -> dict[str, list[str]]:
    random = Random(_SEED)
    # with this seed, no line of a split is in another one
    return {
        split: [_drawn(random) for _ in range(size)]
        for split, size in reversed(COPY_SPLITS.items())
    }


def _drawn(random: Random) -> str:
    return " ".join([_SYMBOLS[0], *random.choices(_SYMBOLS, k=_LENGTH - 1)])
