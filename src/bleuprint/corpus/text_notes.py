"""Write notes on texts that look like subwords, tokens, JSON or fields in place of sentences.

`notes_on_local_texts` is for the command check, `notes_on_corpus_texts` for inspect, and
`PairForms.notes` for new-corpus. text/text_form.py recognizes the forms.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from bleuprint.config.corpus import Corpus
from bleuprint.config.corpus_files import Text, settings_key
from bleuprint.config.experiment import Settings
from bleuprint.corpus.download.download import read_text_pairs
from bleuprint.corpus.download.fetch import Downloads
from bleuprint.corpus.local_texts import find_downloaded_set, has_local_files
from bleuprint.rules.edits import Entities
from bleuprint.rules.rule import Edits
from bleuprint.runtime.errors import UserError
from bleuprint.text.form_counter import FormCounter, FoundForm
from bleuprint.text.parallel import Pair, read_lines
from bleuprint.text.text_form import ENTITIES, LOWER_CASE, TOKENS, Form

# The number of pairs that are read of each text: notes must not take as long as a stage.
_MAX_PAIRS = 2000
# The formats in which pair n of a text is line n of its files, unless lines are skipped.
_LINE_FORMATS = ("plain", "tsv", "moses")


class PairForms:
    """Recognizes text that does not look like sentences, but like subwords, tokens or JSON.

    Source and target sentences are counted separately, while the text is read.
    """

    def __init__(self) -> None:
        """Create a counter for each side of the text."""
        self._counters = {"source": FormCounter(), "target": FormCounter()}

    def add(self, number: int, pair: Pair) -> None:
        """Look at one sentence pair.

        Args:
            number: The number of the pair in its text, counted from 1.
            pair: The pair.
        """
        self._counters["source"].add(number, pair.source)
        self._counters["target"].add(number, pair.target)

    def collect(self, pairs: Iterable[Pair]) -> Iterator[Pair]:
        """Look at sentence pairs on their way from a reader to its caller.

        Args:
            pairs: All pairs of a text, from the first one.

        Yields:
            The same pairs, unchanged.
        """
        for number, pair in enumerate(pairs, 1):
            self.add(number, pair)
            yield pair

    def find_forms(self, ignored: Collection[Form] = ()) -> dict[str, FoundForm]:
        """Find out what a text looks like in place of sentences: subwords, tokens, JSON or others.

        Args:
            ignored: Forms that the text has on purpose; they are not returned.

        Returns:
            The form of each side, such as {"target": tokens}. A side that looks like sentences is
            missing.
        """
        forms = {}
        for side, counter in self._counters.items():
            form = counter.frequent_form(ignored)
            if form is not None:
                forms[side] = form
        return forms

    def notes(self, files: Sequence[Path]) -> Iterator[str]:
        """Yield a note for each side, source or target, that does not look like sentences.

        HTML entities such as `&amp;` are not reported: the settings of a new corpus replace them.

        Args:
            files: The source file and the target file, or one file with both sides.
        """
        file_of_side = {"source": files[0], "target": files[-1]}
        for side, form in self.find_forms([ENTITIES]).items():
            location = str(file_of_side[side])
            if len(files) == 1:
                location = f"{location}: {side}"
            yield _format_note(location, form, "line")


def _format_note(location: str, found_form: FoundForm, unit: str) -> str:
    """Return a note that says where a text is, what it looks like, and what to do about it.

    Args:
        location: The file or the setting of the text, such as `inputs/mine.en`.
        found_form: What the text looks like, such as BPE subwords.
        unit: What the text consists of: "line" or "pair".
    """
    return f"{location}: {found_form.describe(unit)}. {found_form.form.remedy}"


def forms_on_purpose(corpus: Corpus, edits: Edits = ()) -> list[Form]:
    """Return the forms that the text of a corpus may have on purpose, by its settings.

    A form is what a text looks like in place of sentences, such as tokens or text in lower case.
    The user is warned of all other forms. For example, text in lower case needs no warning if the
    settings lowercase the corpus anyway.

    Args:
        corpus: The settings of the corpus.
        edits: How the text is cleaned. Only training text is.
    """
    forms = list[Form]()
    # With neither a tokenizer nor SentencePiece, the user's text must already be tokenized. Such
    # text is often in lower case, and may contain HTML entities.
    is_tokenized = corpus.tokenize.name == "none" and corpus.vocabulary.sentencepiece is None
    if is_tokenized:
        forms.extend(TOKENS)
        forms.append(LOWER_CASE)
        forms.append(ENTITIES)
    if corpus.tokenize.lowercase:
        forms.append(LOWER_CASE)
    if any(isinstance(edit, Entities) for edit in edits):
        forms.append(ENTITIES)
    return forms


def notes_on_local_texts(settings: Settings) -> Iterator[str]:
    """Yield a note for each text on this machine that looks like subwords, JSON and the like.

    Texts that still have to be downloaded are skipped.

    Args:
        settings: The settings of the experiment, with its corpora.
    """
    for name, corpus in settings.language_pairs().items():
        for set_name, texts in corpus.files.sets().items():
            if all(has_local_files(text) for text in texts.values()):
                yield from _notes_on_texts(name, corpus, set_name, texts, downloads=None)
            else:
                yield from _notes_on_downloaded_set(name, corpus, set_name)


def notes_on_corpus_texts(name: str, corpus: Corpus, downloads: Downloads) -> Iterator[str]:
    """Yield a note for each text of a corpus that looks like subwords, JSON and the like.

    Args:
        name: Corpus name, such as `multi30k`.
        corpus: The settings of the corpus.
        downloads: Fetches the files of the corpus.
    """
    for set_name, texts in corpus.files.sets().items():
        yield from _notes_on_texts(name, corpus, set_name, texts, downloads)


@dataclass(frozen=True)
class _CheckedText:
    """A text to check, and how notes refer to it.

    Attributes:
        key: Where params.yaml defines it, such as "corpora.own.files.train.europarl".
        source_name: The name of the file with the source.
        target_name: The name of the file with the target.
        unit: What a number in a note counts: "line" or "pair".
        pairs: Its first pairs.
    """

    key: str
    source_name: str
    target_name: str
    unit: str
    pairs: Iterable[Pair]


def _notes_on_texts(
    name: str, corpus: Corpus, set_name: str, texts: dict[str, Text], downloads: Downloads | None
) -> Iterator[str]:
    """Yield a note for each text of a data set that looks like subwords, JSON and the like.

    Args:
        name: Corpus name, such as `multi30k`.
        corpus: The settings of the corpus.
        set_name: Data set, such as `train`.
        texts: The settings of the set's texts, by name. A training set may consist of several.
        downloads: Fetches the files; None if all of them are in inputs/ on this machine.
    """
    is_cleaned = set_name == "train"
    for text_name, text in texts.items():
        # The sentences of documents are not aligned yet, so pairs do not exist yet.
        if text.format == "documents":
            continue
        # Some formats, such as .tsv, have both sides in one file, `both`.
        source_file = text.source or text.both
        target_file = text.target or text.both
        checked_text = _CheckedText(
            key=settings_key(name, f"{set_name}.{text_name}"),
            source_name=source_file.name if source_file else "",
            target_name=target_file.name if target_file else "",
            unit=_unit_of(text),
            pairs=islice(read_text_pairs(text, corpus.languages, downloads), _MAX_PAIRS),
        )
        # A part may have other edits than its corpus.
        edits = corpus.clean if text.clean is None else text.clean
        ignored = forms_on_purpose(corpus, edits if is_cleaned else ())
        yield from _notes_on_text(checked_text, ignored)


def _unit_of(text: Text) -> str:
    """Return what the numbers of a text's pairs count: the lines of its files, or only pairs.

    A table with named columns begins with their names, and a limit of scores skips lines.
    """
    skips_lines = text.named_columns is not None or text.score is not None
    return "line" if text.format in _LINE_FORMATS and not skips_lines else "pair"


def _notes_on_downloaded_set(name: str, corpus: Corpus, set_name: str) -> Iterator[str]:
    """Yield a note for each side of a downloaded data set that does not look like sentences.

    A side is the source or the target. Nothing is yielded if the set has not been downloaded yet.

    Args:
        name: Corpus name, such as `multi30k`.
        corpus: The settings of the corpus.
        set_name: Data set, such as `train` or `test.flickr2016`.
    """
    folder = find_downloaded_set(name, corpus, set_name)
    if folder is None:
        return
    source_path, target_path = folder.files(set_name)
    # `strict=False`: a file that is longer than the other one is reported elsewhere.
    lines = zip(read_lines(source_path), read_lines(target_path), strict=False)
    pairs = (Pair(source, target) for source, target in lines)
    checked_text = _CheckedText(
        key=settings_key(name, set_name),
        source_name=str(source_path),
        target_name=str(target_path),
        unit="line",
        pairs=islice(pairs, _MAX_PAIRS),
    )
    edits = corpus.clean if set_name == "train" else ()
    ignored = forms_on_purpose(corpus, edits)
    yield from _notes_on_text(checked_text, ignored)


def _notes_on_text(text: _CheckedText, ignored: Collection[Form]) -> Iterator[str]:
    """Yield a note for each side of a text, source or target, that does not look like sentences.

    Args:
        text: The text, and what notes call its files and settings.
        ignored: Forms that the text has on purpose, such as lower case.
    """
    forms = PairForms()
    try:
        for number, pair in enumerate(text.pairs, 1):
            forms.add(number, pair)
    except UserError:
        # The file cannot be read. The stage download refuses it with a message of its own.
        return
    name_of_side = {"source": text.source_name, "target": text.target_name}
    for side, form in forms.find_forms(ignored).items():
        location = f"{text.key}.{side}: {name_of_side[side]}"
        yield _format_note(location, form, text.unit)
