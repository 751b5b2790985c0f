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
from bleuprint.runtime.json_files import read_json_object


def edit_check(entry: Entry, script: str, arguments: list[str]) -> Callable[[], None]:
    """Remember the settings and code of a stage, and return a check that they are still the same.

    Call this when a stage starts, and the returned function when the stage ends. DVC hashes
    settings and code only at the end. If the user edits them meanwhile, DVC would record the new
    version for outputs that the old version has computed, and would never repeat the stage.

    Args:
        entry: The entry of dvc.yaml to which the stage belongs.
        script: The script that runs, in the folder stages, such as `train.py`.
        arguments: The command-line arguments of the script.

    Returns:
        The check, which raises UserError after an edit.
    """
    stage_name = script.removesuffix(".py")
    start_content = _read_resolved()
    variables = entry.argument_names(script)
    # Not strict: the command line may also contain options after the values of the variables.
    values = dict(zip(variables, arguments, strict=False))
    setting_keys = list(_setting_keys(entry, values))
    start_code_hash = _nested_value(start_content, ("code", stage_name))

    def check() -> None:
        """Raise UserError if the settings or the code have changed since the stage started."""
        edited_key = _edited_key(setting_keys, start_content, _read_resolved())
        if edited_key is not None:
            problem = f"{RESOLVED} ({edited_key}) was edited while this ran"
        # Without reports/resolved.json, the hash at the start is empty, and nothing is compared.
        elif start_code_hash and code_fingerprint(stage_name) != start_code_hash:
            problem = f"the code of stages/{stage_name}.py was edited while this ran"
        else:
            return
        advice = "DVC does not record its outputs. To run it again: make reproduce"
        if stage_name == "train":
            # The folder of a training is named by a hash of its settings and data. With the old
            # settings, the training is found there, finished.
            advice = f"If you undo the edit first, the training is not repeated. {advice}"
        raise UserError(f"{problem}. {advice}")

    return check


def _edited_key(
    keys: Iterable[tuple[str, ...]],
    start_content: Mapping[str, Any],
    current_content: Mapping[str, Any],
) -> str | None:
    """Return the first setting whose value differs between two versions of reports/resolved.json.

    Args:
        keys: The keys to compare, each as the names on the way to a nested value, such as
            ("corpora", "own", "clean").
        start_content: The content of the file at the start of the stage.
        current_content: The content of the file now.

    Returns:
        The key with dots between the names; None if no value differs.
    """
    for names in keys:
        if _nested_value(start_content, names) != _nested_value(current_content, names):
            return ".".join(names)
    return None


def _setting_keys(entry: Entry, values: Mapping[str, str]) -> Iterator[tuple[str, ...]]:
    """Yield the settings that a stage depends on, as keys of reports/resolved.json.

    dvc.yaml writes a key with variables, such as `corpora.${item.corpus}.clean`. If the value of
    the variable is known to be `own`, the key is ("corpora", "own", "clean"). If it is unknown, the
    key ends before the variable: ("corpora",). So the complete section is compared.

    Args:
        entry: The entry of dvc.yaml to which the stage belongs.
        values: The known values of the variables.

    Yields:
        The names on the way to a nested value.
    """
    for key_with_variables in entry.parameters:
        key = fill_variables(key_with_variables, values)
        known_prefix, start_of_variable, _ = key.partition("${")
        has_unknown_variable = start_of_variable != ""
        if has_unknown_variable:
            # The variable may be the end of a name, as in `runs.small-${key}`: drop this name, too.
            known_prefix = known_prefix.rpartition(".")[0]
        yield tuple(name for name in known_prefix.split(".") if name)


def _read_resolved() -> Mapping[str, Any]:
    """Return the settings in reports/resolved.json; an empty dict if it is missing or damaged.

    This is not an error here: a stage that needs the file reads it again and raises the error.
    """
    with suppress(FileNotFoundError, UserError):
        return read_json_object(RESOLVED)
    return {}


def _nested_value(content: Any, names: tuple[str, ...]) -> Any:
    """Return the value of a nested key; None if there is none."""
    for name in names:
        content = content.get(name) if isinstance(content, Mapping) else None
    return content
