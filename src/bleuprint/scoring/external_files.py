"""What `bleuprint check` says of the files of external systems, before a stage copies them."""

from collections.abc import Iterator
from pathlib import Path

from bleuprint.config.experiment import Settings
from bleuprint.config.external import TranslationFile, place_of_file
from bleuprint.config.paths import Run, folder
from bleuprint.config.runs import scored_runs
from bleuprint.decoding.copied_translations import read_translations
from bleuprint.runtime.counts import counted
from bleuprint.scoring.file_warnings import file_warnings
from bleuprint.text.parallel import TextFolder, count_lines, read_lines


def check_files(settings: Settings, root: Path = Path()) -> Iterator[str]:
    """Yield a note for each file that is not here, or that does not look like translations.

    Files are compared with test sets that are prepared.

    Raises:
        UserError: The stage translate would refuse a file.
    """
    for cell in scored_runs(settings):
        system = settings.external_on(cell.corpus).get(cell.system)
        if system is None:
            continue
        for test, file in system.translations.items():
            place = place_of_file(cell.system, cell.corpus, test, root)
            if not (root / file.path).exists():
                yield f"{place}: {root / file.path}: no such file"
                continue
            for problem in _problems(settings, cell, test, file, root):
                yield f"{place}: {root / file.path}: {problem}"


def _problems(
    settings: Settings, cell: Run, test: str, file: TranslationFile, root: Path
) -> Iterator[str]:
    """What is wrong with a file of translations of a test set."""
    translations = read_translations(file, cell, test, root)
    corpus = settings.corpus(cell.corpus)
    texts = TextFolder(folder(cell.corpus, "split", root), corpus.source, corpus.target)
    sources, references = texts.files(f"test.{test}")
    source_lines: list[str] = []
    reference_lines: list[str] = []
    if sources.exists() and references.exists():
        # a note: the test set may be another one now, and not yet prepared
        known = count_lines(references)
        if len(translations) != known:
            yield f"has {counted(len(translations), 'line')}, but {references} has {known:,}"
        source_lines = list(read_lines(sources))
        reference_lines = list(read_lines(references))
    warnings = file_warnings(translations, source_lines, reference_lines, corpus.of_test(test))
    for warning in warnings:
        yield warning["group"]
