"""`bleuprint translate` translates files and standard input as the pipeline does."""

import os
import pty
import re
import shutil
import subprocess
import sys
from argparse import Namespace
from dataclasses import dataclass, replace

import pytest

import processes
from bleuprint.cli.options import trained_run
from bleuprint.config.experiment import load_settings
from bleuprint.config.paths import Run
from trainings import environment

RUN = Run("micro", "toy", 1)
COMMAND = (sys.executable, "-m", "bleuprint", "translate", "--system=micro", "--corpus=toy")
TEST_SOURCE = "data/split/toy/test.x.de"


def read_lines(path):
    """Return the lines of a file; only a newline ends a line."""
    return path.read_text(encoding="utf-8").removesuffix("\n").split("\n")


def stage_translations(toy):
    """Return the translations of the test set by the stage translate."""
    return read_lines(toy / RUN.results_folder / "hypotheses" / "test.x.en")


def run_translate(project, *arguments, text=b"", status=0):
    """Run `bleuprint translate` in a project, and return its output and its messages.

    Args:
        project: The project.
        arguments: The arguments of the command, after system and corpus.
        text: What standard input contains.
        status: The expected exit status.
    """
    process = processes.run([*COMMAND, *arguments], project, environment(), text)
    assert process.returncode == status, process.stderr.decode()
    return process.stdout.decode(), process.stderr.decode()


def test_the_command_translates_a_test_set_as_the_stage_does(toy):
    output, _ = run_translate(toy, text=(toy / TEST_SOURCE).read_bytes())

    assert output.splitlines() == stage_translations(toy)


def test_a_warning_names_each_line_with_an_empty_translation(toy):
    """The small model of this project translates some lines to nothing."""
    _, messages = run_translate(toy, text=(toy / TEST_SOURCE).read_bytes())

    translations = stage_translations(toy)
    for line in messages.splitlines():
        assert line.startswith("bleuprint: warning: ")
    line_numbers = re.findall(r"standard input:(\d+): the translation is empty", messages)
    assert line_numbers
    for line_number in line_numbers:
        assert translations[int(line_number) - 1] == ""


@pytest.fixture(scope="module")
def n_best_rows(toy):
    """Return the rows `NUMBER ||| TEXT ||| SCORE` of two translations of each line of two files.

    Both files are the source of the test set.
    """
    source = str(toy / TEST_SOURCE)
    output, _ = run_translate(toy, "--n-best=2", source, source)
    return [line.split(" ||| ") for line in output.splitlines()]


def test_n_best_lists_number_the_lines_of_all_files(toy, n_best_rows):
    """Two files are translated, with two translations of each line: `NUMBER ||| TEXT ||| SCORE`."""
    line_count = 2 * len(stage_translations(toy))  # of two files

    expected_numbers = []
    for line_number in range(line_count):
        expected_numbers += [line_number, line_number]  # two translations of each line
    numbers = [int(number) for number, _, _ in n_best_rows]
    assert numbers == expected_numbers


def test_the_first_of_the_n_best_translations_is_the_best(toy, n_best_rows):
    """It is the one that the stage `translate` writes. The test set was given twice."""
    first_rows = n_best_rows[::2]
    second_rows = n_best_rows[1::2]

    assert [text for _, text, _ in first_rows] == stage_translations(toy) * 2
    for (_, _, first_score), (_, _, second_score) in zip(first_rows, second_rows, strict=True):
        assert float(first_score) >= float(second_score)


@pytest.mark.parametrize(
    ("part", "changes", "note_count"),
    [
        pytest.param("decode", {}, 0, id="equal settings"),
        pytest.param("decode", {"beam": 9}, 0, id="another search"),
        pytest.param("average", {"last": 2}, 1, id="another average"),
        pytest.param("train", {"label_smoothing": 0.3}, 1, id="another training"),
    ],
)
def test_a_note_says_if_the_system_was_trained_with_other_settings(
    toy, monkeypatch, capsys, part, changes, note_count
):
    """The user may have edited params.yaml after the training; search settings do not matter."""
    monkeypatch.chdir(toy)
    settings = load_settings()
    system = settings.system_settings("micro")
    changed_part = replace(getattr(system, part), **changes)
    changed_parts = {part: changed_part}
    changed_system = replace(system, **changed_parts)
    changed_settings = replace(settings, runs={"micro": {"toy": changed_system}})

    run = trained_run(changed_settings, Namespace(system="micro", corpus="toy", seed=None))

    assert run == RUN
    note = "note: system micro, corpus toy, seed 1: params.yaml has changed since"
    assert capsys.readouterr().err.count(note) == note_count


def test_one_note_names_the_unknown_words_of_all_lines(toy):
    """Two of the four words in each of 600 lines are unknown; the note comes once, at the end."""
    _, messages = run_translate(toy, text=b"be ba. zzz zz\n" * 600)

    (note,) = [line for line in messages.splitlines() if "empty" not in line]
    assert note.startswith("bleuprint: note: 1,200 of 2,400 words were not in the training text: ")
    assert "zzz, zz (" in note


def test_the_command_tells_a_user_at_a_terminal_what_to_type(toy):
    keyboard, terminal = pty.openpty()
    os.write(keyboard, b"\n\x04")  # an empty line and Ctrl-D

    process = subprocess.run(
        COMMAND, cwd=toy, env=environment(), stdin=terminal, capture_output=True
    )

    os.close(keyboard)
    os.close(terminal)
    assert process.stdout == b"\n"
    assert process.stderr == (
        b"bleuprint: note: Type one sentence per line. Press Ctrl-D to finish.\n"
    )


def test_a_note_says_that_there_is_no_input(toy):
    output, messages = run_translate(toy, text=b"")

    assert output == ""
    assert messages == (
        "bleuprint: note: no input. Pass FILE, or one sentence per line on standard input\n"
    )


def test_several_sentences_on_a_line_are_translated_as_one(toy, translator):
    sentences = "be gibu. Gu dibe. Ba be!"
    first_part = "be gibu."
    second_part = "Gu dibe. Ba be!"
    text = f"{sentences}\n{first_part}\n{second_part}\n"

    output, _ = run_translate(toy, text=text.encode())

    translation, first_translation, second_translation = output.split("\n")[:-1]
    (translated,) = translator([sentences])
    assert len(translated.pieces) == 1
    assert translation == translated.translations[0].text
    assert translation != f"{first_translation} {second_translation}"


def test_one_note_counts_the_lines_far_longer_than_the_training_sentences(toy, translator):
    """Far longer means: more than 1.5 times the length that 99.9% of the sentences have at most."""
    training_lines = read_lines(toy / "data/split/toy/train.de")
    # So few sentences have 99.9% only if all of them are counted: the limit is the longest.
    assert len(training_lines) < 1000
    longest = max(len(translator.ids(line)) + 1 for line in training_lines)  # EOS counts, too
    assert translator.usual_length == longest
    assert len(translator.ids("be")) == 1
    most_words = int(1.5 * longest) - 1  # words of one token, without EOS
    lines = ["ba be", "be " * most_words, "be " * (most_words + 1), "be " * 90]

    _, messages = run_translate(toy, text="\n".join(lines).encode())

    notes = [line for line in messages.splitlines() if "far longer" in line]
    assert notes == [
        "bleuprint: note: standard input:3: 2 lines are far longer than the training sentences "
        f"(99.9% have at most {longest} tokens). A line is translated as one sentence. Put each "
        "sentence on its own line"
    ]


def test_an_old_alignment_file_is_kept_if_the_model_cannot_be_read(toy, tmp_path):
    alignment_file = tmp_path / "alignment"
    alignment_file.write_text("0-0\n")
    damaged = shutil.copytree(toy, tmp_path / "damaged", symlinks=True)
    weights = damaged / RUN.models_folder / "averaged" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:100])

    _, messages = run_translate(damaged, f"--alignment={alignment_file}", text=b"ba\n", status=1)

    assert "model.safetensors" in messages
    assert alignment_file.read_text() == "0-0\n"


def test_the_alignment_file_may_not_be_the_text_to_translate(toy, tmp_path):
    text_file = tmp_path / "text"
    text_file.write_text("ba be\n")

    with text_file.open("rb") as stdin:
        process = subprocess.run(
            processes.in_loaded_python([*COMMAND, f"--alignment={text_file}"]),
            cwd=toy,
            env=environment(),
            stdin=stdin,
            capture_output=True,
            timeout=60,
        )

    assert process.returncode == 1
    assert b"this file contains the text to translate" in process.stderr
    assert text_file.read_text() == "ba be\n"


ALIGNED_TEXT = "ba be\n\nBbb fa. Ga le!\n" + "be " * 300


@dataclass(frozen=True)
class AlignedLine:
    """A line of an alignment file, `SOURCE ||| TARGET ||| LINKS`.

    Attributes:
        source: The words of the source, separated by spaces.
        target: The words of the translation.
        links: The numbers of the source word and of the target word of each link, such as (0, 2).
    """

    source: str
    target: str
    links: list[tuple[int, int]]


def parse_alignment(line):
    """Parse a line of an alignment file, in which a link is written as `0-2`."""
    source, target, joined_links = line.split(" ||| ")
    links = []
    for link in joined_links.split():
        source_word, target_word = link.split("-")
        links.append((int(source_word), int(target_word)))
    return AlignedLine(source, target, links)


@pytest.fixture(scope="module")
def alignment(toy, tmp_path_factory):
    """Return the output of `translate --alignment` for ALIGNED_TEXT, and the alignment of lines."""
    alignment_file = tmp_path_factory.mktemp("alignment") / "alignment"
    output, _ = run_translate(toy, f"--alignment={alignment_file}", text=ALIGNED_TEXT.encode())
    return output, [parse_alignment(line) for line in read_lines(alignment_file)]


def test_alignments_do_not_change_the_translations(toy, alignment):
    output, _ = alignment

    output_without_alignment, _ = run_translate(toy, text=ALIGNED_TEXT.encode())

    assert output == output_without_alignment


def test_the_alignment_file_contains_the_words_of_each_source_line(alignment):
    """The translated text has four lines: "ba be", "", "Bbb fa. Ga le!" and "be" 300 times."""
    _, aligned_lines = alignment

    assert [line.source for line in aligned_lines] == [
        "ba be",
        "",
        "Bbb fa . Ga le !",
        ("be " * 300).rstrip(),
    ]


def test_the_alignment_of_an_empty_line_is_empty(alignment):
    """The second of the translated lines is empty."""
    _, aligned_lines = alignment

    assert aligned_lines[1] == AlignedLine(source="", target="", links=[])


def test_the_alignment_file_contains_the_words_of_each_translation(alignment, translator):
    """Its words are separated by spaces; joined, they must be the text that the command prints."""
    output, aligned_lines = alignment

    detokenize = translator.corpus.tokenizer("en").detokenize
    translations = output.split("\n")
    assert detokenize(aligned_lines[0].target.split()) == translations[0]
    assert detokenize(aligned_lines[1].target.split()) == translations[1]


def test_each_word_of_a_translation_is_linked_to_words_of_the_source(alignment):
    """A link is a pair of word numbers, of the source and of the translation."""
    _, aligned_lines = alignment

    for line in aligned_lines[:2]:
        assert line.links == sorted(set(line.links))
        linked_target_words = set()
        for source_word, target_word in line.links:
            linked_target_words.add(target_word)
            assert source_word < len(line.source.split())
        assert linked_target_words == set(range(len(line.target.split())))


def test_words_of_a_second_sentence_are_linked(alignment):
    """The third of the translated lines is "Bbb fa. Ga le!"."""
    _, aligned_lines = alignment
    line = aligned_lines[2]
    first_word_of_second_sentence = line.source.split().index("Ga")

    assert first_word_of_second_sentence == 3
    assert any(word >= first_word_of_second_sentence for word, _ in line.links)


def test_words_of_a_second_piece_are_linked_to_their_place_in_the_line(alignment):
    """The model takes 255 tokens at a time, so the line of 300 words is split into two pieces."""
    _, aligned_lines = alignment

    assert any(source_word >= 255 for source_word, _ in aligned_lines[3].links)


@pytest.mark.parametrize(
    ("arguments", "text", "status", "message"),
    [
        pytest.param(["--n-best=3"], b"ba\n", 1, "Add: --beam 3", id="n-best above the beam"),
        pytest.param(
            ["--beam=1001"],
            b"",
            2,
            "'1001' is not a whole number from 1 to 1000",
            id="beam above 1000",
        ),
        pytest.param(
            ["--beam=999"],
            b"",
            1,
            "a beam of 999 is wider than the vocabulary of ",
            id="beam above the vocabulary",
        ),
        pytest.param(
            ["--seed=2"], b"", 1, "params.yaml: no seed 2; there are: ", id="unknown seed"
        ),
        pytest.param(
            ["--alignment=./params.yaml", "params.yaml"],
            b"",
            1,
            "params.yaml: this file contains",
            id="alignment over the text",
        ),
        pytest.param(
            ["--alignment=no/a"],
            b"ba\n",
            1,
            "error: No such file or directory: no/a",
            id="no folder for the alignment",
        ),
        pytest.param(
            [],
            b"ba\rbe\r",
            1,
            r"standard input: its lines end in \r alone, as on old Macs. ",
            id="line ends of old Macs",
        ),
        pytest.param(
            [],
            b"ba\n\xff\n",
            1,
            "standard input:2: byte 1 of the line is 0xff: not UTF-8",
            id="not UTF-8",
        ),
    ],
)
def test_an_error_is_reported_without_a_traceback(toy, arguments, text, status, message):
    _, messages = run_translate(toy, *arguments, text=text, status=status)

    assert message in messages
    assert "Traceback" not in messages
