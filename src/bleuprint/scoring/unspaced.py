"""Finds references with too few spaces for BLEU, which splits text into words at spaces.

If a language is written without spaces between words, BLEU takes a whole sentence for one word, and
no translation matches it. Such references are found by the number of their spaces, since the code
of a language does not tell in which script a text is written.
"""

from collections.abc import Sequence

import regex

from bleuprint.scoring.bleu import is_scored_by_13a
from bleuprint.text.unicode import replace_white_space

# Lines with fewer characters than this, on average, are not judged: a line of one word has no
# spaces in any language.
_MIN_CHARACTERS_PER_LINE = 20
# A character of a script without spaces between words. Unicode's rules for line breaks (UAX #14)
# have classes for them: SA for scripts of Southeast Asia, AK and AS for scripts of Java and Bali,
# ID and CJ for scripts of East Asia. Tibetan has no class of its own.
_UNSPACED_CHARACTER = regex.compile(r"[\p{lb=SA}\p{lb=AK}\p{lb=AS}\p{lb=ID}\p{lb=CJ}\p{Tibetan}]")
# The smallest number of spaces per character with which a text counts as written with spaces. The
# two limits were chosen between the languages of the Declaration of Human Rights. In scripts
# without spaces, it has 0.01 in Yi, 0.06 in Shan and about 0.08 in Burmese.
_MIN_SPACES_IN_UNSPACED_SCRIPT = 0.08
# In other scripts, it has 0.06 in Kalaallisut, 0.09 in Tamil and 0.2 in English. It has none in
# Amharic, where another sign separates the words, at which BLEU does not split.
_MIN_SPACES = 0.03


def lacks_spaces_for_bleu(references: Sequence[str], language: str) -> bool:
    """Return whether references have so few spaces that BLEU cannot split them into words.

    BLEU's default tokenizer, 13a, splits at spaces. In English there are about 20 spaces per 100
    characters. References lack spaces if there are fewer than 3, or fewer than 8 if most characters
    are of a script that is written without spaces, such as Khmer. For a few languages, such as
    Chinese, sacreBLEU has tokenizers that need no spaces: for these the answer is False.

    Args:
        references: The reference lines.
        language: The code of their language.
    """
    if not is_scored_by_13a(language):
        return False
    all_words = []
    space_count = 0
    for line in references:
        words = replace_white_space(line).split()
        all_words += words
        # Between n words there are n - 1 spaces; for an empty line this would be -1.
        space_count += max(0, len(words) - 1)
    characters = "".join(all_words)
    # A short line may be a single word, which has no spaces in any language.
    is_too_short_to_judge = len(characters) < _MIN_CHARACTERS_PER_LINE * len(references)
    if is_too_short_to_judge:
        return False
    min_spaces_per_character = _MIN_SPACES
    unspaced_count = len(_UNSPACED_CHARACTER.findall(characters))
    is_unspaced_script = unspaced_count > len(characters) / 2
    if is_unspaced_script:
        min_spaces_per_character = _MIN_SPACES_IN_UNSPACED_SCRIPT
    return space_count < min_spaces_per_character * len(characters)
