"""Describes each system in a few words: its size, or the settings that differ from the baseline."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from bleuprint.config.dotted_settings import dotted_settings
from bleuprint.config.experiment import Settings
from bleuprint.report.table import DASH
from bleuprint.report.tasks import table_row_name
from bleuprint.runtime.flatten import flatten_settings
from bleuprint.runtime.wording import counted, list_first

# The largest number of settings that are named below a system. Provenance lists all of them.
_MAX_SETTINGS = 5
_SECTION_PREFIX = re.compile("^(model|train|decode|vocabulary)[.]")
# Settings of a training run that do not change its weights at an update.
_SETTINGS_WITHOUT_EFFECT = ("train.validate_interval", "train.save_interval", "train.keep_")


class SettingChange(NamedTuple):
    """A setting in which a system, or a corpus, differs from the baseline.

    Attributes:
        name: The name of the system, or of the corpus if corpora are compared.
        setting: The key of the setting, such as `model.d_model`; `nothing` if no setting differs.
        baseline_value: The value of the baseline; a dash if it lacks the setting.
        value: The value of the system; a dash if it lacks the setting.
    """

    name: str
    setting: str
    baseline_value: str
    value: str


def setting_changes(settings_by_name: Mapping[str, Mapping[str, str]]) -> Iterator[SettingChange]:
    """Yield each setting in which a system differs from the first system, the baseline.

    For a system without any difference, one change of the setting `nothing` is yielded, so that the
    system is still named.

    Args:
        settings_by_name: The settings of each system, by its name, the baseline first. They are
            values by key, such as `model.d_model`. Corpora can be compared in the same way.
    """
    baseline, *others = settings_by_name
    baseline_settings = settings_by_name[baseline]
    for name in others:
        settings = settings_by_name[name]
        has_changes = False
        # The keys of both systems, each once: either may have settings that the other one lacks.
        for key in dict.fromkeys([*baseline_settings, *settings]):
            baseline_value = baseline_settings.get(key, DASH)
            value = settings.get(key, DASH)
            if value != baseline_value:
                has_changes = True
                yield SettingChange(name, key, baseline_value, value)
        if not has_changes:
            yield SettingChange(name, "nothing", DASH, DASH)


def collect_system_settings(settings: Settings) -> dict[str, dict[str, str]]:
    """Return the settings of each trained system, with keys such as `model.d_model`.

    Args:
        settings: The settings of the experiment.
    """
    return {name: dotted_settings(settings, name) for name in settings.trained_systems}


def describe_rows(settings: Settings, tasks: Mapping[str, str]) -> dict[str, str]:
    """Return a short description of each row of the tables of scores, by the name of the row.

    A row is a system on a corpus. The first system is described by its size, such as `6 + 6 layers,
    d_model 512, …`, and other systems by the settings that differ from it, such as `d_model 1024`.

    Corpora with the same test sets form a task, and their systems share a table. There, the
    description also says how the preparation of the corpus differs from the first corpus of the
    task, as in `d_model 1024; bpe 8000`.

    Args:
        settings: The settings of the experiment.
        tasks: The name of the task of each corpus.
    """
    system_descriptions = _system_descriptions(settings)
    descriptions = dict(system_descriptions)
    for task in dict.fromkeys(tasks.values()):
        corpora = [corpus for corpus in tasks if tasks[corpus] == task]
        preparations = _preparation_descriptions(settings, corpora)
        for system, system_description in system_descriptions.items():
            for corpus in corpora:
                preparation = preparations[corpus]
                if not preparation:  # This is the first corpus of the task.
                    description = system_description
                elif system == settings.trained_systems[0]:
                    # The row of the first corpus already describes the size of this system.
                    description = preparation
                else:
                    description = f"{system_description}; {preparation}"
                descriptions[table_row_name(system, corpus, tasks)] = description
    return descriptions


def _system_descriptions(settings: Settings) -> dict[str, str]:
    """Return a short description of each trained system, by its name.

    The first system, the baseline, is described by its size and the length of its training. Other
    systems are described by the settings that differ from the baseline.
    """
    baseline = settings.trained_systems[0]
    system = settings.system_settings(baseline)
    model = system.model
    size = (
        f"{model.encoder_layers} + {model.decoder_layers} layers, d_model {model.d_model}, "
        f"d_ff {model.d_ff}, {model.heads} heads"
    )
    if system.train.max_updates:
        size += f", {counted(system.train.max_updates, 'update')}"
    if system.train.max_epochs:
        size += f", {counted(system.train.max_epochs, 'epoch')}"
    system_changes = setting_changes(collect_system_settings(settings))
    return {baseline: size} | _short_descriptions(system_changes, baseline)


def _preparation_descriptions(settings: Settings, corpora: list[str]) -> dict[str, str]:
    """Return how each corpus is prepared differently from the first corpus.

    Args:
        settings: The settings of the experiment.
        corpora: The names of corpora with the same test sets.

    Returns:
        A description by corpus, such as `bpe 8000`; empty for the first corpus.
    """
    first_corpus = corpora[0]
    settings_by_corpus = {}
    for corpus in corpora:
        settings_by_corpus[corpus] = flatten_settings(settings.corpus(corpus).deciding_settings())
    changes = setting_changes(settings_by_corpus)
    # A setting that only the first corpus has comes last. Often, the other corpus has another
    # setting in its place, such as `sentencepiece` in place of `bpe`, which says more.
    new_settings_first = sorted(changes, key=lambda change: change.value == DASH)
    return {first_corpus: ""} | _short_descriptions(new_settings_first, first_corpus)


def _short_descriptions(changes: Iterable[SettingChange], baseline: str) -> dict[str, str]:
    """Describe each system by the first settings that differ, such as `d_model 1024, heads 16`.

    If nothing differs from the baseline `base`, the description is `as base`.

    Args:
        changes: The settings of all systems, or of all corpora, that differ from the baseline.
        baseline: The name of the baseline.

    Returns:
        The descriptions by the name of the system or corpus.
    """
    texts_by_name: dict[str, list[str]] = {}
    for change in changes:
        texts = texts_by_name.setdefault(change.name, [])
        # For example, how often a training run validates does not change its weights.
        has_no_effect = change.setting.startswith(_SETTINGS_WITHOUT_EFFECT)
        if has_no_effect or change.setting == "nothing":
            continue
        short_key = _SECTION_PREFIX.sub("", change.setting)
        if change.value == DASH:
            texts.append(f"without {short_key}")
        else:
            texts.append(f"{short_key} {change.value}")
    descriptions = {}
    for name, texts in texts_by_name.items():
        descriptions[name] = list_first(texts, _MAX_SETTINGS) or f"as {baseline}"
    return descriptions
