from collections import Counter

import pytest

from bleuprint.dataset.subwords.vocabulary import BOS, EOS, PAD, SPECIALS, UNK, Vocabulary
from bleuprint.runtime.errors import UserError


def test_ids_go_by_count_and_then_by_code_point():
    vocabulary = Vocabulary.from_counts(Counter({"b": 2, "ä": 2, "a": 2, "z": 9, "A": 2}))
    assert vocabulary.tokens == [*SPECIALS, "z", "A", "a", "b", "ä"]
    assert vocabulary.encode(["z", "ä"]) == [4, 8]
    assert len(vocabulary) == 9


def test_a_limited_vocabulary_keeps_the_most_frequent_besides_the_special_symbols():
    counts = Counter({"a": 3, "c": 2, "b": 2, "d": 2, "e": 1, "<s>": 9})
    assert Vocabulary.from_counts(counts, max_size=3).tokens == [*SPECIALS, "a", "b", "c"]
    assert Vocabulary.from_counts(counts, min_count=2).tokens == [*SPECIALS, "a", "b", "c", "d"]
    assert Vocabulary.from_counts(counts, max_size=1, min_count=3).tokens == [*SPECIALS, "a"]
    assert Vocabulary.from_counts(counts, max_size=9, min_count=4).tokens == [*SPECIALS]


def test_decoding_leaves_out_all_but_the_unknown():
    vocabulary = Vocabulary.from_counts(Counter("ab"))
    assert vocabulary.encode(["a", "x", "b"]) == [4, UNK, 5]
    assert vocabulary.decode([BOS, 4, UNK, 5, EOS, PAD, PAD]) == ["a", "<unk>", "b"]


def test_written_and_read_back_with_odd_units(tmp_path):
    counts = Counter({"a@@": 3, "\x85": 2, "\u2028@@": 2, "\r": 1, "7": 1, "\x1c": 1})
    vocabulary = Vocabulary.from_counts(counts)
    vocabulary.write(tmp_path / "v.txt")
    again = Vocabulary.read(tmp_path / "v.txt")
    assert again.counts == vocabulary.counts
    assert again.encode(["\r", "a@@"]) == vocabulary.encode(["\r", "a@@"])
    # A line's number less one is the id.
    lines = (tmp_path / "v.txt").read_bytes().split(b"\n")
    assert lines[4] == b"a@@ 3" and vocabulary.encode(["a@@"]) == [4]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "its first lines are not <pad>, <s>, </s>, <unk>"),
        ("a 1\n", "its first lines are not <pad>, <s>, </s>, <unk>"),
        ("<pad> 0\n<s> 0\n<unk> 0\n</s> 0\na 1\n", "its first lines are not <pad>"),
        ("<pad> 0\n<s> 0\n</s> 0\n<unk> 0\nab\n", "line 5 is not a token, a space and a count"),
        ("<pad> 0\n<s> 0\n</s> 0\n<unk> 0\na b\n", "line 5 is not a token, a space and a count"),
    ],
)
def test_what_is_not_a_vocabulary_is_refused(tmp_path, text, problem):
    path = tmp_path / "v.txt"
    path.write_text(text)
    with pytest.raises(UserError) as error:
        Vocabulary.read(path)
    assert str(error.value).startswith(f"{path} is damaged: {problem}")
