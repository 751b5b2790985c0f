"""The code that decides a stage's outputs: its code dependencies in dvc.yaml."""

from pathlib import Path

from ruamel.yaml import YAML

from bleuprint.runtime import fingerprint
from bleuprint.runtime.errors import UserError


def code_of(stage: str, root: Path = Path()) -> list[str]:
    """The files and folders of the package that a stage of dvc.yaml depends on."""
    path = root / "dvc.yaml"
    if not path.exists():
        raise UserError(f"{path}: no such file: run this in the project's root")
    entry = YAML(typ="safe").load(path)["stages"][stage]
    dependencies = entry.get("do", entry)["deps"]
    return [path for path in dependencies if str(path).startswith("src/")]


def code_fingerprint(stage: str, root: Path = Path()) -> str:
    """The fingerprint of that code; comments, docstrings and formatting do not count."""
    return fingerprint.of_code(code_of(stage, root), root)
