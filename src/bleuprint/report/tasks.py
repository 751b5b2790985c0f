"""Tasks: which corpora have the same test sets, so that their systems are rows of one table."""

from collections.abc import Mapping

import pandas as pd

# The columns that are equal for two corpora on a test set that both have.
_TEST_SET_COLUMNS = ["source", "target", "test", "sources_sha256", "references_sha256"]


def task_names(runs: pd.DataFrame) -> dict[str, str]:
    """Return the name of the task of each corpus, in the order of the runs.

    Two corpora belong to the same task if they have the same test sets: the same bytes of sources
    and references. Such corpora differ in preparation alone, and their systems are rows of one
    table. The pipeline copies published test sets unchanged and scores detokenized translations
    against them, so translations of any preparation can be compared line by line.

    A task of one corpus is named after the corpus, with its language pair appended if the corpus's
    name does not contain it. A task of several corpora is named after the language pair and the
    first corpus. If the test sets have several language pairs, the name contains no pair.

    Args:
        runs: The table of runs in results.json, a row for each run and test set.
    """
    corpora_by_texts: dict[frozenset[tuple[str, ...]], list[str]] = {}
    test_sets = runs.drop_duplicates(["corpus", "test"])
    for corpus, test_sets_of_corpus in test_sets.groupby("corpus", sort=False):
        rows = test_sets_of_corpus[_TEST_SET_COLUMNS].itertuples(index=False, name=None)
        texts = frozenset(rows)
        corpora_by_texts.setdefault(texts, []).append(str(corpus))
    names: dict[str, str] = {}
    for texts, corpora in corpora_by_texts.items():
        language_pairs = {f"{source}-{target}" for source, target, *_ in texts}
        name = _task_name(corpora, language_pairs)
        for corpus in corpora:
            names[corpus] = name
    return names


def _task_name(corpora: list[str], language_pairs: set[str]) -> str:
    """Return the name of the task of these corpora, whose test sets have these language pairs."""
    first_corpus = corpora[0]
    language_pair = language_pairs.pop() if len(language_pairs) == 1 else ""
    if len(corpora) > 1:
        if language_pair:
            return f"{language_pair} ({first_corpus}, …)"
        return f"{first_corpus}, …"
    if language_pair in first_corpus:
        return first_corpus
    return f"{first_corpus} ({language_pair})"


def table_row_name(system: str, corpus: str, tasks: Mapping[str, str]) -> str:
    """Return the name of a table row: the system, and the corpus if its task has several corpora.

    Args:
        system: The name of the system.
        corpus: The corpus on which it is trained.
        tasks: The name of the task of each corpus.
    """
    corpora_in_task = list(tasks.values()).count(tasks[corpus])
    return f"{system}, {corpus}" if corpora_in_task > 1 else system
