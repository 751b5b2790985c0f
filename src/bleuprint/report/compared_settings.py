"""The settings in which the two systems of `bleuprint compare` differ."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from bleuprint.config.dotted_settings import dotted_settings
from bleuprint.report.compared_systems import ReportedSystem
from bleuprint.report.table import NONE, Table, text_table
from bleuprint.runtime.flatten import flatten_settings


def deciding_settings(
    system: ReportedSystem, common_corpora: Iterable[str], are_trained: bool
) -> dict[str, str]:
    """Return all settings that decide the results of a system, to compare them with another one.

    They are the settings of the system, of its corpora, and the seeds. Settings without an effect
    on results, such as how often training reports, are not among them.

    Args:
        system: The system, with its report.
        common_corpora: The corpora that both compared systems have; none if the systems are
            trained on different corpora.
        are_trained: Whether both compared systems are trained. Otherwise they are compared by
            the files of translations that an external system has in place of settings.

    Returns:
        The values by key, such as `train.optimizer.name`.
    """
    settings = system.settings
    if system.on_different_corpora and system.corpus:
        return _settings_on_corpus(system, system.corpus, are_trained)
    if are_trained:
        deciding = dotted_settings(settings, system.system)
    else:
        deciding = flatten_settings(_translation_files(system, common_corpora))
    corpora = {corpus: settings.corpus(corpus).deciding_settings() for corpus in common_corpora}
    deciding |= flatten_settings({"corpora": corpora, "seeds": settings.seeds})
    return deciding


def _settings_on_corpus(
    system: ReportedSystem, corpus_name: str, are_trained: bool
) -> dict[str, str]:
    """Return all settings that decide the results of a system on one corpus, by key.

    The corpus is called `corpus` in the keys, so that two corpora can be compared setting by
    setting.

    Args:
        system: The system, with its report.
        corpus_name: The corpus that the system is trained on.
        are_trained: Whether both compared systems are trained; otherwise they are compared without
            settings of systems.
    """
    settings = system.settings
    system_settings = None
    if are_trained:
        system_settings = settings.trained_systems_on(corpus_name).get(system.system)
    corpus = settings.corpus(corpus_name).deciding_settings()
    deciding = flatten_settings(system_settings or {})
    deciding |= flatten_settings({"corpus": corpus, "seeds": settings.seeds})
    return deciding


def _translation_files(system: ReportedSystem, corpora: Iterable[str]) -> dict[str, object]:
    """Return the entries of params.yaml that name an external system's files of translations.

    Returns:
        The entry of each corpus; None for a system that is trained, and so has no such files.
    """
    settings = system.settings
    entries_by_corpus = settings.all_systems.get(system.system, {})
    is_trained = settings.is_trained(system.system)
    files: dict[str, object] = {}
    for corpus in corpora:
        files[corpus] = None if is_trained else entries_by_corpus.get(corpus)
    return files


def settings_comparison(
    first: Mapping[str, str], second: Mapping[str, str], heads: Sequence[str]
) -> Iterator[str | Table]:
    """Yield a title and a table of the settings that differ, or one line if none does.

    Args:
        first: The settings of the first system, by key.
        second: The settings of the second system.
        heads: The names of both systems, as heads of the columns.
    """
    rows = []
    for key in dict.fromkeys([*first, *second]):
        first_value = first.get(key, NONE)
        second_value = second.get(key, NONE)
        if first_value != second_value:
            rows.append((key, first_value, second_value))
    if not rows:
        yield "the same: settings"
        return
    yield "\nSettings"
    yield text_table(["settings"], heads, rows)
