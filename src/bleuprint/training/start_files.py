"""The files that a training starts from: weights, their description, their vocabularies.

Without torch: the stage resolve and `start` load them in a tenth of the time.
"""

import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bleuprint.config import paths
from bleuprint.config.paths import Cell
from bleuprint.config.start import Start
from bleuprint.dataset.binarized import SEGMENTATION, BinaryCorpus
from bleuprint.runtime import environment, fingerprint
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import read_object, sha256_of, whole_folder

_WEIGHTS, _DESCRIPTION, _SUMS = "model.safetensors", "model.json", "SHA256SUMS"


@dataclass(frozen=True)
class StartFiles:
    """Weights, the folder with model.json that describes them, and folders of vocabularies.

    `name`: of the start, for messages.
    """

    name: str
    weights: Path
    searched: tuple[Path, ...]

    def description(self) -> dict[str, Any]:
        """The content of model.json; raises UserError if it is damaged."""
        return read_object(self.weights.with_name(_DESCRIPTION), ("model", "vocabularies"))

    def fingerprint(self) -> str:
        """That of weights and vocabularies."""
        return fingerprint.of_settings(sha256_of(self.weights), self.description()["vocabularies"])

    def vocabulary(self, side: str, known: Path) -> Path:
        """The vocabulary of a side, by its SHA-256 in model.json: `known` if it is the same.

        Raises UserError if it is in none of the folders.
        """
        expected = self.description()["vocabularies"].get(side, {}).get("sha256")
        found = (path for folder in self.searched for path in sorted(folder.glob("vocabulary.*")))
        if path := next((path for path in (known, *found) if sha256_of(path) == expected), None):
            return path
        folder = self.weights.parent
        raise UserError(f"{folder}: no vocabulary.* here is that of the {side} in {_DESCRIPTION}")


def collect(system: str, corpus: str, seeds: Iterable[int], output: Path) -> None:
    """Write for each seed a folder with the averaged model of a training, and its vocabularies."""
    binary = BinaryCorpus(paths.folder(corpus, "binary"))
    with whole_folder(output) as partial:
        for seed in seeds:
            folder = partial / str(seed)
            shutil.copytree(Cell(system, corpus, seed).models / "averaged", folder)
            for language in (binary.source, binary.target):
                file = f"vocabulary.{language}"
                shutil.copyfile(binary.folder / SEGMENTATION / file, folder / file)


def start_files(start: Start, cell: Cell) -> StartFiles:
    """The files of a cell's start; raises UserError if they are missing or not those expected."""
    if start.cell:
        folder = paths.start(cell.system) / str(cell.seed)
        return _files(f"{start.system} {start.corpus}", folder, (folder,))
    if start.release:
        files = _released(start)
    else:
        folder = environment.root() / str(start.folder)
        searched = [folder, folder / SEGMENTATION]
        if len(folder.parents) > 4:  # PROJECT/models/SYSTEM/CORPUS/SEED/averaged
            corpus = folder.parents[1].name
            searched.append(paths.folder(corpus, "binary", folder.parents[4]) / SEGMENTATION)
        files = _files(str(start.folder), folder, tuple(searched))
    if start.sha256 and (found := sha256_of(files.weights)) != start.sha256:
        raise UserError(f"{files.weights}: not the SHA-256 in train.from: {found}")
    return files


def add_sums(cells: Mapping[str, Mapping[str, Any]]) -> None:
    """Add to each start from outside the SHA-256 of its weights, which DVC compares.

    `cells`: as in reports/resolved.json. Raises UserError as `start_files` does.
    """
    for system, row in cells.items():
        for corpus, cell in row.items():
            given = cell["train"].get("from") if cell["train"] else None
            if given and not (start := Start(**given)).cell:
                weights = start_files(start, Cell(system, corpus, 0)).weights
                given["sha256"] = sha256_of(weights)


def _released(start: Start) -> StartFiles:
    """Of a release, whose sums are compared; raises UserError if it has not one such model."""
    release = environment.root() / str(start.release)
    if not (sums := release / _SUMS).is_file():
        raise UserError(f"{sums}: no such file: no release of bleuprint")
    pattern = f"models/{start.system or '*'}/{start.corpus or '*'}/*/averaged"
    folders = sorted(release.glob(pattern))
    if len(folders) != 1:
        there = ", ".join(str(each.relative_to(release)) for each in folders) or "none"
        raise UserError(
            f"{release}: train.from must name one model ({pattern}); there are: {there}"
        )
    cell = folders[0].relative_to(release / "models").parent
    files = _files(str(release), folders[0], (release / "ctranslate2" / cell / SEGMENTATION,))
    known = sums.read_text(encoding="utf-8").splitlines()
    for path in (files.weights, files.weights.with_name(_DESCRIPTION)):
        if f"{sha256_of(path)}  {path.relative_to(release)}" not in known:
            raise UserError(f"{path}: damaged: its SHA-256 is not the one in {_SUMS}")
    return files


def _files(name: str, folder: Path, searched: tuple[Path, ...]) -> StartFiles:
    """The averaged weights in a folder, or those of its newest checkpoint."""
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder: the start of a training (train.from)")
    numbered = sorted(each for each in folder.glob("*.safetensors") if each.stem.isdecimal())
    weights = [path for path in (folder / _WEIGHTS, *reversed(numbered)) if path.is_file()]
    if not weights or not (folder / _DESCRIPTION).is_file():
        raise UserError(f"{folder}: no {_WEIGHTS} or UPDATE.safetensors with {_DESCRIPTION}")
    return StartFiles(name, weights[0], searched)
