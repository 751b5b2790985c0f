"""Translations of external systems: the stage translate copies their files and checks them."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from bleuprint.config.experiment import Settings
from bleuprint.config.external import TRANSLATIONS, TranslationFile
from bleuprint.config.paths import Run
from bleuprint.config.setting_place import place_of_setting
from bleuprint.corpus.download.formats.lines import read_lines
from bleuprint.corpus.stage_text import text_of_stage
from bleuprint.decoding.translation_record import TRANSLATION
from bleuprint.runtime.atomic_files import atomic_folder
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.json_files import write_json
from bleuprint.runtime.regular_files import describe_non_file, sha256_of
from bleuprint.runtime.schema import read_record, to_json_value
from bleuprint.runtime.wording import counted
from bleuprint.runtime.yaml_tree import Location
from bleuprint.text.parallel import count_lines, write_lines


@dataclass(frozen=True)
class CopiedTranslations:
    """The content of translation.json of an external system.

    Attributes:
        files: The files that were copied, by test set, as in params.yaml.
    """

    files: Mapping[str, TranslationFile]

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read translation.json, which names the files of an external system that were copied.

        Raises:
            UserError: The file is missing or damaged.
        """
        return read_record(cls, path)

    def check(self, path: Path, settings: Settings, run: Run) -> None:
        """Check that the files that were copied are those that params.yaml names now.

        Args:
            path: The path of this record, for the message.
            settings: The settings of the experiment.
            run: The names of the external system and the corpus, and any seed.

        Raises:
            UserError: Other files were copied, or params.yaml has changed since.
        """
        system = settings.external_systems_on(run.corpus)[run.system]
        for test, file in system.translations.items():
            if self.files.get(test) != file:
                stage = settings.stage("translate", *run)
                raise UserError(
                    f"{path}: params.yaml now names another file of translations of {test}. "
                    "Run: dvc repro. If that runs nothing, run: dvc repro --force --single-item "
                    f"{stage}, then: dvc repro"
                )


def copy_translations(settings: Settings, run: Run, root: Path = Path()) -> None:
    """Copy the translations of an external system into its results, after checking them.

    An external system is one that this program has not trained. For each test set, params.yaml
    names a file with its translations. translation.json records which files were copied.

    Args:
        settings: The settings of the experiment.
        run: The names of the external system and the corpus, and the first seed.
        root: The folder of the project.

    Raises:
        UserError: A file is missing, is not UTF-8, or does not match its SHA-256 in params.yaml or
            the number of lines of its test set.
    """
    system = settings.external_systems_on(run.corpus)[run.system]
    corpus = settings.corpus(run.corpus)
    tokens = text_of_stage("tokens", run.corpus, corpus, root)
    results = root / run.results_folder
    with atomic_folder(results / "hypotheses") as unfinished:
        for test, file in system.translations.items():
            sources, references = tokens.files(f"test.{test}")
            lines = read_translations(file, run, test, root)
            expected = count_lines(sources)
            if len(lines) != expected:
                raise place_of_file(run, test, root).error(
                    f"{root / file.path} has {counted(len(lines), 'line')}, but the test set "
                    f"{test} of {run.corpus} has {expected:,}"
                )
            write_lines(unfinished / references.name, lines)
    record = CopiedTranslations(system.translations)
    write_json(results / TRANSLATION, to_json_value(record))


def read_translations(file: TranslationFile, run: Run, test: str, root: Path) -> list[str]:
    r"""Read the translations of a test set by an external system, one on each line.

    A byte order mark at the start, and \r at the end of lines, are removed.

    Args:
        file: The path of the file and its SHA-256, as in params.yaml.
        run: The names of the external system and the corpus, for messages.
        test: The name of the test set, for messages.
        root: The folder of the project.

    Raises:
        UserError: The file is missing, is not UTF-8, or does not match its SHA-256 in params.yaml.
    """
    path = root / file.path
    if not path.is_file():
        raise place_of_file(run, test, root).error(f"{path}: {describe_non_file(path)}")
    sha256 = sha256_of(path)
    if sha256 != file.sha256:
        message = f"{path} has SHA-256 {sha256}, but the setting sha256 is {file.sha256}"
        raise place_of_file(run, test, root).error(message)
    try:
        with path.open("rb") as content:
            return list(read_lines(content, str(path)))
    except UserError as error:
        raise place_of_file(run, test, root).error(str(error)) from None


def place_of_file(run: Run, test: str, root: Path) -> Location:
    """Find the line of params.yaml that names the translations of an external system.

    Messages about a file of translations begin with this line.

    Args:
        run: The names of the external system and the corpus.
        test: The name of the test set.
        root: The folder of the project.
    """
    return place_of_setting(["external", run.system, run.corpus, TRANSLATIONS, test], root)
