"""The one way in which settings of params.yaml are merged: mapping by mapping, and null removes.

Five things in params.yaml take settings from somewhere and change a part of them: an entry with
`like`, a system on a single corpus, a corpus with `from`, a text whose `source` or `target` is
changed, and a direction. All of them use the function below.
"""

from bleuprint.runtime.schema import describe_unknown_key
from bleuprint.runtime.yaml_tree import LocatedMapping


def merge_mappings(base: LocatedMapping, overrides: LocatedMapping) -> LocatedMapping:
    """Merge settings into other settings, as `like` in params.yaml does.

    `{beam: 8}` merged into `{beam: 4, length_penalty: {alpha: 1}}` changes only the beam. If both
    have a mapping under a key, these two mappings are merged in the same way. Each value keeps its
    line in the YAML file (`locations`), for error messages.

    Args:
        base: The settings to start from; not changed.
        overrides: The settings to add to `base`, or to replace its settings with. The value null
            removes a setting of `base`.

    Raises:
        UserError: A value is null, but `base` has no such setting to remove.
    """
    entries = dict(base)
    locations = dict(base.locations)
    for key, value in overrides.items():
        if value is None:
            if key not in base:  # Probably a misspelled key.
                hint = describe_unknown_key(key, base).removeprefix("unknown key. ")
                raise overrides.locations[key].error(
                    f"null removes a setting, but this one is not set. {hint}"
                )
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
