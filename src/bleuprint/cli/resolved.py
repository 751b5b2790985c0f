"""The lines of `bleuprint check --resolved NAME`: its settings, and where each comes from."""

from collections.abc import Iterator
from pathlib import Path

from bleuprint.config.experiment import load, load_entries
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.flatten import dotted
from bleuprint.runtime.yaml_tree import Tree


def lines(name: str, path: Path = Path("params.yaml")) -> Iterator[str]:
    """Settings of a corpus or a system by dotted key; then file, line and key.

    Those of a system that differ by corpus come once for each. Raises UserError at a mistake in the
    file, or if it has no such corpus or system.
    """
    settings, (entries, _) = load(path), load_entries(path)
    if name not in (known := [*settings.cells, *settings.corpora]):
        raise UserError(f"{path}: no system or corpus {name!r}; there are: {', '.join(known)}")
    if name in settings.corpora:
        for key, value in dotted(settings.corpora[name]).items():
            place = _place(entries["corpora"][name], key.split("."))
            yield f"{key}: {' '.join(value.split())}  # {place}"
        return
    first = next(iter(settings.on_corpora(name)))
    for where, value in settings.dotted(name).items():
        corpus, _, key = where.partition(".")
        given = (corpus, key) if corpus in settings.corpora else (first, where)
        place = _place(entries["cells"][name], [given[0], *given[1].split(".")])
        yield f"{where}: {value}  # {place}"


def _place(tree: Tree, keys: list[str]) -> str:
    """Where the value of these keys stands; a default if they lead out of the file."""
    *parents, last = keys
    for key in parents:
        inner = tree.get(key)
        if not isinstance(inner, Tree):
            return "default"
        tree = inner
    return str(tree.places[last]) if last in tree else "default"
