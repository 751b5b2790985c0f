"""Notes on held-out sets in inputs/: repeated texts, shared sentences, lines that do not fit."""

import gzip

import pytest
from ruamel.yaml import YAML

from bleuprint.config.experiment import load_settings
from bleuprint.corpus.set_notes import notes_on_sets
from corpora import lines_to_text, phrasebook_sentences
from params import PARAMS, corpus_entry

# 900 sentences each; the nth sentences translate each other.
GERMAN_SENTENCES = phrasebook_sentences("de", 900)
ENGLISH_SENTENCES = phrasebook_sentences("en", 900)

# The lines of a training text (a), a validation set (v) and a test set (t) without problems.
SOUND_FILES = {
    "a.de": GERMAN_SENTENCES[:500],
    "a.en": ENGLISH_SENTENCES[:500],
    "v.de": GERMAN_SENTENCES[500:600],
    "v.en": ENGLISH_SENTENCES[500:600],
    "t.de": GERMAN_SENTENCES[600:900],
    "t.en": ENGLISH_SENTENCES[600:900],
}


def text_settings(source, target):
    """Return the settings of a text in two files of inputs/."""
    return {
        "license_and_citation": "own",
        "source": {"path": f"inputs/{source}"},
        "target": {"path": f"inputs/{target}"},
    }


def write_inputs(folder, files):
    """Write files of lines; those whose names end in .gz are compressed.

    Args:
        folder: The folder inputs/.
        files: The lines by name.
    """
    folder.mkdir(exist_ok=True)
    for name, lines in files.items():
        content = lines_to_text(lines).encode()
        if name.endswith(".gz"):
            content = gzip.compress(content)
        (folder / name).write_bytes(content)


@pytest.fixture
def notes_on(tmp_path, monkeypatch):
    """A function that writes a German-English corpus `own` and returns the notes on its sets."""

    def notes_on_corpus(files, valid, tests, decontaminate="normalized"):
        """Return the notes; the training text is in a.de and a.en.

        Args:
            files: The lines of each file in inputs/.
            valid: The names of the validation set's files.
            tests: The names of each test set's files.
            decontaminate: How the stage dedup compares training text with held-out sets.
        """
        monkeypatch.chdir(tmp_path)
        write_inputs(tmp_path / "inputs", files)
        test_sets = {name: {"t": text_settings(*pair)} for name, pair in tests.items()}
        sets = {
            "train": {"a": text_settings("a.de", "a.en")},
            "valid": {"v": text_settings(*valid)},
            "tests": test_sets,
        }
        params = YAML(typ="safe").load(PARAMS)
        dedup = {"pairs": True, "decontaminate": decontaminate}
        params["corpora"] = {"own": corpus_entry("de", "en", sets, dedup=dedup)}
        with (tmp_path / "params.yaml").open("w") as file:
            YAML().dump(params, file)
        return list(notes_on_sets(load_settings()))

    return notes_on_corpus


def test_sets_without_problems_get_no_note(notes_on):
    assert notes_on(SOUND_FILES, valid=("v.de", "v.en"), tests={"news": ("t.de", "t.en")}) == []


def test_missing_files_get_no_note(notes_on):
    """The download reports them; these notes are on what files contain."""
    no_files = {}

    assert notes_on(no_files, valid=("v.de", "v.en"), tests={"news": ("t.de", "t.en")}) == []


def test_a_file_that_is_validation_and_test_set_gets_a_note(notes_on):
    """The settings name the test set's files, t.de and t.en, for validation, too.

    SOUND_FILES has 500 training pairs in a.de and a.en, 100 validation pairs in v.de and v.en, and
    300 test pairs in t.de and t.en, all different.
    """
    notes = notes_on(SOUND_FILES, valid=("t.de", "t.en"), tests={"news": ("t.de", "t.en")})

    assert notes == [
        "corpora.own.files.valid.v and corpora.own.files.tests.news.t are the same text. "
        "Checkpoints would be chosen by the sentences that the table scores. Replace one of the two"
    ]


def test_a_validation_set_with_the_content_of_the_test_set_gets_a_note(notes_on):
    """The files have other names, but the same lines; equal names alone would not show it.

    SOUND_FILES has 100 validation pairs in v.de and v.en, and 300 test pairs in t.de and t.en, all
    different.
    """
    copies = {"v.de": SOUND_FILES["t.de"], "v.en": SOUND_FILES["t.en"]}
    files = SOUND_FILES | copies

    notes = notes_on(files, valid=("v.de", "v.en"), tests={"news": ("t.de", "t.en")})

    assert notes == [
        "corpora.own.files.valid.v and corpora.own.files.tests.news.t are the same text. "
        "Checkpoints would be chosen by the sentences that the table scores. Replace one of the two"
    ]


def test_a_validation_set_with_only_the_sources_of_the_test_set_gets_another_note(notes_on):
    """The targets differ by a space at the end of each line, so that they are another file.

    SOUND_FILES has 100 validation pairs in v.de and v.en, and 300 test pairs in t.de and t.en, all
    different.
    """
    other_targets = [f"{line} " for line in SOUND_FILES["t.en"]]
    files = SOUND_FILES | {"v.de": SOUND_FILES["t.de"], "v.en": other_targets}

    notes = notes_on(files, valid=("v.de", "v.en"), tests={"news": ("t.de", "t.en")})

    assert notes == [
        "corpora.own.files.valid.v and corpora.own.files.tests.news.t have the same source file. "
        "Checkpoints would be chosen by the sentences that the table scores. Replace one of the two"
    ]


def test_a_file_that_is_training_text_and_validation_set_gets_a_note(notes_on):
    """The training text is always in a.de and a.en, which here are the validation set, too."""
    notes = notes_on(SOUND_FILES, valid=("a.de", "a.en"), tests={"news": ("t.de", "t.en")})

    assert notes == [
        "corpora.own.files.train.a and corpora.own.files.valid.v are the same text. "
        "The training text loses its sentences, by dedup.decontaminate"
    ]


def test_a_file_that_is_training_text_and_test_set_without_decontamination_gets_a_note(notes_on):
    """The training text is always in a.de and a.en, which here are the test set, too."""
    tests = {"news": ("a.de", "a.en")}

    notes = notes_on(SOUND_FILES, valid=("v.de", "v.en"), tests=tests, decontaminate="none")

    assert notes == [
        "corpora.own.files.train.a and corpora.own.files.tests.news.t are the same text. With "
        "dedup.decontaminate none, the model is trained on these sentences"
    ]


def test_two_test_sets_with_the_same_file_get_a_note(notes_on):
    """The settings name the files t.de and t.en for two test sets by mistake."""
    tests = {"news": ("t.de", "t.en"), "talks": ("t.de", "t.en")}

    notes = notes_on(SOUND_FILES, valid=("v.de", "v.en"), tests=tests)

    assert notes == [
        "corpora.own.files.tests.news.t and corpora.own.files.tests.talks.t are the same text. "
        "The table would score it twice. Remove one of the two"
    ]


# Sentences are reported from 1% of the test set on: 3 of 300.
@pytest.mark.parametrize(
    ("shared_count", "expected_notes"),
    [
        pytest.param(2, [], id="2 shared sentences of 300: no note"),
        pytest.param(
            3,
            ["corpora.own: 3 of 300 sentences of test set news are in the validation set"],
            id="3 shared sentences of 300",
        ),
        pytest.param(
            60,
            ["corpora.own: 60 of 300 sentences of test set news are in the validation set"],
            id="60 shared sentences of 300",
        ),
    ],
)
def test_sentences_that_two_sets_share_get_a_note_from_one_percent_on(
    notes_on, shared_count, expected_notes
):
    """The first sentences of the test set, which has 300, replace those of the validation set."""
    # Sentences are compared without case and punctuation, as by the stage dedup.
    shared = [line.upper().rstrip(".") for line in SOUND_FILES["t.de"][:shared_count]]
    files = SOUND_FILES | {"v.de": shared + SOUND_FILES["v.de"][shared_count:]}

    notes = notes_on(files, valid=("v.de", "v.en"), tests={"news": ("t.de", "t.en")})

    # The shared sentences do not fit the validation set's targets, which is another note.
    notes_on_shared_sentences = [note for note in notes if "fit" not in note]
    assert notes_on_shared_sentences == expected_notes


@pytest.mark.parametrize("name", ["t.en", "t.en.gz"])
def test_a_test_set_whose_targets_are_a_line_early_gets_a_note(notes_on, name):
    """Line 101 of the 300 targets is moved to the end, as if a line had been lost and added."""
    targets = ENGLISH_SENTENCES[600:900]
    line_101 = targets.pop(100)
    files = SOUND_FILES | {name: [*targets, line_101]}

    notes = notes_on(files, valid=("v.de", "v.en"), tests={"news": ("t.de", name)})

    assert len(notes) == 1
    assert notes[0].startswith(
        "corpora.own.files.tests.news.t: its sides do not fit line by line: lines 1"
    )
    assert notes[0].endswith(" fit the target 1 line earlier. Compare these lines")


def test_a_test_set_with_a_missing_target_gets_a_note(notes_on):
    """The file t.de of SOUND_FILES has 300 sentences, the file t.en here one less."""
    files = SOUND_FILES | {"t.en": ENGLISH_SENTENCES[600:899]}

    notes = notes_on(files, valid=("v.de", "v.en"), tests={"news": ("t.de", "t.en")})

    assert len(notes) == 1
    assert notes[0].startswith("corpora.own.files.tests.news.t: inputs/t.de has 300 lines, but ")


def test_sets_that_were_downloaded_get_notes_without_the_files_in_inputs(notes_on, tmp_path):
    """The targets of the downloaded test set are one line early.

    Its first 20 sentences are also the downloaded validation set. There are no files in inputs/.
    """
    early_targets = [*ENGLISH_SENTENCES[601:900], "x"]
    downloaded = {
        "valid.de": GERMAN_SENTENCES[600:620],
        "valid.en": ENGLISH_SENTENCES[600:620],
        "test.news.de": GERMAN_SENTENCES[600:900],
        "test.news.en": early_targets,
    }
    folder = tmp_path / "data" / "raw" / "own" / "given"
    folder.parent.mkdir(parents=True)
    write_inputs(folder, downloaded)

    notes = notes_on(files={}, valid=("v.de", "v.en"), tests={"news": ("t.de", "t.en")})

    assert len(notes) == 2
    assert notes[0].startswith(
        "corpora.own.files.tests.news: its sides do not fit line by line: lines"
    )
    assert notes[0].endswith(" fit the target 1 line earlier. Compare these lines")
    assert notes[1] == (
        "corpora.own: 20 of 300 sentences of test set news are in the validation set"
    )
