"""English: auxiliary verbs, articles and the order of words."""

from __future__ import annotations

from tools.phrasebook.lexicon import Name, Noun, Pronoun, Weather
from tools.phrasebook.trees import Clause, Phrase, Place, Sentence, joined

BE = ("am", "are", "is", "are", "are")
WAS = ("was", "were", "was", "were", "were")
ARTICLES = {"this": ("this", "these"), "a": ("a", ""), "the": ("the", "the"), "bare": ("", "")}
SPOKEN_VOWELS = ("a", "e", "i", "o", "u", "honest")
SPOKEN_CONSONANTS = ("uni", "use")


def sentence(tree: Sentence) -> str:
    text, link = clause(tree.clause, tree.ask), tree.link
    if tree.second is not None:
        second = tree.second.en if isinstance(tree.second, Weather) else clause(tree.second)
        comma = "," if link.kind == "join" else ""
        text = f"{link.en} {second}, {text}" if tree.first else f"{text}{comma} {link.en} {second}"
    return text[0].upper() + text[1:] + ("?" if tree.ask else ".")


def clause(tree: Clause, ask: str = "") -> str:
    """One clause; `ask` makes it a question."""
    subject = "there" if "exist" in tree.verb.traits else noun_phrase(tree.subject)
    if ask == "who":
        subject = ask
    inverted = ask not in ("", "who")
    auxiliary, negation, verb = predicate(tree, inverted)
    if inverted:
        start = [ask.removeprefix("yesno"), auxiliary, subject, negation, verb]
    else:
        start = [subject, auxiliary, negation, verb]
    front, time = (f"{tree.time.en}, ", "") if tree.fronted else ("", tree.time.en)
    return front + joined(
        *start,
        *complements(tree),
        time,
        infinitive(tree.infinitive, "to"),
        infinitive(tree.purpose, "in order to"),
    )


def predicate(tree: Clause, inverted: bool = False) -> tuple[str, str, str]:
    """The auxiliary, if any; what follows it (`not`, `often`); and the full verb."""
    verb, modal, person, past = tree.verb, tree.modal, tree.person, tree.tense == "past"
    exists = "exist" in verb.traits
    if exists and tree.object is not None:
        person = 4 if tree.object.plural else 2
    middle = "not" if tree.negative else tree.frequency.en
    if tree.tense == "future":
        return "will", middle, verb.en
    if tree.tense == "progressive":
        return BE[person], middle, verb.en_ing
    if modal is not None and modal.en != "want":
        if modal.en == "can" and not past and tree.negative and not inverted:
            return "cannot", "", verb.en
        return modal.en_past if past else modal.en, middle, joined(modal.en_link, verb.en)
    if verb.en == "be" and modal is None:
        # with "there is", the article "no" negates
        return (WAS if past else BE)[person], "" if exists and tree.negative else middle, ""
    forms = (verb.en, verb.en_third, verb.en_past)
    if modal is not None:
        forms = (f"want to {verb.en}", f"wants to {verb.en}", f"wanted to {verb.en}")
    base, third, preterite = forms
    if tree.negative or inverted:
        return "did" if past else "does" if person == 2 else "do", middle, base
    return "", middle, preterite if past else third if person == 2 else base


def complements(tree: Clause) -> list[str]:
    """The words between the verb and the time."""
    recipient, comparing = tree.recipient, tree.than is not None
    first = recipient is not None and isinstance(recipient.head, Pronoun)
    adjective = tree.adjective
    return [
        tree.verb.particle,
        noun_phrase(recipient, "object") if first else "",
        noun_phrase(tree.object, "object", "exist" in tree.verb.traits and tree.negative),
        tree.complement.en,
        "" if adjective is None else adjective.en_more if comparing else adjective.en,
        f"than {noun_phrase(tree.than)}" if comparing else "",
        f"to {noun_phrase(recipient, 'object')}" if recipient and not first else "",
        tree.manner.en,
        place(tree.companion),
        place(tree.place),
    ]


def infinitive(tree: Clause | None, marker: str) -> str:
    return joined(marker, tree.verb.en, *complements(tree), tree.time.en) if tree else ""


def place(tree: Place | None) -> str:
    if tree is None:
        return ""
    if tree.preposition is not None:
        preposition = tree.preposition.en
    elif tree.relation == "from":
        preposition = ""  # the verb has it as its particle
    elif isinstance(tree.phrase.head, Noun):
        preposition = tree.phrase.head.place[tree.relation == "to"]
    else:
        preposition = "to" if tree.relation == "to" else "in"
    return joined(preposition, noun_phrase(tree.phrase, "object"))


def noun_phrase(tree: Phrase | None, role: str = "subject", none: bool = False) -> str:
    """`none`: with the article "no"."""
    if tree is None:
        return ""
    head = tree.head
    if isinstance(head, Pronoun):
        return head.en if role == "subject" else head.en_object
    if isinstance(head, Name):
        return head.en if tree.other is None else f"{head.en} and {tree.other.en}"
    adjective = tree.adjective.en if tree.adjective else ""
    core = joined(tree.count.en, adjective, head.en_plural if tree.plural else head.en)
    owner = tree.owner.head if tree.owner is not None else None
    if isinstance(owner, Pronoun):
        core = f"{owner.en_owner} {core}"
    elif isinstance(owner, Name):
        core = f"{owner.en}'s {core}"
    elif owner is not None:
        core = f"the {core} of {noun_phrase(tree.owner, 'object')}"
    else:
        core = joined(determiner("no" if none else tree.det, tree.plural, core), core)
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
    return ARTICLES[kind][is_plural] if kind in ARTICLES else kind
