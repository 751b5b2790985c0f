"""Byte-pair encoding splits words as subword-nmt does, in C++ and without it."""

import io
import random
import subprocess
import sys
from collections import Counter
from contextlib import redirect_stderr
from pathlib import Path

import pytest
from subword_nmt import apply_bpe

from bleuprint.config.corpus import Bpe as BpeSettings
from bleuprint.dataset.learn_vocabulary import learn_codes
from bleuprint.dataset.subwords.bpe import Bpe, join
from bleuprint.dataset.subwords.vocabulary import write_counts
from bleuprint.runtime.errors import UserError
from corpora import lines_to_text

# The command of the package subword-nmt.
SUBWORD_NMT = Path(sys.executable).with_name("subword-nmt")

pytestmark = pytest.mark.usefixtures("with_and_without_native")


def learn(counts, num_merges):
    """Learn merges from word counts, and return the text of the file of codes."""
    return learn_codes("c", BpeSettings(num_merges=num_merges, joint=True, threshold=0), counts)


def generated_words(seed=3):
    """Return 400 words that consist of the same few parts, some of which look like marks."""
    generator = random.Random(seed)
    parts = ["ver", "kauf", "en", "lauf", "er", "ein", "ung", "bau", "t", "haus", "ä", "@", "x-"]
    words = []
    for _ in range(400):
        words.append("".join(generator.choices(parts, k=generator.randint(1, 4))))
    return words


def write_words(path, words):
    """Write a word per line."""
    path.write_text(lines_to_text(words))


def read_bpe_of_subword_nmt(codes_text, vocabulary=None):
    """Return the BPE object of subword-nmt, which prints a warning at its creation."""
    with redirect_stderr(io.StringIO()):
        return apply_bpe.BPE(io.StringIO(codes_text, newline="\n"), vocab=vocabulary)


@pytest.fixture
def codes(tmp_path):
    """A file of 60 merges of the generated words."""
    path = tmp_path / "codes"
    path.write_text(learn(Counter(generated_words()), 60))
    return path


def test_learned_codes_equal_those_of_the_command_of_subword_nmt(tmp_path):
    """The command `learn-bpe` writes a file of codes: the version, and a merge per line."""
    num_merges = 60
    words = generated_words()
    write_words(tmp_path / "text", words)
    command = [SUBWORD_NMT, "learn-bpe", "-s", str(num_merges)]
    command += ["-i", tmp_path / "text", "-o", tmp_path / "reference"]
    subprocess.run(command, check=True, capture_output=True)

    codes = learn(Counter(words), num_merges)

    assert codes == (tmp_path / "reference").read_text()
    lines_of_version = 1
    assert codes.count("\n") == lines_of_version + num_merges


# Words with characters at which Python would end a line.
ODD_COUNTS = {"a\rb": 9, "\x85b\x85": 5, "\ra\r": 9, "\r": 7, "\u2028\x1c": 4}


def test_merges_of_characters_that_end_lines_elsewhere_are_learned():
    codes = learn(ODD_COUNTS, 9)

    merges = ["a \r", "a\r b</w>", "\x85 b", "\x85b \x85</w>", "\u2028 \x1c</w>"]
    assert codes == "\n".join(["#version: 0.2", *merges, ""])


@pytest.mark.parametrize("word", ODD_COUNTS, ids=ascii)
def test_a_word_with_characters_that_end_lines_elsewhere_is_joined_again(tmp_path, word):
    """The words contain characters such as \u2028, at which str.splitlines would end a line."""
    (tmp_path / "codes").write_bytes(learn(ODD_COUNTS, num_merges=9).encode())

    bpe = Bpe(tmp_path / "codes")

    assert join(bpe.split(word)) == [word]


def test_words_are_split_as_by_the_command_of_subword_nmt(codes, tmp_path):
    """The words include some that the merges were not learned from, and an unknown letter: ŵ."""
    words_of_training = generated_words(seed=3)
    other_words = [*generated_words(seed=4), "ŵ", "ŵneu"]
    words = []
    for word in words_of_training + other_words:
        # Words that end in @@ are split differently on purpose, so that they can be joined again.
        if not word.endswith("@@"):
            words.append(word)
    write_words(tmp_path / "text", words)
    command = [SUBWORD_NMT, "apply-bpe", "-c", codes]
    command += ["-i", tmp_path / "text", "-o", tmp_path / "reference"]
    subprocess.run(command, check=True, capture_output=True)

    bpe = Bpe(codes)

    lines = [" ".join(bpe.split(word)) for word in words]
    assert lines == (tmp_path / "reference").read_text().split("\n")[:-1]


@pytest.mark.parametrize("has_vocabulary", [False, True], ids=["all subwords", "allowed subwords"])
def test_any_word_is_split_as_by_subword_nmt_and_joined_again(has_vocabulary, tmp_path):
    """`split` is the fast algorithm of bleuprint; `split_by_subword_nmt` calls the package.

    A file of allowed subwords limits the result: other subwords are split further.
    """
    generator = random.Random(11)
    counts = Counter()
    for _ in range(900):
        counts["".join(generator.choices("ab@\x01ŵ😀", k=generator.randint(1, 9)))] += 1
    header, *merges = learn(counts, 80).split("\n")[:-1]
    # A file of codes may have any order, so that some merges use symbols that come later, and it
    # may repeat merges.
    shuffled_merges = generator.sample(merges, len(merges))
    write_words(tmp_path / "codes", [header, *shuffled_merges, *merges[:9]])
    write_counts(tmp_path / "allowed", [("a@@", 9), ("b", 8), ("ab@@", 7), ("ŵa", 6)])

    bpe = Bpe(tmp_path / "codes", tmp_path / "allowed" if has_vocabulary else None)

    for word in [*counts, "aaaaaaaaa", "\0a\0", "\udc80b", "ab" * 400]:
        assert bpe.split(word) == bpe.split_by_subword_nmt(word)
        assert join(bpe.split(word)) == [word]


@pytest.mark.parametrize("dropout", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("has_vocabulary", [False, True], ids=["all subwords", "allowed subwords"])
def test_dropout_splits_as_by_subword_nmt_for_the_same_random_numbers(
    has_vocabulary, codes, tmp_path, dropout
):
    """BPE-dropout skips each merge with the probability `dropout`.

    Allowed subwords are those that occur at least 24 times; others are split further.
    """
    words = [word for word in generated_words(seed=5) if not word.endswith("@@")]
    words += ["t", "tttttttt"]
    subword_counts = Counter()
    for word in generated_words():
        subword_counts.update(Bpe(codes).split(word))
    allowed_subwords = {subword for subword, count in subword_counts.items() if count >= 24}
    write_counts(tmp_path / "allowed", subword_counts.most_common(len(allowed_subwords)))

    bpe = Bpe(codes, tmp_path / "allowed" if has_vocabulary else None)
    reference = read_bpe_of_subword_nmt(
        codes.read_text(), allowed_subwords if has_vocabulary else None
    )

    generator = random.Random(7)
    random.seed(7)  # subword-nmt draws from the global generator.
    for word in words:
        assert bpe.split(word, dropout, generator) == reference.segment_tokens([word], dropout)
    # If both have drawn equally many numbers, their next numbers are equal.
    assert generator.random() == random.random()


@pytest.mark.parametrize(
    ("word", "subwords"),
    [
        pytest.param("aaab", ["aa@@", "a@@", "b"], id="three letters a, then b"),
        pytest.param("aaaab", ["aa@@", "aa@@", "b"], id="four letters a, then b"),
        pytest.param("aaaaab", ["aa@@", "aa@@", "a@@", "b"], id="five letters a, then b"),
        pytest.param("baaab", ["b@@", "aa@@", "a@@", "b"], id="three letters a between two b"),
        # The last letter has the mark of a word's end, so that it is another symbol.
        pytest.param("aaaa", ["aa@@", "a@@", "a"], id="four letters a"),
    ],
)
def test_of_equal_letters_in_a_row_each_is_merged_once_from_the_left(tmp_path, word, subwords):
    """The only merge joins two letters a; in "aaab", it could apply at two overlapping places.

    The mark @@ says that the word continues after the subword.
    """
    only_merge = "a a"
    (tmp_path / "codes").write_text(f"#version: 0.2\n{only_merge}\n")

    bpe = Bpe(tmp_path / "codes")

    assert bpe.split(word) == subwords
    # With a generator, the algorithm for dropout is used, here with probability 0.
    assert bpe.split(word, 0.0, random.Random(1)) == subwords


@pytest.mark.parametrize("dropout", [0.2, 0.6])
def test_dropout_splits_equal_letters_in_a_row_as_by_subword_nmt(tmp_path, dropout):
    """BPE-dropout skips merges at random; in "aaa", a merge of two a has overlapping places."""
    generator = random.Random(4)
    words = []
    for _ in range(300):
        words.append("".join(generator.choices("aab", k=generator.randint(1, 12))))
    codes_text = "#version: 0.2\na a\naa aa\na aa\nb b\naa b</w>\n"
    (tmp_path / "codes").write_text(codes_text)

    bpe = Bpe(tmp_path / "codes")
    reference = read_bpe_of_subword_nmt(codes_text)

    generator = random.Random(8)
    random.seed(8)  # subword-nmt draws from the global generator.
    for word in words:
        subwords = bpe.split(word, dropout, generator)
        assert subwords == reference.segment_tokens([word], dropout)
        assert join(subwords) == [word]


@pytest.mark.parametrize("num_merges", [0, 60])
@pytest.mark.parametrize(
    "word", ["@@", "a@@", "b", "@", "@@@", "@@@@", "</w>", "a</w>", "#version:"]
)
def test_a_word_that_looks_like_a_mark_is_joined_again(tmp_path, num_merges, word):
    """In merges, </w> marks the end of a word; @@ says that a word continues after a subword."""
    counts = dict.fromkeys(["@@", "a@@", "@@@", "<s>"], 3)
    (tmp_path / "codes").write_text(learn(counts, num_merges))

    bpe = Bpe(tmp_path / "codes")
    subwords = bpe.split(word)
    subwords_with_dropout = bpe.split(word, 0.5, random.Random(1))

    assert join(subwords) == [word]
    assert join(subwords_with_dropout) == [word]


@pytest.mark.parametrize("num_merges", [0, 60])
def test_the_word_of_two_at_signs_is_split_into_a_marked_and_an_unmarked_subword(
    tmp_path, num_merges
):
    """The mark @@ says that a word continues: one subword "@@" would join with the next word."""
    counts = dict.fromkeys(["@@", "a@@", "@@@", "<s>"], 3)
    (tmp_path / "codes").write_text(learn(counts, num_merges))

    subwords = Bpe(tmp_path / "codes").split("@@")

    first_sign_with_mark = "@" + "@@"
    second_sign = "@"
    assert subwords == [first_sign_with_mark, second_sign]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        pytest.param("", "line 1 is not #version: 0.2", id="empty file"),
        pytest.param("a b\n", "line 1 is not #version: 0.2", id="no version"),
        pytest.param(
            "#version: 0.2\na b\nabc\n",
            "line 3 is not two symbols and a space",
            id="one symbol",
        ),
        pytest.param(
            "#version: 0.2\na b c\n",
            "line 2 is not two symbols and a space",
            id="three symbols",
        ),
        pytest.param(
            "#version: 0.2\n ab\n",
            "line 2 is not two symbols and a space",
            id="empty first symbol",
        ),
        pytest.param(
            "#version: 0.2\nab \n",
            "line 2 is not two symbols and a space",
            id="empty second symbol",
        ),
    ],
)
def test_a_file_that_contains_no_codes_is_refused(tmp_path, content, problem):
    """A file of codes begins with its version; each further line is a merge of two symbols."""
    path = tmp_path / "codes"
    path.write_text(content)

    with pytest.raises(UserError) as error:
        Bpe(path)

    assert str(error.value).startswith(f"{path} is damaged: {problem}")


@pytest.mark.parametrize(
    ("num_merges", "counts"),
    [
        pytest.param(0, {"haus": 9}, id="no merges requested"),
        pytest.param(9, {"a": 5, "b": 4}, id="words of one letter"),
        pytest.param(9, {}, id="no words"),
    ],
)
def test_without_merges_words_are_split_into_characters(num_merges, counts, tmp_path):
    """The mark @@ says that the word continues after a subword."""
    codes = learn(counts, num_merges)
    (tmp_path / "codes").write_text(codes)
    subwords = Bpe(tmp_path / "codes").split("haus")

    assert codes == "#version: 0.2\n"  # No merge follows.
    assert subwords == ["h@@", "a@@", "u@@", "s"]


@pytest.mark.parametrize(
    ("subwords", "words"),
    [
        # A model may end its output within a word.
        pytest.param(["a@@", "b", "c@@"], ["ab", "c"], id="last word is incomplete"),
        pytest.param([], [], id="no subwords"),
    ],
)
def test_any_list_of_subwords_is_joined_to_words(subwords, words):
    assert join(subwords) == words


def test_a_word_of_one_character_is_never_split(tmp_path):
    """In files of codes, </w> marks the end of a word, so that "a" is the symbol "a</w>".

    These merges were learned from words that contain "</w>" and spell this symbol. Since "a" is not
    an allowed subword, it would be split into a, <, / and w>.
    """
    (tmp_path / "codes").write_text("#version: 0.2\na <\nw >\na< /\na</ w>\n")
    (tmp_path / "allowed").write_text("b 5\n")

    subwords = Bpe(tmp_path / "codes", tmp_path / "allowed").split("a")

    assert subwords == ["a"]
