"""English: the forms of its words, and the order they take in a sentence."""

from __future__ import annotations

from functools import cache

from bleuprint.corpus.phrasebook.lexicon import Name, Noun, Pronoun, Verb, Weather
from bleuprint.corpus.phrasebook.trees import Clause, Phrase, Place, Sentence

BE = ("am", "are", "is", "are", "are")
WAS = ("was", "were", "was", "were", "were")
ARTICLES = {"this": ("this", "these"), "a": ("a", ""), "the": ("the", "the")}
SPOKEN_VOWELS = ("a", "e", "i", "o", "u", "honest")
SPOKEN_CONSONANTS = ("uni", "use")
ASKED = {
    "yesno": "",
    "where": "where",
    "when": "when",
    "why": "why",
    "what": "what",
    "whom": "whom",
}


def sentence(tree: Sentence) -> str:
    text = clause(tree.clause, tree.ask)
    second = tree.second
    if second is not None and tree.link is not None:
        other = second.en if isinstance(second, Weather) else clause(second)
        if tree.first:
            text = f"{tree.link.en} {other}, {text}"
        else:
            comma = "," if tree.link.kind == "join" else ""
            text = f"{text}{comma} {tree.link.en} {other}"
    return text[0].upper() + text[1:] + ("?" if tree.ask else ".")


def clause(tree: Clause, ask: str = "") -> str:
    """One clause; `ask` makes it a question."""
    subject = "there" if "exist" in tree.verb.traits else ""
    if tree.subject is not None and not subject:
        subject = noun_phrase(tree.subject)
    inverted = ask in ASKED
    auxiliary, negation, rest = predicate(tree, inverted)
    if inverted:
        start = [ASKED[ask], auxiliary, subject, negation]
    else:
        start = ["who" if ask == "who" else subject, auxiliary, negation]
    front, time = "", tree.time.en if tree.time else ""
    if tree.fronted:
        front, time = f"{time}, ", ""
    return front + " ".join(filter(None, [*start, rest, *complements(tree), time, *clauses(tree)]))


def predicate(tree: Clause, inverted: bool = False) -> tuple[str, str, str]:
    """The auxiliary if there is one, what follows it (`not`, `often`), and the full verb."""
    person = tree.person
    if "exist" in tree.verb.traits and tree.object is not None:
        person = 4 if tree.object.plural else 2
    past = tree.tense == "past"
    verb, modal = tree.verb, tree.modal
    middle = "not" if tree.negative else tree.frequency.en if tree.frequency else ""
    if tree.tense == "future":
        return "will", middle, verb.en
    if tree.tense == "progressive":
        return BE[person], middle, present_participle(verb)
    if modal is not None and modal.en != "want":
        if modal.en == "can" and not past and tree.negative and not inverted:
            return "cannot", "", verb.en
        return modal.en_past if past else modal.en, middle, f"{modal.en_link} {verb.en}".strip()
    if verb.en == "be" and modal is None:
        if "exist" in verb.traits and tree.negative:
            middle = ""  # said by "no"
        return (WAS if past else BE)[person], middle, ""
    base = verb.en if modal is None else f"want to {verb.en}"
    if tree.negative or inverted:
        return "did" if past else "does" if person == 2 else "do", middle, base
    if modal is not None:
        return "", middle, ("wanted" if past else "wants" if person == 2 else "want") + base[4:]
    return "", middle, past_form(verb) if past else third_person(verb) if person == 2 else base


def complements(tree: Clause) -> list[str]:
    """All that follows the verb, up to the time."""
    verb, words = tree.verb, [tree.verb.particle]
    recipient = tree.recipient
    if recipient is not None and isinstance(recipient.head, Pronoun):
        words.append(recipient.head.en_object)
    if tree.object is not None:
        words.append(noun_phrase(tree.object, "object", "exist" in verb.traits and tree.negative))
    if tree.complement is not None:
        words.append(tree.complement.en)
    if tree.adjective is not None:
        words.append(tree.adjective.en_more if tree.than is not None else tree.adjective.en)
    if tree.than is not None:
        words.append("than " + noun_phrase(tree.than))
    if recipient is not None and not isinstance(recipient.head, Pronoun):
        words.append("to " + noun_phrase(recipient, "object"))
    if tree.manner is not None:
        words.append(tree.manner.en)
    if tree.companion is not None:
        preposition, phrase = tree.companion
        words.append(f"{preposition.en} {noun_phrase(phrase, 'object')}")
    if tree.place is not None:
        words.append(place(tree.place))
    return words


def clauses(tree: Clause) -> list[str]:
    """The infinitives that close a clause."""
    found = []
    if tree.infinitive is not None:
        found.append(infinitive(tree.infinitive, "to"))
    if tree.purpose is not None:
        found.append(infinitive(tree.purpose, "in order to"))
    return found


def infinitive(tree: Clause, marker: str) -> str:
    time = tree.time.en if tree.time else ""
    return " ".join(filter(None, [marker, tree.verb.en, *complements(tree), time]))


def place(tree: Place) -> str:
    if tree.preposition is not None:
        preposition = tree.preposition.en
    elif tree.relation == "from":
        preposition = ""  # the verb has it as its particle
    elif isinstance(tree.phrase.head, Noun):
        preposition = tree.phrase.head.place[tree.relation == "to"]
    else:
        preposition = "to" if tree.relation == "to" else "in"
    return f"{preposition} {noun_phrase(tree.phrase, 'object')}".strip()


def noun_phrase(tree: Phrase, role: str = "subject", none: bool = False) -> str:
    """`none` puts the article "no"."""
    head = tree.head
    if isinstance(head, Pronoun):
        return head.en if role == "subject" else head.en_object
    if isinstance(head, Name):
        return head.en if tree.other is None else f"{head.en} and {tree.other.en}"
    words = [tree.count.en if tree.count else "", tree.adjective.en if tree.adjective else ""]
    words.append(plural(head) if tree.plural else head.en)
    core = " ".join(filter(None, words))
    if tree.owner is not None and not isinstance(tree.owner.head, Noun):
        owner = tree.owner.head
        core = f"{owner.en_owner} {core}" if isinstance(owner, Pronoun) else f"{owner.en}'s {core}"
    elif tree.owner is not None:
        core = f"the {core} of {noun_phrase(tree.owner, 'object')}"
    else:
        core = f"{determiner('no' if none else tree.det, tree.plural, core)} {core}".lstrip()
    if tree.relative is not None:
        person = "person" in head.classes
        pronoun = ("whom" if tree.relative.gap == "object" else "who") if person else "that"
        core = f"{core} {pronoun} {clause(tree.relative)}"
    return core


def determiner(kind: str, is_plural: bool, following: str) -> str:
    kind = "a" if kind == "role" else kind
    if kind == "a" and not is_plural:
        vowel = following.lower().startswith(SPOKEN_VOWELS)
        return "an" if vowel and not following.startswith(SPOKEN_CONSONANTS) else "a"
    return ARTICLES[kind][is_plural] if kind in ARTICLES else "" if kind == "bare" else kind


@cache
def plural(noun: Noun) -> str:
    if noun.en_plural:
        return noun.en_plural
    if noun.en.endswith(("s", "sh", "ch", "x")):
        return noun.en + "es"
    if noun.en.endswith("y") and noun.en[-2] not in "aeiou":
        return noun.en[:-1] + "ies"
    return noun.en + "s"


@cache
def third_person(verb: Verb) -> str:
    base = verb.en
    if base == "have":
        return "has"
    if base.endswith(("s", "sh", "ch", "x", "go")):
        return base + "es"
    return base[:-1] + "ies" if base.endswith("y") and base[-2] not in "aeiou" else base + "s"


@cache
def past_form(verb: Verb) -> str:
    base = verb.en
    if verb.en_past:
        return verb.en_past
    if base.endswith("y") and base[-2] not in "aeiou":
        return base[:-1] + "ied"
    return base + ("d" if base.endswith("e") else "ed")


@cache
def present_participle(verb: Verb) -> str:
    if verb.en_ing:
        return verb.en_ing
    silent = verb.en.endswith("e") and not verb.en.endswith("ee")
    return (verb.en[:-1] if silent else verb.en) + "ing"
