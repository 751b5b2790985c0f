"""BLEU by length and accuracy of words, worked by hand and beside sacreBLEU's command line."""

import pytest

import result_trees as trees
from bleuprint.scoring.breakdown import by_length, word_accuracy
from bleuprint.scoring.metrics import METRICS
from measuring import texts_of
from scoring import sacrebleu, text


def bleu_by_length(hypotheses, references, tokens, language):
    statistics = METRICS["bleu"].count(texts_of(hypotheses, references, language))
    return list(by_length(METRICS["bleu"], statistics, tokens))


def test_buckets_begin_and_end_where_they_say():
    tokens = [0, 1, 10, 11, 20, 21, 30, 31, 40, 41, 50, 51, 400]
    lines = ["one two three four"] * len(tokens)
    found = bleu_by_length(lines, lines, tokens, "en")
    names = ["0", "1-10", "11-20", "21-30", "31-40", "41-50", "over 50"]
    assert [(one["group"], one["units"]) for one in found] == list(
        zip([f"length {name}" for name in names], [1, *[2] * 6], strict=True)
    )
    assert {round(one["value"], 4) for one in found} == {100.0}


@pytest.mark.parametrize("language", ["de", "zh"])
def test_each_bucket_equals_the_command_line(tmp_path, language):
    references, good, _ = text(language)
    tokens = [5 + i % 2 * 20 for i in range(len(references))]
    for bucket, found in enumerate(bleu_by_length(good, references, tokens, language)):
        for name, lines in (("references", references), ("hypotheses", good)):
            trees.write_lines(tmp_path / name, lines[bucket::2])
        options = ("-l", f"en-{language}", "-i", tmp_path / "hypotheses")
        theirs = sacrebleu(tmp_path / "references", *options)
        assert found["group"] == ("length 1-10", "length 21-30")[bucket]
        assert (found["units"], found["value"]) == (30, theirs["score"])


def test_word_accuracy_worked_by_hand():
    counts = {"the": 100, "cat": 99, "sat": 10, "on": 9, "a": 5, "mat": 4, "x": 2, "y": 1, "z": 0}
    references = ["the cat sat on the mat", "a x y z", "z z"]
    # "the" once of twice; "mat" is in the wrong line; of three z only two are in the reference
    found = ["the cat on on", "mat x a", "z z z"]
    result = word_accuracy(
        [line.split() for line in found], [line.split() for line in references], counts
    )
    assert result == {
        "0": (2, 3),
        "1": (0, 1),
        "2-4": (1, 2),
        "5-9": (2, 2),
        "10-99": (1, 2),
        "100+": (1, 2),
    }
    assert word_accuracy([["the"]], [["the"]], counts) == {"100+": (1, 1)}
