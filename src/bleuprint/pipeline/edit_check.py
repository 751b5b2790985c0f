"""Refuses the result of a stage whose code, or whose resolved settings, changed while it ran.

DVC hashes what a stage depends on after the stage has ended, and would record what stands there
then as what its outputs were made with. An edit of params.yaml is harmless: stages and DVC read
reports/resolved.json, which the stage resolve alone writes.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from bleuprint.config.paths import RESOLVED
from bleuprint.pipeline.dvc_yaml import Entry, fill_variables
from bleuprint.runtime.closure import code_fingerprint
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import read_json_object


def edit_check(entry: Entry, script: str, arguments: list[str]) -> Callable[[], None]:
    """What the stage stages/`script` with `arguments` calls at its end, given here at its start.

    That raises UserError if DVC would record other settings or code than the stage began with.
    `entry`: the stage's in dvc.yaml.
    """
    stage, before = script.removesuffix(".py"), _content()
    values = dict(zip(entry.argument_names(script), arguments, strict=False))
    keys = [*_keys(entry, values)]
    code = _value(before, ("code", stage))

    def check() -> None:
        now = _content()
        edited = next((key for key in keys if _value(now, key) != _value(before, key)), ())
        what = f"{RESOLVED} ({'.'.join(edited)})" if edited else ""
        if not what and code and code_fingerprint(stage) != code:
            what = f"the code of stages/{stage}.py"
        if what:
            kept = "; with the settings and code as they were, its training is not repeated"
            raise UserError(
                f"{what} was edited while this ran: run make reproduce again"
                f"{kept if stage == 'train' else ''}"
            )

    return check


def _keys(entry: Entry, values: Mapping[str, str]) -> Iterator[tuple[str, ...]]:
    """The parts of the keys that a stage depends on, each up to one that no argument tells."""
    for key in entry.parameters:
        known, unknown, _ = fill_variables(key, values).partition("${")
        known = known.rpartition(".")[0] if unknown else known
        yield tuple(filter(None, known.split(".")))


def _content() -> Mapping[str, Any]:
    """The resolved settings; none where they are damaged, which a stage that needs them says."""
    with suppress(FileNotFoundError, UserError):
        return read_json_object(RESOLVED)
    return {}


def _value(content: Any, keys: tuple[str, ...]) -> Any:
    """The value of nested keys; None if there is none."""
    for key in keys:
        content = content.get(key) if isinstance(content, Mapping) else None
    return content
