"""Tasks: which corpora have the same test sets, so that their systems are rows of one table."""

from collections.abc import Mapping

import pandas as pd

# The columns that are equal for two corpora on a test set that both have.
_TEST_SET_COLUMNS = ["source", "target", "test", "sources_sha256", "references_sha256"]


def task_names(runs: pd.DataFrame) -> dict[str, str]:
    """Group corpora into tasks by their test sets, and return the name of each corpus's task.

    Corpora belong to one task if their test sets have the same bytes, so that they differ only in
    how they are prepared. The systems of a task are rows of one table: all of them are scored
    against the same references, so their translations can be compared line by line.

    Args:
        runs: The table of runs in results.json, a row for each run and test set.

    Returns:
        The name of the task by corpus, in the order of the runs.
    """
    corpora_by_test_sets: dict[frozenset[tuple[str, ...]], list[str]] = {}
    test_sets = runs.drop_duplicates(["corpus", "test"])
    for corpus, rows in test_sets.groupby("corpus", sort=False):
        # A frozenset has no order and, unlike a set, can be a key of a dict.
        test_sets_of_corpus = frozenset(rows[_TEST_SET_COLUMNS].itertuples(index=False, name=None))
        corpora_by_test_sets.setdefault(test_sets_of_corpus, []).append(str(corpus))
    names: dict[str, str] = {}
    for test_sets_of_task, corpora in corpora_by_test_sets.items():
        language_pairs = {f"{source}-{target}" for source, target, *_ in test_sets_of_task}
        name = _task_name(corpora, language_pairs)
        for corpus in corpora:
            names[corpus] = name
    return names


def _task_name(corpora: list[str], language_pairs: set[str]) -> str:
    """Name a task, that is, some corpora with the same test sets.

    The name of a single corpus is that of the task, with the language pair if the name lacks it:
    `talks (de-en)`. Several corpora are named by their language pair and the first of them:
    `de-en (talks, …)`. If the test sets have several language pairs, the name contains none.

    Args:
        corpora: The names of the corpora, at least one.
        language_pairs: The language pairs of the test sets, such as `de-en`.
    """
    first_corpus = corpora[0]
    only_language_pair = ""
    if len(language_pairs) == 1:
        (only_language_pair,) = language_pairs
    if len(corpora) > 1:
        if only_language_pair:
            return f"{only_language_pair} ({first_corpus}, …)"
        return f"{first_corpus}, …"
    # With several language pairs, this text is empty, and so contained in any name.
    if only_language_pair in first_corpus:
        return first_corpus
    return f"{first_corpus} ({only_language_pair})"


def table_row_name(system: str, corpus: str, tasks: Mapping[str, str]) -> str:
    """Return the name of a system's row in a table of scores, such as `base` or `base, wmt14`.

    The table shows all systems of a task, that is, of corpora with the same test sets. If there are
    several corpora, a row also names its corpus.

    Args:
        system: The name of the system.
        corpus: The corpus on which it is trained.
        tasks: The name of the task of each corpus.
    """
    task = tasks[corpus]
    has_several_corpora = list(tasks.values()).count(task) > 1
    return f"{system}, {corpus}" if has_several_corpora else system
