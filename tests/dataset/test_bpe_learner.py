"""The merges of byte-pair encoding are learned in C++; they equal those of subword-nmt."""

import gzip
import io
import random
from collections import Counter
from contextlib import redirect_stderr

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from subword_nmt.learn_bpe import learn_bpe

from bleuprint import native
from bleuprint.dataset.bpe_learner import learn_merges
from bleuprint.text.parallel import read_lines
from corpora import phrasebook_sentences
from requirements import MIRROR, mirror_has, mirror_path, needs

MULTI30K = (
    "raw.githubusercontent.com/multi30k/dataset/a3d2e0d26b56f3846f66a952536ffed4e401d05a"
    "/data/task1/raw"
)
TANAKA = (
    "raw.githubusercontent.com/odashi/small_parallel_enja/312408a11c5fbcbc09443bebb18121f7efdcd61e"
)

pytestmark = pytest.mark.usefixtures("native_library")


def merges_of_subword_nmt(counts, merge_count):
    """Return the merges that subword-nmt learns from word counts, such as "a b</w>".

    Args:
        counts: How often each word occurs.
        merge_count: The largest number of merges.
    """
    codes = io.StringIO(newline="\n")
    dictionary = [f"{word} {count}" for word, count in counts.items()]
    with redirect_stderr(io.StringIO()):
        learn_bpe(dictionary, codes, merge_count, is_dict=True)
    # The first line is the version; the file ends in a newline.
    return codes.getvalue().split("\n")[1:-1]


def our_merges(counts, merge_count):
    """Return the merges that bleuprint learns from word counts, such as "a b</w>"."""
    return [f"{first} {second}" for first, second in learn_merges(counts, merge_count)]


def generated_counts(seed, alphabet, word_count, max_parts, max_count):
    """Return counts of words that consist of the same few parts.

    Args:
        seed: The seed.
        alphabet: The letters of the words.
        word_count: The number of words that are drawn; equal ones count once.
        max_parts: The largest number of parts of a word.
        max_count: The largest count.
    """
    generator = random.Random(seed)
    parts = ["".join(generator.choices(alphabet, k=generator.randint(1, 4))) for _ in range(12)]
    # Repeated letters: their merges overlap.
    parts += [letter * generator.randint(2, 5) for letter in alphabet[:3]]
    counts = {}
    for _ in range(word_count):
        word = "".join(generator.choices(parts, k=generator.randint(1, max_parts)))
        counts[word] = min(max_count, int(generator.paretovariate(0.7)))
    return counts


@pytest.mark.parametrize(
    ("counts", "merges"),
    [
        pytest.param(
            {"ab": 2, "cd": 2, "cé": 2}, ["c é</w>", "c d</w>", "a b</w>"], id="different letters"
        ),
        pytest.param(
            {"abx": 3, "ax": 3},
            ["b x</w>", "a x</w>", "a bx</w>"],
            id='"a x" and "a bx": the longer symbol is later',
        ),
    ],
)
def test_of_equally_frequent_pairs_the_last_one_in_the_alphabet_is_merged_first(counts, merges):
    assert our_merges(counts, 3) == merges


def test_pairs_that_occur_once_are_not_merged():
    # "a b" and "x b" occur once, "b c" twice.
    assert our_merges({"abc": 1, "xbc": 1}, 9) == ["b c</w>"]


@pytest.mark.parametrize("counts", [{"a": 7}, {}], ids=["word of one letter", "no words"])
def test_words_without_pairs_give_no_merges(counts):
    assert our_merges(counts, 9) == []


SHORT_WORDS = st.text("ab", min_size=1, max_size=9) | st.sampled_from(["aaaa", "aaaaa", "ababab"])


@given(
    counts=st.dictionaries(SHORT_WORDS, st.integers(1, 3), min_size=2, max_size=40),
    merge_count=st.integers(1, 150),
)
@settings(max_examples=150)
def test_merges_of_words_with_ties_and_repeated_letters_equal_those_of_subword_nmt(
    counts, merge_count
):
    """With small counts, many pairs of symbols are equally frequent: ties."""
    counts["ab"] = 3  # subword-nmt fails without a pair.

    assert our_merges(counts, merge_count) == merges_of_subword_nmt(counts, merge_count)


# Words that contain the mark of a word's end: merging its characters makes symbols that exist
# already, so that counts of pairs rise again.
_PARTS_WITH_END_MARK = st.sampled_from(["!", "a", "b", "~", "a</w>", "b</w>", "</w>"])
WORDS_WITH_END_MARK = st.lists(_PARTS_WITH_END_MARK, min_size=1).map("".join)


@given(
    counts=st.dictionaries(
        WORDS_WITH_END_MARK, st.integers(1, 9) | st.integers(80, 120), max_size=40
    )
)
@settings(max_examples=150)
def test_merges_of_words_that_contain_the_mark_of_a_words_end_equal_those_of_subword_nmt(counts):
    counts["ab"] = 3  # subword-nmt fails without a pair.

    assert our_merges(counts, 200) == merges_of_subword_nmt(counts, 200)


def test_merges_of_words_with_tabs_equal_those_of_subword_nmt():
    """Once a tab and "a" are merged, subword-nmt finds "a b" in the new symbol and "b" after it."""
    counts = {"\tax": 50, "abz": 10, "ab\tabc": 3, "abc": 1}

    assert our_merges(counts, 60) == merges_of_subword_nmt(counts, 60)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("alphabet", "word_count", "max_parts", "max_count"),
    [
        pytest.param("abcdefghij", 2000, 5, 10**6, id="2,000 words with large counts"),
        pytest.param("abcdefghij", 400, 9, 3, id="long words with small counts"),
        pytest.param("aé漢😀\U0010ffff\0", 500, 6, 100, id="characters of 1 to 4 bytes"),
        pytest.param("</w>a@", 500, 6, 100, id="characters of marks"),
    ],
)
def test_1500_merges_of_generated_words_equal_those_of_subword_nmt(
    seed, alphabet, word_count, max_parts, max_count
):
    """The words consist of the same few parts, as words in natural text do.

    In files of merges, </w> marks the end of a word; other marks contain @.
    """
    counts = generated_counts(seed, alphabet, word_count, max_parts, max_count)

    merges = our_merges(counts, 1500)

    assert merges == merges_of_subword_nmt(counts, 1500)


@pytest.mark.parametrize(
    "counts",
    [
        pytest.param(
            {"~</w>a</w>~": 14, "ab": 3, "b</w>ba": 1}, id="marks of word ends inside words"
        ),
        pytest.param(
            {"b</w>b</w></w>": 9, "a</w>b</w>": 115, "a</w>~a": 109, "ab": 3}, id="words of marks"
        ),
        # subword-nmt sets rare pairs aside; what such a pair loses meanwhile must be subtracted.
        pytest.param(
            {"a</w>!": 84, "~aa</w></w>": 5, "~a</w>~": 3, "ab": 3}, id="rare pairs set aside"
        ),
    ],
)
def test_merges_equal_those_of_subword_nmt_even_where_it_counts_wrongly(counts):
    """Published results rest on the merges of subword-nmt, also on its errors."""
    assert our_merges(counts, 300) == merges_of_subword_nmt(counts, 300)


def test_merges_are_the_same_without_the_compiled_functions(monkeypatch):
    """Where no C compiler is installed, slower functions in Python are used."""
    counts = generated_counts(4, "abcdefghij", word_count=300, max_parts=5, max_count=100)
    merges = our_merges(counts, 400)

    # As if the compiled library did not exist.
    monkeypatch.setattr(native, "library", lambda: None)
    merges_in_python = our_merges(counts, 400)

    assert merges_in_python == merges
    assert len(merges) > 100


@pytest.mark.parametrize("counts", [{"a": 7}, {}], ids=["word of one letter", "no words"])
def test_words_without_pairs_give_no_merges_without_the_compiled_functions(monkeypatch, counts):
    monkeypatch.setattr(native, "library", lambda: None)

    assert our_merges(counts, 9) == []


def test_merges_of_the_phrasebook_equal_those_of_subword_nmt():
    """The phrasebook is the German-English text of the package: 3,000 sentences per language."""
    counts = Counter()
    for language in ("en", "de"):
        for sentence in phrasebook_sentences(language, 3000):
            counts.update(sentence.split(" "))

    merges = our_merges(counts, 800)

    assert merges == merges_of_subword_nmt(counts, 800)


def multi30k_lines(language):
    """Return the training sentences of Multi30k."""
    with gzip.open(mirror_path(MULTI30K) / f"train.{language}.gz", "rb") as file:
        return file.read().decode().split("\n")


def tanaka_lines(language):
    """Return the training sentences of the Tanaka corpus."""
    return read_lines(mirror_path(TANAKA) / f"train.{language}")


@needs(MIRROR, mirror_has(MULTI30K) and mirror_has(TANAKA))
@pytest.mark.slow
@pytest.mark.parametrize(
    ("corpus_lines", "languages"),
    [
        pytest.param(multi30k_lines, ["de", "en"], id="Multi30k de-en"),
        pytest.param(multi30k_lines, ["fr", "en"], id="Multi30k fr-en"),
        pytest.param(multi30k_lines, ["de", "fr"], id="Multi30k de-fr"),
        pytest.param(tanaka_lines, ["en", "ja"], id="Tanaka en-ja"),
    ],
)
def test_10000_merges_of_published_corpora_equal_those_of_subword_nmt(corpus_lines, languages):
    """The reference is the package subword-nmt, with which published results were made."""
    counts = Counter()
    for language in languages:
        for line in corpus_lines(language):
            counts.update(line.split(" "))
    del counts[""]

    assert our_merges(counts, 10_000) == merges_of_subword_nmt(counts, 10_000)
