"""How fast bleuprint trains on CPUs, beside other toolkits and beside the machine's own products.

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
  each in an environment of its own below FOLDER; one that is not there is made, from PyPI and
  benchmarks/peers/NAME.txt

Each makes as many updates to warm up as are then timed (--updates). Counted are target tokens
without padding, sentence ends included, by the seconds of the training loop; of the peers, as their
own logs tell. Shown is the best round, since whatever disturbs makes slower.

A batch is of 4,096 tokens with padding, on the longer side. bleuprint and OpenNMT-py put sentences
of like length together and stop before 4,096; JoeyNMT takes them as they come and stops after; the
annotated style gets bleuprint's batches. An update is a batch, but for bleuprint, whose updates are
of 4,096 target tokens without padding: one or two batches. Dropout is 0.1: in bleuprint of
embeddings and sublayers, in OpenNMT-py also of inner layers, in JoeyNMT and the annotated style of
attention, too. Layers are normalized after the sublayer, in OpenNMT-py and the annotated style
before. All share embeddings with the projection; all smooth labels by 0.1 and use Adam.

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
from bleuprint.runtime.files import read_json
from bleuprint.runtime.reexec import reexec
from toolkits import (
    BATCH_TOKENS,
    CORPUS,
    ROOT,
    Size,
    Speed,
    Trial,
    installed,
    joeynmt,
    opennmt,
    prepare,
    read_recipe,
    ready,
)

MERGES = 10_000
# Systems are named by their precision.
PRECISIONS = ("float32", "bfloat16") if processor.THIS.has_bfloat16 else ("float32",)
# Products are repeated for a time, in blocks.
PRODUCT_SECONDS, PRODUCT_BLOCKS = 0.3, 4


SIZES = {"small": Size(128, 256, 4, 4), "wide": Size(512, 2048, 6, 8)}


@dataclass(frozen=True)
class Contestant:
    """A contestant: its command, its speed in each round, and for bleuprint the precision."""

    name: str
    versions: str
    train: Callable[[Trial], Speed]
    precision: str | None = None
    speeds: list[Speed] = field(default_factory=list)

    @property
    def best(self) -> Speed:
        return max(self.speeds, key=lambda speed: speed.tokens_per_second)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--updates", type=int, default=20, help="updates to time, and to warm up")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--threads", type=int, default=processor.THIS.cores)
    parser.add_argument("--peers", type=Path, help="folder of the peers' environments")
    parser.add_argument("--timed", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--products", choices=PRECISIONS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.timed is not None:
        timed(given.updates, *given.timed)
    elif given.products:
        products(SIZES[given.size], given.products)
    else:
        compare(given)


def compare(given: argparse.Namespace) -> None:
    """Make the corpus, let all contestants train on it, and print what they reached."""
    size = SIZES[given.size]
    contestants = compete(given.size, given.peers and given.peers.resolve())
    rates: dict[str, list[float]] = {precision: [] for precision in PRECISIONS}
    with tempfile.TemporaryDirectory() as scratch:
        project = Path(scratch)
        corpus = make_corpus(project, size, given.updates, given.rounds)
        for seed in range(1, given.rounds + 1):
            trial = Trial(project, size, given.updates, seed, given.threads)
            for contestant in contestants:
                if contestant.precision is not None:
                    own = ("--size", given.size, "--products", contestant.precision)
                    rates[contestant.precision].append(trial.call_own("train.py", *own)["gflops"])
                contestant.speeds.append(contestant.train(trial))
        (measured,) = (project / Run("float32", CORPUS, 1).timings_folder).glob("train-*.json")
        timing = read_json(measured)
    machine = {"cpu": timing["device"], "threads": given.threads, "commit": timing["commit"]}
    settings = {"max_tokens": BATCH_TOKENS, "updates": given.updates, "rounds": given.rounds}
    rows = show(contestants)
    gflops = {}
    for contestant in contestants:
        if contestant.precision is not None:
            ours, most = contestant.best.gflops or 0.0, max(rates[contestant.precision])
            share = f"{ours:.0f} of {most:.0f} GFLOP/s, {ours / most:.1%}"
            print(f"{contestant.name}: {share} of products")
            gflops[contestant.precision] = {"products": round(most, 1), "ours": round(ours, 1)}
    report = {**corpus, **machine, "size": given.size, **asdict(size), **settings}
    print(json.dumps({**report, "contestants": rows, "gflops": gflops}))


def compete(size: str, peers: Path | None) -> list[Contestant]:
    """Who takes part: the peers if there is a folder for them, others than us at one size."""
    torch = f"torch {version('torch')}"
    contestants = [
        Contestant(
            f"bleuprint {precision}",
            f"{version('bleuprint')}, {torch}",
            partial(bleuprint, precision),
            precision,
        )
        for precision in PRECISIONS
    ]
    if size != "small":
        return contestants
    contestants.append(Contestant("annotated style", torch, annotated))
    if peers is not None:
        for name, train in (("OpenNMT-py", opennmt), ("joeynmt", joeynmt)):
            python = ready(peers, train.__name__)
            versions = f"{installed(python, name)}, torch {installed(python, 'torch')}"
            contestants.append(Contestant(name, versions, partial(train, python)))
    return contestants


def show(contestants: list[Contestant]) -> list[dict[str, Any]]:
    """Print a row for each contestant; the same as data."""
    print(f"{'target tokens/s':18}{'best':>8}{'ours is':>10}  of rounds; versions")
    rows = []
    for contestant in contestants:
        best = contestant.best.tokens_per_second
        times = contestants[0].best.tokens_per_second / best
        rounds = [round(speed.tokens_per_second) for speed in contestant.speeds]
        listed = " ".join(f"{rate:,}" for rate in rounds)
        name, versions = contestant.name, contestant.versions
        print(f"{name:18}{best:>8,.0f}{times:>9.2f}x  {listed}; {versions}")
        row = {"name": name, "versions": versions, "tokens_per_second": rounds}
        rows.append({**row, "ours_is": round(times, 2)})
    return rows


def make_corpus(project: Path, size: Size, updates: int, rounds: int) -> dict[str, Any]:
    """Send the text through all data stages, and write it out for the peers; what it is."""
    name = "multi30k-en-de" if os.environ.get("BLEUPRINT_MIRROR") else "phrasebook-en-de"
    recipe = read_recipe(name.partition("-")[0])
    corpus = recipe["corpora"][name]
    corpus["vocabulary"]["bpe"]["num_merges"] = MERGES
    # what is held out is drawn, and little: training ends with a translation of it
    corpus["files"] = {"valid": None, "tests": None}
    corpus["split"] = {"valid": 0.001, "test": 0.001}
    params = {
        "experiment": "benchmark",
        "seeds": list(range(1, rounds + 1)),
        "published": [],
        "corpora": {CORPUS: corpus},
        "systems": {precision: system(size, updates, precision) for precision in PRECISIONS},
    }
    prepare(project, params, CORPUS)
    return write_text(BinaryCorpus(project / corpus_folder(CORPUS, "binary")), project, name)


def system(size: Size, updates: int, precision: str) -> dict[str, Any]:
    """Transformer-Tiny of the recipe multi30k in another size, trained for twice the updates."""
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
    settings["train"] |= {
        "tokens_per_update": BATCH_TOKENS,
        "max_tokens": BATCH_TOKENS,
        "precision": precision,
        "max_updates": 2 * updates,
        "validate_interval": 2 * updates,
        "save_interval": 2 * updates,
        "keep_last": 1,
        "keep_best": 0,
        "keep_interval": 0,
    }
    settings["average"] = {"last": 1}
    return settings


def write_text(corpus: BinaryCorpus, project: Path, name: str) -> dict[str, Any]:
    """Write the units of train and valid, and the vocabulary, for the peers; what was written."""
    for side, language in (("src", corpus.source), ("trg", corpus.target)):
        vocabulary = corpus.segmentation(language).vocabulary
        for kind in ("train", "valid"):
            sentences = corpus.side(kind, language)
            rows = (sentences[row].tolist() for row in range(len(sentences)))
            lines = [" ".join(vocabulary.decode(ids)) for ids in rows]
            (project / f"{kind}.{side}").write_text("\n".join(lines) + "\n", encoding="utf-8")
    units = [unit for unit, count in vocabulary.counts if count]
    (project / "units").write_text("\n".join(units) + "\n", encoding="utf-8")
    return {"corpus": name, "pairs": corpus.sets["train"].pairs, "vocabulary": len(vocabulary)}


def bleuprint(precision: str, trial: Trial) -> Speed:
    own = ("--updates", trial.updates, "--timed", precision, trial.seed)
    return Speed(**trial.call_own("train.py", *own))


def timed(updates: int, system: str, seed: str) -> None:
    """Run stages/train.py, and print the speed of the second half of its updates."""
    reexec()
    from unittest.mock import patch

    from bleuprint.training.data_loader import LocalUpdate
    from bleuprint.training.train_step import PendingUpdate, TrainStep

    clock, outcomes, update = [], [], TrainStep.update

    def noted(learner: TrainStep, number: int, share: LocalUpdate) -> PendingUpdate:
        outcomes.append(update(learner, number, share))
        clock.append(time.monotonic())
        return outcomes[-1]

    sys.argv = [str(ROOT / "stages" / "train.py"), system, CORPUS, seed]
    try:
        with patch.object(TrainStep, "update", noted):
            run_path(sys.argv[0], run_name="__main__")
    except SystemExit as end:
        if end.code:
            raise
    assert len(clock) == 2 * updates, f"{len(clock)} updates"
    seconds = clock[-1] - clock[updates - 1]
    tokens, flops = (sum(each.counts[what] for each in outcomes[updates:]) for what in (1, 2))
    print(json.dumps(asdict(Speed(tokens / seconds, flops / seconds / 1e9))))


def annotated(trial: Trial) -> Speed:
    sizes = [f"--{name.replace('_', '-')}={value}" for name, value in asdict(trial.size).items()]
    numbers = f"--updates={trial.updates}", f"--seed={trial.seed}"
    batches, corpus = f"--batch-tokens={BATCH_TOKENS}", corpus_folder(CORPUS, "binary")
    return Speed(**trial.call_own("annotated.py", corpus, *numbers, batches, *sizes))


def products(size: Size, precision: str) -> None:
    """Print the rate of oneDNN's products of a batch, with memory kept as in training."""
    reexec()
    import torch

    dtype = {"float32": torch.float32, "bfloat16": torch.bfloat16}[precision]
    columns = max(3 * size.d_model, size.d_ff)
    batch = torch.rand(BATCH_TOKENS, size.d_model).to(dtype)
    weight, best = torch.rand(columns, size.d_model).to(dtype), 0.0
    for _ in range(PRODUCT_BLOCKS):
        began, count = time.perf_counter(), 0
        while time.perf_counter() - began < PRODUCT_SECONDS:
            torch.ops.mkldnn._linear_pointwise(batch, weight, None, "none", [], "")
            count += 1
        seconds = time.perf_counter() - began
        best = max(best, 2 * batch.numel() * columns * count / seconds / 1e9)
    print(json.dumps({"gflops": best}))


if __name__ == "__main__":
    main()
