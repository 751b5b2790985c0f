"""Refuses the result of a stage whose code, or whose resolved settings, changed while it ran.

DVC hashes what a stage depends on after the stage has ended, and would record what stands there
then as what its outputs were made with. An edit of params.yaml is harmless: stages and DVC read
reports/resolved.json, which the stage resolve alone writes.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from bleuprint.config.paths import RESOLVED
from bleuprint.runtime.closure import code_fingerprint
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import read_bytes, read_object
from bleuprint.runtime.yaml_tree import parse_yaml

_GRAPH = Path("dvc.yaml")


def stage_entry(script: str) -> dict[str, Any]:
    """The entry of dvc.yaml whose command runs stages/`script`; empty if there is none."""
    text = read_bytes(_GRAPH).decode(errors="replace") if _GRAPH.exists() else ""
    # the whole file takes a fifth of a second to parse
    blocks = [block for block in re.split(r"\n(?= {0,2}\S)", text) if f"stages/{script}" in block]
    for block in blocks:
        stages = parse_yaml(block, str(_GRAPH))
        if not isinstance(stages, dict):
            continue
        for stage in stages.values():
            entry = stage.get("do", stage) if isinstance(stage, dict) else None
            if isinstance(entry, dict) and f"stages/{script}" in str(entry.get("cmd")).split():
                return entry
    return {}


def edit_check(entry: Mapping[str, Any], script: str, arguments: list[str]) -> Callable[[], None]:
    """What the stage stages/`script` with `arguments` calls at its end, given here at its start.

    That raises UserError if DVC would record other settings or code than the stage began with.
    `entry`: the stage's in dvc.yaml.
    """
    names = re.findall(r"\$\{([^}]*)\}", entry["cmd"].partition(f"stages/{script}")[2])
    stage, before = script.removesuffix(".py"), _content()
    keys = [*_keys(entry, dict(zip(names, arguments, strict=False)))]
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


def _keys(entry: Mapping[str, Any], values: Mapping[str, str]) -> Iterator[tuple[str, ...]]:
    """The parts of the keys that a stage depends on, each up to one that no argument tells."""
    for params in entry.get("params", ()):
        # a user's own stage may have params of other files
        keys = params.get(RESOLVED.as_posix()) if isinstance(params, Mapping) else ()
        for key in keys or ():
            text = re.sub(r"\$\{([^}]*)\}", lambda found: values.get(found[1], found[0]), key)
            known, unknown, _ = text.partition("${")
            known = known.rpartition(".")[0] if unknown else known
            yield tuple(filter(None, known.split(".")))


def _content() -> Mapping[str, Any]:
    """The resolved settings; none where they are damaged, which a stage that needs them says."""
    with suppress(FileNotFoundError, UserError):
        return read_object(RESOLVED)
    return {}


def _value(content: Any, keys: tuple[str, ...]) -> Any:
    """The value of nested keys; None if there is none."""
    for key in keys:
        content = content.get(key) if isinstance(content, Mapping) else None
    return content
