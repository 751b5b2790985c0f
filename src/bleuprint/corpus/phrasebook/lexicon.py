"""The words of the phrasebook: rows of the tables beside this file, one dataclass a table.

An empty cell means "by rule": the language modules inflect regular words, and the tables
hold what no rule gives. Entries are compared by identity, so that they are cheap keys.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cache
from importlib import resources
from typing import Any, TypeVar


@dataclass(frozen=True, eq=False, slots=True)
class Noun:
    """`classes` say what it can be in a sentence (the first one is its kind); `place` holds
    the prepositions of rest and direction: at, to (English), at, to, from (German), at, to
    (French)."""

    en: str
    en_plural: str
    de: str
    gender: str
    genitive: str
    de_plural: str
    oblique: str
    fr: str
    fr_gender: str
    fr_plural: str
    sex: str
    classes: tuple[str, ...]
    place: tuple[str, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Name:
    """A person, a city or a country; none has an article in any of the languages."""

    en: str
    de: str
    fr: str
    kind: str
    sex: str


@dataclass(frozen=True, eq=False, slots=True)
class Pronoun:
    """`person` counts I, you, he or she, we, they: the order of all conjugation tables."""

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


@dataclass(frozen=True, eq=False, slots=True)
class Adjective:
    """`position` is French: before the noun (`pre`) or after it; `pred` never stands
    beside a noun, in no language, and `attr` nowhere else."""

    en: str
    en_more: str
    de: str
    de_stem: str
    de_more: str
    fr: str
    fr_feminine: str
    fr_vowel: str
    fr_plural: str
    position: str
    classes: tuple[str, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Verb:
    """`government` is the German case of the object, after a preposition if it has one;
    `fr_government` the French preposition, `à*` where a pronoun becomes a dative clitic."""

    en: str
    en_past: str
    en_ing: str
    particle: str
    de: str
    prefix: str
    stems: tuple[str, ...]
    participle: str
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


@dataclass(frozen=True, eq=False, slots=True)
class Modal:
    """`negative` names the tenseless English forms that may stand before `not`."""

    en: str
    en_past: str
    en_link: str
    negative: str
    de: tuple[str, ...]
    de_past: tuple[str, ...]
    fr: tuple[str, ...]
    fr_past: tuple[str, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Preposition:
    """A preposition that means the same wherever it stands, with its German case."""

    en: str
    de: str
    case: str
    fr: str
    kind: str


@dataclass(frozen=True, eq=False, slots=True)
class Words:
    """An expression that is never inflected: an adverbial, a number, a conjunction."""

    en: str
    de: str
    fr: str
    kind: str


@dataclass(frozen=True, eq=False, slots=True)
class Weather:
    """A whole clause without a subject to speak of; `de_final` is its subordinate order."""

    en: str
    de: str
    de_final: str
    fr: str


Entry = TypeVar("Entry")
# The traits of verbs that only their own kind of clause uses.
SPECIAL = frozenset(("copula", "exist", "age", "hunger", "price", "lack", "play", "speak"))


@dataclass(frozen=True, slots=True)
class Lexicon:
    nouns: tuple[Noun, ...]
    names: tuple[Name, ...]
    pronouns: tuple[Pronoun, ...]
    adjectives: tuple[Adjective, ...]
    verbs: tuple[Verb, ...]
    modals: tuple[Modal, ...]
    prepositions: tuple[Preposition, ...]
    conjunctions: tuple[Words, ...]
    complements: tuple[Words, ...]
    weather: tuple[Weather, ...]
    numbers: tuple[Words, ...]
    adverbs: tuple[Words, ...]


@cache
def lexicon() -> Lexicon:
    """Read all tables, once a process."""
    fillers = _read(Words, "fillers")
    return Lexicon(
        nouns=_read(Noun, "nouns"),
        names=_read(Name, "names"),
        pronouns=_read(Pronoun, "pronouns"),
        adjectives=_read(Adjective, "adjectives"),
        verbs=_read(Verb, "verbs"),
        modals=_read(Modal, "modals"),
        prepositions=_read(Preposition, "prepositions"),
        conjunctions=_read(Words, "conjunctions"),
        complements=_read(Words, "complements"),
        weather=_read(Weather, "weather"),
        numbers=tuple(filler for filler in fillers if filler.kind in ("number", "measure")),
        adverbs=tuple(_filled(_read(Words, "adverbs"), fillers)),
    )


@cache
def nouns(classes: tuple[str, ...]) -> tuple[Noun, ...]:
    return tuple(noun for noun in lexicon().nouns if any(c in noun.classes for c in classes))


@cache
def names(*kinds: str) -> tuple[Name, ...]:
    return tuple(name for name in lexicon().names if name.kind in kinds)


@cache
def adverbs(kind: str) -> tuple[Words, ...]:
    return tuple(adverb for adverb in lexicon().adverbs if kind in adverb.kind.split())


@cache
def adjectives(kind: str, predicative: bool) -> tuple[Adjective, ...]:
    fitting = (adjective for adjective in lexicon().adjectives if kind in adjective.classes)
    return tuple(a for a in fitting if a.position != ("attr" if predicative else "pred"))


@cache
def verbs(trait: str) -> tuple[Verb, ...]:
    """The verbs with a trait; `acting` are those of ordinary clauses, `doing` the ones among
    them that can be wanted, tried or interrupted."""
    if trait == "acting":
        return tuple(verb for verb in lexicon().verbs if is_acting(verb))
    if trait == "doing":
        return tuple(v for v in verbs("acting") if not {"state", "past"} & {*v.traits})
    return tuple(v for v in lexicon().verbs if any(t.startswith(trait) for t in v.traits))


def is_acting(verb: Verb) -> bool:
    special = SPECIAL & {*verb.traits}
    opening = any(t == "that" or t.startswith("inf:") for t in verb.traits)
    return not special and (bool(verb.object) or not opening or "event" in verb.subject)


def is_direct(verb: Verb) -> bool:
    """Whether a relative pronoun can be the verb's object without a preposition."""
    return bool(verb.object) and len(verb.government) == 1 and not verb.fr_government


@cache
def direct(classes: tuple[str, ...]) -> tuple[Verb, ...]:
    found = (verb for verb in verbs("acting") if is_direct(verb) and verb.en != "have")
    return tuple(verb for verb in found if any(c in verb.object for c in classes))


def _read(entry: type[Entry], table: str) -> tuple[Entry, ...]:
    text = resources.files(__package__).joinpath(f"{table}.tsv").read_text(encoding="utf-8")
    header, *rows = (line.split("\t") for line in text.rstrip("\n").split("\n"))
    columns: tuple[Any, ...] = fields(entry)  # type: ignore[arg-type]
    assert header == [column.name for column in columns], f"{table}.tsv: {header}"
    return tuple(
        entry(*(_cell(cell, column.type) for cell, column in zip(row, columns, strict=True)))
        for row in rows
    )


def _cell(text: str, kind: str) -> Any:
    return tuple(text.split()) if kind.startswith("tuple") else text


def _filled(adverbs: tuple[Words, ...], fillers: tuple[Words, ...]) -> Iterator[Words]:
    """Every adverbial once for each filler of its slot, as in `last {weekday}`."""
    for adverb in adverbs:
        slot = adverb.en.partition("{")[2].partition("}")[0]
        if not slot:
            yield adverb
        for filler in fillers:
            if filler.kind == slot:
                mark = "{" + slot + "}"
                yield Words(
                    adverb.en.replace(mark, filler.en),
                    adverb.de.replace(mark, filler.de),
                    adverb.fr.replace(mark, filler.fr),
                    adverb.kind,
                )
