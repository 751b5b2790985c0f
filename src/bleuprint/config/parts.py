"""Parts: training texts that are downloaded, cleaned and filtered by themselves.

The top-level key `parts` of params.yaml names these texts, with the rules that they have in every
corpus: `parts: {europarl: {}, commoncrawl: {filter: {length: {max: 60}}}}`. The key is at the top
level because DVC makes a stage for each part, and reads the key without inheritance. `link_parts`
gives the named texts the setting `separate`, and merges their rules into those of their corpus.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bleuprint.config import paths
from bleuprint.config.corpus import Corpus
from bleuprint.config.corpus_files import PART_RULES, Files
from bleuprint.config.merge import merge_mappings
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.schema import describe_unknown_key, list_known_names, to_json_value
from bleuprint.runtime.yaml_tree import LocatedMapping, Location, as_mapping

# The top-level key of params.yaml.
PARTS = "parts"
# The setting of a text that is true if `parts` names the text.
_SEPARATE = "separate"
# The folder in data/ that each stage of a part writes. The last stage, filter, is missing here: it
# writes into data/clean/CORPUS.
_FOLDERS = {"download": "part_raw", "clean": "part_clean"}


def link_parts(
    corpora: LocatedMapping, document: LocatedMapping
) -> tuple[LocatedMapping, list[UserError]]:
    """Give each training text that `parts` names the setting `separate`, and its rules.

    The rules that `parts` has for the text are merged into those of its corpus, and then the rules
    that the text has in this corpus, under `clean` and `filter`.

    Args:
        corpora: The settings of the corpora by name, with their texts.
        document: The content of params.yaml.

    Returns:
        The settings of the corpora, and the errors. A corpus with an error is missing.
    """
    # If the value of the key is not a mapping, another check refuses it.
    parts = as_mapping(document.get(PARTS))
    errors = list(_settings_errors(parts))
    if errors:
        return corpora, errors
    linked_corpora = {}
    for corpus_name, corpus in corpora.items():
        try:
            linked_corpora[corpus_name] = _link_corpus(corpus, parts)
        except UserError as error:
            errors.append(error)
    # A corpus with other errors is missing in `corpora`, with the names of its texts. Without them,
    # a right name could be taken for a wrong one. So names are checked only if none is missing.
    has_all_corpora = len(corpora) == len(as_mapping(document.get("corpora")))
    if has_all_corpora:
        errors += _name_errors(parts, corpora)
    return LocatedMapping(linked_corpora, corpora.locations), errors


def _name_errors(parts: LocatedMapping, corpora: LocatedMapping) -> Iterator[UserError]:
    """Yield an error for each entry of `parts` whose name no training text has.

    Args:
        parts: The content of the key.
        corpora: The settings of all corpora by name, with their texts.
    """
    training_texts = dict[str, None]()
    held_out_sets = set[str]()
    for corpus in corpora.values():
        training_texts.update(dict.fromkeys(_texts_of_set(corpus, "train")))
        held_out_sets.update(_texts_of_set(corpus, "tests"), _texts_of_set(corpus, "valid"))
    for name, location in parts.locations.items():
        if name in training_texts:
            continue
        if name in held_out_sets:
            yield location.error(
                "this is a validation or test set, and only training texts can be parts. Remove "
                "this entry"
            )
            continue
        known_names = list_known_names(name, training_texts)
        yield location.error(f"no corpus has a training text of this name; {known_names}")


def _settings_errors(parts: LocatedMapping) -> Iterator[UserError]:
    """Yield an error for each entry of `parts` that has something other than rules.

    Args:
        parts: The content of the key.
    """
    for name, settings in parts.items():
        if not isinstance(settings, LocatedMapping):
            yield parts.locations[name].error("is not a mapping. Write {} for no rules of its own")
            continue
        for key in settings:
            if key not in PART_RULES:
                yield settings.locations[key].error(describe_unknown_key(key, PART_RULES))


def _texts_of_set(corpus: Any, set_name: str) -> LocatedMapping:
    """Return the texts of a set of a corpus by name, as params.yaml or a description has them.

    Args:
        corpus: The settings of the corpus.
        set_name: train or valid; or tests, for the test sets by name.
    """
    files = as_mapping(as_mapping(corpus).get("files"))
    return as_mapping(files.get(set_name))


def _link_corpus(corpus: Any, parts: LocatedMapping) -> Any:
    """Return a corpus in which the texts that are parts have the setting `separate` and all rules.

    Args:
        corpus: The settings of the corpus, with its texts.
        parts: The rules of all parts of the experiment; the corpus may have some of them.

    Raises:
        UserError: A text that is not a part has settings of a part, or sets `separate` itself.
    """
    texts = _texts_of_set(corpus, "train")
    linked_texts = texts
    for name, text in texts.items():
        if not isinstance(text, LocatedMapping):
            continue  # Validation refuses it later.
        _check_part_settings(name, text, is_part=name in parts)
        if name in parts:
            location = texts.locations[name]
            part = _with_merged_rules(text, corpus, parts[name])
            part = part.with_value(_SEPARATE, True, location)
            linked_texts = linked_texts.with_value(name, part, location)
    if linked_texts is texts:
        return corpus
    files = corpus["files"].with_value("train", linked_texts, corpus["files"].locations["train"])
    return corpus.with_value("files", files, corpus.locations["files"])


def _check_part_settings(name: str, text: LocatedMapping, is_part: bool) -> None:
    """Check that a training text has no settings that only a part, or only `parts`, may have.

    Args:
        name: The name of the text.
        text: Its settings.
        is_part: Whether `parts` names the text.

    Raises:
        UserError: The text has such a setting.
    """
    entry = f"parts: {{{name}: {{}}}}"
    if _SEPARATE in text:
        raise text.locations[_SEPARATE].error(
            f"this is not set here. Write at the top level: {entry}"
        )
    if is_part:
        return
    for key in PART_RULES:
        if key in text:
            raise text.locations[key].error(
                f"only a part has rules of its own. Add the text at the top level: {entry}"
            )


def _with_merged_rules(
    text: LocatedMapping, corpus: LocatedMapping, part: LocatedMapping
) -> LocatedMapping:
    """Return a text with all of its rules: those of its corpus, changed by its own ones.

    A text that has no `clean` or `filter` of its own gets none here either: it then has those of
    its corpus.

    Args:
        text: The settings of the text, perhaps with rules that it has in this corpus.
        corpus: The settings of its corpus.
        part: The rules that the text has in every corpus.
    """
    merged_text = text
    for key in PART_RULES:
        rules = corpus.get(key)
        # Rules of the text in this corpus are merged last, so they override those of `parts`.
        for own_settings in (part, text):
            own_rules = own_settings.get(key)
            if own_rules is None:
                continue  # null has the same effect as a missing key.
            location = own_settings.locations[key]
            if rules is None:
                rules = _default_rules(key, location)
            if isinstance(rules, LocatedMapping) and isinstance(own_rules, LocatedMapping):
                rules = merge_mappings(rules, own_rules)
            else:
                rules = own_rules  # Validation refuses it later.
            merged_text = merged_text.with_value(key, rules, location)
    return merged_text


def _default_rules(key: str, location: Location) -> LocatedMapping:
    """Return the default rules of a corpus as if they stood in params.yaml.

    Args:
        key: The setting, `clean` or `filter`.
        location: Where messages say that these rules stand.

    Returns:
        The settings of each rule by its name, such as `{"length": {"min": 1, "max": 250}}`.
    """
    default_rules = getattr(Corpus, key)
    entries = {}
    for rule in default_rules:
        settings = asdict(rule)
        entries[rule.name()] = LocatedMapping(settings, dict.fromkeys(settings, location))
    return LocatedMapping(entries, dict.fromkeys(entries, location))


def texts_by_part(corpora: Mapping[str, Corpus]) -> dict[str, Files]:
    """Return the text of each part of each corpus, by names such as `wmt14-en-de/europarl`.

    A loop of dvc.yaml defines a stage for each corpus and each part that any corpus has. So a
    corpus also gets an entry, without a text, for each part that only other corpora have.

    Args:
        corpora: The settings of the corpora by name.
    """
    texts = {}
    for corpus_name, corpus in corpora.items():
        parts = corpus.files.parts()
        for part in part_names(corpora):
            text = {part: parts[part]} if part in parts else {}
            texts[f"{corpus_name}/{part}"] = Files(train=text)
    return texts


def describe_parts(definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of an entry of `parts`: rules for a training text.

    Args:
        definitions: The definitions of the schema of params.yaml. The setting `separate` is removed
            from the definition of a text, since only this key sets it.
    """
    text_properties = definitions["Text"]["properties"]
    del text_properties[_SEPARATE]
    return {
        "additionalProperties": False,
        "properties": {key: text_properties[key] for key in PART_RULES},
        "type": "object",
    }


def part_folder(corpus: str, part: str, stage: str, root: Path = Path()) -> Path:
    """Return the folder that a stage writes for a part.

    The last stage, `filter`, writes into the folder of the corpus in data/clean, so that the
    corpus's stage dedup, which depends on that folder, runs after the stages of all its parts.

    Args:
        corpus: The name of the corpus.
        part: The name of the part.
        stage: download, clean or filter.
        root: The project's folder.
    """
    if stage in _FOLDERS:
        return paths.corpus_folder(corpus, _FOLDERS[stage], root) / part
    return paths.corpus_folder(corpus, "clean", root) / f"part-{part}"


def part_filter_stats_folder(corpus: str, root: Path = Path()) -> Path:
    """Return the folder with a folder of filtering statistics for each part of a corpus."""
    return paths.filter_stats_file(corpus, PARTS, root).with_suffix("")


def part_filter_stats_file(corpus: str, part: str, stage: str, root: Path = Path()) -> Path:
    """Return the file that says how many pairs of a part a stage read, kept and dropped.

    Args:
        corpus: The name of the corpus.
        part: The name of the part.
        stage: download, clean or filter.
        root: The project's folder.
    """
    return part_filter_stats_folder(corpus, root) / part / f"{stage}.json"


def part_names(corpora: Mapping[str, Corpus]) -> list[str]:
    """Return the names of all parts of an experiment, each once."""
    names = dict[str, None]()
    for corpus in corpora.values():
        names.update(dict.fromkeys(corpus.files.parts()))
    return list(names)


def part_outputs(corpora: Mapping[str, Corpus]) -> dict[Path, set[Path]]:
    """Return what the stages of parts write into folders that other stages read as a whole.

    Args:
        corpora: The settings of the corpora by name.

    Returns:
        The outputs by folder. DVC makes a stage for each corpus and part, also if the corpus has no
        such part.
    """
    outputs_by_folder: dict[Path, set[Path]] = {}
    names = part_names(corpora)
    for corpus in corpora:
        stats_folder = part_filter_stats_folder(corpus)
        filtered = {part_folder(corpus, name, "filter") for name in names}
        outputs_by_folder[paths.corpus_folder(corpus, "clean")] = filtered
        outputs_by_folder[stats_folder] = {stats_folder / name for name in names}
    return outputs_by_folder


def resolved_parts(corpora: Mapping[str, Corpus]) -> dict[str, Any]:
    """Return the settings of parts in the form in which DVC compares them.

    Args:
        corpora: The settings of the corpora by name.

    Returns:
        Two sections of `dvc` in reports/resolved.json. `part` has for each CORPUS/PART the settings
        of the text and its rules; they are false if the corpus has no such part. `part_order` has
        for each corpus the parts in their order, with the edits by which held-out sentences are
        found in them; a list, because DVC does not compare the order of a mapping.
    """
    settings_by_part: dict[str, dict[str, Any]] = {}
    order_by_corpus: dict[str, list[dict[str, Any]]] = {}
    settings_of_missing_part = dict.fromkeys(("text", *PART_RULES), False)
    names = part_names(corpora)
    for corpus_name, corpus in corpora.items():
        order_by_corpus[corpus_name] = []
        for name in names:
            settings_by_part[f"{corpus_name}/{name}"] = dict(settings_of_missing_part)
        for name in corpus.files.parts():
            settings = _resolved_part(corpus, name)
            settings_by_part[f"{corpus_name}/{name}"] = settings
            order_by_corpus[corpus_name].append({"part": name, "clean": settings["clean"]})
    return {"part": settings_by_part, "part_order": order_by_corpus}


def _resolved_part(corpus: Corpus, name: str) -> dict[str, Any]:
    """Return the settings of a part as JSON values: its text, and its rules.

    Args:
        corpus: The settings of its corpus.
        name: The name of the part.
    """
    values = to_json_value(corpus.only_text(name))
    # In a corpus with several directions, the text has another name here, without its direction.
    [text] = values["files"]["train"].values()
    settings = {"text": text}
    for key in PART_RULES:
        settings[key] = values[key]
    return settings
