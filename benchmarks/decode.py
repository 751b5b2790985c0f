"""Measures how fast a trained system translates a test set on CPUs, beside other programs.

    python benchmarks/decode.py --system small --corpus phrasebook-en-de --peers FOLDER

Run it where `dvc repro` has trained the system. All contestants translate the same binarized
sentences with the same weights, beam and threads:

- bleuprint: the engine of the translate stage, in float32 and, where the CPU has it, in bfloat16
- CTranslate2, float32 and int8: the exported model, with one batch per thread; and float32 with all
  threads on each product, sentences sorted into batches like ours
- JoeyNMT 2.3.0, if --peers names a folder for its environment (made there): our weights under its
  names, its search, batches like ours; for post-norm models with sinusoids and one vocabulary
- without a cache: greedy, each next word from a pass over all words before it

The time runs from ids to units, without reading, start-up and detokenizing. Contestants take turns,
round after round, and translate once before to warm up (JoeyNMT, a process of its own, follows the
others). The best round is shown, since disturbances only make a round slower. `differ` counts
outputs that differ from ours. Scores are divided by length^alpha, CTranslate2's only penalty;
JoeyNMT uses GNMT's.
"""

import argparse
import dataclasses
import json
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

from bleuprint.runtime import processor
from bleuprint.runtime.reexec import reexec

# For each sentence, the ids of its best translation.
Outputs = list[list[int]]
CTranslate2Precision = Literal["float32", "int8"]

PEER_SCRIPT = Path(__file__).parent / "peers" / "joeynmt_decode.py"
UNCACHED_BATCH_SENTENCES = 128


@dataclass
class Contestant:
    """A program that translates the test set, and what was measured of it.

    Attributes:
        name: The name in the table.
        translate: Translates the whole test set.
        outputs: The translations of the round that warms up.
        seconds: The time of each round after it.
    """

    name: str
    translate: Callable[[], Outputs]
    outputs: Outputs = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)


def main() -> None:
    """Compare the contestants that the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--system", required=True)
    parser.add_argument("--corpus", required=True)
    parser.add_argument("--test", help="the test set (default: the first)")
    parser.add_argument("--beams", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=processor.THIS.cores)
    parser.add_argument("--peers", type=Path, help="folder of the peers' environments")
    arguments = parser.parse_args()
    reexec()
    compare(arguments)


def compare(arguments: argparse.Namespace) -> None:
    """Let all contestants translate the test set with each beam size, and print their speeds.

    Contestants are bleuprint, CTranslate2 and JoeyNMT with the same weights; for beam 1 also a
    search without a cache.

    Args:
        arguments: The arguments of the command line.
    """
    import torch

    from bleuprint.config.experiment import load_settings
    from bleuprint.config.paths import Run, corpus_folder
    from bleuprint.config.system import LengthPenalty
    from bleuprint.dataset.binarized import BinaryCorpus
    from bleuprint.model.weights import load_model

    torch.set_num_threads(arguments.threads)
    settings = load_settings()
    corpus = BinaryCorpus(corpus_folder(arguments.corpus, "binary"))
    test_sets = [name for name in corpus.sets if name.startswith("test.")]
    test_set = f"test.{arguments.test}" if arguments.test else test_sets[0]
    references = Path(corpus_folder(arguments.corpus, "split")) / f"{test_set}.{corpus.target}"
    source_ids = corpus.side(test_set, corpus.source)
    sources = [source_ids[row].tolist() for row in range(len(source_ids))]
    run = Run(arguments.system, arguments.corpus, settings.seeds[0])
    weights = run.models_folder / "averaged"
    model = load_model(weights, corpus)
    system_decode = settings.system_on(arguments.system, arguments.corpus).decode
    for beam in arguments.beams:
        decode = dataclasses.replace(
            system_decode,
            beam=beam,
            length_penalty=LengthPenalty("length", system_decode.length_penalty.alpha),
            precision="float32",
        )
        contestants = bleuprint_contestants(weights, corpus, decode, sources)
        contestants += ctranslate2_contestants(model, corpus, decode, arguments.threads, sources)
        if beam == 1:
            translate = partial(greedy_without_cache, model, sources, decode)
            contestants.append(Contestant("without a cache", translate))
        take_turns(contestants, arguments.rounds)
        if arguments.peers:
            contestants.append(joeynmt_contestant(arguments, model, sources, decode))
        title = f"{test_set}, beam {beam}, {arguments.threads} threads"
        print_results(contestants, corpus, references, title)


def bleuprint_contestants(
    weights: Path, corpus: Any, decode: Any, sources: Any
) -> list[Contestant]:
    """Return bleuprint's engine in each precision that this processor computes fast.

    Args:
        weights: The folder of the trained model.
        corpus: The binarized corpus.
        decode: The settings of the search.
        sources: The ids of each source sentence.
    """
    from bleuprint.decoding.translate import create_engine
    from bleuprint.model.weights import load_model

    precisions = ["float32"]
    if processor.THIS.has_bfloat16:
        precisions.append("bfloat16")
    contestants = []
    for precision in precisions:
        # An engine changes the precision of its model, so each one needs its own copy.
        model = load_model(weights, corpus)
        engine = create_engine(model, dataclasses.replace(decode, precision=precision))
        translate = partial(translate_with_engine, engine, sources)
        contestants.append(Contestant(f"bleuprint {precision}", translate))
    return contestants


def translate_with_engine(engine: Any, sources: Any) -> Outputs:
    """Translate sentences of ids with bleuprint's search; return the best output of each.

    Args:
        engine: The engine of one precision.
        sources: The ids of each source sentence.

    Returns:
        The ids of each output.
    """
    import numpy as np

    source_lengths = np.array([len(source) for source in sources])
    n_best_lists = engine.search(sources, source_lengths)
    return [n_best[0].tokens for n_best in n_best_lists]


def ctranslate2_contestants(
    model: Any, corpus: Any, decode: Any, threads: int, sources: Any
) -> list[Contestant]:
    """Return CTranslate2 in its two ways to use several threads.

    Either each thread translates a batch of its own, in float32 and in int8. Or all threads share
    the matrix products of one batch, in float32.

    Args:
        model: Our model, whose weights are converted.
        corpus: The binarized corpus.
        decode: The settings of the search.
        threads: The number of threads.
        sources: The ids of each source sentence.
    """
    contestants = []
    precisions: list[CTranslate2Precision] = ["float32", "int8"]
    for precision in precisions:
        batch_per_thread = CTranslate2(
            model,
            corpus,
            decode,
            precision=precision,
            inter_threads=threads,
            intra_threads=1,
        )
        translate = partial(batch_per_thread.translate, sources)
        contestants.append(Contestant(f"CTranslate2 {precision}", translate))
    one_batch = CTranslate2(
        model,
        corpus,
        decode,
        precision="float32",
        inter_threads=1,
        intra_threads=threads,
    )
    contestants.append(Contestant("  threads together", partial(one_batch.translate, sources)))
    return contestants


class CTranslate2:
    """A model of ours that was converted for CTranslate2."""

    def __init__(
        self,
        model: Any,
        corpus: Any,
        decode: Any,
        *,
        precision: CTranslate2Precision,
        inter_threads: int,
        intra_threads: int,
    ) -> None:
        """Convert a model.

        Args:
            model: The model.
            corpus: The binarized corpus with its vocabularies.
            decode: The settings of the search.
            precision: The precision of the weights.
            inter_threads: How many batches are translated at once.
            intra_threads: The number of threads for each batch.
        """
        import ctranslate2

        from bleuprint.decoding.ctranslate2_convert import convert

        source_vocabulary = corpus.segmentation(corpus.source).vocabulary
        target_vocabulary = corpus.segmentation(corpus.target).vocabulary
        self._decode = decode
        self._source_units = source_vocabulary.tokens
        self._target_ids = {}
        for number, unit in enumerate(target_vocabulary.tokens):
            self._target_ids[unit] = number
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch) / "model"
            convert(model, (source_vocabulary, target_vocabulary), folder, precision)
            self._translator = ctranslate2.Translator(
                str(folder),
                compute_type=precision,
                inter_threads=inter_threads,
                intra_threads=intra_threads,
            )

    def translate(self, sources: Any) -> Outputs:
        """Translate sentences of ids, each with the end symbol last.

        Args:
            sources: The ids of each source sentence.

        Returns:
            The ids of each output.
        """
        from bleuprint.decoding.beam_search import BATCH_TOKENS

        source_units = []
        for ids in sources:
            without_end = ids[:-1]  # CTranslate2 appends the end symbol itself
            source_units.append([self._source_units[number] for number in without_end])
        longest = max(len(ids) for ids in sources)
        results = self._translator.translate_batch(
            source_units,
            beam_size=self._decode.beam,
            length_penalty=self._decode.length_penalty.alpha,
            max_decoding_length=longest + self._decode.max_len_b,
            batch_type="tokens",
            max_batch_size=BATCH_TOKENS // self._decode.beam,
        )
        outputs = []
        for result in results:
            best_units = result.hypotheses[0]
            outputs.append([self._target_ids[unit] for unit in best_units])
        return outputs


def greedy_without_cache(model: Any, sources: Any, decode: Any) -> Outputs:
    """Decode greedily without a cache, in batches of sentences of similar length.

    For each new token, the decoder computes all earlier positions again. The comparison shows what
    a cache of their keys and values saves.

    Args:
        model: Our model.
        sources: The ids of each source sentence.
        decode: The settings of the search, for the maximum length.

    Returns:
        The ids of each output.
    """
    import torch

    from bleuprint.dataset.batch import pad
    from bleuprint.dataset.subwords.vocabulary import BOS, EOS

    rows_by_length = sorted(range(len(sources)), key=lambda row: len(sources[row]))
    outputs: Outputs = [[] for _ in sources]
    for first in range(0, len(rows_by_length), UNCACHED_BATCH_SENTENCES):
        rows = rows_by_length[first : first + UNCACHED_BATCH_SENTENCES]
        batch_sources = [sources[row] for row in rows]
        max_len = max(len(source) for source in batch_sources) + decode.max_len_b
        with torch.inference_mode():
            memory = model.encode(pad(batch_sources))
            target = torch.full((len(rows), 1), BOS)
            have_all_ended = False
            while target.size(1) < max_len and not have_all_ended:
                last_state = model.decode(target, *memory)[:, -1]
                next_ids = model.log_probs(last_state).argmax(-1)
                target = torch.cat((target, next_ids[:, None]), 1)
                have_all_ended = bool((target == EOS).any(1).all())
        for row, ids in zip(rows, target[:, 1:].tolist(), strict=True):
            outputs[row] = ids[: ids.index(EOS)] if EOS in ids else ids
    return outputs


def take_turns(contestants: Sequence[Contestant], rounds: int) -> None:
    """Let each contestant translate once to warm up, then once per round, and record the times.

    Contestants take turns, so that a disturbance of the machine does not hit only one of them.

    Args:
        contestants: The contestants. Their outputs and seconds are recorded in them.
        rounds: How often each contestant is timed.
    """
    for contestant in contestants:
        contestant.outputs = contestant.translate()
    for _ in range(rounds):
        for contestant in contestants:
            start = time.perf_counter()
            contestant.translate()
            contestant.seconds.append(time.perf_counter() - start)


def print_results(
    contestants: Sequence[Contestant], corpus: Any, references: Path, title: str
) -> None:
    """Print a row for each contestant with its speed and BLEU, then all rows as JSON.

    Args:
        contestants: What has translated the test set. The first one is ours; the others are
            compared with its time and its outputs.
        corpus: The binarized corpus, which joins tokens to sentences.
        references: The file of the references.
        title: The line above the rows.
    """
    from bleuprint.scoring.bleu import bleu_metric
    from bleuprint.text.parallel import read_lines

    metric = bleu_metric(list(read_lines(references)), corpus.target)
    our_outputs = contestants[0].outputs
    our_seconds = min(contestants[0].seconds)
    sentences = len(our_outputs)
    print(f"{title}: {sentences} sentences")
    rows = []
    for contestant in contestants:
        best_seconds = min(contestant.seconds)
        # 1 is the end symbol, which is decoded as well but is not in the output.
        tokens = sum(len(ids) + 1 for ids in contestant.outputs)
        differing = 0
        for ids, our_ids in zip(contestant.outputs, our_outputs, strict=True):
            differing += ids != our_ids
        lines = [corpus.text(corpus.target, ids) for ids in contestant.outputs]
        bleu = metric.corpus_score(lines, None).score
        print(
            f"{contestant.name:22}{sentences / best_seconds:8,.0f} sentences/s"
            f"{tokens / best_seconds:9,.0f} tokens/s{best_seconds / our_seconds:7.2f}x our time"
            f"{differing:6} differ   BLEU {bleu:.2f}"
        )
        row = {
            "who": contestant.name.strip(),
            "seconds": contestant.seconds,
            "tokens": tokens,
            "differ": differing,
            "bleu": bleu,
        }
        rows.append(row)
    print(json.dumps({"title": title, "contestants": rows}), flush=True)


def joeynmt_contestant(
    arguments: argparse.Namespace, model: Any, sources: Any, decode: Any
) -> Contestant:
    """Let JoeyNMT translate with our weights, in a process of its own Python environment.

    The weights, the batches and the settings of the search are passed in files; the process prints
    the outputs and its times as JSON.

    Args:
        arguments: The arguments of the command line.
        model: Our model, whose weights are passed on.
        sources: The ids of each source sentence.
        decode: The settings of the search.

    Returns:
        The contestant, already with its outputs and times.
    """
    import numpy as np
    import torch

    from joeynmt_weights import joeynmt_weights
    from toolkits import clean_environment, peer_python

    batches = joeynmt_batches(sources, decode.beam)
    source_ids = [list(map(int, source)) for source in sources]
    batch_ids = []
    for rows in batches:
        batch_ids.append([source_ids[row] for row in rows])
    job = {
        "threads": arguments.threads,
        "rounds": arguments.rounds,
        **joeynmt_settings(model, decode),
        "batches": batch_ids,
    }
    python = peer_python(arguments.peers.resolve(), "joeynmt")
    with tempfile.TemporaryDirectory() as scratch:
        weights_path = Path(scratch) / "weights.pt"
        torch.save(joeynmt_weights(model), weights_path)
        job_path = Path(scratch) / "job.json"
        job_path.write_text(json.dumps(job), encoding="utf-8")
        process = subprocess.run(
            [str(python), str(PEER_SCRIPT), str(weights_path), str(job_path)],
            env={**clean_environment(), "OMP_NUM_THREADS": str(arguments.threads)},
            stdout=subprocess.PIPE,
            check=True,
            text=True,
        )
    last_line = process.stdout.splitlines()[-1]
    result = json.loads(last_line)
    outputs: Outputs = [[] for _ in sources]
    for row, ids in zip(np.concatenate(batches), result["outputs"], strict=True):
        outputs[row] = ids
    return Contestant("JoeyNMT", list, outputs, result["seconds"])


def joeynmt_settings(model: Any, decode: Any) -> dict[str, Any]:
    """Return the settings of our model and of the search, as peers/joeynmt_decode.py reads them.

    Args:
        model: Our model.
        decode: The settings of the search.
    """
    size = model.settings
    return {
        "units": model.projection.out_features,
        "model": {
            "layers": size.encoder_layers,
            "norm": size.norm,
            "heads": size.heads,
            "d_model": size.d_model,
            "d_ff": size.d_ff,
        },
        "extra": decode.max_len_b,
        "beam": decode.beam,
        "alpha": decode.length_penalty.alpha,
    }


def joeynmt_batches(sources: Any, beam: int) -> list[Any]:
    """Return the batches for JoeyNMT, as lists of row numbers: the same as in bleuprint's search.

    Args:
        sources: The ids of each source sentence.
        beam: The beam size. A batch has fewer sentences the larger it is.
    """
    import numpy as np

    from bleuprint.dataset.batching import batch_by_size
    from bleuprint.decoding.beam_search import BATCH_TOKENS

    lengths = np.array([len(source) for source in sources])
    longest_first = np.argsort(-lengths)
    max_tokens = max(BATCH_TOKENS // beam, max(lengths))
    return list(batch_by_size(lengths, lengths, longest_first, max_tokens))


if __name__ == "__main__":
    main()
