"""A note on references that BLEU's default tokenizer cannot split into words."""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import regex
from sacrebleu.metrics.bleu import BLEU

from bleuprint.config.experiment import Corpus, Settings
from bleuprint.config.paths import given
from bleuprint.scoring.bleu import bleu_metric
from bleuprint.text.parallel import TextFolder
from bleuprint.text.unicode import blank_white

# Lines that are read, and the letters a line of them has in the mean, at least: single words have
# no spaces in any language.
_LINES, _LETTERS = 200, 20
# Scripts without spaces between words, by Unicode's rules of line breaks (UAX #14): SA of Southeast
# Asia, AK and AS of Java and Bali, ID and CJ of East Asia; and Tibetan.
_UNSPACED = regex.compile(r"[\p{lb=SA}\p{lb=AK}\p{lb=AS}\p{lb=ID}\p{lb=CJ}\p{Tibetan}]")
# Spaces for each other character, fewer than which are few: in those scripts, and in others. The
# Declaration of Human Rights has 0.01 in Yi, 0.06 in Shan, 0.08 in Burmese; 0.06 in Kalaallisut,
# 0.09 in Tamil, 0.2 in English, and none in Amharic, where a sign separates words.
_FEW_SPACES = {True: 0.08, False: 0.03}


def notes(settings: Settings, root: Path = Path()) -> Iterator[str]:
    """A note for each corpus with such references, among those that are on this machine."""
    for name, corpus in settings.corpora.items():
        if lacks_words(_references(name, corpus, root), corpus.target):
            yield (
                f"corpora.{name}: its references in {corpus.target!r} have hardly any spaces, at "
                "which BLEU (13a) splits words: it will be near 0; compare systems by chrF2"
            )


def lacks_words(references: Sequence[str], language: str) -> bool:
    """Whether 13a scores references in a language, which are written without spaces."""
    if bleu_metric([], language).tokenizer_signature != BLEU.TOKENIZER_DEFAULT:
        return False
    words = [blank_white(line).split() for line in references]
    text = "".join(word for line in words for word in line)
    if len(text) < _LETTERS * max(1, len(references)):
        return False
    spaces = sum(map(len, words)) - len(words)
    unspaced = len(_UNSPACED.findall(text)) > len(text) / 2
    return spaces < _FEW_SPACES[unspaced] * len(text)


def _references(name: str, corpus: Corpus, root: Path) -> list[str]:
    """The first lines of the target side: of a test set if one is there, else of another set."""
    downloaded = TextFolder(given(name, root), corpus.source, corpus.target)
    own = [
        root / text.target.path
        for text in corpus.files.texts().values()
        if text.format == "plain" and text.target is not None and text.target.path is not None
    ]
    sets = [downloaded.files(each)[1] for each in corpus.files.given()]
    for path in reversed([*own, *sets]):
        if path.is_file():
            with path.open(encoding="utf-8", errors="replace", newline="\n") as file:
                lines = list(islice(file, _LINES))
            # not a compressed file, nor text in another encoding
            return [] if any("\ufffd" in line for line in lines) else lines
    return []
