"""Tasks: which corpora have the same test sets, so that their systems are rows of one table."""

from collections.abc import Mapping

import pandas as pd

# The columns that are equal for two corpora on a test set that both have.
_TEST_SET_COLUMNS = ["source", "target", "test", "sources_sha256", "references_sha256"]


def task_names(runs: pd.DataFrame) -> dict[str, str]:
    """Group corpora with the same test sets into tasks, and return the name of each corpus's task.

    The systems of a task are rows of one table: all of them translate the same lines and are scored
    against the same references, so they can be compared. For example, two versions of a corpus
    that are cleaned in different ways are one task.

    Args:
        runs: The table of runs in results.json, a row for each run and test set.

    Returns:
        The name of the task by corpus, in the order of the runs.
    """
    corpora_by_test_sets: dict[frozenset[tuple[str, ...]], list[str]] = {}
    test_sets = runs.drop_duplicates(["corpus", "test"])
    for corpus, rows in test_sets.groupby("corpus", sort=False):
        # The order of test sets does not matter. Unlike a set, a frozenset can be a key of a dict.
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
    """Return the name of a task, that is, of corpora with the same test sets.

    - One corpus: its name, with the language pair if the name lacks it, such as `talks (de-en)`.
    - Several corpora: the language pair and the first corpus, such as `de-en (talks, …)`.
    - Test sets of several language pairs: only the corpus, `talks`, or `talks, …` if it is one of
      several.

    Args:
        corpora: The names of the corpora, at least one.
        language_pairs: The language pairs of the test sets, such as `de-en`.
    """
    first_corpus = corpora[0]
    has_one_corpus = len(corpora) == 1
    if len(language_pairs) > 1:
        return first_corpus if has_one_corpus else f"{first_corpus}, …"
    (language_pair,) = language_pairs
    if not has_one_corpus:
        return f"{language_pair} ({first_corpus}, …)"
    if language_pair in first_corpus:
        return first_corpus
    return f"{first_corpus} ({language_pair})"


def table_row_name(system: str, corpus: str, tasks: Mapping[str, str]) -> str:
    """Return the name of a system's row in a table of scores, such as `base` or `base, wmt14`.

    A table shows all systems on corpora with the same test sets, which are called a task. If a task
    has several corpora, a row also names its corpus.

    Args:
        system: The name of the system.
        corpus: The corpus on which it is trained.
        tasks: The name of the task of each corpus.
    """
    task = tasks[corpus]
    has_several_corpora = list(tasks.values()).count(task) > 1
    return f"{system}, {corpus}" if has_several_corpora else system
