"""The one way in which settings of params.yaml are merged: mapping by mapping, and null removes.

Five things in params.yaml take settings from somewhere and change a part of them: an entry with
`like`, a system on a single corpus, a corpus with `from`, a text whose `source` or `target` is
changed, and a direction. All of them use the function below.
"""

from bleuprint.runtime.schema import describe_unknown_key
from bleuprint.runtime.yaml_tree import LocatedMapping


def merge_mappings(base: LocatedMapping, overrides: LocatedMapping) -> LocatedMapping:
    """Return a mapping with some of its entries replaced, added or removed.

    If both mappings have a mapping under a key, the two are merged in the same way. Any other value
    replaces the value of `base`.

    Args:
        base: The mapping to start from.
        overrides: The entries to replace or add. The value null removes the entry from `base`.

    Raises:
        UserError: An entry is null, and `base` has no such entry to remove.
    """
    entries = dict(base)
    locations = dict(base.locations)
    for key, value in overrides.items():
        if value is None:
            if key not in base:
                hint = describe_unknown_key(key, base).removeprefix("unknown key; ")
                raise overrides.locations[key].error(f"null, but nothing to remove: {hint}")
            del entries[key]
            del locations[key]
            continue
        base_value = entries.get(key)
        if isinstance(base_value, LocatedMapping) and isinstance(value, LocatedMapping):
            entries[key] = merge_mappings(base_value, value)
        else:
            entries[key] = value
        locations[key] = overrides.locations[key]
    return LocatedMapping(entries, locations)
