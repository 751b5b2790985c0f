"""A few sentences of a test set, translated again."""

import random
from pathlib import Path
from typing import NamedTuple

import torch

from bleuprint.config.system import Decode
from bleuprint.dataset.binarized import BinaryCorpus
from bleuprint.decoding.ensemble import load_decoder
from bleuprint.decoding.translate import create_engine
from bleuprint.text.parallel import read_lines

LINES = 20


class SpotCheck(NamedTuple):
    """Of the lines that were drawn, how many have the same translation again."""

    same: int
    drawn: int


def spot_check(
    corpus_folder: Path, model_folder: Path, decode: Decode, hypotheses: Path
) -> SpotCheck:
    """Translate LINES sentences of each test set, other ones in each call.

    `hypotheses`: the folder of the translations that they are compared with. The same model may
    give others in a few lines, on another machine or in another batch, since sums in floating point
    depend on their order.
    """
    corpus = BinaryCorpus(corpus_folder)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    engine = create_engine(load_decoder(model_folder, corpus).to(device), corpus, decode)
    same = drawn = 0
    for name in (each for each in corpus.sets if each.startswith("test.")):
        before = list(read_lines(hypotheses / f"{name}.{corpus.target}"))
        source = corpus.side(name, corpus.source)
        rows = random.sample(range(len(before)), min(LINES, len(before)))
        outputs = engine.search([source[row].tolist() for row in rows], source.lengths[rows])
        again = [corpus.text(corpus.target, best[0].tokens) for best in outputs]
        same += sum(line == before[row] for line, row in zip(again, rows, strict=True))
        drawn += len(rows)
    return SpotCheck(same, drawn)
