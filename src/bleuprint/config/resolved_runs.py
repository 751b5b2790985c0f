"""The settings of runs as reports/resolved.json has them.

There, external systems are among the trained ones, and each run has a value for each section: DVC
compares the sections one by one, and fails at a key that is missing. A section that a run does not
have is `false`.
"""

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from bleuprint.config.external import TRANSLATIONS, ExternalSystem
from bleuprint.config.system import System
from bleuprint.runtime.schema import to_json_value

# The settings of a system on a corpus, whether it is trained or not.
SECTIONS = ("model", "train", "average", "decode", "arithmetic", TRANSLATIONS)

# The sections of each run by system and corpus.
JsonRuns = dict[str, dict[str, dict[str, Any]]]


def runs_to_json(
    systems: Mapping[str, Mapping[str, System | ExternalSystem | None]],
    corpora: Collection[str],
    first_seed: int,
) -> JsonRuns:
    """Return the settings of all runs as JSON values.

    Args:
        systems: The settings of trained and of external systems, by system and corpus.
        corpora: The names of all corpora.
        first_seed: The first seed of the experiment. DVC knows the only run of an external system
            on a corpus by this seed.
    """
    runs: JsonRuns = {}
    for name, settings_by_corpus in systems.items():
        runs[name] = {}
        for corpus in corpora:
            run = _with_all_sections(settings_by_corpus.get(corpus))
            if run[TRANSLATIONS]:
                run[TRANSLATIONS] = {"seed": first_seed, "files": run[TRANSLATIONS]}
            runs[name][corpus] = run
    return runs


class RunsByKind(NamedTuple):
    """The settings of runs by system and corpus; None where a system has none.

    Attributes:
        trained: The runs of systems that are trained here.
        external: The runs of systems whose translations are files.
    """

    trained: dict[str, dict[str, dict[str, Any] | None]]
    external: dict[str, dict[str, dict[str, Any] | None]]


def runs_from_json(runs: JsonRuns) -> RunsByKind:
    """Return the settings of runs as `Settings` takes them, from the JSON values of all runs."""
    by_kind = RunsByKind(trained={}, external={})
    for name, sections_by_corpus in runs.items():
        settings_by_corpus = {}
        is_external = False
        for corpus, sections in sections_by_corpus.items():
            if sections.get(TRANSLATIONS):
                is_external = True
            settings_by_corpus[corpus] = _without_missing_sections(sections)
        if is_external:
            by_kind.external[name] = settings_by_corpus
        else:
            by_kind.trained[name] = settings_by_corpus
    return by_kind


def _with_all_sections(run: System | ExternalSystem | None) -> dict[str, Any]:
    """Return the settings of a run as JSON values, with `false` for each section that it lacks."""
    sections: dict[str, Any] = {} if run is None else to_json_value(run)
    for section in SECTIONS:
        sections.setdefault(section, False)
    return sections


def _without_missing_sections(sections: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the settings of a run without the sections that are `false`; None if all are."""
    settings = {section: value for section, value in sections.items() if value is not False}
    translations = settings.get(TRANSLATIONS)
    if isinstance(translations, Mapping):  # A value of another type is refused later.
        settings[TRANSLATIONS] = translations.get("files")
    return settings or None
