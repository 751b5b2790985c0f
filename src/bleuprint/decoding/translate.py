"""Translating a test set: from its binarised source to detokenised lines."""

import hashlib
import time
from collections.abc import Sequence
from pathlib import Path

import torch

from bleuprint.config.system import Decode
from bleuprint.dataset.binarized import BinaryCorpus
from bleuprint.decoding.attention import Attended, attention_maps, sentences_to_map, write_attention
from bleuprint.decoding.engine import Engine, engine_of
from bleuprint.decoding.translation_record import Translation
from bleuprint.model.transformer import Transformer
from bleuprint.model.weights import load_model, training_fingerprint
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import whole_folder, write_json


def translate_tests(
    corpus_folder: Path,
    model_folder: Path,
    decode: Decode,
    hypotheses: Path,
    translation: Path,
    attention: Path,
    timing: Path,
) -> None:
    """Translate every test set; write test.NAME.LANGUAGE files, what made them, and how long.

    `attention` becomes attention.json: where the model looked, for a few sentences of each set.
    """
    corpus = BinaryCorpus(corpus_folder)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = load_model(model_folder, corpus).to(device)
    engine = engine_of(model, corpus, decode)
    seconds, count = 0.0, 0
    attended: dict[str, tuple[str, list[Attended]]] = {}
    with whole_folder(hypotheses) as partial:
        for name in corpus.sets:
            if name.startswith("test."):
                corpus.verify(name)
                began = time.monotonic()
                found = search(engine, corpus, name, progress=f"translate {name}")
                lines = [corpus.text(corpus.target, words) for words in found]
                seconds += time.monotonic() - began
                text = "".join(f"{line}\n" for line in lines).encode()
                (partial / f"{name}.{corpus.target}").write_bytes(text)
                count += len(lines)
                digest = hashlib.sha256(text).hexdigest()
                attended[name.removeprefix("test.")] = digest, _attended(model, corpus, name, found)
    Translation.of(training_fingerprint(model_folder), decode, hypotheses).write(translation)
    write_attention(attention, attended)
    write_json(timing, {"seconds": round(seconds, 3), "sentences": count})


def search(
    engine: Engine, corpus: BinaryCorpus, name: str, progress: str | None = None
) -> list[list[int]]:
    """The best translation of each sentence of a set, in its order: ids without EOS."""
    source = corpus.side(name, corpus.source)
    longest, most = int(source.lengths.max(initial=0)), engine.longest
    if longest > most:
        raise UserError(
            f"{corpus.folder}: line {int(source.lengths.argmax()) + 1} of {name}.{corpus.source} "
            f"has {longest} units, its end counted: raise model.max_positions ({most})"
        )
    return [best[0].words for best in engine.search(source, source.lengths, progress=progress)]


def _attended(
    model: Transformer, corpus: BinaryCorpus, name: str, found: Sequence[Sequence[int]]
) -> list[Attended]:
    """The maps of a few sentences and of what was found for them."""
    source = corpus.side(name, corpus.source)
    return [
        Attended(i + 1, attention_maps(model, corpus, source[i].tolist(), found[i]))
        for i in sentences_to_map(source.lengths)
    ]
