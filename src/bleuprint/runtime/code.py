"""The code that decides a stage's outputs: its code dependencies in dvc.yaml."""

from pathlib import Path

from ruamel.yaml import YAML

from bleuprint.runtime import fingerprint
from bleuprint.runtime.errors import UserError


def code_fingerprint(stage: str, root: Path = Path()) -> str:
    """The fingerprint of the package's files and folders that a stage of dvc.yaml depends on.

    Comments, docstrings and formatting do not count.
    """
    path = root / "dvc.yaml"
    if not path.exists():
        raise UserError(f"{path}: no such file: run this in the project's root")
    entry = YAML(typ="safe").load(path)["stages"][stage]
    dependencies = map(str, entry.get("do", entry)["deps"])
    code = [dependency for dependency in dependencies if dependency.startswith("src/")]
    return fingerprint.of_code(code, root)
