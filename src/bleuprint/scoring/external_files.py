"""Notes of `bleuprint check` on the files of external systems, before a stage copies them."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bleuprint.config.experiment import Settings
from bleuprint.config.external import TranslationFile
from bleuprint.config.paths import Run
from bleuprint.config.runs import scored_runs
from bleuprint.config.setting_place import place_of_setting
from bleuprint.corpus.stage_text import text_of_stage
from bleuprint.decoding.copied_translations import place_of_file, read_translations
from bleuprint.runtime.wording import counted
from bleuprint.runtime.yaml_tree import as_mapping, load_located_yaml
from bleuprint.scoring.file_warnings import file_warnings
from bleuprint.text.parallel import count_lines, read_lines


@dataclass(frozen=True)
class _TestFile:
    """The translations of a test set by an external system.

    Attributes:
        run: The system on a corpus, with the first seed.
        test: The name of the test set.
        file: The file of the translations.
        target: The language of the references.
    """

    run: Run
    test: str
    file: TranslationFile
    target: str


def check_external_files(settings: Settings, root: Path = Path()) -> Iterator[str]:
    """Yield notes on the files of external systems, before a stage scores them.

    External systems are not trained here; the user provides their translations as files. A file is
    noted if it is missing, does not look like translations, or is given for several test sets. If
    its test set is prepared already, the file is also compared with that.

    Args:
        settings: The settings of the experiment.
        root: The project's folder.

    Raises:
        UserError: The stage translate would refuse a file.
    """
    yield from _baseline_note(settings, root)
    test_files = list(_test_files(settings))
    for test_file in test_files:
        location = place_of_file(test_file.run, test_file.test, root)
        path = root / test_file.file.path
        if not path.exists():
            yield f"{location}: {path}: no such file"
            continue
        for problem in _problems(settings, test_file, root):
            yield f"{location}: {path}: {problem}"
    yield from _reuse_notes(test_files, root)


def _test_files(settings: Settings) -> Iterator[_TestFile]:
    """Yield the file of translations of each external system for each test set.

    An external system is one that was not trained here.
    """
    # A run is a system on a corpus with one seed.
    for run in scored_runs(settings):
        system = settings.external_systems_on(run.corpus).get(run.system)
        if system is None:
            continue
        corpus = settings.corpus(run.corpus)
        for test in system.files:
            file = system.translations[test]
            yield _TestFile(run, test, file, corpus.language_pair_of_test(test).target)


def _baseline_note(settings: Settings, root: Path) -> Iterator[str]:
    """Yield a note if the first system in params.yaml is external, that is, not trained here.

    Other systems are compared with a baseline: the first system that is trained here.
    """
    path = root / "params.yaml"
    if not path.exists():
        return
    params = as_mapping(load_located_yaml(path))
    systems = as_mapping(params.get("systems"))
    first_system = next(iter(systems), None)
    if first_system in settings.external:
        location = place_of_setting(["external", first_system], root)
        yield (
            f"{location}: {first_system} is an external system, so {settings.trained_systems[0]}, "
            "the first system that is trained here, is the baseline"
        )


def _reuse_notes(test_files: list[_TestFile], root: Path) -> Iterator[str]:
    """Yield a note for each file that is given for two test sets with different references.

    The same translations cannot be right for both, so one of the paths is probably a mistake. Files
    are the same if their SHA-256 is. Test sets have different references if their target languages
    differ, or if they are two test sets of one corpus.

    Args:
        test_files: All files of external systems.
        root: The project's folder.
    """
    first_use_by_sha256: dict[str | None, _TestFile] = {}
    for use in test_files:
        # `setdefault` returns the first use of the same file, or `use` itself if the file is new.
        first = first_use_by_sha256.setdefault(use.file.sha256, use)
        is_other_language = use.target != first.target
        is_other_test = use.test != first.test and use.run.corpus == first.run.corpus
        if is_other_language or is_other_test:
            location = place_of_file(use.run, use.test, root)
            languages = f" ({first.target} and {use.target})" if is_other_language else ""
            yield (
                f"{location}: {use.run.system} has the same file for {first.test} of "
                f"{first.run.corpus} and {use.test} of {use.run.corpus}{languages}. Name "
                "the file of each test set (in corpora, for each corpus)"
            )


def _problems(settings: Settings, test_file: _TestFile, root: Path) -> Iterator[str]:
    """Yield what is wrong with a file of translations of an external system.

    If its test set is prepared, the file is compared with it: it must have as many lines, and
    should not be a copy of the sources or references. Otherwise only its own lines are checked.

    Args:
        settings: The settings of the experiment.
        test_file: The file, with its system and test set.
        root: The project's folder.

    Raises:
        UserError: The stage translate would refuse the file.
    """
    run = test_file.run
    test = test_file.test
    translations = read_translations(test_file.file, run, test, root)
    corpus = settings.corpus(run.corpus)
    texts = text_of_stage("split", run.corpus, corpus, root)
    sources, references = texts.files(f"test.{test}")
    source_lines: list[str] = []
    reference_lines: list[str] = []
    if sources.exists() and references.exists():
        # Only a note and not an error: the prepared test set may be out of date, if the user has
        # just changed it in params.yaml.
        expected = count_lines(references)
        if len(translations) != expected:
            yield f"has {counted(len(translations), 'line')}, but {references} has {expected:,}"
        source_lines = list(read_lines(sources))
        reference_lines = list(read_lines(references))
    else:
        yield (
            f"has {counted(len(translations), 'line')}, to be compared with the test set {test} of "
            f"{run.corpus} once it is prepared. To prepare it now: dvc repro split"
        )
    warnings = file_warnings(
        translations, source_lines, reference_lines, corpus.language_pair_of_test(test)
    )
    for warning in warnings:
        yield warning["group"]
