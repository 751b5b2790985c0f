"""The references between entries of params.yaml: what a corpus or a training needs of others.

A corpus may have the vocabulary of another corpus, and texts that a system translates. A training
needs its corpus, and may start from the weights of another training. Part of the settings in
`experiment.py`.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path
from typing import Any

from bleuprint.config import paths
from bleuprint.config.corpus import Corpus
from bleuprint.config.init_from import InitFrom, fresh_start_file, init_weights_folder, with_parents
from bleuprint.config.synthetic import SyntheticText, check_synthetic_texts, synthetic_folder
from bleuprint.config.system import System
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.schema import SettingError, list_known_names
from bleuprint.runtime.yaml_tree import LocatedMapping, as_mapping

# The top-level keys of params.yaml by which entries take something of others, with the type of
# their values. DVC reads them, without inheritance, and draws the order of its stages from them.
LINKS: dict[str, type] = {"init_from": InitFrom, "vocabularies": str}
# The settings of trained systems by system and corpus; None where a system is not trained.
_Runs = Mapping[str, Mapping[str, System | None]]


@dataclass(frozen=True)
class Entry:
    """A corpus, the trainings of a system on a corpus, or a `folder` of another project."""

    corpus: str = ""
    system: str = ""
    folder: str = ""

    def __str__(self) -> str:
        if self.folder:
            return self.folder
        return f"{self.system} on {self.corpus}" if self.system else self.corpus


@dataclass(frozen=True)
class Reference:
    """A reference from an entry to one that it needs.

    Attributes:
        entry: The corpus or the trainings that need something.
        needed: What they need.
        keys: The keys of the setting that says so, for messages; none for a training's corpus.
        outputs: What stages write for it, into folders that the entry's own stages depend on. From
            these folders DVC learns the order of the stages.
    """

    entry: Entry
    needed: Entry
    keys: tuple[str, ...] = ()
    outputs: tuple[Path, ...] = ()


def references(
    corpora: Mapping[str, Corpus],
    runs: _Runs,
    synthetic: Mapping[str, SyntheticText],
    seeds: Collection[int],
) -> list[Reference]:
    """Return all references of an experiment.

    Args:
        corpora: The corpora by name.
        runs: The settings of trained systems by system and corpus.
        synthetic: The texts that systems translate, by name.
        seeds: The seeds of the trainings.
    """
    found = []
    for name, corpus in corpora.items():
        other = corpus.vocabulary.of
        if other is not None:
            reference = Reference(
                entry=Entry(name),
                needed=Entry(other),
                keys=("corpora", name, "vocabulary", "of"),
                outputs=(paths.vocabulary_folder(name, other),),
            )
            found.append(reference)
    for name, text in synthetic.items():
        reference = Reference(
            entry=Entry(text.part_of),
            needed=Entry(text.corpus, text.system),
            keys=("synthetic", name),
            outputs=(synthetic_folder(text.part_of, name),),
        )
        found.append(reference)
    for system, row in runs.items():
        for corpus_name, run in row.items():
            training = Entry(corpus_name, system)
            found.append(Reference(entry=training, needed=Entry(corpus_name)))
            if run is not None and run.train.init_from is not None:
                found.append(_reference_to_parent(training, run.train.init_from, seeds))
    return found


def _reference_to_parent(training: Entry, parent: InitFrom, seeds: Collection[int]) -> Reference:
    """The reference of a training to the weights that it starts from."""
    keys = ("runs", training.system, training.corpus, "train", "init_from")
    if parent.folder is not None:
        return Reference(entry=training, needed=Entry(folder=parent.folder), keys=keys)
    assert parent.corpus is not None and parent.system is not None, "checked by InitFrom"
    return Reference(
        entry=training,
        needed=Entry(parent.corpus, parent.system),
        keys=keys,
        outputs=tuple(init_weights_folder(training.system, seed) for seed in seeds),
    )


def needed_by(entry: Entry, references: Sequence[Reference]) -> set[Entry]:
    """Return an entry and all that it needs, directly or through others."""
    found = {entry}
    waiting = [entry]
    while waiting:
        current = waiting.pop()
        for reference in references:
            if reference.entry == current and reference.needed not in found:
                found.add(reference.needed)
                waiting.append(reference.needed)
    return found


def check_references(
    corpora: Mapping[str, Corpus],
    runs: _Runs,
    synthetic: Mapping[str, SyntheticText],
    not_trained: Collection[str],
) -> None:
    """Raise SettingError at a cycle of references, and at a reference to what does not exist.

    Args:
        corpora: The corpora by name.
        runs: The settings of trained systems by system and corpus.
        synthetic: The texts that systems translate, by name.
        not_trained: The names of systems without a model here.
    """
    # The outputs of references depend on seeds, but they are not looked at here.
    all_references = references(corpora, runs, synthetic, seeds=())
    for reference in all_references:
        if reference.needed.system in not_trained:
            message = f"{reference.needed.system} is an external system, without a model here"
            raise SettingError([*reference.keys, "system"], message)
    check_synthetic_texts(corpora, synthetic)
    # before models are compared, which would be a puzzling message about a cycle
    _check_cycle(all_references)
    for reference in all_references:
        if reference.needed.system:
            _check_training(reference, runs)


def _check_training(reference: Reference, runs: _Runs) -> None:
    """Raise SettingError if a needed training does not exist, or a model cannot start from it."""
    keys = list(reference.keys)
    needed = reference.needed
    if needed.system not in runs:
        message = f"no system {needed.system!r}; {list_known_names(needed.system, runs)}"
        raise SettingError([*keys, "system"], message)
    row = runs[needed.system]
    parent = row.get(needed.corpus)
    if parent is None:
        trained = [name for name, run in row.items() if run is not None]
        message = f"{needed.system} is not trained on {needed.corpus!r}; "
        raise SettingError([*keys, "corpus"], message + list_known_names(needed.corpus, trained))
    if not reference.entry.system:
        return
    if parent.average.ensemble:
        message = f"{needed.system} is an ensemble (average.ensemble), not one model"
        raise SettingError(keys, message)
    child = runs[reference.entry.system][reference.entry.corpus]
    assert child is not None, "a reference of a training that exists"
    difference = child.model.difference(parent.model)
    if difference:
        raise SettingError(keys, difference)


def _check_cycle(references: Sequence[Reference]) -> None:
    """Raise SettingError if an entry needs itself, directly or through others."""
    needed_by_entry: dict[Entry, set[Entry]] = defaultdict(set)
    keys_by_reference: dict[tuple[Entry, Entry], tuple[str, ...]] = {}
    for reference in references:
        needed_by_entry[reference.entry].add(reference.needed)
        keys_by_reference[reference.entry, reference.needed] = reference.keys
    try:
        TopologicalSorter(needed_by_entry).prepare()
    except CycleError as error:
        # graphlib lists a cycle from what is needed to what needs it.
        cycle: list[Entry] = list(reversed(error.args[1]))
        keys = _first_setting(cycle, keys_by_reference)
        names = " -> ".join(map(str, cycle))
        raise SettingError(keys, f"a cycle, each needs the next: {names}") from None


def _first_setting(
    cycle: Sequence[Entry], keys_by_reference: Mapping[tuple[Entry, Entry], tuple[str, ...]]
) -> list[str]:
    """Return the keys of the first setting that makes up a cycle."""
    for link in pairwise(cycle):
        keys = keys_by_reference[link]
        if keys:  # that a training needs its corpus is no setting
            return list(keys)
    raise AssertionError("a cycle has a setting")


def shared_folders(
    corpora: Collection[str],
    systems: Collection[str],
    seeds: Collection[int],
    references: Sequence[Reference],
) -> dict[Path, set[Path]]:
    """Return the folders that stages depend on and several stages write into.

    Args:
        corpora: The names of the corpora.
        systems: The names of all systems, also of external ones.
        seeds: The seeds of the trainings.
        references: The references of the experiment.

    Returns:
        The outputs that belong into each folder.
    """
    outputs = []
    for corpus in corpora:
        outputs += [paths.download_folder(corpus), paths.vocabulary_folder(corpus, None)]
    for system in systems:
        outputs += [fresh_start_file(system, seed) for seed in seeds]
    for reference in references:
        outputs += reference.outputs
    folders: dict[Path, set[Path]] = defaultdict(set)
    for output in outputs:
        folders[output.parent].add(output)
    return folders


def link_corpora(
    corpora: Any, document: LocatedMapping, languages_of: Callable[[LocatedMapping], set[str]]
) -> tuple[Any, list[UserError]]:
    """Give each corpus the vocabulary that params.yaml names for it.

    Args:
        corpora: The settings of the corpora by name; what is not a mapping is left to validation.
        document: The content of params.yaml.
        languages_of: The languages of a corpus that its vocabulary has to know.

    Returns:
        The corpora with `vocabulary.of`, without those whose vocabulary cannot be used, and the
        errors.
    """
    if not isinstance(corpora, LocatedMapping):
        return corpora, []
    vocabularies = as_mapping(document.get("vocabularies"))
    written = as_mapping(document.get("corpora"))
    errors = []
    found = {}
    for name in corpora:
        try:
            found[name] = _corpus_with_vocabulary(corpora, name, vocabularies, languages_of)
        except UserError as error:
            errors.append(error)
    for name, place in vocabularies.locations.items():
        if name not in written:
            errors.append(place.error(f"no corpus {name!r}; {list_known_names(name, written)}"))
    return LocatedMapping(found, corpora.locations), errors


def _corpus_with_vocabulary(
    corpora: LocatedMapping,
    name: str,
    vocabularies: LocatedMapping,
    languages_of: Callable[[LocatedMapping], set[str]],
) -> Any:
    """A corpus with the vocabulary that it has of another."""
    corpus = corpora[name]
    own = as_mapping(as_mapping(corpus).get("vocabulary"))
    if "of" in own:
        raise own.locations["of"].error(
            f"set this at the top level, by vocabularies: {{{name}: {own['of']}}}"
        )
    if name not in vocabularies or not isinstance(corpus, LocatedMapping):
        return corpus
    other = vocabularies[name]
    place = vocabularies.locations[name]
    if not isinstance(other, str) or not isinstance(corpora.get(other), LocatedMapping):
        raise place.error(f"no corpus {other!r}; {list_known_names(other, corpora)}")
    if other == name:
        raise place.error("this is the corpus itself: remove the entry")
    if other in vocabularies:
        raise place.error(f"{other} has the vocabulary of {vocabularies[other]} itself: name that")
    missing = sorted(languages_of(corpus) - languages_of(corpora[other]))
    if missing:
        raise place.error(
            f"{other}, whose vocabulary it would have, does not translate {', '.join(missing)}"
        )
    vocabulary = as_mapping(corpora[other].get("vocabulary")).with_value("of", other, place)
    return corpus.with_value("vocabulary", vocabulary, place)


def link_systems(
    runs: LocatedMapping, document: LocatedMapping
) -> tuple[LocatedMapping, list[UserError]]:
    """Give each system the first weights that params.yaml names for it.

    Args:
        runs: The settings of all systems by system and corpus.
        document: The content of params.yaml.

    Returns:
        The settings, without systems whose first weights cannot be used, and the errors.
    """
    return with_parents(runs, as_mapping(document.get("init_from")))
