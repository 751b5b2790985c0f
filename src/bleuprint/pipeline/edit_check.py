"""Refuses the result of a stage if its code or settings were edited while it ran.

DVC hashes what a stage depends on only after the stage has ended. After an edit, dvc.lock would
record new code or settings for outputs of the old ones. An edit of params.yaml itself is harmless:
stages and DVC read reports/resolved.json, which only the stage resolve writes.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from bleuprint.config.paths import RESOLVED
from bleuprint.pipeline.dvc_yaml import Entry, fill_variables
from bleuprint.runtime.closure import code_fingerprint
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import read_json_object


def edit_check(entry: Entry, script: str, arguments: list[str]) -> Callable[[], None]:
    """Remember the settings and code with which a stage starts; return the check for its end.

    Args:
        entry: The entry of the stage in dvc.yaml.
        script: The script in stages/ that runs, such as `train.py`.
        arguments: The arguments of the script.

    Returns:
        A function that raises UserError if settings or code of the stage have changed.
    """
    stage_name = script.removesuffix(".py")
    start_settings = _read_resolved()
    names = entry.argument_names(script)
    values = dict(zip(names, arguments, strict=False))
    keys = list(_setting_keys(entry, values))
    start_code = _nested_value(start_settings, ("code", stage_name))

    def check() -> None:
        """Raise UserError if settings or code have changed since the stage started."""
        edited = _edited_key(keys, start_settings, _read_resolved())
        if edited:
            problem = f"{RESOLVED} ({edited}) was edited while this ran"
        elif start_code and code_fingerprint(stage_name) != start_code:
            problem = f"the code of stages/{stage_name}.py was edited while this ran"
        else:
            return
        advice = "run make reproduce again"
        if stage_name == "train":
            advice += "; with the settings and code as they were, its training is not repeated"
        raise UserError(f"{problem}: {advice}")

    return check


def _edited_key(
    keys: Iterable[tuple[str, ...]], before: Mapping[str, Any], after: Mapping[str, Any]
) -> str | None:
    """Return the first key whose value differs between two versions of the settings.

    Args:
        keys: The names of nested keys.
        before: The content of reports/resolved.json at the start of the stage.
        after: Its content now.

    Returns:
        The dotted key; None if no value differs.
    """
    for names in keys:
        if _nested_value(before, names) != _nested_value(after, names):
            return ".".join(names)
    return None


def _setting_keys(entry: Entry, values: Mapping[str, str]) -> Iterator[tuple[str, ...]]:
    """Yield the keys that a stage depends on, as names of nested keys.

    If a key contains a loop variable without a known value, it ends before that name: then the
    section around it is compared.

    Args:
        entry: The entry of the stage.
        values: The known values of loop variables.
    """
    for key in entry.parameters:
        known_prefix, variable_start, _ = fill_variables(key, values).partition("${")
        if variable_start:
            known_prefix = known_prefix.rpartition(".")[0]
        yield tuple(name for name in known_prefix.split(".") if name)


def _read_resolved() -> Mapping[str, Any]:
    """Return the content of reports/resolved.json; empty if it is missing or damaged.

    A stage that needs the file raises the error itself.
    """
    with suppress(FileNotFoundError, UserError):
        return read_json_object(RESOLVED)
    return {}


def _nested_value(content: Any, names: tuple[str, ...]) -> Any:
    """Return the value of a nested key; None if there is none."""
    for name in names:
        content = content.get(name) if isinstance(content, Mapping) else None
    return content
