"""The tokenizer spacy has the tokens of spaCy, which are nearly always joined to the sentence."""

import gzip
from collections import Counter
from random import Random

import pytest
import spacy

from bleuprint.runtime.errors import UserError
from bleuprint.text import spacy as our_spacy
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


def tokens_of_spacy(language, sentences):
    """Return the tokens of sentences by spaCy itself, as courses call it."""
    nlp = spacy.blank(language)
    tokens_of_sentences = []
    for sentence in sentences:
        tokens_of_sentences.append([token.text for token in nlp.tokenizer(sentence)])
    return tokens_of_sentences


@pytest.mark.parametrize("language", SENTENCES)
def test_tokens_equal_those_of_spacy(language):
    """The reference is spaCy itself, called as in its documentation."""
    tokenizer = our_spacy.Spacy(language)

    tokens = [tokenizer.tokenize(sentence) for sentence in SENTENCES[language]]

    assert tokens == tokens_of_spacy(language, SENTENCES[language])


@pytest.mark.parametrize(
    ("language", "sentence", "tokens"),
    [
        ("de", " Ein  Hund\u00a0.\r", ["Ein", "Hund", "."]),
        ("th", "สวัสดี ครับ", ["สวัสดี", "ครับ"]),
    ],
    ids=["German", "Thai"],
)
def test_white_space_is_removed_from_the_tokens(language, sentence, tokens):
    """The library makes tokens of repeated spaces, and of spaces at the start."""
    assert our_spacy.Spacy(language).tokenize(sentence) == tokens


def test_the_option_white_space_writes_spaces_as_tokens_of_visible_signs():
    """␠ is a space, ⍽ a no-break space, ␉ a tab and ␣ other white space."""
    tokenizer = our_spacy.Spacy("de", keeps_white_space=True)

    tokens = tokenizer.tokenize(" Ein  Hund\u00a0\t.\u2003")

    assert tokens == ["␠", "Ein", "␠", "Hund", "⍽␉", ".", "␣"]
    assert tokenizer.detokenize(tokens) == "Ein Hund."


@needs(MIRROR, mirror_has(MULTI30K))
@pytest.mark.parametrize(("language", "size"), [("de", 8015), ("en", 6192)])
def test_vocabularies_of_multi30k_have_the_sizes_of_a_published_course(language, size):
    """The notebook of the course prints these sizes."""
    tokenizer = our_spacy.Spacy(language, keeps_white_space=True)
    counts: Counter[str] = Counter()
    path = mirror_path(MULTI30K) / f"train.{language}.gz"

    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        for line in file:
            counts.update(tokenizer.tokenize(line.removesuffix("\n")))

    repeated_tokens = sum(count >= 2 for count in counts.values())
    special_tokens = 4
    line_end = 1  # In the course, lines keep their newline, which is a token.
    assert repeated_tokens + special_tokens + line_end == size


@pytest.mark.parametrize(
    ("language", "sentence"),
    [
        pytest.param(
            "en",
            "It's the dog's well-known ball, isn't it? They’ve (all) said: \"No!\"",
            id="English apostrophes and quotation marks",
        ),
        pytest.param(
            "en",
            "He said 5% and/or nothing at all; don't ask.",
            id="English percent sign and slash",
        ),
        pytest.param(
            "de",
            "Der „Hund“ (braun), ein T-Shirt - und/oder Katzen: läuft er?",
            id="German quotation marks and hyphens",
        ),
        pytest.param(
            "fr", "L'homme et la femme, un tee-shirt, et c'est l'été.", id="French apostrophes"
        ),
    ],
)
def test_tokens_are_joined_to_the_sentence(language, sentence):
    tokenizer = our_spacy.Spacy(language)

    tokens = tokenizer.tokenize(sentence)

    assert len(tokens) > len(sentence.split())
    assert tokenizer.detokenize(tokens) == sentence


@pytest.mark.parametrize(
    ("sentence", "joined_sentence"),
    [("I cannot.", "I can not."), ("a - b", "a-b"), ("5 %", "5%")],
)
def test_some_tokens_are_joined_to_a_sentence_with_other_spaces(sentence, joined_sentence):
    """The tokens do not tell where spaces were: "cannot" and "can not" have the same ones."""
    tokenizer = our_spacy.Spacy("en")

    assert tokenizer.detokenize(tokenizer.tokenize(sentence)) == joined_sentence


def test_the_words_that_spacy_stores_are_limited(monkeypatch):
    """The library stores each word that it has seen, so its memory would grow with the text.

    The limit is 100 more words than are stored now; the loop meets 500 new words.
    """
    tokenizer = our_spacy.Spacy("en")
    limit = len(tokenizer._nlp.vocab.strings) + 100
    monkeypatch.setattr(our_spacy, "_MAX_STORED_WORDS", limit)

    for number in range(500):
        tokens = tokenizer.tokenize(f"word{number}, isn't it")
        assert tokens == [f"word{number}", ",", "is", "n't", "it"]

    assert len(tokenizer._nlp.vocab.strings) < limit + 10


def test_an_option_of_moses_is_refused():
    with pytest.raises(ValueError, match="option hyphens belongs to moses, not to spacy"):
        Tokenize("spacy", lowercase=False, hyphens=True, escape=False)


def test_an_option_of_spacy_is_refused_for_other_tokenizers():
    with pytest.raises(ValueError, match="option white_space belongs to spacy, not to none"):
        Tokenize("none", lowercase=False, hyphens=False, escape=False, white_space=True)


def test_a_language_may_have_a_code_of_three_letters():
    assert our_spacy.Spacy("deu").tokenize("Sie sieht.") == ["Sie", "sieht", "."]


def test_a_language_that_spacy_does_not_know_is_named():
    with pytest.raises(
        UserError, match=r"^tokenize.name spacy, language 'qq': .*E048.*\[spacy\]'$"
    ):
        our_spacy.Spacy("qq")


def test_a_missing_spacy_is_named_with_the_command_that_installs_it(monkeypatch):
    """The tokenizer moses can be used without spaCy."""
    monkeypatch.setattr("bleuprint.text.tokenizers.find_spec", lambda _: None)  # Not installed.

    Tokenize("moses", lowercase=False, hyphens=True, escape=False)  # Raises nothing.
    with pytest.raises(ValueError, match=r"spaCy is not installed\. Install it: pip .*\[spacy\]"):
        Tokenize("spacy", lowercase=False, hyphens=False, escape=False)


WORD_PARTS = [
    "a",
    "1",
    ":",
    ".",
    "..",
    "@",
    "http://",
    "user:pw@",
    "b.org",
    "'s",
    "km²",
    "(",
    "…",
    " ",
]


@pytest.mark.parametrize("language", ["en", "de", "fr"])
def test_tokens_of_odd_words_equal_those_of_spacy(language):
    """Two expressions of spaCy, which take quadratic time, are replaced by `_make_linear`."""
    generator = Random(1)
    words = []
    for _ in range(1000):
        words.append("".join(generator.choices(WORD_PARTS, k=generator.randrange(1, 9))))
    for end in ("x", "." * 70, "a" * 70 + "1.", "1" * 70 + "km²", "'s"):
        words.append(":" * 70 + end)
    our_tokenizer = our_spacy.Spacy(language)
    spacy_tokenizer = spacy.blank(language).tokenizer

    for word in words:
        word_with_single_spaces = " ".join(word.split())
        expected = [token.text for token in spacy_tokenizer(word_with_single_spaces)]
        assert our_tokenizer.tokenize(word) == expected, word
