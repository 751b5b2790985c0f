"""Notes on texts that look like subwords, tokens, JSON or fields in place of sentences."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from bleuprint.config import paths
from bleuprint.config.corpus import Corpus
from bleuprint.config.corpus_files import Text
from bleuprint.config.experiment import Settings
from bleuprint.corpus.download.download import local_pairs
from bleuprint.corpus.download.fetch import Source
from bleuprint.rules.edits import Entities
from bleuprint.runtime.errors import UserError
from bleuprint.text.parallel import Pair, TextFolder, read_lines
from bleuprint.text.text_form import ENTITIES, LOWER_CASE, TOKENS, Form, FormCounter, FoundForm

# The lines that are read of each text: a note must not take the time of a stage.
_LINES = 2000
# The formats in which pair n of a text is line n of its files.
_OF_LINES = ("plain", "tsv")


class PairForms:
    """The forms of both sides of pairs, which are counted while these are read."""

    def __init__(self) -> None:
        self._sides = {"source": FormCounter(), "target": FormCounter()}

    def of(self, pairs: Iterable[Pair]) -> Iterator[Pair]:
        """The same pairs."""
        source, target = self._sides.values()
        for number, pair in enumerate(pairs, 1):
            source.add(number, pair.source)
            target.add(number, pair.target)
            yield pair

    def found(self, ignored: Collection[Form] = ()) -> dict[str, FoundForm]:
        """By side, the form of a side that does not look like sentences."""
        found = {side: counter.found(ignored) for side, counter in self._sides.items()}
        return {side: form for side, form in found.items() if form is not None}

    def notes(self, files: Sequence[Path]) -> Iterator[str]:
        """A note on each side, for a command that is given its files: two, or one with both."""
        names = {"source": files[0], "target": files[-1]}
        for side, found in self.found([ENTITIES]).items():  # which a new corpus replaces
            where = f"{names[side]}: {side}" if len(files) == 1 else str(names[side])
            yield f"{where}: {found.text()}: {found.form.remedy}"


def forms_on_purpose(corpus: Corpus, is_cleaned: bool) -> list[Form]:
    """The forms that the settings of a corpus name or remove.

    Args:
        corpus: Its `tokenize` is none where its text is in tokens, unless SentencePiece splits it.
        is_cleaned: Whether `clean` edits the text, as it does training text.
    """
    found = list[Form]()
    if corpus.tokenize.name == "none" and corpus.vocabulary.sentencepiece is None:
        found += [*TOKENS, LOWER_CASE, ENTITIES]
    if corpus.tokenize.lowercase:
        found.append(LOWER_CASE)
    if is_cleaned and any(isinstance(edit, Entities) for edit in corpus.clean):
        found.append(ENTITIES)
    return found


def notes_here(settings: Settings) -> Iterator[str]:
    """A note for each text in inputs/, or downloaded before, that does not look like sentences."""
    for name, corpus in settings.pairs().items():
        for set_name, parts in corpus.files.sets().items():
            if all(map(_is_here, parts.values())):
                yield from _of_parts(name, corpus, set_name, parts, None)
            else:
                yield from _of_downloaded(name, corpus, set_name)


def notes_of(name: str, corpus: Corpus, source: Source) -> Iterator[str]:
    """The same for all texts of one corpus, which `source` fetches."""
    for set_name, parts in corpus.files.sets().items():
        yield from _of_parts(name, corpus, set_name, parts, source)


def _is_here(text: Text) -> bool:
    return all(file.path is not None and Path(file.path).is_file() for file in text.files)


def _of_parts(
    name: str, corpus: Corpus, set_name: str, parts: dict[str, Text], source: Source | None
) -> Iterator[str]:
    for part, text in parts.items():
        if text.format == "documents":  # their lines are no sentences yet
            continue
        pairs = islice(local_pairs(text, corpus.languages, source), _LINES)
        unit = "line" if text.format in _OF_LINES else "pair"
        files = {"source": text.source or text.both, "target": text.target or text.both}
        names = {side: file.name if file else "" for side, file in files.items()}
        place = f"corpora.{name}: {set_name}.{part}"
        yield from _of_pairs(place, names, unit, corpus, set_name, pairs)


def _of_downloaded(name: str, corpus: Corpus, set_name: str) -> Iterator[str]:
    source, target = TextFolder(paths.given(name), *corpus.languages).files(set_name)
    if not source.is_file() or not target.is_file():
        return
    pairs = (Pair(*lines) for lines in zip(read_lines(source), read_lines(target), strict=False))
    names = {"source": str(source), "target": str(target)}
    place = f"corpora.{name}: {set_name}"
    yield from _of_pairs(place, names, "line", corpus, set_name, islice(pairs, _LINES))


def _of_pairs(
    place: str,
    names: dict[str, str],
    unit: str,
    corpus: Corpus,
    set_name: str,
    pairs: Iterator[Pair],
) -> Iterator[str]:
    """The notes on both sides of pairs; `names`: the file of each side."""
    forms = PairForms()
    try:
        for _ in forms.of(pairs):
            pass
    except UserError:  # the stage download refuses the file, and says why
        return
    ignored = forms_on_purpose(corpus, is_cleaned=set_name == "train")
    for side, found in forms.found(ignored).items():
        yield f"{place}.{side}: {names[side]}: {found.text(unit)}: {found.form.remedy}"
