"""The toy corpora of the Transformer's courses: the copy task, and a sentence.

The copy task is that of The Annotated Transformer: ten symbols out of ten, the first always 1. The
sentence comes alone, and as one of 54 that cannot be told apart without reading the source.
"""

from collections.abc import Iterator
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


def copy_task(split: str) -> list[str]:
    """The sentences of a split, equal on both sides; none of them is in another split."""
    random, lines = Random(_SEED), dict[str, list[str]]()
    # with this seed, no line of a split is in another one
    for name, size in reversed(COPY_SPLITS.items()):
        symbols = (random.choices(_SYMBOLS, k=_LENGTH - 1) for _ in range(size))
        lines[name] = [" ".join([_SYMBOLS[0], *drawn]) for drawn in symbols]
    return lines[split]


def toy_sentences(text: str, language: str) -> Iterator[str]:
    """The one `sentence`, in German (de) or English (en), or the `sentences` of all its words."""
    if text == "sentence":
        yield _SENTENCE[language]
        return
    for words in product(*(of.items() for of in _WORDS)):
        german, english = zip(*words, strict=True)
        yield " ".join({"de": ("ich", *german), "en": ("i", *english)}[language]).rstrip()
