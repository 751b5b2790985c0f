"""Where translations come from: the training, the settings, and the files as they were written."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from bleuprint.config.system import Decode
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import read_object, sha256_of, write_json

TRANSLATION = "translation.json"


@dataclass(frozen=True)
class Translation:
    """What translation.json holds of a cell.

    `model`: the fingerprint of the training whose model translated; `decode`: with which settings;
    `hypotheses`: the SHA-256 of each file, by name.
    """

    model: str
    decode: dict[str, Any]
    hypotheses: dict[str, str]

    @classmethod
    def of(cls, model: str, decode: Decode, hypotheses: Path) -> Self:
        """That of the files in the folder `hypotheses`."""
        hashes = {path.name: sha256_of(path) for path in sorted(hypotheses.iterdir())}
        return cls(model, dataclasses.asdict(decode), hashes)

    @classmethod
    def read(cls, path: Path) -> Self:
        """What `write` wrote; raises UserError where there is no such file, or none of ours."""
        if not path.exists():
            raise UserError(f"{path}: no such file: who translated is not known; run: dvc repro")
        names = [field.name for field in dataclasses.fields(cls)]
        content = read_object(path, names)
        made = cls(*(content[name] for name in names))
        if not (isinstance(made.decode, dict) and isinstance(made.hypotheses, dict)):
            raise UserError(f"{path}: damaged: decode and hypotheses are no objects")
        return made

    def write(self, path: Path) -> None:
        write_json(path, dataclasses.asdict(self))

    def check(self, path: Path, decode: Decode, hypotheses: Path) -> None:
        """Raise UserError unless these settings made this file; `path` is where this was read."""
        for name, wanted in dataclasses.asdict(decode).items():
            if (found := self.decode.get(name)) != wanted:
                raise UserError(
                    f"{path}: translated with decode.{name} {found}, and params.yaml has {wanted}; "
                    "run: dvc repro"
                )
        if sha256_of(hypotheses) != self.hypotheses.get(hypotheses.name):
            raise UserError(f"{hypotheses}: has changed since it was translated; run: dvc repro")

    def check_model(self, path: Path, fingerprint: str, training: Path) -> None:
        """Raise UserError unless the model is of the training that the file `training` is of."""
        if self.model != fingerprint:
            raise UserError(
                f"{path}: translated by another training ({str(self.model)[:12]}...) than that of "
                f"{training} ({str(fingerprint)[:12]}...); run: dvc repro"
            )
