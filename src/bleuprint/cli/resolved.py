"""The lines of `bleuprint check --resolved SYSTEM`: its settings, and where each comes from."""

from collections.abc import Iterator
from pathlib import Path

from bleuprint.config.experiment import load
from bleuprint.config.inherit import expand
from bleuprint.runtime.yaml_tree import Tree, load_tree


def lines(system: str, path: Path = Path("params.yaml")) -> Iterator[str]:
    """Settings by dotted key, those that differ by corpus once for each; then file, line and key.

    Raises UserError at a mistake in the file, or if it has no such system.
    """
    settings = load(path)
    cells = expand(load_tree(path), path, path.parent)["cells"]
    first = next(iter(settings.on_corpora(system)))
    for name, value in settings.dotted(system).items():
        corpus, _, key = name.partition(".")
        given = (corpus, key) if corpus in settings.corpora else (first, name)
        yield f"{name}: {value}  # {_place(cells[system], [given[0], *given[1].split('.')])}"


def _place(tree: Tree, keys: list[str]) -> str:
    """Where the value of these keys stands; a default if they lead out of the file."""
    *parents, last = keys
    for key in parents:
        inner = tree.get(key)
        if not isinstance(inner, Tree):
            return "default"
        tree = inner
    return str(tree.places[last]) if last in tree else "default"
