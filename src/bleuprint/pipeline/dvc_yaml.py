"""Reads the entries of dvc.yaml as they are written, each for all stages of one kind.

DVC resolves an entry into stages: `train` into `train@small-phrasebook-1` and others. `graph.py`
loads the resolved stages, which takes DVC seconds; this module reads only the file.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bleuprint.config.paths import RESOLVED
from bleuprint.runtime.yaml_tree import load_yaml

_DVC_YAML = Path("dvc.yaml")
# A loop variable, such as ${item.system}.
_VARIABLE = re.compile(r"\$\{([^}]*)\}")
# In an entry with `foreach`, DVC calls the present item ${key}.
_FOREACH_VARIABLE = "key"


@dataclass(frozen=True)
class Entry:
    """One entry of dvc.yaml. Its stages differ in loop variables, such as ${item.system}.

    Attributes:
        kind: The name of the entry, such as `train`.
        command: The shell command, with loop variables.
        loops: Where each loop variable takes its values from: {"system": "systems", ...} in an
            entry with `matrix`, {"key": "corpora"} in one with `foreach`.
        dependencies: The paths that the stages read, with loop variables.
        parameters: The keys of reports/resolved.json that they depend on, with loop variables.
        outputs: The paths that they write, metrics included, with loop variables.
        memory_gb: The memory to reserve; None if the entry does not say it.
    """

    kind: str
    command: str
    loops: Mapping[str, str]
    dependencies: tuple[str, ...]
    parameters: tuple[str, ...]
    outputs: tuple[str, ...]
    memory_gb: float | None

    def is_per_corpus(self) -> bool:
        """Return whether the entry has a stage for each corpus."""
        return self.loops == {_FOREACH_VARIABLE: "corpora"}

    def is_per_run(self) -> bool:
        """Return whether the entry has a stage for each system, corpus and seed."""
        return {"system", "corpus", "seed"} <= self.loops.keys()

    @property
    def script(self) -> str:
        """The name of the script in stages/ that the command runs, without its suffix."""
        return self.command.partition("stages/")[2].partition(".py")[0]

    def runs(self, script: str) -> bool:
        """Return whether the command runs a script of stages/, such as `train.py`."""
        return f"stages/{script}" in self.command.split()

    def argument_names(self, script: str) -> list[str]:
        """Return the loop variables that the command passes to a script of stages/, in order."""
        arguments = self.command.partition(f"stages/{script}")[2]
        return _VARIABLE.findall(arguments)


def load_entries(root: Path = Path()) -> dict[str, Entry]:
    """Read dvc.yaml, and return its entries by name, in the order of the file.

    An entry describes all stages of one kind: of the entry `train`, for example, DVC makes one
    stage for each system, corpus and seed. An entry that is not valid is omitted, since DVC itself
    prints an error for it.

    Args:
        root: The project's folder.

    Returns:
        The entries; empty if there is no dvc.yaml.

    Raises:
        UserError: The file is not YAML.
    """
    path = root / _DVC_YAML
    if not path.exists():
        return {}
    document = _mapping_or_empty(load_yaml(path))
    bodies = _mapping_or_empty(document.get("stages"))
    entries = {}
    for name, body in bodies.items():
        entry = _read_entry(str(name), _mapping_or_empty(body))
        if entry is not None:
            entries[entry.kind] = entry
    return entries


def entry_running(script: str, root: Path = Path()) -> Entry | None:
    """Return the entry of dvc.yaml that runs a script of the folder stages; None if none does.

    Args:
        script: The file name of the script, such as `train.py`.
        root: The project's folder.
    """
    for entry in load_entries(root).values():
        if entry.runs(script):
            return entry
    return None


def fill_variables(text: str, values: Mapping[str, str]) -> str:
    """Replace variables such as ${item.system} by their values, in a text of dvc.yaml.

    A variable without a known value stays unchanged.

    Args:
        text: The text, such as `models/${item.system}/${item.corpus}`.
        values: The known values by name, such as {"item.system": "tiny"}.
    """

    def value_of(match: re.Match[str]) -> str:
        """Return the value of the matched variable; without a value, the matched text itself."""
        variable_text = match[0]
        variable_name = match[1]
        return values.get(variable_name, variable_text)

    return _VARIABLE.sub(value_of, text)


def _read_entry(kind: str, body: Mapping[str, Any]) -> Entry | None:
    """Read one entry of dvc.yaml, in one of the forms that DVC allows; None if it has no command.

    DVC makes one stage or, in a loop over systems or corpora, many stages of an entry.

    Args:
        kind: The name of the entry, such as `train`.
        body: The keys and values below the name.
    """
    # In an entry with `foreach`, DVC puts all other keys below the key `do`.
    stage = _mapping_or_empty(body.get("do", body))
    command = stage.get("cmd")
    # DVC also accepts a list of commands, and stops at the first one that fails.
    if isinstance(command, list):
        command = " && ".join(str(part) for part in command)
    if not isinstance(command, str):
        return None
    memory = _mapping_or_empty(stage.get("meta")).get("memory_gb")
    dependencies = _paths(stage.get("deps")) + _parameter_files(stage)
    outputs = _paths(stage.get("outs")) + _paths(stage.get("metrics"))
    return Entry(
        kind=kind,
        command=command,
        loops=_read_loops(body),
        dependencies=tuple(dependencies),
        parameters=tuple(_parameter_keys(stage)),
        outputs=tuple(outputs),
        memory_gb=memory if isinstance(memory, int | float) else None,
    )


def _read_loops(body: Mapping[str, Any]) -> dict[str, str]:
    """Return, for each loop variable of an entry, the setting over whose values DVC loops.

    `matrix: {system: ${systems}}` makes a stage for each system in the setting `systems`; the
    result is {"system": "systems"}. `foreach: ${corpora}` makes a stage for each corpus. DVC calls
    its variable `key`; the result is {"key": "corpora"}.

    Args:
        body: The keys and values of the entry.
    """
    sources = dict(_mapping_or_empty(body.get("matrix")))
    if "foreach" in body:
        sources[_FOREACH_VARIABLE] = body["foreach"]
    setting_by_variable = {}
    for variable, source in sources.items():
        # Replaces ${systems} by the text between the braces.
        setting_by_variable[str(variable)] = _VARIABLE.sub(r"\1", str(source))
    return setting_by_variable


def _parameter_keys(stage: Mapping[str, Any]) -> list[str]:
    """Return the keys of reports/resolved.json, the file of all settings, that a stage depends on.

    Args:
        stage: The keys and values of the stage in dvc.yaml. Its list `params` names, for each file,
            the keys in it: `params: [{reports/resolved.json: [corpora.own.clean]}]`.

    Returns:
        The keys, such as `corpora.own.clean`.
    """
    keys: list[str] = []
    for keys_by_file in _list_or_empty(stage.get("params")):
        resolved_keys = _mapping_or_empty(keys_by_file).get(RESOLVED.as_posix())
        keys.extend(str(key) for key in _list_or_empty(resolved_keys))
    return keys


def _parameter_files(stage: Mapping[str, Any]) -> list[str]:
    """Return the settings files that a stage depends on, as a whole or by some keys.

    Args:
        stage: The keys and values of the stage in dvc.yaml. Its list `params` names, for each file,
            the keys in it: `params: [{reports/resolved.json: [corpora.own.clean]}]`. An item that
            is only a text is a key of params.yaml, and names no file.

    Returns:
        The paths, such as `reports/resolved.json`.
    """
    files: list[str] = []
    for item in _list_or_empty(stage.get("params")):
        files.extend(str(path) for path in _mapping_or_empty(item))
    return files


def _paths(items: Any) -> list[str]:
    """Return the paths in a list of dependencies or outputs of dvc.yaml.

    Args:
        items: The list. Each item is a path, or a mapping from one path to its options, such as
            `reports/table.md: {cache: false}`.
    """
    paths = []
    for item in _list_or_empty(items):
        has_options = isinstance(item, Mapping)
        path = next(iter(item)) if has_options else item
        paths.append(str(path))
    return paths


def _mapping_or_empty(value: Any) -> Mapping[Any, Any]:
    """Return the value if it is a mapping, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def _list_or_empty(value: Any) -> list[Any]:
    """Return the value if it is a list, else an empty one."""
    return list(value) if isinstance(value, list) else []
