"""Minimal pairs from the phrasebook's grammar: right and wrong translations of new sentences.

The sentences are drawn by the grammar as the test set is, and are in no set of the corpus. The
wrong translation is what the grammar makes of the same tree with one feature changed. A change of
meaning (number, negation, ...) also changes the English sentence, so that the wrong translation is
one of another sentence; a change of grammar (case, agreement, ...) makes no German or French.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from itertools import chain
from typing import NamedTuple

from bleuprint.corpus.phrasebook import english, french, generate, german
from bleuprint.corpus.phrasebook.grammar import Writer
from bleuprint.corpus.phrasebook.lexicon import (
    NAMES,
    NOTHING,
    NUMBERS,
    Name,
    Noun,
    Pronoun,
    Weather,
)
from bleuprint.corpus.phrasebook.splits import LANGUAGES, LONGEST
from bleuprint.corpus.phrasebook.trees import Clause, Phrase, Place, Sentence

# Of each phenomenon.
PAIRS = 100
# Another stream of chance than that of the corpus.
_SEED, _DRAWS = 1730, 20_000
_SENTENCE = dict(zip(LANGUAGES, (english.sentence, german.sentence, french.sentence), strict=True))
_ROLES = ("object", "recipient", "companion", "place")
_OTHER_NUMBER = (3, 4, 4, 0, 2)  # I - we, you - they, he - they
_TENSES = {"present": "past", "past": "present", "future": "past", "progressive": "past"}
_TWO_GENDERS = ("Keks",)  # der or das, by Duden

# The wrong trees of a tree, or the wrong sentences where the grammar has no tree for them.
Change = Callable[[Sentence, Writer], Iterator[Sentence | str]]


class Contrast(NamedTuple):
    """A source with its right translation and a wrong one, as text."""

    source: str
    right: str
    wrong: str


@cache
def minimal_pairs(source: str, target: str, most: int = PAIRS) -> dict[str, list[Contrast]]:
    """Up to `most` pairs of each phenomenon, into German or French; in one, no source is twice."""
    phenomena = {**_MEANING, **_GRAMMAR[target]}
    # two, so that the sentences do not depend on the phenomena
    writer, chooser = Writer(_SEED), Writer(_SEED + 1)
    known = set(chain.from_iterable(chain.from_iterable(map(generate, ("train", "valid", "test")))))
    found: dict[str, dict[str, Contrast]] = {name: {} for name in phenomena}
    for _ in range(_DRAWS):
        if all(len(of_name) >= most for of_name in found.values()):
            break
        tree = writer.sentence()
        text, right = _SENTENCE[source](tree), _SENTENCE[target](tree)
        if not 1 < english.sentence(tree).count(" ") < LONGEST or {text, right} & known:
            continue
        for name, change in phenomena.items():
            if len(found[name]) < most and text not in found[name]:
                for wrong in _wrong(tree, change(tree, chooser), target, name in _MEANING):
                    found[name][text] = Contrast(text, right, wrong)
                    break
    return {name: list(of_name.values()) for name, of_name in found.items()}


def _wrong(
    tree: Sentence, changed: Iterator[Sentence | str], target: str, meaning: bool
) -> Iterator[str]:
    """The sentences that differ from the right one, and if in meaning, in English, too."""
    for each in changed:
        text = each if isinstance(each, str) else _SENTENCE[target](each)
        other = isinstance(each, str) or english.sentence(each) != english.sentence(tree)
        if text != _SENTENCE[target](tree) and (other or not meaning):
            yield text


def _with_clause(tree: Sentence, **changes: object) -> Sentence:
    return replace(tree, clause=replace(tree.clause, **changes))  # type: ignore[arg-type]


def _with_phrase(
    tree: Sentence, change: Callable[[Phrase], Phrase | None], *roles: str
) -> Iterator[Sentence]:
    """The main clause with one of its noun phrases changed, for each that `change` applies to."""
    for role in roles:
        held = getattr(tree.clause, role)
        phrase = held.phrase if isinstance(held, Place) else held
        if phrase is not None and (new := change(phrase)) is not None:
            place = replace(held, phrase=new) if isinstance(held, Place) else new
            yield _with_clause(tree, **{role: place})


def _number(tree: Sentence, _: Writer) -> Iterator[Sentence]:
    """Singular for plural, or plural for singular; no dog is no dogs."""
    if tree.clause.negative:
        return iter(())

    def change(phrase: Phrase) -> Phrase | None:
        head, dets = phrase.head, {"the": "the", "this": "this", "own": "own", "a": "bare"}
        if phrase.plural:
            dets = {after: before for before, after in dets.items()}
        fixed = not isinstance(head, Noun) or {"mass", "one"} & {*head.classes}
        if fixed or phrase.count or phrase.relative or phrase.det not in dets:
            return None
        return replace(phrase, plural=not phrase.plural, det=dets[phrase.det])

    return _with_phrase(tree, change, *_ROLES)


def _numeral(tree: Sentence, writer: Writer) -> Iterator[Sentence]:
    """Another number."""

    def change(phrase: Phrase) -> Phrase | None:
        kind = phrase.count.kind
        others = [n for n in NUMBERS if n.kind == kind and n != phrase.count]
        return replace(phrase, count=writer.pick(others)) if phrase.count else None

    return _with_phrase(tree, change, "subject", *_ROLES)


def _name(tree: Sentence, writer: Writer) -> Iterator[Sentence]:
    """Another person, city or country."""

    def change(phrase: Phrase) -> Phrase | None:
        head, owner = phrase.head, phrase.owner
        if isinstance(head, Name):
            others = [n for n in NAMES if n[3:] == head[3:] and n not in (head, phrase.other)]
            return replace(phrase, head=writer.pick(others)) if others else None
        changed = change(owner) if owner is not None else None
        return changed and replace(phrase, owner=changed)

    return _with_phrase(tree, change, "subject", *_ROLES, "than")


def _negation(tree: Sentence, _: Writer) -> Iterator[Sentence]:
    """Negated or not, where `not` is all that differs; a negated question is near a plain one."""
    clause = tree.clause
    target, modal = clause.object, clause.modal
    quantified = target is not None and (target.count or target.det in ("many", "some", "every"))
    unfit = clause.frequency or clause.complement or (modal and not modal.negative) or quantified
    if not tree.ask and (clause.negative or not unfit):
        yield _with_clause(tree, negative=not clause.negative)


def _tense(tree: Sentence, _: Writer) -> Iterator[Sentence]:
    """Past for others, present for past: in German the present may stand for the future."""
    if tree.clause.modal is None:
        yield _with_clause(tree, tense=_TENSES[tree.clause.tense])


@dataclass(frozen=True, slots=True)
class _Disagreeing(Clause):
    """A clause whose verb has the person and number of another subject."""

    verb_person: int = 2

    @property
    def person(self) -> int:
        return self.verb_person


def _agreement(tree: Sentence, _: Writer) -> Iterator[Sentence]:
    """The verb in the plural after a subject in the singular, or the other way round."""
    clause = tree.clause
    features = {field.name: getattr(clause, field.name) for field in fields(Clause)}
    yield replace(tree, clause=_Disagreeing(**features, verb_person=_OTHER_NUMBER[clause.person]))


def _gender(tree: Sentence, writer: Writer) -> Iterator[Sentence]:
    """Articles and adjectives of another gender than that of the noun, which is not a person."""

    def change(phrase: Phrase) -> Phrase | None:
        head = phrase.head
        if not isinstance(head, Noun) or head.classes[0] == "person" or head.de in _TWO_GENDERS:
            return None
        if head.de == head.de_plural:  # die Zimmer is no wrong gender, but the plural
            return None
        gender = writer.pick([gender for gender in "mfn" if gender != head.gender])
        french_gender = "m" if head.fr_gender == "f" else "f"
        return replace(phrase, head=head._replace(gender=gender, fr_gender=french_gender))

    return _with_phrase(tree, change, "subject", *_ROLES)


def _german_case(tree: Sentence, _: Writer) -> Iterator[Sentence]:
    """Dative for accusative, or the other way round: of an object, after a preposition."""
    verb, companion = tree.clause.verb, tree.clause.companion
    other = {"a": "d", "d": "a"}
    if verb.government and verb.government[-1] in other:
        government = (*verb.government[:-1], other[verb.government[-1]])
        yield _with_clause(tree, verb=verb._replace(government=government))
    if companion is not None and companion.preposition is not None:
        preposition = companion.preposition
        wrong = replace(companion, preposition=preposition._replace(case=other[preposition.case]))
        yield _with_clause(tree, companion=wrong)


def _french_case(tree: Sentence, _: Writer) -> Iterator[Sentence]:
    """`lui` for `le` and the other way round, and after a preposition `il` for `lui`."""
    clause, swapped = tree.clause, {"": "à*", "à*": ""}
    head = clause.object.head if clause.object is not None else None
    two_forms = isinstance(head, Pronoun) and head.clitic != head.indirect
    if two_forms and clause.verb.fr_government in swapped:
        wrong = clause.verb._replace(fr_government=swapped[clause.verb.fr_government])
        yield _with_clause(tree, verb=wrong)

    def nominative(phrase: Phrase) -> Phrase | None:
        head = phrase.head
        wrong = head._replace(stressed=head.fr) if isinstance(head, Pronoun) else None
        return wrong and replace(phrase, head=wrong)

    yield from _with_phrase(tree, nominative, "companion")


def _german_order(tree: Sentence, _: Writer) -> Iterator[Sentence | str]:
    """The finite verb second in a subordinate clause; last, or third, in a main clause."""
    clause, second = tree.clause, tree.second
    if isinstance(second, Clause):
        order = "final" if tree.link.kind == "join" else "main"
        wrong = german.clause(second, order)
        if tree.link.de != "weil":  # in speech, a main clause may follow it
            yield replace(tree, second=Weather("", wrong, wrong, ""))
    elif second is None and not tree.ask:
        if clause.fronted:
            rest = german.clause(replace(clause, fronted=False, time=NOTHING))
            text = f"{clause.time.de} {rest}"
        else:
            text = german.clause(clause, "final")
        yield f"{text[0].upper()}{text[1:]}.".replace(",.", ".")


def _french_order(tree: Sentence, _: Writer) -> Iterator[Sentence]:
    """A pronoun after the verb instead of before, an adverb of frequency the other way round."""
    clause, verb = tree.clause, tree.clause.verb
    target, adverb = clause.object, clause.frequency.fr
    if target is not None and isinstance(target.head, Pronoun) and not tree.ask:
        word = {"": target.head.clitic, "à*": target.head.indirect}.get(verb.fr_government)
        if word is not None:
            stray = Phrase(Name("", "", word, "", ""))
            plain = verb._replace(fr_government="")
            yield _with_clause(tree, object=stray, verb=plain)
    if adverb not in ("", "jamais") and clause.tense == "present" and not tree.ask:
        present = tuple(f"{adverb} {form}" for form in verb.fr_present)
        yield _with_clause(tree, frequency=NOTHING, verb=verb._replace(fr_present=present))


_MEANING: Mapping[str, Change] = {
    "number": _number,
    "numeral": _numeral,
    "name": _name,
    "negation": _negation,
    "tense": _tense,
}
_BOTH: Mapping[str, Change] = {"agreement": _agreement, "gender": _gender}
_GRAMMAR: Mapping[str, Mapping[str, Change]] = {
    "de": {**_BOTH, "case": _german_case, "word order": _german_order},
    "fr": {**_BOTH, "case": _french_case, "word order": _french_order},
}
TARGETS = tuple(_GRAMMAR)
