"""Tokens are those of spaCy; joined again, they are nearly always the sentence."""

import gzip
from collections import Counter
from random import Random

import pytest
import spacy

from bleuprint.runtime.errors import UserError
from bleuprint.text import spacy as own
from bleuprint.text.tokenizers import Tokenize
from requirements import MIRROR, mirror_has, mirror_path, needs

MULTI30K = (
    "raw.githubusercontent.com/multi30k/dataset/a3d2e0d26b56f3846f66a952536ffed4e401d05a"
    "/data/task1/raw"
)
SENTENCES = {
    "en": [
        "It's the dog's ball, and they don't know who'd've thrown it; I can't.",
        "Mr. O'Neil lives in the U.S. (since 9 a.m.), e.g. at no. 5!",
        'A well-known t-shirt and/or a 10km run - 50% off... "quoted" ‘so’ it’s',
        ":) :-D <3 : ) O.o (._.) = ):",
        "See https://example.org/a_b?c=d, www.example.org or mail a.b@example.org.",
        "",
    ],
    "de": [
        "Geht's dir gut? Er hat's z.B. am 3. Mai usw. gesehen, z. B. hier.",
        "Ein T-Shirt, die Ost-West-Achse – und/oder Hunde/Katzen, 3-4 Stück.",
        "Dr. Müller sagt: „Das ist ’s“, ca. 5 % mehr (d.h. 1.000,50 €)!",
        ":) ;-) xD :( : ( (= :* usw.",
        "Siehe https://example.org/ä oder schreib an a.b@example.org.",
        "So war es v.Chr . schon, wie z.Bsp . hier.",
    ],
}


def reference(language, sentences):
    """The tokens of spaCy itself, as the courses call it."""
    nlp = spacy.blank(language)
    return [[token.text for token in nlp.tokenizer(sentence)] for sentence in sentences]


@pytest.mark.parametrize("language", SENTENCES)
def test_tokens_are_those_of_spacy(language):
    tokenizer = own.Spacy(language)
    found = [tokenizer.tokenize(sentence) for sentence in SENTENCES[language]]
    assert found == reference(language, SENTENCES[language])


def test_white_space_is_no_token():
    assert own.Spacy("de").tokenize(" Ein  Hund\u00a0.\r") == ["Ein", "Hund", "."]
    assert own.Spacy("th").tokenize("สวัสดี ครับ") == ["สวัสดี", "ครับ"]


def test_white_space_is_kept_as_pictures():
    tokenizer = own.Spacy("de", white_space=True)
    tokens = tokenizer.tokenize(" Ein  Hund\u00a0\t.\u2003")
    assert tokens == ["␠", "Ein", "␠", "Hund", "⍽␉", ".", "␣"]
    assert tokenizer.detokenize(tokens) == "Ein Hund."


@needs(MIRROR, mirror_has(MULTI30K))
@pytest.mark.parametrize(("language", "size"), [("de", 8015), ("en", 6192)])
def test_vocabularies_of_the_course(language, size):
    """Those of its notebook: tokens that occur twice, four special ones, and the line end."""
    tokenizer = own.Spacy(language, white_space=True)
    counts: Counter[str] = Counter()
    path = mirror_path(MULTI30K) / f"train.{language}.gz"
    with gzip.open(path, "rt", "utf-8", newline="\n") as file:
        for line in file:
            counts.update(tokenizer.tokenize(line.removesuffix("\n")))
    assert sum(count >= 2 for count in counts.values()) + 4 + 1 == size


@pytest.mark.parametrize(
    ("language", "sentence"),
    [
        ("en", "It's the dog's well-known ball, isn't it? They’ve (all) said: \"No!\""),
        ("en", "He said 5% and/or nothing at all; don't ask."),
        ("de", "Der „Hund“ (braun), ein T-Shirt - und/oder Katzen: läuft er?"),
        ("fr", "L'homme et la femme, un tee-shirt, et c'est l'été."),
    ],
)
def test_joined_tokens_are_the_sentence(language, sentence):
    tokenizer = own.Spacy(language)
    tokens = tokenizer.tokenize(sentence)
    assert len(tokens) > len(sentence.split())
    assert tokenizer.detokenize(tokens) == sentence


def test_where_joined_tokens_differ():
    tokenizer = own.Spacy("en")
    for sentence, joined in (("I cannot.", "I can not."), ("a - b", "a-b"), ("5 %", "5%")):
        assert tokenizer.detokenize(tokenizer.tokenize(sentence)) == joined


def test_the_vocabulary_is_bounded(monkeypatch):
    tokenizer = own.Spacy("en")
    limit = len(tokenizer._nlp.vocab.strings) + 100
    monkeypatch.setattr(own, "_MAX_STORED_WORDS", limit)
    for i in range(500):
        assert tokenizer.tokenize(f"word{i}, isn't it") == [f"word{i}", ",", "is", "n't", "it"]
    assert len(tokenizer._nlp.vocab.strings) < limit + 10


def test_bad_settings(monkeypatch):
    with pytest.raises(ValueError, match="option hyphens belongs to moses, not to spacy"):
        Tokenize("spacy", lowercase=False, hyphens=True, escape=False)
    with pytest.raises(ValueError, match="option white_space belongs to spacy, not to none"):
        Tokenize("none", lowercase=False, hyphens=False, escape=False, white_space=True)
    assert own.Spacy("deu").tokenize("Sie sieht.") == ["Sie", "sieht", "."]
    with pytest.raises(
        UserError, match=r"^tokenize.name spacy, language 'qq': .*E048.*\[spacy\]'$"
    ):
        own.Spacy("qq")
    monkeypatch.setattr("bleuprint.text.tokenizers.find_spec", lambda _: None)
    Tokenize("moses", lowercase=False, hyphens=True, escape=False)
    with pytest.raises(ValueError, match=r"spaCy is not installed\. Install it: pip .*\[spacy\]"):
        Tokenize("spacy", lowercase=False, hyphens=False, escape=False)


PIECES = ["a", "1", ":", ".", "..", "@", "http://", "user:pw@", "b.org", "'s", "km²", "(", "…", " "]


@pytest.mark.parametrize("language", ["en", "de", "fr"])
def test_tokens_of_odd_words_are_those_of_spacy(language):
    """The two expressions that `_make_linear` replaces divide no word otherwise."""
    random = Random(1)
    words = ["".join(random.choices(PIECES, k=random.randrange(1, 9))) for _ in range(1000)]
    for end in ("x", "." * 70, "a" * 70 + "1.", "1" * 70 + "km²", "'s"):
        words.append(":" * 70 + end)
    ours, theirs = own.Spacy(language), spacy.blank(language).tokenizer
    for word in words:
        one_spaced = " ".join(word.split())
        expected = [token.text for token in theirs(one_spaced)]
        assert ours.tokenize(word) == expected, word
