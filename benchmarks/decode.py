"""How fast a trained system translates a test set on CPUs: our search beside CTranslate2's.

    python benchmarks/decode.py --system small --corpus phrasebook-en-de

To be run where `dvc repro` has trained the system. One after the other, round after round,
translate the same binarised sentences with the same model, beam and threads:

- bleuprint: the translate stage's search, with its key-value cache
- CTranslate2, float32 and int8: the model as `bleuprint export` converts it, sentences sorted by
  length in batches of as many tokens as ours
- without a cache: greedy, each next word from a whole pass over all words before it

Timed is from ids to units: no reading, no start, no detokenising. Each contestant translates once
to warm up; shown is the best round, since whatever disturbs makes slower. Outputs that differ from
ours are counted; all divide scores by length^alpha, CTranslate2's only penalty.
"""

import argparse
import dataclasses
import json
import os
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from bleuprint.allocator import keep_memory

Outputs = list[list[int]]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--system", required=True)
    parser.add_argument("--corpus", required=True)
    parser.add_argument("--beams", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    given = parser.parse_args()
    keep_memory()
    compare(given)


def compare(given: argparse.Namespace) -> None:
    """Let all contestants translate the corpus's first test set; print what they reached."""
    import torch

    from bleuprint.binary import BinaryCorpus
    from bleuprint.layout import Cell, folder
    from bleuprint.modelfile import load_model
    from bleuprint.settings import load

    torch.set_num_threads(given.threads)
    settings = load()
    corpus = BinaryCorpus(folder(given.corpus, "binary"))
    name = next(name for name in corpus.sets if name.startswith("test."))
    side = corpus.side(name, corpus.source)
    sources = [side[row].tolist() for row in range(len(side))]
    model = load_model(
        Cell(given.system, given.corpus, settings.seeds[0]).models / "averaged", corpus
    )
    decode = dataclasses.replace(settings.system(given.system).decode, penalty="length")
    with tempfile.TemporaryDirectory() as scratch:
        engines = converted(model, corpus, Path(scratch), given.threads)
        for beam in given.beams:
            asked = dataclasses.replace(decode, beam=beam)
            contestants: dict[str, Callable[[], Outputs]] = {
                "bleuprint": partial(ours, model, sources, asked)
            }
            for precision, engine in engines.items():
                who = f"CTranslate2 {precision}"
                contestants[who] = partial(theirs, engine, corpus, sources, asked)
            if beam == 1:
                contestants["without a cache"] = partial(uncached, model, sources, asked)
            show(contestants, beam, given.rounds, name, given.threads)


def show(
    contestants: dict[str, Callable[[], Outputs]], beam: int, rounds: int, name: str, threads: int
) -> None:
    """Time the contestants and print a row for each, then all of it as JSON."""
    seconds: dict[str, list[float]] = {who: [] for who in contestants}
    outputs = {who: translate() for who, translate in contestants.items()}
    for _ in range(rounds):
        for who, translate in contestants.items():
            began = time.perf_counter()
            translate()
            seconds[who].append(time.perf_counter() - began)
    expected = outputs["bleuprint"]
    print(f"{name}, beam {beam}, {threads} threads: {len(expected)} sentences")
    rows = []
    for who, found in outputs.items():
        best = min(seconds[who])
        words = sum(len(words) + 1 for words in found)
        other = sum(one != two for one, two in zip(found, expected, strict=True))
        times = best / min(seconds["bleuprint"])
        print(
            f"{who:22}{len(found) / best:10,.0f} sentences/s{words / best:10,.0f} tokens/s"
            f"{times:8.2f}x our time{other:6} differ"
        )
        rows.append({"who": who, "seconds": seconds[who], "tokens": words, "differ": other})
    print(json.dumps({"set": name, "beam": beam, "threads": threads, "contestants": rows}))


def ours(model: Any, sources: Outputs, decode: Any) -> Outputs:
    import numpy as np

    from bleuprint.translate import search_all

    lengths = np.array(list(map(len, sources)))
    return [best[0].words for best in search_all(model, sources, lengths, decode)]


def converted(model: Any, corpus: Any, scratch: Path, threads: int) -> dict[str, Any]:
    """CTranslate2's engines, by precision."""
    import ctranslate2

    from bleuprint.ctranslate import convert

    sides = (corpus.source, corpus.target)
    source, target = (corpus.segmentation(language).vocabulary for language in sides)
    engines = {}
    for precision in ("float32", "int8"):
        convert(model, (source, target), scratch / precision, precision)
        engines[precision] = ctranslate2.Translator(
            str(scratch / precision), compute_type=precision, intra_threads=threads
        )
    return engines


def theirs(engine: Any, corpus: Any, sources: Outputs, decode: Any) -> Outputs:
    from bleuprint.translate import _BATCH_TOKENS

    source, target = (
        corpus.segmentation(language).vocabulary for language in (corpus.source, corpus.target)
    )
    ids = {unit: number for number, unit in enumerate(target.units)}
    results = engine.translate_batch(
        [[source.units[i] for i in sentence[:-1]] for sentence in sources],
        beam_size=decode.beam,
        length_penalty=decode.alpha,
        max_decoding_length=max(map(len, sources)) + decode.max_extra,
        batch_type="tokens",
        max_batch_size=_BATCH_TOKENS,
    )
    return [[ids[unit] for unit in result.hypotheses[0]] for result in results]


def uncached(model: Any, sources: Outputs, decode: Any) -> Outputs:
    """Greedy decoding that computes everything anew for each word, in batches of like length."""
    import torch

    from bleuprint.batch import pad
    from bleuprint.vocabulary import BOS, EOS

    order = sorted(range(len(sources)), key=lambda row: len(sources[row]))
    found: Outputs = [[] for _ in sources]
    for start in range(0, len(order), 128):
        rows = order[start : start + 128]
        with torch.inference_mode():
            memory = model.encode(pad([sources[row] for row in rows]))
            words = torch.full((len(rows), 1), BOS)
            limit = max(len(sources[row]) for row in rows) + decode.max_extra
            while words.size(1) < limit and not bool((words == EOS).any(1).all()):
                logs = model.probabilities(model.decode(words, *memory)[:, -1])
                words = torch.cat((words, logs.argmax(-1)[:, None]), 1)
        for row, line in zip(rows, words[:, 1:].tolist(), strict=True):
            found[row] = line[: line.index(EOS)] if EOS in line else line
    return found


if __name__ == "__main__":
    main()
