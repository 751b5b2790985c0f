"""The stage score_outside: all metrics of translations that were not made here."""

from collections.abc import Iterator
from pathlib import Path

from bleuprint.config.experiment import Settings
from bleuprint.config.outside import OutsideFile
from bleuprint.config.paths import folder, outside
from bleuprint.corpus.download.formats.lines import read_lines
from bleuprint.corpus.test_sets import read_description
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import not_a_file, sha256_of, whole_folder, write_json
from bleuprint.scoring.record import SCORES, SetScores
from bleuprint.scoring.score import note_if_identical, score_files
from bleuprint.text.parallel import TextFolder, count_lines


def check_files(settings: Settings, root: Path = Path()) -> Iterator[str]:
    """A note for each file that is not here; raises UserError at what the stage would refuse.

    Files are compared with test sets that are prepared.
    """
    for name in settings.outside or {}:
        for key, _, _, file, (_, references) in _files(settings, name, root):
            if not (root / file.path).exists():
                yield f"{key}: {root / file.path}: no such file"
            else:
                given = _check(file, key, root)
                # a note: the test set may be another one now, and not yet prepared
                if references.exists() and given != (known := count_lines(references)):
                    yield f"{key}: {root / file.path} has {given:,} lines, {references} {known:,}"


def score_outside(settings: Settings, name: str, root: Path = Path()) -> None:
    """Score the rows from outside of a corpus: copies of their files, and scores.json for each.

    Raises UserError if a file has another hash than params.yaml says, is not UTF-8, or
    has another number of lines than its test set.
    """
    corpus, scores = settings.corpus(name), dict[str, dict[str, SetScores]]()
    with whole_folder(outside(name, root)) as unfinished:
        for key, row, test, file, (sources, references) in _files(settings, name, root):
            if (given := _check(file, key, root)) != (expected := count_lines(references)):
                raise UserError(
                    f"{root / file.path}: has {given:,} lines, but the test set has {expected:,} "
                    f"({references}; {key})"
                )
            hypotheses = unfinished / row / "hypotheses" / references.name
            hypotheses.parent.mkdir(parents=True, exist_ok=True)
            with hypotheses.open("w", encoding="utf-8", newline="\n") as copy:
                copy.writelines(f"{line}\n" for line in _lines(root / file.path))
            described = read_description(folder(name, "tests", root), test)
            entry = corpus.of_test(test)
            found = score_files(sources, references, hypotheses, entry, described, None)
            note_if_identical(found, root / file.path)
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
        yield from read_lines(file, str(path))


def _check(file: OutsideFile, key: str, root: Path) -> int:
    """The lines of a file; raises UserError if it is missing, another one, or not UTF-8."""
    if not (path := root / file.path).is_file():
        raise UserError(f"{path}: {not_a_file(path)} ({key})")
    if (digest := sha256_of(path)) != file.sha256:
        raise UserError(f"{path}: has SHA-256 {digest}, but params.yaml has {file.sha256} ({key})")
    return sum(1 for _ in _lines(path))
