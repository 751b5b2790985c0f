"""The sentences of the phrasebook, split into train, valid and test, and train with faults."""

from collections.abc import Iterator
from functools import cache

from tools.phrasebook import english, french, german
from tools.phrasebook.grammar import Writer
from tools.phrasebook.noise import Line, Triple, add_faults

LANGUAGES = ("en", "de", "fr")
# The number of sentences of each split.
SPLITS = {"train": 14_000, "valid": 500, "test": 500}
SEED = 1729
# English sentences have 3 words or more, and no more than this.
MAX_ENGLISH_WORDS = 22
# The name of the training text with faults.
NOISY = "noisy"


def generate(split: str) -> tuple[Triple, ...]:
    """Return the sentences of a split, each in English, German and French."""
    return _generate_splits()[split]


@cache
def noisy_lines() -> tuple[Line, ...]:
    """Return the training text with faults, line by line."""
    return add_faults(generate("train"), generate("test"))


def sentences(split: str, language: str) -> Iterator[str]:
    """Yield the lines of a text in one language; lines of equal number are parallel.

    Args:
        split: The name of a split, or `NOISY`.
        language: A language of `LANGUAGES`.
    """
    column = LANGUAGES.index(language)
    if split == NOISY:
        for line in noisy_lines():
            yield line.text[column]
    else:
        for triple in generate(split):
            yield triple[column]


@cache
def _generate_splits() -> dict[str, tuple[Triple, ...]]:
    """Return the sentences of all splits, drawn from one random sequence.

    No sentence of a language occurs twice, so that neither valid nor test repeats a training
    sentence.
    """
    writer = Writer(SEED)
    # Pairs of a language and a sentence.
    used_sentences = set[tuple[str, str]]()
    triples = list[Triple]()
    total = sum(SPLITS.values())
    while len(triples) < total:
        tree = writer.sentence()
        triple = (english.sentence(tree), german.sentence(tree), french.sentence(tree))
        word_count = triple[0].count(" ") + 1
        new_sentences = set(zip(LANGUAGES, triple, strict=True))
        if 3 <= word_count <= MAX_ENGLISH_WORDS and used_sentences.isdisjoint(new_sentences):
            triples.append(triple)
            used_sentences |= new_sentences
    # The sentences for valid and test are spread evenly over the sequence: of each group, the first
    # one is for valid, the second one for test, and the others for training.
    group_size = total // SPLITS["valid"]
    valid = tuple(triples[0::group_size])
    test = tuple(triples[1::group_size])
    train = list[Triple]()
    for number, triple in enumerate(triples):
        if number % group_size > 1:
            train.append(triple)
    return {"train": tuple(train), "valid": valid, "test": test}
