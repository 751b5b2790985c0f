"""Pairs of a binarized corpus as text."""

from collections.abc import Iterator

from bleuprint.dataset.binarized import BinaryCorpus
from bleuprint.runtime.errors import UserError


def show(
    corpus: BinaryCorpus, name: str, start: int, stop: int, subwords: bool = False
) -> Iterator[str]:
    """Pairs `start` to `stop` of the set `name`, both included and counted from 1.

    Yields lines "number source target", separated by tabs: detokenized sentences, or the subwords
    that the model reads. Raises UserError, before the first line, if the set has no such pairs.
    """
    languages = corpus.source, corpus.target
    pairs = len(corpus.side(name, corpus.source))
    if not 1 <= start <= stop <= pairs:
        raise UserError(f"pairs {start} to {stop} of {name}: it has {pairs}, counted from 1")

    def text(language: str, number: int) -> str:
        ids = corpus.side(name, language)[number - 1].tolist()
        if subwords:
            return " ".join(corpus.segmentation(language).vocabulary.decode(ids))
        return corpus.text(language, ids)

    return (
        "\t".join((str(number), *(text(language, number) for language in languages)))
        for number in range(start, stop + 1)
    )
