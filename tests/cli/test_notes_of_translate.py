"""What `bleuprint translate` says of its lines, and which arguments it refuses before it begins."""

from argparse import Namespace
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from bleuprint.cli import translate
from bleuprint.cli.translate import _LineNotes, _translation_job
from bleuprint.runtime.errors import UserError


class KnownWords:
    """A vocabulary: all words that begin with k are known."""

    def unknown_words(self, words):
        return [word for word in words if not word.startswith("k")]

    def note(self, unknown_counts, word_count):
        return f"{dict(unknown_counts)} of {word_count} are unknown", "note"


class StandInTranslator:
    """A translator for which a line of more than three words is far longer than those trained."""

    known_words = KnownWords()

    def is_far_longer(self, translated):
        return len(translated.words) > 3

    def long_line_note(self):
        return "far longer"


@dataclass
class Line:
    """A translated line: its source words, and the warnings about its translation."""

    words: list
    warnings: list = field(default_factory=list)


def print_notes(capsys, lines):
    """Print what `translate` says about lines of the file `text`; return its lines on stderr."""
    notes = _LineNotes(StandInTranslator())
    for number, line in enumerate(lines, 1):
        notes.add(f"text:{number}", line)
    notes.print_summary()
    return capsys.readouterr().err.splitlines()


@pytest.mark.parametrize(
    ("warning_count", "last_lines"),
    [
        pytest.param(0, [], id="no warning"),
        pytest.param(1, [], id="1 warning"),
        pytest.param(5, [], id="5 warnings"),
        pytest.param(6, ["bleuprint: warning: and 1 more such lines"], id="6 warnings"),
        pytest.param(1205, ["bleuprint: warning: and 1,200 more such lines"], id="1,205 warnings"),
    ],
)
def test_five_warnings_are_printed_and_the_others_counted(capsys, warning_count, last_lines):
    """A long text may have thousands of warnings, which would hide everything else.

    The first line of the text has no warning, so that warnings begin with line 2.
    """
    lines = [Line(["known"])]
    lines += [Line(["known"], ["cut off"])] * warning_count

    printed_lines = print_notes(capsys, lines)

    printed_warnings = min(warning_count, 5)
    numbers = range(2, 2 + printed_warnings)
    warnings = [f"bleuprint: warning: text:{number}: cut off" for number in numbers]
    assert printed_lines == warnings + last_lines


def test_each_warning_of_a_line_is_printed(capsys):
    """A line has two warnings."""
    line = Line(["known"], ["cut off", "in pieces"])

    assert print_notes(capsys, [line]) == [
        "bleuprint: warning: text:1: cut off",
        "bleuprint: warning: text:1: in pieces",
    ]


def test_an_empty_input_is_noted(capsys):
    (note,) = print_notes(capsys, [])

    assert note.startswith("bleuprint: note: no input. Pass FILE")


def test_a_known_word_and_an_empty_line_get_no_note(capsys):
    assert print_notes(capsys, [Line(["known"]), Line([])]) == []


@pytest.mark.parametrize(
    ("long_line_count", "text"),
    [(1, "1 line is far longer"), (2, "2 lines are far longer"), (1000, "1,000 lines are")],
)
def test_lines_far_longer_than_the_training_text_are_counted_and_the_first_is_named(
    capsys, long_line_count, text
):
    """The stand-in translator takes a line of more than three words for far longer."""
    short_line = Line(["known"] * 3)
    long_line = Line(["known"] * 4)

    (note,) = print_notes(capsys, [short_line] + [long_line] * long_line_count)

    assert note.startswith(f"bleuprint: note: text:2: {text}")


def test_unknown_words_are_counted_over_all_lines(capsys):
    """The stand-in vocabulary knows words that begin with k. Two lines have four words."""
    lines = [Line(["known", "new"]), Line(["new", "other"])]

    (note,) = print_notes(capsys, lines)

    assert note == "bleuprint: note: {'new': 2, 'other': 1} of 4 are unknown"


@pytest.fixture
def arguments(tmp_path, monkeypatch):
    """Return a function that makes the arguments of `translate`, given those that matter.

    The system decodes with a beam of 4. The corpus translates English to German, and with the
    direction en-fr English to French. The current folder is tmp_path.
    """
    monkeypatch.chdir(tmp_path)
    system = SimpleNamespace(decode=SimpleNamespace(beam=4))
    languages = {None: ("en", "de"), "en-fr": ("en", "fr")}
    corpus = SimpleNamespace(
        language_pair=lambda _, direction: SimpleNamespace(languages=languages[direction])
    )
    settings = SimpleNamespace(system_on=lambda *_: system, corpus=lambda _: corpus)
    monkeypatch.setattr(translate, "load_settings", lambda: settings)
    monkeypatch.setattr(translate.options, "trained_run", lambda *_: "run")

    def make_arguments(**changes):
        arguments = {
            "system": "small",
            "corpus": "news",
            "direction": None,
            "beam": None,
            "n_best": None,
            "files": [],
            "alignment": None,
        }
        arguments.update(changes)
        return Namespace(**arguments)

    return make_arguments


@pytest.mark.parametrize("n_best", [None, 1, 4])
def test_a_beam_of_4_allows_up_to_4_outputs(arguments, n_best):
    checked = _translation_job(arguments(n_best=n_best))

    assert checked.run == "run"
    assert checked.decode.beam == 4


@pytest.mark.parametrize(
    ("direction", "languages"),
    [(None, ("en", "de")), ("en-fr", ("en", "fr"))],
    ids=["default direction", "en-fr"],
)
def test_a_direction_determines_the_languages(arguments, direction, languages):
    assert _translation_job(arguments(direction=direction)).languages == languages


def test_more_outputs_than_the_beam_of_4_are_refused(arguments):
    with pytest.raises(UserError, match=r"^--n-best 5 asks for more translations than the beam"):
        _translation_job(arguments(n_best=5))


def test_files_that_exist_are_accepted(arguments, tmp_path):
    (tmp_path / "text").touch()

    assert _translation_job(arguments(files=["text"]))


@pytest.mark.parametrize("name", ["nowhere", "folder"])
def test_a_missing_file_or_a_folder_is_refused_before_anything_is_translated(
    arguments, tmp_path, name
):
    """The first file to translate, `text`, is good; the second does not exist or is a folder."""
    (tmp_path / "text").touch()
    (tmp_path / "folder").mkdir()

    with pytest.raises(UserError, match=f"^{name}: "):
        _translation_job(arguments(files=["text", name]))


@pytest.mark.parametrize("name", ["links", "new"])
def test_alignments_are_written_to_an_old_or_a_new_file(arguments, tmp_path, name):
    for existing in ("a", "b", "links"):
        (tmp_path / existing).touch()

    assert _translation_job(arguments(files=["a", "b"], alignment=name))


@pytest.mark.parametrize("name", ["a", "b", "link_to_b"])
def test_alignments_do_not_overwrite_a_text_to_translate(arguments, tmp_path, name):
    """A user who mixes up the arguments would lose the text, also through a symbolic link to it."""
    (tmp_path / "a").touch()
    (tmp_path / "b").touch()
    (tmp_path / "link_to_b").symlink_to("b")

    with pytest.raises(UserError, match=f"^--alignment {name}: this file contains the text"):
        _translation_job(arguments(files=["a", "b"], alignment=name))


def test_a_closed_standard_output_is_refused(arguments, monkeypatch):
    monkeypatch.setattr(translate, "is_stdout_closed", lambda: True)
    with pytest.raises(UserError, match=r"^standard output is closed$"):
        _translation_job(arguments())
