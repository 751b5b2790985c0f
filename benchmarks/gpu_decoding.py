"""The part `decode` of benchmarks/gpu.py: speeds of beam search, ours and CTranslate2's.

Output tokens a second, EOS included, from token ids to token ids, the best of ROUNDS after one to
warm up, and the share of outputs that are those of our search in float32. Models:

- multi30k: of that part, if it was run to its end, with its own search, on flickr2016
- tiny, base: with random weights, on sources of drawn_corpus.py; they end at the length limit,
  LIMIT tokens for all, so that the figures are of search alone

Ours is in float32 and bfloat16; CTranslate2 in float16 on a GPU, in float32 on a CPU.
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import torch

import annotated
from bleuprint.config.experiment import load_settings
from bleuprint.config.paths import Run, corpus_folder
from bleuprint.config.system import Decode
from bleuprint.dataset.binarized import BinaryCorpus
from bleuprint.dataset.subwords.vocabulary import Vocabulary
from bleuprint.decoding.beam_search import BATCH_TOKENS
from bleuprint.decoding.ctranslate2_convert import convert
from bleuprint.decoding.engine import Engine
from bleuprint.model.precision import round_to_bfloat16
from bleuprint.model.transformer import Transformer
from bleuprint.model.weights import load_model
from drawn_corpus import SOURCE, drawn_corpus, drawn_vocabulary
from gpu_training import SIZES, VOCABULARY, model_of

TEST, ROUNDS, LIMIT = "test.flickr2016", 3, 30

Outputs = list[list[str]]


class Task(NamedTuple):
    """What is translated: ids of each source with EOS, by a model with this search."""

    model: Transformer
    vocabularies: tuple[Vocabulary, Vocabulary]
    sources: Sequence[list[int]]
    decode: Decode


def figures(given: argparse.Namespace, run: Run) -> Iterator[tuple[list[str], Callable[[], Any]]]:
    """The name and the measurement of each; `run` is that of multi30k in --scratch."""
    tasks = {name: partial(drawn, name, given) for name in given.sizes or ("tiny", "base")}
    if (given.scratch / run.models_folder / "averaged").exists():
        tasks = {"multi30k": partial(trained, given, run), **tasks}
    for name, task in tasks.items():
        yield [name], partial(compare, task, torch.device(given.device))


def compare(task_of: Callable[[], Task], device: torch.device) -> dict[str, Any]:
    """Of each engine."""
    task = task_of()
    found: dict[str, Any] = {}
    reference: Outputs = []
    for name, prepare in (
        ("ours float32", partial(own, bfloat16=False)),
        ("ours bfloat16", partial(own, bfloat16=True)),
        ("CTranslate2", ctranslate2),
    ):
        try:
            outputs, seconds = timed(prepare(task, device), device)
        except Exception as error:  # of any kind: the others are measured
            found[name] = {"error": f"{type(error).__name__}: {error}"}
            continue
        reference = reference or outputs
        same = sum(a == b for a, b in zip(outputs, reference, strict=True)) / len(outputs)
        tokens = sum(len(output) + 1 for output in outputs)
        found[name] = {"tokens_per_second": round(tokens / seconds, 1), "same": round(same, 4)}
    return {"beam": task.decode.beam, "sentences": len(task.sources), **found}


def timed(translate: Callable[[], Outputs], device: torch.device) -> tuple[Outputs, float]:
    seconds = []
    for _ in range(1 + ROUNDS):
        began = annotated.now(device)
        outputs = translate()
        seconds.append(annotated.now(device) - began)
    return outputs, min(seconds[1:])


def own(task: Task, device: torch.device, bfloat16: bool) -> Callable[[], Outputs]:
    model = task.model.to(device).eval()
    if bfloat16:
        round_to_bfloat16(model)
    model.activation_dtype = torch.bfloat16 if bfloat16 else None
    engine, target = Engine(model, task.decode), task.vocabularies[1]
    lengths = np.array([*map(len, task.sources)])

    def translate() -> Outputs:
        return [target.decode(best[0].tokens) for best in engine.search(task.sources, lengths)]

    return translate


def ctranslate2(task: Task, device: torch.device) -> Callable[[], Outputs]:
    import ctranslate2

    source, _ = task.vocabularies
    lines = [source.decode(ids) for ids in task.sources]
    decode, longest = task.decode, max(map(len, task.sources)) - 1
    with TemporaryDirectory() as scratch:
        path = Path(scratch) / "model"
        convert(task.model, task.vocabularies, path)
        number = "float16" if device.type == "cuda" else "float32"
        translator = ctranslate2.Translator(str(path), device=device.type, compute_type=number)

    def translate() -> Outputs:
        found = translator.translate_batch(
            lines,
            beam_size=decode.beam,
            length_penalty=decode.length_penalty.alpha,
            max_decoding_length=int(longest * decode.max_len_a) + decode.max_len_b,
            batch_type="tokens",
            max_batch_size=BATCH_TOKENS,
        )
        return [result.hypotheses[0] for result in found]

    return translate


def trained(given: argparse.Namespace, run: Run) -> Task:
    corpus = BinaryCorpus(given.scratch / corpus_folder(run.corpus, "binary"))
    decode = load_settings(given.scratch / "params.yaml").system_on(run.system, run.corpus).decode
    source, target = (
        corpus.segmentation(language).vocabulary for language in (corpus.source, corpus.target)
    )
    side = corpus.side(TEST, corpus.source)
    sources = [side[row].tolist() for row in range(min(len(side), given.sentences))]
    model = load_model(given.scratch / run.models_folder / "averaged", corpus)
    return Task(model, (source, target), sources, decode)


def drawn(size: str, given: argparse.Namespace) -> Task:
    torch.manual_seed(1)
    model = Transformer(model_of(SIZES[size]), VOCABULARY, VOCABULARY)
    with TemporaryDirectory() as scratch:
        corpus = drawn_corpus(Path(scratch) / "binary", VOCABULARY, given.sentences)
        side = corpus.side("train", SOURCE)
        sources = [side[row].tolist() for row in range(len(side))]
    vocabulary = drawn_vocabulary(VOCABULARY)
    decode = replace(Decode(), max_len_a=0.0, max_len_b=LIMIT)
    return Task(model, (vocabulary, vocabulary), sources, decode)
