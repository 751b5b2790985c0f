"""The toy corpora with which Transformers are taught: the copy task, and one sentence to translate.

The copy task is the one of The Annotated Transformer: ten symbols out of ten, of which the first is
always 1, are copied. The sentence is a corpus of its own. A second corpus has it among 54 sentences
that a model can only tell apart by reading the source.
"""

from collections.abc import Iterator
from itertools import product
from random import Random

# The number of sentences per split. The training of The Annotated Transformer (2022) sees 20 epochs
# of 20 batches of 80 sentences, which is 32,000.
COPY_SPLITS = {"train": 32_000, "valid": 200, "test": 50}
_SYMBOLS = [str(number) for number in range(1, 11)]
_FIRST_SYMBOL = "1"
_SENTENCE_LENGTH = 10
# With this seed, no sentence of a split is in another split.
_SEED = 1729

# "P" pads the source, as in the notebook from which the sentence is taken.
_SENTENCE = {"de": "ich mochte ein bier P", "en": "i want a beer"}
# The 54 sentences begin with this word.
_FIRST_WORD = {"de": "ich", "en": "i"}
# For each further position, the German words that can stand there, with their translations. At the
# last position, a word may be missing.
_WORDS = (
    {"mochte": "want", "sah": "saw", "trank": "drank"},
    {"ein": "a", "kein": "no"},
    {"bier": "beer", "wasser": "water", "wein": "wine"},
    {"": "", "jetzt": "now", "heute": "today"},
)


def copy_task(split: str) -> list[str]:
    """Return random sentences such as `1 4 10`, for the copy task of The Annotated Transformer.

    A model learns to copy them, so they are both source and target.

    Args:
        split: `train`, `valid` or `test`.
    """
    random = Random(_SEED)
    lines_by_split = {}
    # One random generator draws all splits. In another order, all sentences would change.
    for name in ("test", "valid", "train"):
        lines = []
        for _ in range(COPY_SPLITS[name]):
            symbols = random.choices(_SYMBOLS, k=_SENTENCE_LENGTH - 1)
            lines.append(" ".join([_FIRST_SYMBOL, *symbols]))
        lines_by_split[name] = lines
    return lines_by_split[split]


def toy_sentences(text: str, language: str) -> Iterator[str]:
    """Yield the sentences of a toy corpus in one language.

    Sentence n of one language is the translation of sentence n of the other.

    Args:
        text: "sentence" for a corpus of one sentence pair; "sentences" for all 54 combinations of a
            few words, such as `ich trank kein wasser heute`.
        language: "de" or "en".
    """
    if text == "sentence":
        yield _SENTENCE[language]
        return
    words_by_position = []
    for german_to_english in _WORDS:
        if language == "de":
            words_by_position.append(list(german_to_english.keys()))
        else:
            words_by_position.append(list(german_to_english.values()))
    for words_of_sentence in product(*words_by_position):
        sentence = " ".join([_FIRST_WORD[language], *words_of_sentence])
        # The last word may be empty. The sentence then ends in a space, which is removed.
        yield sentence.rstrip()
