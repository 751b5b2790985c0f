"""Computes from measurements what a larger corpus, or a training on GPUs, would take.

    cd benchmarks/measured
    python ../estimates.py scaling-20k.json scaling-1m.json

prints the computed tables of docs/scaling.md, from what benchmarks/scaling.py has measured at two
sizes and from the measured speed of a GPU below. How:

- The CPU seconds and the files of a stage grow with the bytes of the text, by as much as from the
  first size to the second, so that the start of a stage does not count. On several cores, the time
  is that of the first process, which reads and writes, plus the rest divided by the cores.
- learn_vocabulary has no row, since it depends on the number of different words
  (benchmarks/limits.py).
- Deduplication's memory follows from the sizes of its arrays.
- Training: operations are counted from the shapes (bleuprint.model.flops), and a GPU computes them
  at a measured share of its peak. Each GPU updates all weights. Gradients are summed in float32
  after it, in a ring over NVLink, at the speed of its data sheet.
"""

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from bleuprint.config.experiment import load_settings
from bleuprint.config.system import Model, System
from bleuprint.model.flops import training_flops
from bleuprint.model.transformer import Transformer, count_parameters

ROOT = Path(__file__).resolve().parents[1]
# The number of cores for which the time of each stage is printed.
CORES = 32
# Steps of scaling.py whose cost does not grow with the bytes of a text, or that are no stage.
LEFT_OUT = ("learn_vocabulary", "draw", "train")
# An H200's dense bfloat16 FLOP/s and bytes of memory a second, by its data sheet.
PEAK_FLOPS = 989.5e12
MEMORY_BYTES_PER_SECOND = 4.8e12
# The share of the peak that was measured with batches of 25,000 tokens, updates of the weights
# included (benchmarks/measured/gpu-train-*.json).
UTILIZATION = {"base": 0.256, "big": 0.395}
# Bytes a second and direction of a GPU by NVLink, by its data sheet.
NVLINK_BYTES_PER_SECOND = 450e9
# Bytes that an update moves for a parameter: it reads the weight, the gradient and two moments, and
# writes the weight, the moments and the weight's copy in bfloat16.
UPDATE_BYTES = 4 * 4 + 3 * 4 + 2
# The number of entries of the joint vocabulary, and the tokens of each sentence.
VOCABULARY = 37_000
SENTENCE_LENGTH = 30
# Memory of deduplication in a large corpus, by the sizes of its arrays (bleuprint.corpus.dedup).
DEDUP_BYTES_PER_PAIR = 7
DEDUP_BASE_BYTES = 1e9


# The numbers of GPUs for which a training is computed.
GPUS = (1, 8)


@dataclass(frozen=True)
class Corpus:
    """What is assumed of a corpus.

    Attributes:
        name: Its name in the tables.
        pairs: The number of sentence pairs.
        bytes_per_pair: Bytes of text per pair, both sides together.
    """

    name: str
    pairs: float
    bytes_per_pair: float

    @property
    def text_bytes(self) -> float:
        """The bytes of the whole text."""
        return self.pairs * self.bytes_per_pair


# The corpora for which the preparation is computed.
CORPORA = (
    Corpus("WMT14 en-de", pairs=4.5e6, bytes_per_pair=290),
    Corpus("WMT14 en-fr", pairs=40.8e6, bytes_per_pair=290),
    Corpus("300 million", pairs=300e6, bytes_per_pair=290),
    Corpus("a billion", pairs=1e9, bytes_per_pair=290),
)


@dataclass(frozen=True)
class Stage:
    """What was measured of a stage, per byte of the text.

    Attributes:
        name: The name of the stage.
        main_cpu_seconds: CPU seconds of the first process, which reads and writes.
        worker_cpu_seconds: CPU seconds of the workers, which divide the work among themselves.
        disk_bytes: Bytes of its outputs.
    """

    name: str
    main_cpu_seconds: float
    worker_cpu_seconds: float
    disk_bytes: float

    def hours(self, corpus: Corpus, cores: int) -> float:
        """Return the hours of the stage on a corpus.

        Args:
            corpus: The corpus, whose text has a number of bytes.
            cores: The number of cores.
        """
        seconds_per_byte = self.main_cpu_seconds + self.worker_cpu_seconds / cores
        return seconds_per_byte * corpus.text_bytes / 3600


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("small", type=Path, help="what scaling.py measured of a small text")
    parser.add_argument("large", type=Path, help="what scaling.py measured of a large text")
    arguments = parser.parse_args()
    small = json.loads(arguments.small.read_text())
    large = json.loads(arguments.large.read_text())
    print_preparation(read_stages(small, large))
    print_training()


def read_stages(small: dict[str, Any], large: dict[str, Any]) -> list[Stage]:
    """Return by how much the cost of each stage grows with each byte of the text.

    Args:
        small: What was measured of a small text, the content of its scaling.json.
        large: What was measured of a large text.
    """
    text_growth = large["text_bytes"] - small["text_bytes"]

    def growth(stage_name: str, figure: str) -> float:
        """Return the growth of a figure of a stage, such as `cpu_seconds`, per byte of text."""
        large_figure = large["steps"][stage_name][figure]
        small_figure = small["steps"][stage_name][figure]
        # What hardly grows may have been measured a little smaller.
        return float(max(large_figure - small_figure, 0) / text_growth)

    stages = []
    for name in large["steps"]:
        if name in LEFT_OUT:
            continue
        main_cpu_seconds = growth(name, "main_cpu_seconds")
        stage = Stage(
            name,
            main_cpu_seconds=main_cpu_seconds,
            worker_cpu_seconds=max(growth(name, "cpu_seconds") - main_cpu_seconds, 0.0),
            disk_bytes=growth(name, "disk_bytes"),
        )
        stages.append(stage)
    return stages


def print_preparation(stages: list[Stage]) -> None:
    """Print the computed time of each stage on each corpus, then memory and storage.

    Args:
        stages: The stages that prepare a corpus.
    """
    print_row(f"stage, on {CORES} cores", [corpus.name for corpus in CORPORA])
    print("|---|", "---:|" * len(CORPORA), sep="")
    for stage in stages:
        durations = [duration(stage.hours(corpus, CORES)) for corpus in CORPORA]
        print_row(stage.name, durations)
    for cores in (2, CORES):
        durations = []
        for corpus in CORPORA:
            total_hours = sum(stage.hours(corpus, cores) for stage in stages)
            durations.append(duration(total_hours))
        print_row(f"in all, on {cores} cores", durations)
    memory = []
    storage = []
    file_bytes_per_text_byte = sum(stage.disk_bytes for stage in stages)
    for corpus in CORPORA:
        dedup_bytes = DEDUP_BASE_BYTES + DEDUP_BYTES_PER_PAIR * corpus.pairs
        file_bytes = file_bytes_per_text_byte * corpus.text_bytes
        memory.append(f"{dedup_bytes / 1e9:.1f} GB")
        storage.append(f"{file_bytes / 1e9:.0f} GB")
    print_row("deduplication's memory", memory)
    print_row("files of all stages", storage)
    print()


def duration(hours: float) -> str:
    """Return a duration in minutes, or from one hour on in hours."""
    return f"{hours:.1f} h" if hours >= 1 else f"{60 * hours:.1f} min"


def print_row(label: str, values: Sequence[str]) -> None:
    """Print a row of a table in Markdown.

    Args:
        label: The first cell, the name of the row.
        values: The further cells.
    """
    print(f"| {label} |", " | ".join(values), "|")


def print_training() -> None:
    """Print the computed time of the trainings in recipe table2, on one GPU and on eight."""
    settings = load_settings(ROOT / "recipes" / "table2.yaml")
    print("| training | GPUs | tokens each | computing, ms | summing, ms | hours |")
    print("|---|---:|---:|---:|---:|---:|")
    for name in UTILIZATION:
        system = settings.system_settings(name)
        updates = system.train.max_updates or 0
        _, update_tokens = system.train.update_size
        for gpus in GPUS:
            computing = computing_seconds(system, UTILIZATION[name], gpus)
            summing = summing_seconds(system, gpus)
            columns = (
                str(gpus),
                f"{update_tokens / gpus:,.0f}",
                f"{1e3 * computing:.1f}",
                f"{1e3 * summing:.1f}",
                f"{updates * (computing + summing) / 3600:.2f}",
            )
            print_row(f"{name}, {updates:,} updates", columns)


def computing_seconds(system: System, utilization: float, gpus: int) -> float:
    """Return the seconds in which GPUs compute an update and change their weights.

    The GPUs divide the computation of the gradients among themselves. Each GPU then updates all
    weights.

    Args:
        system: The system.
        utilization: The share of its peak FLOP/s that one GPU was measured to reach.
        gpus: The number of GPUs.
    """
    weight_update = UPDATE_BYTES * parameter_count(system.model) / MEMORY_BYTES_PER_SECOND
    # The time by the measured share includes the update of the weights, which is subtracted here.
    one_gpu = update_flops(system) / (PEAK_FLOPS * utilization) - weight_update
    return weight_update + one_gpu / gpus


def summing_seconds(system: System, gpus: int) -> float:
    """Return the seconds in which the gradients are summed over the GPUs of a machine.

    Args:
        system: The system.
        gpus: The number of GPUs.
    """
    # 4 bytes for each number in float32.
    gradient_bytes = 4 * parameter_count(system.model)
    return ring_bytes(gpus, gradient_bytes) / NVLINK_BYTES_PER_SECOND


def ring_bytes(members: int, message_bytes: float) -> float:
    """Return the bytes that each GPU of a ring sends, so that all GPUs get the sum of their arrays.

    With n GPUs, each array is divided into n parts. The parts are summed in n - 1 steps, and the
    sums are passed on in n - 1 further steps. In each step, a GPU sends one part to the next GPU.

    Args:
        members: The number of GPUs.
        message_bytes: The size of the array of each GPU.
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
