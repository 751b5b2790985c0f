"""The shell commands that docs/tutorial.md prints, as a reader would paste them."""

import re
import shutil
import subprocess

import pytest

import micro
from bleuprint.config.experiment import load_settings
from root import ROOT

pytestmark = pytest.mark.slow

DEFAULT_PARAMS = (ROOT / "params.yaml").read_text("utf-8")


def tutorial_commands():
    """Return the text of each block of shell commands in docs/tutorial.md, in order."""
    page = (ROOT / "docs" / "tutorial.md").read_text("utf-8")
    return re.findall(r"^```bash\n(.*?)^```", page, re.MULTILINE | re.DOTALL)


def has_latex():
    """Return whether pdflatex and the package booktabs can typeset the tutorial's paper."""
    if shutil.which("pdflatex") is None:
        return False
    return subprocess.call(["kpsewhich", "booktabs.sty"], stdout=subprocess.DEVNULL) == 0


def test_the_tutorials_edit_of_params_yaml_defines_the_described_experiment(tmp_path):
    """The tutorial edits params.yaml by `sed` and says: three seeds, one corpus, three systems.

    `tiny-rotary` differs from `tiny` only in its positions, and `tiny-last` only in averaging.
    """
    (tmp_path / "params.yaml").write_text(DEFAULT_PARAMS, "utf-8")
    shutil.copytree(ROOT / "corpora", tmp_path / "corpora")
    (sed_block,) = [block for block in tutorial_commands() if block.startswith("sed")]

    commands = sed_block.removesuffix("bleuprint check\n")  # The next test runs the check, too.
    subprocess.run(["bash", "-ec", commands], cwd=tmp_path, check=True)

    settings = load_settings(tmp_path / "params.yaml")
    assert settings.seeds == (1, 2, 3)
    assert list(settings.corpora) == ["phrasebook-en-de"]
    assert list(settings.trained_systems) == ["tiny", "tiny-rotary", "tiny-last"]
    tiny = settings.system_settings("tiny")
    rotary = settings.system_settings("tiny-rotary")
    last = settings.system_settings("tiny-last")
    assert tiny.train.max_updates == 800
    assert tiny.train == rotary.train == last.train
    assert tiny.model.positional_encoding == "sinusoidal"
    assert rotary.model.positional_encoding == "rotary"
    assert tiny.model == last.model
    assert tiny.average.last == 5  # the mean of the last five checkpoints
    assert last.average.last == 1


def use_short_trainings(project):
    """Write the default params.yaml to a project, with trainings of 6 updates."""
    params = re.sub(r"max_updates: \d+", "max_updates: 6", DEFAULT_PARAMS)
    intervals = r"(save_interval|validate_interval|warmup_updates): \d+"
    project.write("params.yaml", re.sub(intervals, r"\1: 1", params))


def make_repository(root):
    """Make a Git repository like a clone of bleuprint, with trainings of 6 updates.

    Its .venv seems to be set up; commands use the packages of the environment of these tests. If
    LaTeX is missing, `pdflatex` is a program that does nothing.
    """
    project = micro.make(root)
    for name in ("Makefile", "pyproject.toml", "constraints.txt", "inputs/README.md"):
        shutil.copy(ROOT / name, project.root / name)
    for name in ("a.en", "a.de"):  # texts of the micro project, which a clone does not contain
        (project.root / "inputs" / name).unlink()
    (project.root / ".venv" / "bin").mkdir(parents=True)
    for name in (".ready", "bin/activate"):
        project.write(f".venv/{name}", "")
    if not has_latex():
        project.write(".venv/bin/pdflatex", "#!/bin/sh\n")
        (project.root / ".venv/bin/pdflatex").chmod(0o755)
        path = project.environment["PATH"]
        project.environment["PATH"] = f"{project.root / '.venv/bin'}:{path}"
    use_short_trainings(project)
    project.commit()
    return project


def test_all_commands_of_the_tutorial_run_one_after_the_other(tmp_path):
    """One shell runs them in a clone, with `bash -e`, so that the first failure ends the test.

    They train three systems, typeset a paper, and pull the models into ../colleague.
    """
    project = make_repository(tmp_path / "project")

    output = project.run("bash", "-ec", "\n".join(tutorial_commands()), timeout=900)

    assert "phrasebook: params.yaml is valid" in output
    systems = ["tiny", "tiny-rotary", "tiny-last"]
    assert list(load_settings(project.root / "params.yaml").trained_systems) == systems
    assert project.rows() == systems  # the rows of the table of results
    assert (tmp_path / "colleague" / "models" / "tiny-rotary").is_dir()
    if has_latex():
        assert (project.root / "paper" / "paper.pdf").exists()
