"""References that BLEU's default tokenizer cannot split into words."""

from collections.abc import Sequence

import regex

from bleuprint.scoring.bleu import is_scored_by_13a
from bleuprint.text.unicode import replace_white_space

# Letters that a line has in the mean, at least: single words have no spaces in any language.
_LETTERS = 20
# Scripts without spaces between words, by Unicode's rules of line breaks (UAX #14): SA of Southeast
# Asia, AK and AS of Java and Bali, ID and CJ of East Asia; and Tibetan.
_UNSPACED = regex.compile(r"[\p{lb=SA}\p{lb=AK}\p{lb=AS}\p{lb=ID}\p{lb=CJ}\p{Tibetan}]")
# Spaces for each other character, fewer than which are few: in those scripts, and in others. The
# Declaration of Human Rights has 0.01 in Yi, 0.06 in Shan, 0.08 in Burmese; 0.06 in Kalaallisut,
# 0.09 in Tamil, 0.2 in English, and none in Amharic, where a sign separates words.
_FEW_SPACES = {True: 0.08, False: 0.03}


def lacks_words(references: Sequence[str], language: str) -> bool:
    """Whether 13a scores references in a language, which are written without spaces."""
    if not is_scored_by_13a(language):
        return False
    words = [replace_white_space(line).split() for line in references]
    text = "".join(word for line in words for word in line)
    if len(text) < _LETTERS * max(1, len(references)):
        return False
    spaces = sum(map(len, words)) - len(words)
    unspaced = len(_UNSPACED.findall(text)) > len(text) / 2
    return spaces < _FEW_SPACES[unspaced] * len(text)
