"""The embedded corpus: the properties that it guarantees, and the file of it in the package."""

import hashlib
import lzma
import re
import unicodedata
from collections import Counter

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
    split, language = text.split(".")
    lines = "".join(f"{line}\n" for line in phrasebook.sentences(split, language))
    assert hashlib.sha256(lines.encode()).hexdigest() == SHA256[text]


def test_the_package_has_what_the_grammar_writes() -> None:
    # Versions of xz may compress the same archive differently.
    assert lzma.decompress((ROOT / TEXTS).read_bytes()) == archive()
    for split in (*SPLITS, NOISY):
        for language in LANGUAGES:
            assert phrasebook.sentences(split, language) == list(sentences(split, language))


def test_sizes() -> None:
    sizes = {split: len(generate(split)) for split in SPLITS}
    assert sizes == SPLITS == {"train": 14_000, "valid": 500, "test": 500}


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_sentence_comes_twice_in_any_split(language: str) -> None:
    lines = list[str]()
    for split in SPLITS:
        lines += sentences(split, language)
    assert len(set(lines)) == len(lines) == 15_000


def word_forms(split: str, column: int) -> list[str]:
    """Return all words of a split in one language."""
    forms = list[str]()
    for triple in generate(split):
        forms += re.findall(r"\w+", triple[column].lower())
    return forms


@pytest.mark.parametrize("column", range(3))
def test_train_has_about_a_thousand_word_forms(column: int) -> None:
    assert 900 <= len(set(word_forms("train", column))) <= 1600


@pytest.mark.parametrize("language", LANGUAGES)
def test_sentence_lengths(language: str) -> None:
    lengths = [len(line.split()) for line in sentences("train", language)]
    assert 8.5 <= sum(lengths) / len(lengths) <= 12
    assert min(lengths) >= 2
    assert max(lengths) <= 30


@pytest.mark.parametrize("column", range(3))
def test_words_of_valid_and_test_are_learnable(column: int) -> None:
    counts = Counter(word_forms("train", column))
    held_out_forms = word_forms("valid", column) + word_forms("test", column)
    frequent_forms = [form for form in held_out_forms if counts[form] >= 5]
    assert len(frequent_forms) / len(held_out_forms) > 0.99


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_line_is_one_clean_sentence(language: str) -> None:
    mark = re.compile(r"[^\s,.?][.]|[^\s,.?] \?" if language == "fr" else r"[^\s,.?][.?]")
    for split in SPLITS:
        for line in sentences(split, language):
            # Single spaces, and no other white space.
            assert line.split() == line.split(" "), line
            assert line.splitlines() == [line]
            assert line.isprintable()
            assert unicodedata.is_normalized("NFC", line)
            assert line[0] == line[0].upper()
            assert mark.fullmatch(line[-3:] if line.endswith(" ?") else line[-2:]), line
            assert not re.search(r"[.?].|\s[,.]|,\S|,[.?]|,,|\{|\}|' ", line), line


def test_the_same_question_mark_on_all_sides() -> None:
    for split in SPLITS:
        for row in generate(split):
            assert len({text[-1] for text in row}) == 1


def test_no_vowel_waits_for_elision_and_no_article_for_contraction() -> None:
    left = re.compile(
        r"\b([JjNnDdMmTtSs]e|[Ll][ae]|[Qq]ue) (?!huit|onze)[aeiouâéêœhAEIO]|\b[Ss]i ils?\b"
    )
    melted = re.compile(r"\b(à les|ce [aéhoœ]|beau [aâéh]|vieux (homme|âne|ami))\b", re.I)
    for split in SPLITS:
        for line in sentences(split, "fr"):
            assert not left.search(line), line
            assert not melted.search(line), line


@pytest.mark.parametrize(
    ("construction", "column", "pattern"),
    [
        ("relative clause", 0, r"\w (who|whom) "),
        ("negation", 1, r"\b(nicht|kein\w*)\b"),
        ("question", 0, r"\?$"),
        ("separable verb, apart", 1, r" (an|auf|aus|ab|ein|mit|teil|vor|weg|zu|zurück)[.?]$"),
        ("separable verb, together", 1, r"\b(an|auf|aus|ab|ein|mit|teil|vor|weg|zu|zurück)ge\w+\b"),
        ("modal", 1, r"\b(kann|können|muss|müssen|will|wollen|möchten?|soll|sollen)\b"),
        ("subordinate clause", 1, r", (weil|dass|wenn|als|ob|während) |^(Wenn|Als) "),
        ("infinitive with zu", 1, r"\bzu \w+en[.,]|\w+zu\w+en[.,]"),
        ("dative", 1, r"\b(dem|einem|ihm|mir|dir|ihnen)\b"),
        ("comparison", 1, r"er als "),
        (
            "object clitic",
            2,
            r"\b[Jj]e (te|le|la|lui|les|leur) |\b[Ii]ls? (me|te|le|les) |\b[mt]'\w",
        ),
        ("perfect with être", 2, r"\b(suis|es|est|sommes|sont) \w+(é|i|u)e?s?\b"),
        ("digits", 0, r"\d"),
    ],
)
def test_constructions_are_common(construction: str, column: int, pattern: str) -> None:
    matches = [row for row in generate("train") if re.search(pattern, row[column])]
    assert len(matches) >= 0.02 * SPLITS["train"], construction


def test_names_and_number_words_are_common() -> None:
    names = {entry.en for entry in lexicon.NAMES}
    numbers = {entry.en for entry in lexicon.NUMBERS}
    with_name = 0
    with_number = 0
    for row in generate("train"):
        words = re.findall(r"[\w-]+", row[0])
        with_name += not names.isdisjoint(words)
        with_number += not numbers.isdisjoint(words)
    assert with_name >= 0.02 * SPLITS["train"]
    assert with_number >= 0.02 * SPLITS["train"]
