"""From what was measured on a small corpus and machine to what a large one would take: computed.

    python benchmarks/prepare.py --pairs 2000000 --workers 1 2 --no-plain | tail -1 > prepare.json
    python benchmarks/scaling.py prepare.json

prints the tables of docs/scaling.md, from what the file holds and the shares of a GPU below. How:

- A stage's CPU seconds grow with the text's bytes. With several workers they take time by Amdahl's
  law, its parallel share taken from the runs of one and two workers.
- Of learn_vocabulary this is the counting; learning the merges goes by different words, and is
  measured apart (benchmarks/limits.py).
- Storage: the text lies in six stages' outputs, and as ids in a seventh; DVC's cache shares these
  files where its links can, or holds them once more.
- Training: operations counted from the shapes (bleuprint.model.flops), which a GPU computes at a
  share of its peak, measured on one; a batch of few tokens takes no less than the launches of its
  kernels, and each GPU updates all weights. Gradients are summed in float32 after it: in a ring
  over NVLink in a host of eight, and in a ring of hosts.
"""

import argparse
import json
from pathlib import Path
from typing import NamedTuple

import torch

from bleuprint.config.experiment import load_settings
from bleuprint.config.system import Model, System
from bleuprint.model import flops as cost
from bleuprint.model.transformer import Transformer, count_parameters

ROOT = Path(__file__).parent.parent
CORES = 32
# Multi30k's text as the benchmark writes it, and its ids with the joint vocabulary: bytes a pair.
MEASURED_TEXT, MEASURED_IDS = 150.5, 99.4
TEXT_STAGES = 6
# Of an H200: dense bfloat16 FLOP/s and bytes of memory a second by its data sheet, and the share of
# the former that was measured with 25,000 tokens, updates of the weights included
# (benchmarks/measured/gpu-train-*.json).
PEAK, MEMORY = 989.5e12, 4.8e12
UTILIZATION = {"base": 0.256, "big": 0.395}
# Seconds of the kernels of a batch, assumed: 1,500 of at least 2 microseconds.
LAUNCHES = 1500 * 2e-6
# Bytes a second and direction of a GPU by NVLink, and of an adapter of 400 Gbit/s; GPUs of a host.
NVLINK, ADAPTER, HOST = 450e9, 50e9, 8
# Bytes that an update moves a parameter: weight, gradient and two moments read, three of them and
# the weight's copy in bfloat16 written.
UPDATED = 4 * 4 + 3 * 4 + 2
# GPUs, and adapters of each host.
GPUS = {"1": (1, 1), "8": (8, 1), "64, an adapter a host": (64, 1), "64, one a GPU": (64, 8)}
PRICE = 3.5  # US$ an H200 and hour, assumed, November 2026
VOCABULARY, LENGTH = 37_000, 30


class Corpus(NamedTuple):
    """Assumed of a corpus: pairs, bytes of text and units of each side a pair."""

    name: str
    pairs: float
    text: float
    units: float


CORPORA = (
    Corpus("WMT14 en-de", 4.5e6, 290, 30),
    Corpus("WMT14 en-fr", 40.8e6, 290, 30),
    Corpus("web, 300 million", 300e6, 290, 30),
)


class Stage(NamedTuple):
    """Measured of a stage: CPU seconds a byte of text, and the share that workers divide."""

    name: str
    cpu: float
    parallel: float

    def hours(self, corpus: Corpus, cores: int) -> float:
        return (
            self.cpu
            * corpus.pairs
            * corpus.text
            / 3600
            * (1 - self.parallel + self.parallel / cores)
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    help = "the last line that prepare.py prints; without: training alone"
    parser.add_argument("prepared", type=Path, nargs="?", help=help)
    if prepared := parser.parse_args().prepared:
        show_preparation(read(prepared))
    show_training()


def read(path: Path) -> list[Stage]:
    found = json.loads(path.read_text())
    one, two = (found["runs"][f"{count} workers"] for count in (1, 2))
    stages = []
    for alone, both in zip(one, two, strict=True):
        if alone["what"] == "in all":
            continue
        parallel = 2 * (1 - both["seconds"] / alone["seconds"])
        seconds = alone["seconds"] / found["pairs"] / MEASURED_TEXT
        stages.append(Stage(alone["what"], seconds, min(max(parallel, 0.0), 1.0)))
    return stages


def show_preparation(stages: list[Stage]) -> None:
    print("| stage | parallel share |", " | ".join(corpus.name for corpus in CORPORA), "|")
    print("|---|---:|", "---:|" * len(CORPORA), sep="")
    for stage in stages:
        minutes = " | ".join(f"{60 * stage.hours(corpus, CORES):.1f} min" for corpus in CORPORA)
        print(f"| {stage.name} | {stage.parallel:.0%} | {minutes} |")
    for what, cores in (("in all, on 2 cores", 2), (f"in all, on {CORES} cores", CORES)):
        hours = " | ".join(
            f"{sum(stage.hours(corpus, cores) for stage in stages):.1f} h" for corpus in CORPORA
        )
        print(f"| {what} | | {hours} |")
    print(
        "| deduplication's memory | |",
        " | ".join(f"{1 + 7 * c.pairs / 1e9:.1f} GB" for c in CORPORA),
        "|",
    )
    storage = [
        c.pairs * (TEXT_STAGES * c.text + MEASURED_IDS * c.text / MEASURED_TEXT) / 1e9
        for c in CORPORA
    ]
    for what, times in (("storage of all stages", 1), ("with a cache of copies", 2)):
        print(f"| {what} | |", " | ".join(f"{times * size:.0f} GB" for size in storage), "|")
    print()


def show_training() -> None:
    """Time and cost of the trainings of recipe table2, each on one language pair."""
    settings = load_settings(ROOT / "recipes" / "table2.yaml")
    print("| training | GPUs | tokens each | computing, ms | summing, ms | hours | US$ |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for name in UTILIZATION:
        train = settings.system_settings(name).train
        _, tokens = train.update_size
        for gpus, (count, adapters) in GPUS.items():
            step = Update.of(settings.system_settings(name), name, count, adapters)
            hours = (train.max_updates or 0) * sum(step) / 3600
            shown = (
                f"{name}, {train.max_updates:,} updates",
                gpus,
                f"{tokens / count:,.0f}",
                f"{1e3 * step.computing:.1f}",
                f"{1e3 * step.summing:.1f}",
                f"{hours:.2f}",
                f"{count * PRICE * hours:.0f}",
            )
            print(f"| {' | '.join(shown)} |")
    for name in UTILIZATION:
        system = settings.system_settings(name)
        _, tokens = system.train.update_size
        flops, web = update_flops(system) / tokens, CORPORA[-1]
        by_hand = 6 * parameters(system.model)
        print(f"{name}: {flops / 1e6:.0f} MFLOPs a target token, 6 N = {by_hand / 1e6:.0f}")
        print(f"{flops * web.pairs * web.units:.1e} in one pass over {web.name}")


class Update(NamedTuple):
    """Seconds of an update: computing it, and summing the gradients."""

    computing: float
    summing: float

    @classmethod
    def of(cls, system: System, name: str, gpus: int, adapters: int) -> "Update":
        weights = parameters(system.model)
        updating = UPDATED * weights / MEMORY
        alone = update_flops(system) / (PEAK * UTILIZATION[name]) - updating
        computing = updating + max(LAUNCHES, alone / gpus)
        within, hosts = min(gpus, HOST), -(-gpus // HOST)
        summing = sum(
            2 * (count - 1) / count * 4 * weights / speed
            for count, speed in ((within, NVLINK), (hosts, adapters * ADAPTER))
        )
        return cls(computing, summing)


def parameters(model: Model) -> int:
    with torch.device("meta"):
        return count_parameters(Transformer(model, VOCABULARY, VOCABULARY))


def update_flops(system: System) -> float:
    """FLOPs of an update of sentences of one length."""
    _, tokens = system.train.update_size
    return tokens / LENGTH * cost.training_flops(system.model, VOCABULARY, LENGTH, LENGTH)


if __name__ == "__main__":
    main()
