"""References that BLEU's default tokenizer cannot split into words."""

from collections.abc import Sequence

import regex

from bleuprint.scoring.bleu import is_scored_by_13a
from bleuprint.text.unicode import replace_white_space

# The least number of letters per line, on average: single words have no spaces in any language.
_MIN_LETTERS = 20
# Scripts without spaces between words, by Unicode's rules of line breaks (UAX #14): SA of Southeast
# Asia, AK and AS of Java and Bali, ID and CJ of East Asia; and Tibetan.
_UNSPACED = regex.compile(r"[\p{lb=SA}\p{lb=AK}\p{lb=AS}\p{lb=ID}\p{lb=CJ}\p{Tibetan}]")
# With fewer spaces per other character, text is taken to be written without spaces: in those
# scripts, and in others. The Declaration of Human Rights has 0.01 in Yi, 0.06 in Shan, 0.08 in
# Burmese; 0.06 in Kalaallisut, 0.09 in Tamil, 0.2 in English, and none in Amharic, where a sign
# separates words.
_MIN_SPACES_UNSPACED_SCRIPT = 0.08
_MIN_SPACES = 0.03


def lacks_words(references: Sequence[str], language: str) -> bool:
    """Return whether BLEU's tokenizer 13a scores references that are written without spaces.

    Args:
        references: The reference lines.
        language: Their language; False for languages that BLEU splits by another tokenizer.
    """
    if not is_scored_by_13a(language):
        return False
    spaces = 0
    letters = []
    for line in references:
        words = replace_white_space(line).split()
        letters += words
        spaces += len(words) - 1
    text = "".join(letters)
    if len(text) < _MIN_LETTERS * max(1, len(references)):
        return False
    is_unspaced_script = len(_UNSPACED.findall(text)) > len(text) / 2
    min_spaces = _MIN_SPACES_UNSPACED_SCRIPT if is_unspaced_script else _MIN_SPACES
    return spaces < min_spaces * len(text)
