"""The notes of new-corpus on text that looks wrong."""

import re

from new_corpus import (
    ENGLISH_SENTENCES,
    FIVE_HUNDRED_PAIRS,
    GERMAN_SENTENCES,
    analyze_pairs,
    run_command,
    write_pairs,
)


def test_a_text_that_tokenization_changes_gets_a_note_with_its_bleu_ceiling(project, capsys):
    """The ceiling is the BLEU of the references after tokenization and detokenization."""
    pairs = []
    for english, german in FIVE_HUNDRED_PAIRS:
        # Detokenized, both forms of quotation are equal: Moses prints them without the spaces.
        pairs.append((f"' {english} '", f"' {german} '"))
        pairs.append((f"'{english}'", f"'{german}'"))
    write_pairs(project, pairs)

    run_command("bleuprint new-corpus inputs/mine.en inputs/mine.de")

    notes = capsys.readouterr().err
    assert re.search(r"note: BLEU ceiling of the test set is \d\d\.\d \(tokenize -\d", notes)
    assert "with vocabulary.sentencepiece restores all text" in notes


def test_pairs_in_another_language_than_the_file_name_says_are_noted(project):
    """mine.fr contains English: the note proposes to name the languages with --languages."""
    new = analyze_pairs(project, FIVE_HUNDRED_PAIRS, names=("mine.fr", "mine.de"))

    assert re.search("[01]% of the pairs look like fr and de. .*--languages", new.language_note)


def test_pairs_in_another_language_than_the_option_says_are_noted(project):
    """With `--languages fr de` for an English text, the note says to look at the text.

    It does not propose --languages, which the user has passed already.
    """
    new = analyze_pairs(project, FIVE_HUNDRED_PAIRS, languages=["fr", "de"])

    assert re.search("[01]% of the pairs look like fr and de. Look at the", new.language_note)
    assert "--languages" not in new.language_note


def test_a_language_code_that_language_id_does_not_know_is_noted(project, capsys):
    """The language identification has no model for qaa."""
    analyze_pairs(project, FIVE_HUNDRED_PAIRS, languages=["qaa", "de"])

    assert "the filter language_id does not know qaa" in capsys.readouterr().err


def test_a_target_that_is_shifted_by_a_line_is_noted(project, capsys):
    """The first German line is missing, so that each English line fits the German one before.

    The note names the first and the last line of the shifted part, to within 10 lines.
    """
    shifted_german = [*GERMAN_SENTENCES[1:], ""]
    shifted_pairs = list(zip(ENGLISH_SENTENCES, shifted_german, strict=True))

    analyze_pairs(project, shifted_pairs)

    note = re.search(
        r"do not fit line by line: lines (\d+) to (\S+) fit the target 1 line earlier",
        capsys.readouterr().err,
    )
    first_line = int(note[1])
    last_line = int(note[2].replace(",", ""))
    assert first_line <= 10
    assert last_line >= len(ENGLISH_SENTENCES) - 10


def test_parallel_text_in_the_expected_languages_gets_no_note(project, capsys):
    analyze_pairs(project, FIVE_HUNDRED_PAIRS, names=("mine.en", "mine.de"))

    notes = capsys.readouterr().err
    assert notes == ""


def test_a_text_with_an_empty_line_after_each_sentence_gets_no_note(project, capsys):
    """Half of such a text is empty on both sides; the sentences still fit line by line."""
    double_spaced_pairs = []
    for pair in FIVE_HUNDRED_PAIRS:
        double_spaced_pairs.append(pair)
        double_spaced_pairs.append(("", ""))

    analyze_pairs(project, double_spaced_pairs)

    notes = capsys.readouterr().err
    assert notes == ""


def test_a_test_set_of_two_word_lines_is_noted_as_too_short_for_bleu(project, capsys):
    """Lines of two words have no 4-grams: sacreBLEU gives even the references a score of 0."""
    pairs = []
    for number, (english, german) in enumerate(FIVE_HUNDRED_PAIRS):
        pairs.append((f"{english.split()[1]} x{number}a", f"{german.split()[1]} x{number}a"))
    write_pairs(project, pairs)

    run_command("bleuprint new-corpus inputs/mine.en inputs/mine.de --languages en chr")

    notes = capsys.readouterr().err
    assert "note: BLEU ceiling of the test set is 0.0 (line length -100.0): BLEU needs" in notes
    assert "compare systems by chrF2" in notes
