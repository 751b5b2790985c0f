"""A vocabulary numbers tokens by frequency, after four special symbols."""

from collections import Counter

import pytest

from bleuprint.dataset.subwords.vocabulary import BOS, EOS, PAD, SPECIALS, UNK, Vocabulary
from bleuprint.runtime.errors import UserError


def test_tokens_are_sorted_by_count_and_then_by_code_point():
    """The ids 0 to 3 are those of the special symbols; z, with the highest count, is next."""
    vocabulary = Vocabulary.from_counts(Counter({"b": 2, "ä": 2, "a": 2, "z": 9, "A": 2}))

    assert vocabulary.tokens == [*SPECIALS, "z", "A", "a", "b", "ä"]
    assert vocabulary.encode(["z", "ä"]) == [4, 8]
    assert len(vocabulary) == 4 + 5


@pytest.mark.parametrize(
    ("limits", "tokens"),
    [
        pytest.param({"max_size": 3}, ["a", "b", "c"], id="three tokens"),
        pytest.param({"min_count": 2}, ["a", "b", "c", "d"], id="count of 2"),
        pytest.param({"max_size": 1, "min_count": 3}, ["a"], id="one token with a count of 3"),
        pytest.param({"max_size": 9, "min_count": 4}, [], id="no token is frequent enough"),
    ],
)
def test_a_limited_vocabulary_keeps_the_most_frequent_tokens_and_the_special_symbols(
    limits, tokens
):
    """The text also contains "<s>", the name of a special symbol, which is not added again."""
    counts = Counter({"a": 3, "c": 2, "b": 2, "d": 2, "e": 1, "<s>": 9})

    vocabulary = Vocabulary.from_counts(counts, **limits)

    assert vocabulary.tokens == [*SPECIALS, *tokens]


def test_a_token_that_the_vocabulary_lacks_is_encoded_as_unk():
    vocabulary = Vocabulary.from_counts(Counter("ab"))

    assert vocabulary.encode(["a", "x", "b"]) == [4, UNK, 5]


def test_decoding_removes_all_special_symbols_but_unk():
    vocabulary = Vocabulary.from_counts(Counter("ab"))

    assert vocabulary.decode([BOS, 4, UNK, 5, EOS, PAD, PAD]) == ["a", "<unk>", "b"]


# Tokens with characters at which other programs would end a line.
ODD_COUNTS = Counter({"a@@": 3, "\x85": 2, "\u2028@@": 2, "\r": 1, "7": 1, "\x1c": 1})


def test_a_vocabulary_with_odd_tokens_is_read_back(tmp_path):
    """The file has a token per line; some tokens are characters at which programs end lines."""
    vocabulary = Vocabulary.from_counts(ODD_COUNTS)
    vocabulary.write(tmp_path / "v.txt")

    vocabulary_read = Vocabulary.read(tmp_path / "v.txt")

    assert vocabulary_read.counts == vocabulary.counts
    assert vocabulary_read.encode(["\r", "a@@"]) == vocabulary.encode(["\r", "a@@"])


def test_the_file_of_a_vocabulary_has_a_line_per_token_in_the_order_of_ids(tmp_path):
    """The first four lines, with the ids 0 to 3, are those of the special symbols."""
    vocabulary = Vocabulary.from_counts(Counter({"a@@": 3, "\x85": 2, "\r": 1}))

    vocabulary.write(tmp_path / "v.txt")

    lines = (tmp_path / "v.txt").read_bytes().split(b"\n")
    token_id = vocabulary.encode(["a@@"])[0]
    assert token_id == 4
    assert lines[token_id] == b"a@@ 3"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("", "its first lines are not <pad>, <s>, </s>, <unk>", id="empty file"),
        pytest.param(
            "a 1\n", "its first lines are not <pad>, <s>, </s>, <unk>", id="no special symbols"
        ),
        pytest.param(
            "<pad> 0\n<s> 0\n<unk> 0\n</s> 0\na 1\n",
            "its first lines are not <pad>",
            id="special symbols in another order",
        ),
        pytest.param(
            "<pad> 0\n<s> 0\n</s> 0\n<unk> 0\nab\n",
            "line 5 is not a token, a space and a count",
            id="token without a count",
        ),
        pytest.param(
            "<pad> 0\n<s> 0\n</s> 0\n<unk> 0\na b\n",
            "line 5 is not a token, a space and a count",
            id="count that is no number",
        ),
    ],
)
def test_a_file_that_is_no_vocabulary_is_refused(tmp_path, text, problem):
    """The file begins with the four special symbols; each line is a token and its count."""
    path = tmp_path / "v.txt"
    path.write_text(text)

    with pytest.raises(UserError) as error:
        Vocabulary.read(path)

    assert str(error.value).startswith(f"{path} is damaged: {problem}")
