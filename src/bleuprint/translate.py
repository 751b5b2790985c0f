"""Translating a test set: from its binarised source to detokenised lines."""

import time
from pathlib import Path

import numpy as np
import torch

from bleuprint.batch import pad
from bleuprint.batches import Indices, pack
from bleuprint.binary import BinaryCorpus, Sentences
from bleuprint.errors import UserError
from bleuprint.files import whole_folder, write_json
from bleuprint.model import Transformer
from bleuprint.modelfile import load_model
from bleuprint.progress import Progress
from bleuprint.search import Symbols, beam_search
from bleuprint.system import Decode
from bleuprint.vocabulary import BOS, EOS, UNK

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
    found = search_all(model, source, decode, progress)
    return [corpus.text(corpus.target, ids) for ids in found]


def search_all(
    model: Transformer, source: Sentences, decode: Decode, progress: str | None = None
) -> list[list[int]]:
    """The best output (ids without EOS) of each sentence, in order; [] of an empty one."""
    lengths = source.lengths
    longest = int(lengths.max(initial=1))
    order = np.argsort(-lengths, kind="stable")
    found: list[list[int]] = [[] for _ in range(len(source))]
    model.eval()
    bar = Progress(progress or "", len(source), "sentences", silent=progress is None)
    for rows in pack(lengths, lengths, order, max(_BATCH_TOKENS // decode.beam, longest)):
        rows = rows[lengths[rows] > 1]  # nothing but EOS translates to nothing
        if len(rows):
            for row, words in zip(rows.tolist(), _search(model, source, rows, decode), strict=True):
                found[row] = words
        bar.advance(len(rows))
    return found


def _search(
    model: Transformer, source: Sentences, rows: Indices, decode: Decode
) -> list[list[int]]:
    device = next(model.parameters()).device
    ids = pad([source[row] for row in rows.tolist()]).to(device)
    # the source's length counts EOS, and so does the search's limit
    units = np.floor((source.lengths[rows] - 1) * decode.max_ratio).astype(np.int64)
    limits = np.minimum(units + decode.max_extra + 1, model.settings.max_length)
    with torch.inference_mode():
        state = model.start(ids)
        results = beam_search(
            model.step, state, torch.from_numpy(limits).to(device), SYMBOLS, decode
        )
    return [result[0].words for result in results]
