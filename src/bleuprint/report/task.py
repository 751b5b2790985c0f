"""A task: a language pair with its test sets, for which corpora differ in preparation alone.

Corpora are of one task by content, not by name: the same bytes of sources and references. Stages
copy published test sets as they are, and detokenized translations are scored against them, so that
translations of any preparation are compared line by line.
"""

from dataclasses import dataclass

import pandas as pd

_TEXTS = ["source", "target", "test", "sources_sha256", "references_sha256"]


@dataclass(frozen=True)
class Task:
    """`pair`: its languages, en-de, or empty if its test sets are of several pairs.

    `corpora`: those that have its test sets, in order.
    """

    pair: str
    corpora: tuple[str, ...]

    @property
    def name(self) -> str:
        """That of the only corpus, or the pair with the first of several; always with the pair."""
        first, *others = self.corpora
        if others:
            return f"{self.pair} ({first}, …)" if self.pair else f"{first}, …"
        return first if self.pair in first else f"{first} ({self.pair})"

    def row(self, system: str, corpus: str) -> str:
        """The name of a row: the system's, with the corpus if there are several."""
        return f"{system}, {corpus}" if len(self.corpora) > 1 else system


def tasks_of(cells: pd.DataFrame) -> dict[str, Task]:
    """The task of each corpus, in the order of the cells."""
    found: dict[frozenset[tuple[str, ...]], list[str]] = {}
    for corpus, sets in cells.drop_duplicates(["corpus", "test"]).groupby("corpus", sort=False):
        texts = sets[_TEXTS].itertuples(index=False, name=None)
        found.setdefault(frozenset(texts), []).append(str(corpus))
    tasks = dict[str, Task]()
    for texts, corpora in found.items():
        pairs = {f"{source}-{target}" for source, target, *_ in texts}
        task = Task(pairs.pop() if len(pairs) == 1 else "", tuple(corpora))
        tasks |= dict.fromkeys(corpora, task)
    return tasks
