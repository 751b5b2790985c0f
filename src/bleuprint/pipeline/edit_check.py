"""Refuses the result of a stage whose settings or code were edited while it ran.

DVC hashes what a stage depends on after the stage has ended, and would record the edited settings
and code as those of its outputs.
"""

import json
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from bleuprint.config.experiment import Settings, load
from bleuprint.config.paths import INPUTS, OVERRIDES
from bleuprint.pipeline.params_files import input_files
from bleuprint.runtime import fingerprint
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import json_text, read_json
from bleuprint.runtime.schema import load_yaml

_PARAMS, _GRAPH = Path("params.yaml"), Path("dvc.yaml")
# What stages write for DVC to compare: it is to agree with params.yaml and inputs/.
_WRITTEN: dict[Path, Callable[[Settings], Mapping[str, Any]]] = {
    OVERRIDES: Settings.overrides,
    INPUTS: input_files,
}


def stage_entry(script: str) -> dict[str, Any]:
    """The entry of dvc.yaml whose command runs stages/`script`; empty if there is none."""
    text = _GRAPH.read_text(encoding="utf-8") if _GRAPH.exists() else ""
    # the whole file takes a fifth of a second to parse
    blocks = [block for block in re.split(r"\n(?= {0,2}\S)", text) if f"stages/{script}" in block]
    for stages in map(YAML(typ="safe").load, blocks):
        for stage in stages.values():
            entry: dict[str, Any] = stage.get("do", stage)
            if f"stages/{script}" in entry["cmd"].split():
                return entry
    return {}


class EditCheck:
    """What the stage stages/`script` with `arguments` read at its start, of all that DVC records.

    `entry`: the stage's in dvc.yaml.
    """

    def __init__(self, entry: Mapping[str, Any], script: str, arguments: list[str]) -> None:
        names = re.findall(r"\$\{([^}]*)\}", entry["cmd"].partition(f"stages/{script}")[2])
        self._values = dict(zip(names, arguments, strict=False))
        self._stage = script.removesuffix(".py")
        self._keys = [*self._keys_of(entry)]
        self._read = {(path, key): _value(_content(path), key) for path, key in self._keys}
        code = [path for path in entry["deps"] if path.startswith(("src/", "stages/"))]
        self._code = {path: path.read_bytes() for path in fingerprint.files_of(code, Path())}
        began = _began()
        # edited while Python imported it: which version it read is not known
        self._early = [path for path in self._code if path.stat().st_ctime > began]

    def __call__(self) -> None:
        """Raise UserError, naming the file and setting, if something else stands there now."""
        if (edited := next(self._edited(), None)) is None:
            return
        kept = "; with the settings and code as they were, its training is not repeated"
        raise UserError(
            f"{edited} was edited while this ran: run dvc repro again"
            f"{kept if self._stage == 'train' else ''}"
        )

    def _edited(self) -> Iterator[str]:
        for path in self._early:
            yield str(path)
        for path, before in self._code.items():
            now = path.read_bytes() if path.is_file() else None
            if now is None or (now != before and _mark(path, now) != _mark(path, before)):
                yield str(path)
        try:
            settings = load()
            content = {_PARAMS: load_yaml(_PARAMS)}
            for path in {path for path, _ in self._keys} & _WRITTEN.keys():
                content[path] = json.loads(json_text(_WRITTEN[path](settings)))
        except (UserError, FileNotFoundError):
            yield str(_PARAMS)
            return
        for path, key in self._keys:
            if path in content and self._read[path, key] != _value(content[path], key):
                place = "a file in inputs/" if path == INPUTS else str(_PARAMS)
                yield f"{place} ({'.'.join(key)})"

    def _keys_of(self, entry: Mapping[str, Any]) -> Iterator[tuple[Path, tuple[str, ...]]]:
        """The settings that the stage depends on: their files, and their keys from the outermost.

        Files that are not there are left out, as where a stage runs without those before it.
        """
        for params in entry.get("params", ()):
            of_file = params if isinstance(params, Mapping) else {str(_PARAMS): [params]}
            for file, keys in of_file.items():
                if Path(file).exists():
                    for key in keys:
                        yield Path(file), self._filled(key)
        if str(_PARAMS) in entry["deps"]:
            yield _PARAMS, ()

    def _filled(self, key: str) -> tuple[str, ...]:
        """The parts of a key, up to one that the arguments do not tell."""
        text = re.sub(r"\$\{([^}]*)\}", lambda found: self._values.get(found[1], found[0]), key)
        known, unknown, _ = text.partition("${")
        return tuple(filter(None, (known.rpartition(".")[0] if unknown else known).split(".")))


def _content(path: Path) -> Any:
    return load_yaml(path) if path == _PARAMS else read_json(path)


def _value(content: Any, keys: tuple[str, ...]) -> Any:
    """The value of nested keys; None if there is none."""
    for key in keys:
        content = content.get(key) if isinstance(content, Mapping) else None
    return content


def _mark(path: Path, content: bytes) -> str:
    return fingerprint.of_file(path.name, content)


def _began() -> float:
    """When this process began, in seconds of the system's clock."""
    ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    return time.time() - age
