"""The entries of dvc.yaml as they are written, each for all stages of one kind.

`graph.py` has the stages that DVC resolves from them: `train@small-phrasebook-1` of `train`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bleuprint.config.paths import RESOLVED
from bleuprint.runtime.yaml_tree import load_yaml

_GRAPH = Path("dvc.yaml")
_VARIABLE = re.compile(r"\$\{([^}]*)\}")
# DVC's names of what a `foreach` loops over, and of what each of its stages has of that.
_KEY = "key"


@dataclass(frozen=True)
class Entry:
    """One entry of dvc.yaml. Its stages differ in loop variables, such as ${item.system}.

    `loops`: what each loop variable takes its values from, such as {"system": "systems"}, or
    {"key": "corpora"} for a `foreach`. `dependencies` are the paths that it reads, `parameters`
    keys of reports/resolved.json, `outputs` paths, metrics included; all contain loop variables.
    `memory_gb`: the memory to reserve.
    """

    kind: str
    command: str
    loops: Mapping[str, str]
    dependencies: tuple[str, ...]
    parameters: tuple[str, ...]
    outputs: tuple[str, ...]
    memory_gb: float | None

    def is_of_corpora(self) -> bool:
        """Return whether there is a stage for each corpus."""
        return self.loops == {_KEY: "corpora"}

    def is_of_runs(self) -> bool:
        """Return whether there is a stage for each system, corpus and seed."""
        return {"system", "corpus", "seed"} <= self.loops.keys()

    @property
    def script(self) -> str:
        """The name of the script in stages/ that the command runs, without its suffix."""
        return self.command.partition("stages/")[2].partition(".py")[0]

    def runs(self, script: str) -> bool:
        """Return whether the command runs stages/`script`."""
        return f"stages/{script}" in self.command.split()

    def argument_names(self, script: str) -> list[str]:
        """Return the loop variables that the command gives to stages/`script`, in order."""
        return _VARIABLE.findall(self.command.partition(f"stages/{script}")[2])


def load_entries(root: Path = Path()) -> dict[str, Entry]:
    """Return all entries of dvc.yaml by kind, in its order; none if there is no dvc.yaml.

    Args:
        root: The project's folder.

    Raises:
        UserError: The file is not YAML. Mistakes in an entry are left to DVC, which names them.
    """
    path = root / _GRAPH
    if not path.exists():
        return {}
    written = _mapping(load_yaml(path)).get("stages")
    found = {}
    for kind, body in _mapping(written).items():
        entry = _entry(str(kind), _mapping(body))
        if entry is not None:
            found[entry.kind] = entry
    return found


def entry_running(script: str, root: Path = Path()) -> Entry | None:
    """Return the entry whose command runs stages/`script`; None if there is none."""
    for entry in load_entries(root).values():
        if entry.runs(script):
            return entry
    return None


def fill_variables(text: str, values: Mapping[str, str]) -> str:
    """Return a text with the values of those loop variables that are known."""
    return _VARIABLE.sub(lambda found: values.get(found[1], found[0]), text)


def _entry(kind: str, body: Mapping[str, Any]) -> Entry | None:
    """One entry; None for one without a command."""
    stage = _mapping(body.get("do", body))
    command = stage.get("cmd")
    if isinstance(command, list):
        command = " && ".join(map(str, command))
    if not isinstance(command, str):
        return None
    memory = _mapping(stage.get("meta")).get("memory_gb")
    return Entry(
        kind=kind,
        command=command,
        loops=_loops(body),
        dependencies=(*_paths(stage.get("deps")), *_parameter_files(stage)),
        parameters=_parameters(stage),
        outputs=(*_paths(stage.get("outs")), *_paths(stage.get("metrics"))),
        memory_gb=memory if isinstance(memory, int | float) else None,
    )


def _loops(body: Mapping[str, Any]) -> dict[str, str]:
    """What each loop variable takes its values from, without DVC's ${...}."""
    sources = dict(_mapping(body.get("matrix")))
    if "foreach" in body:
        sources[_KEY] = body["foreach"]
    return {str(name): _VARIABLE.sub(r"\1", str(source)) for name, source in sources.items()}


def _parameters(stage: Mapping[str, Any]) -> tuple[str, ...]:
    """The keys of reports/resolved.json in `params`, where other files may be named, too."""
    found: list[str] = []
    for each in _list(stage.get("params")):
        keys = _mapping(each).get(RESOLVED.as_posix())
        found += [str(key) for key in _list(keys)]
    return tuple(found)


def _parameter_files(stage: Mapping[str, Any]) -> list[str]:
    """The files that `params` name; a key alone is one of params.yaml."""
    found: list[str] = []
    for each in _list(stage.get("params")):
        found += map(str, _mapping(each))
    return found


def _paths(written: Any) -> list[str]:
    """The paths in a list; one with options, such as `cache: false`, is a mapping."""
    found = []
    for each in _list(written):
        path = next(iter(each)) if isinstance(each, Mapping) else each
        found.append(str(path))
    return found


def _mapping(value: Any) -> Mapping[Any, Any]:
    """A mapping, or an empty one in place of what is none."""
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> list[Any]:
    """A list, or an empty one in place of what is none."""
    return list(value) if isinstance(value, list) else []
