"""Every stage keeps pairs aligned, whatever characters the sentences contain."""

import json
from functools import cache

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bleuprint.config.corpus import Bpe, Units, Words
from bleuprint.rules import CHECKS
from bleuprint.rules import EDITS as KNOWN_EDITS
from bleuprint.rules.rule import apply_edits
from bleuprint.text.tokenizers import Tokenize, tokenizer_for
from corpora import EDITS, TOKENIZE, TORTURE
from prepared import prepare

STAGES = ("clean", "dedup", "filter", "split", "tokenize", "binarize")


SPELT = Units(bpe=Bpe(num_merges=0, joint=True, threshold=0))
EVERY_EDIT = tuple(
    kind(form="NFC") if name == "unicode" else kind() for name, kind in KNOWN_EDITS.items()
)


def decoded(made, name):
    """The pairs of a binarized set as tokens."""
    corpus = made.binary
    sides = [
        [
            " ".join(corpus.segmentation(language).decode(ids.tolist()))
            for ids in corpus.side(name, language)
        ]
        for language in ("de", "en")
    ]
    return list(zip(*sides, strict=True))


tokenizer = cache(tokenizer_for)


def tokens(source, target, edits=EDITS, tokenize=TOKENIZE):
    sides = [
        " ".join(tokenizer(language, tokenize).tokenize(apply_edits(side, language, edits)))
        for language, side in (("de", source), ("en", target))
    ]
    return sides[0], sides[1]


def torture(number):
    """Pairs with each odd character before, inside and after words; both sides hold a number."""
    shapes = ["{0}wort {1} mit", "wort{0}{1} mit", "wort {1}{0}", "{0}{0}a {1}{0}b{0}"]
    pairs = []
    for i, character in enumerate([*TORTURE, "".join(TORTURE)]):
        for j, shape in enumerate(shapes):
            n = f"{number}{i:02}{j}"
            pairs.append((shape.format(character, f"de{n}"), f"en{n} plain"))
            pairs.append((f"de{n}9 schlicht", shape.format(character, f"en{n}9")))
    # For every unit to be known: each digit within a word, and at its end.
    digits = f"{number}0 01 12 23 34 45 56 67 78 89 9{number}"
    return [*pairs, (digits, digits)]


def numbers(text):
    return "".join(character for character in text if character.isdigit())


@pytest.mark.parametrize(("workers", "shards"), [(2, 1), (1, 3)])
def test_torture_characters_pass_through_every_stage(tmp_path, workers, shards):
    sets = ("train", "valid", "test.x")
    raw = {name: torture(n) for n, name in enumerate(sets, 1)}
    made = prepare(tmp_path, raw, units=SPELT, workers=workers, shards=shards)
    for name, pairs in zip(("train", "valid", "test.x"), raw.values(), strict=True):
        found = decoded(made, name)
        assert len(found) == len(pairs)
        for (source, target), pair in zip(found, pairs, strict=True):
            assert numbers(source) == numbers(target) == numbers(pair[0]) != ""
    for stage in STAGES:
        sets = json.loads(made.filter_stats(stage).read_text())["sets"]
        assert [account["pairs_out"] for account in sets.values()] == [len(torture(1))] * 3
    assert decoded(made, "test.x") == [tokens(*pair) for pair in raw["test.x"]]


# Surrogates cannot be written as UTF-8, and \n is where a line ends.
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n"), max_size=12)
ODD = st.lists(st.sampled_from([*TORTURE, "a", "@@", "<s>", "e\u0301", " "]), max_size=6).map(
    "".join
)
SENTENCE = st.one_of(TEXT, ODD)
SET = st.lists(st.tuples(SENTENCE, SENTENCE), max_size=8)


def own_checks():
    """Every check that needs no more than bounds, with lenient ones."""
    bounds = {
        "length": {"min": 1, "max": 30},
        "length_ratio": {"max": 3.0},
        "long_word": {"max": 9},
    }
    plain = ("identical", "numerals")
    return (
        *(CHECKS[name](**of) for name, of in bounds.items()),
        *(CHECKS[name]() for name in plain),
    )


CHOICES = [
    (TOKENIZE, SPELT, EDITS, ()),
    (Tokenize("moses", True, True, True), SPELT, EVERY_EDIT, ()),
    (Tokenize("spacy", True, False, False), SPELT, EDITS, ()),
    (Tokenize("characters", False, False, False), SPELT, EDITS, own_checks()),
    (Tokenize("none", False, False, False), Units(words=Words(True, 99999, 1)), (), own_checks()),
]


@pytest.mark.parametrize(
    ("tokenize", "units", "edits", "checks"),
    CHOICES,
    ids=["moses", "all", "spacy", "characters", "none"],
)
@given(train=SET, valid=SET, test=SET)
@settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
def test_what_comes_out_is_a_part_of_what_went_in(
    tmp_path_factory, tokenize, units, edits, checks, train, valid, test
):
    folder = tmp_path_factory.mktemp("any")
    train = [*train, ("Ein Anker liegt hier.", "An anchor is lying here.")]
    raw = {"train": train, "valid": valid, "test.x": test}
    made = prepare(folder, raw, edits, checks, tokenize, units)

    kept = iter([tokens(*pair, edits, tokenize) for pair in train])
    # "in" takes from the iterator: in order, pair by pair.
    assert all(pair in kept for pair in made.text("tokens").pairs("train"))
    if not made.binary.sets["train"].unknown:  # no word of its own for "<s>"
        assert decoded(made, "train") == list(made.text("tokens").pairs("train"))
    for name, pairs in (("valid", valid), ("test.x", test)):
        found = decoded(made, name)
        corpus = made.binary
        assert len(found) == len(pairs) == corpus.sets[name].pairs
        as_tokens = [tokens(*pair, edits, tokenize) for pair in pairs]
        assert list(made.text("tokens").pairs(name)) == as_tokens
        if not corpus.sets[name].unknown:
            assert found == as_tokens
        assert made.text("split").files(name)[0].read_bytes() == (
            "".join(f"{source}\n" for source, _ in pairs).encode()
        )
