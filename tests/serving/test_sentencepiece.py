"""A system with SentencePiece: trained, translating, exported and shown."""

import subprocess
import sys

import pytest

import processes
import trainings
from bleuprint.config.corpus import SentencePiece, Units
from bleuprint.config.experiment import load_settings
from bleuprint.config.paths import Run
from bleuprint.serving.translator import load_translator
from bleuprint.text.tokenizers import Tokenize
from trainings import environment

RUN = Run("micro", "toy", 1)
UNITS = Units(sentencepiece=SentencePiece("unigram", 310, joint=False, byte_fallback=True))
NONE = Tokenize("none", lowercase=False, hyphens=False, escape=False)
COMMAND = (sys.executable, "-m", "bleuprint")


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    made = trainings.project(
        tmp_path_factory.mktemp("pieces"),
        units=UNITS,
        tokenize=NONE,
        pairs_of=trainings.mirrored_pairs,
        max_updates=120,
        keep_last=2,
        keep_best=0,
        keep_interval=0,
    )
    trainings.train(made)
    for stage in ("average", "translate"):
        trainings.stage(made, stage).check_returncode()
    return made


def lines(path):
    return path.read_text(encoding="utf-8").split("\n")[:-1]


def run(root, *arguments, text=b""):
    done = processes.run([*COMMAND, *arguments], root, environment(), text)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def test_all_ways_to_translate_print_the_same(root, tmp_path, monkeypatch):
    """By the stage, by a command, and by the exported folder on its own, with CTranslate2."""
    source = (root / "data/split/toy/test.x.de").read_bytes()
    expected = lines(root / RUN.results_folder / "hypotheses" / "test.x.en")
    command = ["--system=micro", "--corpus=toy"]
    assert run(root, "translate", *command, text=source).split("\n")[:-1] == expected
    monkeypatch.chdir(root)
    output = tmp_path / "exported"
    run(root, "export", *command, str(output))
    assert "pip install ctranslate2 psutil sentencepiece\n" in (output / "README.md").read_text()
    script = [sys.executable, "-I", str(output / "translate.py")]
    done = subprocess.run(script, input=source, capture_output=True, check=True, cwd=tmp_path)
    assert done.stdout.decode().split("\n")[:-1] == expected
    odd = "ba 中文 \u2028x\r\x85\x00\ufeff▁\n\n<s> ba\n".encode()
    done = subprocess.run(script, input=odd, capture_output=True, check=True, cwd=tmp_path)
    assert done.stdout.count(b"\n") == 3
    assert run(root, "translate", *command, text=odd).count("\n") == 3


def test_what_is_too_long_is_split_between_words(root, monkeypatch):
    monkeypatch.chdir(root)
    translator = load_translator(RUN, load_settings().system_settings("micro").decode)
    text = (root / "data/tokens/toy/train.de").read_text().split()
    assert translator.known_words.unknown_words([*text, "x" + text[0]]) == ["x" + text[0]]
    assert len(translator.known_words) == len({*text})
    tokens = translator.corpus.segmentation("de").vocabulary.tokens
    (translated,) = translator(["xyz " * 200])
    assert translated.excess_tokens and len(translated.pieces) > 1
    assert all(tokens[piece.source[0]].startswith("▁") for piece in translated.pieces)
    assert all(len(piece.source) <= 256 for piece in translated.pieces)


def test_translations_are_words_of_the_task(root):
    """Not pieces, and not empty."""
    found = lines(root / RUN.results_folder / "hypotheses" / "test.x.en")
    assert len(found) == 40
    words = {word for line in found for word in line.split(" ")}
    assert len(words & {word.upper() for word in trainings.WORDS}) > 10
