"""What the stages leave of a run, opened by one class that checks once that it belongs together.

DVC compares outputs with what it recorded; what is checked here is that they are of the same
training, translations and texts, which outputs that were copied or committed by force are not.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self

from bleuprint.config.experiment import Settings
from bleuprint.config.paths import Run, corpus_folder
from bleuprint.config.runs import training_settings_sha256
from bleuprint.corpus.test_sets import translated_test_sets
from bleuprint.decoding.copied_translations import CopiedTranslations
from bleuprint.decoding.translation_record import TRANSLATION, TranslationRecord
from bleuprint.runs.scores_file import read_scores
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import sha256_of
from bleuprint.scoring.metric import MetricValue
from bleuprint.scoring.record import SCORES_FILE, SetScores
from bleuprint.text.parallel import TextFolder, read_lines, read_pairs
from bleuprint.training.history import Curves, TrainingFacts


@dataclass(frozen=True)
class Results:
    """The outputs of a run's stages.

    A system that is not trained here has no training, no curves, and one score for all seeds.
    """

    settings: Settings
    run: Run
    root: Path = Path()

    @classmethod
    def open(cls, settings: Settings, run: Run, root: Path = Path()) -> Self:
        """Raises UserError if the run was not trained, or with other settings."""
        results = cls.find(settings, run, root)
        if results is not None:
            return results
        path = root / run.results_folder / "training.json"
        stage = settings.stage("train", *run)
        if not path.exists():
            raise _missing(path, run)
        raise UserError(
            f"{path}: not run with these settings; run: make reproduce, or if it runs nothing: "
            f"dvc repro --force --single-item {stage}"
        )

    @classmethod
    def find(cls, settings: Settings, run: Run, root: Path = Path()) -> Self | None:
        """None if the run was not trained, or with other settings."""
        results = cls(settings, run, root)
        if not results.is_trained:
            return results
        if not (results.path / "training.json").exists():
            return None
        system = settings.system_on(run.system, run.corpus)
        expected = training_settings_sha256(system, run.seed)
        return results if results.training.settings == expected else None

    @property
    def is_trained(self) -> bool:
        """Whether the system is trained here; otherwise its translations are files."""
        return self.settings.is_trained(self.run.system)

    @property
    def path(self) -> Path:
        """The folder of its results, that of the seed with which the system translates."""
        return self.root / self.settings.scored_run(self.run).results_folder

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
        corpus = self.settings.corpus(self.run.corpus)
        split = corpus_folder(self.run.corpus, "split", self.root)
        return TextFolder(split, corpus.source, corpus.target)

    @cached_property
    def tests(self) -> list[str]:
        """The names of the test sets that are translated."""
        return translated_test_sets(self.settings, self.run.system, self.run.corpus, self.texts)

    @cached_property
    def scores(self) -> dict[str, SetScores]:
        """What was measured, by test set; raises UserError if it is not of one set of texts."""
        path = self.path / SCORES_FILE
        if not path.exists():
            raise _missing(path, self.run)
        return read_scores(self.settings, self.run, self.path)

    def scores_of(self, test: str) -> SetScores:
        """The scores on a test set; raises UserError if there are none."""
        if test not in self.scores:
            path = self.path / SCORES_FILE
            raise UserError(f"{path}: no test set {test!r} for {self.run}; run: make reproduce")
        return self.scores[test]

    def metrics(self, test: str) -> Mapping[tuple[str, str], MetricValue]:
        """What was measured on a test set, by metric and group of lines."""
        return {(each["metric"], each["group"]): each for each in self.scores_of(test)["metrics"]}

    def check(self) -> Self:
        """Raise UserError unless the scores are of these translations, by this training's model.

        Texts of the corpus are compared where they exist: results may have been pulled alone.
        """
        record = self.path / TRANSLATION
        facts = self.path / "training.json"
        if not self.is_trained:
            CopiedTranslations.read(record).check(record, self.settings, self.run)
        for test, scores in self.scores.items():
            files = self.files(test)
            if not (hypotheses := files["hypotheses"]).exists():
                raise UserError(f"{hypotheses}: no such file; run: make reproduce, or dvc pull")
            for name, file in files.items():
                if file.exists() and sha256_of(file) != scores[name]:  # type: ignore[literal-required]
                    raise UserError(
                        f"{file}: has changed since {self.run} was scored; run: make reproduce"
                    )
            if self.is_trained:
                system = self.settings.system_on(self.run.system, self.run.corpus)
                made_by = self.training.fingerprint, facts
                self.translation.check(record, system, hypotheses, *made_by)
        return self

    def checked_scores(self) -> tuple[dict[str, SetScores], str]:
        """The scores by test set if they belong to these files; otherwise none, and why not.

        Nothing is said of a run that is not translated or not scored.
        """
        if not all((self.path / name).exists() for name in (SCORES_FILE, TRANSLATION)):
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

    def source_lines(self, test: str) -> list[str]:
        return list(read_lines(self.files(test)["sources"]))

    def references_and_translations(self, test: str) -> tuple[list[str], list[str]]:
        """References and translations of a test set."""
        files = self.files(test)
        pairs = list(read_pairs(files["references"], files["hypotheses"]))
        return [pair.source for pair in pairs], [pair.target for pair in pairs]


def _missing(path: Path, run: Run) -> UserError:
    return UserError(f"{path}: no such file: no result yet for {run}; run: make reproduce")
