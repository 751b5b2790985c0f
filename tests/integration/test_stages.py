"""The scripts of the data stages."""

import os
import sys

import pytest

import processes
from bleuprint.config import paths
from bleuprint.dataset.binarized import BinaryCorpus
from bleuprint.text.parallel import TextFolder
from corpora import PAIRS, write_set
from params import PARAMS, write_resolved
from root import ROOT
from steps import DATA_STAGES

SCRIPTS = ROOT / "stages"


def run_stage(root, stage):
    """Run the script of a stage for the corpus `own` in a project's folder."""
    environment = dict(os.environ)
    for name in ("BLEUPRINT_MIRROR", "DVC_ROOT"):
        environment.pop(name, None)
    command = [sys.executable, str(SCRIPTS / f"{stage}.py"), "own"]
    return processes.run_text(command, cwd=root, env=environment)


def write_project(root):
    """Write the settings and inputs of a project with a corpus of six pairs."""
    (root / "params.yaml").write_text(PARAMS)
    write_resolved(root)
    write_set(TextFolder(root / "inputs", "de", "no"), "a", PAIRS)


@pytest.fixture
def new_project(tmp_path):
    """The folder of a project in which nothing has run."""
    write_project(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def finished_project(tmp_path_factory):
    """The folder of a project in which all data stages have run. Not to be changed."""
    root = tmp_path_factory.mktemp("project")
    write_project(root)
    for stage in DATA_STAGES:
        done = run_stage(root, stage)
        assert done.returncode == 0
        # SentencePiece, which may learn the vocabulary, writes about its progress.
        assert stage == "learn_vocabulary" or not done.stderr
    return root


def test_the_data_stages_turn_text_files_into_a_binary_corpus(finished_project):
    """The text files have six pairs. A validation and a test set of 5% each have at least one."""
    corpus = BinaryCorpus(finished_project / paths.corpus_folder("own", "binary"))

    assert corpus.sets["train"].pairs == 6 - 1 - 1
    assert corpus.sets["valid"].pairs == 1
    assert corpus.sets["test.held-out"].pairs == 1


def test_stages_that_change_text_write_filtering_statistics(finished_project):
    """The statistics of a stage are in a file of its name, such as clean.json.

    A stage whose name ends in _text uses its name without this part.
    """
    stages_without_statistics = {"corpus_stats", "test_stats", "learn_vocabulary"}
    expected_names = set()
    for stage in DATA_STAGES:
        if stage not in stages_without_statistics:
            expected_names.add(stage.removesuffix("_text"))

    folder = (finished_project / paths.filter_stats_file("own", "clean")).parent
    names = {file.stem for file in folder.iterdir()}

    assert names == expected_names


@pytest.mark.parametrize(
    "output",
    [
        "raw",
        "clean",
        "dedup",
        "filter",
        "split",
        "tokens",
        "test_stats",
        "bpe",
        "binary",
        "corpus_stats",
    ],
)
def test_each_data_stage_writes_files_into_its_folder(finished_project, output):
    folder = finished_project / paths.corpus_folder("own", output)

    assert list(folder.iterdir()) != []


def test_the_data_stages_leave_no_temporary_folders(finished_project):
    temporary_folders = list(finished_project.rglob("*.partial-*"))
    assert temporary_folders == []


def test_the_data_stages_write_only_into_the_folders_data_and_timings(finished_project):
    """DVC and Git expect all outputs there. Before the stages ran, three other names existed."""
    names_before = {"params.yaml", "reports", "inputs"}

    names_after = set()
    for path in finished_project.rglob("*"):
        if path.is_file() and path.suffix != ".lock":
            names_after.add(path.relative_to(finished_project).parts[0])

    assert names_after == names_before | {"data", "timings"}


@pytest.mark.parametrize("stage", DATA_STAGES[1:])
def test_a_stage_without_its_input_prints_one_line_of_error(new_project, stage):
    """No stage has run, so only the first stage, which is not tested here, has its inputs."""
    done = run_stage(new_project, stage)

    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert ": no such " in done.stderr


def test_the_scripts_in_stages_have_other_names_than_pythons_own_modules():
    """Python looks for modules in a script's folder first.

    With a script stages/tokenize.py, `import tokenize` would find it in place of Python's module,
    which torch and the printing of tracebacks need.
    """
    script_names = {file.stem for file in SCRIPTS.glob("*.py")}

    hidden_modules = script_names & sys.stdlib_module_names
    assert hidden_modules == set()
