"""Translating a test set: from its binarised source to detokenised lines."""

import time
from pathlib import Path

import torch

from bleuprint.binary import BinaryCorpus
from bleuprint.engine import Engine, engine_of
from bleuprint.errors import UserError
from bleuprint.files import whole_folder, write_json
from bleuprint.modelfile import load_model, training_of
from bleuprint.provenance import Translation
from bleuprint.system import Decode


def translate_tests(
    corpus_folder: Path,
    model_folder: Path,
    decode: Decode,
    hypotheses: Path,
    translation: Path,
    timing: Path,
) -> None:
    """Translate every test set; write test.NAME.LANGUAGE files, what made them, and how long."""
    corpus = BinaryCorpus(corpus_folder)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    engine = engine_of(load_model(model_folder, corpus).to(device), corpus, decode)
    seconds, count = 0.0, 0
    with whole_folder(hypotheses) as partial:
        for name in corpus.sets:
            if name.startswith("test."):
                corpus.verify(name)
                began = time.monotonic()
                lines = translate(engine, corpus, name, progress=f"translate {name}")
                seconds += time.monotonic() - began
                text = "".join(f"{line}\n" for line in lines)
                (partial / f"{name}.{corpus.target}").write_bytes(text.encode())
                count += len(lines)
    Translation.of(training_of(model_folder), decode, hypotheses).write(translation)
    write_json(timing, {"seconds": round(seconds, 3), "sentences": count})


def translate(
    engine: Engine, corpus: BinaryCorpus, name: str, progress: str | None = None
) -> list[str]:
    """The detokenised translations of a set, in its order."""
    source = corpus.side(name, corpus.source)
    longest, most = int(source.lengths.max(initial=0)), engine.longest
    if longest > most:
        raise UserError(
            f"{corpus.folder}: line {int(source.lengths.argmax()) + 1} of {name}.{corpus.source} "
            f"has {longest} units, its end counted: raise model.max_length ({most})"
        )
    found = engine.search(source, source.lengths, progress=progress)
    return [corpus.text(corpus.target, best[0].words) for best in found]
