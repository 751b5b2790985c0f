"""new-corpus with a .tmx file: its language codes, and variants of a language."""

from pathlib import Path

import pytest

from bleuprint.config.experiment import load_settings
from bleuprint.corpus.download.download import read_text_pairs
from bleuprint.corpus.new_corpus import NewCorpus
from bleuprint.runtime.errors import UserError
from new_corpus import (
    ENGLISH_SENTENCES,
    FIVE_HUNDRED_PAIRS,
    run_command,
    tmx_text,
)


def write_memory(project, units, name):
    """Write translation units to a file in inputs/."""
    (project / "inputs" / name).write_text(tmx_text(units), encoding="utf-8")


def test_codes_of_all_kinds_name_the_same_language_and_are_counted(project, capsys):
    """Each pair of codes marks a quarter of the 500 units: 125."""
    code_pairs = [("en", "de"), ("eng", "ger"), ("EN_us", "deu"), ("en-US", "de-AT")]
    units = []
    for number, (english, german) in enumerate(FIVE_HUNDRED_PAIRS):
        english_code, german_code = code_pairs[number % 4]
        units.append([(english_code, english), (german_code, german)])
    write_memory(project, units, "memory.tmx")

    run_command("bleuprint new-corpus inputs/memory.tmx")

    output = capsys.readouterr()
    assert output.out.startswith(
        "inputs/memory.tmx: units by language code: en (125), de (125), eng (125), ger (125), "
        "EN_us (125), deu (125), en-US (125), de-AT (125)\n500 pairs; "
    )
    # There is only one variant of each language: US English (two spellings), Austrian German.
    assert "mixes" not in output.err
    corpus = load_settings().corpora["memory-en-de"]
    (part,) = corpus.files.train.values()
    assert sorted(read_text_pairs(part, corpus.languages)) == sorted(FIVE_HUNDRED_PAIRS)


@pytest.mark.parametrize("named_as", ["not named", "codes of the file", "other codes"])
@pytest.mark.parametrize(
    ("codes_in_file", "other_codes"),
    [
        pytest.param(
            ("iw", "no-NO"), ("he", "nb"), id="Hebrew and Norwegian, old code and country"
        ),
        pytest.param(("heb", "nob"), ("he", "no"), id="Hebrew and Norwegian, three letters"),
        pytest.param(("he-IL", "nb_NO"), ("iw", "nor"), id="Hebrew and Norwegian, with countries"),
        pytest.param(("in", "fil"), ("id", "tl"), id="Indonesian and Filipino"),
        pytest.param(("cmn-Hans", "per"), ("zh", "fas"), id="Chinese and Persian"),
    ],
)
def test_the_command_may_name_a_language_by_another_code_than_the_file(
    project, codes_in_file, other_codes, named_as
):
    """Hebrew, for example, has the codes he, heb and, in old files, iw."""
    units = []
    for pair in FIVE_HUNDRED_PAIRS:
        units.append(list(zip(codes_in_file, pair, strict=True)))
    write_memory(project, units, "memory.tmx")
    languages = {"not named": None, "codes of the file": codes_in_file, "other codes": other_codes}

    new = NewCorpus.from_files([Path("inputs/memory.tmx")], languages[named_as])

    assert sorted(new.sample) == sorted(FIVE_HUNDRED_PAIRS)


def test_if_one_variant_of_a_unit_is_empty_the_other_one_is_taken(project):
    """Each unit has US and British English, of which only the British has text; likewise German."""
    units = []
    for english, german in FIVE_HUNDRED_PAIRS:
        units.append([("en-US", ""), ("en-GB", english), ("de", german), ("de-CH", "")])
    write_memory(project, units, "memory.tmx")

    new = NewCorpus.from_files([Path("inputs/memory.tmx")])

    assert sorted(new.sample) == sorted(FIVE_HUNDRED_PAIRS)


@pytest.mark.parametrize("languages", [["de", "en"], ["en", "de"]], ids=" to ".join)
def test_a_memory_with_exchanged_language_codes_is_refused(project, languages):
    """The English sentences have the code de, the German sentences the code en."""
    units = [[("de", english), ("en", german)] for english, german in FIVE_HUNDRED_PAIRS]
    write_memory(project, units, "memory.tmx")

    with pytest.raises(UserError, match="exchange the two language codes") as error:
        NewCorpus.from_files([Path("inputs/memory.tmx")], languages)

    assert "rename" not in str(error.value)  # This is the advice for two files.


@pytest.fixture
def memory_with_variants(project):
    """Write 500 units in US and British English and German, and 7 without British English.

    US sentences begin with x.
    """
    units = []
    for english, german in FIVE_HUNDRED_PAIRS:
        units.append([("en-US", f"x {english}"), ("en-GB", english), ("de", german)])
    units += [[("en-US", "x"), ("de", "y")]] * 7
    write_memory(project, units, "memory.tmx")


@pytest.mark.usefixtures("memory_with_variants")
def test_the_user_chooses_a_variant_of_a_language(capsys):
    """500 units are in en-US, en-GB and de; 7 more units are only in en-US and de."""
    run_command("bleuprint new-corpus inputs/memory.tmx --languages en-gb de")

    output = capsys.readouterr()
    assert "inputs/memory.tmx: 7 of 507 units lack one of the languages\n" in output.out
    assert "mixes" not in output.err
    corpus = load_settings().corpora["memory-en-de"]
    (part,) = corpus.files.train.values()
    assert part.languages == ("en-gb", "de")
    # The US sentences differ: they begin with x.
    assert sorted(read_text_pairs(part, corpus.languages)) == sorted(FIVE_HUNDRED_PAIRS)


@pytest.mark.usefixtures("memory_with_variants")
def test_a_language_that_mixes_variants_is_noted(capsys):
    """500 units are in en-US, en-GB and de; 7 more units are only in en-US and de."""
    NewCorpus.from_files([Path("inputs/memory.tmx")], ["en", "de"])

    assert capsys.readouterr().err == (
        "bleuprint: note: inputs/memory.tmx: en mixes en-US (507), en-GB (500). If a unit has "
        "several variants of a language, the first is taken. One variant alone leaves 507 "
        "pairs: --languages en-US de\n"
    )


def test_the_pair_of_variants_with_most_units_is_advised(project, capsys):
    """That is en-GB and de-DE, with 160 units.

    US English has more units than British, 130 + 90, but is split between two kinds of German.
    """
    codes_of_units = [("en-US", "de-AT")] * 130 + [("en_us", "de_DE")] * 90
    codes_of_units += [("en-GB", "de-DE")] * 160 + [("eng", "ger")] * 120
    units = []
    for codes, pair in zip(codes_of_units, FIVE_HUNDRED_PAIRS, strict=True):
        units.append(list(zip(codes, pair, strict=True)))
    write_memory(project, units, "memory.tmx")

    NewCorpus.from_files([Path("inputs/memory.tmx")])

    assert capsys.readouterr().err == (
        "bleuprint: note: inputs/memory.tmx: en mixes en-US (220), en-GB (160), en (120); "
        "de mixes de_DE (250), de-AT (130), de (120). One variant alone leaves 160 pairs: "
        "--languages en-GB de_DE\n"
    )


def test_english_without_a_country_counts_as_another_variant_than_british_english(project, capsys):
    """Each unit has en and en-GB, and German twice: `ger` and `de` are codes of one variant."""
    units = []
    for english, german in FIVE_HUNDRED_PAIRS:
        units.append([("en", english), ("en-GB", english), ("ger", german), ("de", german)])
    write_memory(project, units, "memory.tmx")

    NewCorpus.from_files([Path("inputs/memory.tmx")])

    notes = capsys.readouterr().err
    assert "en mixes en (500), en-GB (500). If a unit has several" in notes
    assert "leaves 500 pairs: --languages en-GB de\n" in notes
    assert "de mixes" not in notes


def test_for_three_languages_the_message_proposes_the_two_with_most_units(project):
    """Norwegian and Nynorsk have 500 units each, French has 9."""
    units = []
    for english, german in FIVE_HUNDRED_PAIRS:
        units.append([("en", english), ("no", german), ("nn", german)])
    for english, german in FIVE_HUNDRED_PAIRS[:9]:
        units.append([("en", english), ("fr", german)])
    write_memory(project, units, "memory.tmx")

    with pytest.raises(UserError, match=r"Name two, such as: --languages en no\. "):
        NewCorpus.from_files([Path("inputs/memory.tmx")])


def test_a_memory_of_two_variants_of_one_language_is_refused(project):
    """US and British English are one language, so there is nothing to translate."""
    units = [[("en-US", english), ("en-GB", english)] for english in ENGLISH_SENTENCES]
    write_memory(project, units, "memory.tmx")

    with pytest.raises(UserError, match=r"all text is in en, .* needs two languages\. The"):
        NewCorpus.from_files([Path("inputs/memory.tmx")])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(
            "",
            r"memory\.tmx: .* more than two languages\. Name two, .* are en \(500\), de \(500\), f",
            id="none named",
        ),
        pytest.param(
            "--languages en nl",
            r"memory\.tmx: no unit is in nl\. .* are en \(500\), de \(500\), fr-FR \(500\)",
            id="language not in the file",
        ),
        pytest.param(
            "--languages en-GB de",
            r"no unit is in en-GB\. The language codes in this file are",
            id="variant not in the file",
        ),
        pytest.param(
            "--languages english de",
            r"--languages english: not a language code .*\. Use en for english",
            id="not a code",
        ),
        pytest.param(
            "--languages en eng",
            r"source and target are both en\. .*: --languages en qaa",
            id="same language",
        ),
    ],
)
def test_languages_that_select_no_pair_of_texts_are_refused(project, arguments, message):
    """Each unit of the file is in English (en), German (de) and French (fr-FR)."""
    units = []
    for english, german in FIVE_HUNDRED_PAIRS:
        units.append([("en", english), ("de", german), ("fr-FR", english)])
    write_memory(project, units, "memory.tmx")

    with pytest.raises(UserError, match=message):
        run_command(f"bleuprint new-corpus inputs/memory.tmx {arguments}")
