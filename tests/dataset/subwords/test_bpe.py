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

SUBWORD_NMT = Path(sys.executable).with_name("subword-nmt")


# words are split in C++, and by subword-nmt
pytestmark = pytest.mark.usefixtures("with_and_without_native")


def settings(merges):
    return BpeSettings(num_merges=merges, joint=True, threshold=0)


def words(seed=3, count=400):
    """Made-up words whose parts recur."""
    draw = random.Random(seed)
    parts = ["ver", "kauf", "en", "lauf", "er", "ein", "ung", "bau", "t", "haus", "ä", "@", "x-"]
    return ["".join(draw.choices(parts, k=draw.randint(1, 4))) for _ in range(count)]


@pytest.fixture
def codes(tmp_path):
    path = tmp_path / "codes"
    path.write_text(learn_codes("c", settings(60), Counter(words())))
    return path


def test_codes_are_those_of_the_command_line(tmp_path):
    (tmp_path / "text").write_text("".join(f"{word}\n" for word in words()))
    options = ["-s", "60", "-i", tmp_path / "text", "-o", tmp_path / "ref"]
    subprocess.run([SUBWORD_NMT, "learn-bpe", *options], check=True, capture_output=True)
    found = learn_codes("c", settings(60), Counter(words()))
    assert found == (tmp_path / "ref").read_text()
    assert found.count("\n") == 61


def test_what_python_takes_for_the_end_of_a_line_is_learnt_like_the_rest(tmp_path):
    odd = {"a\rb": 9, "\x85b\x85": 5, "\ra\r": 9, "\r": 7, "\u2028\x1c": 4}
    path = tmp_path / "codes"
    path.write_bytes(learn_codes("c", settings(9), odd).encode())
    merges = ["a \r", "a\r b</w>", "\x85 b", "\x85b \x85</w>", "\u2028 \x1c</w>"]
    assert path.read_bytes().decode() == "\n".join(["#version: 0.2", *merges, ""])
    for word in odd:
        assert join(Bpe(path).split(word)) == [word]


def test_units_are_those_of_the_command_line(codes, tmp_path):
    # Where a word ends in @@ ours differ on purpose; see below.
    text = [word for word in words() + words(seed=4) + ["ŵ", "ŵneu"] if not word.endswith("@@")]
    (tmp_path / "text").write_text("".join(f"{word}\n" for word in text))
    options = ["-c", codes, "-i", tmp_path / "text", "-o", tmp_path / "ref"]
    subprocess.run([SUBWORD_NMT, "apply-bpe", *options], check=True, capture_output=True)
    bpe = Bpe(codes)
    found = [" ".join(bpe.split(word)) for word in text]
    assert found == (tmp_path / "ref").read_text().split("\n")[:-1]


@pytest.mark.parametrize("restricted", [False, True])
def test_any_word_is_split_as_by_subword_nmt(restricted, tmp_path):
    draw = random.Random(11)
    counts = Counter("".join(draw.choices("ab@\x01ŵ😀", k=draw.randint(1, 9))) for _ in range(900))
    codes = learn_codes("c", settings(80), counts)
    header, *merges = codes.split("\n")[:-1]
    # in another order, some of them twice: what has no parts is a merge, too
    lines = [header, *draw.sample(merges, len(merges)), *merges[:9]]
    (tmp_path / "codes").write_text("".join(f"{line}\n" for line in lines))
    write_counts(tmp_path / "allowed", [("a@@", 9), ("b", 8), ("ab@@", 7), ("ŵa", 6)])
    bpe = Bpe(tmp_path / "codes", tmp_path / "allowed" if restricted else None)
    for word in [*counts, "aaaaaaaaa", "\0a\0", "\udc80b", "ab" * 400]:
        assert bpe.split(word) == bpe.split_by_subword_nmt(word)
        assert join(bpe.split(word)) == [word]


@pytest.mark.parametrize("restricted", [False, True])
def test_dropout_is_that_of_subword_nmt_for_the_same_random_numbers(restricted, codes, tmp_path):
    text = [word for word in words(seed=5) if not word.endswith("@@")] + ["t", "tttttttt"]
    plain = Counter(unit for word in words() for unit in Bpe(codes).split(word))
    allowed = {unit for unit, count in plain.items() if count >= 24}
    write_counts(tmp_path / "allowed", plain.most_common(len(allowed)))
    ours = Bpe(codes, tmp_path / "allowed" if restricted else None)
    with redirect_stderr(io.StringIO()):
        text_of_codes = io.StringIO(codes.read_text(), newline="\n")
        reference = apply_bpe.BPE(text_of_codes, vocab=allowed if restricted else None)
    for dropout in (0.1, 0.5, 0.9):
        random.seed(7)
        numbers = random.Random(7)
        drawn = [ours.split(word, dropout, numbers) for word in text]
        assert drawn == [reference.segment_tokens([word], dropout) for word in text]
        assert random.random() == numbers.random()


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        # the only merge joins a and a: from the left, and each letter once
        ("aaab", ["aa@@", "a@@", "b"]),
        ("aaaab", ["aa@@", "aa@@", "b"]),
        ("aaaaab", ["aa@@", "aa@@", "a@@", "b"]),
        ("baaab", ["b@@", "aa@@", "a@@", "b"]),
        # the last a has the mark of the end, and so is another symbol
        ("aaaa", ["aa@@", "a@@", "a"]),
    ],
)
def test_dropout_merges_each_of_several_equal_letters_once(tmp_path, word, expected):
    (tmp_path / "codes").write_text("#version: 0.2\na a\n")
    bpe = Bpe(tmp_path / "codes")
    assert bpe.split(word, 0.0, random.Random(1)) == expected
    assert bpe.split(word) == expected


def test_dropout_on_rows_of_equal_letters_is_that_of_subword_nmt(tmp_path):
    draw = random.Random(4)
    text = ["".join(draw.choices("aab", k=draw.randint(1, 12))) for _ in range(300)]
    path = tmp_path / "codes"
    path.write_text("#version: 0.2\na a\naa aa\na aa\nb b\naa b</w>\n")
    ours = Bpe(path)
    with redirect_stderr(io.StringIO()):
        reference = apply_bpe.BPE(io.StringIO(path.read_text()))
    for dropout in (0.2, 0.6):
        random.seed(8)
        numbers = random.Random(8)
        units = [ours.split(word, dropout, numbers) for word in text]
        assert units == [reference.segment_tokens([word], dropout) for word in text]
        assert [join(each) for each in units] == [[word] for word in text]


@pytest.mark.parametrize("merges", [0, 60])
def test_words_that_look_like_marks_come_back(tmp_path, merges):
    counts = dict.fromkeys(["@@", "a@@", "@@@", "<s>"], 3)
    (tmp_path / "codes").write_text(learn_codes("c", settings(merges), counts))
    bpe, numbers = Bpe(tmp_path / "codes"), random.Random(1)
    text = ["@@", "a@@", "b", "@", "@@@", "@@@@", "</w>", "a</w>", "#version:"]
    for word in text:
        assert join(bpe.split(word)) == join(bpe.split(word, 0.5, numbers)) == [word]
    assert bpe.split("@@") == ["@@@", "@"]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "line 1 is not #version: 0.2"),
        ("a b\n", "line 1 is not #version: 0.2"),
        ("#version: 0.2\na b\nabc\n", "line 3 is not two symbols and a space"),
        ("#version: 0.2\na b c\n", "line 2 is not two symbols and a space"),
        ("#version: 0.2\n ab\n", "line 2 is not two symbols and a space"),
        ("#version: 0.2\nab \n", "line 2 is not two symbols and a space"),
    ],
)
def test_what_is_not_codes_is_refused(tmp_path, content, problem):
    path = tmp_path / "codes"
    path.write_text(content)
    with pytest.raises(UserError) as error:
        Bpe(path)
    assert str(error.value).startswith(f"{path} is damaged: {problem}")


@pytest.mark.parametrize(("merges", "counts"), [(0, {"haus": 9}), (9, {"a": 5, "b": 4}), (9, {})])
def test_no_merges_leave_characters(merges, counts, tmp_path):
    codes = learn_codes("c", settings(merges), counts)
    assert codes == "#version: 0.2\n"
    (tmp_path / "codes").write_text(codes)
    assert Bpe(tmp_path / "codes").split("haus") == ["h@@", "a@@", "u@@", "s"]


def test_a_unit_continued_by_nothing_still_makes_a_token():
    assert join(["a@@", "b", "c@@"]) == ["ab", "c"]
    assert join([]) == []


def test_a_word_of_one_character_is_never_split(tmp_path):
    """Merges learned from words that contain the mark of a word's end may spell "a</w>" itself."""
    (tmp_path / "codes").write_text("#version: 0.2\na <\nw >\na< /\na</ w>\n")
    (tmp_path / "allowed").write_text("b 5\n")
    assert Bpe(tmp_path / "codes", tmp_path / "allowed").split("a") == ["a"]
