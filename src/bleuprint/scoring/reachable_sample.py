"""Reachable BLEU before anything has run: of lines at hand, with an example and what helps."""

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import islice
from pathlib import Path
from typing import NamedTuple
from unicodedata import normalize

from bleuprint.config import paths
from bleuprint.config.corpus import Corpus
from bleuprint.config.corpus_files import Text
from bleuprint.config.experiment import Settings
from bleuprint.corpus.download.download import local_pairs
from bleuprint.corpus.inspect import visible
from bleuprint.rules.rule import edited
from bleuprint.runtime.errors import UserError
from bleuprint.scoring.reachable import (
    CLEAN,
    LENGTH,
    TOKENIZE,
    Texts,
    listed,
    losses,
    reachable,
    scores_of,
    texts_after,
)
from bleuprint.scoring.unsplit import lacks_words
from bleuprint.text.parallel import TextFolder, read_lines

# Lines of each test set.
_LINES = 1000
_LONGEST_EXAMPLE = 40

_HELP = {
    LENGTH: "BLEU needs lines of four tokens or more",
    CLEAN: "leave the edit out, or edit the files of the test set, too",
    TOKENIZE: "tokenize.name none with vocabulary.sentencepiece restores all text",
}
_HELP_CASE = "BLEU is cased: tokenize.lowercase false keeps the case"
_HELP_SEGMENTED = "; but filter.length and filter.ratio then count text without spaces as one word"


class Loss(NamedTuple):
    """What a perfect translation scores, with an example; the step that loses most; what helps."""

    bleu: str
    step: str
    help: str


def loss(references: Sequence[str], corpus: Corpus, given: bool) -> Loss | None:
    """The loss of references, taken as by `texts_after`; None if it does not matter."""
    texts = texts_after(references, corpus, given)
    scores = scores_of(texts, corpus.target)
    if not (lost := losses(scores)):
        return None
    most = max(lost, key=lost.__getitem__)
    help_ = _HELP[most]
    if most == TOKENIZE and corpus.tokenize.lowercase:
        help_ = _HELP_CASE
    elif most == TOKENIZE and corpus.tokenize.name == "segmenter":
        help_ += _HELP_SEGMENTED
    return Loss(f"{reachable(scores):.1f} ({listed(lost)}{_example(texts, most)})", most, help_)


def notes(settings: Settings, root: Path = Path()) -> Iterator[str]:
    """A note for each test set at hand whose reachable BLEU is low, or that has no words for BLEU.

    At hand are files in inputs/ and downloaded text; of a corpus without test sets, its training
    text, of which they will be drawn. Read are the first lines.
    """
    for name, corpus in settings.corpora.items():
        drawn = {} if corpus.files.tests else {"held-out": corpus.files.train}
        for test, parts in (corpus.files.tests or drawn).items():
            try:
                lines = _at_hand(name, corpus, test, [*parts.values()], root)
                found = loss(lines, corpus, given=not drawn) if lines else None
            except UserError as error:  # the stage download refuses the file
                yield f"corpora.{name}: {error}"
                continue
            if found:
                yield f"corpora.{name}: reachable BLEU of {test} is {found.bleu}: {found.help}"
            if lacks_words(lines, corpus.target):
                yield (
                    f"corpora.{name}: {test} has hardly any spaces in {corpus.target!r}, at which "
                    "BLEU (13a) splits words: it will be near 0; compare systems by chrF2"
                )


def _at_hand(name: str, corpus: Corpus, test: str, parts: list[Text], root: Path) -> list[str]:
    """The first references of a test set; none if nothing is here."""
    local = [text for text in parts if _is_local(text)]
    if corpus.files.tests:
        if len(local) == len(parts):
            return _targets(local, corpus)
        texts = paths.given(name, root)
    elif local:
        return [edited(line, corpus.target, corpus.clean) for line in _targets(local, corpus)]
    else:
        texts = paths.folder(name, "split", root)
    path = TextFolder(texts, corpus.source, corpus.target).files(f"test.{test}")[1]
    return list(islice(read_lines(path), _LINES)) if path.exists() else []


def _is_local(text: Text) -> bool:
    """Whether a text's first lines can be read at once from files in inputs/."""
    files = [Path(file.path) for file in text.files if file.path is not None]
    streamed = text.format != "documents" and not text.made
    return streamed and len(files) == len(text.files) and all(path.is_file() for path in files)


def _targets(texts: list[Text], corpus: Corpus) -> list[str]:
    pairs = (pair for text in texts for pair in local_pairs(text, (corpus.source, corpus.target)))
    return [pair.target for pair in islice(pairs, _LINES)]


def _example(texts: Texts, step: str) -> str:
    """The shortest piece of text that a step changes, before and after it."""
    names = [*texts]
    if step == names[0]:
        return ""
    before, after = texts[names[names.index(step) - 1]], texts[step]
    changed = (_changed(*pair) for pair in zip(before, after, strict=True) if pair[0] != pair[1])
    old, new = min(filter(any, changed), key=lambda pair: len("".join(pair)))
    if normalize("NFC", old) == normalize("NFC", new):  # which look the same
        return f"; {_cut(ascii(old))} becomes {_cut(ascii(new))}"
    return f"; `{_cut(visible(old))}` becomes `{_cut(visible(new))}`"


def _changed(before: str, after: str) -> tuple[str, str]:
    """The first words of two lines that differ; empty if only their spaces do."""
    old, new = before.split(), after.split()
    codes = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    changes = ((old[a:b], new[c:d]) for tag, a, b, c, d in codes if tag != "equal")
    words = next(changes, ([], []))
    return " ".join(words[0]), " ".join(words[1])


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_EXAMPLE else f"{text[:_LONGEST_EXAMPLE]}..."
