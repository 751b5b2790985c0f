"""params.yaml with every entry in full: what entries take from other entries is merged into them.

- `like: NAME` gives a system or a corpus the settings of the entry NAME.
- `from: NAME` gives a corpus the texts of corpora/NAME.yaml; see described_corpus.py.
- `directions` of a corpus give it texts in several directions; see
  joined_directions.py.
- `corpora` of a system lists the corpora that it is trained on, with the settings that differ
  there.

merge.py says how settings are merged. What top-level keys give to entries, such as the vocabulary
of another corpus, is in references.py.
"""

from collections.abc import Collection, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from bleuprint.config.described_corpus import with_described_texts
from bleuprint.config.joined_directions import join_directions, languages_by_side
from bleuprint.config.merge import merge_mappings
from bleuprint.config.named_texts import with_named_texts
from bleuprint.config.pretrained import with_pretrained_pieces
from bleuprint.config.references import LINKS, link_corpora, link_systems
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.schema import list_known_names
from bleuprint.runtime.yaml_tree import LocatedMapping, Location, as_mapping


def expand_entries(
    document: LocatedMapping, path: Path, root: Path
) -> tuple[LocatedMapping, list[UserError]]:
    """Fill in all settings that corpora and systems of params.yaml take from elsewhere.

    A system or corpus may take settings from another one (`like`). A corpus may also take texts
    from a file (`from`), and the vocabulary of another corpus. This fails, for example, if the
    other entry does not exist. Wrong values are found later, by validation.

    Args:
        document: The content of params.yaml.
        path: The path of params.yaml, for messages.
        root: The folder that contains corpora/.

    Returns:
        The content, and an error for each corpus or system that cannot be filled in; the content
        does not contain these. In the content, `runs` replaces `systems`: it has the settings of
        each system on each corpus.
    """
    errors: list[UserError] = []
    # Systems and links between entries are removed: their settings are filled in below.
    expanded = document.without("systems", *LINKS)
    if "corpora" in document:
        corpora, corpus_errors = _expand_corpora(document, root)
        expanded = expanded.with_value("corpora", corpora, document.locations["corpora"])
        errors += corpus_errors
    runs, system_errors = _expand_systems(document)
    errors += system_errors
    systems_location = document.locations.get("systems", Location(path, "systems"))
    return expanded.with_value("runs", runs, systems_location), errors


def _expand_corpora(document: LocatedMapping, root: Path) -> tuple[Any, list[UserError]]:
    """Fill in the settings that corpora take from other corpora and from files.

    Args:
        document: The content of params.yaml.
        root: The folder that contains corpora/, whose files describe texts.

    Returns:
        The corpora by name, and the errors. A corpus with an error is missing.
    """
    written_corpora = document["corpora"]
    if not isinstance(written_corpora, LocatedMapping):
        return written_corpora, []  # Validation refuses it later.
    errors = []
    expanded = {}
    for name in written_corpora:
        try:
            corpus = _with_inherited_settings(written_corpora, name)
            corpus = join_directions(corpus, partial(_with_texts, root=root))
            expanded[name] = with_pretrained_pieces(corpus)
        except UserError as error:
            errors.append(error)
    corpora = LocatedMapping(expanded, written_corpora.locations)
    linked_corpora, vocabulary_errors = link_corpora(corpora, document, languages_by_side)
    return linked_corpora, errors + vocabulary_errors


def _with_texts(corpus: Any, root: Path) -> Any:
    """Return a corpus of one language pair with all its texts, each with the names of its files.

    Args:
        corpus: The corpus as params.yaml writes it.
        root: The folder that contains corpora/, whose files describe texts.
    """
    return with_named_texts(with_described_texts(corpus, root))


def _expand_systems(document: LocatedMapping) -> tuple[Any, list[UserError]]:
    """Return the settings of each system on each corpus, with the settings it takes from elsewhere.

    Args:
        document: The content of params.yaml.

    Returns:
        The settings by system and corpus, and the errors. A system with an error is missing.
    """
    written_systems = document.get("systems", LocatedMapping({}, {}))
    if not isinstance(written_systems, LocatedMapping):
        return written_systems, []  # Validation refuses it later.
    written_corpora = as_mapping(document.get("corpora"))
    corpus_names = [name for name in written_corpora if isinstance(name, str)]
    # Errors are listed by step, not by system: first errors of all `like`, then of all `corpora`.
    like_errors = []
    corpora_errors = []
    runs = {}
    for name in written_systems:
        try:
            system = _with_inherited_settings(written_systems, name)
        except UserError as error:
            like_errors.append(error)
            continue
        try:
            location = written_systems.locations[name]
            runs[name] = _settings_by_corpus(system, corpus_names, location)
        except UserError as error:
            corpora_errors.append(error)
    located_runs = LocatedMapping(runs, written_systems.locations)
    linked_runs, init_from_errors = link_systems(located_runs, document)
    return linked_runs, like_errors + corpora_errors + init_from_errors


def _with_inherited_settings(
    entries: LocatedMapping, name: str, inheriting_names: Sequence[str] = ()
) -> Any:
    """Return an entry of params.yaml with the settings that it inherits by `like`.

    `like: base` takes the settings of the entry `base`; the entry's own settings are merged into
    them. `base` may have a `like` itself, so the function calls itself for `base`. The mappings
    also store the line of each value in the YAML file (`locations`), for error messages.

    Args:
        entries: All corpora, or all systems, as params.yaml writes them.
        name: The name of the entry.
        inheriting_names: In a recursive call, the chain of entries that inherit from this one. It
            shows whether `like` leads back to an entry in the chain.

    Raises:
        UserError: `like` names an entry that does not exist, or leads back to the entry itself.
    """
    entry = entries[name]
    if not isinstance(entry, LocatedMapping) or "like" not in entry:
        return entry
    base_name = entry["like"]
    location = entry.locations["like"]
    if not isinstance(base_name, str) or base_name not in entries:
        raise location.error(f"no entry {base_name!r} here; {list_known_names(base_name, entries)}")
    names = [*inheriting_names, name]
    if base_name in names:
        cycle_start = names.index(base_name)
        cycle = [*names[cycle_start:], base_name]
        raise location.error(f"`like` leads in a circle: {' -> '.join(cycle)}")
    base = _with_inherited_settings(entries, base_name, names)
    if not isinstance(base, LocatedMapping):
        return base  # Validation refuses it later.
    return merge_mappings(base, entry.without("like"))


def _settings_by_corpus(system: Any, corpus_names: Sequence[str], location: Location) -> Any:
    """Return the settings of a system on each corpus of the experiment.

    By default a system is trained on all corpora, with the same settings. It may list some corpora
    instead, with the settings that differ there: `corpora: {news: {}, talks: {train: {...}}}`. The
    mappings also store the line of each value in the YAML file (`locations`), for error messages.

    Args:
        system: The settings of the system.
        corpus_names: The names of all corpora.
        location: Where params.yaml has the system, for messages.

    Returns:
        The settings by corpus; None for a corpus on which the system is not trained.

    Raises:
        UserError: The list of corpora is empty, or names a corpus that does not exist.
    """
    if not isinstance(system, LocatedMapping):
        return system  # Validation refuses it later.
    settings = system.without("corpora")
    locations = dict.fromkeys(corpus_names, location)
    if "corpora" not in system:
        return LocatedMapping(dict.fromkeys(corpus_names, settings), locations)
    overrides_by_corpus = as_mapping(system["corpora"])
    if not overrides_by_corpus:
        raise system.locations["corpora"].error(
            "names no corpora. Remove it to train on all, or list some, as in {NAME: {}}"
        )
    _check_listed_corpora(overrides_by_corpus, corpus_names)
    runs: dict[str, LocatedMapping | None] = {}
    for corpus_name in corpus_names:
        overrides = overrides_by_corpus.get(corpus_name)
        if overrides is None:
            # The system does not list the corpus, or excludes it: `corpora: {talks: null}`.
            runs[corpus_name] = None
        else:
            runs[corpus_name] = merge_mappings(settings, overrides)
    return LocatedMapping(runs, locations | overrides_by_corpus.locations)


def _check_listed_corpora(
    overrides_by_corpus: LocatedMapping, corpus_names: Collection[str]
) -> None:
    """Raise UserError if a system lists an unknown corpus, or has no mapping of settings for one.

    Args:
        overrides_by_corpus: The setting `corpora` of the system: by corpus, the settings that
            differ there, or null to exclude the corpus.
        corpus_names: The names of all corpora.
    """
    for name, overrides in overrides_by_corpus.items():
        location: Location = overrides_by_corpus.locations[name]
        if name not in corpus_names:
            raise location.error(f"no such corpus; {list_known_names(name, corpus_names)}")
        if overrides is not None and not isinstance(overrides, LocatedMapping):
            raise location.error("is not a mapping. Write {} to use the same settings")
