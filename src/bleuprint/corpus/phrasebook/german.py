"""German: declension, conjugation, and the three places a finite verb can take."""

from __future__ import annotations

from functools import cache

from bleuprint.corpus.phrasebook.lexicon import Adjective, Name, Noun, Pronoun, Verb, Weather
from bleuprint.corpus.phrasebook.trees import Clause, Phrase, Place, Sentence

# Columns of all tables below: masculine, feminine, neuter, plural. Rows: the case.
GENDERS = {"m": 0, "f": 1, "n": 2}
DEFINITE = {
    "n": ("der", "die", "das", "die"),
    "a": ("den", "die", "das", "die"),
    "d": ("dem", "der", "dem", "den"),
    "g": ("des", "der", "des", "der"),
}
RELATIVE = {**DEFINITE, "d": ("dem", "der", "dem", "denen")}
EIN = {
    "n": ("", "e", "", "e"),
    "a": ("en", "e", "", "e"),
    "d": ("em", "er", "em", "en"),
    "g": ("es", "er", "es", "er"),
}
DIESER = {
    "n": ("er", "e", "es", "e"),
    "a": ("en", "e", "es", "e"),
    "d": ("em", "er", "em", "en"),
    "g": ("es", "er", "es", "er"),
}
WEAK = {
    "n": ("e", "e", "e", "en"),
    "a": ("en", "e", "e", "en"),
    "d": ("en", "en", "en", "en"),
    "g": ("en", "en", "en", "en"),
}
MIXED = {
    "n": ("er", "e", "es", "en"),
    "a": ("en", "e", "es", "en"),
    "d": ("en", "en", "en", "en"),
    "g": ("en", "en", "en", "en"),
}
STRONG = {
    "n": ("er", "e", "es", "e"),
    "a": ("en", "e", "es", "e"),
    "d": ("em", "er", "em", "en"),
    "g": ("en", "er", "en", "er"),
}
STEMS = {"this": "dies", "every": "jed", "many": "viel", "some": "einig", "a": "ein", "no": "kein"}
CONTRACTIONS = {
    "in dem": "im",
    "in das": "ins",
    "an dem": "am",
    "an das": "ans",
    "zu dem": "zum",
    "zu der": "zur",
    "von dem": "vom",
}
HABEN = ("habe", "hast", "hat", "haben", "haben")
SEIN = ("bin", "bist", "ist", "sind", "sind")
WERDEN = ("werde", "wirst", "wird", "werden", "werden")
PRETERITE = {
    "sein": ("war", "warst", "war", "waren", "waren"),
    "haben": ("hatte", "hattest", "hatte", "hatten", "hatten"),
    "geben": ("gab", "gab", "gab", "gab", "gab"),
}
ASKED = {"where": "wo", "when": "wann", "why": "warum", "what": "was", "who": "wer"}
ASKED_FOR = {"a": "wen", "d": "wem"}


def sentence(tree: Sentence) -> str:
    second, link = tree.second, tree.link
    if second is None or link is None:
        text = clause(tree.clause, "question", asked(tree)) if tree.ask else clause(tree.clause)
    elif tree.first:
        text = f"{link.de} {subordinate(second)}, {clause(tree.clause, 'question')}"
    else:
        text = clause(tree.clause)
        if link.kind == "join":
            comma = "," if link.de == "aber" else ""
            other = second.de if isinstance(second, Weather) else clause(second)
            text = f"{text}{comma} {link.de} {other}"
        else:
            text = f"{text}, {link.de} {subordinate(second)}"
    text += "?" if tree.ask else "."
    for mark in ",.?":
        text = text.replace("," + mark, mark)
    return text[0].upper() + text[1:]


def asked(tree: Sentence) -> str:
    if tree.ask == "whom":
        return ASKED_FOR[tree.clause.verb.government[-1]]
    return ASKED.get(tree.ask, "")


def subordinate(tree: Clause | Weather) -> str:
    return tree.de_final if isinstance(tree, Weather) else clause(tree, "final")


def clause(tree: Clause, order: str = "main", question_word: str = "") -> str:
    """One clause; `order` puts the finite verb second (main), first after the question word or
    a subordinate clause (question), or last (final)."""
    subject = noun_phrase(tree.subject, "n") if tree.subject is not None else ""
    if "exist" in tree.verb.traits:
        subject = "es"
    finite, tail, final = verbs(tree)
    middle = midfield(tree)
    if order == "question" or tree.fronted:
        subject = with_reflexive(tree, subject, middle)
    if order == "final":
        words = [subject, *middle, final]
    elif order == "question":
        words = [question_word, finite, subject, *middle, tail]
    elif tree.fronted and tree.time is not None:
        words = [tree.time.de, finite, subject, *middle, tail]
    else:
        words = [subject, finite, *middle, tail]
    text = " ".join(filter(None, words))
    if tree.infinitive is not None:
        text += f", {infinitive(tree.infinitive)}"
    if tree.purpose is not None:
        text += f", um {infinitive(tree.purpose)}"
    return text


def with_reflexive(tree: Clause, subject: str, middle: list[str]) -> str:
    """After the finite verb, `sich` goes before a subject that is no pronoun."""
    if not middle or middle[0] != "sich" or tree.subject is None:
        return subject
    return subject if isinstance(tree.subject.head, Pronoun) else f"{middle.pop(0)} {subject}"


def verbs(tree: Clause) -> tuple[str, str, str]:
    """The finite verb, what closes a main clause, and the two as they close a subordinate."""
    verb, modal, person = tree.verb, tree.modal, tree.person
    base = verb.prefix + verb.de
    if tree.tense == "future":
        finite, tail = WERDEN[person], base
    elif modal is not None:
        finite, tail = (modal.de_past if tree.tense == "past" else modal.de)[person], base
    elif tree.tense == "past" and (verb.de in ("sein", "haben") or "exist" in verb.traits):
        finite, tail = PRETERITE[verb.de][person], ""
    elif tree.tense == "past":
        finite, tail = (SEIN if verb.auxiliary else HABEN)[person], participle(verb)
    else:
        finite = present(verb)[person]
        return finite, verb.prefix, verb.prefix + finite
    return finite, tail, f"{tail} {finite}".lstrip()


def midfield(tree: Clause) -> list[str]:
    """All between the two brackets of the verb: pronouns, time, what is known, `nicht`, manner,
    what is new, place."""
    pronouns: list[str] = []
    known: list[str] = []
    new: list[str] = []
    late: list[str] = []
    verb, target = tree.verb, tree.object
    if verb.reflexive in ("de", "both"):
        pronouns.append(reflexive(tree))
    negated = tree.negative
    if tree.recipient is not None:
        text = noun_phrase(tree.recipient, "d")
        (pronouns if isinstance(tree.recipient.head, Pronoun) else known).append(text)
    if target is not None:
        case = verb.government[-1] if verb.government else "n"
        none = negated and target.det in ("a", "bare", "role") and len(verb.government) < 2
        unknown = target.det in ("a", "bare", "role", "many", "some")
        text = noun_phrase(target, case, none)
        negated = negated and not none
        if len(verb.government) > 1:
            text = f"{verb.government[0]} {text}"
            late.append(contracted(text) if case == "d" and target.relative is None else text)
        elif isinstance(target.head, Pronoun):
            pronouns.append(text)
        else:
            (new if unknown else known).append(text)
    adverb = "nicht" if negated else tree.frequency.de if tree.frequency else ""
    time = [tree.time.de] if tree.time is not None and not tree.fronted else []
    if tree.tense == "progressive":
        time.append("gerade")
    manner = tree.manner.de if tree.manner is not None else ""
    return [*pronouns, *time, *known, adverb, manner, *new, *late_field(tree, late)]


def late_field(tree: Clause, objects: list[str]) -> list[str]:
    """What comes last: company, objects with a preposition, places, predicates."""
    words: list[str] = []
    if tree.companion is not None:
        preposition, phrase = tree.companion
        words.append(f"{preposition.de} {noun_phrase(phrase, preposition.case)}")
    words += objects
    if tree.place is not None:
        words.append(place(tree.place))
    if tree.complement is not None:
        words.append(tree.complement.de)
    if tree.adjective is not None:
        words.append(tree.adjective.de_more if tree.than is not None else tree.adjective.de)
    if tree.than is not None:
        words.append("als " + noun_phrase(tree.than, "n"))
    return words


def reflexive(tree: Clause) -> str:
    head = tree.subject.head if tree.subject is not None else None
    return head.reflexive if isinstance(head, Pronoun) else "sich"


def infinitive(tree: Clause) -> str:
    """With `zu`, which a separable verb takes in its middle."""
    verb = tree.verb
    marked = f"{verb.prefix}zu{verb.de}" if verb.prefix else f"zu {verb.de}"
    return " ".join(filter(None, [*midfield(tree), marked]))


def place(tree: Place) -> str:
    if tree.preposition is not None:
        return f"{tree.preposition.de} {noun_phrase(tree.phrase, tree.preposition.case)}"
    index = ("at", "to", "from").index(tree.relation)
    if not isinstance(tree.phrase.head, Noun):
        return f"{('in', 'nach', 'aus')[index]} {noun_phrase(tree.phrase, 'd')}"
    preposition = tree.phrase.head.place[2 + index]
    case = "a" if index == 1 and preposition in ("in", "auf", "an") else "d"
    text = f"{preposition} {noun_phrase(tree.phrase, case)}"
    return text if tree.phrase.relative is not None else contracted(text)


def contracted(text: str) -> str:
    """The preposition melts with the article: am, im, zum."""
    start = " ".join(text.split(" ", 2)[:2])
    return CONTRACTIONS.get(start, start) + text[len(start) :]


def noun_phrase(tree: Phrase, case: str, none: bool = False) -> str:
    """`none` puts the article `kein`."""
    head = tree.head
    if isinstance(head, Pronoun):
        return {"n": head.de, "a": head.accusative, "d": head.dative}[case]
    if isinstance(head, Name):
        return head.de if tree.other is None else f"{head.de} und {tree.other.de}"
    column = 3 if tree.plural else GENDERS[head.gender]
    article, endings = determiner(tree, case, column, none)
    words = [article, tree.count.de if tree.count else ""]
    if tree.adjective is not None:
        words.append(stem(tree.adjective) + endings[case][column])
    words.append(noun(head, case, tree.plural))
    text = " ".join(filter(None, words))
    if tree.owner is not None and isinstance(tree.owner.head, Noun):
        text = f"{text} {noun_phrase(tree.owner, 'g')}"
    if tree.relative is not None:
        role = tree.relative.verb.government[-1] if tree.relative.gap == "object" else "n"
        text = f"{text}, {RELATIVE[role][column]} {clause(tree.relative, 'final')},"
    return text


def determiner(
    tree: Phrase, case: str, column: int, none: bool
) -> tuple[str, dict[str, tuple[str, str, str, str]]]:
    """The article and the endings that an adjective takes after it."""
    kind = "no" if none else tree.det
    if tree.owner is not None:
        owner = tree.owner.head
        if isinstance(owner, Pronoun):
            return owner.de_owner + EIN[case][column], MIXED
        if isinstance(owner, Name):
            return owner.de + "s", STRONG
        kind = "the"
    if kind == "the":
        return DEFINITE[case][column], WEAK
    if kind in ("this", "every"):
        return STEMS[kind] + DIESER[case][column], WEAK
    if kind in ("many", "some"):
        return STEMS[kind] + DIESER[case][column], STRONG
    if kind == "no" or (kind == "a" and column < 3):
        return STEMS[kind] + EIN[case][column], MIXED
    return "", STRONG


@cache
def noun(entry: Noun, case: str, is_plural: bool) -> str:
    if is_plural:
        bare = entry.de_plural.endswith(("n", "s")) or " " in entry.de_plural
        return entry.de_plural + ("n" if case == "d" and not bare else "")
    if case == "g" and entry.gender != "f":
        return entry.genitive or entry.de + "s"
    return entry.oblique or entry.de if case != "n" else entry.de


@cache
def stem(adjective: Adjective) -> str:
    """What the endings are put to."""
    if adjective.de_stem:
        return adjective.de_stem
    return adjective.de[:-1] if adjective.de.endswith("e") else adjective.de


@cache
def present(verb: Verb) -> tuple[str, ...]:
    """The forms for ich, du, er, wir, sie; the table has all five, or du and er, or none."""
    if len(verb.stems) == 5:
        return verb.stems
    root = verb.de[:-2] if verb.de.endswith("en") else verb.de[:-1]
    you, he = verb.stems or (root + "st", root + "t")
    first = root[:-2] + "le" if root.endswith("el") else root + "e"
    return first, you, he, verb.de, verb.de


@cache
def participle(verb: Verb) -> str:
    return verb.participle or f"{verb.prefix}ge{verb.de.removesuffix('en')}t"
