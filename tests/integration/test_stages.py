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


def stage(root, name, *arguments):
    environment = {key: value for key, value in os.environ.items() if key != "BLEUPRINT_MIRROR"}
    environment.pop("DVC_ROOT", None)
    command = [sys.executable, str(SCRIPTS / f"{name}.py"), *arguments]
    return processes.run_text(command, cwd=root, env=environment)


@pytest.fixture
def project(tmp_path):
    (tmp_path / "params.yaml").write_text(PARAMS)
    write_resolved(tmp_path)
    inputs = TextFolder(tmp_path / "inputs", "de", "no")
    write_set(inputs, "a", PAIRS)
    return tmp_path


def test_all_stages_in_a_row(project):
    for name in DATA_STAGES:
        done = stage(project, name, "own")
        assert done.returncode == 0
        assert name == "learn_vocabulary" or not done.stderr
    corpus = BinaryCorpus(project / paths.corpus_folder("own", "binary"))
    assert [corpus.sets[name].pairs for name in corpus.sets] == [4, 1, 1]
    all_filter_stats = project / paths.filter_stats_file("own", "clean").parent
    assert {file.stem for file in all_filter_stats.iterdir()} == {
        name.removesuffix("_text")
        for name in DATA_STAGES
        if name not in ("corpus_stats", "test_stats", "learn_vocabulary")
    }
    made = ("raw", "clean", "dedup", "filter", "split", "tokens", "test_stats", "bpe", "binary")
    for name in (*made, "corpus_stats"):
        assert any((project / paths.corpus_folder("own", name)).iterdir())
    # No temporary folder is left, nor anything outside data/.
    assert not list(project.rglob("*.partial-*"))
    left = [path for path in project.rglob("*") if path.is_file() and path.suffix != ".lock"]
    assert {path.relative_to(project).parts[0] for path in left} == {
        "params.yaml",
        "reports",
        "inputs",
        "data",
        "timings",
    }


@pytest.mark.parametrize("name", DATA_STAGES[1:])
def test_a_stage_without_its_input_is_one_line(project, name):
    done = stage(project, name, "own")
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1 and ": no such " in done.stderr


def test_no_script_hides_a_module_of_pythons():
    # A script's folder comes first where Python looks for modules: `import tokenize`, which
    # torch and the printing of tracebacks need, would find stages/tokenize.py.
    assert not {file.stem for file in SCRIPTS.glob("*.py")} & sys.stdlib_module_names
