"""The files that the stages leave of a run, opened by one class that checks that they fit together.

DVC compares outputs with what it has recorded. Here it is checked that they are of one training,
its translations and their texts. Outputs that were copied, or committed by force, may not be.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self

from bleuprint.config.experiment import Settings
from bleuprint.config.paths import Run
from bleuprint.config.runs import training_settings_sha256
from bleuprint.corpus.stage_text import text_of_stage
from bleuprint.corpus.test_sets import translated_test_sets
from bleuprint.decoding.copied_translations import CopiedTranslations
from bleuprint.decoding.translation_record import TRANSLATION, TranslationRecord
from bleuprint.runs.scores_file import read_scores
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.regular_files import sha256_of
from bleuprint.scoring.metric import MetricValue
from bleuprint.scoring.record import SCORES_FILE, SetScores
from bleuprint.scoring.translated_files import TranslatedFiles, files_of_test_set
from bleuprint.text.parallel import TextFolder, read_lines, read_pairs
from bleuprint.training.history import Curves, TrainingFacts


@dataclass(frozen=True)
class Results:
    """The outputs of one run: a system that is trained on a corpus with one seed.

    Each file is read when it is first used. An external system is not trained here, and only its
    translations are files. It has no curves, and the scores of its first seed count for all seeds.

    Attributes:
        settings: The settings of the experiment.
        run: The system, the corpus and the seed.
        root: The project's folder.
    """

    settings: Settings
    run: Run
    root: Path = Path()

    @classmethod
    def open(cls, settings: Settings, run: Run, root: Path = Path()) -> Self:
        """Return the results of a run; raise an error if it was not trained with these settings.

        Args:
            settings: The settings of the experiment.
            run: The system, the corpus and the seed.
            root: The project's folder.

        Raises:
            UserError: The run was not trained, or it was trained with other settings.
        """
        results = cls.find(settings, run, root)
        if results is not None:
            return results
        path = root / run.results_folder / "training.json"
        if not path.exists():
            raise _missing_result(path, run)
        # The run was trained, but with other settings.
        stage = settings.stage("train", *run)
        raise UserError(
            f"{path} is out of date: params.yaml has changed since. Run: make reproduce. If that "
            f"runs nothing, run: dvc repro --force --single-item {stage}"
        )

    @classmethod
    def find(cls, settings: Settings, run: Run, root: Path = Path()) -> Self | None:
        """Return the results of a run if it was trained with these settings, otherwise None.

        An external system is not trained here; its results are returned in any case.

        Args:
            settings: The settings of the experiment.
            run: The system, the corpus and the seed.
            root: The project's folder.
        """
        results = cls(settings, run, root)
        if not results.is_trained:
            return results  # An external system.
        if not (results.path / "training.json").exists():
            return None  # The run was not trained yet.
        # training.json contains a hash of the settings with which the run was trained.
        system = settings.system_on(run.system, run.corpus)
        current_hash = training_settings_sha256(system, run.seed)
        if results.training.settings != current_hash:
            return None
        return results

    @property
    def is_trained(self) -> bool:
        """Return whether the system is trained here; external systems only have translations."""
        return self.settings.is_trained(self.run.system)

    @property
    def path(self) -> Path:
        """The folder of the results; for an external system, that of the first seed."""
        return self.root / self.settings.scored_run(self.run).results_folder

    @cached_property
    def training(self) -> TrainingFacts:
        """What is recorded of the training."""
        return TrainingFacts.read(self.path / "training.json")

    @cached_property
    def translation(self) -> TranslationRecord:
        """What is recorded of the translation of the test sets."""
        return TranslationRecord.read(self.path / TRANSLATION)

    @cached_property
    def curves(self) -> Curves | None:
        """The losses and validations of the training; None if there are none."""
        return Curves.read(self.path / "curves.json")

    @cached_property
    def texts(self) -> TextFolder:
        """The training, validation and test texts of the corpus."""
        corpus = self.settings.corpus(self.run.corpus)
        return text_of_stage("split", self.run.corpus, corpus, self.root)

    @cached_property
    def tests(self) -> list[str]:
        """The names of the test sets that are translated."""
        return translated_test_sets(self.settings, self.run.system, self.run.corpus, self.texts)

    @cached_property
    def scores(self) -> dict[str, SetScores]:
        """The scores by test set, including the scores of learned metrics, such as COMET.

        Raises:
            UserError: A file is missing or damaged, or two files score different translations.
        """
        path = self.path / SCORES_FILE
        if not path.exists():
            raise _missing_result(path, self.run)
        return read_scores(self.settings, self.run, self.path)

    def scores_of(self, test: str) -> SetScores:
        """Return the scores on a test set.

        Args:
            test: The name of the test set, such as `flickr2016`.

        Raises:
            UserError: The test set has no scores.
        """
        if test not in self.scores:
            path = self.path / SCORES_FILE
            raise UserError(f"{path}: no test set {test!r} for {self.run}. Run: make reproduce")
        return self.scores[test]

    def metrics(self, test: str) -> Mapping[tuple[str, str], MetricValue]:
        """Return the values of all metrics on a test set.

        Args:
            test: The name of the test set, such as `flickr2016`.

        Returns:
            The values by metric and group. Groups are parts of the test set, such as all lines or
            long lines.
        """
        values = {}
        for value in self.scores_of(test)["metrics"]:
            values[value["metric"], value["group"]] = value
        return values

    def check(self) -> Self:
        """Check that training, translations and scores belong together, and return these results.

        Files that were copied by hand may belong to another training. So each file records hashes
        of the files from which it was computed, and this method compares the hashes. The texts of
        the corpus are compared only if they exist: `dvc pull` may have downloaded only the results.

        Raises:
            UserError: A file belongs to another training, translation or text.
        """
        record_file = self.path / TRANSLATION
        if not self.is_trained:
            # The translations of an external system were copied from files that the user gives.
            CopiedTranslations.read(record_file).check(record_file, self.settings, self.run)
        for test, scores in self.scores.items():
            self._check_scored_files(test, scores)
            if self.is_trained:
                self.translation.check(
                    record_file,
                    system=self.settings.system_on(self.run.system, self.run.corpus),
                    hypotheses=self.files(test).hypotheses,
                    fingerprint=self.training.fingerprint,
                    training=self.path / "training.json",
                )
        return self

    def _check_scored_files(self, test: str, scores: SetScores) -> None:
        """Raise UserError if a text of a test set has changed since it was scored.

        The texts are the sources, the references and the translations (hypotheses).

        Args:
            test: The name of the test set, such as `flickr2016`.
            scores: Its scores, with the SHA-256 of each text.
        """
        files = self.files(test)
        if not files.hypotheses.exists():
            raise UserError(
                f"{files.hypotheses}: no such file. Run: make reproduce. Or download it: dvc pull"
            )
        expected_hashes = {
            "sources": scores["sources"],
            "references": scores["references"],
            "hypotheses": scores["hypotheses"],
        }
        for name, file in files._asdict().items():
            if file.exists() and sha256_of(file) != expected_hashes[name]:
                raise UserError(
                    f"{file} has changed since {self.run} was scored. Run: make reproduce"
                )

    def checked_scores(self) -> tuple[dict[str, SetScores], str]:
        """Return the scores, or the reason why they cannot be used.

        A report shows the reason instead of the scores. `check` finds it.

        Returns:
            The scores by test set, and an error message. One of the two is empty. Both are empty if
            the test sets are not translated or not scored yet.
        """
        is_translated = (self.path / TRANSLATION).exists()
        is_scored = (self.path / SCORES_FILE).exists()
        if not is_translated or not is_scored:
            return {}, ""
        try:
            return self.check().scores, ""
        except UserError as error:
            return {}, str(error)

    def files(self, test: str) -> TranslatedFiles:
        """Return the files of a test set: sources, references and translations.

        Args:
            test: The name of the test set, such as `flickr2016`.
        """
        return files_of_test_set(self.texts, test, self.path)

    def source_lines(self, test: str) -> list[str]:
        """Return the source sentences of a test set."""
        return list(read_lines(self.files(test).sources))

    def references_and_translations(self, test: str) -> tuple[list[str], list[str]]:
        """Return the references and the translations of a test set, line by line.

        Args:
            test: The name of the test set, such as `flickr2016`.

        Raises:
            UserError: The files have different numbers of lines.
        """
        files = self.files(test)
        references = []
        translations = []
        for reference, translation in read_pairs(files.references, files.hypotheses):
            references.append(reference)
            translations.append(translation)
        return references, translations


def _missing_result(path: Path, run: Run) -> UserError:
    """Return the error of a run without a result."""
    return UserError(
        f"{path}: no such file, so there is no result yet for {run}. Run: make reproduce"
    )
