"""The provenance of translations: the training, the settings, the hashes of the files."""

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from typing_extensions import TypedDict

from bleuprint.config.system import System
from bleuprint.model.description import Averaged
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import sha256_of, write_json
from bleuprint.runtime.schema import read_record

TRANSLATION = "translation.json"


class ReferenceLoss(TypedDict):
    """The negative log-likelihood of a set's references (nats), and their tokens, EOS included."""

    nats: float
    tokens: int


@dataclass(frozen=True)
class TranslationRecord:
    """The content of translation.json.

    `model`: the fingerprint of the model's training; `averaged`: the settings of the average and
    the updates of its checkpoints; `decode`: the search settings; `hypotheses`: the SHA-256 of each
    file, by name; `losses`: those of the references, by test set; `cut`: the lines, from 1, whose
    translations the maximum length cut, by test set. The file has no `cut` if no translation is.
    """

    model: str
    averaged: Averaged
    decode: dict[str, Any]
    hypotheses: dict[str, str]
    losses: dict[str, ReferenceLoss | None]
    cut: dict[str, list[int]] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read translation.json; raises UserError if it is missing or damaged."""
        return read_record(cls, path)

    def write(self, path: Path) -> None:
        content = dataclasses.asdict(self)
        if not self.cut:
            del content["cut"]
        write_json(path, content)

    @property
    def models(self) -> int:
        """The number of models that translated together."""
        return len(self.averaged.updates) if self.averaged.is_ensemble else 1

    def check(
        self, path: Path, system: System, hypotheses: Path, fingerprint: str, training: Path
    ) -> None:
        """Raise UserError unless this system made `hypotheses`; `path`: of this record.

        `fingerprint`: that of the training, read from the file `training`.
        """
        # after `dvc commit --force`, dvc repro takes them for up to date
        again = (
            "run: dvc repro, or if it runs nothing: dvc repro --force --single-item "
            f"translate@{'-'.join(path.parts[-4:-1])}, then dvc repro"
        )
        if self.model != fingerprint:
            raise UserError(
                f"{path}: translated by another training ({self.model[:12]}...) than that of "
                f"{training} ({fingerprint[:12]}...); {again}"
            )
        used: dict[str, Any] = {"average": self.averaged.settings}
        used |= {f"decode.{name}": value for name, value in self.decode.items()}
        expected = {"average": system.average.chosen}
        expected |= {f"decode.{n}": value for n, value in dataclasses.asdict(system.decode).items()}
        for name, value in expected.items():
            if used.get(name) != value:
                raise UserError(
                    f"{path}: translated with {name} {used.get(name)}, but params.yaml has "
                    f"{value}; {again}"
                )
        if sha256_of(hypotheses) != self.hypotheses.get(hypotheses.name):
            raise UserError(f"{hypotheses}: has changed since it was translated; {again}")
