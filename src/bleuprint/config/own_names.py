"""Settings that name the user's own code: parts of the model, rules and metrics.

`model: {positions: own.relative}` names a part of a model, `filter: {own.questions: {}}` a rule,
`metrics: [own.exact_match]` a metric. When params.yaml is read, each name gets the fingerprint of
its code (`pin_own_code`). A part is imported when a model is created (model/own_parts.py), a rule
when its settings are read, and a metric when translations are scored (scoring/own_metrics.py).
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bleuprint.runtime.errors import UserError
from bleuprint.runtime.own_code import (
    defined_names,
    is_own_name,
    module_file,
    module_name,
    pinned_name,
)
from bleuprint.runtime.schema import SettingError
from bleuprint.runtime.yaml_tree import LocatedList, LocatedMapping, as_mapping

# The settings below `model` that name a module of own code, with the classes for which the module
# is searched. It needs at least one of them.
PART_CLASSES: Mapping[str, tuple[str, ...]] = {
    "positions": ("Positions",),
    "attention": ("Attention",),
    "feed_forward": ("FeedForward",),
    "layer": ("EncoderLayer", "DecoderLayer"),
}
# The settings of a corpus, and of parts of it, whose keys are rules.
_RULE_SETTINGS = ("clean", "filter")
# The top-level setting that lists modules with metrics, and the name that each of them defines.
_METRICS_SETTING = "metrics"
METRIC_VARIABLE = "METRIC"


def named_parts(model: Any) -> dict[str, str]:
    """Return which parts of a model are own code, such as `{"positions": "own.relative"}`.

    Args:
        model: The settings of the model.

    Returns:
        The name of the module in own/, by the setting that names it; without the settings that name
        none.
    """
    names = {}
    for setting in PART_CLASSES:
        module_name = getattr(model, setting)
        if module_name is not None:
            names[setting] = module_name
    return names


def describe_parts(names: Mapping[str, str]) -> list[str]:
    """Return how messages name parts of a model, such as `model.positions own.relative`.

    Args:
        names: The name of the module, perhaps with the fingerprint of its code, by the setting.
    """
    return [f"model.{setting} {module_name(name)}" for setting, name in names.items()]


def check_part_name(setting: str, value: str) -> None:
    """Raise SettingError if the value of a setting is not the name of a module in own/.

    Args:
        setting: The setting below `model`, such as `positions`.
        value: Its value.
    """
    if not is_own_name(value):
        raise SettingError(
            [setting],
            f"{value!r} is not the name of a module in own/. Write own.NAME for own/NAME.py",
        )


def pin_own_code(entries: LocatedMapping, root: Path) -> tuple[LocatedMapping, list[UserError]]:
    """Add to the name of each module of own code its fingerprint: `own.relative@01...`.

    The names are values of settings of a model, keys of cleaning and filtering rules, and items of
    the list of metrics.

    Args:
        entries: The content of params.yaml, with the settings of each system on each corpus in
            `runs`.
        root: The project's root, with the folder own/.

    Returns:
        The content with these names, and an error for each module that is missing or unusable.
    """
    errors: list[UserError] = []
    for section, pin in (("runs", _pin_runs), ("corpora", _pin_corpora)):
        value = entries.get(section)
        # Validation refuses a value of another type later.
        if isinstance(value, LocatedMapping):
            location = entries.locations[section]
            entries = entries.with_value(section, pin(value, root, errors), location)
    metrics = entries.get(_METRICS_SETTING)
    if isinstance(metrics, LocatedList):
        pinned_metrics = _pin_metrics(metrics, root, errors)
        location = entries.locations[_METRICS_SETTING]
        entries = entries.with_value(_METRICS_SETTING, pinned_metrics, location)
    return entries, errors


def _pin_metrics(names: LocatedList, root: Path, errors: list[UserError]) -> list[str]:
    """Return the names of the modules with metrics, each with its fingerprint.

    Args:
        names: The names in params.yaml.
        root: The project's root, with the folder own/.
        errors: A list to which an error is added for each name that cannot be used.
    """
    pinned_names: list[str] = []
    for position, name in enumerate(names):
        try:
            pinned = _pin_metric(name, root)
            if pinned in pinned_names:
                raise UserError(f"{name} is listed twice. Remove one of them")
        except UserError as error:
            errors.append(names.locations[position].error(str(error)))
        else:
            pinned_names.append(pinned)
    return pinned_names


def _pin_metric(name: Any, root: Path) -> str:
    """Return the name of a module with a metric, with its fingerprint.

    Args:
        name: The name in params.yaml.
        root: The project's root, with the folder own/.

    Raises:
        UserError: It is not the name of a module in own/, or the module defines no metric.
    """
    if not is_own_name(name):
        raise UserError(
            f"{name!r} is not the name of a module in own/. Write own.NAME for own/NAME.py. The "
            "built-in metrics, such as BLEU, are always computed"
        )
    pinned = pinned_name(name, root)
    if METRIC_VARIABLE not in defined_names(module_name(name), root):
        file = module_file(module_name(name), root).relative_to(root)
        raise UserError(f"{file} has no {METRIC_VARIABLE}. Write {METRIC_VARIABLE} = Metric(...)")
    return pinned


def _pin_runs(runs: LocatedMapping, root: Path, errors: list[UserError]) -> LocatedMapping:
    """Return the settings of all systems with a fingerprint for each own part of their models.

    Args:
        runs: The settings by system and corpus.
        root: The project's root, with the folder own/.
        errors: A list to which an error is added for each module that cannot be used.
    """
    pinned_runs = {}
    for system, settings_by_corpus in runs.items():
        pinned_runs[system] = settings_by_corpus
        if isinstance(settings_by_corpus, LocatedMapping):
            pinned_settings = {}
            for corpus, settings in settings_by_corpus.items():
                pinned_settings[corpus] = _pin_parts_of_run(settings, root, errors)
            pinned_runs[system] = LocatedMapping(pinned_settings, settings_by_corpus.locations)
    return LocatedMapping(pinned_runs, runs.locations)


def _pin_corpora(corpora: LocatedMapping, root: Path, errors: list[UserError]) -> LocatedMapping:
    """Return the settings of all corpora with a fingerprint for each own rule.

    Args:
        corpora: The settings by corpus.
        root: The project's root, with the folder own/.
        errors: A list to which an error is added for each module that cannot be used.
    """
    pinned_corpora = {}
    for name, corpus in corpora.items():
        pinned_corpora[name] = _pin_rules(corpus, root, errors)
    return LocatedMapping(pinned_corpora, corpora.locations)


def _pin_rules(settings: Any, root: Path, errors: list[UserError]) -> Any:
    """Return settings with a fingerprint for each own rule below `clean` and `filter`.

    Args:
        settings: The settings of a corpus, or of a part of it.
        root: The project's root, with the folder own/.
        errors: A list to which an error is added for each module that cannot be used.
    """
    if not isinstance(settings, LocatedMapping):
        return settings  # Validation refuses it later.
    pinned = settings
    for name, entry in settings.items():
        location = settings.locations[name]
        if not isinstance(entry, LocatedMapping):
            continue
        pin = _pin_rule_names if name in _RULE_SETTINGS else _pin_rules
        pinned = pinned.with_value(name, pin(entry, root, errors), location)
    return pinned


def _pin_rule_names(rules: LocatedMapping, root: Path, errors: list[UserError]) -> LocatedMapping:
    """Return rules with a fingerprint in the name of each own rule.

    Args:
        rules: The settings of the rules by name.
        root: The project's root, with the folder own/.
        errors: A list to which an error is added for each module that cannot be used.
    """
    pinned_rules = {}
    locations = dict(rules.locations)
    for name, settings in rules.items():
        pinned = name
        if is_own_name(name):
            try:
                pinned = pinned_name(name, root)
            except UserError as error:
                errors.append(rules.locations[name].error(str(error)))
                continue
            locations[pinned] = rules.locations[name]
        pinned_rules[pinned] = settings
    return LocatedMapping(pinned_rules, locations)


def _pin_parts_of_run(settings: Any, root: Path, errors: list[UserError]) -> Any:
    """Return the settings of a system on a corpus with a fingerprint for each own part.

    Args:
        settings: The settings.
        root: The project's root, with the folder own/.
        errors: A list to which an error is added for each module that cannot be used.
    """
    model = as_mapping(as_mapping(settings).get("model"))
    for setting in PART_CLASSES:
        value = model.get(setting)
        if not is_own_name(value):
            continue  # There is none, or validation refuses it later.
        location = model.locations[setting]
        try:
            _check_classes(setting, value, root)
            model = model.with_value(setting, pinned_name(value, root), location)
        except UserError as error:
            errors.append(location.error(str(error)))
    if not model:
        return settings
    return settings.with_value("model", model, settings.locations["model"])


def _check_classes(setting: str, value: str, root: Path) -> None:
    """Raise UserError if a module lacks the class of the part that a setting names.

    Args:
        setting: The setting below `model`, such as `positions`.
        value: The name of the module.
        root: The project's root, with the folder own/.
    """
    name, _, _ = value.partition("@")
    classes = PART_CLASSES[setting]
    if defined_names(name, root).isdisjoint(classes):
        file = module_file(name, root).relative_to(root)
        class_text = " or ".join(classes)
        raise UserError(f"{file} has no class {class_text}, which model.{setting} needs")
