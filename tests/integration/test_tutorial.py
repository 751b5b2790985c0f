"""The commands of docs/tutorial.md, as printed."""

import re
import shutil
import subprocess

import pytest

import micro
from bleuprint.config.experiment import load_settings
from root import ROOT

pytestmark = pytest.mark.slow

PAGE = (ROOT / "docs" / "tutorial.md").read_text("utf-8")
BLOCKS = re.findall(r"^```bash\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
LATEX = shutil.which("pdflatex") and not subprocess.call(
    ["kpsewhich", "booktabs.sty"], stdout=subprocess.DEVNULL
)
PARAMS = (ROOT / "params.yaml").read_text("utf-8")


def test_the_edit_makes_the_experiment_that_is_told(tmp_path):
    (tmp_path / "params.yaml").write_text(PARAMS, "utf-8")
    shutil.copytree(ROOT / "corpora", tmp_path / "corpora")
    (block,) = [block for block in BLOCKS if block.startswith("sed")]
    edit = block.removesuffix("bleuprint check\n")
    subprocess.run(["bash", "-ec", edit], cwd=tmp_path, check=True)
    settings = load_settings(tmp_path / "params.yaml")
    assert settings.seeds == (1, 2, 3)
    assert list(settings.corpora) == ["phrasebook-en-de"]
    assert list(settings.trained_systems) == ["tiny", "tiny-rotary", "tiny-last"]
    tiny, rotary, last = map(settings.system_settings, settings.trained_systems)
    assert tiny.train.max_updates == 800 and tiny.train == rotary.train == last.train
    assert (tiny.model.positional_encoding, rotary.model.positional_encoding) == (
        "sinusoidal",
        "rotary",
    )
    assert tiny.model == last.model and (tiny.average.last, last.average.last) == (5, 1)


def test_every_command_runs_in_a_clone(tmp_path):
    """With trainings of six updates; where LaTeX is missing, a program that does nothing."""
    project = micro.make(tmp_path / "project")
    for name in ("Makefile", "pyproject.toml", "constraints.txt", "inputs/README.md"):
        shutil.copy(ROOT / name, project.root / name)
    for name in ("a.en", "a.de"):  # of the micro corpus, and not in git
        (project.root / "inputs" / name).unlink()
    (project.root / ".venv" / "bin").mkdir(parents=True)
    for name in (".ready", "bin/activate"):  # the tests' own environment is on PATH
        project.write(f".venv/{name}", "")
    if not LATEX:
        project.write(".venv/bin/pdflatex", "#!/bin/sh\n")
        (project.root / ".venv/bin/pdflatex").chmod(0o755)
        path = project.environment["PATH"]
        project.environment["PATH"] = f"{project.root / '.venv/bin'}:{path}"
    scaled = re.sub(r"max_updates: \d+", "max_updates: 6", PARAMS)
    scaled = re.sub(r"(save_interval|validate_interval|warmup_updates): \d+", r"\1: 1", scaled)
    project.write("params.yaml", scaled)
    project.commit()
    output = project.run("bash", "-ec", "\n".join(BLOCKS), timeout=900)
    assert list(load_settings(project.root / "params.yaml").trained_systems) == [
        "tiny",
        "tiny-rotary",
        "tiny-last",
    ]
    assert project.rows() == ["tiny", "tiny-rotary", "tiny-last"]
    assert (tmp_path / "colleague" / "models" / "tiny-rotary").is_dir()
    assert "phrasebook: params.yaml is valid" in output
    if LATEX:
        assert (project.root / "paper" / "paper.pdf").exists()
