"""Looking at a binarised corpus: its pairs as text."""

from collections.abc import Iterator

from bleuprint.dataset.binarized import BinaryCorpus
from bleuprint.runtime.errors import UserError


def show(
    corpus: BinaryCorpus, name: str, start: int, stop: int, units: bool = False
) -> Iterator[str]:
    """Pairs `start` to `stop` of a set, both included and counted from 1 as `sed -n` does.

    Each is a line "number source target", with tabs between: sentences, detokenised, or the units
    that the model sees. Raises UserError, before the first line, if the set has no such pairs.
    """
    languages = corpus.source, corpus.target
    pairs = len(corpus.side(name, corpus.source))
    if not 1 <= start <= stop <= pairs:
        raise UserError(f"pairs {start} to {stop} of {name}: it has {pairs}, counted from 1")
    text = _units if units else _sentence
    return (
        "\t".join((str(number), *(text(corpus, name, language, number) for language in languages)))
        for number in range(start, stop + 1)
    )


def _sentence(corpus: BinaryCorpus, name: str, language: str, number: int) -> str:
    return corpus.text(language, corpus.side(name, language)[number - 1].tolist())


def _units(corpus: BinaryCorpus, name: str, language: str, number: int) -> str:
    vocabulary = corpus.segmentation(language).vocabulary
    return " ".join(vocabulary.decode(corpus.side(name, language)[number - 1].tolist()))
