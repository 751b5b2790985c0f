"""The settings of runs as reports/resolved.json has them.

Systems that are not trained here are among the trained ones there. Each run has a value for each
section: DVC compares the sections one by one, and fails at a key that is missing. A section that a
run does not have is `false`.
"""

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from bleuprint.runtime.schema import to_json_value

# The section with the files of a system that is not trained here.
_TRANSLATIONS = "translations"
# The settings of a system on a corpus, whether it is trained or not.
SECTIONS = ("model", "train", "average", "decode", "arithmetic", _TRANSLATIONS)

# The sections of each run by system and corpus.
JsonRuns = dict[str, dict[str, dict[str, Any]]]


def runs_to_json(
    systems: Mapping[str, Mapping[str, Any]],
    corpora: Collection[str],
    first_seed: int,
) -> JsonRuns:
    """Convert the settings of each system on each corpus to JSON values, for resolved.json.

    Args:
        systems: The settings of all systems by system and corpus, as dataclasses; None if a system
            has no settings for a corpus.
        corpora: The names of all corpora.
        first_seed: The first seed of the experiment.

    Returns:
        The settings by system, corpus and section, such as `decode`.
    """
    runs: JsonRuns = {}
    for name, settings_by_corpus in systems.items():
        runs[name] = {}
        for corpus in corpora:
            sections = _with_all_sections(settings_by_corpus.get(corpus))
            files = sections[_TRANSLATIONS]
            if files:  # An external system: the user's files with its translations.
                # Its stages in dvc.yaml exist for the first seed only, so DVC has to know the seed.
                sections[_TRANSLATIONS] = {"seed": first_seed, "files": files}
            runs[name][corpus] = sections
    return runs


class RunsByKind(NamedTuple):
    """The settings of runs by system and corpus; None for a system without a run.

    Attributes:
        trained: The runs of systems that are trained here.
        untrained: The runs of systems whose translations are files.
    """

    trained: dict[str, dict[str, dict[str, Any] | None]]
    untrained: dict[str, dict[str, dict[str, Any] | None]]


def runs_from_json(runs: JsonRuns) -> RunsByKind:
    """Sort the systems of resolved.json into trained and external ones.

    An external system has the section `translations`, which names files of the user.

    Args:
        runs: The settings by system, corpus and section, such as `decode`.
    """
    by_kind = RunsByKind(trained={}, untrained={})
    for name, sections_by_corpus in runs.items():
        settings_by_corpus = {}
        has_translations = False
        for corpus, sections in sections_by_corpus.items():
            if sections.get(_TRANSLATIONS):
                has_translations = True
            settings_by_corpus[corpus] = _without_missing_sections(sections)
        if has_translations:
            by_kind.untrained[name] = settings_by_corpus
        else:
            by_kind.trained[name] = settings_by_corpus
    return by_kind


def _with_all_sections(run: Any) -> dict[str, Any]:
    """Return the settings of a system on a corpus as JSON values, with a value for every section.

    A section that the system does not have is `false`, because DVC fails at a missing key. For
    example, an external system has no section `model`.

    Args:
        run: The settings, a dataclass; None if the system has no settings for the corpus.
    """
    sections: dict[str, Any] = {} if run is None else to_json_value(run)
    for section in SECTIONS:
        sections.setdefault(section, False)
    return sections


def _without_missing_sections(sections: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the settings of a system on a corpus without the sections that it does not have.

    Args:
        sections: The settings by section, as resolved.json has them: a section that the system
            does not have is `false`.

    Returns:
        The remaining sections; None if there are none: the experiment does not use the system on
        this corpus.
    """
    settings = {section: value for section, value in sections.items() if value is not False}
    translations = settings.get(_TRANSLATIONS)
    if isinstance(translations, Mapping):  # A value of another type is refused later.
        settings[_TRANSLATIONS] = translations.get("files")
    return settings or None
