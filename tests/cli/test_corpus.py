import pytest

from bleuprint.cli.corpus import pairs_as_text
from bleuprint.config.corpus import Units, Words
from bleuprint.runtime.errors import UserError
from bleuprint.text.tokenizers import Tokenize
from corpora import PAIRS
from prepared import prepare

SETS = {"train": PAIRS, "valid": [("a", "")], "test.x": [("b", "c")]}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return prepare(tmp_path_factory.mktemp("corpus"), SETS).binary


def test_pairs_are_counted_from_one_and_both_ends_are_in(corpus):
    shown = list(pairs_as_text(corpus, "train", 2, 3))
    assert shown == [
        "2\tWann fährt der nächste Zug?\tWhen does the next train leave?",
        "3\tEr hat drei Äpfel gekauft.\tHe has bought three apples.",
    ]
    assert [line.split("\t")[0] for line in pairs_as_text(corpus, "train", 1, 6)] == list("123456")


def test_all_of_a_set_is_what_went_into_it(tmp_path):
    words, spaces = Units(words=Words(False, 100, 1)), Tokenize("none", False, False, False)
    pairs = [(f"d {i % 7}", f"e {i % 7} .") for i in range(30)]
    train = [(f"d {i} d", f"e {i} . e") for i in range(7)]
    sets = {"train": train, "valid": [("d", "")], "test.x": pairs}
    corpus = prepare(tmp_path, sets, tokenize=spaces, units=words).binary
    expected = [f"{i}\t{source}\t{target}" for i, (source, target) in enumerate(pairs, 1)]
    assert list(pairs_as_text(corpus, "test.x", 1, 30)) == expected
    assert list(pairs_as_text(corpus, "test.x", 30, 30)) == expected[-1:]
    assert list(pairs_as_text(corpus, "valid", 1, 1)) == ["1\td\t"]


def test_subwords_are_shown_as_the_model_reads_them(corpus):
    (line,) = pairs_as_text(corpus, "train", 1, 1, subwords=True)
    number, source, target = line.split("\t")
    assert number == "1" and "@@ " in source and "</s>" not in source + target
    assert source.replace("@@ ", "") == "Die Katze schläft auf dem Ofen ."
    assert target.replace("@@ ", "") == "The cat is sleeping on the stove ."


@pytest.mark.parametrize(("start", "stop"), [(0, 3), (-2, 3), (3, 2), (1, 7), (7, 7)])
def test_a_range_that_is_not_there_is_refused_at_once(corpus, start, stop):
    message = f"pairs {start} to {stop} of train: it has 6, counted from 1"
    with pytest.raises(UserError, match=message):
        pairs_as_text(corpus, "train", start, stop)


def test_a_set_that_is_not_there_is_named(corpus):
    with pytest.raises(UserError, match=r"no set 'test'; there are: train, valid, test\.x"):
        pairs_as_text(corpus, "test", 1, 1)
