"""What `bleuprint translate` says of its lines, and which arguments it refuses before it begins."""

from argparse import Namespace
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from bleuprint.cli import translate
from bleuprint.cli.translate import _check_arguments, _LineNotes
from bleuprint.runtime.errors import UserError


class KnownWords:
    """Knows the words that begin with k."""

    def unknown_words(self, words):
        return [word for word in words if not word.startswith("k")]

    def note(self, unknown, words):
        return f"{dict(unknown)} of {words} are unknown", "note"


class StandInTranslator:
    """A line is far longer than the training text if its words are more than three."""

    known_words = KnownWords()

    def is_far_longer(self, translated):
        return len(translated.words) > 3

    def long_line_note(self):
        return "far longer"


@dataclass
class Line:
    words: list
    warnings: list = field(default_factory=list)


def notes(capsys, lines):
    found = _LineNotes(StandInTranslator())
    for number, line in enumerate(lines, 1):
        found.add(f"text:{number}", line)
    found.print_summary()
    return capsys.readouterr().err.splitlines()


@pytest.mark.parametrize(
    ("warned", "more"),
    [(0, []), (1, []), (5, []), (6, ["1 more such"]), (1205, ["1,200 more such"])],
)
def test_five_warnings_are_printed_and_the_others_counted(capsys, warned, more):
    lines = [Line(["known"]), *[Line(["known"], ["cut off"])] * warned]
    said = notes(capsys, lines)
    printed = [f"bleuprint: warning: text:{n}: cut off" for n in range(2, 2 + min(warned, 5))]
    assert said == printed + [f"bleuprint: warning: and {text} lines" for text in more]


def test_each_warning_of_a_line_is_printed(capsys):
    said = notes(capsys, [Line(["known"], ["cut off", "in pieces"])])
    assert said == [
        "bleuprint: warning: text:1: cut off",
        "bleuprint: warning: text:1: in pieces",
    ]


def test_without_a_line_that_is_said(capsys):
    (said,) = notes(capsys, [])
    assert said.startswith("bleuprint: note: no input. Pass FILE")


def test_without_anything_to_say_nothing_is_said(capsys):
    assert notes(capsys, [Line(["known"]), Line([])]) == []


@pytest.mark.parametrize(
    ("longer", "said"),
    [(1, "1 line is far longer"), (2, "2 lines are far longer"), (1000, "1,000 lines are")],
)
def test_the_first_of_far_longer_lines_is_named(capsys, longer, said):
    lines = [Line(["known"] * 3), *[Line(["known"] * 4)] * longer]
    (note,) = notes(capsys, lines)
    assert note.startswith(f"bleuprint: note: text:2: {said}")


def test_unknown_words_are_counted_over_all_lines(capsys):
    (note,) = notes(capsys, [Line(["known", "new"]), Line(["new", "other"])])
    assert note == "bleuprint: note: {'new': 2, 'other': 1} of 4 are unknown"


@pytest.fixture
def given(tmp_path, monkeypatch):
    """A function: the arguments of a translation with a beam of 4, some of them changed."""
    monkeypatch.chdir(tmp_path)
    decode = SimpleNamespace(beam=4)
    pairs = {None: ("en", "de"), "en-fr": ("en", "fr")}
    corpus = SimpleNamespace(
        language_pair=lambda _, direction: SimpleNamespace(languages=pairs[direction])
    )
    settings = SimpleNamespace(
        system_on=lambda *_: SimpleNamespace(decode=decode), corpus=lambda _: corpus
    )
    monkeypatch.setattr(translate, "load_settings", lambda: settings)
    monkeypatch.setattr(translate.options, "trained_run", lambda *_: "run")
    defaults = {"system": "small", "corpus": "news", "direction": None, "beam": None}
    defaults |= {"n_best": None}

    def arguments(**changes):
        return Namespace(**{**defaults, "files": [], "alignment": None, **changes})

    return arguments


@pytest.mark.parametrize("n_best", [None, 1, 4])
def test_as_many_outputs_as_the_beam_can_be_asked_for(given, n_best):
    chosen = _check_arguments(given(n_best=n_best))
    assert chosen.run == "run"
    assert chosen.decode.beam == 4


def test_the_languages_are_those_of_the_direction(given):
    assert _check_arguments(given()).languages == ("en", "de")
    assert _check_arguments(given(direction="en-fr")).languages == ("en", "fr")


def test_more_outputs_than_the_beam_are_refused(given):
    with pytest.raises(UserError, match=r"^--n-best 5 is beyond the beam of 4$"):
        _check_arguments(given(n_best=5))


def test_every_file_must_be_there(given, tmp_path):
    (tmp_path / "text").touch()
    (tmp_path / "folder").mkdir()
    assert _check_arguments(given(files=["text"]))
    for wrong in ("nowhere", "folder"):
        with pytest.raises(UserError, match=f"^{wrong}: "):
            _check_arguments(given(files=["text", wrong]))


def test_alignments_do_not_replace_a_text(given, tmp_path):
    (tmp_path / "a").touch()
    (tmp_path / "b").touch()
    (tmp_path / "links").touch()
    (tmp_path / "same").symlink_to("b")
    assert _check_arguments(given(files=["a", "b"], alignment="links"))
    assert _check_arguments(given(files=["a", "b"], alignment="new"))
    for text in ("a", "b", "same"):
        with pytest.raises(UserError, match=f"^--alignment {text}: is the text to translate$"):
            _check_arguments(given(files=["a", "b"], alignment=text))


def test_a_closed_standard_output_is_refused(given, monkeypatch):
    monkeypatch.setattr(translate, "is_stdout_closed", lambda: True)
    with pytest.raises(UserError, match=r"^standard output is closed$"):
        _check_arguments(given())
