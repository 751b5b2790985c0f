"""The command exp: `dvc exp` with -S that changes one entry alone, and with the next steps."""

import argparse
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from bleuprint.cli.help import EXAMPLES
from bleuprint.config.experiment import Settings
from bleuprint.config.set_param import replace_entries
from bleuprint.runtime.errors import UserError, exit_on_error
from bleuprint.runtime.schema import build, load_yaml, unknown

_PARAMS = Path("params.yaml")
_SHOW = "dvc exp show --only-changed --drop '^(data|models|params|results|src)'"


def exp(arguments: Sequence[str]) -> NoReturn:
    """Run `dvc exp` with these arguments, and exit."""
    from dvc.cli import main
    from dvc.exceptions import InvalidArgumentError
    from dvc.repo.experiments import Experiments
    from dvc.utils import hydra

    def checked(document: dict[str, Any], values: Mapping[str, Any]) -> None:
        try:
            build(Settings, values, _PARAMS)
        except UserError as error:
            raise InvalidArgumentError(str(error)) from None
        replace_entries(document, values)

    def log_reproduced(self: Experiments, revisions: Iterable[str], tmp_dir: bool = False) -> None:
        done = list(revisions)
        log(self, done, tmp_dir)
        for name in filter(None, self.get_exact_name(done).values()):
            print(next_steps(overrides, name, tmp_dir))

    assert hasattr(hydra, "merge_dicts"), "DVC has another function for -S"
    hydra.merge_dicts, log = checked, Experiments._log_reproduced
    Experiments._log_reproduced = log_reproduced
    overrides = _overrides(arguments)
    if {"-h", "--help"} & {*arguments}:
        print(f"example: {EXAMPLES['Variants of the experiment']['exp']}\n")
    elif arguments[:1] == ["run"] and _PARAMS.exists():
        with exit_on_error():
            check_overrides(overrides, _PARAMS)
            if not os.access(".", os.W_OK):
                raise UserError(f"the checkout is read-only: {Path.cwd()}")
    sys.exit(main(["exp", *arguments]))


def _overrides(arguments: Sequence[str]) -> list[str]:
    """The values of -S among the arguments."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("-S", "--set-param", action="append", default=[])
    given, _ = parser.parse_known_args(list(arguments))
    overrides: list[str] = given.set_param
    return overrides


def check_overrides(overrides: Iterable[str], path: Path) -> None:
    """Raise UserError if a value of -S cannot be read, or sets a key that `path` lacks.

    Hydra's `+KEY` adds one, `~KEY` removes one; `FILE:KEY` is one of another file.
    """
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import OverrideParseException

    for override in overrides:
        key, equals, _ = override.partition("=")
        try:
            OverridesParser.create().parse_overrides([override[key.find(":") + 1 :]])
        except OverrideParseException:
            raise UserError(f"-S {override}: not KEY=VALUE") from None
        if not equals or ":" in key or not key[:1].isalpha():
            continue
        place: Any = load_yaml(path)
        parts = key.split(".")
        for number, part in enumerate(parts):
            if isinstance(place, Mapping) and part not in place:
                where = ".".join(parts[: number + 1])
                raise UserError(f"-S {override}: {path}: {where}: {unknown(part, place)}")
            place = place.get(part) if isinstance(place, Mapping) else None


def next_steps(overrides: Iterable[str], name: str, tmp_dir: bool) -> str:
    """The commands that compare the experiment `name` with what it began from.

    Of all systems, unless `overrides` set one's. `tmp_dir`: the working tree is as before.
    """
    systems = [each.split(".")[1] for each in overrides if each.startswith("systems.")]
    before, after = "HEAD", name
    if systems:
        system = systems[0]
        before, after = (system if tmp_dir else f"{system}@HEAD"), f"{system}@{name}"
    return f"to compare: bleuprint compare {before} {after}\nall experiments: {_SHOW}"
