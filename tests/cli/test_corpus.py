import pytest

from bleuprint.cli.corpus import pairs_as_text
from bleuprint.runtime.errors import UserError
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
        next(pairs_as_text(corpus, "train", start, stop))
