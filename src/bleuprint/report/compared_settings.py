"""The settings in which the two systems of `bleuprint compare` differ."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from bleuprint.config.dotted_settings import dotted_settings
from bleuprint.report.compared_systems import ReportedSystem
from bleuprint.report.table import DASH, Table, text_table
from bleuprint.runtime.flatten import flatten_settings


def deciding_settings(
    system: ReportedSystem, common_corpora: Iterable[str], are_trained: bool
) -> dict[str, str]:
    """Return all settings that can change the results of a system, by their keys.

    They are the settings of the system and of its corpora, and the seeds. Settings without an
    effect on results, such as how often training prints its progress, are not among them.

    Args:
        system: The system, with its report.
        common_corpora: The corpora that both compared systems have; none if the systems are
            trained on different corpora.
        are_trained: Whether both compared systems are trained. Otherwise one of them is external,
            and has only files of translations: then the names of these files are compared.

    Returns:
        The values by key, such as `train.optimizer.name`.
    """
    settings = system.settings
    if system.are_corpora_different and system.corpus:
        return _settings_on_corpus(system, system.corpus, are_trained)
    if are_trained:
        values_by_key = dotted_settings(settings, system.system)
    else:
        values_by_key = flatten_settings(_translation_files(system, common_corpora))
    corpora = {corpus: settings.corpus(corpus).deciding_settings() for corpus in common_corpora}
    values_by_key |= flatten_settings({"corpora": corpora, "seeds": settings.seeds})
    return values_by_key


def _settings_on_corpus(
    system: ReportedSystem, corpus_name: str, are_trained: bool
) -> dict[str, str]:
    """Return all settings that can change the results of a system on one corpus, by their keys.

    The keys do not contain the name of the corpus: they begin with `corpus`, as in
    `corpus.vocabulary.bpe`. So systems that are trained on two corpora can be compared setting by
    setting.

    Args:
        system: The system, with its report.
        corpus_name: The corpus that the system is trained on.
        are_trained: Whether both compared systems are trained. Otherwise one of them has no
            settings, and only corpus and seeds are compared.
    """
    settings = system.settings
    system_settings = None
    if are_trained:
        system_settings = settings.trained_systems_on(corpus_name).get(system.system)
    corpus = settings.corpus(corpus_name).deciding_settings()
    values_by_key = flatten_settings(system_settings or {})
    values_by_key |= flatten_settings({"corpus": corpus, "seeds": settings.seeds})
    return values_by_key


def _translation_files(system: ReportedSystem, corpora: Iterable[str]) -> dict[str, object]:
    """Return the entries of params.yaml that name the files of an external system's translations.

    Args:
        system: The system, with its report.
        corpora: The corpora of the result.

    Returns:
        The entry of each corpus. A trained system has none: its entries are None.
    """
    settings = system.settings
    if settings.is_trained(system.system):
        return dict.fromkeys(corpora)
    entries_by_corpus = settings.all_systems.get(system.system, {})
    files: dict[str, object] = {}
    for corpus in corpora:
        files[corpus] = entries_by_corpus.get(corpus)
    return files


def settings_comparison(
    first: Mapping[str, str], second: Mapping[str, str], heads: Sequence[str]
) -> Iterator[str | Table]:
    """Yield a title and a table of the settings that differ; one line if all are equal.

    Args:
        first: The settings of the first system, by key.
        second: The settings of the second system.
        heads: The names of both systems, as heads of the columns.
    """
    rows = []
    for key in dict.fromkeys([*first, *second]):
        first_value = first.get(key, DASH)
        second_value = second.get(key, DASH)
        if first_value != second_value:
            rows.append((key, first_value, second_value))
    if not rows:
        yield "The settings are the same."
        return
    yield "\nSettings"
    yield text_table(["settings"], heads, rows)
