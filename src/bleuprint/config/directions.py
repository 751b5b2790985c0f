"""The settings of a corpus with several directions, and the names of its parts.

`directions: {en-de: {}, de-en: {}, de-fr: {zero_shot: true}}` replaces source and target. Each
direction has the files of the corpus, by `from` or `files`, and its own merged into them; names of
texts and test sets begin with the direction: train.en-de-NAME, tests.en-de-NAME. Only the test sets
of a `zero_shot` direction are used. Text of all directions is in files of the two languages below.

For the rest of the code, a corpus is a list of language pairs: each direction is the corpus of one
pair, called CORPUS/DIRECTION, and a corpus without directions is its own single pair.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol, TypeVar

from bleuprint.runtime.errors import UserError
from bleuprint.runtime.schema import SettingError
from bleuprint.runtime.yaml_tree import LocatedMapping, Location, as_mapping
from bleuprint.text.segmenter import check_segmenter, has_segmenter
from bleuprint.text.tokenizers import Tokenize

# Stand for the languages of both sides, in names of files.
SOURCE, TARGET = "src", "tgt"
DIRECTION = re.compile("([a-z]{2,3})-([a-z]{2,3})")
_SETS = {"train": "training text", "valid": "validation set", "tests": "test set"}
_OF_TEXTS = ("from", "files", "license_and_citation")


@dataclass(frozen=True)
class Direction:
    """One of several directions of a corpus; of a `zero_shot` one, nothing is trained on."""

    zero_shot: bool | None = None


@dataclass(frozen=True)
class PairName:
    """The name of a language pair: of its corpus, and of the direction if that has several."""

    corpus: str
    direction: str

    @classmethod
    def parse(cls, name: str) -> "PairName":
        """Read CORPUS or CORPUS/DIRECTION."""
        corpus, _, direction = name.partition("/")
        return cls(corpus, direction)

    def text_name(self, own_name: str) -> str:
        """Return what the corpus calls a text or test set of this pair."""
        return f"{self.direction}-{own_name}" if self.direction else own_name

    def set_name(self, own_name: str) -> str:
        """Return the set of the corpus that contains a set of this pair.

        Args:
            own_name: A set of the pair: train, valid or test.NAME; or a part, such as train.PART.

        Returns:
            test.DIRECTION-NAME; train and valid, which all directions share, stay as they are.
        """
        kind, dot, name = own_name.partition(".")
        return f"{kind}.{self.text_name(name)}" if dot else kind

    def set_label(self, own_name: str) -> str:
        """Return a set of this pair as messages name it, such as `en-de train`."""
        return f"{self.direction} {own_name}".strip()


class AnyCorpus(Protocol):
    """What this module reads of a corpus (config/corpus.py, which imports it)."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def source(self) -> str: ...

    @property
    def target(self) -> str: ...

    @property
    def files(self) -> Any: ...

    @property
    def split(self) -> Any: ...

    @property
    def tokenize(self) -> Tokenize: ...

    @property
    def directions(self) -> Mapping[str, Direction] | None: ...


T = TypeVar("T")
C = TypeVar("C", bound=AnyCorpus)


def tag(language: str) -> str:
    """The first word of a source, which says the language of its translation."""
    return f"<2{language}>"


def joined(
    entry: Any,
    with_files: Callable[[Any], Any],
    merged: Callable[[LocatedMapping, LocatedMapping], LocatedMapping],
) -> Any:
    """A corpus with the files of all its directions; of one with source and target, its own.

    `with_files`: gives a corpus of one direction its files. Raises UserError at a direction without
    training text, validation or test set, and where directions differ in what a license is.
    """
    if not isinstance(entry, LocatedMapping) or not isinstance(
        entry.get("directions"), LocatedMapping
    ):
        return with_files(entry)
    directions: LocatedMapping = entry["directions"]
    place: Location = entry.locations["directions"]
    for side in ("source", "target"):
        if side in entry:
            raise entry.locations[side].error("beside directions, which name languages: remove it")
    texts = entry.only(_OF_TEXTS)
    sets, licenses = {name: LocatedMapping({}, {}) for name in _SETS}, LocatedMapping({}, {})
    for name, given in directions.items():
        at, sides = directions.locations[name], _sides(directions, name)
        whole = with_files(merged(merged(texts, sides), given.only(_OF_TEXTS)))
        _add(sets, name, whole.get("files"), given.get("zero_shot") is True, at)
        cited = whole.get("license_and_citation", LocatedMapping({}, {}))
        if not isinstance(cited, LocatedMapping):
            raise whole.locations["license_and_citation"].error(f"{cited!r} is not a mapping")
        for key, value in cited.items():
            if licenses.setdefault(key, value) != value:
                raise at.error(f"another license_and_citation.{key} than of a direction before")
            licenses.locations[key] = cited.locations[key]
    if not sets["train"]:
        raise place.error("needs one that is not zero_shot: no text to train on")
    own = {name: given.without(*_OF_TEXTS) for name, given in directions.items()}
    made = {
        "source": SOURCE,
        "target": TARGET,
        "license_and_citation": licenses,
        "files": LocatedMapping(sets, dict.fromkeys(sets, place)),
        "directions": LocatedMapping(own, directions.locations),
    }
    rest = entry.without(*_OF_TEXTS)
    return LocatedMapping({**rest, **made}, {**dict.fromkeys(made, place), **entry.locations})


def languages_by_side(entry: Any) -> set[str]:
    """Return the languages of a corpus in params.yaml, with several directions as `from en`.

    So a corpus with the same languages on other sides, which has other tags, is another one.
    """
    directions = as_mapping(entry).get("directions")
    if not isinstance(directions, LocatedMapping):
        return {str(as_mapping(entry).get(side)) for side in ("source", "target")}
    languages = set()
    for name in directions:
        source, target = name.split("-")
        languages |= {f"from {source}", f"to {target}"}
    return languages


def check_directions(corpus: AnyCorpus) -> None:
    """Check each direction as a corpus of its own, and that zero-shot languages are known.

    Raises:
        SettingError: A language that no training text has on this side.
        ValueError: A setting that does not fit the languages.
    """
    directions = corpus.directions or {}
    if corpus.tokenize.name == "segmenter":  # of one language at least
        check_segmenter([*dict.fromkeys("-".join(directions).split("-"))])
    trained = [name.split("-") for name, each in directions.items() if not each.zero_shot]
    trained_sources, trained_targets = zip(*trained, strict=True)
    for name, pair in language_pairs(corpus, "").items():
        direction = PairName.parse(name).direction
        _check_known(direction, "source", pair.source, trained_sources)
        _check_known(direction, "target", pair.target, trained_targets)


def _check_known(direction: str, side: str, language: str, known: tuple[str, ...]) -> None:
    """Raise SettingError if no training text has a language on this side."""
    if language not in known:
        message = f"no direction of the training text has {language!r} as its {side}"
        raise SettingError(["directions", direction], message)


def language_pairs(corpus: C, name: str) -> dict[str, C]:
    """Return the language pairs of a corpus by name, each as a corpus.

    Args:
        corpus: The corpus.
        name: Its name.

    Returns:
        The corpus itself as `name`, or NAME/DIRECTION for each direction.
    """
    if corpus.directions is None:
        return {name: corpus}
    return {f"{name}/{each}": _pair(corpus, each) for each in corpus.directions}


def chosen_pair(corpus: C, name: str, direction: str | None) -> C:
    """Return the language pair to translate with.

    Args:
        corpus: The corpus of the system that translates.
        name: Its name.
        direction: What --direction names, if anything.

    Raises:
        UserError: The corpus has no such direction, or several and none is given.
    """
    pairs = language_pairs(corpus, name)
    chosen = pairs.get(f"{name}/{direction}" if direction else name)
    if chosen is not None:
        return chosen
    only_pair = f"{corpus.source}-{corpus.target} alone, without it"
    known = ", ".join(corpus.directions or (only_pair,))
    given = f"--direction {direction}: {name} has" if direction else f"{name}: --direction is"
    raise UserError(f"{given} {known}")


def origin_of_test(corpus: AnyCorpus, name: str, test: str) -> tuple[str, str]:
    """Return the name of the language pair that a test set belongs to, and what it is called there.

    Args:
        corpus: The corpus.
        name: Its name.
        test: A test set of the corpus.
    """
    if corpus.directions is None:
        return name, test
    source, target, own_name = test.split("-", 2)
    return f"{name}/{source}-{target}", own_name


def pair_of_test(corpus: C, test: str) -> C:
    """Return the corpus of a test set's language pair."""
    if corpus.directions is None:
        return corpus
    pair_name, _ = origin_of_test(corpus, "", test)
    return _pair(corpus, PairName.parse(pair_name).direction)


def target_languages_by_tag(corpus: AnyCorpus) -> dict[str, str]:
    """Return the target languages by the tags of their sources; empty for one language pair."""
    languages = [name.split("-")[1] for name in corpus.directions or ()]
    return {tag(language): language for language in languages}


def source_words(corpus: AnyCorpus, line: str) -> list[str]:
    """Return the words of a tokenized source without its tag."""
    words = line.split()
    return words if corpus.directions is None else words[1:]


def header_of_pairs(corpus: AnyCorpus) -> dict[str, Any] | None:
    """Return what the header of the binary corpus says of several directions; else None."""
    languages = target_languages_by_tag(corpus)
    return {"tags": languages} if languages else None


def facts_of_pairs(corpus: AnyCorpus) -> dict[str, Any]:
    """Return which directions a model is trained on, for MLflow; empty for one language pair."""
    if corpus.directions is None:
        return {}
    facts = {}
    for name, direction in corpus.directions.items():
        facts[name] = "zero-shot" if direction.zero_shot else "trained"
    return {"directions": facts}


def languages_text(corpus: AnyCorpus) -> str:
    """Return what a corpus is between, for people: `en to de`, or `en-de, de-en`."""
    if corpus.directions is None:
        return f"{corpus.source} to {corpus.target}"
    return ", ".join(corpus.directions)


def _pair(corpus: C, direction: str) -> C:
    """Return the corpus of one direction."""
    source, target = direction.split("-")
    files = replace(
        corpus.files,
        train=_texts_of(direction, corpus.files.train),
        valid=_texts_of(direction, corpus.files.valid),
        tests=_texts_of(direction, corpus.files.tests),
    )
    tokenize = corpus.tokenize
    if tokenize.name == "segmenter" and not has_segmenter(source) and not has_segmenter(target):
        tokenize = replace(tokenize, name="moses")  # as tokenizer_for does
    return replace(
        corpus,
        tokenize=tokenize,
        split=replace(corpus.split, temperature=None),
        directions=None,
        files=files,
        source=source,
        target=target,
    )


def _texts_of(direction: str, texts: Mapping[str, T]) -> dict[str, T]:
    """Return the texts of a direction, by their names without it."""
    begin = f"{direction}-"
    return {
        name.removeprefix(begin): text for name, text in texts.items() if name.startswith(begin)
    }


def _sides(directions: LocatedMapping, name: Any) -> LocatedMapping:
    """The languages of a direction as source and target."""
    place, match = directions.locations[name], DIRECTION.fullmatch(str(name))
    if not match or match[1] == match[2]:
        raise place.error("a direction is SOURCE-TARGET, two languages such as en-de")
    if not isinstance(directions[name], LocatedMapping):
        raise place.error("not a mapping; {} for the files of the corpus")
    return LocatedMapping(
        {"source": match[1], "target": match[2]}, {"source": place, "target": place}
    )


def _add(
    sets: dict[str, LocatedMapping], direction: str, files: Any, zero_shot: bool, place: Location
) -> None:
    """Add the texts of a direction to the sets of the corpus, named after it."""
    for name in ("tests",) if zero_shot else _SETS:
        if not (texts := as_mapping(as_mapping(files).get(name))):
            raise place.error(f"has no {_SETS[name]}: needs files.{name}")
        for text, value in texts.items():
            sets[name][f"{direction}-{text}"] = value
            sets[name].locations[f"{direction}-{text}"] = texts.locations[text]
