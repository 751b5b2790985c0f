"""Errors of translations: counted by hand, without those of the references."""

import dataclasses

import pytest

import result_trees as trees
from bleuprint.scoring.metric import Texts
from bleuprint.scoring.output_errors import (
    ANY_ERROR,
    CUT_OFF,
    OUTPUT_ERRORS,
    WRONG_LANGUAGE,
    has_loop,
    is_balanced,
)
from bleuprint.text.tokenizers import Tokenize, tokenizer_for
from measuring import texts_of
from scoring import SEPARATORS

SOURCE = "Anna pays 20 euros (not more) to {name} in the old town of Vienna."
GOOD = "Anna zahlt 20 Euro (nicht mehr) an {name} in der Altstadt von Wien."


@pytest.fixture
def corpus(tmp_path):
    """From English to German; tokens are separated by spaces."""
    corpus = trees.settings_in(tmp_path).corpus("news-en-de")
    return dataclasses.replace(corpus, tokenize=dataclasses.replace(corpus.tokenize, name="none"))


def counts_of(sources, references, outputs, corpus, cut=()):
    """Of each error, by line, whether the output has it, and whether the line counts."""
    texts = Texts(sources, references, outputs, corpus, texts_of([], []).description, cut)
    counted = {error.key: error.count(texts) for error in OUTPUT_ERRORS}
    return {name: of.tolist() for name, of in counted.items() if of is not None}


def found(corpus, source, reference, output):
    counted = counts_of([source], [reference], [output], corpus)
    return {name for name, ((broken, _),) in counted.items() if broken}


@pytest.mark.parametrize(
    ("output", "errors"),
    [
        (GOOD, set()),
        (" \u00a0", {"empty"}),
        ("Anna zahlt (20) {name}.", {"too short"}),
        (GOOD + " und dann noch mehr", set()),
        ("Anna paie 20 euros (pas plus) à {name} dans la vieille ville.", {WRONG_LANGUAGE}),
        (SOURCE.lower(), {WRONG_LANGUAGE, "untranslated"}),
        (GOOD.replace("20", "21"), {"numbers"}),
        (GOOD.replace("20 ", ""), {"numbers"}),
        (GOOD.replace("{name}", "Name"), {"URLs, placeholders"}),
        (GOOD.replace("der", "der der der"), {"repetition"}),
        (GOOD.replace("der", "der der"), set()),
        (GOOD.replace("Altstadt", "<unk>"), {"unknown token"}),
        (GOOD.replace("mehr)", "mehr"), {"brackets"}),
    ],
)
def test_each_error_is_seen_alone(corpus, output, errors):
    assert found(corpus, SOURCE, GOOD, output) == errors | ({ANY_ERROR} if errors else set())


def test_what_the_maximum_length_cut_is_an_error(corpus):
    """Lines 2 and 3, of which line 3 has another error as well; of no other test set a count."""
    outputs = [GOOD, GOOD, GOOD.replace("20", "21")]
    given = [SOURCE] * 3, [GOOD] * 3, outputs, corpus
    whole = counts_of(*given)
    assert "cut off" not in whole
    cut = counts_of(*given, cut={2, 3})
    assert cut["cut off"] == [[0, 1], [1, 1], [1, 1]]
    assert cut[ANY_ERROR] == [[0, 1], [1, 1], [1, 1]] and whole[ANY_ERROR] == [
        [0, 1],
        [0, 1],
        [1, 1],
    ]
    assert {name for name in cut if cut[name] != whole.get(name)} == {ANY_ERROR, "cut off"}


def test_addresses_have_to_be_kept(corpus):
    source = "Write to anna@example.org, or see https://example.org/a."
    good = "Schreiben Sie an anna@example.org, oder siehe https://example.org/a!"
    assert found(corpus, source, good, good.replace("!", ".")) == set()
    for bad in (good.replace("/a", "/b"), good.replace("anna@", "ana@")):
        assert found(corpus, source, good, bad) == {ANY_ERROR, "URLs, placeholders"}


@pytest.mark.parametrize(
    "copied", ["name@host.org", "http://a.b/c?d=e", "%(count)s", "1'000", "9:15"]
)
def test_what_the_tokenizer_changes_is_no_error(corpus, copied):
    """Plain Moses prints `name @ host.org`, `% (count) s`, `1 '000`."""
    plain = Tokenize("moses", lowercase=False, hyphens=False, escape=False, plain=True)
    corpus = dataclasses.replace(corpus, tokenize=plain)
    moses = tokenizer_for("de", plain)
    source, good = SOURCE.replace("{name}", copied), GOOD.replace("{name}", copied)
    printed = moses.detokenize(moses.tokenize(good))
    assert printed != good
    assert found(corpus, source, good, printed) == set()
    lost = {"numbers"} if copied[0].isdigit() else {"URLs, placeholders"}
    assert found(corpus, source, good, GOOD.replace("{name}", "Anna")) == {ANY_ERROR, *lost}


def test_counts_by_hand_without_the_lines_whose_reference_has_the_error(corpus):
    sources = ["The house has 3 rooms."] * 4
    references = ["Das Haus hat drei Zimmer.", *["Das Haus hat 3 Zimmer."] * 3]
    # the first loses the number as its reference does, but is unbalanced, too
    outputs = [
        "Das Haus hat drei (Zimmer.",
        "Das Haus hat Zimmer.",
        "Das Haus hat 3 Zimmer.",
        "Das Haus hat 4 <unk>.",
    ]
    errors = counts_of(sources, references, outputs, corpus)
    assert list(errors) == [error.key for error in OUTPUT_ERRORS if error.key != CUT_OFF]
    assert errors["numbers"] == [[0, 0], [1, 1], [0, 1], [1, 1]]
    assert errors["brackets"] == [[1, 1], [0, 1], [0, 1], [0, 1]]
    assert errors["unknown token"] == [[0, 1]] * 3 + [[1, 1]]
    assert errors[ANY_ERROR] == [[1, 1], [1, 1], [0, 1], [1, 1]]
    # the references themselves have no error of their own
    own = counts_of(sources, references, references, corpus)
    assert not any(broken for lines in own.values() for broken, _ in lines)


def test_a_language_that_cannot_be_identified(corpus):
    toy = dataclasses.replace(corpus, source="xx", target="yy")
    names = list(counts_of(["1 2"], ["1 2"], ["1 3"], toy))
    assert names == [
        error.key for error in OUTPUT_ERRORS if error.key not in (WRONG_LANGUAGE, CUT_OFF)
    ]


@pytest.mark.parametrize("separator", [*SEPARATORS, "\0", "\ufeff"])
def test_odd_characters(corpus, separator):
    assert found(corpus, SOURCE, GOOD, separator) == {ANY_ERROR, "empty"}
    assert found(corpus, SOURCE, GOOD, GOOD.replace(" ", separator, 1)) <= {ANY_ERROR, "repetition"}
    assert found(corpus, separator, GOOD, GOOD) == set()


def test_what_does_not_print_is_no_difference(corpus):
    marked = SOURCE.replace(" ", "\u200e ").replace("20", "2\u20600")
    assert found(corpus, marked, GOOD, GOOD.replace("20", "2\u20600")) == set()
    url = "www.example.org"
    assert found(corpus, f"{SOURCE} {url}\u200e", f"{GOOD} {url}\u200e", f"{GOOD} {url}") == set()


@pytest.mark.parametrize(
    ("text", "loops"),
    [
        ("a a", False),
        ("a a a", True),
        ("a b a b", False),
        ("a b a b a b", True),
        ("a b c d a b c d", True),
        ("a b c d a b c", False),
        ("x a blue shirt and a blue shirt and a", True),
        (". . . . ! !", False),
        ("", False),
        (" ".join([*map(str, range(21))] * 2), False),
        (" ".join([*map(str, range(20))] * 2), True),
    ],
)
def test_loops(text, loops):
    assert has_loop(text.split()) == loops


@pytest.mark.parametrize(
    ("text", "balanced"),
    [("", True), ("([a]{b})", True), ("([)]", False), (")(", False), ("a (", False)],
)
def test_brackets(text, balanced):
    assert is_balanced(text) == balanced
    assert is_balanced("([" * 50_000 + text + "])" * 50_000) == balanced


def test_too_long_is_more_than_three_times_the_source(corpus):
    source, reference = "Good morning", "Guten Morgen"
    six_words = "Guten Morgen und einen schönen Tag"
    assert found(corpus, source, reference, six_words) == set()
    assert found(corpus, source, reference, f"{six_words} euch") == {ANY_ERROR, "too long"}
