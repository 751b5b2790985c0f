"""Finds cleaning and filtering rules: every `Edit` and `Check` in the modules of this folder.

`EDITS` and `CHECKS` are all rules by name. A class whose name begins with _ is a base of rules, not
a rule. rule.py explains how to write one. `find_edit` and `find_check` find rules in own/.
"""

import importlib
import inspect
import pkgutil
from collections import UserDict
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Generic, TypeVar

from bleuprint.rules.rule import Check, Edit, Rule, SideCheck, rule_error
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.own_code import (
    FOLDER,
    error_at,
    import_own,
    is_own_name,
    module_name,
    pinned_name,
)

# The names for which `find_edit` and `find_check` search, as a regular expression.
FOUND_NAMES = rf"^{FOLDER}\."
RuleT = TypeVar("RuleT", bound=Rule)


class Rules(UserDict[str, type[RuleT]], Generic[RuleT]):
    """All edits or all checks by name, in the order in which they run.

    The modules are imported at the first look-up, since a rule may import slow libraries.
    """

    def __init__(self, base_class: type[RuleT]) -> None:
        """Create the mapping of all rules of a base class, Edit or Check."""
        # UserDict's own __init__ would set `data`.
        self._base_class = base_class

    def __hash__(self) -> int:
        """Return a hash of this object; typing needs it for annotations of optional rules."""
        return id(self)

    @cached_property
    def data(self) -> dict[str, type[RuleT]]:  # type: ignore[override]
        """All rules by name, in the order in which they run.

        `UserDict`, the base class, looks up its entries in the attribute `data`. Here the attribute
        is computed at the first look-up, because the rules may import slow libraries.

        Raises:
            UserError: Two rules have the same name, or a rule is incomplete.
        """
        rules: dict[str, type[RuleT]] = {}
        for rule in _find_rules(self._base_class):
            name = rule.name()
            # The same class may be found twice, if its module gives it a second name.
            other_rule = rules.get(name, rule)
            if other_rule is not rule:
                raise UserError(
                    f"two rules are called {name!r}: {other_rule.__qualname__} in "
                    f"{other_rule.__module__} and {rule.__qualname__} in {rule.__module__}. "
                    "Rename one"
                )
            rules[name] = rule
        names_in_order = sorted(rules, key=lambda name: (rules[name].rank, name))
        return {name: rules[name] for name in names_in_order}


def _find_rules(base_class: type[RuleT]) -> Iterator[type[RuleT]]:
    """Import all modules in the folder of rules, and yield the rules that they define.

    Users add rules as modules in this folder. A rule is a subclass of the base class; a class whose
    name begins with an underscore is only a base for other rules.

    Args:
        base_class: Edit, for rules that change sentences; or Check, for rules that drop pairs.

    Raises:
        UserError: A rule is incomplete, or a module cannot be imported.
    """
    names = [f"{__name__}.{module.name}" for module in pkgutil.iter_modules(__path__)]
    for name in sorted(names):
        if name == Rule.__module__:
            continue  # This module defines the base classes only.
        yield from _rules_in_module(_import_module(name), base_class)


def _rules_in_module(module: ModuleType, base_class: type[RuleT]) -> Iterator[type[RuleT]]:
    """Yield the rules that a module defines.

    Args:
        module: The module.
        base_class: Edit or Check.

    Raises:
        UserError: A rule is incomplete.
    """
    for value in vars(module).values():
        # Classes that the module imports are among its names, too. They are skipped.
        is_defined_here = inspect.isclass(value) and value.__module__ == module.__name__
        if not is_defined_here or not issubclass(value, base_class):
            continue
        if value.__name__.startswith("_"):
            continue  # A base for other rules.
        _check_complete(value)
        yield value


def find_edit(name: str) -> type[Edit] | None:
    """Return the rule of own code that a name under `clean` means; None for another name.

    Args:
        name: The name, such as `own.no_dashes` for the rule in own/no_dashes.py.

    Raises:
        UserError: The module cannot be imported, or has not exactly one complete rule.
    """
    return _find_own_rule(name, Edit)  # type: ignore[type-abstract]


def find_check(name: str) -> type[Check] | None:
    """Return the rule of own code that a name under `filter` means; None for another name.

    Args:
        name: The name, such as `own.questions` for the rule in own/questions.py.

    Raises:
        UserError: The module cannot be imported, or has not exactly one complete rule.
    """
    return _find_own_rule(name, Check)  # type: ignore[type-abstract]


def _find_own_rule(name: str, base_class: type[RuleT]) -> type[RuleT] | None:
    """Return the rule that a module in own/ defines; None if the name is not of such a module.

    Args:
        name: The name, with or without its fingerprint.
        base_class: Edit, for rules that change sentences; or Check, for rules that drop pairs.

    Raises:
        UserError: The module cannot be imported, or has not exactly one complete rule.
    """
    if not is_own_name(name):
        return None
    module = import_own(name)
    rules = list(_rules_in_module(module, base_class))
    if len(rules) != 1:
        found_names = ", ".join(rule.__name__ for rule in rules) or "none"
        raise UserError(
            f"{module_name(name)} must define one class that inherits from {base_class.__name__}; "
            f"it has: {found_names}. Let the name of a class that is only a base begin with _"
        )
    rule = rules[0]
    rule.own_module = pinned_name(name, Path())
    return rule


def _import_module(name: str) -> ModuleType:
    """Import a module with rules. A user may have written it, so it may contain mistakes.

    Args:
        name: The full name of the module, such as `bleuprint.rules.lengths`.

    Raises:
        UserError: The import fails. The message begins with the file and line of the mistake.
    """
    try:
        return importlib.import_module(name)
    except SyntaxError as error:
        raise UserError(f"{error.filename}:{error.lineno}: {error.msg}") from error
    except Exception as error:  # The code of a user may raise errors of any class.
        raise rule_error(error) from error


def _check_complete(rule: type[Rule]) -> None:
    """Raise UserError if the class of a rule lacks a method, or the decorator @dataclass.

    The methods must also take the arguments with which they are called. The message begins with the
    file and line of the class or method, which a user may have written.
    """
    problem = None
    missing_methods = sorted(getattr(rule, "__abstractmethods__", ()))
    if missing_methods:
        problem = (
            f"has no method {', '.join(missing_methods)}. Add it; or if this is only a base class, "
            "let its name begin with _"
        )
    elif "__dataclass_fields__" not in vars(rule):
        problem = "needs @dataclass(frozen=True) above it"
    if problem is not None:
        raise error_at(rule, f"{rule.__name__} {problem}")
    for base in (Edit, Check, SideCheck):
        if issubclass(rule, base):
            _check_parameters(rule, base)


def _check_parameters(rule: type[Rule], base: type[Rule]) -> None:
    """Raise UserError if a method of a rule cannot be called like the method of its base class.

    Args:
        rule: The class of the rule.
        base: The base class, such as Check. Only the methods that it leaves to rules are checked.
    """
    for name, method_of_base in vars(base).items():
        is_left_to_rules = getattr(method_of_base, "__isabstractmethod__", False)
        if not is_left_to_rules:
            continue
        parameters = list(inspect.signature(method_of_base).parameters)
        method = getattr(rule, name)
        try:
            inspect.signature(method).bind(*parameters)
        except TypeError:
            raise error_at(
                method, f"{rule.__name__}.{name} must take the arguments {', '.join(parameters)}"
            ) from None


EDITS: Mapping[str, type[Edit]] = Rules(Edit)  # type: ignore[type-abstract]
CHECKS: Mapping[str, type[Check]] = Rules(Check)  # type: ignore[type-abstract]
