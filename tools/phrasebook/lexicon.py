"""The words of the phrasebook with all their forms, from the tables in this folder.

Each table, such as nouns.tsv, has one class; the fields of the class are the columns of the table.
Fields that start with `en`, `de` or `fr` are English, German or French. The functions at the end
select the words that fit into a sentence.
"""

from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import NamedTuple, TypeVar


class Noun(NamedTuple):
    """A noun.

    Attributes:
        gender: The gender in German: m, f or n.
        oblique: The German accusative and dative, which are always equal.
        genitive: The German genitive.
        dative_plural: The German dative plural.
        sex: The sex of the person, if the noun says it.
        classes: The roles of the noun in sentences. The first one is its kind, such as `person`.
        place: Its prepositions, in the order of `_PREPOSITION_COLUMNS`; empty if it is not a place.
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

    def preposition(self, language: str, relation: str) -> str:
        """Return the preposition for `at`, `to` or `from` this place."""
        return self.place[_PREPOSITION_COLUMNS[language, relation]]


# The columns of Noun.place, by language and relation. An English verb includes "from", and the
# French sentences never use it with a noun.
_PREPOSITION_COLUMNS = {
    ("en", "at"): 0,
    ("en", "to"): 1,
    ("de", "at"): 2,
    ("de", "to"): 3,
    ("de", "from"): 4,
    ("fr", "at"): 5,
    ("fr", "to"): 6,
}


class Name(NamedTuple):
    """A person, a city or a country, without an article in any language."""

    en: str
    de: str
    fr: str
    kind: str
    sex: str


class Pronoun(NamedTuple):
    """A personal pronoun.

    Attributes:
        en_owner: The English possessive. `de_owner` is the German one without its ending.
        person: A digit: the index in all tables of conjugation, which have the order I, you, he or
            she, we, they.
        sex: The sex, m or f.
        accusative: The German accusative; `dative` and `reflexive` are German, too.
        clitic: The French direct object before the verb.
        indirect: The French indirect object before the verb.
        stressed: The French form after a preposition.
        fr_owner: The French possessives: masculine, feminine, plural.
    """

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
    """An adjective.

    Attributes:
        en_more: The English comparative; empty if the adjective is never compared.
        de_stem: The German form to which endings are added.
        de_more: The German comparative.
        fr_vowel: The French masculine form before a vowel, if it differs.
        position: `pre` before a French noun, `post` after it, `pred` after a verb only, or `attr`
            with a noun only.
        classes: The kinds of nouns that the adjective describes.
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
    """A verb.

    Attributes:
        en: The English infinitive; `en_third`, `en_past` and `en_ing` are its other forms.
        particle: What follows the English verb: "up" of "get up".
        de: The German infinitive without `prefix`, which is separated in main clauses.
        de_present: The German present by person, in the order of `Pronoun.person`.
        auxiliary: `sein` if it forms the German perfect, otherwise empty.
        government: The preposition of the German object, if any, and the case: n, a or d.
        fr: The French infinitive; `fr_present` is by person.
        fr_auxiliary: `être` if it forms the French perfect, otherwise empty.
        fr_government: The preposition of the French object; `à*` if a pronoun stands before the
            verb instead.
        reflexive: The language in which the verb is reflexive: `de`, `fr` or `both`.
        subject: The classes of nouns that can be its subject; `object` and `place` likewise. The
            first place may start with a relation, as in `to:city`; `!` ends the last one if the
            verb requires a place.
        traits: What else matters for the sentences with this verb. `state`: no progressive, and no
            past without the trait `past`; `past` alone: it happens at once, so no progressive
            either; `inf:de`: an infinitive follows, in French with `de`; `that`: a clause follows;
            `to`: with a recipient.
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
    """A modal verb.

    Attributes:
        en_past: The English past; empty if there is none. Then `de_past` and `fr_past` are empty.
        en_link: The words between the English modal and the verb, such as "to".
        negative: The English form before `not`; empty if the modal is never negated.
        de: The German present by person, in the order of `Pronoun.person`; `fr` likewise.
    """

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
    """An expression without inflection: an adverbial, a number, a conjunction.

    Attributes:
        kind: Where the expression is used, such as `number`; several kinds are separated by spaces.
    """

    en: str
    de: str
    fr: str
    kind: str

    def __bool__(self) -> bool:
        """Return whether there is an expression: `NOTHING` has no words."""
        return bool(self.en)


class Weather(NamedTuple):
    """A clause about the weather; `de_final` has the order of a subordinate clause."""

    en: str
    de: str
    de_final: str
    fr: str


Entry = TypeVar("Entry", bound=NamedTuple)


def _read(entry_class: type[Entry], table: str) -> tuple[Entry, ...]:
    """Read a table of words, separated by tabs, whose header names the fields of a class.

    Args:
        entry_class: The named tuple for a row. A cell for a field of type tuple contains several
            words, separated by spaces.
        table: The name of the file without its extension.
    """
    file = resources.files(__package__).joinpath(f"{table}.tsv")
    lines = file.read_text(encoding="utf-8").rstrip("\n").split("\n")
    header = lines[0].split("\t")
    assert tuple(header) == entry_class._fields, f"{table}.tsv: {header}"
    field_types = entry_class.__annotations__.values()
    entries = list[Entry]()
    for line in lines[1:]:
        fields = list[str | tuple[str, ...]]()
        for cell, field_type in zip(line.split("\t"), field_types, strict=True):
            fields.append(cell if field_type is str else tuple(cell.split()))
        entries.append(entry_class._make(fields))
    return tuple(entries)


def _fill_slots(adverbs: tuple[Words, ...], fillers: tuple[Words, ...]) -> Iterator[Words]:
    """Yield each adverbial once for each filler of its slot.

    `last {weekday}` has the slot `weekday`: it becomes "last Monday", "last Tuesday" and so on. An
    adverbial without a slot is yielded unchanged.
    """
    for adverb in adverbs:
        slot = adverb.en.partition("{")[2].partition("}")[0]
        if not slot:
            yield adverb
            continue
        for filler in fillers:
            if filler.kind == slot:
                yield Words(
                    adverb.en.replace(f"{{{slot}}}", filler.en),
                    adverb.de.replace(f"{{{slot}}}", filler.de),
                    adverb.fr.replace(f"{{{slot}}}", filler.fr),
                    adverb.kind,
                )


NOTHING = Words("", "", "", "")
NOUNS = _read(Noun, "nouns")
NAMES = _read(Name, "names")
PRONOUNS = _read(Pronoun, "pronouns")
# The order of pronouns.tsv.
PRONOUN_I, YOU, HE, SHE, WE, THEY = PRONOUNS
ADJECTIVES = _read(Adjective, "adjectives")
VERBS = _read(Verb, "verbs")
MODALS = _read(Modal, "modals")
PREPOSITIONS = _read(Preposition, "prepositions")
CONJUNCTIONS = _read(Words, "conjunctions")
COMPLEMENTS = _read(Words, "complements")
WEATHER = _read(Weather, "weather")
_FILLERS = _read(Words, "fillers")
# From two to twelve.
SMALL_NUMBERS = tuple(filler for filler in _FILLERS if filler.kind == "number")
# From 15 to 250.
LARGE_NUMBERS = tuple(filler for filler in _FILLERS if filler.kind == "measure")
NUMBERS = SMALL_NUMBERS + LARGE_NUMBERS
ADVERBS = tuple(_fill_slots(_read(Words, "adverbs"), _FILLERS))
# The traits of verbs that only their own kind of clause uses.
_SPECIAL = frozenset(("copula", "exist", "age", "hunger", "price", "lack", "play", "speak"))

# Each sentence draws from these selections, so that they are cached.


@cache
def nouns(*classes: str) -> tuple[Noun, ...]:
    """Return the nouns of one or more classes."""
    return tuple(noun for noun in NOUNS if not set(classes).isdisjoint(noun.classes))


@cache
def names(*kinds: str) -> tuple[Name, ...]:
    """Return the names of one or more kinds: `person`, `city`, `country`."""
    return tuple(name for name in NAMES if name.kind in kinds)


@cache
def adverbs(kind: str) -> tuple[Words, ...]:
    """Return the adverbials of a kind, such as `past`."""
    return tuple(adverb for adverb in ADVERBS if kind in adverb.kind.split())


@cache
def prepositions(kind: str) -> tuple[Preposition, ...]:
    """Return the prepositions of a kind, such as `companion`."""
    return tuple(preposition for preposition in PREPOSITIONS if preposition.kind == kind)


@cache
def conjunctions(kind: str) -> tuple[Words, ...]:
    """Return the conjunctions of a kind, such as `reason`."""
    return tuple(conjunction for conjunction in CONJUNCTIONS if conjunction.kind == kind)


@cache
def complements(kind: str) -> tuple[Words, ...]:
    """Return the complements of the verb with a trait, such as `play`."""
    return tuple(complement for complement in COMPLEMENTS if complement.kind == kind)


@cache
def modals_with_past() -> tuple[Modal, ...]:
    """Return the modal verbs that have a past in all languages: can, want."""
    return tuple(modal for modal in MODALS if modal.en_past and modal.de_past)


@cache
def adjectives(kind: str, *, is_after_verb: bool) -> tuple[Adjective, ...]:
    """Return the adjectives that describe a kind of noun.

    Args:
        kind: The kind of noun.
        is_after_verb: True for adjectives after "to be", as in "he is ill"; False for adjectives
            with a noun, as in "the main road".
    """
    # Adjectives that only stand with a noun (attributive) or only after a verb (predicative).
    excluded = "attr" if is_after_verb else "pred"
    fitting = list[Adjective]()
    for adjective in ADJECTIVES:
        if kind in adjective.classes and adjective.position != excluded:
            fitting.append(adjective)
    return tuple(fitting)


@cache
def verbs(trait: str) -> tuple[Verb, ...]:
    """Return the verbs that have a trait with this beginning: `inf:` also finds `inf:de`."""
    fitting = list[Verb]()
    for verb in VERBS:
        if any(own_trait.startswith(trait) for own_trait in verb.traits):
            fitting.append(verb)
    return tuple(fitting)


@cache
def ordinary_verbs() -> tuple[Verb, ...]:
    """Return the verbs of ordinary clauses: subject, verb, object."""
    return tuple(verb for verb in VERBS if _is_ordinary(verb))


def _is_ordinary(verb: Verb) -> bool:
    """Return whether a verb can form a clause without another clause or a fixed complement.

    "Promise" needs another clause, "be hungry" a fixed complement; "read" is ordinary.
    """
    if not _SPECIAL.isdisjoint(verb.traits):
        return False
    if verb.object or "event" in verb.subject:
        return True
    needs_clause = any(trait == "that" or trait.startswith("inf:") for trait in verb.traits)
    return not needs_clause


@cache
def activity_verbs() -> tuple[Verb, ...]:
    """Return the verbs of activities, which can be tried or intended."""
    fitting = list[Verb]()
    for verb in ordinary_verbs():
        if "state" not in verb.traits and "past" not in verb.traits:
            fitting.append(verb)
    return tuple(fitting)


@cache
def verbs_with_direct_object(classes: tuple[str, ...]) -> tuple[Verb, ...]:
    """Return the verbs that can have a noun of these classes as direct object."""
    fitting = list[Verb]()
    for verb in ordinary_verbs():
        has_preposition = len(verb.government) != 1 or verb.fr_government
        if not has_preposition and verb.en != "have" and not set(classes).isdisjoint(verb.object):
            fitting.append(verb)
    return tuple(fitting)
