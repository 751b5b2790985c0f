"""What cleaning rules find of the known faults in the phrasebook's noisy training text."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from bleuprint.config.corpus import Corpus
from bleuprint.corpus.clean import Cleaning
from bleuprint.corpus.dedup import Deduplication
from bleuprint.corpus.filter import Filtering
from bleuprint.corpus.steps.ledger import SetCounts
from bleuprint.corpus.steps.shard import Shard
from bleuprint.text.parallel import Pair
from tools.phrasebook import FAULTS, LANGUAGES, NOISY, noisy_lines
from tools.phrasebook.noise import Triple


@dataclass
class RuleHits:
    """The lines that a rule changed or dropped, by their fault; without one by `""`."""

    faults: dict[str, int] = field(default_factory=dict)

    @property
    def lines(self) -> int:
        return sum(self.faults.values())

    @property
    def wrong(self) -> int:
        """The lines without a fault."""
        return self.faults.get("", 0)

    @property
    def precision(self) -> float:
        """The share of lines that had a fault."""
        return 1 - self.wrong / self.lines


@dataclass(frozen=True)
class FaultReport:
    """Lines by their fault (`""`: none): all, those dropped, and those that edits restored.

    `rules`: what each rule changed or dropped.
    """

    lines: Mapping[str, int]
    dropped: Mapping[str, int]
    restored: Mapping[str, int]
    rules: Mapping[str, RuleHits]

    def found(self, fault: str) -> int:
        return self.dropped.get(fault, 0) + self.restored.get(fault, 0)

    def recall(self, fault: str) -> float:
        return self.found(fault) / self.lines[fault]

    def found_by(self, fault: str) -> list[str]:
        """The rules that changed or dropped lines with a fault, with their counts."""
        hits = ((rule, hits.faults.get(fault, 0)) for rule, hits in self.rules.items())
        return [f"{rule} {count}" for rule, count in hits if count]

    @property
    def faults(self) -> list[str]:
        return [fault for fault in FAULTS if self.lines.get(fault)]


def has_known_faults(corpus: Corpus) -> bool:
    """Whether the training text of a corpus is the whole noisy text and nothing else."""
    urls = [f"phrasebook:{NOISY}.{side}" for side in (corpus.source, corpus.target)]
    texts = corpus.files.train.values()
    whole = [([file.url for file in text.files], text.pairs, text.repeat) for text in texts]
    return whole == [(urls, None, None)]


def _dropping_rules(step: Deduplication) -> Iterator[str]:
    """For each pair of train the name of the rule that drops it; empty if it is kept."""
    with TemporaryDirectory() as folder:
        (part := Path(folder) / "part").mkdir()
        step.process_shard(Shard(), part, 1)
        numbers = step.dropped_by([part], Path(folder))
    return (("", *step.rules)[number] for number in numbers.tolist())


def trace_faults(name: str, corpus: Corpus, root: Path = Path()) -> FaultReport:
    """Follow each line through clean, dedup and filter; the output of clean is below `root`."""
    cleaning = Cleaning.of(name, corpus, root)
    dedup = Deduplication.of(name, corpus, root)
    columns = [LANGUAGES.index(language) for language in (corpus.source, corpus.target)]
    trace, cleaned = _Trace(), []
    for line in noisy_lines():
        pair, right = (_pair(text, columns) for text in (line.text, line.right))
        trace.lines[line.fault] += 1
        if (new := trace.clean(cleaning, line.fault, pair)) is not None:
            cleaned.append((line.fault, new, right))
    left = []
    for (fault, pair, right), rule in zip(cleaned, _dropping_rules(dedup), strict=True):
        if rule:
            trace.drop(rule, fault)
        else:
            left.append((fault, pair, right))
    filtering, pairs = Filtering.of(name, corpus, root), [pair for _, pair, _ in left]
    failed = filtering.dropping_rules(pairs, filtering.learn(pairs, len(pairs)))
    for (fault, pair, right), check in zip(left, failed, strict=True):
        if check:
            trace.drop(check, fault)
        elif pair == right and fault:
            trace.restored[fault] += 1
    return FaultReport(trace.lines, trace.dropped, trace.restored, trace.rules)


class _Trace:
    """The counts of a FaultReport."""

    def __init__(self) -> None:
        self.lines, self.dropped, self.restored = Counter[str](), Counter[str](), Counter[str]()
        self.rules: dict[str, RuleHits] = {}

    def clean(self, step: Cleaning, fault: str, pair: Pair) -> Pair | None:
        """The pair after clean; None if it is dropped."""
        counts = SetCounts()
        new = step.clean(1, pair, counts)
        for rule in counts.changed:
            self._hit(rule, fault)
        for rule in counts.dropped:
            self.drop(rule, fault)
        return new

    def drop(self, rule: str, fault: str) -> None:
        self.dropped[fault] += 1
        self._hit(rule, fault)

    def _hit(self, rule: str, fault: str) -> None:
        faults = self.rules.setdefault(rule, RuleHits()).faults
        faults[fault] = faults.get(fault, 0) + 1


def _pair(text: Triple | None, columns: Sequence[int]) -> Pair:
    return Pair(*(text[column] for column in columns)) if text else Pair("", "")
