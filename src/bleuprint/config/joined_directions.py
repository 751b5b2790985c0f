"""Reads the directions of a corpus in params.yaml, and joins them to one corpus.

Each direction takes the texts of the corpus (`from`, `files`), changed by the direction's own
settings. In the joined corpus, texts and test sets are named after their direction:
train.en-de-NAME, tests.en-de-NAME. directions.py splits the joined corpus into its language pairs
again.

`join_directions` is the entry point. Mappings still know the line of each setting here
(LocatedMapping), so that an error names it.
"""

from collections.abc import Callable, Mapping
from typing import Any

from bleuprint.config.directions import SOURCE, TARGET
from bleuprint.config.merge import merge_mappings
from bleuprint.config.pair_name import split_direction
from bleuprint.runtime.yaml_tree import LocatedMapping, Location, as_mapping

# What messages call a set, by its key in `files`.
_SET_LABELS = {"train": "training text", "valid": "validation set", "tests": "test set"}
_LICENSE = "license_and_citation"
# The settings of a corpus that describe its texts; a direction may have them, too.
_TEXT_KEYS = ("from", "files", _LICENSE)


def join_directions(entry: Any, with_described_texts: Callable[[Any], Any]) -> Any:
    """Turn a corpus with several translation directions into one corpus with all their texts.

    A corpus in params.yaml may list directions, such as en-de and de-en, instead of a source and a
    target language. Each direction inherits the texts of the corpus, and may change or add some.
    In the result, a text `news` of en-de is called `en-de-news`.

    A LocatedMapping is a dict that also stores the line of each value in the YAML file
    (`locations`), for error messages.

    Args:
        entry: The corpus as params.yaml writes it. If it has no `directions`, only the texts of
            `with_described_texts` are added.
        with_described_texts: A function that adds to a corpus of one language pair the texts of a
            file in corpora/, which the corpus names by `from`.

    Raises:
        UserError: A direction lacks a training text, a validation set or a test set, or two
            directions describe a license of one name differently.
    """
    if not isinstance(entry, LocatedMapping):
        return with_described_texts(entry)
    directions = entry.get("directions")
    if not isinstance(directions, LocatedMapping):
        return with_described_texts(entry)
    directions_location: Location = entry.locations["directions"]
    for side in ("source", "target"):
        if side in entry:
            raise entry.locations[side].error("the directions name the languages. Remove it")
    # The loop adds the texts and the licenses of each direction to these mappings.
    sets = {set_name: LocatedMapping({}, {}) for set_name in _SET_LABELS}
    licenses = LocatedMapping({}, {})
    directions_without_texts = {}
    for name, direction in directions.items():
        location = directions.locations[name]
        pair = with_described_texts(_pair_of_direction(entry, directions, name))
        is_zero_shot = direction.get("zero_shot") is True
        _add_texts(sets, name, pair.get("files"), is_zero_shot, location)
        _add_licenses(licenses, pair, location)
        directions_without_texts[name] = direction.without(*_TEXT_KEYS)
    if not sets["train"]:
        message = "all are zero_shot, so nothing is trained. Add one without zero_shot"
        raise directions_location.error(message)
    joined_settings = {
        # `src` and `tgt`: each side of the joined text is in several languages.
        "source": SOURCE,
        "target": TARGET,
        _LICENSE: licenses,
        "files": LocatedMapping(sets, dict.fromkeys(sets, directions_location)),
        "directions": LocatedMapping(directions_without_texts, directions.locations),
    }
    # A message about one of these settings that params.yaml lacks names the line of `directions`.
    locations = dict.fromkeys(joined_settings, directions_location) | entry.locations
    other_settings = entry.without(*_TEXT_KEYS)
    return LocatedMapping({**other_settings, **joined_settings}, locations)


def _pair_of_direction(
    entry: LocatedMapping, directions: LocatedMapping, name: Any
) -> LocatedMapping:
    """Return one direction of a corpus as a corpus with a source and a target language.

    Its texts are the texts of the corpus, changed by the direction's own settings. The mappings
    also store the line of each value in the YAML file (`locations`), for error messages.

    Args:
        entry: The corpus as params.yaml writes it.
        directions: The setting `directions` of the corpus.
        name: The name of the direction, such as en-de.

    Raises:
        UserError: The name is not SOURCE-TARGET, or the direction is not a mapping.
    """
    location = directions.locations[name]
    try:
        source, target = split_direction(str(name))
    except ValueError:
        source, target = "", ""
    if source == target:
        raise location.error("not a direction. Write SOURCE-TARGET, two languages such as en-de")
    direction = directions[name]
    if not isinstance(direction, LocatedMapping):
        raise location.error("is not a mapping. Write {} to use the texts of the corpus")
    pair = entry.only(_TEXT_KEYS)
    pair = pair.with_value("source", source, location)
    pair = pair.with_value("target", target, location)
    return merge_mappings(pair, direction.only(_TEXT_KEYS))


def _add_texts(
    sets: Mapping[str, LocatedMapping],
    direction: str,
    files: Any,
    is_zero_shot: bool,
    location: Location,
) -> None:
    """Add the texts of a direction to the sets of the whole corpus.

    There, a text `news` of the direction en-de is called `en-de-news`. The line of each text in the
    YAML file is added, too (`locations`), for error messages.

    Args:
        sets: The texts of the corpus in `train`, `valid` and `tests`; changed in place.
        direction: The name of the direction, such as en-de.
        files: The texts of the direction in `train`, `valid` and `tests`.
        is_zero_shot: Whether the model is not trained on this direction, so that only its test sets
            are used.
        location: Where params.yaml has the direction, for messages.

    Raises:
        UserError: The direction has no text for a set.
    """
    used_sets = ["tests"] if is_zero_shot else list(_SET_LABELS)
    for set_name in used_sets:
        # Anything that is not a mapping counts as an empty one.
        texts = as_mapping(as_mapping(files).get(set_name))
        if not texts:
            raise location.error(f"has no {_SET_LABELS[set_name]}. Add files.{set_name}")
        for text_name, text in texts.items():
            joined_name = f"{direction}-{text_name}"
            sets[set_name][joined_name] = text
            sets[set_name].locations[joined_name] = texts.locations[text_name]


def _add_licenses(licenses: LocatedMapping, pair: LocatedMapping, location: Location) -> None:
    """Add the licenses of a direction's texts to the licenses of the whole corpus.

    The line of each license in the YAML file is added, too (`locations`), for error messages.

    Args:
        licenses: The licenses of the earlier directions by name; changed in place.
        pair: The direction, as a corpus of one language pair.
        location: Where params.yaml has the direction, for messages.

    Raises:
        UserError: An earlier direction has another license of the same name.
    """
    pair_licenses = pair.get(_LICENSE, LocatedMapping({}, {}))
    if not isinstance(pair_licenses, LocatedMapping):
        raise pair.locations[_LICENSE].error(f"{pair_licenses!r} is not a mapping")
    for name, license_and_citation in pair_licenses.items():
        if name in licenses and licenses[name] != license_and_citation:
            raise location.error(
                f"an earlier direction has another {_LICENSE}.{name}. Use another name"
            )
        licenses[name] = license_and_citation
        licenses.locations[name] = pair_licenses.locations[name]


def languages_by_side(entry: Any) -> set[str]:
    """Return the languages that the vocabulary of a corpus has to cover.

    If one corpus has all of these languages of another, the other can use its vocabulary.

    Args:
        entry: The corpus as params.yaml writes it.

    Returns:
        The source and the target language, such as `{"en", "de"}`; for the directions en-de and
        en-fr, `{"from en", "to de", "to fr"}`. Only languages after `to` have a tag, such as
        `<2de>`, in the vocabulary.
    """
    corpus = as_mapping(entry)
    directions = corpus.get("directions")
    if not isinstance(directions, LocatedMapping):
        return {str(corpus.get("source")), str(corpus.get("target"))}
    languages = set()
    for name in directions:
        source, target = split_direction(name)
        languages.add(f"from {source}")
        languages.add(f"to {target}")
    return languages
