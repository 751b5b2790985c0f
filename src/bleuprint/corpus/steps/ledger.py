"""The account a data stage gives of itself: pairs in, pairs out, and what each rule did."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bleuprint.runtime.files import write_json
from bleuprint.text.parallel import Pair

SAMPLES = 5
SAMPLE_CHARACTERS = 200


@dataclass
class Account:
    """What became of one set (train, valid, test.NAME), or of a part of it.

    `changed` counts pairs of which an edit changed a side; `samples` shows a few, by rule.
    """

    pairs_in: int = 0
    pairs_out: int = 0
    changed: dict[str, int] = field(default_factory=dict)
    dropped: dict[str, int] = field(default_factory=dict)
    samples: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    @classmethod
    def of(cls, drops: Iterable[str], edits: Iterable[str] = ()) -> "Account":
        """An account in which each rule stands at zero."""
        return cls(changed=dict.fromkeys(edits, 0), dropped=dict.fromkeys(drops, 0))

    def keep(self, pairs: int = 1) -> None:
        """Count pairs that came in and went out."""
        self.pairs_in += pairs
        self.pairs_out += pairs

    def drop(self, rule: str, number: int, pair: Pair) -> None:
        """Count pair `number` of the set as dropped by `rule`."""
        self.pairs_in += 1
        self.dropped[rule] = self.dropped.get(rule, 0) + 1
        self._sample(rule, {"pair": number, "source": pair.source, "target": pair.target})

    def change(self, rule: str, number: int, before: Pair, after: Pair) -> None:
        """Count pair `number` of the set as changed by `rule`."""
        self.changed[rule] = self.changed.get(rule, 0) + 1
        old = {"pair": number, "source": before.source, "target": before.target}
        self._sample(rule, {**old, "new_source": after.source, "new_target": after.target})

    def add(self, later: "Account") -> None:
        """Take in the account of the pairs that follow."""
        self.pairs_in += later.pairs_in
        self.pairs_out += later.pairs_out
        for mine, theirs in ((self.changed, later.changed), (self.dropped, later.dropped)):
            for rule, count in theirs.items():
                mine[rule] = mine.get(rule, 0) + count
        for rule, samples in later.samples.items():
            known = self.samples.setdefault(rule, [])
            known += samples[: SAMPLES - len(known)]

    def _sample(self, rule: str, sample: dict[str, Any]) -> None:
        """Keep the first few to be looked at."""
        samples = self.samples.setdefault(rule, [])
        if len(samples) < SAMPLES:
            samples.append({key: _cut(value) for key, value in sample.items()})

    @property
    def drops(self) -> str:
        """What each rule dropped, for a message."""
        counts = ", ".join(f"{rule} {count}" for rule, count in self.dropped.items() if count)
        return counts or "nothing dropped"


@dataclass
class Ledger:
    """The accounts of all sets of a corpus in one stage."""

    stage: str
    corpus: str
    rules: tuple[str, ...]
    edits: tuple[str, ...] = ()
    accounts: dict[str, Account] = field(default_factory=dict)

    def open(self, name: str) -> Account:
        """Start the account of set `name`, every rule at zero."""
        self.accounts[name] = Account.of(self.rules, self.edits)
        return self.accounts[name]

    def write(self, path: Path) -> None:
        """Check that out equals in minus dropped, then write the ledger as JSON."""
        for name, account in self.accounts.items():
            left = account.pairs_in - sum(account.dropped.values())
            assert account.pairs_out == left, f"{self.stage} lost count of {name}: {account}"
        sets = {name: vars(account) for name, account in self.accounts.items()}
        write_json(path, {"stage": self.stage, "corpus": self.corpus, "sets": sets})


def _cut(value: Any) -> Any:
    return value[:SAMPLE_CHARACTERS] if isinstance(value, str) else value
