"""The recipes' settings by name, each loaded when a test first asks for it."""

from collections.abc import Mapping
from functools import cache

from bleuprint.config.experiment import Settings, load_settings
from root import ROOT

PATHS = {path.stem: path for path in sorted((ROOT / "recipes").glob("*.yaml"))}


class Recipes(Mapping[str, Settings]):
    """The settings of all recipes by name."""

    def __getitem__(self, name):
        return _load(name)

    def __iter__(self):
        return iter(PATHS)

    def __len__(self):
        return len(PATHS)


@cache
def _load(name):
    """Load the settings of a recipe."""
    return load_settings(PATHS[name])


SETTINGS = Recipes()
