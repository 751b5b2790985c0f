"""Filter checks on single pairs."""

from bleuprint.corpus.alignment.word_translation import learn
from bleuprint.rules import CHECKS
from bleuprint.rules.rule import Candidate
from bleuprint.text.parallel import Pair

SETTINGS = {
    "identical": {},
    "length": {"min": 2, "max": 4},
    "ratio": {"max": 1.5},
    "longest_word": {"max": 10},
    "alphabetic": {"min": 0.5},
    "script": {"min": 0.8},
    "numbers": {},
    "sentence_marks": {},
    "language_id": {"likelier": 10.0},
    "alignment_score": {"min": 0.5},
}
# how well two sides translate each other, learned from ten words
TABLE = learn([([f"w{n}", f"w{n + 1}"], [f"v{n}", f"v{n + 1}"]) for n in range(9)] * 30)


def SCORE(candidate):
    return TABLE.score(*candidate.tokens)


def keeps(name, source, target, languages=("en", "de"), tokenize=str.split, **settings):
    check = CHECKS[name](**(settings or SETTINGS[name]))
    return check.keeps(Candidate(Pair(source, target), languages, (tokenize, tokenize), SCORE))


def keeps_side(name, sentence, language, fine=("A good sentence.", "en"), **settings):
    """Whether the sentence is kept; must be the same as source and as target."""
    as_source = keeps(name, sentence, fine[0], (language, fine[1]), **settings)
    as_target = keeps(name, fine[0], sentence, (fine[1], language), **settings)
    assert as_source == as_target
    return as_source
