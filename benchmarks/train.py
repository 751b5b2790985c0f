"""Measures how fast bleuprint trains on CPUs, beside other toolkits and the machine's own products.

    BLEUPRINT_MIRROR=/folder python benchmarks/train.py --peers FOLDER
    python benchmarks/train.py --size wide --updates 8

The text is Multi30k's (English to German) where BLEUPRINT_MIRROR holds it, else the phrasebook. It
goes through the project's stages in a scratch folder, with 10,000 joint merges, and all contestants
read the same token lines with the same vocabulary. One process after the other trains a model of
one size (--size) with the same number of threads, round after round:

- bleuprint: stages/train.py as users run it, with its reader, its loss, MLflow and its memory
  settings, in float32 and, where the CPU has it, in bfloat16
- annotated style: benchmarks/annotated.py, see there
- OpenNMT-py 3.5.1 and JoeyNMT 2.3.0: their own training commands with benchmarks/peers/NAME.yaml,
  each in an environment of its own below FOLDER; a missing one is made, from PyPI and
  benchmarks/peers/NAME.txt

Each contestant makes as many updates to warm up as are then timed (--updates). The speed is target
tokens without padding, sentence ends included, per second of the training loop; for the peers, as
their own logs say. The best round is shown, since disturbances only make a round slower.

A batch has 4,096 tokens with padding, on the longer side. bleuprint and OpenNMT-py put sentences
of similar length together and stop before 4,096; JoeyNMT takes them in order and stops after; the
annotated style gets bleuprint's batches. An update is one batch, except in bleuprint, whose updates
have 4,096 target tokens without padding: one or two batches. Dropout is 0.1: in bleuprint of
embeddings and sublayers, in OpenNMT-py also of inner layers, in JoeyNMT and the annotated style
also of attention. Layers are normalized after the sublayer, in OpenNMT-py and the annotated style
before it. All share embeddings with the projection; all smooth labels by 0.1 and use Adam.

The products are oneDNN's, in each precision, of a matrix of a batch by the weights of the size's
widest layers; the operations of a training are those of bleuprint.model.flops, without padding.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from importlib.metadata import version
from pathlib import Path
from runpy import run_path
from typing import Any

from bleuprint.config.paths import Run, corpus_folder
from bleuprint.dataset.binarized import BinaryCorpus
from bleuprint.runtime import processor
from bleuprint.runtime.json_files import read_json
from bleuprint.runtime.reexec import reexec
from toolkits import (
    BATCH_TOKENS,
    CORPUS,
    ROOT,
    Size,
    Speed,
    Trial,
    installed_version,
    peer_python,
    prepare,
    read_recipe,
    train_joeynmt,
    train_opennmt,
)

MERGES = 10_000
# The systems of the scratch project are named by their precision.
PRECISIONS = ("float32", "bfloat16") if processor.THIS.has_bfloat16 else ("float32",)
# Products are repeated for a time, in blocks of which the best counts.
PRODUCT_SECONDS = 0.3
PRODUCT_BLOCKS = 4
SIZES = {
    "small": Size(d_model=128, d_ff=256, layers=4, heads=4),
    "wide": Size(d_model=512, d_ff=2048, layers=6, heads=8),
}


@dataclass(frozen=True)
class Contestant:
    """A toolkit that trains the model, and its measured speeds.

    Attributes:
        name: The name in the table.
        versions: The versions of its packages.
        train: Does a trial; returns its speed.
        precision: The precision, for bleuprint; None for the other toolkits.
        speeds: The speed of each round.
    """

    name: str
    versions: str
    train: Callable[[Trial], Speed]
    precision: str | None = None
    speeds: list[Speed] = field(default_factory=list)

    @property
    def best(self) -> Speed:
        """The speed of the fastest round."""
        return max(self.speeds, key=lambda speed: speed.tokens_per_second)


def main() -> None:
    """Compare the toolkits, or run one of the measurements in this process."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--updates", type=int, default=20, help="updates to time, and to warm up")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--threads", type=int, default=processor.THIS.cores)
    parser.add_argument("--peers", type=Path, help="folder of the peers' environments")
    # This script calls itself with these two, so that each measurement has its own process.
    parser.add_argument("--timed", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--products", choices=PRECISIONS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.timed is not None:
        system, seed = arguments.timed
        run_timed_training(arguments.updates, system, seed)
    elif arguments.products:
        measure_products(SIZES[arguments.size], arguments.products)
    else:
        compare(arguments)


def compare(arguments: argparse.Namespace) -> None:
    """Prepare the corpus, let all toolkits train on it in turn, and print their speeds.

    In each round, each contestant trains with the same seed. Before a training by bleuprint, the
    speed of matrix products alone is measured, which is the most that a training could reach.

    Args:
        arguments: The arguments of the command line.
    """
    size = SIZES[arguments.size]
    peers = arguments.peers.resolve() if arguments.peers else None
    contestants = all_contestants(arguments.size, peers)
    product_gflops: dict[str, list[float]] = {precision: [] for precision in PRECISIONS}
    with tempfile.TemporaryDirectory() as scratch:
        project = Path(scratch)
        corpus_facts = make_corpus(project, size, arguments.updates, arguments.rounds)
        for seed in range(1, arguments.rounds + 1):
            trial = Trial(project, size, arguments.updates, seed, arguments.threads)
            for contestant in contestants:
                precision = contestant.precision
                if precision is not None:
                    options = ("--size", arguments.size, "--products", precision)
                    result = trial.call_benchmark("train.py", *options)
                    product_gflops[precision].append(result["gflops"])
                contestant.speeds.append(contestant.train(trial))
        timings = project / Run("float32", CORPUS, 1).timings_folder
        (timing_path,) = timings.glob("train-*.json")
        timing = read_json(timing_path)
    rows = print_speeds(contestants)
    gflops = print_gflops(contestants, product_gflops)
    report = {
        **corpus_facts,
        "cpu": timing["device"],
        "threads": arguments.threads,
        "commit": timing["commit"],
        "size": arguments.size,
        **asdict(size),
        "max_tokens": BATCH_TOKENS,
        "updates": arguments.updates,
        "rounds": arguments.rounds,
        "contestants": rows,
        "gflops": gflops,
    }
    print(json.dumps(report))


def all_contestants(size: str, peers: Path | None) -> list[Contestant]:
    """Return bleuprint in each precision and, for the small size, the other toolkits.

    Args:
        size: A name of SIZES.
        peers: The folder of the peers' environments; without it they take no part.
    """
    torch = f"torch {version('torch')}"
    versions = f"{version('bleuprint')}, {torch}"
    contestants = []
    for precision in PRECISIONS:
        train = partial(train_bleuprint, precision)
        contestants.append(Contestant(f"bleuprint {precision}", versions, train, precision))
    if size != "small":
        return contestants
    contestants.append(Contestant("annotated style", torch, train_annotated))
    if peers is not None:
        python = peer_python(peers, "opennmt")
        train = partial(train_opennmt, python)
        contestants.append(Contestant("OpenNMT-py", peer_versions(python, "OpenNMT-py"), train))
        python = peer_python(peers, "joeynmt")
        train = partial(train_joeynmt, python)
        contestants.append(Contestant("joeynmt", peer_versions(python, "joeynmt"), train))
    return contestants


def peer_versions(python: Path, package: str) -> str:
    """Return the versions of a toolkit and of its torch.

    Args:
        python: The Python of the toolkit's environment.
        package: The name of the toolkit's package.
    """
    toolkit_version = installed_version(python, package)
    torch_version = installed_version(python, "torch")
    return f"{toolkit_version}, torch {torch_version}"


def print_speeds(contestants: list[Contestant]) -> list[dict[str, Any]]:
    """Print the speed of each contestant, and how many times as fast ours is.

    Args:
        contestants: The contestants; the first one is ours.

    Returns:
        The same rows as JSON values.
    """
    print(f"{'target tokens/s':18}{'best':>8}{'ours is':>10}  of rounds; versions")
    our_best = contestants[0].best.tokens_per_second
    rows = []
    for contestant in contestants:
        best = contestant.best.tokens_per_second
        times = our_best / best
        rates = [round(speed.tokens_per_second) for speed in contestant.speeds]
        listed = " ".join(f"{rate:,}" for rate in rates)
        print(f"{contestant.name:18}{best:>8,.0f}{times:>9.2f}x  {listed}; {contestant.versions}")
        row = {
            "name": contestant.name,
            "versions": contestant.versions,
            "tokens_per_second": rates,
            "ours_is": round(times, 2),
        }
        rows.append(row)
    return rows


def print_gflops(
    contestants: list[Contestant], product_gflops: dict[str, list[float]]
) -> dict[str, dict[str, float]]:
    """Print which share of the speed of matrix products alone our training reaches.

    Args:
        contestants: All contestants; those without a precision are not ours.
        product_gflops: The rate of products in each round, by precision.
    """
    gflops = {}
    for contestant in contestants:
        if contestant.precision is None:
            continue
        ours = contestant.best.gflops or 0.0
        products = max(product_gflops[contestant.precision])
        share = f"{ours:.0f} of {products:.0f} GFLOP/s, {ours / products:.1%}"
        print(f"{contestant.name}: {share} of products")
        gflops[contestant.precision] = {"products": round(products, 1), "ours": round(ours, 1)}
    return gflops


def make_corpus(project: Path, size: Size, updates: int, rounds: int) -> dict[str, Any]:
    """Send the text through all data stages, and write it for the peers.

    Args:
        project: The scratch folder.
        size: The size of the model, for the settings of the systems.
        updates: How many updates are timed.
        rounds: The number of rounds, each with a seed of its own.

    Returns:
        The corpus's name and size.
    """
    has_mirror = bool(os.environ.get("BLEUPRINT_MIRROR"))
    recipe_name = "multi30k" if has_mirror else "phrasebook"
    corpus_name = f"{recipe_name}-en-de"
    corpus = read_recipe(recipe_name)["corpora"][corpus_name]
    corpus["vocabulary"]["bpe"]["num_merges"] = MERGES
    # The held-out sets are drawn and small, because a training ends with translating one.
    corpus["files"] = {"valid": None, "tests": None}
    corpus["split"] = {"valid": 0.001, "test": 0.001}
    params = {
        "experiment": "benchmark",
        "seeds": list(range(1, rounds + 1)),
        "published": [],
        "corpora": {CORPUS: corpus},
        "systems": {
            precision: system_settings(size, updates, precision) for precision in PRECISIONS
        },
    }
    prepare(project, params, CORPUS)
    binary = BinaryCorpus(project / corpus_folder(CORPUS, "binary"))
    vocabulary_size = write_peer_text(binary, project)
    return {
        "corpus": corpus_name,
        "pairs": binary.sets["train"].pairs,
        "vocabulary": vocabulary_size,
    }


def system_settings(size: Size, updates: int, precision: str) -> dict[str, Any]:
    """Return Transformer-Tiny of the recipe multi30k in another size and for few updates.

    Args:
        size: The size of the model.
        updates: The number of updates.
        precision: The precision of the training.
    """
    settings: dict[str, Any] = read_recipe("multi30k")["systems"]["transformer-tiny"]
    settings["model"] |= {
        "encoder_layers": size.layers,
        "decoder_layers": size.layers,
        "d_model": size.d_model,
        "d_ff": size.d_ff,
        "heads": size.heads,
        "d_k": size.d_model // size.heads,
        "d_v": size.d_model // size.heads,
        "dropout": {"embedding": 0.1, "residual": 0.1, "attention": 0.0, "activation": 0.0},
    }
    last_update = 2 * updates
    settings["train"] |= {
        "tokens_per_update": BATCH_TOKENS,
        "max_tokens": BATCH_TOKENS,
        "precision": precision,
        "max_updates": last_update,
        "validate_interval": last_update,
        "save_interval": last_update,
        "keep_last": 1,
        "keep_best": 0,
        "keep_interval": 0,
    }
    settings["average"] = {"last": 1}
    return settings


def write_peer_text(corpus: BinaryCorpus, project: Path) -> int:
    """Write the text for the other toolkits: the subwords of train and valid, and the vocabulary.

    Args:
        corpus: The binarized corpus.
        project: The scratch project.

    Returns:
        The size of the vocabulary, which both languages share.
    """
    for suffix, language in (("src", corpus.source), ("trg", corpus.target)):
        vocabulary = corpus.segmentation(language).vocabulary
        for name in ("train", "valid"):
            sentences = corpus.side(name, language)
            path = project / f"{name}.{suffix}"
            with path.open("w", encoding="utf-8") as file:
                for row in range(len(sentences)):
                    units = vocabulary.decode(sentences[row].tolist())
                    file.write(" ".join(units) + "\n")
    units = [unit for unit, count in vocabulary.counts if count]
    (project / "units").write_text("\n".join(units) + "\n", encoding="utf-8")
    return len(vocabulary)


def train_bleuprint(precision: str, trial: Trial) -> Speed:
    """Train with our own stage, in a process of its own.

    Args:
        precision: The precision of the training.
        trial: What is trained.

    Returns:
        The speed of the updates.
    """
    options = ("--updates", trial.updates, "--timed", precision, trial.seed)
    return Speed(**trial.call_benchmark("train.py", *options))


def run_timed_training(updates: int, system: str, seed: str) -> None:
    """Run stages/train.py, and print the speed of the second half of its updates.

    To time the updates, the method that computes one is replaced by a wrapper, which notes the time
    at the end of each.

    Args:
        updates: The number of updates of the training.
        system: The name of the system.
        seed: The seed.
    """
    reexec()
    from unittest.mock import patch

    from bleuprint.training.data_loader import LocalUpdate
    from bleuprint.training.train_step import PendingUpdate, TrainStep

    end_times: list[float] = []
    outcomes: list[PendingUpdate] = []
    original_update = TrainStep.update

    def timed_update(step: TrainStep, number: int, local: LocalUpdate) -> PendingUpdate:
        outcome = original_update(step, number, local)
        outcomes.append(outcome)
        end_times.append(time.monotonic())
        return outcome

    sys.argv = [str(ROOT / "stages" / "train.py"), system, CORPUS, seed]
    try:
        with patch.object(TrainStep, "update", timed_update):
            run_path(sys.argv[0], run_name="__main__")
    except SystemExit as end:
        if end.code:
            raise
    assert len(end_times) == 2 * updates, f"{len(end_times)} updates"
    seconds = end_times[-1] - end_times[updates - 1]
    tokens = 0.0
    flops = 0.0
    for outcome in outcomes[updates:]:
        _source_tokens, update_tokens, update_flops = outcome.counts
        tokens += update_tokens
        flops += update_flops
    print(json.dumps(asdict(Speed(tokens / seconds, flops / seconds / 1e9))))


def train_annotated(trial: Trial) -> Speed:
    """Train in the style of The Annotated Transformer, in a process of its own.

    Args:
        trial: What is trained.

    Returns:
        The speed of the updates.
    """
    options = [
        corpus_folder(CORPUS, "binary"),
        f"--updates={trial.updates}",
        f"--seed={trial.seed}",
        f"--batch-tokens={BATCH_TOKENS}",
    ]
    for name, value in asdict(trial.size).items():
        options.append(f"--{name.replace('_', '-')}={value}")
    return Speed(**trial.call_benchmark("annotated.py", *options))


def measure_products(size: Size, precision: str) -> None:
    """Print how many operations per second matrix products alone reach on this CPU.

    The product is that of a batch by the weights of the widest layer. It is the most that a
    training could reach. oneDNN is the library by which torch computes products on CPUs.

    Args:
        size: The size of the model.
        precision: The precision of the products.
    """
    reexec()
    import torch

    dtypes = {"float32": torch.float32, "bfloat16": torch.bfloat16}
    columns = max(3 * size.d_model, size.d_ff)
    batch = torch.rand(BATCH_TOKENS, size.d_model).to(dtypes[precision])
    weight = torch.rand(columns, size.d_model).to(dtypes[precision])
    flops_per_product = 2 * batch.numel() * columns
    best_gflops = 0.0
    for _ in range(PRODUCT_BLOCKS):
        start = time.perf_counter()
        products = 0
        while time.perf_counter() - start < PRODUCT_SECONDS:
            torch.ops.mkldnn._linear_pointwise(batch, weight, None, "none", [], "")
            products += 1
        seconds = time.perf_counter() - start
        best_gflops = max(best_gflops, flops_per_product * products / seconds / 1e9)
    print(json.dumps({"gflops": best_gflops}))


if __name__ == "__main__":
    main()
