"""Filter checks of single pairs of sentences."""

from bleuprint.corpus.alignment.word_translation import learn_word_translations
from bleuprint.rules import CHECKS
from bleuprint.rules.rule import Candidate
from bleuprint.text.parallel import Pair

# Settings of each check, which tests use unless they give others.
SETTINGS = {
    "identical": {},
    "length": {"min": 2, "max": 4},
    "length_ratio": {"max": 1.5},
    "long_word": {"max": 10},
    "alphabet_ratio": {"min": 0.5},
    "character_score": {"min": 0.8},
    "numerals": {},
    "terminal_punctuation": {},
    "language_id": {"min_odds": 10.0},
    "word_alignment": {"min": 0.5},
}
# A translation table, learned from ten words of each language: w1 translates v1, and so on.
TABLE = learn_word_translations(
    [([f"w{n}", f"w{n + 1}"], [f"v{n}", f"v{n + 1}"]) for n in range(9)] * 30
)


def SCORE(candidate):
    """Return how well the sides of a pair translate each other by TABLE."""
    return TABLE.score(*candidate.tokens)


def keeps(name, source, target, languages=("en", "de"), tokenize=str.split, **settings):
    """Return whether a check keeps a pair of sentences.

    Args:
        name: The name of the check.
        source: The source sentence.
        target: The target sentence.
        languages: The languages of both.
        tokenize: The tokenizer of both.
        settings: The settings of the check; those in SETTINGS if omitted.
    """
    check = CHECKS[name](**(settings or SETTINGS[name]))
    candidate = Candidate(Pair(source, target), languages, (tokenize, tokenize), SCORE)
    return check.keeps(candidate)


def keeps_side(name, sentence, language, fine=("A good sentence.", "en"), **settings):
    """Return whether a check keeps a sentence, which must not depend on its side of the pair.

    Args:
        name: The name of the check.
        sentence: The sentence.
        language: The language of the sentence.
        fine: The sentence on the other side, which the check keeps, and its language.
        settings: The settings of the check; those in SETTINGS if omitted.
    """
    fine_sentence, fine_language = fine
    as_source = keeps(name, sentence, fine_sentence, (language, fine_language), **settings)
    as_target = keeps(name, fine_sentence, sentence, (fine_language, language), **settings)
    assert as_source == as_target
    return as_source
