"""Translating test sets: binarized sources to detokenized lines."""

import hashlib
import time
from collections.abc import Sequence
from pathlib import Path

import torch

from bleuprint.config.system import Decode
from bleuprint.dataset.binarized import BinaryCorpus
from bleuprint.decoding.attention import (
    SentenceAttention,
    attention_maps,
    select_sentences,
    write_attention,
)
from bleuprint.decoding.engine import Engine, create_engine
from bleuprint.decoding.translation_record import TranslationRecord
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
    """Translate every test set.

    Writes hypotheses/test.NAME.LANGUAGE, `translation` (the provenance, translation.json),
    `attention` (maps of a few sentences of each set, attention.json) and `timing` (seconds).
    """
    corpus = BinaryCorpus(corpus_folder)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = load_model(model_folder, corpus).to(device)
    engine = create_engine(model, corpus, decode)
    seconds, count = 0.0, 0
    attention_of: dict[str, tuple[str, list[SentenceAttention]]] = {}
    with whole_folder(hypotheses) as partial:
        for name in corpus.sets:
            if name.startswith("test."):
                corpus.verify(name)
                began = time.monotonic()
                outputs = search(engine, corpus, name, progress=f"translate {name}")
                lines = [corpus.text(corpus.target, ids) for ids in outputs]
                seconds += time.monotonic() - began
                text = "".join(f"{line}\n" for line in lines).encode()
                (partial / f"{name}.{corpus.target}").write_bytes(text)
                count += len(lines)
                digest = hashlib.sha256(text).hexdigest()
                maps = _map_sentences(model, corpus, name, outputs)
                attention_of[name.removeprefix("test.")] = digest, maps
    TranslationRecord.from_files(training_fingerprint(model_folder), decode, hypotheses).write(
        translation
    )
    write_attention(attention, attention_of)
    write_json(timing, {"seconds": round(seconds, 3), "sentences": count})


def search(
    engine: Engine, corpus: BinaryCorpus, name: str, progress: str | None = None
) -> list[list[int]]:
    """The best translation of each sentence of a set, in its order: ids without EOS."""
    source = corpus.side(name, corpus.source)
    longest, most = int(source.lengths.max(initial=0)), engine.max_source_length
    if longest > most:
        raise UserError(
            f"{corpus.folder}: line {int(source.lengths.argmax()) + 1} of {name}.{corpus.source} "
            f"has {longest} tokens, EOS included: raise model.max_positions ({most})"
        )
    return [best[0].tokens for best in engine.search(source, source.lengths, progress=progress)]


def _map_sentences(
    model: Transformer, corpus: BinaryCorpus, name: str, outputs: Sequence[Sequence[int]]
) -> list[SentenceAttention]:
    """The attention maps of a few sentences and their translations."""
    source = corpus.side(name, corpus.source)
    return [
        SentenceAttention(i + 1, attention_maps(model, corpus, source[i].tolist(), outputs[i]))
        for i in select_sentences(source.lengths)
    ]
