"""Cleaning and filtering rules; every module of this folder is looked through for them.

Every `Edit` and `Check` that is defined there is a rule, but for those whose names begin with _.
"""

import importlib
import inspect
import pkgutil
import traceback
from collections.abc import Iterator, Mapping
from functools import cached_property
from types import ModuleType
from typing import Generic, TypeVar, get_type_hints

from bleuprint.rules.rule import Check, Edit, Rule
from bleuprint.runtime.errors import UserError

R = TypeVar("R", bound=Rule)


class Rules(Mapping[str, type[R]], Generic[R]):
    """The rules of one kind by name, in the order in which they run.

    They are looked for when they are first asked for, which raises UserError if two have one name,
    or one is not finished.
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
    """The rules of a kind in the modules here, but not what all are built upon."""
    names = {f"{__name__}.{module.name}" for module in pkgutil.iter_modules(__path__)}
    for name in sorted(names - {Rule.__module__}):
        for value in vars(_loaded(name)).values():
            own = inspect.isclass(value) and value.__module__ == name
            if own and issubclass(value, kind) and not value.__name__.startswith("_"):
                if lacking := _lacking(value):
                    place = f"{inspect.getsourcefile(value)}:{inspect.getsourcelines(value)[1]}"
                    raise UserError(f"{place}: {value.__name__} {lacking}")
                yield value


def _loaded(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except SyntaxError as error:
        raise UserError(f"{error.filename}:{error.lineno}: {error.msg}") from error
    except Exception as error:  # whatever it is, it is a mistake in one of these files
        frames = traceback.extract_tb(error.__traceback__)
        place = [frame for frame in frames if frame.filename.startswith(__path__[0])][-1]
        problem = f"{type(error).__name__}: {error}"
        raise UserError(f"{place.filename}:{place.lineno}: {problem}") from error


def _lacking(rule: type[Rule]) -> str | None:
    """What is missing that would make a class a rule."""
    if missing := ", ".join(sorted(getattr(rule, "__abstractmethods__", ()))):
        return f"has no method {missing}; what is no rule itself begins with _"
    if "__dataclass_fields__" not in vars(rule):
        return "needs @dataclass(frozen=True) above it"
    try:
        get_type_hints(rule)
    except NameError as error:  # of a type that is written as text
        return f"has a setting of unknown type: {error}"
    return None


EDITS: Mapping[str, type[Edit]] = Rules(Edit)  # type: ignore[type-abstract]
CHECKS: Mapping[str, type[Check]] = Rules(Check)  # type: ignore[type-abstract]
