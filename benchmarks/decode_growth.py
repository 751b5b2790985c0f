"""How the time of decoding grows with the length of sentences and with their number.

    python benchmarks/decode_growth.py --system small --corpus phrasebook-en-de

To be run where `dvc repro` has trained the system. Sources are units drawn at random, outputs are
held to the length of their source, so that time is not a matter of what a model makes of nonsense.
Each figure is the best of some rounds, with as many tokens in each, after one to warm up.
"""

import argparse
import dataclasses
import json
import time

from bleuprint.runtime import processor
from bleuprint.runtime.reexec import reexec

LENGTHS, TIMES = (10, 20, 50, 100), (1, 2, 4)
TOKENS = 10_000


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--system", required=True)
    parser.add_argument("--corpus", required=True)
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=processor.THIS.cores)
    given = parser.parse_args()
    reexec()
    measure(given)


def measure(given: argparse.Namespace) -> None:
    """Print microseconds a token by length, and by number of sentences."""
    import numpy as np
    import torch

    from bleuprint.config.experiment import load
    from bleuprint.config.paths import Run, folder
    from bleuprint.dataset.binarized import BinaryCorpus
    from bleuprint.dataset.subwords.vocabulary import EOS, SPECIALS
    from bleuprint.decoding.translate import create_engine
    from bleuprint.model.weights import load_model

    torch.set_num_threads(given.threads)
    settings = load()
    corpus = BinaryCorpus(folder(given.corpus, "binary"))
    run = Run(given.system, given.corpus, settings.seeds[0])
    model = load_model(run.models / "averaged", corpus)
    units = len(corpus.segmentation(corpus.source).vocabulary)
    draw = np.random.default_rng(1)

    def cost(length: int, count: int) -> float:
        decode = dataclasses.replace(
            settings.system_on(given.system, given.corpus).decode,
            beam=given.beam,
            max_len_a=1.0,
            max_len_b=0,
            min_len=length,
        )
        engine = create_engine(model, decode)
        words = draw.integers(len(SPECIALS), units, (count, length)).tolist()
        sources = [[*sentence, EOS] for sentence in words]
        lengths = np.full(count, length + 1)
        best = float("inf")
        for _ in range(given.rounds + 1):
            began = time.perf_counter()
            found = engine.search(sources, lengths)
            best = min(best, time.perf_counter() - began)
        assert all(len(outputs[0].tokens) == length for outputs in found)
        return best / (count * (length + 1)) * 1e6

    by_length = {length: cost(length, TOKENS // length) for length in LENGTHS}
    by_number = {times: cost(20, times * TOKENS // 20) for times in TIMES}
    for length, each in by_length.items():
        print(f"{length:4} units each:{each:8.1f} us a token, {each / by_length[20]:.2f} of 20's")
    for times, each in by_number.items():
        print(f"{times * TOKENS // 20:6,} sentences of 20:{each:8.1f} us a token")
    print(json.dumps({"beam": given.beam, "by_length": by_length, "by_number": by_number}))


if __name__ == "__main__":
    main()
