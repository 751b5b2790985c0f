"""params.yaml with its entries whole: `like`, `from`, and what a system has on single corpora.

`like: NAME` gives an entry all that the entry NAME has; what it says itself is merged into that,
mapping by mapping, and `null` removes a key. `from: NAME` gives a corpus the files that
corpora/NAME.yaml describes by language, with the licenses that the remaining texts name; what it
says itself, by language or as `source` and `target`, is merged into them. `corpora` of a system
names the corpora that it is trained on, each with what differs there, merged likewise. The result
has `runs`, the settings of each system by corpus, in place of `systems`.

What top-level keys give to entries, such as the vocabulary of another corpus, is in references.py.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

from bleuprint.config.corpus_files import Text
from bleuprint.config.directions import joined, languages_by_side
from bleuprint.config.references import LINKS, link_corpora, link_systems
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.schema import describe_unknown_key, list_known_names
from bleuprint.runtime.yaml_tree import LocatedMapping, Location, as_mapping, load_located_yaml

_LANGUAGE = re.compile("[a-z]{2,3}")
_TEXT = {each.name for each in fields(Text)}


def expand(
    document: LocatedMapping, path: Path, root: Path
) -> tuple[LocatedMapping, list[UserError]]:
    """`document`, the content of params.yaml at `path`, with whole entries, and errors.

    `root` has the folder corpora/. Entries with an error are left out: `like` and `from` of unknown
    names, a circle, `null` for a key that is not there. Other mistakes are left for validation.
    """
    places, whole, errors = dict(document.locations), dict(document), list[UserError]()

    def each(entries: Any, entry: Callable[[str], Any]) -> Any:
        if not isinstance(entries, LocatedMapping):
            return entries
        found = {}
        for name in entries:
            try:
                found[name] = entry(name)
            except UserError as error:
                errors.append(error)
        return LocatedMapping(found, entries.locations)

    corpora: Any = whole.get("corpora")
    systems: Any = whole.pop("systems", LocatedMapping({}, {}))
    for key in LINKS:
        whole.pop(key, None)
    names = [it for it in as_mapping(corpora) if isinstance(it, str)]
    if "corpora" in whole:
        with_files = partial(_with_files, root=root)
        corpora = each(corpora, lambda it: joined(_inherited(corpora, it), with_files, merged))
        whole["corpora"], wrong_corpora = link_corpora(corpora, document, languages_by_side)
        errors += wrong_corpora
    if isinstance(systems, LocatedMapping):
        written = systems
        systems = each(written, lambda it: _inherited(written, it))
    runs = each(systems, lambda it: _runs(systems[it], names, systems.locations[it]))
    whole["runs"] = runs
    if isinstance(runs, LocatedMapping):
        whole["runs"], wrong_systems = link_systems(runs, document)
        errors += wrong_systems
    places["runs"] = places.get("systems", Location(path, "systems"))
    return LocatedMapping(whole, places), errors


def merged(base: LocatedMapping, own: LocatedMapping) -> LocatedMapping:
    """`base` with the entries of `own`, mapping by mapping; null removes an entry of `base`."""
    entries, places = dict(base), dict(base.locations)
    for name, value in own.items():
        if value is None:
            if name not in base:
                _, _, known = describe_unknown_key(name, base).partition("; ")
                raise own.locations[name].error(f"null, but nothing to remove: {known}")
            del entries[name], places[name]
            continue
        inner = entries.get(name)
        entries[name] = (
            merged(inner, value)
            if isinstance(inner, LocatedMapping) and isinstance(value, LocatedMapping)
            else value
        )
        places[name] = own.locations[name]
    return LocatedMapping(entries, places)


def _inherited(entries: LocatedMapping, name: str, chain: tuple[str, ...] = ()) -> Any:
    """An entry with what it has by `like`; `chain`: the entries that have it by theirs."""
    own = entries[name]
    if not isinstance(own, LocatedMapping) or "like" not in own:
        return own
    base, place = own["like"], own.locations["like"]
    if not isinstance(base, str) or base not in entries:
        raise place.error(f"no entry {base!r} here; {list_known_names(base, [*map(str, entries)])}")
    if base in (chain := (*chain, name)):
        circle = " -> ".join((*chain[chain.index(base) :], base))
        raise place.error(f"a circle of entries, each like the next: {circle}")
    whole = _inherited(entries, base, chain)
    if not isinstance(whole, LocatedMapping):
        return whole  # which validation refuses
    return merged(whole, own.without("like"))


def _runs(row: Any, corpora: list[str], at: Location) -> Any:
    """A system's settings by corpus, None where it is not trained; `at`: where the row stands."""
    if not isinstance(row, LocatedMapping):
        return row
    own, given = row.without("corpora"), row.get("corpora")
    if "corpora" not in row:
        return LocatedMapping(dict.fromkeys(corpora, own), dict.fromkeys(corpora, at))
    place = row.locations["corpora"]
    if not isinstance(given, LocatedMapping) or not given:
        raise place.error("names no corpora: leave it out for all, or give a mapping by name")
    for name, different in given.items():
        if name not in corpora:
            raise given.locations[name].error(f"no such corpus; {list_known_names(name, corpora)}")
        if different is not None and not isinstance(different, LocatedMapping):
            raise given.locations[name].error("not a mapping; {} for the same settings")
    trained = {name: each for name, each in given.items() if each is not None}
    runs = {name: merged(own, trained[name]) if name in trained else None for name in corpora}
    return LocatedMapping(runs, dict.fromkeys(corpora, at) | given.locations)


def _with_files(entry: Any, root: Path) -> Any:
    """A corpus with the files that `from` names, and its own merged into them."""
    if not isinstance(entry, LocatedMapping) or "from" not in entry:
        return entry
    name, place, folder = entry["from"], entry.locations["from"], root / "corpora"
    path = folder / f"{name}.yaml"
    if not isinstance(name, str) or "/" in name or not path.is_file():
        there = sorted(file.stem for file in folder.glob("*.yaml"))
        raise place.error(f"no file {path}; {list_known_names(name, there)}")
    described = load_located_yaml(path)
    if not isinstance(described, LocatedMapping):
        raise Location(path).error("is not a mapping of license_and_citation and files")
    for side in ("source", "target"):
        if not isinstance(entry.get(side), str):
            raise place.error(f"needs {side}, a language, beside it")
    sides = {entry[side]: side for side in ("source", "target")}
    if len(sides) == 1:
        raise entry.locations["target"].error(f"{entry['target']!r} is the source, too")
    return _by_side(merged(described, entry.without("from")), sides)


def _by_side(corpus: LocatedMapping, sides: Mapping[Any, str]) -> LocatedMapping:  # noqa: C901
    """A corpus with its files by side instead of by language, and the licenses that texts name.

    `sides`: source and target, by language. A text that names no license has the only one there is.
    """
    licenses, files = corpus.get("license_and_citation"), corpus.get("files")
    if not isinstance(licenses, LocatedMapping) or not isinstance(files, LocatedMapping):
        return corpus
    named: set[Any] = set()

    def text(part: Any, place: Location) -> Any:
        if not isinstance(part, LocatedMapping):
            return part
        entries, places = dict(part), dict(part.locations)
        languages = [key for key in part if key not in _TEXT and _LANGUAGE.fullmatch(str(key))]
        if missing := [each for each in sides if languages and each not in languages]:
            there, by = ", ".join(languages), corpus.locations[sides[missing[0]]]
            raise place.error(f"has no text in {missing[0]!r} ({by}); there are: {there}")
        for language in languages:
            file = entries.pop(language)
            if side := sides.get(language):
                if isinstance(file, LocatedMapping) and isinstance(
                    own := entries.get(side), LocatedMapping
                ):
                    file = merged(file, own)
                entries[side] = file
                places.setdefault(side, places[language])
        if len(licenses) == 1:
            only = next(iter(licenses))
            entries = {"license_and_citation": only, **entries}
            places.setdefault("license_and_citation", licenses.locations[only])
        named.add(str(entries.get("license_and_citation")))
        return LocatedMapping(entries, places)

    def parts(texts: Any) -> Any:
        if not isinstance(texts, LocatedMapping):
            return texts
        return LocatedMapping(
            {k: text(v, texts.locations[k]) for k, v in texts.items()}, texts.locations
        )

    sets = {name: parts(files[name]) for name in ("train", "valid") if name in files}
    if isinstance(tests := files.get("tests"), LocatedMapping):
        sets["tests"] = LocatedMapping({k: parts(v) for k, v in tests.items()}, tests.locations)
    changed = {
        "license_and_citation": licenses.only(named),
        "files": LocatedMapping({**files, **sets}, files.locations),
    }
    return LocatedMapping({**corpus, **changed}, corpus.locations)
