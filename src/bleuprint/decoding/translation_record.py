"""translation.json, the provenance of translations: training, settings, hashes of files."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from typing_extensions import TypedDict

from bleuprint.config.system import System
from bleuprint.model.description import Averaged
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.json_files import write_json
from bleuprint.runtime.regular_files import sha256_of
from bleuprint.runtime.schema import read_record

TRANSLATION = "translation.json"
# A fingerprint is 64 hexadecimal digits; messages show the first ones.
_SHOWN_DIGITS = 12


class ReferenceLoss(TypedDict):
    """The loss of a model on the reference translations of a test set.

    Attributes:
        nats: The negative log-likelihood of the references, the sum over their tokens.
        tokens: The number of their tokens, EOS included.
    """

    nats: float
    tokens: int


@dataclass(frozen=True)
class TranslationRecord:
    """The content of translation.json: which model translated the test sets, with which settings.

    Attributes:
        model: The fingerprint of the model's training, a hash that identifies it.
        averaged: The settings of the average, and the updates of its checkpoints.
        decode: The settings of the search.
        hypotheses: The SHA-256 of each file of translations, by its name.
        losses: The loss of the model on the references, by test set; None if a sentence is too long
            for the model.
        cut: By test set, the lines, from 1, whose translations were cut at their maximum length.
            The file has no `cut` if no translation was cut.
    """

    model: str
    averaged: Averaged
    decode: dict[str, Any]
    hypotheses: dict[str, str]
    losses: dict[str, ReferenceLoss | None]
    cut: dict[str, list[int]] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read translation.json, which names the model and the settings that translated.

        Raises:
            UserError: The file is missing or damaged.
        """
        return read_record(cls, path)

    def write(self, path: Path) -> None:
        """Write translation.json, which names the model and the settings that translated."""
        content = dataclasses.asdict(self)
        if not self.cut:
            # Earlier versions had no such field; without it, the file stays the same as theirs.
            del content["cut"]
        write_json(path, content)

    @property
    def models(self) -> int:
        """The number of models that translated together."""
        return len(self.averaged.updates) if self.averaged.is_ensemble else 1

    def check(
        self, path: Path, system: System, hypotheses: Path, fingerprint: str, training: Path
    ) -> None:
        """Check that translations come from the present training and settings of a system.

        Otherwise their scores would be reported for a system that did not produce them.

        Args:
            path: The path of this record, .../SYSTEM/CORPUS/SEED/translation.json.
            system: The settings of the system in params.yaml.
            hypotheses: The file of the translations.
            fingerprint: The fingerprint of the system's training, a hash that identifies it.
            training: The file that contains this fingerprint, for the message.

        Raises:
            UserError: The translations come from another training or other settings, or their file
                has changed since.
        """
        # DVC names a stage by the folders of its run: translate@tiny-multi30k-1.
        system_corpus_seed = "-".join(path.parts[-4:-1])
        # `dvc repro` runs nothing if DVC believes that the translations are up to date, for example
        # after `dvc commit --force`.
        remedy = (
            "Run: dvc repro. If that runs nothing, run: dvc repro --force --single-item "
            f"translate@{system_corpus_seed}, then: dvc repro"
        )
        if self.model != fingerprint:
            raise UserError(
                f"{path}: the translations come from another training "
                f"({self.model[:_SHOWN_DIGITS]}...) than {training} names "
                f"({fingerprint[:_SHOWN_DIGITS]}...). {remedy}"
            )
        used = _named_settings(self.averaged.settings, self.decode)
        expected = _named_settings(system.average.chosen, dataclasses.asdict(system.decode))
        for name, expected_value in expected.items():
            used_value = used.get(name)
            if used_value != expected_value:
                raise UserError(
                    f"{path}: translated with {name} {used_value}, but params.yaml has "
                    f"{expected_value}. {remedy}"
                )
        if sha256_of(hypotheses) != self.hypotheses.get(hypotheses.name):
            raise UserError(
                f"{hypotheses} has changed since the stage translate wrote it. {remedy}"
            )


def _named_settings(average: Mapping[str, Any], decode: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that decide about translations, by the names that messages show.

    Args:
        average: The settings below `average` in params.yaml; one entry, named `average`.
        decode: The settings below `decode`; an entry for each, named for example `decode.beam`.
    """
    settings: dict[str, Any] = {"average": average}
    for name, value in decode.items():
        settings[f"decode.{name}"] = value
    return settings
