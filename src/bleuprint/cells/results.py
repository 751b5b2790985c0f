"""What a run leaves of a cell, opened by one class that checks once that it belongs together.

DVC compares outputs with what it recorded; what is checked here is that they are of the same
training, translations and texts, which outputs that were copied or committed by force are not.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self

import numpy as np

from bleuprint.config.cells import training_settings_sha256
from bleuprint.config.experiment import Settings
from bleuprint.config.external import ExternalSystem
from bleuprint.config.paths import Cell, folder
from bleuprint.corpus.test_sets import names_of_test_sets
from bleuprint.decoding.copied_translations import CopiedTranslations
from bleuprint.decoding.translation_record import TRANSLATION, TranslationRecord
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import DamagedFile, sha256_of
from bleuprint.runtime.schema import read_record
from bleuprint.scoring.measure import Measured, statistics_of
from bleuprint.scoring.measures import MEASURES
from bleuprint.scoring.record import COMET, SCORES, SetScores
from bleuprint.text.parallel import TextFolder, read_lines, read_pairs
from bleuprint.training.history import Curves, TrainingFacts

# Statistics of a line; numbers of at most 18 digits fit into 64 bits.
_NUMBERS = re.compile(r"-?[0-9]{1,18}( -?[0-9]{1,18})*")


@dataclass(frozen=True)
class Results:
    """The outputs of a cell's stages; `external`: its translations were not made here.

    An external system has no training and no curves, and the same scores for every seed.
    """

    settings: Settings
    cell: Cell
    root: Path = Path()

    @classmethod
    def open(cls, settings: Settings, cell: Cell, root: Path = Path()) -> Self:
        """Raises UserError if the cell was not trained, or with other settings."""
        if results := cls.find(settings, cell, root):
            return results
        path, stage = root / cell.results / "training.json", settings.stage("train", *cell)
        if not path.exists():
            raise _missing(path, cell)
        raise UserError(
            f"{path}: not run with these settings; run: make reproduce, or if it runs nothing: "
            f"dvc repro --force --single-item {stage}"
        )

    @classmethod
    def find(cls, settings: Settings, cell: Cell, root: Path = Path()) -> Self | None:
        """None if the cell was not trained, or with other settings."""
        results = cls(settings, cell, root)
        if results.external is not None:
            return results
        if not (results.path / "training.json").exists():
            return None
        system = settings.system_on(cell.system, cell.corpus)
        expected = training_settings_sha256(system, cell.seed)
        return results if results.training.settings == expected else None

    @property
    def external(self) -> ExternalSystem | None:
        """The settings of an external system; None if the system is trained here."""
        return self.settings.external_on(self.cell.corpus).get(self.cell.system)

    @property
    def path(self) -> Path:
        """The folder of its results; an external system has one, that of the first seed."""
        cell = self.cell
        if self.external is not None:
            cell = cell._replace(seed=self.settings.seeds[0])
        return self.root / cell.results

    @cached_property
    def training(self) -> TrainingFacts:
        return TrainingFacts.read(self.path / "training.json")

    @cached_property
    def translation(self) -> TranslationRecord:
        return TranslationRecord.read(self.path / TRANSLATION)

    @cached_property
    def curves(self) -> Curves | None:
        """None if there are no curves."""
        return Curves.read(self.path / "curves.json")

    @cached_property
    def texts(self) -> TextFolder:
        """The split corpus."""
        corpus = self.settings.corpus(self.cell.corpus)
        split = folder(self.cell.corpus, "split", self.root)
        return TextFolder(split, corpus.source, corpus.target)

    @cached_property
    def tests(self) -> list[str]:
        """The names of the test sets that are translated."""
        if self.external is not None:
            return list(self.external.translations)
        return names_of_test_sets(self.settings.corpus(self.cell.corpus), self.texts)

    @cached_property
    def scores(self) -> dict[str, SetScores]:
        """scores.json by test set, with COMET's measure of comet.json, if there is a model."""
        if not (path := self.path / SCORES).exists():
            raise _missing(path, self.cell)
        scores = _read_scores(path)
        if not self.settings.comet:
            return scores
        ((name, model),) = self.settings.comet.items()
        file = self.path / COMET
        comet = _read_scores(file)
        for test, of_test in scores.items():
            found, expected = comet.get(test), {**of_test, "scored_with": model.sha256}
            keys = ("sources", "references", "hypotheses", "scored_with")
            if differing := [key for key in keys if dict(found or {}).get(key) != expected[key]]:
                stage = self.settings.stage("comet", *self.cell).replace("@", f"@{name}-")
                raise UserError(
                    f"{file}: {test} has other {differing[0]} than {SCORES} or params.yaml; run: "
                    f"dvc repro --force --single-item {stage}"
                )
            of_test["measures"] += comet[test]["measures"]
        return scores

    def scores_of(self, test: str) -> SetScores:
        """The scores on a test set; raises UserError if there are none."""
        if test not in self.scores:
            path = self.path / SCORES
            raise UserError(f"{path}: no test set {test!r} for {self.cell}; run: make reproduce")
        return self.scores[test]

    def measures(self, test: str) -> Mapping[tuple[str, str], Measured]:
        """What was measured on a test set, by measure and group of lines."""
        return {(each["measure"], each["group"]): each for each in self.scores_of(test)["measures"]}

    def check(self) -> Self:
        """Raise UserError unless the scores are of these translations, by this training's model.

        Texts of the corpus are compared where they exist: results may have been pulled alone.
        """
        record, facts = self.path / TRANSLATION, self.path / "training.json"
        if self.external is not None:
            CopiedTranslations.read(record).check(record, self.external, self.cell)
        for test, scores in self.scores.items():
            files = self.files(test)
            if not (hypotheses := files["hypotheses"]).exists():
                raise UserError(f"{hypotheses}: no such file; run: make reproduce, or dvc pull")
            for name, file in files.items():
                if file.exists() and sha256_of(file) != scores[name]:  # type: ignore[literal-required]
                    raise UserError(
                        f"{file}: has changed since {self.cell} was scored; run: make reproduce"
                    )
            if self.external is None:
                system = self.settings.system_on(self.cell.system, self.cell.corpus)
                made_by = self.training.fingerprint, facts
                self.translation.check(record, system, hypotheses, *made_by)
        return self

    def checked_scores(self) -> tuple[dict[str, SetScores], str]:
        """The scores by test set if they belong to these files; otherwise none, and why not.

        Nothing is said of a cell that is not translated or not scored.
        """
        if not all((self.path / name).exists() for name in (SCORES, TRANSLATION)):
            return {}, ""
        try:
            return self.check().scores, ""
        except UserError as error:
            return {}, str(error)

    def files(self, test: str) -> dict[str, Path]:
        """Sources, references and hypotheses, named as in scores.json."""
        sources, references = self.texts.files(f"test.{test}")
        hypotheses = self.path / "hypotheses" / references.name
        return {"sources": sources, "references": references, "hypotheses": hypotheses}

    def sources(self, test: str) -> list[str]:
        return list(read_lines(self.files(test)["sources"]))

    def lines(self, test: str) -> tuple[list[str], list[str]]:
        """References and translations of a test set."""
        files = self.files(test)
        pairs = list(read_pairs(files["references"], files["hypotheses"]))
        return [pair.source for pair in pairs], [pair.target for pair in pairs]


def _read_scores(path: Path) -> dict[str, SetScores]:
    """Read scores.json or comet.json; raises UserError if it is damaged."""
    scores = read_record(dict[str, SetScores], path)
    for test, of_test in scores.items():
        for number, each in enumerate(of_test["measures"]):
            place = f"field {test}.measures.{number}"
            if problem := _wrong_statistics(each):
                raise DamagedFile(path, f"{place}.statistics: {problem}")
    return scores


def _wrong_statistics(measured: Measured) -> str:
    """What is wrong with the statistics of a measure; "" if nothing is."""
    rows = measured["statistics"]
    if not rows:
        return ""
    if measured["measure"] not in MEASURES:
        return f"{measured['measure']!r} is a measure without statistics"
    for number, row in enumerate(rows):
        if not _NUMBERS.fullmatch(row):
            return f"row {number} is not a list of whole numbers"
        if row.count(" ") != rows[0].count(" "):
            return f"row {number} has another length than row 0"
    try:
        with np.errstate(all="ignore"):
            MEASURES[measured["measure"]].of(statistics_of({**measured, "statistics": rows[:1]}))
    except (ValueError, LookupError):
        return f"rows of {rows[0].count(' ') + 1} numbers are not those of {measured['measure']}"
    return ""


def _missing(path: Path, cell: Cell) -> UserError:
    return UserError(f"{path}: no such file: no result yet for {cell}; run: make reproduce")
