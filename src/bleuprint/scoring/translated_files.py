"""Where the files of translated test sets are: sources, translations and references."""

from pathlib import Path
from typing import NamedTuple

from bleuprint.config.experiment import Settings
from bleuprint.config.paths import Run
from bleuprint.corpus.stage_text import text_of_stage
from bleuprint.corpus.test_sets import translated_test_sets
from bleuprint.text.parallel import TextFolder


class TranslatedFiles(NamedTuple):
    """The files of a test set that a system has translated, with a sentence on each line.

    Attributes:
        sources: The sentences in the source language.
        references: Their translations by people.
        hypotheses: Their translations by the system.
    """

    sources: Path
    references: Path
    hypotheses: Path


def files_of_test_set(texts: TextFolder, test: str, results: Path) -> TranslatedFiles:
    """Return the files of a test set, which may not exist.

    Args:
        texts: The folder with the test sets of the corpus.
        test: The name of the test set, such as `flickr2016`.
        results: The folder with the results of the system.
    """
    sources, references = texts.files(f"test.{test}")
    return TranslatedFiles(sources, references, results / "hypotheses" / references.name)


def files_of_test_sets(
    settings: Settings, run: Run, root: Path = Path()
) -> dict[str, TranslatedFiles]:
    """Return the files of all test sets that a system translates, by the name of the test set.

    Args:
        settings: The settings of the experiment.
        run: The system, corpus and seed.
        root: The project's folder.

    Raises:
        UserError: A test set that params.yaml names does not exist.
    """
    texts = text_of_stage("split", run.corpus, settings.corpus(run.corpus), root)
    results = root / run.results_folder
    files = {}
    for test in translated_test_sets(settings, run.system, run.corpus, texts):
        files[test] = files_of_test_set(texts, test, results)
    return files
