"""The settings in which two systems differ."""

from bleuprint.config.system import System
from bleuprint.runtime.flatten import dotted


def changes(base: System, row: System) -> set[str]:
    """Dotted keys, such as train.keep.last."""
    before, after = dotted(base), dotted(row)
    return {key for key in before | after if before.get(key) != after.get(key)}
