"""Cleaning and filtering rules: every `Edit` and `Check` in the modules of this folder.

A class whose name begins with _ is a base of rules, not a rule.
"""

import importlib
import inspect
import pkgutil
from collections import UserDict
from collections.abc import Iterator, Mapping
from functools import cached_property
from types import ModuleType
from typing import Generic, TypeVar

from bleuprint.rules.rule import Check, Edit, Rule, rule_error
from bleuprint.runtime.errors import UserError

R = TypeVar("R", bound=Rule)


class Rules(UserDict[str, type[R]], Generic[R]):
    """The rules of one kind by name, in the order in which they run.

    The modules are imported at the first lookup, which raises UserError if two rules have the same
    name or one is incomplete.
    """

    def __init__(self, kind: type[R]) -> None:
        self._kind = kind

    @cached_property
    def data(self) -> dict[str, type[R]]:  # type: ignore[override]
        rules: dict[str, type[R]] = {}
        for rule in _defined_rules(self._kind):
            if (first := rules.setdefault(rule.name(), rule)) is not rule:
                raise UserError(
                    f"two rules are called {rule.name()!r}: {first.__qualname__} in "
                    f"{first.__module__} and {rule.__qualname__} in {rule.__module__}"
                )
        return dict(sorted(rules.items(), key=lambda entry: (entry[1].rank, entry[0])))


def _defined_rules(kind: type[R]) -> Iterator[type[R]]:
    """The rules of a kind in the modules of this folder except rule.py."""
    names = {f"{__name__}.{module.name}" for module in pkgutil.iter_modules(__path__)}
    for name in sorted(names - {Rule.__module__}):
        for value in vars(_import(name)).values():
            own = inspect.isclass(value) and value.__module__ == name
            if own and issubclass(value, kind) and not value.__name__.startswith("_"):
                if lacking := _lacking(value):
                    place = f"{inspect.getsourcefile(value)}:{inspect.getsourcelines(value)[1]}"
                    raise UserError(f"{place}: {value.__name__} {lacking}")
                yield value


def _import(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except SyntaxError as error:
        raise UserError(f"{error.filename}:{error.lineno}: {error.msg}") from error
    except Exception as error:  # of any kind: the code of a rule is the user's
        raise rule_error(error) from error


def _lacking(rule: type[Rule]) -> str | None:
    """What a class lacks to be a rule, for a message."""
    if missing := ", ".join(sorted(getattr(rule, "__abstractmethods__", ()))):
        return f"has no method {missing}; the name of a base class begins with _"
    return (
        None if "__dataclass_fields__" in vars(rule) else "needs @dataclass(frozen=True) above it"
    )


EDITS: Mapping[str, type[Edit]] = Rules(Edit)  # type: ignore[type-abstract]
CHECKS: Mapping[str, type[Check]] = Rules(Check)  # type: ignore[type-abstract]
