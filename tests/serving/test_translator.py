"""A user's sentences are translated as by the pipeline, one line for each line."""

import dataclasses
import json
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
import processors
from bleuprint.cli.options import trained_run
from bleuprint.config.experiment import load_settings
from bleuprint.config.paths import Run
from bleuprint.config.system import Average
from bleuprint.dataset.subwords.vocabulary import EOS
from bleuprint.decoding.beam_search import Hypothesis, length_penalty
from bleuprint.rules.rule import Edit
from bleuprint.runtime.files import sha256_of
from bleuprint.serving.translator import Translator, _PreparedSentence, load_translator
from bleuprint.text.tokenizers import Tokenize, tokenizer_for
from trainings import environment

RUN = Run("micro", "toy", 1)
COMMAND = (sys.executable, "-m", "bleuprint", "translate", "--system=micro", "--corpus=toy")


def lines(toy, name):
    return (toy / name).read_text(encoding="utf-8").removesuffix("\n").split("\n")


def run(toy, *arguments, text=b"", status=0):
    done = processes.run([*COMMAND, *arguments], toy, environment(), text)
    assert done.returncode == status, done.stderr.decode()
    return done.stdout.decode(), done.stderr.decode()


def test_a_test_set_is_translated_as_by_the_pipeline(toy):
    source, expected = toy / "data/split/toy/test.x.de", lines(toy, hypotheses())
    found, said = run(toy, text=source.read_bytes())
    assert found.splitlines() == expected
    # the micro model translates some lines to nothing
    assert all(line.startswith("bleuprint: warning: ") for line in said.splitlines())
    numbers = [int(n) for n in re.findall(r"standard input:(\d+): the translation is empty", said)]
    assert numbers and all(expected[number - 1] == "" for number in numbers)
    twice, _ = run(toy, "--n-best=2", str(source), str(source))
    rows = [line.split(" ||| ") for line in twice.splitlines()]
    assert [int(number) for number, *_ in rows] == [n // 2 for n in range(4 * len(expected))]
    assert [text for _, text, _ in rows[::2]] == expected * 2
    assert all(float(a[2]) >= float(b[2]) for a, b in zip(rows[::2], rows[1::2], strict=True))


def test_other_settings_than_those_of_the_training_are_noted(toy, monkeypatch, capsys):
    monkeypatch.chdir(toy)
    given, settings = Namespace(system="micro", corpus="toy", seed=None), load_settings()
    system = settings.system_settings("micro")
    for each, noted in (
        (system, 0),
        (replace(system, decode=replace(system.decode, beam=9)), 0),
        (replace(system, average=Average(last=2)), 1),
        (replace(system, train=replace(system.train, label_smoothing=0.3)), 1),
    ):
        assert trained_run(replace(settings, runs={"micro": {"toy": each}}), given) == RUN
        said = "note: system micro, corpus toy, seed 1: trained with other settings than"
        assert capsys.readouterr().err.count(said) == noted


def test_unknown_words_are_named_once_a_run(toy):
    _, said = run(toy, text=b"be ba. zzz zz\n" * 600)
    (line,) = [line for line in said.splitlines() if "empty" not in line]
    assert line.startswith("bleuprint: note: 1,200 of 2,400 words were not in the training text: ")
    assert "zzz, zz (" in line


def test_a_terminal_is_told_what_to_type(toy):
    typed, terminal = pty.openpty()
    os.write(typed, b"\n\x04")
    done = subprocess.run(COMMAND, cwd=toy, env=environment(), stdin=terminal, capture_output=True)
    os.close(typed)
    os.close(terminal)
    assert done.stdout == b"\n"
    assert done.stderr == b"bleuprint: note: Type one sentence per line. Press Ctrl-D to finish.\n"


def test_no_text_is_said(toy):
    said = "bleuprint: note: no input. Pass FILE, or one sentence per line on standard "
    assert run(toy) == ("", f"{said}input\n")


def test_a_translation_cut_at_its_maximum_length_is_named(toy, translator):
    """Two tokens at most: of what takes more without a limit."""
    texts = ["be", "ba be", "gu", *lines(toy, "data/split/toy/test.x.de")]
    short = dataclasses.replace(translator.decode, beam=1, max_len_a=0, max_len_b=2)
    limited = load_translator(RUN, short)
    free = load_translator(RUN, dataclasses.replace(short, max_len_b=50))
    lengths = [len(each.pieces[0].tokens) for each in free(texts)]
    assert any(length > 2 for length in lengths) and any(length <= 2 for length in lengths)
    warning = (
        "the translation is cut off at its maximum length (decode.max_len_a, decode.max_len_b)"
    )
    for length, each in zip(lengths, limited(texts), strict=True):
        assert (warning in each.warnings) == (length > 2)


def test_a_line_of_several_sentences_is_one_sentence(toy, translator):
    """The second line is the first in two: their translations joined are not that of the first."""
    texts = ["be gibu. Gu dibe. Ba be!", "be gibu.", "Gu dibe. Ba be!"]
    found, _ = run(toy, text="".join(f"{text}\n" for text in texts).encode())
    whole, first, rest = found.split("\n")[:-1]
    assert whole == translator(texts[:1])[0].translations[0].text != f"{first} {rest}"
    assert len(translator(texts[:1])[0].pieces) == 1


def test_lines_far_longer_than_the_training_text_are_noted_once(toy, translator):
    """Of 595 training sentences 99.9% are all of them, so the longest; 1.5 times it is not far."""
    trained = lines(toy, "data/split/toy/train.de")
    assert len(trained) < 1000
    longest = max(len(translator.ids(line)) + 1 for line in trained)
    assert translator.usual_length == longest
    one = len(translator.ids("be"))
    at_most = int(1.5 * longest) - 1  # words of one token, before EOS
    assert one == 1
    text = "\n".join(["ba be", "be " * at_most, "be " * (at_most + 1), "be " * 90])
    _, said = run(toy, text=text.encode())
    notes = [line for line in said.splitlines() if "far longer" in line]
    assert notes == [
        "bleuprint: note: standard input:3: 2 lines are far longer than the training sentences "
        f"(99.9% have at most {longest} tokens). A line is translated as one sentence: put each "
        "sentence on a line of its own"
    ]


def test_white_space_is_kept_where_no_rule_cleans(translator, monkeypatch):
    """As in the stage tokenize: spaCy's tokens of white space count with `clean: {}` alone."""
    tokenizer = tokenizer_for("de", Tokenize("spacy", white_space=True))
    monkeypatch.setattr(translator.corpus, "tokenizer", lambda _: tokenizer)
    uncleaned = Translator(translator.model, translator.corpus, (), translator.decode)
    (found,) = uncleaned([" ba  be"])
    assert found.words == ["\u2420", "ba", "\u2420", "be"]
    (cleaned,) = translator([" ba  be"])
    assert cleaned.words == ["ba", "be"]


def hypotheses():
    return str(RUN.results_folder / "hypotheses" / "test.x.en")


def test_whatever_comes_in_a_line_goes_out(translator):
    odd = ["", " ", "\x01\x07", "مرحبا 👍🏽", "a\rb\u2028c\x0b", "ba " * 40, "\u0000", "🙂" * 50]
    found = translator(odd)
    assert len(found) == len(odd)
    texts = [each.translations[0].text for each in found]
    assert texts[:2] == ["", ""]
    assert not any("\n" in text for text in texts)
    assert texts == [translator([line])[0].translations[0].text for line in odd]


@dataclass(frozen=True)
class NameLanguage(Edit):
    """Puts the language that it is given before a sentence."""

    def edit(self, sentence, language):
        return f"{language} {sentence}"


def test_a_sentence_is_edited_in_its_language(translator):
    naming = Translator(translator.model, translator.corpus, (NameLanguage(),), translator.decode)
    assert naming.ids("ba") == translator.ids("de ba")
    assert len({tuple(translator.ids(text)) for text in ("ba", "de ba", "en ba")}) == 3


def test_the_edits_are_those_of_the_text_that_the_model_learned(translator):
    found = load_translator(Run("micro", "toy", 1), translator.decode)
    composed, decomposed = "caf\u00e9\x00", "cafe\u0301"  # unicode: NFC, and non_printing
    assert found.ids(decomposed) == found.ids(composed) == translator.ids(composed)


def test_what_is_too_long_is_translated_in_pieces(translator):
    # of three units and of one; a piece has room for 255, since max_positions 256 counts the end
    three, one = "Bbb", "be"
    assert [len(translator.ids(word)) for word in (three, one)] == [3, 1]
    sentence = f"{one} " * 2 + f"{three} " * 200
    whole, between = translator([sentence, one])
    assert whole.excess_tokens == 602 - 255
    assert between.translations[0].text == translator([one])[0].translations[0].text
    pieces = translator([f"{one} " * 2 + f"{three} " * 84, f"{three} " * 85, f"{three} " * 31])
    texts = [each.translations[0].text for each in pieces]
    assert all(texts)
    assert whole.translations[0].text == " ".join(texts)


def test_a_file_is_kept_where_nothing_can_be_aligned(toy, tmp_path):
    kept = tmp_path / "pharaoh"
    kept.write_text("0-0\n")
    damaged = shutil.copytree(toy, tmp_path / "damaged", symlinks=True)
    weights = damaged / RUN.models_folder / "averaged" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:100])
    _, said = run(damaged, f"--alignment={kept}", text=b"ba\n", status=1)
    assert kept.read_text() == "0-0\n" and "model.safetensors" in said


def test_the_text_to_translate_is_not_written_over(toy, tmp_path):
    (text := tmp_path / "text").write_text("ba be\n")
    with text.open("rb") as stdin:
        command = processes.loaded([*COMMAND, f"--alignment={text}"])
        done = subprocess.run(
            command, cwd=toy, env=environment(), stdin=stdin, capture_output=True, timeout=60
        )
    assert done.returncode == 1 and b"this file contains the text to translate" in done.stderr
    assert text.read_text() == "ba be\n"


def test_alignments_go_to_a_file(toy, tmp_path, translator):
    text = "ba be\n\nBbb fa. Ga le!\n" + "be " * 300
    expected, _ = run(toy, text=text.encode())
    found, _ = run(toy, f"--alignment={tmp_path / 'pharaoh'}", text=text.encode())
    assert found == expected
    rows = [line.split(" ||| ") for line in lines(tmp_path, "pharaoh")]
    assert [source for source, *_ in rows] == ["ba be", "", "Bbb fa . Ga le !", ("be " * 300)[:-1]]
    assert rows[1] == ["", "", ""]
    detokenize = translator.corpus.tokenizer("en").detokenize
    for (source, target, links), text in zip(rows[:2], expected.split("\n"), strict=False):
        assert detokenize(target.split()) == text
        pairs = [tuple(map(int, link.split("-"))) for link in links.split()]
        assert pairs == sorted(set(pairs))
        # each word of the translation has a source word
        assert {place for _, place in pairs} == set(range(len(target.split())))
        assert all(place < len(source.split()) for place, _ in pairs)
    # the second of two pieces, and a second sentence, is aligned to its own words
    for row, second in ((rows[2], 3), (rows[3], 255)):
        assert any(int(link.split("-")[0]) >= second for link in row[2].split())


@pytest.mark.parametrize(
    ("arguments", "text", "status", "message"),
    [
        (("--n-best=3",), b"ba\n", 1, "Add: --beam 3"),
        (("--beam=1001",), b"", 2, "'1001' is not a whole number from 1 to 1000"),
        (("--beam=999",), b"", 1, "a beam of 999 is wider than the vocabulary of "),
        (("--seed=2",), b"", 1, "params.yaml: no seed 2; there are: "),
        (("--alignment=./params.yaml", "params.yaml"), b"", 1, "params.yaml: this file contains"),
        (("--alignment=no/a",), b"ba\n", 1, "error: No such file or directory: no/a"),
        (
            (),
            b"ba\rbe\r",
            1,
            r"standard input: its lines end in \r alone, as on old Macs. Convert it: tr ",
        ),
        ((), b"ba\n\xff\n", 1, "standard input:2: byte 1 of the line is 0xff: not UTF-8"),
    ],
)
def test_errors_are_reported_in_one_line(toy, arguments, text, status, message):
    _, said = run(toy, *arguments, text=text, status=status)
    assert message in said
    assert "Traceback" not in said


def test_search_in_bfloat16_finds_nearly_the_same(toy, translator, monkeypatch):
    monkeypatch.setenv("BLEUPRINT_EMULATE", "1")
    sources = lines(toy, "data/split/toy/test.x.de")
    decode = dataclasses.replace(translator.decode, precision="bfloat16")
    rounded = load_translator(RUN, decode)
    texts, theirs = ([each.translations[0] for each in of(sources)] for of in (translator, rounded))
    same = [a.score for a, b in zip(texts, theirs, strict=True) if a.text == b.text]
    assert len(same) > 0.8 * len(sources)
    scores = [b.score for a, b in zip(texts, theirs, strict=True) if a.text == b.text]
    assert scores == pytest.approx(same, abs=0.1) and scores != same


def test_outputs_of_one_text_are_one_translation(translator):
    """Outputs of different subwords but equal text are merged; the better score is kept."""
    outputs = [
        Hypothesis([5], -1.0, -1.5),
        Hypothesis([6], -2.0, -3.0),
        Hypothesis([5], -4.0, -6.0),
    ]
    prepared = _PreparedSentence(["ba"], token_count=1, pieces=[[5, EOS]])
    found = translator._different_translations(prepared, [outputs])
    assert [one.score for one in found] == [-1.0, -2.0]
    assert len({one.text for one in found}) == 2


def test_pieces_have_one_score_by_the_penalty_of_their_length(translator):
    halves = ["be " * 255, "be " * 30]
    (whole,), parts = translator(["".join(halves)]), translator(halves)
    lengths = [len(part.pieces[0].tokens) + 1 for part in parts]
    logs = [
        part.translations[0].score * length_penalty(length, translator.decode)
        for part, length in zip(parts, lengths, strict=True)
    ]
    expected = sum(logs) / length_penalty(sum(lengths), translator.decode)
    assert whole.translations[0].score == pytest.approx(expected)


@pytest.fixture(scope="module", params=["float32", "int8"])
def exported(request, toy, tmp_path_factory):
    """A folder with the exported system, moved since; tests leave it as it is."""
    folder = tmp_path_factory.mktemp("exported") / "before"
    export(toy, folder, request.param).check_returncode()
    return folder.rename(folder.with_name(request.param))


def export(toy, folder, precision):
    arguments = ["export", "--system=micro", "--corpus=toy", f"--precision={precision}", folder]
    return processes.run([*COMMAND[:3], *map(str, arguments)], toy, environment())


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def script_of(exported):
    """The command of the exported system, without what the user has in the Python path."""
    return [sys.executable, "-I", str(exported / "translate.py")]


def equal_lines(exported, given, expected, variables):
    """The number of lines of a file that an exported system translates as expected."""
    done = subprocess.run(
        [*script_of(exported), given, given],
        cwd=given.parent,
        env=os.environ | variables,
        capture_output=True,
        check=True,
    )
    found = done.stdout.decode().removesuffix("\n").split("\n")
    return sum(one == other for one, other in zip(found, expected, strict=True))


def test_an_exported_system_translates_without_this_project(toy, tmp_path, exported):
    given = tmp_path / "given.txt"
    given.write_text("\n" + (toy / "data/split/toy/test.x.de").read_text())
    expected = 2 * ["", *lines(toy, hypotheses())]
    assert json.loads((exported / "settings.json").read_text())["precision"] == exported.name
    if exported.name == "float32":
        assert equal_lines(exported, given, expected, {}) == len(expected)
        return
    # Of 40 sentences 38 are equal with VNNI and 20 without, with MKL and with oneDNN, on processors
    # of both vendors. It makes such a difference because the model is small: its largest weights
    # decide most sums, and large sums saturate.
    with_vnni = equal_lines(exported, given, expected, processors.INT8_WITH_VNNI)
    without_vnni = equal_lines(exported, given, expected, processors.INT8_WITHOUT_VNNI)
    assert with_vnni > 0.8 * len(expected)
    assert 0.4 * len(expected) < without_vnni < with_vnni


def test_errors_of_an_exported_system_are_reported_in_one_line(tmp_path, exported):
    given = tmp_path / "given.txt"
    given.write_bytes(b"ba\n\xff\n")
    for arguments, status, message in (
        (["--beam=2"], 2, "translate.py: error: unrecognized arguments: --beam=2\n"),
        (["nowhere"], 1, "translate.py: [Errno 2] No such file or directory: 'nowhere'\n"),
        ([given], 1, f"{given}:2: not UTF-8: "),
    ):
        command = [*script_of(exported), *arguments]
        refused = subprocess.run(command, capture_output=True, text=True)
        assert refused.stdout.count("\n") == (arguments == [given])  # the line before
        assert refused.returncode == status
        assert "Traceback" not in refused.stderr
        assert message in refused.stderr


def test_an_exported_system_without_a_place_for_its_output_fails(tmp_path, exported):
    given = tmp_path / "given.txt"
    given.write_bytes(b"ba\n\xff\n")
    command = " ".join([*script_of(exported), str(given)])
    for streams, said in (
        (">/dev/full", "translate.py: [Errno 28] No space left on device\n"),
        (">&-", "translate.py: standard output is closed\n"),
        ("2>&-", ""),
    ):
        shell = ["bash", "-c", f"{command} {streams}"]
        odd = subprocess.run(shell, capture_output=True, text=True)
        assert (odd.returncode, odd.stderr) == (1, said)
        assert odd.stdout.count("\n") == (streams == "2>&-")


def test_an_exported_system_says_which_training_it_is(toy, exported):
    readme = (exported / "README.md").read_text()
    training = json.loads((toy / RUN.results_folder / "training.json").read_text())
    weights = toy / RUN.models_folder / "averaged" / "model.safetensors"
    assert training["fingerprint"] in readme
    assert sha256_of(weights) in readme


def test_an_export_overwrites_no_folder(toy, exported):
    before = contents(exported)
    again = export(toy, exported, exported.name)
    assert again.returncode == 1
    message = f"{exported} exists already. Name another folder"
    assert again.stderr.decode() == f"bleuprint: error: {message}\n"
    assert contents(exported) == before
