"""The account a data stage gives of itself: pairs in, dropped by each rule, pairs out."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bleuprint.files import write_json
from bleuprint.pairs import Pair

SAMPLES = 3
SAMPLE_CHARACTERS = 200


@dataclass
class Account:
    """What became of one set (train, valid, test.NAME)."""

    pairs_in: int = 0
    pairs_out: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    samples: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def drop(self, rule: str, pair: Pair) -> None:
        """Count a dropped pair under `rule`; the first few are kept to be looked at."""
        self.dropped[rule] = self.dropped.get(rule, 0) + 1
        samples = self.samples.setdefault(rule, [])
        if len(samples) < SAMPLES:
            source, target = (side[:SAMPLE_CHARACTERS] for side in pair)
            samples.append({"pair": self.pairs_in, "source": source, "target": target})

    @property
    def drops(self) -> str:
        """What each rule dropped, for a message."""
        counts = ", ".join(f"{rule} {count}" for rule, count in self.dropped.items())
        return counts or "nothing dropped"


@dataclass
class Ledger:
    """The accounts of all sets of a corpus in one stage."""

    stage: str
    corpus: str
    rules: tuple[str, ...]
    accounts: dict[str, Account] = field(default_factory=dict)

    def open(self, name: str) -> Account:
        """Start the account of set `name`, every rule at zero."""
        account = Account(dropped=dict.fromkeys(self.rules, 0))
        self.accounts[name] = account
        return account

    def write(self, path: Path) -> None:
        """Check that out equals in minus dropped, then write the ledger as JSON."""
        for name, account in self.accounts.items():
            left = account.pairs_in - sum(account.dropped.values())
            assert account.pairs_out == left, f"{self.stage} lost count of {name}: {account}"
        sets = {name: vars(account) for name, account in self.accounts.items()}
        write_json(path, {"stage": self.stage, "corpus": self.corpus, "sets": sets})
