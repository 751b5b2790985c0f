"""References between entries of params.yaml: which corpora and trainings need which others.

A corpus may use the vocabulary of another corpus, and texts that a system translates. A training
needs its corpus, and may start from the weights of another training. `check_references` refuses
unknown names and cycles; `link_corpora` and `link_systems` give entries what the top-level keys
`vocabularies` and `init_from` name for them.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path
from typing import Any

from bleuprint.config import paths
from bleuprint.config.corpus import Corpus
from bleuprint.config.init_from import (
    InitFrom,
    describe_starts,
    fresh_start_file,
    init_weights_folder,
    with_parents,
)
from bleuprint.config.parts import describe_parts, link_parts, part_outputs
from bleuprint.config.synthetic import SyntheticText, check_synthetic_texts, synthetic_folder
from bleuprint.config.system import System
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.schema import SettingError, list_known_names
from bleuprint.runtime.yaml_tree import LocatedMapping, as_mapping

# The top-level keys of params.yaml by which entries use something of other entries. They stand at
# the top level because DVC reads them without inheritance: it learns the order of its stages from
# them.
LINKS = ("init_from", "vocabularies", "parts")
# The settings of trained systems by system and corpus; None where a system is not trained.
_Runs = Mapping[str, Mapping[str, System | None]]


@dataclass(frozen=True)
class Entry:
    """What a reference leads from or to: a corpus, trainings, or a folder of another project.

    Attributes:
        corpus: The corpus; empty for a folder.
        system: The system whose trainings on the corpus these are; empty for a corpus as such.
        folder: The folder of a model of another project; empty otherwise.
    """

    corpus: str = ""
    system: str = ""
    folder: str = ""

    def __str__(self) -> str:
        """Return what messages call the entry: `news`, `small on news`, or the path of a folder."""
        if self.folder:
            return self.folder
        if self.system:
            return f"{self.system} on {self.corpus}"
        return self.corpus


@dataclass(frozen=True)
class Reference:
    """A reference from an entry to another entry that it needs.

    Attributes:
        entry: The corpus or the trainings that need the other entry.
        needed: The other entry.
        keys: The keys of the setting that makes the reference, for messages; empty for the
            reference of a training to its corpus.
        outputs: The paths that stages write because of the reference. They are in folders that the
            stages of `entry` depend on; so DVC learns the order of the stages.
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
    """Return which corpora and trainings of an experiment need which other ones.

    A corpus needs the corpus whose vocabulary it uses, and the trainings of the systems that
    translate its synthetic texts. A training needs its corpus. A fine-tuned training also needs the
    training whose weights it starts from.

    Args:
        corpora: The settings of the corpora by name.
        runs: The settings of trained systems by system and corpus.
        synthetic: The settings of the texts that systems translate, by name.
        seeds: The seeds with which each system is trained.
    """
    all_references = list(_vocabulary_references(corpora))
    all_references += _synthetic_references(synthetic)
    all_references += _training_references(runs, seeds)
    return all_references


def _vocabulary_references(corpora: Mapping[str, Corpus]) -> Iterator[Reference]:
    """Yield a reference for each corpus that needs another corpus, whose vocabulary it uses.

    Args:
        corpora: The settings of the corpora by name.
    """
    for name, corpus in corpora.items():
        shared_from = corpus.vocabulary.shared_from
        if shared_from is not None:
            yield Reference(
                entry=Entry(name),
                needed=Entry(shared_from),
                keys=("corpora", name, "vocabulary", "of"),
                outputs=(paths.vocabulary_folder(name, shared_from),),
            )


def _synthetic_references(synthetic: Mapping[str, SyntheticText]) -> Iterator[Reference]:
    """Yield, for each synthetic text, a reference from its corpus to the system that translates it.

    So this system is trained before the corpus is prepared.

    Args:
        synthetic: The settings of the texts that systems translate, by name.
    """
    for name, text in synthetic.items():
        yield Reference(
            entry=Entry(text.part_of),
            needed=Entry(text.corpus, text.system),
            keys=("synthetic", name),
            outputs=(synthetic_folder(text.part_of, name),),
        )


def _training_references(runs: _Runs, seeds: Collection[int]) -> Iterator[Reference]:
    """Yield the references of each training: to its corpus, and to the model that it starts from.

    Most trainings start from random weights. They have only the reference to the corpus.

    Args:
        runs: The settings of trained systems by system and corpus.
        seeds: The seeds with which each system is trained.
    """
    for system, settings_by_corpus in runs.items():
        for corpus, settings in settings_by_corpus.items():
            training = Entry(corpus, system)
            yield Reference(entry=training, needed=Entry(corpus))
            if settings is not None and settings.train.init_from is not None:
                yield _reference_to_parent(training, settings.train.init_from, seeds)


def _reference_to_parent(training: Entry, init_from: InitFrom, seeds: Collection[int]) -> Reference:
    """Return the reference from a fine-tuned training to the model whose weights it starts from.

    The model is either trained in this experiment, or comes from another project, in a folder.

    Args:
        training: A system on a corpus; it is trained once per seed.
        init_from: The setting that names the model.
        seeds: The seeds. Each training starts from the model with the same seed.
    """
    keys = ("runs", training.system, training.corpus, "train", "init_from")
    if init_from.parent is None:
        assert init_from.folder is not None, "InitFrom has either a parent or a folder"
        return Reference(entry=training, needed=Entry(folder=init_from.folder), keys=keys)
    return Reference(
        entry=training,
        needed=Entry(init_from.parent.corpus, init_from.parent.system),
        keys=keys,
        outputs=tuple(init_weights_folder(training.system, seed) for seed in seeds),
    )


def needed_by(entry: Entry, references: Sequence[Reference]) -> set[Entry]:
    """Return an entry and all entries that it needs, directly or through other entries.

    If a system needs a corpus, and the corpus needs another corpus, the system needs both.

    Args:
        entry: A corpus, or a system on a corpus.
        references: Which entry needs which other entry, for the whole experiment.
    """
    needed_entries = {entry}
    entries_to_follow = [entry]
    while entries_to_follow:
        current_entry = entries_to_follow.pop()
        for reference in references:
            if reference.entry == current_entry and reference.needed not in needed_entries:
                needed_entries.add(reference.needed)
                entries_to_follow.append(reference.needed)
    return needed_entries


def check_references(
    corpora: Mapping[str, Corpus],
    runs: _Runs,
    synthetic: Mapping[str, SyntheticText],
    not_trained: Collection[str],
) -> None:
    """Check that everything that corpora and trainings need exists, without cycles.

    Args:
        corpora: The settings of the corpora by name.
        runs: The settings of trained systems by system and corpus.
        synthetic: The settings of the texts that systems translate, by name.
        not_trained: The names of external systems. They have no model to use, since their
            translations are files of the user.

    Raises:
        SettingError: A setting names something that does not exist or does not fit, or an entry
            needs itself.
    """
    # The seeds decide only which files are written. No check below needs the files.
    all_references = references(corpora, runs, synthetic, seeds=())
    for reference in all_references:
        if reference.needed.system in not_trained:
            message = f"{reference.needed.system} is an external system, so it has no model"
            raise SettingError([*reference.keys, "system"], message)
    check_synthetic_texts(corpora, synthetic)
    # Cycles are checked first. In a cycle, a message about models that differ would be confusing.
    _check_cycle(all_references)
    for reference in all_references:
        if reference.needed.system:
            _check_training(reference, runs)


def _check_training(reference: Reference, runs: _Runs) -> None:
    """Raise SettingError if the training that an entry needs does not exist, or does not fit.

    The trained model is needed in two cases. It translates a synthetic text of a corpus: then it
    only has to exist. Or a fine-tuned training starts from its weights: then both models must have
    the same shape.

    Args:
        reference: A reference to a system on a corpus.
        runs: The settings of trained systems by system and corpus; None where a system is not
            trained.
    """
    keys = list(reference.keys)
    parent_name = reference.needed.system
    parent_corpus = reference.needed.corpus
    if parent_name not in runs:
        message = f"no system {parent_name!r}; {list_known_names(parent_name, runs)}"
        raise SettingError([*keys, "system"], message)
    parent = runs[parent_name].get(parent_corpus)
    if parent is None:
        trained_corpora = [name for name, run in runs[parent_name].items() if run is not None]
        known_names = list_known_names(parent_corpus, trained_corpora)
        message = f"{parent_name} is not trained on {parent_corpus!r}; {known_names}"
        raise SettingError([*keys, "corpus"], message)
    is_fine_tuning = reference.entry.system != ""
    if not is_fine_tuning:
        return  # Any model can translate a text.
    if parent.average.ensemble:
        message = (
            f"{parent_name} is an ensemble (average.ensemble), but a training starts from one model"
        )
        raise SettingError(keys, message)
    child = runs[reference.entry.system][reference.entry.corpus]
    assert child is not None, "the training that has this reference exists"
    difference = child.model.difference(parent.model)
    if difference:
        raise SettingError(keys, difference)


def _check_cycle(references: Sequence[Reference]) -> None:
    """Raise SettingError if an entry needs itself, directly or through other entries.

    For example, two corpora may each use the vocabulary of the other.

    Args:
        references: Which corpus or training needs which other one.
    """
    needed_by_entry: dict[Entry, set[Entry]] = defaultdict(set)
    keys_by_reference: dict[tuple[Entry, Entry], tuple[str, ...]] = {}
    for reference in references:
        needed_by_entry[reference.entry].add(reference.needed)
        keys_by_reference[reference.entry, reference.needed] = reference.keys
    try:
        TopologicalSorter(needed_by_entry).prepare()  # Raises CycleError if there is a cycle.
    except CycleError as error:
        # The second argument of the error is the cycle. It lists each entry before the entry that
        # needs it, so it is reversed.
        cycle: list[Entry] = list(reversed(error.args[1]))
        keys = _first_setting(cycle, keys_by_reference)
        names = " -> ".join(str(entry) for entry in cycle)
        raise SettingError(keys, f"in this circle, each needs the next: {names}") from None


def _first_setting(
    cycle: Sequence[Entry], keys_by_reference: Mapping[tuple[Entry, Entry], tuple[str, ...]]
) -> list[str]:
    """Return the keys of the first setting that contributes to a cycle, for an error message.

    Args:
        cycle: Corpora and trainings, each of which needs the next. The last one is the first again.
        keys_by_reference: For two entries, the first of which needs the second, the keys of the
            setting that causes this, such as `("synthetic", "back")`.
    """
    for entry, needed_entry in pairwise(cycle):
        keys = keys_by_reference[entry, needed_entry]
        # The keys are empty for a training and its corpus, which it needs without any setting.
        if keys:
            return list(keys)
    raise AssertionError("every cycle contains a reference that comes from a setting")


def shared_folders(
    corpora: Mapping[str, Corpus],
    systems: Collection[str],
    seeds: Collection[int],
    references: Sequence[Reference],
) -> dict[Path, set[Path]]:
    """Return the folders into which several stages write, with the outputs that belong there.

    Other stages read such a folder as a whole. So a caller has to remove every other file from it:
    an output that is left over from earlier settings would be read by mistake.

    Args:
        corpora: The settings of the corpora by name.
        systems: The names of all systems, including external ones.
        seeds: The seeds with which each system is trained.
        references: Which corpora and trainings need which others.

    Returns:
        The paths of the outputs by folder.
    """
    outputs = []
    for corpus in corpora:
        outputs.append(paths.download_folder(corpus))
        outputs.append(paths.cleaned_folder(corpus))
        outputs.append(paths.vocabulary_folder(corpus, None))
    for system in systems:
        for seed in seeds:
            outputs.append(fresh_start_file(system, seed))
    for reference in references:
        outputs += reference.outputs
    outputs_by_folder: dict[Path, set[Path]] = defaultdict(set)
    for output in outputs:
        outputs_by_folder[output.parent].add(output)
    for folder, outputs_of_parts in part_outputs(corpora).items():
        outputs_by_folder[folder] |= outputs_of_parts
    return outputs_by_folder


def link_corpora(
    corpora: LocatedMapping,
    document: LocatedMapping,
    languages_of: Callable[[LocatedMapping], set[str]],
) -> tuple[LocatedMapping, list[UserError]]:
    """Give corpora what top-level keys name for them: parts, and the vocabulary of another corpus.

    A corpus that uses the vocabulary of another corpus gets the setting `vocabulary.of`. By
    default, the vocabulary of a corpus is learned from its own text. To use another vocabulary,
    params.yaml has a top-level entry, `vocabularies: {CORPUS: OTHER_CORPUS}`.

    Args:
        corpora: The settings of the corpora by name.
        document: The content of params.yaml.
        languages_of: Returns the languages of a corpus, all of which its vocabulary has to cover.

    Returns:
        The settings of the corpora, and the errors. A corpus that cannot use the vocabulary is
        missing.
    """
    corpora, part_errors = link_parts(corpora, document)
    vocabularies = as_mapping(document.get("vocabularies"))
    # All corpora that params.yaml has. In `corpora`, a corpus with an error is missing; an entry of
    # `vocabularies` for it is correct, though.
    written_corpora = as_mapping(document.get("corpora"))
    errors = list(part_errors)
    linked_corpora = {}
    for name in corpora:
        try:
            corpus = _with_shared_vocabulary(corpora, name, vocabularies, languages_of)
            linked_corpora[name] = corpus
        except UserError as error:
            errors.append(error)
    for name, location in vocabularies.locations.items():
        if name not in written_corpora:
            known_names = list_known_names(name, written_corpora)
            errors.append(location.error(f"no corpus {name!r}; {known_names}"))
    return LocatedMapping(linked_corpora, corpora.locations), errors


def _with_shared_vocabulary(
    corpora: LocatedMapping,
    name: str,
    vocabularies: LocatedMapping,
    languages_of: Callable[[LocatedMapping], set[str]],
) -> Any:
    """Return a corpus with the vocabulary settings of another corpus, if it uses that vocabulary.

    The mappings also store the line of each value in the YAML file (`locations`), for error
    messages.

    Args:
        corpora: The settings of the corpora by name.
        name: The name of the corpus.
        vocabularies: The top-level setting `vocabularies`: by corpus, the name of the other corpus.
        languages_of: Returns the languages of a corpus, all of which its vocabulary has to cover.

    Returns:
        The settings of the corpus, unchanged if `vocabularies` does not name it.

    Raises:
        UserError: The vocabulary cannot be used.
    """
    corpus = corpora[name]
    own_vocabulary = as_mapping(as_mapping(corpus).get("vocabulary"))
    if "of" in own_vocabulary:
        raise own_vocabulary.locations["of"].error(
            "this is not set here. Write at the top level: "
            f"vocabularies: {{{name}: {own_vocabulary['of']}}}"
        )
    if name not in vocabularies or not isinstance(corpus, LocatedMapping):
        return corpus
    shared_from = vocabularies[name]
    location = vocabularies.locations[name]
    _check_shared_vocabulary(name, vocabularies, corpora)
    missing_languages = sorted(languages_of(corpus) - languages_of(corpora[shared_from]))
    if missing_languages:
        raise location.error(
            f"the vocabulary of {shared_from} does not cover {', '.join(missing_languages)}. Name "
            "a corpus with these languages"
        )
    vocabulary = as_mapping(corpora[shared_from].get("vocabulary"))
    vocabulary = vocabulary.with_value("of", shared_from, location)
    return corpus.with_value("vocabulary", vocabulary, location)


def _check_shared_vocabulary(
    name: str, vocabularies: LocatedMapping, corpora: LocatedMapping
) -> None:
    """Raise UserError if a corpus cannot use the vocabulary of the corpus that params.yaml names.

    The named corpus must exist, be another corpus, and learn its vocabulary from its own text.

    Args:
        name: The name of the corpus that uses the vocabulary.
        vocabularies: The top-level setting `vocabularies`: by corpus, the name of the other corpus.
        corpora: The settings of the corpora by name.
    """
    shared_from = vocabularies[name]
    location = vocabularies.locations[name]
    if not isinstance(shared_from, str) or not isinstance(corpora.get(shared_from), LocatedMapping):
        known_names = list_known_names(shared_from, corpora)
        raise location.error(f"no corpus {shared_from!r}; {known_names}")
    if shared_from == name:
        raise location.error("a corpus cannot share its own vocabulary. Remove the entry")
    if shared_from in vocabularies:
        raise location.error(
            f"{shared_from} itself uses the vocabulary of {vocabularies[shared_from]}. Name "
            f"{vocabularies[shared_from]}"
        )


def link_systems(
    runs: LocatedMapping, document: LocatedMapping
) -> tuple[LocatedMapping, list[UserError]]:
    """Give each fine-tuned system the setting `train.init_from`: the system that it starts from.

    params.yaml names that system at the top level: `init_from: {SYSTEM: {system: ..., corpus:
    ...}}`.

    Args:
        runs: The settings of all systems by system and corpus.
        document: The content of params.yaml.

    Returns:
        The settings of the systems, and the errors. A system that cannot start from the named
        system is missing.
    """
    return with_parents(runs, as_mapping(document.get("init_from")))


def describe_links(definitions: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the JSON Schemas for the top-level keys `init_from`, `vocabularies` and `parts`.

    Under the first two, params.yaml names what a system or corpus uses of another one.

    Args:
        definitions: The definitions of the schema of params.yaml. The definition `Parent`, to which
            one of the schemas refers, is added.

    Returns:
        For each of the keys, the schema of one entry under it.
    """
    describe_starts(definitions)
    return {
        "init_from": {"$ref": "#/$defs/Parent"},
        "vocabularies": {"type": "string"},
        "parts": describe_parts(definitions),
    }
