"""Every stage keeps pairs together, whatever the sentences hold."""

import json

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bleuprint.bpe import join
from bleuprint.characters import normalise
from bleuprint.moses import Moses
from bleuprint.settings import Tokenize
from corpora import TORTURE, Prepared, prepare

STAGES = ("clean", "dedup", "filter", "split", "tokenize", "binarize")


def decoded(made: Prepared, name: str) -> list[tuple[str, str]]:
    """The pairs of a binarised set as tokens."""
    corpus = made.binary
    sides = [
        [
            " ".join(join(corpus.vocabulary.decode(ids.tolist())))
            for ids in corpus.side(name, language)
        ]
        for language in ("de", "en")
    ]
    return list(zip(*sides, strict=True))


def tokens(source: str, target: str) -> tuple[str, str]:
    de, en = (Moses(language, punctuation=True, lowercase=False) for language in ("de", "en"))
    source, target = (normalise(side, "NFC") for side in (source, target))
    return " ".join(de.tokenize(source)), " ".join(en.tokenize(target))


def torture(number: int) -> list[tuple[str, str]]:
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


def numbers(text: str) -> str:
    return "".join(character for character in text if character.isdigit())


def test_torture_characters_pass_through_every_stage(tmp_path):
    raw = {name: torture(n) for n, name in enumerate(("train.a", "valid.a", "test.x"), 1)}
    made = prepare(tmp_path, raw, tokenize=Tokenize(True, False), merges=0, workers=2)
    for name, pairs in zip(("train", "valid", "test.x"), raw.values(), strict=True):
        found = decoded(made, name)
        assert len(found) == len(pairs)
        for (source, target), pair in zip(found, pairs, strict=True):
            assert numbers(source) == numbers(target) == numbers(pair[0]) != ""
    for stage in STAGES:
        sets = json.loads(made.ledger(stage).read_text())["sets"]
        assert [account["pairs_out"] for account in sets.values()] == [len(torture(1))] * 3
    assert decoded(made, "test.x") == [tokens(*pair) for pair in raw["test.x"]]


# Surrogates cannot be written as UTF-8, and \n is where a line ends.
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n"), max_size=12)
ODD = st.lists(st.sampled_from([*TORTURE, "a", "@@", "<s>", "e\u0301", " "]), max_size=6).map(
    "".join
)
SENTENCE = st.one_of(TEXT, ODD)
SET = st.lists(st.tuples(SENTENCE, SENTENCE), max_size=8)


@given(train=SET, valid=SET, test=SET)
@settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
def test_what_comes_out_is_a_part_of_what_went_in(tmp_path_factory, train, valid, test):
    folder = tmp_path_factory.mktemp("any")
    train = [*train, ("Ein Anker liegt hier.", "An anchor is lying here.")]
    raw = {"train.a": train, "valid.a": valid, "test.x": test}
    made = prepare(folder, raw, tokenize=Tokenize(True, False))

    kept = iter([tokens(*pair) for pair in train])
    # "in" takes from the iterator: in order, pair by pair.
    assert all(pair in kept for pair in decoded(made, "train"))
    for name, pairs in (("valid", valid), ("test.x", test)):
        found = decoded(made, name)
        corpus = made.binary
        assert len(found) == len(pairs) == corpus.sets[name].pairs
        assert list(made.text("tokens").pairs(name)) == [tokens(*pair) for pair in pairs]
        if not corpus.sets[name].unknown:
            assert found == [tokens(*pair) for pair in pairs]
