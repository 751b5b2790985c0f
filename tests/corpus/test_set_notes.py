"""Notes on files in inputs/: the same text in two sets, sentences in two, lines that do not fit."""

import gzip

import pytest
from ruamel.yaml import YAML

from bleuprint.config.experiment import load_settings
from bleuprint.corpus.phrasebook import sentences
from bleuprint.corpus.set_notes import notes_on_sets
from params import PARAMS, corpus_entry

GERMAN, ENGLISH = (list(sentences("train", language))[:900] for language in ("de", "en"))


def text(source, target):
    return {
        "license_and_citation": "own",
        "source": {"path": f"inputs/{source}"},
        "target": {"path": f"inputs/{target}"},
    }


@pytest.fixture
def noted(tmp_path, monkeypatch):
    """The notes on a corpus with these files (lines by name) and these sets."""

    def notes(files, valid, tests, decontaminate="normalized"):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "inputs").mkdir(exist_ok=True)
        for name, lines in files.items():
            data = "".join(f"{line}\n" for line in lines).encode()
            path = tmp_path / "inputs" / name
            path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        sets = {
            "train": {"a": text("a.de", "a.en")},
            "valid": {"v": text(*valid)} if valid else {},
            "tests": {name: {"t": text(*pair)} for name, pair in tests.items()},
        }
        params = YAML(typ="safe").load(PARAMS)
        dedup = {"pairs": True, "decontaminate": decontaminate}
        params["corpora"] = {"own": corpus_entry("de", "en", sets, dedup=dedup)}
        with (tmp_path / "params.yaml").open("w") as file:
            YAML().dump(params, file)
        return list(notes_on_sets(load_settings()))

    return notes


FILES = {
    "a.de": GERMAN[:500],
    "a.en": ENGLISH[:500],
    "v.de": GERMAN[500:600],
    "v.en": ENGLISH[500:600],
    "t.de": GERMAN[600:900],
    "t.en": ENGLISH[600:900],
}


def test_nothing_is_noted_of_sound_files(noted):
    assert noted(FILES, ("v.de", "v.en"), {"news": ("t.de", "t.en")}) == []


def test_files_that_are_missing_are_not_noted_here(noted):
    assert noted({}, ("v.de", "v.en"), {"news": ("t.de", "t.en")}) == []


SAME = (
    "corpora.own.files.valid.v and corpora.own.files.tests.news.t are the same text: "
    "checkpoints would be chosen by the sentences that the table scores; give another one"
)


def test_the_test_set_is_the_validation_set_by_name(noted):
    assert noted(FILES, ("t.de", "t.en"), {"news": ("t.de", "t.en")}) == [SAME]


def test_the_test_set_is_the_validation_set_by_content(noted):
    copies = {**FILES, "v.de": FILES["t.de"], "v.en": FILES["t.en"]}
    assert noted(copies, ("v.de", "v.en"), {"news": ("t.de", "t.en")}) == [SAME]


def test_a_set_with_other_targets_has_the_same_sources(noted):
    copies = {**FILES, "v.de": FILES["t.de"], "v.en": [f"{line} " for line in FILES["t.en"]]}
    assert noted(copies, ("v.de", "v.en"), {"news": ("t.de", "t.en")}) == [
        SAME.replace("are the same text", "have the same source file")
    ]


def test_the_training_text_is_the_validation_set(noted):
    assert noted(FILES, ("a.de", "a.en"), {"news": ("t.de", "t.en")}) == [
        "corpora.own.files.train.a and corpora.own.files.valid.v are the same text: "
        "dedup.decontaminate drops its sentences from the training text"
    ]


def test_the_training_text_is_the_test_set_and_nothing_is_dropped(noted):
    tests = {"news": ("a.de", "a.en")}
    assert noted(FILES, ("v.de", "v.en"), tests, decontaminate="none") == [
        "corpora.own.files.train.a and corpora.own.files.tests.news.t are the same text: with "
        "dedup.decontaminate none, the model is trained on these sentences"
    ]


def test_two_test_sets_are_equal(noted):
    tests = {"news": ("t.de", "t.en"), "talks": ("t.de", "t.en")}
    assert noted(FILES, ("v.de", "v.en"), tests) == [
        "corpora.own.files.tests.news.t and corpora.own.files.tests.talks.t are the same text: "
        "the table would score it twice"
    ]


@pytest.mark.parametrize(("shared", "count"), [(2, 0), (3, 3), (60, 60)])
def test_sentences_in_two_sets_are_counted_from_a_hundredth_on(noted, shared, count):
    # without regard to case and punctuation, as dedup compares
    valid = [line.upper().rstrip(".") for line in FILES["t.de"][:shared]]
    files = {**FILES, "v.de": [*valid, *FILES["v.de"][shared:]]}
    expected = f"{count} of 300 sentences of test set news are in the validation set"
    found = [
        each
        for each in noted(files, ("v.de", "v.en"), {"news": ("t.de", "t.en")})
        if "fit" not in each
    ]
    assert found == ([f"corpora.own: {expected}"] if count else [])


@pytest.mark.parametrize("name", ["t.en", "t.en.gz"])
def test_a_test_set_that_is_moved_by_a_line(noted, name):
    moved = [*ENGLISH[600:700], *ENGLISH[701:900], ENGLISH[700]]
    (note,) = noted({**FILES, name: moved}, ("v.de", "v.en"), {"news": ("t.de", name)})
    assert note.startswith(
        "corpora.own.files.tests.news.t: its sides do not fit line by line: lines 1"
    )
    assert note.endswith(" fit the target 1 line earlier. Compare these lines")


def test_a_text_that_is_not_parallel(noted):
    files = {**FILES, "t.en": ENGLISH[600:899]}
    (note,) = noted(files, ("v.de", "v.en"), {"news": ("t.de", "t.en")})
    assert note.startswith("corpora.own.files.tests.news.t: inputs/t.de has 300 lines and ")


def test_sets_that_were_downloaded_before_are_read(noted, tmp_path):
    given = tmp_path / "data" / "raw" / "own" / "given"
    given.mkdir(parents=True)
    for name, lines in (("valid", GERMAN[600:620]), ("test.news", GERMAN[600:900])):
        (given / f"{name}.de").write_text("".join(f"{line}\n" for line in lines))
    for name, lines in (("valid", ENGLISH[600:620]), ("test.news", [*ENGLISH[601:900], "x"])):
        (given / f"{name}.en").write_text("".join(f"{line}\n" for line in lines))
    moved, shared = noted({}, ("v.de", "v.en"), {"news": ("t.de", "t.en")})
    assert moved.startswith(
        "corpora.own.files.tests.news: its sides do not fit line by line: lines"
    )
    assert moved.endswith(" fit the target 1 line earlier. Compare these lines")
    assert shared == "corpora.own: 20 of 300 sentences of test set news are in the validation set"
