"""BLEU by length and accuracy of words, worked by hand and beside sacreBLEU's command line."""

import pytest

import result_trees as trees
from bleuprint.scoring.breakdown import by_length, word_accuracy
from bleuprint.scoring.metrics import METRICS
from measuring import translated_set
from scoring import example_texts, sacrebleu


def bleu_by_length(translations, references, lengths, language):
    """Return the entries of BLEU for lines of similar length.

    Args:
        translations: The translations.
        references: The references.
        lengths: The number of tokens of each line.
        language: The target language.
    """
    statistics = METRICS["bleu"].count(translated_set(translations, references, language))
    return list(by_length(METRICS["bleu"], statistics, lengths))


def test_lines_are_grouped_by_tens_of_tokens():
    """Each line's translation is perfect, so each group has BLEU 100."""
    lengths = [0, 1, 10, 11, 20, 21, 30, 31, 40, 41, 50, 51, 400]
    lines = ["one two three four"] * len(lengths)

    entries = bleu_by_length(translations=lines, references=lines, lengths=lengths, language="en")

    lines_by_group = {entry["group"]: entry["units"] for entry in entries}
    assert list(lines_by_group.items()) == [
        ("length 0", 1),
        ("length 1-10", 2),
        ("length 11-20", 2),
        ("length 21-30", 2),
        ("length 31-40", 2),
        ("length 41-50", 2),
        ("length over 50", 2),
    ]
    for entry in entries:
        assert round(entry["value"], 4) == 100.0


@pytest.mark.parametrize("language", ["de", "zh"])
def test_bleu_of_lines_of_similar_length_equals_sacrebleus_of_a_file_of_them(tmp_path, language):
    """Of 60 lines, every other one is said to have 5 tokens, and the others 25.

    SacreBLEU scores a file of the short lines, and one of the long ones.
    """
    references, translations, _ = example_texts(language, lines=60)
    lengths = [5, 25] * 30

    short_lines, long_lines = bleu_by_length(translations, references, lengths, language)

    for entry, group, first_line in (
        (short_lines, "length 1-10", 0),
        (long_lines, "length 21-30", 1),
    ):
        trees.write_lines(tmp_path / "references", references[first_line::2])
        trees.write_lines(tmp_path / "hypotheses", translations[first_line::2])
        options = ("-l", f"en-{language}", "-i", tmp_path / "hypotheses")
        expected = sacrebleu(tmp_path / "references", *options)
        assert entry["group"] == group
        assert entry["units"] == 30
        assert entry["value"] == expected["score"]


def test_word_accuracy_counts_correct_words_by_their_frequency_in_training():
    """Each word of a reference is in the group of its count in the training text.

    A pair of the result: how many words of the group the translations of their lines contain, and
    how many words the group has.
    """
    training_counts = {"the": 100, "cat": 99, "sat": 10, "on": 9, "a": 5, "mat": 4, "x": 2, "y": 1}
    training_counts["z"] = 0
    references = ["the cat sat on the mat", "a x y z", "z z"]
    translations = ["the cat on on", "mat x a", "z z z"]

    accuracy = word_accuracy(
        [line.split() for line in translations],
        [line.split() for line in references],
        training_counts,
    )

    assert accuracy == {
        "0": (2, 3),  # "z": not in line 2; in line 3 two of two, the third one is too many
        "1": (0, 1),  # "y" is missing
        "2-4": (1, 2),  # "x" is correct, "mat" is in the wrong line
        "5-9": (2, 2),  # "on", "a"
        "10-99": (1, 2),  # "cat" is correct, "sat" is missing
        "100+": (1, 2),  # "the" once instead of twice
    }


def test_word_accuracy_has_only_the_groups_that_occur():
    assert word_accuracy([["the"]], [["the"]], {"the": 100}) == {"100+": (1, 1)}
