"""The part `decode` of benchmarks/gpu.py: the speed of beam search, ours and CTranslate2's.

Each figure is output tokens per second, EOS included, from token ids to token ids, the best of
ROUNDS rounds after one to warm up; and the share of outputs equal to our float32 outputs. Models:

- multi30k: the model of the part multi30k, if it was run to its end, with its own search, on
  flickr2016
- tiny, base: with random weights, on sources of drawn_corpus.py; all outputs end at the length
  limit, LIMIT tokens, so that the figures describe search alone

Ours runs in float32 and bfloat16; CTranslate2 in float16 on a GPU, in float32 on a CPU.
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

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
from gpu_training import SIZES, VOCABULARY_SIZE, model_settings

TEST_SET = "test.flickr2016"
ROUNDS = 3
LIMIT = 30

# The units of each sentence's best translation.
Outputs = list[list[str]]


@dataclass(frozen=True)
class Task:
    """What is translated.

    Attributes:
        model: The model.
        source_vocabulary: The units of the sources.
        target_vocabulary: The units of the outputs.
        sources: The ids of each source, EOS included.
        decode: The settings of the search.
    """

    model: Transformer
    source_vocabulary: Vocabulary
    target_vocabulary: Vocabulary
    sources: Sequence[list[int]]
    decode: Decode


def decode_figures(
    arguments: argparse.Namespace, run: Run
) -> Iterator[tuple[list[str], Callable[[], Any]]]:
    """Yield the name of each model, and the measurement of all engines with it.

    Args:
        arguments: The arguments of benchmarks/gpu.py.
        run: The run of the part multi30k, in the folder --scratch.
    """
    device = torch.device(arguments.device)
    is_trained = (arguments.scratch / run.models_folder / "averaged").exists()
    if is_trained:
        make_task = partial(trained_task, arguments, run)
        yield ["multi30k"], partial(compare_engines, make_task, device)
    for size in arguments.sizes or ("tiny", "base"):
        make_task = partial(random_task, size, arguments)
        yield [size], partial(compare_engines, make_task, device)


def compare_engines(make_task: Callable[[], Task], device: torch.device) -> dict[str, Any]:
    """Measure the decoding speed of each engine on a task.

    Args:
        make_task: Creates the task: a model, sentences and the settings of the search.
        device: The device.

    Returns:
        For each engine its target tokens per second, and the share of its outputs that equal those
        of the first engine; for an engine that fails, its error.
    """
    task = make_task()
    figures: dict[str, Any] = {"beam": task.decode.beam, "sentences": len(task.sources)}
    engines: dict[str, Callable[[Task, torch.device], Callable[[], Outputs]]] = {
        "ours float32": partial(our_translator, is_bfloat16=False),
        "ours bfloat16": partial(our_translator, is_bfloat16=True),
        "CTranslate2": ctranslate2_translator,
    }
    reference: Outputs = []
    for name, prepare in engines.items():
        try:
            outputs, seconds = best_round(prepare(task, device), device)
        except Exception as error:  # whatever it is, the other engines are measured
            figures[name] = {"error": f"{type(error).__name__}: {error}"}
            continue
        if not reference:
            reference = outputs
        equal = 0
        for output, expected in zip(outputs, reference, strict=True):
            equal += output == expected
        # 1 is the end symbol, which is decoded as well but is not in the output.
        tokens = sum(len(output) + 1 for output in outputs)
        figures[name] = {
            "tokens_per_second": round(tokens / seconds, 1),
            "same": round(equal / len(outputs), 4),
        }
    return figures


def best_round(translate: Callable[[], Outputs], device: torch.device) -> tuple[Outputs, float]:
    """Translate once to warm up, then ROUNDS times; return the outputs and the best seconds.

    Args:
        translate: Translates all sentences of a task.
        device: The device on which it computes.
    """
    translate()
    round_seconds = []
    for _ in range(ROUNDS):
        start = annotated.synchronized_time(device)
        outputs = translate()
        round_seconds.append(annotated.synchronized_time(device) - start)
    return outputs, min(round_seconds)


def our_translator(task: Task, device: torch.device, is_bfloat16: bool) -> Callable[[], Outputs]:
    """Return a function that translates a task with bleuprint's search.

    Args:
        task: The model and the sentences.
        device: The device on which the model translates.
        is_bfloat16: Whether weights and activations are rounded to bfloat16; otherwise float32.
    """
    model = task.model.to(device).eval()
    if is_bfloat16:
        round_to_bfloat16(model)
    model.activation_dtype = torch.bfloat16 if is_bfloat16 else None
    engine = Engine(model, task.decode)
    lengths = np.array([len(source) for source in task.sources])

    def translate() -> Outputs:
        outputs = []
        for n_best in engine.search(task.sources, lengths):
            outputs.append(task.target_vocabulary.decode(n_best[0].tokens))
        return outputs

    return translate


def ctranslate2_translator(task: Task, device: torch.device) -> Callable[[], Outputs]:
    """Return a function that translates a task with CTranslate2.

    Converting the model is done before, so that only the translation is timed.

    Args:
        task: The model and the sentences.
        device: The device on which CTranslate2 translates: in float16 on a GPU, in float32 on a
            CPU.
    """
    import ctranslate2

    source_units = [task.source_vocabulary.decode(ids) for ids in task.sources]
    longest = max(len(units) for units in source_units)
    decode = task.decode
    vocabularies = (task.source_vocabulary, task.target_vocabulary)
    with TemporaryDirectory() as scratch:
        path = Path(scratch) / "model"
        convert(task.model, vocabularies, path)
        translator = ctranslate2.Translator(
            str(path),
            device=device.type,
            compute_type="float16" if device.type == "cuda" else "float32",
        )

    def translate() -> Outputs:
        """Translate all sources in batches of our size."""
        results = translator.translate_batch(
            source_units,
            beam_size=decode.beam,
            length_penalty=decode.length_penalty.alpha,
            max_decoding_length=int(longest * decode.max_len_a) + decode.max_len_b,
            batch_type="tokens",
            max_batch_size=BATCH_TOKENS,
        )
        return [result.hypotheses[0] for result in results]

    return translate


def trained_task(arguments: argparse.Namespace, run: Run) -> Task:
    """Return the first sentences of flickr2016 with the trained model and its search.

    Args:
        arguments: The arguments of benchmarks/gpu.py; `sentences` is the number of sentences.
        run: The run of the part multi30k, in the folder --scratch.
    """
    corpus = BinaryCorpus(arguments.scratch / corpus_folder(run.corpus, "binary"))
    settings = load_settings(arguments.scratch / "params.yaml")
    source_side = corpus.side(TEST_SET, corpus.source)
    sentences = min(len(source_side), arguments.sentences)
    return Task(
        model=load_model(arguments.scratch / run.models_folder / "averaged", corpus),
        source_vocabulary=corpus.segmentation(corpus.source).vocabulary,
        target_vocabulary=corpus.segmentation(corpus.target).vocabulary,
        sources=[source_side[row].tolist() for row in range(sentences)],
        decode=settings.system_on(run.system, run.corpus).decode,
    )


def random_task(size: str, arguments: argparse.Namespace) -> Task:
    """Return random sentences and a model of random weights, to measure speed without training.

    Such a model hardly ever ends an output, so all outputs have the maximum length, LIMIT tokens.

    Args:
        size: A name of SIZES.
        arguments: The arguments of benchmarks/gpu.py; `sentences` is the number of sentences.
    """
    torch.manual_seed(1)
    model = Transformer(model_settings(SIZES[size]), VOCABULARY_SIZE, VOCABULARY_SIZE)
    with TemporaryDirectory() as scratch:
        corpus = drawn_corpus(Path(scratch) / "binary", VOCABULARY_SIZE, arguments.sentences)
        source_side = corpus.side("train", SOURCE)
        sources = [source_side[row].tolist() for row in range(len(source_side))]
    vocabulary = drawn_vocabulary(VOCABULARY_SIZE)
    return Task(
        model=model,
        source_vocabulary=vocabulary,
        target_vocabulary=vocabulary,
        sources=sources,
        decode=replace(Decode(), max_len_a=0.0, max_len_b=LIMIT),
    )
