"""The results of a cell on disk: opened by one class, which checks that they belong together."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Self

from bleuprint.comet.score import COMET
from bleuprint.config.experiment import Settings
from bleuprint.config.paths import Cell, folder
from bleuprint.corpus.test_sets import names_of_test_sets
from bleuprint.decoding.attention import ATTENTION, check_attention
from bleuprint.decoding.translation_record import (
    TRANSLATION,
    ReferenceLoss,
    TranslationRecord,
)
from bleuprint.runtime import fingerprint
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import sha256_of
from bleuprint.scoring.score import SetScores, read_scores
from bleuprint.text.parallel import TextFolder, read_lines, read_pairs
from bleuprint.training.history import Curves, TrainingFacts


@dataclass(frozen=True)
class ScoredTranslations:
    """scores.json and hypotheses/ of a cell, whatever made its translations."""

    settings: Settings
    cell: Cell
    root: Path

    @property
    def path(self) -> Path:
        return self.root / self.cell.results

    @cached_property
    def texts(self) -> TextFolder:
        """The split corpus."""
        corpus = self.settings.corpus(self.cell.corpus)
        split = folder(self.cell.corpus, "split", self.root)
        return TextFolder(split, corpus.source, corpus.target)

    @cached_property
    def tests(self) -> list[str]:
        """The names of the corpus's test sets."""
        return names_of_test_sets(self.settings.corpus(self.cell.corpus), self.texts)

    @cached_property
    def scores(self) -> dict[str, SetScores]:
        """scores.json, by test set."""
        if not (path := self.path / "scores.json").exists():
            raise _missing(path, self.cell)
        return read_scores(path)

    def check(self) -> Self:
        """Raise UserError unless the scores are of these translations and texts.

        Texts of the corpus are compared where they exist: results may have been pulled alone.
        """
        for test in self.scores:
            if not (hypotheses := self.files(test)["hypotheses"]).exists():
                raise UserError(f"{hypotheses}: no such file; run: dvc repro, or dvc pull")
            self._check_files(test)
        return self

    def scores_of(self, test: str) -> SetScores:
        """The scores on a test set; raises UserError if there are none."""
        if test not in self.scores:
            path = self.path / "scores.json"
            raise UserError(f"{path}: no test set {test!r} for {self.cell}; run: dvc repro")
        return self.scores[test]

    def files(self, test: str) -> dict[str, Path]:
        """Sources, references and hypotheses, named as in scores.json."""
        sources, references = self.texts.files(f"test.{test}")
        hypotheses = self.path / "hypotheses" / references.name
        return {"sources": sources, "references": references, "hypotheses": hypotheses}

    def sources(self, test: str) -> list[str]:
        return list(read_lines(self.files(test)["sources"]))

    def lines(self, test: str) -> tuple[list[str], list[str]]:
        """References and translations of a test set, as they were when they were scored."""
        self.scores_of(test)
        files = self.files(test)
        pairs = list(read_pairs(files["references"], files["hypotheses"]))
        self._check_files(test)
        return [pair.source for pair in pairs], [pair.target for pair in pairs]

    def _check_files(self, test: str) -> None:
        for name, file in self.files(test).items():
            if file.exists() and sha256_of(file) != self.scores_of(test)[name]:  # type: ignore[literal-required]
                raise UserError(f"{file}: has changed since {self.cell} was scored; run: dvc repro")

    @property
    def stage(self) -> str:
        """The stage that wrote scores.json."""
        return f"score@{'-'.join(map(str, self.cell))}"

    @property
    def comet(self) -> Path:
        """COMET of these translations, if params.yaml names a model."""
        return self.path / COMET

    @property
    def losses(self) -> Mapping[str, ReferenceLoss | None]:
        """Those of the references, by test set; none without a model."""
        return {}


@dataclass(frozen=True)
class CellResults(ScoredTranslations):
    """training.json, curves.json and translation.json of a cell, too."""

    training: TrainingFacts

    @classmethod
    def open(cls, settings: Settings, cell: Cell, root: Path = Path()) -> Self:
        """Raises UserError if the cell was not trained, or with other settings."""
        results = cls.find(settings, cell, root)
        if results is None:
            path = root / cell.results / "training.json"
            if path.exists():
                stage = f"train@{'-'.join(map(str, cell))}"
                raise UserError(
                    f"{path}: not run with these settings; run: dvc repro, or if it runs nothing: "
                    f"dvc repro --force --single-item {stage}"
                )
            raise _missing(path, cell)
        return results

    @classmethod
    def find(cls, settings: Settings, cell: Cell, root: Path = Path()) -> Self | None:
        """None if the cell was not trained, or with other settings."""
        path = root / cell.results / "training.json"
        if not path.exists():
            return None
        training, system = TrainingFacts.read(path), settings.system_on(cell.system, cell.corpus)
        expected = fingerprint.of_settings(system.model, system.train, cell.seed)
        return cls(settings, cell, root, training) if training.settings == expected else None

    @cached_property
    def translation(self) -> TranslationRecord:
        return TranslationRecord.read(self.path / TRANSLATION)

    @cached_property
    def curves(self) -> Curves | None:
        """None if there are no curves; raises UserError if they are of another training."""
        curves = Curves.read(path := self.path / "curves.json")
        if curves is None:
            return None
        if not curves.validation:
            raise UserError(f"{path}: damaged, or of another version; run: dvc repro")
        end, training = curves.validation[-1], self.training
        if (end.update, end.loss) != (training.updates, training.valid_loss):
            raise UserError(
                f"{path}: ends at update {end.update} with loss {end.loss:g}, but training.json "
                f"at {training.updates} with {training.valid_loss:g}; run: dvc repro"
            )
        return curves

    def check(self) -> Self:
        """Raise UserError unless the scores are of translations by this training's model."""
        path = self.path / TRANSLATION
        self.translation.check_model(path, self.training.fingerprint, self.path / "training.json")
        super().check()
        system = self.settings.system_on(self.cell.system, self.cell.corpus)
        for test in self.scores:
            hypotheses = self.files(test)["hypotheses"]
            self.translation.check(path, system, hypotheses)
            if (maps := self.path / ATTENTION).exists():
                check_attention(maps, test, sha256_of(hypotheses))
        return self

    def checked_scores(self) -> tuple[dict[str, SetScores], str]:
        """The scores by test set if they belong to these files; otherwise none, and why not.

        Nothing is said of a cell that is not translated or not scored.
        """
        if not all((self.path / name).exists() for name in ("scores.json", TRANSLATION)):
            return {}, ""
        try:
            return self.check().scores, ""
        except UserError as error:
            return {}, str(error)

    @property
    def losses(self) -> Mapping[str, ReferenceLoss | None]:
        return self.translation.losses


def cells_of(settings: Settings) -> list[Cell]:
    """Every cell of an experiment that is trained, systems first."""
    cells = map(Cell._make, product(settings.systems, settings.corpora, settings.seeds))
    return [cell for cell in cells if settings.cells[cell.system].get(cell.corpus)]


def settings_sha256(settings: Settings, cell: Cell) -> str:
    """The fingerprint of all settings of a cell, from the corpus's files to decoding.

    Of a row from outside, which has no training, its files and what it says of itself.
    """
    corpus = settings.corpus(cell.corpus).deciding()
    if row := settings.outside_on(cell.corpus).get(cell.system):
        return fingerprint.of_settings(row, corpus)
    return fingerprint.of_settings(settings.system_on(*cell[:2]), corpus, cell.seed)


def _missing(path: Path, cell: Cell) -> UserError:
    return UserError(f"{path}: no such file: no result yet for {cell}; run: dvc repro")
