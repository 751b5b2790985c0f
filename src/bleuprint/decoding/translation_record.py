"""The provenance of translations: the training, the settings, the hashes of the files."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypedDict

from bleuprint.config.system import Decode
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import read_object, sha256_of, write_json

TRANSLATION = "translation.json"


class ReferenceLoss(TypedDict):
    """The negative log-likelihood of a set's references (nats), and their tokens, EOS included."""

    nats: float
    tokens: int


@dataclass(frozen=True)
class TranslationRecord:
    """The content of translation.json.

    `model`: the fingerprint of the model's training; `decode`: the search settings; `hypotheses`:
    the SHA-256 of each file, by name; `losses`: those of the references, by test set.
    """

    model: str
    decode: dict[str, Any]
    hypotheses: dict[str, str]
    losses: dict[str, ReferenceLoss | None]

    @classmethod
    def from_files(
        cls,
        model: str,
        decode: Decode,
        hypotheses: Path,
        losses: dict[str, ReferenceLoss | None],
    ) -> Self:
        """Record the files in the folder `hypotheses`."""
        hashes = {path.name: sha256_of(path) for path in sorted(hypotheses.iterdir())}
        return cls(model, dataclasses.asdict(decode), hashes, losses)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read translation.json; raises UserError if it is missing or damaged."""
        if not path.exists():
            raise UserError(
                f"{path}: no such file: the translations have no provenance; run: dvc repro"
            )
        names = [field.name for field in dataclasses.fields(cls)]
        content = read_object(path, names)
        record = cls(*(content[name] for name in names))
        objects = record.decode, record.hypotheses, record.losses
        if not all(isinstance(each, dict) for each in objects):
            raise UserError(f"{path}: damaged: decode, hypotheses and losses must be objects")
        return record

    def write(self, path: Path) -> None:
        write_json(path, dataclasses.asdict(self))

    def check(self, path: Path, decode: Decode, hypotheses: Path) -> None:
        """Raise UserError unless these settings made `hypotheses`; `path`: of this record."""
        for name, expected in dataclasses.asdict(decode).items():
            if (used := self.decode.get(name)) != expected:
                raise UserError(
                    f"{path}: translated with decode.{name} {used}, but params.yaml has "
                    f"{expected}; run: dvc repro"
                )
        if sha256_of(hypotheses) != self.hypotheses.get(hypotheses.name):
            raise UserError(f"{hypotheses}: has changed since it was translated; run: dvc repro")

    def check_model(self, path: Path, fingerprint: str, training: Path) -> None:
        """Raise UserError unless `fingerprint`, read from the file `training`, is the model's."""
        if self.model != fingerprint:
            raise UserError(
                f"{path}: translated by another training ({str(self.model)[:12]}...) than that of "
                f"{training} ({str(fingerprint)[:12]}...); run: dvc repro"
            )
