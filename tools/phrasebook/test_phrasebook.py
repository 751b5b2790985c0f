"""The embedded corpus: the properties that it guarantees, and the file of it in the package."""

import hashlib
import lzma
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence

import pytest

from bleuprint.corpus import phrasebook
from root import ROOT
from tools.phrasebook import LANGUAGES, NOISY, SPLITS, generate, lexicon, sentences
from tools.phrasebook.__main__ import TEXTS, archive

# Results of the default experiment, which are committed, depend on every byte.
SHA256 = {
    "train.en": "114db50c6c612989339de7c7ac4b2999ae2260d0fecb6574eb622c9dfc8566f5",
    "train.de": "f8bd9e437893cad7c3af5a0416fdec66b5f2c6c8cfc6205bb27de2ea2e8b5a98",
    "train.fr": "c120a010eb1d3e8c15246cd771062099f88db12beda7eda06d05adf0e51f2dcf",
    "valid.en": "9520d13c453fd7f6dfc0a53b05934fecd5e4d94178f463d281e910e16ae09320",
    "valid.de": "9115ddda4bef2dea4801f96aad6280a93912d65e26659d1ec1571bee84879300",
    "valid.fr": "57d2471ef3d6728dd6448e3f7cd706060d705149460f2833d01b4818c8275203",
    "test.en": "862fc4bda122fa65acb4766b51335c3c2f596fd37730950e4c662b082e2dae4b",
    "test.de": "02f59ebeb9cdcfafd380eb8fd0fa9e04dcb3455d8a61ec420225aecc54632ee1",
    "test.fr": "f3aacb975601b00eb7db561a448d449f771588940d293586698a19ab3d00e234",
    "noisy.en": "3bb9f6e3ff14c2b107190f4b6420be39f71de8c047b2d61ee07d39ff7ac40864",
    "noisy.de": "637cdeeb6a64f240d058f2b3421db69dea7db2b08e283c4b9ccf91c62c3d6c52",
    "noisy.fr": "a996fad27eba3988ba190c8debd46eb376c18001bae15c770dcfcd782e013713",
}


@pytest.mark.parametrize("text", SHA256)
def test_the_embedded_text_never_changes(text: str) -> None:
    """TEXT is a set and a language, such as "train.en"; SHA256 contains the hash of each text."""
    split, language = text.split(".")

    lines = phrasebook.sentences(split, language)

    content = "".join(f"{line}\n" for line in lines)
    assert hashlib.sha256(content.encode()).hexdigest() == SHA256[text]


def test_the_archive_in_the_package_is_what_the_grammar_writes() -> None:
    """If the grammar changes, `python -m tools.phrasebook` must write the archive again."""
    compressed = (ROOT / TEXTS).read_bytes()

    # Versions of xz may compress the same archive differently, so the contents are compared.
    assert lzma.decompress(compressed) == archive()


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("split", [*SPLITS, NOISY])
def test_the_package_reads_the_sentences_that_the_grammar_generates(
    split: str, language: str
) -> None:
    generated = list(sentences(split, language))

    assert phrasebook.sentences(split, language) == generated


def test_the_grammar_generates_14_000_sentences_for_training_and_500_for_each_other_set() -> None:
    sizes = {split: len(generate(split)) for split in SPLITS}

    assert sizes == {"train": 14_000, "valid": 500, "test": 500}
    assert sizes == SPLITS


@pytest.mark.parametrize("language", LANGUAGES)
def test_all_sentences_of_train_valid_and_test_are_different(language: str) -> None:
    """A test sentence that is also a training sentence would be translated from memory."""
    lines = list[str]()
    for split in SPLITS:
        lines += sentences(split, language)

    assert len(lines) == 14_000 + 500 + 500  # train, valid and test
    assert len(set(lines)) == len(lines)


def word_forms(split: str, column: int) -> list[str]:
    """Return all words of a split in one language."""
    forms = list[str]()
    for triple in generate(split):
        forms += re.findall(r"\w+", triple[column].lower())
    return forms


@pytest.mark.parametrize("column", range(3), ids=LANGUAGES)
def test_the_training_text_has_about_a_thousand_different_words(column: int) -> None:
    """COLUMN is the place of the language: 0 English, 1 German, 2 French."""
    vocabulary = set(word_forms("train", column))

    assert 900 <= len(vocabulary) <= 1600


@pytest.mark.parametrize("language", LANGUAGES)
def test_sentences_have_2_to_30_words_and_about_10_on_average(language: str) -> None:
    lengths = [len(line.split()) for line in sentences("train", language)]

    mean_length = sum(lengths) / len(lengths)
    assert 8.5 <= mean_length <= 12
    assert min(lengths) >= 2
    assert max(lengths) <= 30


@pytest.mark.parametrize("column", range(3), ids=LANGUAGES)
def test_99_percent_of_the_words_of_valid_and_test_occur_five_times_in_train(column: int) -> None:
    """A small model can learn such words. COLUMN: 0 English, 1 German, 2 French."""
    counts_in_train = Counter(word_forms("train", column))
    held_out_words = word_forms("valid", column) + word_forms("test", column)

    learnable_words = [word for word in held_out_words if counts_in_train[word] >= 5]

    assert len(learnable_words) / len(held_out_words) > 0.99


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_line_is_one_clean_sentence(language: str) -> None:
    # A character of a word, then the period or question mark; French has a space before "?".
    end = re.compile(r"[^\s,.?][.]|[^\s,.?] \?" if language == "fr" else r"[^\s,.?][.?]")
    # A sentence that goes on after its mark, spaces and commas in wrong places, and braces.
    wrong_punctuation = re.compile(r"[.?].|\s[,.]|,\S|,[.?]|,,|\{|\}|' ")

    for split in SPLITS:
        for line in sentences(split, language):
            # Single spaces, and no other white space.
            assert line.split() == line.split(" "), line
            assert line.splitlines() == [line]
            assert line.isprintable()
            assert unicodedata.is_normalized("NFC", line)
            assert line[0] == line[0].upper()
            last_characters = line[-3:] if line.endswith(" ?") else line[-2:]
            assert end.fullmatch(last_characters), line
            assert not wrong_punctuation.search(line), line


def test_a_sentence_ends_with_the_same_mark_in_all_languages() -> None:
    for split in SPLITS:
        for row in generate(split):
            last_characters = {text[-1] for text in row}
            assert len(last_characters) == 1


def test_french_words_are_shortened_before_a_vowel() -> None:
    """Such as "j'aime": in "je aime" the vowel of "je" must be replaced by an apostrophe."""
    # Only "huit" and "onze" are exceptions: "le huit", "le onze".
    not_shortened = re.compile(
        r"\b([JjNnDdMmTtSs]e|[Ll][ae]|[Qq]ue) (?!huit|onze)[aeiouâéêœhAEIO]|\b[Ss]i ils?\b"
    )

    for split in SPLITS:
        for line in sentences(split, "fr"):
            assert not not_shortened.search(line), line


def test_french_words_have_their_form_before_the_next_word() -> None:
    """Such as "aux" in place of "à les", and "vieil homme" in place of "vieux homme"."""
    wrong_form = re.compile(r"\b(à les|ce [aéhoœ]|beau [aâéh]|vieux (homme|âne|ami))\b", re.I)

    for split in SPLITS:
        for line in sentences(split, "fr"):
            assert not wrong_form.search(line), line


@pytest.mark.parametrize(
    ("construction", "language", "pattern"),
    [
        ("relative clause", "en", r"\w (who|whom) "),
        ("negation", "de", r"\b(nicht|kein\w*)\b"),
        ("question", "en", r"\?$"),
        ("separable verb, apart", "de", r" (an|auf|aus|ab|ein|mit|teil|vor|weg|zu|zurück)[.?]$"),
        (
            "separable verb, together",
            "de",
            r"\b(an|auf|aus|ab|ein|mit|teil|vor|weg|zu|zurück)ge\w+\b",
        ),
        ("modal verb", "de", r"\b(kann|können|muss|müssen|will|wollen|möchten?|soll|sollen)\b"),
        ("subordinate clause", "de", r", (weil|dass|wenn|als|ob|während) |^(Wenn|Als) "),
        ("infinitive with zu", "de", r"\bzu \w+en[.,]|\w+zu\w+en[.,]"),
        ("dative", "de", r"\b(dem|einem|ihm|mir|dir|ihnen)\b"),
        ("comparison", "de", r"er als "),
        (
            "object pronoun before the verb",
            "fr",
            r"\b[Jj]e (te|le|la|lui|les|leur) |\b[Ii]ls? (me|te|le|les) |\b[mt]'\w",
        ),
        ("perfect with être", "fr", r"\b(suis|es|est|sommes|sont) \w+(é|i|u)e?s?\b"),
        ("digits", "en", r"\d"),
    ],
)
def test_a_construction_occurs_in_2_percent_of_the_training_sentences(
    construction: str, language: str, pattern: str
) -> None:
    """PATTERN recognizes the construction by words of one language."""
    training_sentences = sentences("train", language)

    matches = [line for line in training_sentences if re.search(pattern, line)]

    assert len(matches) >= 0.02 * 14_000, construction


@pytest.mark.parametrize(
    "entries",
    [
        pytest.param(lexicon.NAMES, id="names"),
        pytest.param(lexicon.NUMBERS, id="number words"),
    ],
)
def test_names_and_number_words_occur_in_2_percent_of_the_training_sentences(
    entries: Sequence[lexicon.Name | lexicon.Words],
) -> None:
    special_words = {entry.en for entry in entries}

    count = 0
    for line in sentences("train", "en"):
        words = re.findall(r"[\w-]+", line)
        if not special_words.isdisjoint(words):
            count += 1

    assert count >= 0.02 * 14_000
