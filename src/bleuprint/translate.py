"""Translating a test set: from its binarised source to detokenised lines."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor

from bleuprint.batch import Sentence, pad
from bleuprint.batches import pack
from bleuprint.binary import BinaryCorpus, Lengths, Sentences
from bleuprint.errors import UserError
from bleuprint.files import whole_folder, write_json
from bleuprint.model import Transformer
from bleuprint.modelfile import load_model
from bleuprint.progress import Progress
from bleuprint.search import Hypothesis, Selectable, Symbols, beam_search
from bleuprint.system import Decode, Model
from bleuprint.vocabulary import BOS, EOS, UNK

State = TypeVar("State", bound=Selectable)

# Hypotheses that are decoded at once, times source positions: bounds memory, changes no result.
_BATCH_TOKENS = 4096

SYMBOLS = Symbols(begin=BOS, end=EOS, unknown=UNK)


def translate_tests(
    corpus_folder: Path, model_folder: Path, decode: Decode, hypotheses: Path, timing: Path
) -> None:
    """Translate every test set; write test.NAME.LANGUAGE files and the seconds it took."""
    corpus = BinaryCorpus(corpus_folder)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = load_model(model_folder, corpus).to(device)
    seconds, count = 0.0, 0
    with whole_folder(hypotheses) as partial:
        for name in corpus.sets:
            if name.startswith("test."):
                corpus.verify(name)
                began = time.monotonic()
                lines = translate(model, corpus, name, decode, progress=f"translate {name}")
                seconds += time.monotonic() - began
                text = "".join(f"{line}\n" for line in lines)
                (partial / f"{name}.{corpus.target}").write_bytes(text.encode())
                count += len(lines)
    write_json(timing, {"seconds": round(seconds, 3), "sentences": count})


def translate(
    model: Transformer, corpus: BinaryCorpus, name: str, decode: Decode, progress: str | None = None
) -> list[str]:
    """The detokenised translations of a set, in its order."""
    source = corpus.side(name, corpus.source)
    longest, most = int(source.lengths.max(initial=0)), model.settings.max_length
    if longest > most:
        raise UserError(
            f"{corpus.folder}: line {int(source.lengths.argmax()) + 1} of {name}.{corpus.source} "
            f"has {longest} units, its end counted: raise model.max_length ({most})"
        )
    found = search_all(model, source, source.lengths, decode, progress=progress)
    return [corpus.text(corpus.target, best[0].words) for best in found]


class Decoder(Protocol[State]):
    """What can translate: a model, or several as one."""

    settings: Model

    @property
    def device(self) -> torch.device: ...

    def start(self, source: Tensor) -> State: ...

    def step(self, words: Tensor, state: State) -> tuple[Tensor, State]: ...


def search_all(
    decoder: Decoder[State],
    source: Sequence[Sentence] | Sentences,
    lengths: Lengths,
    decode: Decode,
    best: int = 1,
    progress: str | None = None,
) -> list[list[Hypothesis]]:
    """The `best` outputs of each sentence (ids with EOS, of these lengths), in their order.

    Those of an empty one: one without words.
    """
    longest = int(lengths.max(initial=1))
    order = np.argsort(-lengths, kind="stable")
    found = [[Hypothesis([], 0.0, 0.0)] for _ in lengths]
    bar = Progress(progress or "", len(lengths), "sentences", silent=progress is None)
    for rows in pack(lengths, lengths, order, max(_BATCH_TOKENS // decode.beam, longest)):
        rows = rows[lengths[rows] > 1]  # nothing but EOS translates to nothing
        if len(rows):
            ids = pad([source[row] for row in rows.tolist()]).to(decoder.device)
            outputs = _search(decoder, ids, lengths[rows], decode, best)
            for row, hypotheses in zip(rows.tolist(), outputs, strict=True):
                found[row] = hypotheses
        bar.advance(len(rows))
    return found


@torch.inference_mode()
def _search(
    decoder: Decoder[State], source: Tensor, lengths: Lengths, decode: Decode, best: int
) -> list[list[Hypothesis]]:
    # the source's length counts EOS, and so does the search's limit
    units = np.floor((lengths - 1) * decode.max_ratio).astype(np.int64)
    limits = np.minimum(units + decode.max_extra + 1, decoder.settings.max_length)
    return beam_search(
        decoder.step,
        decoder.start(source),
        torch.from_numpy(limits).to(source.device),
        SYMBOLS,
        decode,
        best,
    )
