"""The stage score_outside: all metrics of translations that were not made here."""

from collections.abc import Iterator
from pathlib import Path

from bleuprint.config.experiment import Settings
from bleuprint.config.outside import OutsideFile
from bleuprint.config.paths import folder, outside
from bleuprint.corpus.download.formats.lines import read_lines as read_given_lines
from bleuprint.corpus.test_sets import read_description
from bleuprint.runtime.counts import counted
from bleuprint.runtime.errors import UserError, say
from bleuprint.runtime.files import not_a_file, sha256_of, whole_folder, write_json
from bleuprint.scoring.file_warnings import file_warnings
from bleuprint.scoring.record import SCORES, SetScores
from bleuprint.scoring.score import score_files
from bleuprint.text.parallel import TextFolder, count_lines, read_lines


def check_files(settings: Settings, root: Path = Path()) -> Iterator[str]:
    """A note for each file that is not here, or that does not look like translations.

    Files are compared with test sets that are prepared. Raises UserError at what the stage would
    refuse.
    """
    for name in settings.outside or {}:
        for key, _, test, file, (sources, references) in _files(settings, name, root):
            path = root / file.path
            if not path.exists():
                yield f"{key}: {path}: no such file"
                continue
            translations = _checked_lines(file, key, root)
            is_prepared = sources.exists() and references.exists()
            # a note: the test set may be another one now, and not yet prepared
            if is_prepared and len(translations) != (known := count_lines(references)):
                given = counted(len(translations), "line")
                yield f"{key}: {path} has {given}, {references} {known:,}"
            corpus = settings.corpus(name).of_test(test)
            source_lines = list(read_lines(sources)) if is_prepared else []
            reference_lines = list(read_lines(references)) if is_prepared else []
            for warning in file_warnings(translations, source_lines, reference_lines, corpus):
                yield f"{key}: {path}: {warning['group']}"


def score_outside(settings: Settings, name: str, root: Path = Path()) -> None:
    """Score the rows from outside of a corpus: copies of their files, and scores.json for each.

    Raises UserError if a file has another hash than params.yaml says, is not UTF-8, or
    has another number of lines than its test set.
    """
    corpus, scores = settings.corpus(name), dict[str, dict[str, SetScores]]()
    with whole_folder(outside(name, root)) as unfinished:
        for key, row, test, file, (sources, references) in _files(settings, name, root):
            path = root / file.path
            translations = _checked_lines(file, key, root)
            if (given := len(translations)) != (expected := count_lines(references)):
                raise UserError(
                    f"{path}: has {counted(given, 'line')}, but the test set has {expected:,} "
                    f"({references}; {key})"
                )
            hypotheses = unfinished / row / "hypotheses" / references.name
            hypotheses.parent.mkdir(parents=True, exist_ok=True)
            with hypotheses.open("w", encoding="utf-8", newline="\n") as copy:
                copy.writelines(f"{line}\n" for line in translations)
            described = read_description(folder(name, "tests", root), test)
            entry = corpus.of_test(test)
            found = score_files(sources, references, hypotheses, entry, described, None)
            source_lines = list(read_lines(sources))
            reference_lines = list(read_lines(references))
            warnings = list(file_warnings(translations, source_lines, reference_lines, entry))
            for warning in warnings:
                say(f"{path}: {warning['group']}", "note")
            found["measures"] += warnings
            scores.setdefault(row, {})[test] = found
        for row, of_row in scores.items():
            write_json(unfinished / row / SCORES, of_row)


def _files(
    settings: Settings, name: str, root: Path
) -> Iterator[tuple[str, str, str, OutsideFile, tuple[Path, Path]]]:
    """Of each file of a corpus its key, row, test set, entry, and that test set's two files."""
    corpus = settings.corpus(name)
    texts = TextFolder(folder(name, "split", root), corpus.source, corpus.target)
    for row, entry in settings.outside_on(name).items():
        for test, file in entry.tests.items():
            key = f"outside.{name}.{row}.tests.{test}"
            yield key, row, test, file, texts.files(f"test.{test}")


def _lines(path: Path) -> Iterator[str]:
    """The lines, read as those of a corpus: without a byte order mark and a \\r at their ends."""
    with path.open("rb") as file:
        yield from read_given_lines(file, str(path))


def _checked_lines(file: OutsideFile, key: str, root: Path) -> list[str]:
    """The lines of a file; raises UserError if it is missing, another one, or not UTF-8."""
    path = root / file.path
    if not path.is_file():
        raise UserError(f"{path}: {not_a_file(path)} ({key})")
    if (digest := sha256_of(path)) != file.sha256:
        raise UserError(f"{path}: has SHA-256 {digest}, but params.yaml has {file.sha256} ({key})")
    return list(_lines(path))
