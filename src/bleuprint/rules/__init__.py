"""Finds cleaning and filtering rules: every `Edit` and `Check` in the modules of this folder.

`EDITS` and `CHECKS` are all rules by name. A class whose name begins with _ is a base of rules, not
a rule. rule.py explains how to write one.
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

RuleT = TypeVar("RuleT", bound=Rule)


class Rules(UserDict[str, type[RuleT]], Generic[RuleT]):
    """All edits or all checks by name, in the order in which they run.

    The modules are imported at the first look-up, since a rule may import slow libraries.
    """

    def __init__(self, base_class: type[RuleT]) -> None:
        """Create the mapping of all rules of a base class, Edit or Check."""
        # UserDict's own __init__ would set `data`.
        self._base_class = base_class

    @cached_property
    def data(self) -> dict[str, type[RuleT]]:  # type: ignore[override]
        """The mapping that UserDict reads, made at the first look-up.

        Raises:
            UserError: Two rules have the same name, or a rule is incomplete.
        """
        rules: dict[str, type[RuleT]] = {}
        for rule in _find_rules(self._base_class):
            name = rule.name()
            if name in rules and rules[name] is not rule:
                first = rules[name]
                raise UserError(
                    f"two rules are called {name!r}: {first.__qualname__} in "
                    f"{first.__module__} and {rule.__qualname__} in {rule.__module__}"
                )
            rules[name] = rule
        names_in_order = sorted(rules, key=lambda name: (rules[name].rank, name))
        return {name: rules[name] for name in names_in_order}


def _find_rules(base_class: type[RuleT]) -> Iterator[type[RuleT]]:
    """Yield the rules of a base class that the modules of this folder define.

    Raises:
        UserError: A rule is incomplete, or a module cannot be imported.
    """
    module_names = [f"{__name__}.{module.name}" for module in pkgutil.iter_modules(__path__)]
    for module_name in sorted(module_names):
        if module_name == Rule.__module__:
            continue
        for value in vars(_import_module(module_name)).values():
            # A module's namespace also contains the classes that it imports.
            if not inspect.isclass(value) or value.__module__ != module_name:
                continue
            if issubclass(value, base_class) and not value.__name__.startswith("_"):
                _check_complete(value)
                yield value


def _import_module(name: str) -> ModuleType:
    """Import a module of rules.

    Raises:
        UserError: The import fails; the message begins with the file and line.
    """
    try:
        return importlib.import_module(name)
    except SyntaxError as error:
        raise UserError(f"{error.filename}:{error.lineno}: {error.msg}") from error
    except Exception as error:  # of any class: the code of a rule may be the user's
        raise rule_error(error) from error


def _check_complete(rule: type[Rule]) -> None:
    """Raise UserError if a rule lacks a method, or the decorator @dataclass."""
    problem = None
    missing_methods = sorted(getattr(rule, "__abstractmethods__", ()))
    if missing_methods:
        problem = (
            f"has no method {', '.join(missing_methods)}; the name of a base class begins with _"
        )
    elif "__dataclass_fields__" not in vars(rule):
        problem = "needs @dataclass(frozen=True) above it"
    if problem is not None:
        file = inspect.getsourcefile(rule)
        _, line_number = inspect.getsourcelines(rule)
        raise UserError(f"{file}:{line_number}: {rule.__name__} {problem}")


EDITS: Mapping[str, type[Edit]] = Rules(Edit)  # type: ignore[type-abstract]
CHECKS: Mapping[str, type[Check]] = Rules(Check)  # type: ignore[type-abstract]
