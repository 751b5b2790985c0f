"""Cleaning and filtering rules; every module of this folder is looked through for them."""

import importlib
import inspect
import pkgutil
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Generic, TypeVar

from bleuprint.errors import UserError
from bleuprint.rules.rule import Check, Edit, Rule

R = TypeVar("R", bound=Rule)


class Rules(Mapping[str, type[R]], Generic[R]):
    """The rules of one kind by name, in the order in which they run.

    They are looked for when they are first asked for, which raises UserError if two have one name.
    """

    def __init__(self, kind: type[R]) -> None:
        self._kind = kind

    def __getitem__(self, name: str) -> type[R]:
        return self._by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._by_name)

    @cached_property
    def _by_name(self) -> dict[str, type[R]]:
        found: dict[str, type[R]] = {}
        for rule in _found_here(self._kind):
            if (other := found.setdefault(rule.name(), rule)) is not rule:
                raise UserError(
                    f"two rules are called {rule.name()!r}: {other.__qualname__} in "
                    f"{other.__module__} and {rule.__qualname__} in {rule.__module__}"
                )
        return dict(sorted(found.items(), key=lambda entry: (entry[1].rank, entry[0])))


def _found_here(kind: type[R]) -> Iterator[type[R]]:
    """The rules of a kind in the modules here: what can be made, not what they are built upon."""
    for module in sorted(pkgutil.iter_modules(__path__), key=lambda module: module.name):
        loaded = importlib.import_module(f"{__name__}.{module.name}")
        for value in vars(loaded).values():
            rule = inspect.isclass(value) and issubclass(value, kind)
            if rule and not inspect.isabstract(value):
                yield value


EDITS: Mapping[str, type[Edit]] = Rules(Edit)  # type: ignore[type-abstract]
CHECKS: Mapping[str, type[Check]] = Rules(Check)  # type: ignore[type-abstract]
