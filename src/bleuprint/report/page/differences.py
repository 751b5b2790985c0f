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
_OBSERVING_SETTINGS = ("train.validate_interval", "train.save_interval", "train.keep_")


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

    A system without any difference yields one row, too, with the setting `nothing`.

    Args:
        settings_by_name: For each system, the baseline first, its settings: the values by key, such
            as `model.d_model`. Corpora can be compared in the same way.
    """
    baseline, *others = settings_by_name
    baseline_settings = settings_by_name[baseline]
    for name in others:
        settings = settings_by_name[name]
        has_changes = False
        # Either system may have settings that the other one lacks.
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

    A row is a system on a corpus. The first system is described by its size, and the other ones by
    the settings that differ from it. Where several corpora share a task, that is, have the same
    test sets, the description also says how the preparation of the corpus differs.

    Args:
        settings: The settings of the experiment.
        tasks: The name of the task of each corpus (tasks.py).
    """
    system_descriptions = _system_descriptions(settings)
    descriptions = dict(system_descriptions)
    for task in dict.fromkeys(tasks.values()):
        corpora = [corpus for corpus in tasks if tasks[corpus] == task]
        preparations = _preparation_descriptions(settings, corpora)
        for system, system_description in system_descriptions.items():
            for corpus in corpora:
                preparation = preparations[corpus]
                # The first corpus of a task is prepared as itself, so there is nothing to add.
                if not preparation:
                    description = system_description
                elif system == settings.trained_systems[0]:
                    description = preparation
                else:
                    description = f"{system_description}; {preparation}"
                descriptions[table_row_name(system, corpus, tasks)] = description
    return descriptions


def _system_descriptions(settings: Settings) -> dict[str, str]:
    """Return a short description of each trained system, by its name.

    The first one, the baseline, is described by its size and length of training, and the other
    ones by the settings that differ from the baseline.
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
    """Return how the preparation of each corpus differs from that of the first corpus, by corpus.

    The description of the first corpus is empty.

    Args:
        settings: The settings of the experiment.
        corpora: The names of corpora with the same test sets.
    """
    first_corpus = corpora[0]
    settings_by_corpus = {}
    for corpus in corpora:
        settings_by_corpus[corpus] = flatten_settings(settings.corpus(corpus).deciding_settings())
    # Settings that a corpus lacks come last: usually another setting replaces them.
    ordered = sorted(setting_changes(settings_by_corpus), key=lambda change: change.value == DASH)
    return {first_corpus: ""} | _short_descriptions(ordered, first_corpus)


def _short_descriptions(changes: Iterable[SettingChange], baseline: str) -> dict[str, str]:
    """Describe each system by the first settings that differ, such as `d_model 1024, heads 16`.

    A system without a difference is described as `as base`, after the baseline.

    Args:
        changes: The settings that differ from the baseline, of all systems or corpora.
        baseline: The name of the baseline.

    Returns:
        The descriptions by the name of the system or corpus.
    """
    texts_by_name: dict[str, list[str]] = {}
    for change in changes:
        texts = texts_by_name.setdefault(change.name, [])
        # Such as how often a training validates, which does not change its weights.
        is_observing = change.setting.startswith(_OBSERVING_SETTINGS)
        if change.setting == "nothing" or is_observing:
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
