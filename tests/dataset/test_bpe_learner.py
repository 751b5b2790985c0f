import gzip
import io
import random
from collections import Counter
from contextlib import redirect_stderr
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from subword_nmt.learn_bpe import learn_bpe

from bleuprint import native
from bleuprint.corpus.phrasebook import sentences
from bleuprint.dataset.bpe_learner import learn_merges
from bleuprint.text.parallel import read_lines
from requirements import MIRROR, mirror_has, mirror_path, needs

MULTI30K = (
    "raw.githubusercontent.com/multi30k/dataset/a3d2e0d26b56f3846f66a952536ffed4e401d05a"
    "/data/task1/raw"
)
TANAKA = (
    "raw.githubusercontent.com/odashi/small_parallel_enja/312408a11c5fbcbc09443bebb18121f7efdcd61e"
)


pytestmark = pytest.mark.usefixtures("native_library")


def reference(counts, merges):
    codes = io.StringIO(newline="\n")
    with redirect_stderr(io.StringIO()):
        learn_bpe([f"{word} {n}" for word, n in counts.items()], codes, merges, is_dict=True)
    return codes.getvalue().split("\n")[1:-1]


def found(counts, merges):
    return [f"{first} {second}" for first, second in learn_merges(counts, merges)]


def drawn(seed, alphabet, words, longest, most):
    """Counts of words whose parts recur."""
    draw = random.Random(seed)
    parts = ["".join(draw.choices(alphabet, k=draw.randint(1, 4))) for _ in range(12)]
    parts += [letter * draw.randint(2, 5) for letter in alphabet[:3]]
    made = ("".join(draw.choices(parts, k=draw.randint(1, longest))) for _ in range(words))
    return {word: min(most, int(draw.paretovariate(0.7))) for word in made}


def test_ties_go_to_the_last_pair_in_order():
    assert found({"ab": 2, "cd": 2, "cé": 2}, 3) == ["c é</w>", "c d</w>", "a b</w>"]
    # "ab" comes after "a", as in any dictionary.
    assert found({"abx": 3, "ax": 3}, 3) == ["b x</w>", "a x</w>", "a bx</w>"]


def test_pairs_that_occur_once_are_not_merged():
    assert found({"abc": 1, "xbc": 1}, 9) == ["b c</w>"]
    assert found({"a": 7}, 9) == found({}, 9) == []


WORDS = st.text("ab", min_size=1, max_size=9) | st.sampled_from(["aaaa", "aaaaa", "ababab"])
# What looks like the end of a word makes symbols that are there already.
ENDED = st.lists(st.sampled_from(["!", "a", "b", "~", "a</w>", "b</w>", "</w>"]), min_size=1)


@given(st.dictionaries(WORDS, st.integers(1, 3), min_size=2, max_size=40), st.integers(1, 150))
@settings(max_examples=150)
def test_small_dictionaries_with_ties_and_repeats(counts, merges):
    counts["ab"] = 3  # subword-nmt needs a pair
    assert found(counts, merges) == reference(counts, merges)


@given(st.dictionaries(ENDED.map("".join), st.integers(1, 9) | st.integers(80, 120), max_size=40))
@settings(max_examples=150)
def test_pairs_whose_counts_rise_again(counts):
    counts["ab"] = 3
    assert found(counts, 200) == reference(counts, 200)


def test_a_symbol_after_white_space_is_taken_for_one_of_its_own():
    # Once tab and a are one, subword-nmt finds "a b" in it and in the b that follows.
    counts = {"\tax": 50, "abz": 10, "ab\tabc": 3, "abc": 1}
    assert found(counts, 60) == reference(counts, 60)


@pytest.mark.parametrize(
    ("alphabet", "words", "longest", "most"),
    [
        ("abcdefghij", 2000, 5, 10**6),
        ("abcdefghij", 400, 9, 3),
        ("aé漢😀\U0010ffff\0", 500, 6, 100),
        ("</w>a@", 500, 6, 100),
    ],
)
def test_larger_dictionaries(alphabet, words, longest, most):
    for seed in range(3):
        counts = drawn(seed, alphabet, words, longest, most)
        assert found(counts, 1500) == reference(counts, 1500)


@pytest.mark.parametrize(
    "counts",
    [
        {"~</w>a</w>~": 14, "ab": 3, "b</w>ba": 1},
        {"b</w>b</w></w>": 9, "a</w>b</w>": 115, "a</w>~a": 109, "ab": 3},
        # what a pair loses while it is set aside is taken off
        {"a</w>!": 84, "~aa</w></w>": 5, "~a</w>~": 3, "ab": 3},
    ],
)
def test_where_subword_nmt_miscounts_it_is_followed(counts):
    assert found(counts, 300) == reference(counts, 300)


def test_without_the_compiled_module_they_are_the_same(monkeypatch):
    counts = drawn(4, "abcdefghij", 300, 5, 100)
    compiled = found(counts, 400)
    monkeypatch.setattr(native, "library", lambda: None)
    assert found(counts, 400) == compiled and len(compiled) > 100
    assert found({"a": 7}, 9) == found({}, 9) == []


def test_phrasebook():
    counts = Counter()
    for language in ("en", "de"):
        for sentence in islice(sentences("train", language), 3000):
            counts.update(sentence.split(" "))
    assert found(counts, 800) == reference(counts, 800)


def multi30k(language):
    with gzip.open(mirror_path(MULTI30K) / f"train.{language}.gz", "rb") as file:
        return file.read().decode().split("\n")


def tanaka(language):
    return read_lines(mirror_path(TANAKA) / f"train.{language}")


@needs(MIRROR, mirror_has(MULTI30K) and mirror_has(TANAKA))
@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "languages"),
    [(multi30k, "de en"), (multi30k, "fr en"), (multi30k, "de fr"), (tanaka, "en ja")],
)
def test_real_corpora(text, languages):
    counts = Counter()
    for language in languages.split():
        for line in text(language):
            counts.update(line.split(" "))
    del counts[""]
    assert found(counts, 10_000) == reference(counts, 10_000)
