"""The words of the phrasebook with all their forms: the tables beside this file.

Each table has one class; its fields are the columns.
"""

from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import NamedTuple, TypeVar


class Noun(NamedTuple):
    """`classes`: its roles in sentences (the first is its kind); `oblique`: accusative and dative.

    `place`: the prepositions at, to (English), at, to, from (German), at, to (French).
    """

    en: str
    en_plural: str
    de: str
    gender: str
    oblique: str
    genitive: str
    de_plural: str
    dative_plural: str
    fr: str
    fr_gender: str
    fr_plural: str
    sex: str
    classes: tuple[str, ...]
    place: tuple[str, ...]


class Name(NamedTuple):
    """A person, a city or a country, without an article in any language."""

    en: str
    de: str
    fr: str
    kind: str
    sex: str


class Pronoun(NamedTuple):
    """`person`: I, you, he or she, we, they from 0, the order of all conjugations."""

    en: str
    en_object: str
    en_owner: str
    person: str
    sex: str
    de: str
    accusative: str
    dative: str
    reflexive: str
    de_owner: str
    fr: str
    clitic: str
    indirect: str
    stressed: str
    fr_reflexive: str
    fr_owner: tuple[str, ...]


class Adjective(NamedTuple):
    """`position`: before (`pre`) or after a French noun (`post`), after a verb only (`pred`), or
    beside a noun only (`attr`). `fr_vowel`: the masculine form before a vowel, if different.
    """

    en: str
    en_more: str
    de: str
    de_stem: str
    de_more: str
    fr: str
    fr_feminine: str
    fr_plural: str
    fr_feminine_plural: str
    fr_vowel: str
    position: str
    classes: tuple[str, ...]


class Verb(NamedTuple):
    """`government`: the German preposition of the object, if any, and its case; `fr_government`:
    the French preposition, `à*` if a pronoun becomes a dative clitic.
    """

    en: str
    en_third: str
    en_past: str
    en_ing: str
    particle: str
    de: str
    prefix: str
    de_present: tuple[str, ...]
    de_participle: str
    auxiliary: str
    government: tuple[str, ...]
    fr: str
    fr_present: tuple[str, ...]
    fr_participle: str
    fr_auxiliary: str
    fr_government: str
    reflexive: str
    subject: tuple[str, ...]
    object: tuple[str, ...]
    place: tuple[str, ...]
    traits: tuple[str, ...]


class Modal(NamedTuple):
    """`negative`: the English form before `not`; empty if the modal is never negated."""

    en: str
    en_past: str
    en_link: str
    negative: str
    de: tuple[str, ...]
    de_past: tuple[str, ...]
    fr: tuple[str, ...]
    fr_past: tuple[str, ...]


class Preposition(NamedTuple):
    """A preposition of one meaning, with its German case."""

    en: str
    de: str
    case: str
    fr: str
    kind: str


class Words(NamedTuple):
    """An expression without inflection: an adverbial, a number, a conjunction."""

    en: str
    de: str
    fr: str
    kind: str

    def __bool__(self) -> bool:
        return bool(self.en)


class Weather(NamedTuple):
    """A clause; `de_final`: with the order of a subordinate clause."""

    en: str
    de: str
    de_final: str
    fr: str


Entry = TypeVar("Entry", bound=NamedTuple)


def _read(entry: type[Entry], table: str) -> tuple[Entry, ...]:
    text = resources.files(__package__).joinpath(f"{table}.tsv").read_text(encoding="utf-8")
    header, *rows = (line.split("\t") for line in text.rstrip("\n").split("\n"))
    assert tuple(header) == entry._fields, f"{table}.tsv: {header}"
    kinds = entry.__annotations__.values()
    return tuple(
        entry._make(
            cell if kind is str else tuple(cell.split())
            for cell, kind in zip(row, kinds, strict=True)
        )
        for row in rows
    )


def _filled(adverbs: tuple[Words, ...], fillers: tuple[Words, ...]) -> Iterator[Words]:
    """Each adverbial once for each filler of its slot, as in `last {weekday}`."""
    for adverb in adverbs:
        slot = adverb.en.partition("{")[2].partition("}")[0]
        if not slot:
            yield adverb
        for filler in fillers:
            if filler.kind == slot:
                yield Words(
                    adverb.en.format(**{slot: filler.en}),
                    adverb.de.format(**{slot: filler.de}),
                    adverb.fr.format(**{slot: filler.fr}),
                    adverb.kind,
                )


NOTHING = Words("", "", "", "")
NOUNS = _read(Noun, "nouns")
NAMES = _read(Name, "names")
PRONOUNS = _read(Pronoun, "pronouns")
ADJECTIVES = _read(Adjective, "adjectives")
VERBS = _read(Verb, "verbs")
MODALS = _read(Modal, "modals")
PREPOSITIONS = _read(Preposition, "prepositions")
CONJUNCTIONS = _read(Words, "conjunctions")
COMPLEMENTS = _read(Words, "complements")
WEATHER = _read(Weather, "weather")
_FILLERS = _read(Words, "fillers")
NUMBERS = tuple(filler for filler in _FILLERS if filler.kind in ("number", "measure"))
ADVERBS = tuple(_filled(_read(Words, "adverbs"), _FILLERS))
# The traits of verbs that only their own kind of clause uses.
_SPECIAL = frozenset(("copula", "exist", "age", "hunger", "price", "lack", "play", "speak"))


@cache
def nouns(*classes: str) -> tuple[Noun, ...]:
    return tuple(noun for noun in NOUNS if any(c in noun.classes for c in classes))


@cache
def names(*kinds: str) -> tuple[Name, ...]:
    return tuple(name for name in NAMES if name.kind in kinds)


@cache
def adverbs(kind: str) -> tuple[Words, ...]:
    return tuple(adverb for adverb in ADVERBS if kind in adverb.kind.split())


@cache
def prepositions(kind: str) -> tuple[Preposition, ...]:
    return tuple(preposition for preposition in PREPOSITIONS if preposition.kind == kind)


@cache
def adjectives(kind: str, predicative: bool) -> tuple[Adjective, ...]:
    excluded = "attr" if predicative else "pred"
    return tuple(a for a in ADJECTIVES if kind in a.classes and a.position != excluded)


@cache
def verbs(trait: str) -> tuple[Verb, ...]:
    """The verbs with a trait, or its beginning.

    `acting`: those of ordinary clauses; `doing`: those of actions, which can be tried or intended.
    """
    if trait == "acting":
        return tuple(verb for verb in VERBS if _is_acting(verb))
    if trait == "doing":
        return tuple(v for v in verbs("acting") if not {"state", "past"} & {*v.traits})
    return tuple(v for v in VERBS if any(t.startswith(trait) for t in v.traits))


def _is_acting(verb: Verb) -> bool:
    special = _SPECIAL & {*verb.traits}
    opening = any(t == "that" or t.startswith("inf:") for t in verb.traits)
    return not special and (bool(verb.object) or not opening or "event" in verb.subject)


@cache
def direct(classes: tuple[str, ...]) -> tuple[Verb, ...]:
    """The verbs that one of the classes can be the object of, without a preposition."""
    return tuple(
        verb
        for verb in verbs("acting")
        if len(verb.government) == 1 and not verb.fr_government and verb.en != "have"
        if any(c in verb.object for c in classes)
    )
