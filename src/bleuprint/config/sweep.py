"""`over` of a system: a row for each combination of values of some settings, or for random ones.

`over: {train.label_smoothing: [0.0, 0.1], decode.beam: [1, 4]}` makes four rows. With `random: {n:
8, seed: 1}` it makes n, each of whose values is drawn from such a list or from a range, `{min:
0.001, max: 0.01, log: true}`: whole numbers between whole numbers, otherwise three digits.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from random import Random
from typing import Annotated, Any

from annotated_types import Ge, Interval

from bleuprint.runtime.schema import SettingError, build
from bleuprint.runtime.yaml_tree import Items, Place, Tree, as_tree

_Finite = Annotated[float, Interval(ge=-1e300, le=1e300)]
_DRAWS = 1000  # for a combination, until all that there are count as drawn


@dataclass(frozen=True)
class Draws:
    """`n` different combinations, drawn by a generator with this `seed`."""

    n: Annotated[int, Interval(ge=1, le=1000)]
    seed: Annotated[int, Ge(0)]


@dataclass(frozen=True)
class Range:
    """From `min` to `max`, both included, evenly or (`log`) evenly by magnitude."""

    min: _Finite
    max: _Finite
    log: bool = False

    def __post_init__(self) -> None:
        if self.min >= self.max:
            raise SettingError(["max"], f"{self.max:g} is not above min {self.min:g}")
        if self.log and self.min <= 0:
            raise SettingError(["min"], f"{self.min:g}: log needs it above 0")

    def at(self, share: float, whole: bool) -> float:
        """The value at a share, from 0 to below 1, of the range."""
        low, high = self.min, self.max + (whole and not self.log)
        value = low * (high / low) ** share if self.log else low + share * (high - low)
        value = (round(value) if self.log else value // 1) if whole else float(f"{value:.3g}")
        value = min(max(value, self.min), self.max)
        return int(value) if whole else value


def rows(name: str, row: Tree, taken: Collection[Any]) -> dict[str, Tree]:
    """The rows of a system with `over`, by name: its own and the values, 0p002 for 0.002.

    Raises UserError at a mistake in `over`, and if a name is `taken`. What the settings do not take
    is left for validation, in which it has the place of its key in `over`.
    """
    over, place = row["over"], row.places["over"]
    if not isinstance(over, Tree) or not over.keys() - {"random"}:
        raise place.error("not a mapping of settings to lists of values")
    given = over.without("random")
    if other := [key for key in given if not isinstance(key, str)]:
        raise over.places[other[0]].error(f"{other[0]!r} is no setting, such as decode.beam")
    if "random" in over:
        found = _drawn(given, over)
    else:
        found = [*product(*(_listed(key, value, over) for key, value in given.items()))]
    base = row.without("over")
    own = [name for name, it in as_tree(row.get("corpora")).items() if isinstance(it, Tree)]
    made: dict[str, Tree] = {}
    for values in found:
        title = "-".join((str(name), *map(_spelled, values)))
        if title in (*taken, *made):
            raise place.error(f"two systems are called {title}")
        made[title] = base
        for key, value in zip(given, values, strict=True):
            paths = [keys := key.split("."), *(["corpora", corpus, *keys] for corpus in own)]
            for path in paths if keys[0] != "corpora" else [keys]:
                made[title] = _with(made[title], path, value, over.places[key])
    return made


def _listed(key: str, values: Any, over: Tree) -> list[Any]:
    """The values of a setting; raises UserError unless they are several, and each another."""
    place = over.places[key]
    if isinstance(values, Tree) and "random" not in over:
        raise place.error("a range needs draws: random: {n: 8, seed: 1} beside it in over")
    if not isinstance(values, Items):
        raise place.error(f"{values!r} is not a list of values: [...]")
    if len(values) < 2:
        raise place.error(f"{list(values)}: one value is no sweep; give several")
    for position, value in enumerate(values):
        if not isinstance(value, str | bool | int | float):
            raise place.error(f"{value!r} is not a number, text, true or false")
        if value in values[:position]:  # 1 and 1.0, too
            raise place.error(f"{value!r} is there twice")
    return list(values)


def _drawn(given: Mapping[str, Any], over: Tree) -> list[tuple[Any, ...]]:
    """Combinations of values, none of them twice."""
    path, places = over.places["random"].path, over.places
    draws = build(dict[str, Draws], Tree({"random": over["random"]}, places), path)["random"]
    ranges = Tree({k: v for k, v in given.items() if isinstance(v, Tree)}, places)
    known = build(dict[str, Range], ranges, path)
    lists = {k: _listed(k, v, over) for k, v in given.items() if k not in known}
    # random() alone is promised to be the same in every version of Python
    generator = Random(draws.seed)

    def drawn(key: str) -> Any:
        share = generator.random()
        if key in lists:
            return lists[key][int(share * len(lists[key]))]
        whole = all(isinstance(given[key][end], int) for end in ("min", "max"))
        return known[key].at(share, whole)

    found: dict[tuple[Any, ...], None] = {}
    for _ in range(_DRAWS * draws.n):
        found[tuple(drawn(key) for key in given)] = None
        if len(found) == draws.n:
            return [*found]
    there = f"{draws.n}: there are no more than {len(found)} combinations"
    raise over["random"].places["n"].error(there)


def _spelled(value: Any) -> str:
    """A value as a part of a name: a dot, which names of stages cannot have, is a p."""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return re.sub("[^A-Za-z0-9_-]", "", re.sub(r"(?<=\d)\.(?=\d)", "p", text))


def _with(tree: Tree, keys: Sequence[str], value: Any, place: Place) -> Tree:
    """`tree` with another value at the keys, which stands at `place`, in mappings that stay."""
    key, *rest = keys
    if rest:
        value = _with(as_tree(tree.get(key)), rest, value, place)
        place = tree.places.get(key, place)
    return tree.put(key, value, place)
