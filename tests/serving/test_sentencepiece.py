"""A system with SentencePiece: it is trained, translates, and is exported."""

import subprocess
import sys

import pytest

import marian
import processes
import trainings
from bleuprint.config.corpus import SentencePiece, Units
from bleuprint.config.experiment import load_settings
from bleuprint.config.paths import Run
from bleuprint.serving.translator import load_translator
from bleuprint.text.tokenizers import Tokenize
from trainings import environment

RUN = Run("micro", "toy", 1)
MAX_POSITIONS = 256  # of the model in `trainings.project`
ODD_TEXT = "ba 中文 \u2028x\r\x85\x00\ufeff▁\n\n<s> ba\n"


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """Return a project whose model has been trained and has translated. Not to be changed."""
    folder = trainings.make_project(
        tmp_path_factory.mktemp("sentencepiece"),
        units=Units(sentencepiece=SentencePiece("unigram", 310, joint=False, byte_fallback=True)),
        tokenize=Tokenize("none", lowercase=False, hyphens=False, escape=False),
        pairs_of=trainings.mirrored_pairs,
        max_updates=120,
        keep_last=2,
        keep_best=0,
        keep_interval=0,
    )
    trainings.train(folder)
    trainings.run_stage(folder, "average").check_returncode()
    trainings.run_stage(folder, "translate").check_returncode()
    return folder


def split_lines(text):
    """Return the lines of a text; only a newline ends a line."""
    return text.split("\n")[:-1]


def stage_translations(project):
    """Return the translations of the test set by the stage translate."""
    hypotheses = project / RUN.results_folder / "hypotheses" / "test.x.en"
    return split_lines(hypotheses.read_text(encoding="utf-8"))


def run_bleuprint(project, command, *arguments, text=b""):
    """Run a command of bleuprint on the trained system, and return what it prints."""
    system = ("--system=micro", "--corpus=toy")
    full_command = [sys.executable, "-m", "bleuprint", command, *system, *arguments]
    process = processes.run(full_command, project, environment(), text)
    assert process.returncode == 0, process.stderr.decode()
    return process.stdout.decode()


@pytest.fixture(scope="module")
def exported(project, tmp_path_factory):
    """Return a folder with the exported system. Not to be changed."""
    folder = tmp_path_factory.mktemp("export") / "exported"
    run_bleuprint(project, "export", str(folder))
    return folder


def translate_with_exported(exported, text):
    """Return what the script of an exported system prints for a text, as bytes."""
    script = [sys.executable, "-I", str(exported / "translate.py")]
    process = subprocess.run(
        script, input=text, capture_output=True, check=True, cwd=exported.parent
    )
    return process.stdout


def test_the_command_translates_as_the_stage_does(project):
    """Compared are the translations of the test set that the stage `translate` has written."""
    source = (project / "data/split/toy/test.x.de").read_bytes()

    output = run_bleuprint(project, "translate", text=source)

    assert split_lines(output) == stage_translations(project)


def test_the_exported_system_translates_as_the_stage_does(project, exported):
    """The exported system searches with CTranslate2, the stage `translate` with PyTorch."""
    source = (project / "data/split/toy/test.x.de").read_bytes()

    output = translate_with_exported(exported, source).decode()

    assert split_lines(output) == stage_translations(project)


def test_transformers_translates_as_the_stage_does_with_the_marian_format(project, tmp_path):
    """The command writes the folder, with a README.md and the settings of the search."""
    folder = tmp_path / "marian"
    run_bleuprint(project, "export", str(folder), "--format=marian")
    model, tokenizer = marian.load_marian(folder)
    sources = split_lines((project / "data/split/toy/test.x.de").read_text(encoding="utf-8"))

    outputs = model.generate(**tokenizer(sources, return_tensors="pt", padding=True))

    texts = tokenizer.batch_decode(outputs, skip_special_tokens=True)
    expected = stage_translations(project)
    # The length penalty and the maximum length of this system have no counterpart.
    equal = [text for text, other in zip(texts, expected, strict=True) if text == other]
    assert len(equal) >= 0.9 * len(expected)
    assert "MarianMTModel.from_pretrained(FOLDER)" in (folder / "README.md").read_text()


def test_the_readme_of_the_exported_system_lists_sentencepiece(exported):
    install_command = "pip install ctranslate2 psutil sentencepiece\n"
    assert install_command in (exported / "README.md").read_text()


def test_the_command_prints_one_line_for_each_odd_line(project):
    """ODD_TEXT has three lines. They contain special symbols such as <s>, and control characters.

    Some of these, such as U+2028, end a line for Python's splitlines, but not for us.
    """
    line_count = ODD_TEXT.count("\n")

    output = run_bleuprint(project, "translate", text=ODD_TEXT.encode())

    assert output.count("\n") == line_count == 3


def test_the_exported_system_prints_one_line_for_each_odd_line(exported):
    """ODD_TEXT has three lines. They contain special symbols such as <s>, and control characters.

    Some of these, such as U+2028, end a line for Python's splitlines, but not for us.
    """
    line_count = ODD_TEXT.count("\n")

    output = translate_with_exported(exported, ODD_TEXT.encode())

    assert output.count(b"\n") == line_count == 3


@pytest.fixture
def translator(project, monkeypatch):
    """Return the translator of the project, and make its folder the working folder."""
    monkeypatch.chdir(project)
    return load_translator(RUN, load_settings().system_settings("micro").decode)


def test_words_of_the_training_text_are_known_whole(project, translator):
    """Known words are words of the text, not the pieces of SentencePiece."""
    training_words = (project / "data/tokens/toy/train.de").read_text().split()
    unknown_word = "x" + training_words[0]

    unknown = translator.known_words.unknown_words([*training_words, unknown_word])

    assert unknown == [unknown_word]
    assert len(translator.known_words) == len(set(training_words))


def test_a_sentence_that_is_too_long_for_the_model_is_split_between_words(translator):
    """200 unknown words have more subwords than the model has positions (256)."""
    (translated,) = translator(["xyz " * 200])

    assert translated.excess_tokens
    assert len(translated.pieces) > 1
    tokens = translator.corpus.segmentation("de").vocabulary.tokens
    for piece in translated.pieces:
        first_token = tokens[piece.source[0]]
        assert first_token.startswith("▁")  # SentencePiece marks the beginning of a word so.
        assert len(piece.source) <= MAX_POSITIONS


def test_the_trained_system_translates_to_words_of_the_task(project):
    """The toy task translates each word to the same word in capitals."""
    translations = stage_translations(project)

    assert len(translations) == 40  # the sentences of the test set
    translated_words = set(" ".join(translations).split(" "))
    task_words = {word.upper() for word in trainings.WORDS}
    assert len(translated_words & task_words) > 10
