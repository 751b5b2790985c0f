"""With small texts and systems, each recipe translates as `bleuprint translate` does."""

import os
import subprocess

import pytest

import micro
import small_recipes
import warm
from root import ROOT

pytestmark = pytest.mark.slow

RECIPES = sorted(path.stem for path in (ROOT / "recipes").glob("*.yaml"))
TWELVE_CORPORA_TIMEOUT_SECONDS = 3600


@pytest.mark.parametrize("name", RECIPES)
def test_the_command_translates_as_the_pipeline_does(tmp_path, name):
    """`small_recipes` shrinks the texts and systems of a recipe; its test sets have odd characters.

    For each system, `bleuprint translate` and the stage `translate` get the same source sentences
    and must give the same translations, line by line.
    """
    project = micro.make(tmp_path)
    # Other recipes run in processes that have loaded their libraries already. The default recipe
    # needs new processes: its portable arithmetic has to be set before the libraries are loaded.
    project.warm = name != "phrasebook"
    small_recipes.write(project, name)

    project.run("dvc", "repro", "translate", timeout=TWELVE_CORPORA_TIMEOUT_SECONDS)

    hypotheses_files = sorted(project.root.glob("results/*/*/1/hypotheses/test.*"))
    assert hypotheses_files != []
    for hypotheses_file in hypotheses_files:
        source_file = source_file_of(project, hypotheses_file)
        sources = source_file.read_bytes().decode().split("\n")
        translations_by_pipeline = hypotheses_file.read_bytes().decode().split("\n")
        translations_by_command = translate_with_command(project, source_file, hypotheses_file)
        assert len(translations_by_pipeline) == len(sources)
        assert translations_by_command == translations_by_pipeline
        # A model that translates all lines alike would hide differences.
        assert len(set(translations_by_pipeline)) > 2


def source_file_of(project, hypotheses_file):
    """Return the file with the source sentences of a test set.

    Args:
        project: The project.
        hypotheses_file: The translations, results/SYSTEM/CORPUS/SEED/hypotheses/test.SET.LANGUAGE.
    """
    corpus = hypotheses_file.parts[-4]
    test_set = hypotheses_file.stem
    files = []
    for path in project.root.glob(f"data/split/{corpus}/{test_set}.*"):
        if path.name != hypotheses_file.name:
            files.append(path)
    (source_file,) = files
    return source_file


def translate_with_command(project, source_file, hypotheses_file):
    """Translate a test set with `bleuprint translate`, and return the lines that it prints.

    Args:
        project: The project.
        source_file: The source sentences.
        hypotheses_file: The translations by the pipeline, whose path names the system.
    """
    system, corpus = hypotheses_file.parts[-5:-3]
    command = ["bleuprint", "translate", f"--system={system}", f"--corpus={corpus}"]
    direction = direction_of(source_file, hypotheses_file)
    if direction:
        command.append(f"--direction={direction}")
    environment = dict(project.environment)
    if project.warm:
        environment["PATH"] = f"{warm.folder()}{os.pathsep}{environment['PATH']}"

    done = subprocess.run(
        command,
        cwd=project.root,
        env=environment,
        input=source_file.read_bytes(),
        capture_output=True,
        timeout=240,
    )

    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode().split("\n")


def direction_of(source_file, hypotheses_file):
    """Return the direction of a test set in a corpus of several, such as `en-de`; None otherwise.

    The files of such a corpus end in .src and .tgt, and the set's name begins with its languages.
    """
    has_several_directions = (source_file.suffix, hypotheses_file.suffix) == (".src", ".tgt")
    test_set = hypotheses_file.stem
    if not has_several_directions or test_set.count("-") < 2:
        return None
    return test_set.removeprefix("test.")[: len("en-de")]
