"""Every data stage keeps pairs aligned, whatever characters the sentences contain."""

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

# Subwords of one character, so that every word of the training text can be written.
CHARACTER_UNITS = Units(bpe=Bpe(num_merges=0, joint=True, threshold=0))
WORD_UNITS = Units(words=Words(joint=True, max_size=99_999, min_count=1))

cached_tokenizer = cache(tokenizer_for)


def decode_pairs(corpus, set_name):
    """Return the pairs of a set of a binarized corpus, as text of tokens between spaces."""
    sides = []
    for language in ("de", "en"):
        segmentation = corpus.segmentation(language)
        lines = []
        for ids in corpus.side(set_name, language):
            lines.append(" ".join(segmentation.decode(ids.tolist())))
        sides.append(lines)
    return list(zip(*sides, strict=True))


def tokenize_pair(pair, edits=EDITS, tokenize=TOKENIZE):
    """Return a pair after the edits of the stage clean and the tokenizer, without the stages."""
    sides = []
    for language, sentence in zip(("de", "en"), pair, strict=True):
        edited = apply_edits(sentence, language, edits)
        sides.append(" ".join(cached_tokenizer(language, tokenize).tokenize(edited)))
    return tuple(sides)


def pairs_with_odd_characters(set_number):
    """Return pairs with each character of TORTURE before, inside and after words.

    The digits of both sides of a pair are the same number, and every pair of all sets has another
    number, so that one can tell which sentences belong together.

    Args:
        set_number: The first digit of all numbers.
    """
    shapes = ["{0}wort {1} mit", "wort{0}{1} mit", "wort {1}{0}", "{0}{0}a {1}{0}b{0}"]
    characters = [*TORTURE, "".join(TORTURE)]
    pairs = []
    for character_number, character in enumerate(characters):
        for shape_number, shape in enumerate(shapes):
            number = f"{set_number}{character_number:02}{shape_number}"
            pairs.append((shape.format(character, f"de{number}"), f"en{number} plain"))
            pairs.append((f"de{number}9 schlicht", shape.format(character, f"en{number}9")))
    # A subword at the end of a word is another one than within a word. Each digit stands at both
    # places, so that no subword of the numbers above is unknown.
    all_digits = f"{set_number}0 01 12 23 34 45 56 67 78 89 9{set_number}"
    pairs.append((all_digits, all_digits))
    return pairs


def digits_of(text):
    """Return the digits of a text, without what stands between them."""
    return "".join(character for character in text if character.isdigit())


ODD_SETS = {
    "train": pairs_with_odd_characters(1),
    "valid": pairs_with_odd_characters(2),
    "test.x": pairs_with_odd_characters(3),
}


@pytest.fixture(
    scope="module",
    params=[{"workers": 2, "shards": 1}, {"workers": 1, "shards": 3}],
    ids=["2 workers", "3 shards"],
)
def prepared_odd_sets(request, tmp_path_factory):
    """Return the folder of the data stages that have prepared ODD_SETS."""
    root = tmp_path_factory.mktemp("odd")
    return prepare(root, ODD_SETS, units=CHARACTER_UNITS, **request.param)


@pytest.mark.parametrize("set_name", ODD_SETS)
def test_pairs_with_odd_characters_stay_aligned_and_in_order(prepared_odd_sets, set_name):
    """ODD_SETS contain characters that some programs treat as line ends, such as U+2028.

    A program that splits a line there would shift all later pairs. Both sides of a raw pair contain
    the same number, and each pair another one, so digits tell which sentences belong together.
    """
    raw_pairs = ODD_SETS[set_name]

    decoded_pairs = decode_pairs(prepared_odd_sets.binary, set_name)

    assert len(decoded_pairs) == len(raw_pairs)
    for decoded_pair, raw_pair in zip(decoded_pairs, raw_pairs, strict=True):
        decoded_source, decoded_target = decoded_pair
        raw_source, _ = raw_pair
        number = digits_of(raw_source)
        assert number != ""
        assert digits_of(decoded_source) == number
        assert digits_of(decoded_target) == number


@pytest.mark.parametrize("stage", ["clean", "dedup", "filter", "split", "tokenize", "binarize"])
def test_every_stage_keeps_all_pairs_with_odd_characters(prepared_odd_sets, stage):
    """ODD_SETS contain characters that some programs treat as spaces or line ends.

    The filtering statistics of a stage count the pairs that it has written (pairs_out).
    """
    filter_stats = json.loads(prepared_odd_sets.filter_stats(stage).read_text())

    pair_counts = {}
    for set_name, counts in filter_stats["sets"].items():
        pair_counts[set_name] = counts["pairs_out"]
    pair_count = len(ODD_SETS["train"])  # as many as in the other sets
    assert pair_counts == {"train": pair_count, "valid": pair_count, "test.x": pair_count}


def test_the_token_ids_of_pairs_with_odd_characters_are_decoded_to_their_tokens(prepared_odd_sets):
    expected_pairs = [tokenize_pair(pair) for pair in ODD_SETS["test.x"]]

    assert decode_pairs(prepared_odd_sets.binary, "test.x") == expected_pairs


# Surrogates cannot be written as UTF-8, and \n is where a line ends.
ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n"), max_size=12)
ODD_TEXT = st.lists(st.sampled_from([*TORTURE, "a", "@@", "<s>", "e\u0301", " "]), max_size=6).map(
    "".join
)
SENTENCES = st.one_of(ANY_TEXT, ODD_TEXT)
SETS = st.lists(st.tuples(SENTENCES, SENTENCES), max_size=8)


def every_edit():
    """Return all edits that bleuprint has, for the stage clean."""
    edits = []
    for name, edit in KNOWN_EDITS.items():
        edits.append(edit(form="NFC") if name == "unicode" else edit())
    return tuple(edits)


def lenient_checks():
    """Return the checks that need no model, with bounds that most sentences meet."""
    return (
        CHECKS["length"](min=1, max=30),
        CHECKS["length_ratio"](max=3.0),
        CHECKS["long_word"](max=9),
        CHECKS["identical"](),
        CHECKS["numerals"](),
    )


def assert_is_subsequence(pairs, all_pairs):
    """Fail unless `pairs` are some of `all_pairs`, in their order."""
    remaining = iter(all_pairs)
    for pair in pairs:
        # `in` takes pairs from the iterator up to the first equal one.
        assert pair in remaining


def assert_split_has_sources(prepared, set_name, pairs):
    """Fail unless the stage split wrote the source sentences of a set as they were given."""
    source_file = prepared.text("split").files(set_name)[0]
    lines = [f"{source}\n" for source, _ in pairs]
    assert source_file.read_bytes() == "".join(lines).encode()


def assert_token_ids_are_decoded_to_tokens(prepared, set_name, token_pairs):
    """Fail unless the binarized pairs of a set are its tokens, where no word is unknown."""
    decoded_pairs = decode_pairs(prepared.binary, set_name)
    binary_set = prepared.binary.sets[set_name]
    assert len(decoded_pairs) == binary_set.pairs == len(token_pairs)
    # A word such as "<s>" may be unknown, and is then decoded to another one.
    if not binary_set.unknown:
        assert decoded_pairs == token_pairs


@pytest.mark.parametrize(
    ("tokenize", "units", "edits", "checks"),
    [
        pytest.param(TOKENIZE, CHARACTER_UNITS, EDITS, (), id="moses"),
        pytest.param(
            Tokenize("moses", lowercase=True, hyphens=True, escape=True),
            CHARACTER_UNITS,
            every_edit(),
            (),
            id="all edits",
        ),
        pytest.param(
            Tokenize("spacy", lowercase=True, hyphens=False, escape=False),
            CHARACTER_UNITS,
            EDITS,
            (),
            id="spacy",
        ),
        pytest.param(
            Tokenize("characters", lowercase=False, hyphens=False, escape=False),
            CHARACTER_UNITS,
            EDITS,
            lenient_checks(),
            id="characters",
        ),
        pytest.param(
            Tokenize("none", lowercase=False, hyphens=False, escape=False),
            WORD_UNITS,
            (),
            lenient_checks(),
            id="none",
        ),
    ],
)
@given(train=SETS, valid=SETS, test=SETS)
@settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
def test_only_training_pairs_are_dropped_and_all_others_stay_aligned_and_in_order(
    tmp_path_factory, tokenize, units, edits, checks, train, valid, test
):
    """Hypothesis draws the sentences, with characters that other programs take for line ends.

    The stages may drop training pairs, for example duplicates. They must keep all pairs of the
    validation and test sets: scores are computed line by line.
    """
    # Without a training sentence there would be no vocabulary.
    train = [*train, ("Ein Anker liegt hier.", "An anchor is lying here.")]
    root = tmp_path_factory.mktemp("any")
    sets = {"train": train, "valid": valid, "test.x": test}

    prepared = prepare(root, sets, edits, checks, tokenize, units)

    token_pairs = list(prepared.text("tokens").pairs("train"))
    all_token_pairs = [tokenize_pair(pair, edits, tokenize) for pair in train]
    assert_is_subsequence(token_pairs, all_token_pairs)
    assert_token_ids_are_decoded_to_tokens(prepared, "train", token_pairs)
    for set_name, pairs in (("valid", valid), ("test.x", test)):
        token_pairs = list(prepared.text("tokens").pairs(set_name))
        assert token_pairs == [tokenize_pair(pair, edits, tokenize) for pair in pairs]
        assert_split_has_sources(prepared, set_name, pairs)
        assert_token_ids_are_decoded_to_tokens(prepared, set_name, token_pairs)
