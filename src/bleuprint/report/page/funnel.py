"""What became of the training pairs, from the ledgers of the stages."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bleuprint.config.paths import ledger
from bleuprint.report.page.material import Material
from bleuprint.runtime.files import read_object

STAGES = ("download", "clean", "dedup", "filter", "split", "tokenize", "binarize")

Account = Mapping[str, Any]
# By stage and set.
Accounts = Mapping[str, Mapping[str, Account]]


@dataclass(frozen=True)
class Kept:
    """Training pairs: how many were read, how many are left, how many each rule dropped."""

    read: int
    left: int
    dropped: Mapping[str, int]

    def most(self) -> list[str]:
        """The rules that dropped any with their counts, the largest first."""
        ranked = sorted(self.dropped, key=lambda rule: -self.dropped[rule])
        return [f"{rule} {self.dropped[rule]:,}" for rule in ranked if self.dropped[rule]]


def accounts(material: Material, corpus: str) -> Accounts:
    return {
        stage: read_object(ledger(corpus, stage, material.root), ("sets",))["sets"]
        for stage in STAGES
    }


def training(by_stage: Accounts) -> Iterator[tuple[str, str, Account]]:
    """Stage, set and account of the training text in the stages' order.

    It is downloaded in parts, the sets train.NAME.
    """
    for stage, sets in by_stage.items():
        for name, account in sets.items():
            if name == "train" or name.startswith("train."):
                yield stage, name, account


def kept(by_stage: Accounts) -> Kept:
    """From what was downloaded to what is trained on."""
    read, left, dropped = 0, 0, dict[str, int]()
    for stage, _, account in training(by_stage):
        read += account["pairs_in"] if stage == STAGES[0] else 0
        left = account["pairs_out"]
        for rule, count in account["dropped"].items():
            dropped[rule] = dropped.get(rule, 0) + count
    return Kept(read, left, dropped)
