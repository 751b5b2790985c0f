"""Measures how the time of decoding grows with the length and the number of sentences.

    python benchmarks/decode_growth.py --system small --corpus phrasebook-en-de

Run it where `dvc repro` has trained the system. The sources are random units. Every output is held
to the length of its source, so that the time does not depend on what the model makes of random
text. Each figure is the best of some rounds after one round to warm up.
"""

import argparse
import dataclasses
import json
import time

from bleuprint.runtime import processor
from bleuprint.runtime.reexec import reexec

# Sentence lengths in units; each is measured with as many sentences as have TOKENS together.
LENGTHS = (10, 20, 50, 100)
# For sentences of 20 units: multiples of TOKENS.
MULTIPLES = (1, 2, 4)
TOKENS = 10_000


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--system", required=True)
    parser.add_argument("--corpus", required=True)
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=processor.THIS.cores)
    arguments = parser.parse_args()
    reexec()
    measure(arguments)


def measure(arguments: argparse.Namespace) -> None:
    """Print how the decoding time per token grows with sentence length and number of sentences."""
    import numpy as np
    import torch

    from bleuprint.config.experiment import load_settings
    from bleuprint.config.paths import Run, corpus_folder
    from bleuprint.dataset.binarized import BinaryCorpus
    from bleuprint.dataset.subwords.vocabulary import EOS, SPECIALS
    from bleuprint.decoding.translate import create_engine
    from bleuprint.model.weights import load_model

    torch.set_num_threads(arguments.threads)
    settings = load_settings()
    corpus = BinaryCorpus(corpus_folder(arguments.corpus, "binary"))
    run = Run(arguments.system, arguments.corpus, settings.seeds[0])
    model = load_model(run.models_folder / "averaged", corpus)
    vocabulary_size = len(corpus.segmentation(corpus.source).vocabulary)
    generator = np.random.default_rng(1)

    def microseconds_per_token(length: int, sentences: int) -> float:
        """Translate random sentences of one length some times; return the best time per token."""
        decode = dataclasses.replace(
            settings.system_on(arguments.system, arguments.corpus).decode,
            beam=arguments.beam,
            # Together with `min_len`, each output is as long as its sentence.
            max_len_a=1.0,
            max_len_b=0,
            min_len=length,
        )
        engine = create_engine(model, decode)
        shape = (sentences, length)
        ids = generator.integers(len(SPECIALS), vocabulary_size, shape).tolist()
        sources = [[*sentence, EOS] for sentence in ids]
        source_lengths = np.full(sentences, length + 1)
        best_seconds = float("inf")
        # One round more, since the first one warms up.
        for _ in range(arguments.rounds + 1):
            start = time.perf_counter()
            translations = engine.search(sources, source_lengths)
            best_seconds = min(best_seconds, time.perf_counter() - start)
        for n_best in translations:
            assert len(n_best[0].tokens) == length
        # 1 is the end symbol, which is decoded, too.
        tokens = sentences * (length + 1)
        return best_seconds / tokens * 1e6

    by_length = {}
    for length in LENGTHS:
        by_length[length] = microseconds_per_token(length, TOKENS // length)
    by_number = {}
    for multiple in MULTIPLES:
        by_number[multiple] = microseconds_per_token(20, multiple * TOKENS // 20)
    for length, cost in by_length.items():
        print(f"{length:4} units each:{cost:8.1f} us a token, {cost / by_length[20]:.2f} of 20's")
    for multiple, cost in by_number.items():
        print(f"{multiple * TOKENS // 20:6,} sentences of 20:{cost:8.1f} us a token")
    print(json.dumps({"beam": arguments.beam, "by_length": by_length, "by_number": by_number}))


if __name__ == "__main__":
    main()
