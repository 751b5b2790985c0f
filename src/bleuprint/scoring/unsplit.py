"""Finds references without spaces, which BLEU's default tokenizer cannot split into words."""

from collections.abc import Sequence

import regex

from bleuprint.scoring.bleu import is_scored_by_13a
from bleuprint.text.unicode import replace_white_space

# The least number of letters per line, on average: single words have no spaces in any language.
_MIN_LETTERS = 20
# Scripts without spaces between words, by Unicode's rules of line breaks (UAX #14): SA of Southeast
# Asia, AK and AS of Java and Bali, ID and CJ of East Asia; and Tibetan.
_UNSPACED = regex.compile(r"[\p{lb=SA}\p{lb=AK}\p{lb=AS}\p{lb=ID}\p{lb=CJ}\p{Tibetan}]")
# Text in these scripts with fewer spaces than this per other character is taken to be written
# without spaces between words. The Declaration of Human Rights has 0.01 in Yi, 0.06 in Shan and
# about 0.08 in Burmese.
_MIN_SPACES_UNSPACED_SCRIPT = 0.08
# The same for text in other scripts. The Declaration has 0.06 in Kalaallisut, 0.09 in Tamil and 0.2
# in English. It has none in Amharic: a sign separates its words, at which 13a does not split.
_MIN_SPACES = 0.03


def lacks_words(references: Sequence[str], language: str) -> bool:
    """Whether references are written without spaces, so that BLEU cannot split them into words.

    BLEU's default tokenizer, 13a, splits at spaces. sacreBLEU has other tokenizers for some
    languages: for these the answer is False. Very short lines are not judged, since a single word
    has no spaces in any language.

    Args:
        references: The reference lines.
        language: The code of their language.
    """
    if not is_scored_by_13a(language):
        return False
    space_count = 0
    all_words = []
    for line in references:
        words = replace_white_space(line).split()
        all_words += words
        # An empty line has no words and no spaces.
        space_count += max(0, len(words) - 1)
    text_without_spaces = "".join(all_words)
    length = len(text_without_spaces)
    is_too_short = length < _MIN_LETTERS * max(1, len(references))
    if is_too_short:
        return False
    unspaced_characters = len(_UNSPACED.findall(text_without_spaces))
    is_unspaced_script = unspaced_characters > length / 2
    min_spaces = _MIN_SPACES_UNSPACED_SCRIPT if is_unspaced_script else _MIN_SPACES
    return space_count < min_spaces * length
