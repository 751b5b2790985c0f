"""From what was measured on a small corpus and machine to what a large one would take: computed.

    python benchmarks/prepare.py --pairs 2000000 --workers 1 2 --no-plain | tail -1 > prepare.json
    python benchmarks/scaling.py prepare.json

prints the tables of docs/scaling.md. Nothing in them is measured but what the file holds. How:

- A stage's CPU seconds grow with the text's bytes. With several workers they take time by Amdahl's
  law, its parallel share taken from the runs of one and two workers.
- Of learn_vocabulary this is the counting; learning the merges goes by different words, and is
  measured apart (benchmarks/limits.py).
- Storage: the text lies in six stages' outputs, and as ids in a seventh; DVC's cache shares these
  files where its links can, or holds them once more.
- Training: operations counted from the shapes (bleuprint.model.flops); a GPU does a share of its
  peak.
"""

import argparse
import json
from pathlib import Path
from typing import NamedTuple

from bleuprint.config.experiment import load
from bleuprint.config.system import Model, System
from bleuprint.model import flops as cost

ROOT = Path(__file__).parent.parent
CORES = 32
# Multi30k's text as the benchmark writes it, and its ids with the joint vocabulary: bytes a pair.
MEASURED_TEXT, MEASURED_IDS = 150.5, 99.4
TEXT_STAGES = 6
# What a GPU does: bfloat16 without sparsity, FLOP/s by the data sheets, and the share of it that is
# assumed; fairseq's big Transformer was reported at 33 % of an A100.
GPUS = {"A100": 312e12, "H100": 989.5e12}
UTILIZATION = 0.33


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
    parser.add_argument("prepared", type=Path, help="the last line that prepare.py prints")
    stages = read(parser.parse_args().prepared)
    show_preparation(stages)
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
    settings = load(ROOT / "recipes" / "table2.yaml")
    print("| training | FLOPs, counted |", " | ".join(f"8 x {gpu}" for gpu in GPUS), "|")
    print("|---|---:|", "---:|" * len(GPUS), sep="")
    for name in ("base", "big"):
        system = settings.system_on(name, "wmt14-en-de")
        for what, updates in runs(system):
            flops = updates * update_flops(system)
            hours = " | ".join(
                f"{flops / (8 * peak * UTILIZATION) / 3600:.1f} h" for peak in GPUS.values()
            )
            print(f"| {name}, {what} | {flops:.1e} | {hours} |")


def runs(system: System) -> list[tuple[str, int]]:
    """The paper's number of updates, and those of one pass over each corpus."""
    _, tokens = system.train.update_size
    passes = [(f"one pass over {c.name}", round(c.pairs * c.units / tokens)) for c in CORPORA]
    return [(f"{system.train.max_updates:,} updates", system.train.max_updates or 0), *passes]


def update_flops(system: System, vocabulary: int = 37_000, length: int = 30) -> float:
    """FLOPs of an update of sentences of one length."""
    model: Model = system.model
    _, tokens = system.train.update_size
    sentences = tokens / length
    return sentences * cost.training_flops(model, vocabulary, length, length)


if __name__ == "__main__":
    main()
