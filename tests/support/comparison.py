"""What the tests of `bleuprint compare` share: a project to compare, and how to read the output."""

import os
import re
import subprocess
import sys

import processes
import result_trees as trees
from bleuprint.config.paths import Run
from bleuprint.report.frame import RESULTS
from bleuprint.report.records import collect
from bleuprint.text.parallel import read_lines

TINY = Run("tiny", "news-en-de", 1)
SMALL = Run("small", "news-en-de", 1)
# The author of the commits, so that Git needs no configuration.
GIT_AUTHOR = {
    "GIT_AUTHOR_NAME": "t@x",
    "GIT_AUTHOR_EMAIL": "t@x",
    "GIT_COMMITTER_NAME": "t@x",
    "GIT_COMMITTER_EMAIL": "t@x",
}


def run_command(root, *command, status=0):
    """Run a command in a project, without the settings that this shell has for it.

    Args:
        root: The folder of the project.
        command: The command and its arguments.
        status: The status that the command must end with.

    Returns:
        What the command prints: to standard error if it fails, else to standard output.
    """
    environment = {}
    for name, value in os.environ.items():
        if not name.startswith(("DVC_", "GIT_", "BLEUPRINT_")):
            environment[name] = value
    environment.update(GIT_AUTHOR)
    environment["GIT_CONFIG_GLOBAL"] = os.devnull
    environment["COLUMNS"] = "200"
    environment["PYTHONUTF8"] = "1"
    environment["DVC_NO_ANALYTICS"] = "1"
    if command[0] == sys.executable:
        process = processes.run_text(list(command), root, environment)
    else:
        process = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True)
    assert process.returncode == status, process.stdout + process.stderr
    return process.stderr if status else process.stdout


def compare(root, *arguments, status=0):
    """Return what `bleuprint compare` prints in a project; see `run_command`."""
    return run_command(
        root, sys.executable, "-m", "bleuprint", "compare", *arguments, status=status
    )


def cells_by_line(output):
    """Return the cells of each line of the printed tables, which spaces separate."""
    return [re.split(r" {2,}", line.strip()) for line in output.split("\n")]


def score_cells(output, label):
    """Return the cells of the table of scores for one score on the test set `first`.

    They are the corpus, test set, score, both values, the difference and, if there is one, p.
    """
    (cells,) = [cells for cells in cells_by_line(output) if cells[1:3] == ["first", label]]
    return cells


def read_references(root):
    """Return the references of the test set `first`."""
    return list(read_lines(root / "data/split/news-en-de/test.first.de"))


def read_translations(root, run):
    """Return the translations of the test set `first` by a run."""
    return list(read_lines(root / run.results_folder / "hypotheses/test.first.de"))


def translate_as_reference(root, run, edits):
    """Make the references a run's translations of the test set `first`, and score them.

    Args:
        root: The folder of the project.
        run: The run.
        edits: Translations that differ from the reference, by the number of the line from 0.
    """
    lines = read_references(root)
    for number, line in edits.items():
        lines[number] = line
    trees.translate(root, trees.load_settings(root / "params.yaml"), run, "first", lines)


def write_results(root):
    """Write results.json from the records of all runs."""
    collect(trees.load_settings(root / "params.yaml"), root).save(root / RESULTS)


def write_project(root):
    """Write a project whose two systems translate five lines of `first` differently.

    Tiny has the lines 4, 9, 10 and 21 wrong, small the line 31; all other translations are equal
    to the reference. Some of the wrong ones contain control characters.
    """
    trees.write_all(root, trees.settings_in(root, corpora={"news-en-de": ("first", "second")}))
    reference = read_references(root)[20]
    tiny_edits = {
        3: "nothing",
        8: "nothing",
        9: "nothing",
        20: f"\x1b[31m{reference}\x9b\u202e",
    }
    translate_as_reference(root, TINY, tiny_edits)
    translate_as_reference(root, SMALL, {30: "\u2028\tworse"})
    write_results(root)
