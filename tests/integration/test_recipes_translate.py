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


@pytest.mark.parametrize("name", RECIPES)
def test_the_command_translates_as_the_pipeline_does(tmp_path, name):
    """Line by line, whatever the line: the text of test sets is odd (see small_recipes)."""
    project = micro.make(tmp_path)
    # the default in processes of its own, whose libraries read the variables of its arithmetic
    project.warm = name != "phrasebook"
    small_recipes.write(project, name)
    project.run("dvc", "repro", "translate", timeout=3600)  # twelve corpora of one recipe
    hypotheses = sorted(project.root.glob("results/*/*/1/hypotheses/test.*"))
    assert hypotheses
    for path in hypotheses:
        system, corpus = path.parts[-5:-3]
        test = path.name.removesuffix(path.suffix)
        sides = project.root.glob(f"data/split/{corpus}/{test}.*")
        (source,) = [side for side in sides if side.name != path.name]
        arguments = [f"--system={system}", f"--corpus={corpus}"]
        if source.suffix == ".src" and path.suffix == ".tgt" and test.count("-") >= 2:
            arguments.append(f"--direction={test.removeprefix('test.')[:5]}")
        found = translated(project, arguments, source.read_bytes())
        sources, expected = source.read_bytes().decode(), path.read_bytes().decode()
        lines = zip(sources.split("\n"), found.split("\n"), expected.split("\n"), strict=True)
        assert [line for line in lines if line[1] != line[2]] == []
        assert len(set(expected.split("\n"))) > 2


def translated(project, arguments, text):
    """What `bleuprint translate` prints for a text."""
    folder = f"{warm.folder()}{os.pathsep}" if project.warm else ""
    environment = {**project.environment, "PATH": folder + project.environment["PATH"]}
    command = ["bleuprint", "translate", *arguments]
    done = subprocess.run(
        command, cwd=project.root, env=environment, input=text, capture_output=True, timeout=240
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()
