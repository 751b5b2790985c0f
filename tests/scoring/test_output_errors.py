"""Errors of translations: counted by hand, without those of the references."""

import dataclasses

import pytest

import result_trees as trees
from bleuprint.scoring.metric import TranslatedSet
from bleuprint.scoring.output_errors import (
    OUTPUT_ERRORS,
    has_loop,
    is_balanced,
)
from bleuprint.text.tokenizers import Tokenize, tokenizer_for
from measuring import translated_set
from scoring import SEPARATORS

# A sentence with a number, a placeholder and brackets, and its correct translation.
ENGLISH = "Anna pays 20 euros (not more) to {name} in the old town of Vienna."
GERMAN = "Anna zahlt 20 Euro (nicht mehr) an {name} in der Altstadt von Wien."


@pytest.fixture
def corpus(tmp_path):
    """Return a corpus from English to German whose tokens are separated by spaces."""
    corpus = trees.settings_in(tmp_path).corpus("news-en-de")
    return dataclasses.replace(corpus, tokenize=dataclasses.replace(corpus.tokenize, name="none"))


def count_errors(sources, references, outputs, corpus, cut=()):
    """Count the errors of translations.

    Args:
        sources: The source sentences.
        references: Their reference translations.
        outputs: The translations of a system.
        corpus: The settings of the corpus.
        cut: The numbers, from 1, of the lines that the maximum length cut off.

    Returns:
        For each error the counts of each line: [1 if the output has the error, 1 if the line
        counts].
    """
    texts = TranslatedSet(
        sources, references, outputs, corpus, translated_set([], []).description, cut
    )
    counts_by_error = {}
    for error in OUTPUT_ERRORS:
        counts = error.count(texts)
        if counts is not None:
            counts_by_error[error.key] = counts.tolist()
    return counts_by_error


def errors_of(output, corpus, source=ENGLISH, reference=GERMAN):
    """Return the names of the errors of one translation."""
    counts_by_error = count_errors([source], [reference], [output], corpus)
    return {error for error, ((has_error, _),) in counts_by_error.items() if has_error}


@pytest.mark.parametrize(
    "output",
    [
        pytest.param(GERMAN, id="the reference itself"),
        pytest.param(GERMAN + " und dann noch mehr", id="a few words more"),
        pytest.param(GERMAN.replace("der", "der der"), id="a word twice"),
    ],
)
def test_a_correct_translation_has_no_error(corpus, output):
    assert errors_of(output, corpus) == set()


@pytest.mark.parametrize(
    ("output", "expected_errors"),
    [
        pytest.param(" \u00a0", {"empty"}, id="only spaces"),
        pytest.param("Anna zahlt (20) {name}.", {"too short"}, id="too short"),
        pytest.param(
            "Anna paie 20 euros (pas plus) à {name} dans la vieille ville.",
            {"wrong language"},
            id="French instead of German",
        ),
        pytest.param(
            ENGLISH.lower(), {"wrong language", "untranslated"}, id="the source in lower case"
        ),
        pytest.param(GERMAN.replace("20", "21"), {"numbers"}, id="another number"),
        pytest.param(GERMAN.replace("20 ", ""), {"numbers"}, id="no number"),
        pytest.param(GERMAN.replace("{name}", "Name"), {"URLs, placeholders"}, id="no placeholder"),
        pytest.param(GERMAN.replace("der", "der der der"), {"repetition"}, id="a word three times"),
        pytest.param(GERMAN.replace("Altstadt", "<unk>"), {"unknown token"}, id="unknown token"),
        pytest.param(GERMAN.replace("mehr)", "mehr"), {"brackets"}, id="no closing bracket"),
    ],
)
def test_an_error_is_reported_without_any_other(corpus, output, expected_errors):
    """The source is "Anna pays 20 euros (not more) to {name} in the old town of Vienna."."""
    assert errors_of(output, corpus) == {"any error", *expected_errors}


def test_a_translation_that_the_maximum_length_cut_off_has_an_error(corpus):
    """Decoding stopped at the maximum length in the lines 2 and 3; line 3 also has a wrong number.

    The counts of a line are 1 if it has the error, and 1 because the line counts.
    """
    wrong_number = GERMAN.replace("20", "21")
    outputs = [GERMAN, GERMAN, wrong_number]

    counts = count_errors([ENGLISH] * 3, [GERMAN] * 3, outputs, corpus, cut={2, 3})

    assert counts["cut off"] == [[0, 1], [1, 1], [1, 1]]
    assert counts["any error"] == [[0, 1], [1, 1], [1, 1]]


def test_cut_off_lines_change_no_other_error(corpus):
    """The lines 2 and 3 are cut off at the maximum length; line 3 also has a wrong number."""
    wrong_number = GERMAN.replace("20", "21")
    texts = ([ENGLISH] * 3, [GERMAN] * 3, [GERMAN, GERMAN, wrong_number])

    counts = count_errors(*texts, corpus, cut=())
    counts_with_cut = count_errors(*texts, corpus, cut={2, 3})

    assert "cut off" not in counts
    assert counts["any error"] == [[0, 1], [0, 1], [1, 1]]
    changed = {name for name in counts_with_cut if counts_with_cut[name] != counts.get(name)}
    assert changed == {"any error", "cut off"}


@pytest.mark.parametrize(
    ("output", "expected_errors"),
    [
        pytest.param(
            "Schreiben Sie an anna@example.org, oder siehe https://example.org/a.",
            set(),
            id="both kept",
        ),
        pytest.param(
            "Schreiben Sie an anna@example.org, oder siehe https://example.org/b!",
            {"any error", "URLs, placeholders"},
            id="another URL",
        ),
        pytest.param(
            "Schreiben Sie an ana@example.org, oder siehe https://example.org/a!",
            {"any error", "URLs, placeholders"},
            id="another e-mail address",
        ),
    ],
)
def test_a_translation_keeps_the_addresses_of_its_source(corpus, output, expected_errors):
    source = "Write to anna@example.org, or see https://example.org/a."
    reference = "Schreiben Sie an anna@example.org, oder siehe https://example.org/a!"

    assert errors_of(output, corpus, source, reference) == expected_errors


@pytest.fixture
def moses_corpus(corpus):
    """Return a corpus with plain Moses tokens, which Moses does not put together as they were."""
    plain_moses = Tokenize("moses", lowercase=False, hyphens=False, escape=False, plain=True)
    return dataclasses.replace(corpus, tokenize=plain_moses)


COPIED_TEXTS = ["name@host.org", "http://a.b/c?d=e", "%(count)s", "1'000", "9:15"]


@pytest.mark.parametrize("copied", COPIED_TEXTS)
def test_spaces_that_the_tokenizer_adds_to_addresses_and_numbers_are_no_error(moses_corpus, copied):
    """A translation must copy addresses and numbers, such as name@host.org and 1'000.

    Moses splits them into tokens and prints `name @ host.org` and `1 '000`: the system made no
    error.
    """
    source = ENGLISH.replace("{name}", copied)
    reference = GERMAN.replace("{name}", copied)
    moses = tokenizer_for("de", moses_corpus.tokenize)
    printed = moses.detokenize(moses.tokenize(reference))
    assert printed != reference

    errors = errors_of(printed, moses_corpus, source, reference)

    assert errors == set()


@pytest.mark.parametrize("copied", COPIED_TEXTS)
def test_losing_an_address_or_a_number_is_an_error_with_moses(moses_corpus, copied):
    """The source has an address, a placeholder or a number; the translation has Anna instead."""
    source = ENGLISH.replace("{name}", copied)
    reference = GERMAN.replace("{name}", copied)
    output = GERMAN.replace("{name}", "Anna")

    errors = errors_of(output, moses_corpus, source, reference)

    is_number = copied[0].isdigit()
    error = "numbers" if is_number else "URLs, placeholders"
    assert errors == {"any error", error}


def test_a_line_whose_reference_has_an_error_does_not_count_for_this_error(corpus):
    """The reference of line 1 writes the number 3 as a word, so its translation may do the same.

    The counts of a line are [1 if the translation has the error, 1 if the line counts]: [0, 0] for
    a line that does not count.
    """
    sources = ["The house has 3 rooms."] * 4
    references = ["Das Haus hat drei Zimmer.", *["Das Haus hat 3 Zimmer."] * 3]
    outputs = [
        "Das Haus hat drei (Zimmer.",  # no digit, as in its reference; no closing bracket
        "Das Haus hat Zimmer.",  # no number
        "Das Haus hat 3 Zimmer.",  # correct
        "Das Haus hat 4 <unk>.",  # another number; an unknown token
    ]

    counts = count_errors(sources, references, outputs, corpus)

    assert counts["numbers"] == [[0, 0], [1, 1], [0, 1], [1, 1]]
    assert counts["brackets"] == [[1, 1], [0, 1], [0, 1], [0, 1]]
    assert counts["unknown token"] == [[0, 1], [0, 1], [0, 1], [1, 1]]
    assert counts["any error"] == [[1, 1], [1, 1], [0, 1], [1, 1]]


def test_all_errors_but_cut_off_are_counted_if_no_line_was_cut(corpus):
    """Only if a line reached the maximum length, the error `cut off` has counts."""
    counts = count_errors([ENGLISH], [GERMAN], ["Das Haus hat 4 <unk>."], corpus, cut=())

    expected_errors = [error.key for error in OUTPUT_ERRORS]
    expected_errors.remove("cut off")
    assert list(counts) == expected_errors


def test_the_references_themselves_have_no_errors(corpus):
    """An error that a reference would have, too, says nothing about a translation.

    The first reference writes the number 3 as a word.
    """
    sources = ["The house has 3 rooms.", "The house has 3 rooms."]
    references = ["Das Haus hat drei Zimmer.", "Das Haus hat 3 Zimmer."]

    counts = count_errors(sources, references, references, corpus)

    for error, counts_of_lines in counts.items():
        for has_error, _line_counts in counts_of_lines:
            assert not has_error, error


def test_the_wrong_language_is_not_counted_for_a_language_that_cannot_be_identified(corpus):
    """No program can identify the languages xx and yy, so 0 wrong languages would be a lie.

    No line is cut off either. All other errors are counted.
    """
    unknown_languages = dataclasses.replace(corpus, source="qaa", target="qab")

    counts = count_errors(["1 2"], ["1 2"], ["1 3"], unknown_languages)

    expected_errors = [error.key for error in OUTPUT_ERRORS]
    expected_errors.remove("wrong language")
    expected_errors.remove("cut off")
    assert list(counts) == expected_errors


UNUSUAL_SEPARATORS = [*SEPARATORS, "\0", "\ufeff"]


@pytest.mark.parametrize("separator", UNUSUAL_SEPARATORS)
def test_a_translation_of_a_separator_alone_is_empty(corpus, separator):
    assert errors_of(separator, corpus) == {"any error", "empty"}


@pytest.mark.parametrize("separator", UNUSUAL_SEPARATORS)
def test_a_separator_between_two_words_is_at_most_a_repetition(corpus, separator):
    output = GERMAN.replace(" ", separator, 1)
    assert errors_of(output, corpus) <= {"any error", "repetition"}


@pytest.mark.parametrize("separator", UNUSUAL_SEPARATORS)
def test_the_reference_of_a_source_that_is_a_separator_has_no_errors(corpus, separator):
    assert errors_of(GERMAN, corpus, source=separator) == set()


def test_invisible_characters_in_the_source_are_no_error(corpus):
    """The source has marks of direction between words, and a word joiner inside the number 20.

    The translation has the same number, and needs no marks.
    """
    left_to_right_mark = "\u200e"
    word_joiner = "\u2060"
    source = ENGLISH.replace(" ", f"{left_to_right_mark} ").replace("20", f"2{word_joiner}0")
    output = GERMAN.replace("20", f"2{word_joiner}0")

    assert errors_of(output, corpus, source) == set()


def test_a_url_may_lose_an_invisible_character_at_its_end(corpus):
    """A translation must copy the URLs of the source; the mark of direction is not part of one."""
    left_to_right_mark = "\u200e"
    source = f"{ENGLISH} www.example.org{left_to_right_mark}"
    reference = f"{GERMAN} www.example.org{left_to_right_mark}"
    output = f"{GERMAN} www.example.org"

    assert errors_of(output, corpus, source, reference) == set()


NUMBERS_TO_19 = " ".join(map(str, range(20)))
NUMBERS_TO_20 = " ".join(map(str, range(21)))


@pytest.mark.parametrize(
    ("text", "is_loop"),
    [
        pytest.param("", False, id="no tokens"),
        pytest.param("a a", False, id="a token twice"),
        pytest.param("a a a", True, id="a token three times"),
        pytest.param("a b a b", False, id="two tokens twice"),
        pytest.param("a b a b a b", True, id="two tokens three times"),
        pytest.param("a b c d a b c d", True, id="four tokens twice"),
        pytest.param("a b c d a b c", False, id="three of four tokens twice"),
        pytest.param("x a blue shirt and a blue shirt and a", True, id="a phrase inside twice"),
        pytest.param(". . . . ! !", False, id="punctuation alone"),
        pytest.param(f"{NUMBERS_TO_19} {NUMBERS_TO_19}", True, id="20 tokens twice"),
        pytest.param(f"{NUMBERS_TO_20} {NUMBERS_TO_20}", False, id="21 tokens twice"),
    ],
)
def test_a_loop_repeats_a_token_three_times_or_a_phrase_of_4_to_20_tokens_twice(text, is_loop):
    assert has_loop(text.split()) == is_loop


BRACKETS = [
    pytest.param("", True, id="none"),
    pytest.param("([a]{b})", True, id="nested"),
    pytest.param("([)]", False, id="crossed"),
    pytest.param(")(", False, id="closed first"),
    pytest.param("a (", False, id="never closed"),
]


@pytest.mark.parametrize(("text", "expected"), BRACKETS)
def test_brackets_are_balanced_if_each_is_closed_by_its_own_kind(text, expected):
    assert is_balanced(text) == expected


@pytest.mark.parametrize(("text", "expected"), BRACKETS)
def test_brackets_may_be_nested_100_000_deep(text, expected):
    nested = "([" * 50_000 + text + "])" * 50_000
    assert is_balanced(nested) == expected


def test_a_translation_is_too_long_with_more_than_three_times_the_words_of_the_source(corpus):
    """The source has two words, so six are the most."""
    source = "Good morning"
    reference = "Guten Morgen"
    six_words = "Guten Morgen und einen schönen Tag"
    seven_words = f"{six_words} euch"

    assert errors_of(six_words, corpus, source, reference) == set()
    assert errors_of(seven_words, corpus, source, reference) == {"any error", "too long"}
