"""The pairs that remain after the rules, as new-corpus counts and explains them."""

import re

import pytest

from bleuprint.config.experiment import load_settings
from new_corpus import (
    ENGLISH_SENTENCES,
    FIVE_HUNDRED_PAIRS,
    run_command,
    write_pairs,
)


@pytest.fixture
def eight_hundred_pairs(project):
    """Write 500 good pairs, 200 whose sides are equal, and 100 of the good ones again."""
    copies = []
    for number, english in enumerate(ENGLISH_SENTENCES[:200]):
        copies.append((f"{english} {number}", f"{english} {number}"))
    write_pairs(project, [*FIVE_HUNDRED_PAIRS, *copies, *FIVE_HUNDRED_PAIRS[:100]])


@pytest.mark.usefixtures("eight_hundred_pairs")
def test_pairs_that_remain_after_the_rules_are_counted(capsys):
    """Of 800 pairs, 200 have equal sides and 100 are duplicates: 500 remain.

    A tenth of these, 50, is the validation set, another the test set.
    """
    run_command("bleuprint new-corpus inputs/mine.en inputs/mine.de")

    output = capsys.readouterr().out
    count_line = "500 of 800 pairs remain after the rules: train 400, valid 50, test 50"
    assert count_line in output.splitlines()
    assert "400 training pairs are few" in output
    # The precision of BLEU is stated for test sets of 100 pairs or more.
    assert "measures BLEU" not in output


@pytest.mark.usefixtures("eight_hundred_pairs")
def test_rules_that_drop_many_pairs_are_noted(capsys):
    """Of the 800 pairs, dedup drops 100 duplicates, then the filter drops 200 copies of 700."""
    run_command("bleuprint new-corpus inputs/mine.en inputs/mine.de")

    dedup_note, filter_note, test_set_note = capsys.readouterr().err.splitlines()
    assert "rule duplicate_pair of dedup drops 100 of 800 pairs (12%)" in dedup_note
    assert "rule identical of filter drops 200 of 700 pairs (29%)" in filter_note
    assert filter_note.endswith("To see some: bleuprint inspect mine-en-de")
    assert "the test set has only 50 pairs" in test_set_note


@pytest.mark.usefixtures("eight_hundred_pairs")
def test_inspect_counts_the_same_pairs_as_new_corpus(capsys):
    """Of 800 pairs, 500 remain; new-corpus prints: train 400, valid 50, test 50."""
    run_command("bleuprint new-corpus inputs/mine.en inputs/mine.de")
    capsys.readouterr()

    run_command("bleuprint inspect mine-en-de --samples 1")

    last_line = capsys.readouterr().out.splitlines()[-1]
    assert last_line == "pairs that remain: train 400, valid 50, test.held-out 50"


def names_of_places(count):
    """English and Croatian names, which the filter language_id takes for other languages."""
    return [(f"Nikola Tesla {n} Belgrade", f"Nikola Tesla {n} Beograd") for n in range(count)]


@pytest.mark.parametrize("sentence_count", [0, 30])
def test_an_entry_omits_language_id_if_the_rule_would_leave_too_few_pairs(
    project, capsys, sentence_count
):
    """The text has 300 pairs of names such as `Nikola Tesla 7 Belgrade`, and a few sentences.

    language_id takes the names for other languages and would drop them. What it would leave, 0
    or 30 sentences, is too few for a useful test set.
    """
    sentences = []
    for number in range(100, 100 + sentence_count):
        english = f"{number} dogs are running through the green forest."
        croatian = f"{number} pasa trče kroz šumu."
        sentences.append((english, croatian))
    pair_count = 300 + sentence_count
    write_pairs(project, [*names_of_places(300), *sentences], names=("nm.en", "nm.hr"))

    run_command("bleuprint new-corpus inputs/nm.en inputs/nm.hr")

    output = capsys.readouterr()
    (note,) = [line for line in output.err.splitlines() if "language" in line]
    assert re.search(rf"language_id would drop 3\d\d of {pair_count} pairs, so the entry", note)
    assert note.endswith("If it is not, remove the entry and add: --languages SOURCE TARGET")
    rules = [rule.name() for rule in load_settings().corpora["nm-en-hr"].filter]
    assert rules == ["identical", "length", "length_ratio"]
    assert f"{pair_count} of {pair_count} pairs remain after the rules" in output.out


def test_the_note_on_language_id_omits_the_advice_that_the_user_has_followed(project, capsys):
    """Without --languages in the command, the note advises it. Here the command contains it."""
    write_pairs(project, names_of_places(300), names=("a.txt", "b.txt"))

    run_command("bleuprint new-corpus inputs/a.txt inputs/b.txt --languages en hr")

    notes = capsys.readouterr().err
    assert "language_id would drop 300 of 300 pairs, so the entry omits it" in notes
    assert "--languages" not in notes


def test_an_entry_keeps_language_id_if_the_rule_leaves_enough_pairs(project, capsys):
    """The rule drops 600 pairs of names, more than half of the text, and leaves 500 sentences."""
    write_pairs(project, [*names_of_places(600), *FIVE_HUNDRED_PAIRS])

    run_command("bleuprint new-corpus inputs/mine.en inputs/mine.de")

    rules = {rule.name() for rule in load_settings().corpora["mine-en-de"].filter}
    assert "language_id" in rules
    assert "would drop" not in capsys.readouterr().err
