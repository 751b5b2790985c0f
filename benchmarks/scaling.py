"""Computes from small measurements what a large corpus or training would take.

    python benchmarks/prepare.py --pairs 2000000 --workers 1 2 --no-plain | tail -1 > prepare.json
    python benchmarks/scaling.py prepare.json

prints the tables of docs/scaling.md, from the file and from the measured speed of a GPU below. How:

- The CPU seconds of a stage grow with the bytes of the text. With several workers they take time by
  Amdahl's law, whose parallel share comes from the runs of one and two workers.
- For learn_vocabulary this covers the counting; learning the merges depends on the number of
  different words, and is measured apart (benchmarks/limits.py).
- Storage: six stages output the text, and a seventh outputs it as ids. DVC's cache
  shares these files where it can make links; elsewhere it holds copies.
- Training: operations are counted from the shapes (bleuprint.model.flops), and a GPU computes them
  at a measured share of its peak. A batch of few tokens takes no less than the launches of its
  kernels, and each GPU updates all weights. Gradients are summed in float32 after it: in a ring
  over NVLink in a host of eight GPUs, and in a ring of hosts.
"""

import argparse
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from bleuprint.config.experiment import load_settings
from bleuprint.config.system import Model, System
from bleuprint.model.flops import training_flops
from bleuprint.model.transformer import Transformer, count_parameters

ROOT = Path(__file__).parent.parent
CORES = 32
# Multi30k's text as the benchmark writes it, and its ids with the joint vocabulary: bytes a pair.
MEASURED_TEXT_BYTES = 150.5
MEASURED_ID_BYTES = 99.4
# How many stages have the whole text in their outputs.
TEXT_STAGES = 6
# An H200's dense bfloat16 FLOP/s and bytes of memory a second, by its data sheet.
PEAK_FLOPS = 989.5e12
MEMORY_BYTES_PER_SECOND = 4.8e12
# The share of the peak that was measured with batches of 25,000 tokens, updates of the weights
# included (benchmarks/measured/gpu-train-*.json).
UTILIZATION = {"base": 0.256, "big": 0.395}
# Seconds of the kernels of a batch, assumed: 1,500 of at least 2 microseconds.
LAUNCH_SECONDS = 1500 * 2e-6
# Bytes a second and direction of a GPU by NVLink, and of an adapter of 400 Gbit/s.
NVLINK_BYTES_PER_SECOND = 450e9
ADAPTER_BYTES_PER_SECOND = 50e9
GPUS_PER_HOST = 8
# Bytes that an update moves for a parameter: it reads the weight, the gradient and two moments, and
# writes the weight, the moments and the weight's copy in bfloat16.
UPDATE_BYTES = 4 * 4 + 3 * 4 + 2
DOLLARS_PER_GPU_HOUR = 3.5  # an H200, assumed, November 2026
VOCABULARY = 37_000
SENTENCE_LENGTH = 30
# Deduplication keeps this many bytes for each pair, and the process itself a gigabyte.
DEDUP_BYTES_PER_PAIR = 7
DEDUP_BASE_GIGABYTES = 1


@dataclass(frozen=True)
class Corpus:
    """What is assumed of a corpus.

    Attributes:
        name: Its name in the tables.
        pairs: The number of sentence pairs.
        text_bytes: Bytes of text per pair.
        units: Units on each side of a pair.
    """

    name: str
    pairs: float
    text_bytes: float
    units: float


CORPORA = (
    Corpus("WMT14 en-de", pairs=4.5e6, text_bytes=290, units=30),
    Corpus("WMT14 en-fr", pairs=40.8e6, text_bytes=290, units=30),
    Corpus("web, 300 million", pairs=300e6, text_bytes=290, units=30),
)


@dataclass(frozen=True)
class Stage:
    """What was measured of a stage.

    Attributes:
        name: The name of the stage.
        cpu_seconds: CPU seconds per byte of text.
        parallel_share: The share of them that workers divide among themselves.
    """

    name: str
    cpu_seconds: float
    parallel_share: float

    def hours(self, corpus: Corpus, cores: int) -> float:
        """Return the hours of the stage on a corpus, by Amdahl's law.

        Args:
            corpus: The corpus, which gives the number of pairs and bytes.
            cores: The number of cores.
        """
        one_core_seconds = self.cpu_seconds * corpus.pairs * corpus.text_bytes
        share_of_time = 1 - self.parallel_share + self.parallel_share / cores
        return one_core_seconds / 3600 * share_of_time


@dataclass(frozen=True)
class Cluster:
    """The GPUs of a training.

    Attributes:
        name: Its name in the table.
        gpus: The number of GPUs.
        adapters: Network adapters of each host.
    """

    name: str
    gpus: int
    adapters: int


CLUSTERS = (
    Cluster("1", gpus=1, adapters=1),
    Cluster("8", gpus=8, adapters=1),
    Cluster("64, an adapter a host", gpus=64, adapters=1),
    Cluster("64, one a GPU", gpus=64, adapters=8),
)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "prepared",
        type=Path,
        nargs="?",
        help="the last line that prepare.py prints; without it, only training is computed",
    )
    arguments = parser.parse_args()
    if arguments.prepared is not None:
        print_preparation(read_stages(arguments.prepared))
    print_training()


def read_stages(path: Path) -> list[Stage]:
    """Read what benchmarks/prepare.py measured with one and with two workers.

    From both times, Amdahl's law gives the share of a stage's work that runs in parallel.

    Args:
        path: The JSON file of the measurements.

    Returns:
        The stages, each with its seconds per byte of text.
    """
    report = json.loads(path.read_text())
    runs = report["runs"]
    stages = []
    for one_worker, two_workers in zip(runs["1 workers"], runs["2 workers"], strict=True):
        if one_worker["what"] == "in all":
            continue
        # Amdahl's law for two workers, seconds_2 = seconds_1 * (1 - share / 2), solved for the
        # share.
        parallel_share = 2 * (1 - two_workers["seconds"] / one_worker["seconds"])
        parallel_share = min(max(parallel_share, 0.0), 1.0)
        seconds_per_pair = one_worker["seconds"] / report["pairs"]
        seconds_per_byte = seconds_per_pair / MEASURED_TEXT_BYTES
        stages.append(Stage(one_worker["what"], seconds_per_byte, parallel_share))
    return stages


def print_preparation(stages: list[Stage]) -> None:
    """Print the estimated time of each stage on each corpus, then memory and storage.

    Args:
        stages: The stages that prepare a corpus.
    """
    names = [corpus.name for corpus in CORPORA]
    print_row("stage", "parallel share", names)
    print("|---|---:|", "---:|" * len(CORPORA), sep="")
    for stage in stages:
        minutes = [f"{60 * stage.hours(corpus, CORES):.1f} min" for corpus in CORPORA]
        print_row(stage.name, f"{stage.parallel_share:.0%}", minutes)
    for cores in (2, CORES):
        hours = []
        for corpus in CORPORA:
            total = sum(stage.hours(corpus, cores) for stage in stages)
            hours.append(f"{total:.1f} h")
        print_row(f"in all, on {cores} cores", "", hours)
    memory = []
    storage = []
    for corpus in CORPORA:
        memory.append(DEDUP_BASE_GIGABYTES + DEDUP_BYTES_PER_PAIR * corpus.pairs / 1e9)
        id_bytes = corpus.text_bytes * MEASURED_ID_BYTES / MEASURED_TEXT_BYTES
        bytes_per_pair = TEXT_STAGES * corpus.text_bytes + id_bytes
        storage.append(corpus.pairs * bytes_per_pair / 1e9)
    print_row("deduplication's memory", "", [f"{size:.1f} GB" for size in memory])
    print_row("storage of all stages", "", [f"{size:.0f} GB" for size in storage])
    print_row("with a cache of copies", "", [f"{2 * size:.0f} GB" for size in storage])
    print()


def print_row(label: str, parallel_share: str, values: Sequence[str]) -> None:
    """Print a row of the table of stages in Markdown.

    Args:
        label: The first cell, the name of the stage.
        parallel_share: The second cell.
        values: The further cells.
    """
    print(f"| {label} | {parallel_share} |", " | ".join(values), "|")


def print_training() -> None:
    """Print the estimated time and cost of the trainings in recipe table2, on several clusters."""
    settings = load_settings(ROOT / "recipes" / "table2.yaml")
    print("| training | GPUs | tokens each | computing, ms | summing, ms | hours | US$ |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for name in UTILIZATION:
        system = settings.system_settings(name)
        updates = system.train.max_updates or 0
        _, update_tokens = system.train.update_size
        for cluster in CLUSTERS:
            computing = computing_seconds(system, UTILIZATION[name], cluster)
            summing = summing_seconds(system, cluster)
            hours = updates * (computing + summing) / 3600
            cost = cluster.gpus * DOLLARS_PER_GPU_HOUR * hours
            columns = (
                f"{name}, {updates:,} updates",
                cluster.name,
                f"{update_tokens / cluster.gpus:,.0f}",
                f"{1e3 * computing:.1f}",
                f"{1e3 * summing:.1f}",
                f"{hours:.2f}",
                f"{cost:.0f}",
            )
            print(f"| {' | '.join(columns)} |")
    web = CORPORA[-1]
    for name in UTILIZATION:
        system = settings.system_settings(name)
        _, update_tokens = system.train.update_size
        flops_per_token = update_flops(system) / update_tokens
        # The rule of thumb of scaling laws: six operations for each parameter and token.
        six_n = 6 * parameter_count(system.model)
        print(f"{name}: {flops_per_token / 1e6:.0f} MFLOPs a target token, 6 N = {six_n / 1e6:.0f}")
        print(f"{flops_per_token * web.pairs * web.units:.1e} in one epoch over {web.name}")


def computing_seconds(system: System, utilization: float, cluster: Cluster) -> float:
    """Return the seconds in which GPUs compute an update and change their weights.

    The GPUs divide the computation of the gradients among themselves, but it cannot be faster than
    the launches of its kernels. Each GPU then updates all weights.

    Args:
        system: The system.
        utilization: The share of its peak FLOP/s that one GPU was measured to reach.
        cluster: The GPUs.
    """
    weight_update = UPDATE_BYTES * parameter_count(system.model) / MEMORY_BYTES_PER_SECOND
    # The time by the measured share includes the update of the weights, which is subtracted here.
    one_gpu = update_flops(system) / (PEAK_FLOPS * utilization) - weight_update
    return weight_update + max(LAUNCH_SECONDS, one_gpu / cluster.gpus)


def summing_seconds(system: System, cluster: Cluster) -> float:
    """Return the seconds in which the gradients are summed over all GPUs.

    They are summed within each host, over NVLink, and then between the hosts, over the network.

    Args:
        system: The system.
        cluster: The GPUs.
    """
    # 4 bytes for each number in float32.
    gradient_bytes = 4 * parameter_count(system.model)
    gpus_in_host = min(cluster.gpus, GPUS_PER_HOST)
    hosts = math.ceil(cluster.gpus / GPUS_PER_HOST)
    network = cluster.adapters * ADAPTER_BYTES_PER_SECOND
    within_host = ring_bytes(gpus_in_host, gradient_bytes) / NVLINK_BYTES_PER_SECOND
    between_hosts = ring_bytes(hosts, gradient_bytes) / network
    return within_host + between_hosts


def ring_bytes(members: int, message_bytes: float) -> float:
    """Return the bytes that each member of a ring sends to sum a message of all members.

    Args:
        members: The number of members.
        message_bytes: The size of the message that each member has.
    """
    return 2 * (members - 1) / members * message_bytes


def parameter_count(model: Model) -> int:
    """Count the parameters of a model, without memory for them.

    Args:
        model: The settings of the model.
    """
    with torch.device("meta"):
        return count_parameters(Transformer(model, VOCABULARY, VOCABULARY))


def update_flops(system: System) -> float:
    """Return the FLOPs of an update whose sentences all have one length.

    Args:
        system: The system.
    """
    _, update_tokens = system.train.update_size
    sentences = update_tokens / SENTENCE_LENGTH
    flops = training_flops(system.model, VOCABULARY, SENTENCE_LENGTH, SENTENCE_LENGTH)
    return sentences * flops


if __name__ == "__main__":
    main()
