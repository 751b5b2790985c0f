"""German: declension, separable verbs, and the three places of a finite verb."""

from __future__ import annotations

from tools.phrasebook.lexicon import Name, Noun, Pronoun, Weather
from tools.phrasebook.trees import Clause, Phrase, Place, Sentence, joined

# By case: nominative, accusative, dative, genitive.
Paradigm = dict[str, tuple[str, ...]]


def paradigm(*cases: str) -> Paradigm:
    """The forms of each case: masculine, feminine, neuter, plural; "-" is an empty one."""
    rows = (tuple(form.strip("-") for form in forms.split()) for forms in cases)
    return dict(zip("nadg", rows, strict=True))


GENDERS = {"m": 0, "f": 1, "n": 2}
DEFINITE = paradigm("der die das die", "den die das die", "dem der dem den", "des der des der")
RELATIVE = {**DEFINITE, "d": ("dem", "der", "dem", "denen")}
EIN = paradigm("- e - e", "en e - e", "em er em en", "es er es er")
DIESER = paradigm("er e es e", "en e es e", "em er em en", "es er es er")
WEAK = paradigm("e e e en", "en e e en", "en en en en", "en en en en")
MIXED = paradigm("er e es en", "en e es en", "en en en en", "en en en en")
STRONG = paradigm("er e es e", "en e es e", "em er em en", "en er en er")
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
QUESTION_WORDS = {"where": "wo", "when": "wann", "why": "warum", "what": "was", "who": "wer"}
WHOM = {"a": "wen", "d": "wem"}


def sentence(tree: Sentence) -> str:
    link, second = tree.link, tree.second
    if tree.ask == "whom":
        text = clause(tree.clause, "question", WHOM[tree.clause.verb.government[-1]])
    elif tree.ask:
        text = clause(tree.clause, "question", QUESTION_WORDS.get(tree.ask, ""))
    elif tree.first and second is not None:
        text = f"{link.de} {subordinate(second)}, {clause(tree.clause, 'question')}"
    else:
        text = clause(tree.clause)
    if second is not None and link.kind == "join":
        comma = "," if link.de == "aber" else ""
        other = second.de if isinstance(second, Weather) else clause(second)
        text = f"{text}{comma} {link.de} {other}"
    elif second is not None and not tree.first:
        text = f"{text}, {link.de} {subordinate(second)}"
    text += "?" if tree.ask else "."
    for mark in ",.?":
        text = text.replace("," + mark, mark)
    return text[0].upper() + text[1:]


def subordinate(tree: Clause | Weather) -> str:
    return tree.de_final if isinstance(tree, Weather) else clause(tree, "final")


def clause(tree: Clause, order: str = "main", first: str = "") -> str:
    """One clause; `order`: the finite verb is second (main), before the subject (question: after
    `first`, or after a subordinate clause), or last (final).
    """
    subject = "es" if "exist" in tree.verb.traits else noun_phrase(tree.subject, "n")
    finite, tail, final = verbs(tree)
    middle = midfield(tree)
    if order == "question" or tree.fronted:
        subject = with_reflexive(tree, subject, middle)
    if order == "final":
        words = [subject, *middle, final]
    elif order == "question":
        words = [first, finite, subject, *middle, tail]
    elif tree.fronted:
        words = [tree.time.de, finite, subject, *middle, tail]
    else:
        words = [subject, finite, *middle, tail]
    text = joined(*words)
    if tree.infinitive is not None:
        text += f", {infinitive(tree.infinitive)}"
    if tree.purpose is not None:
        text += f", um {infinitive(tree.purpose)}"
    return text


def with_reflexive(tree: Clause, subject: str, middle: list[str]) -> str:
    """After the finite verb, `sich` precedes a subject that is no pronoun."""
    if not middle or middle[0] != "sich" or tree.subject is None:
        return subject
    return subject if isinstance(tree.subject.head, Pronoun) else f"{middle.pop(0)} {subject}"


def verbs(tree: Clause) -> tuple[str, str, str]:
    """The finite verb, the end of a main clause, and the end of a subordinate clause."""
    verb, modal, person, past = tree.verb, tree.modal, tree.person, tree.tense == "past"
    tail = verb.prefix + verb.de
    if tree.tense == "future":
        finite = WERDEN[person]
    elif modal is not None:
        finite = (modal.de_past if past else modal.de)[person]
    elif past and (verb.de in ("sein", "haben") or "exist" in verb.traits):
        finite, tail = PRETERITE[verb.de][person], ""
    elif past:
        finite, tail = (SEIN if verb.auxiliary else HABEN)[person], verb.de_participle
    else:
        finite = verb.de_present[person]
        return finite, verb.prefix, verb.prefix + finite
    return finite, tail, joined(tail, finite)


def midfield(tree: Clause) -> list[str]:
    """The words between the two parts of the verb: pronouns, time, known things, `nicht`, manner,
    new things, places.
    """
    fields: dict[str, list[str]] = {"pronouns": [], "known": [], "new": [], "late": []}
    verb, target, negated = tree.verb, tree.object, tree.negative
    if verb.reflexive in ("de", "both"):
        fields["pronouns"].append(reflexive(tree))
    if tree.recipient is not None:
        is_pronoun = isinstance(tree.recipient.head, Pronoun)
        fields["pronouns" if is_pronoun else "known"].append(noun_phrase(tree.recipient, "d"))
    if target is not None:
        *preposition, case = verb.government or ("n",)
        none = negated and target.det in ("a", "bare", "role") and not preposition
        negated = negated and not none
        text = joined(*preposition, noun_phrase(target, case, none))
        if preposition:
            field = "late"
            text = contracted(text) if case == "d" and target.relative is None else text
        elif isinstance(target.head, Pronoun):
            field = "pronouns"
        else:
            field = "new" if target.det in ("a", "bare", "role", "many", "some") else "known"
        fields[field].append(text)
    return [
        *fields["pronouns"],
        "" if tree.fronted else tree.time.de,
        "gerade" if tree.tense == "progressive" else "",
        *fields["known"],
        "nicht" if negated else tree.frequency.de,
        tree.manner.de,
        *fields["new"],
        place(tree.companion),
        *fields["late"],
        place(tree.place),
        *predicative(tree),
    ]


def predicative(tree: Clause) -> list[str]:
    adjective, comparing = tree.adjective, tree.than is not None
    return [
        tree.complement.de,
        "" if adjective is None else adjective.de_more if comparing else adjective.de,
        f"als {noun_phrase(tree.than, 'n')}" if comparing else "",
    ]


def reflexive(tree: Clause) -> str:
    head = tree.subject.head if tree.subject is not None else None
    return head.reflexive if isinstance(head, Pronoun) else "sich"


def infinitive(tree: Clause) -> str:
    """The infinitive with `zu`, which follows the prefix of a separable verb."""
    verb = tree.verb
    marked = f"{verb.prefix}zu{verb.de}" if verb.prefix else f"zu {verb.de}"
    return joined(*midfield(tree), marked)


def place(tree: Place | None) -> str:
    if tree is None:
        return ""
    if tree.preposition is not None:
        return f"{tree.preposition.de} {noun_phrase(tree.phrase, tree.preposition.case)}"
    index = ("at", "to", "from").index(tree.relation)
    if not isinstance(tree.phrase.head, Noun):
        return f"{('in', 'nach', 'aus')[index]} {noun_phrase(tree.phrase, 'd')}"
    preposition = tree.phrase.head.place[2 + index]
    case = "a" if index == 1 and preposition in ("in", "auf", "an") else "d"
    return contracted(f"{preposition} {noun_phrase(tree.phrase, case)}")


def contracted(text: str) -> str:
    """A preposition contracted with its article: am, im, zum."""
    start = " ".join(text.split(" ", 2)[:2])
    return CONTRACTIONS.get(start, start) + text[len(start) :]


def noun_phrase(tree: Phrase | None, case: str, none: bool = False) -> str:
    """`none`: with the article `kein`."""
    if tree is None:
        return ""
    head = tree.head
    if isinstance(head, Pronoun):
        return {"n": head.de, "a": head.accusative, "d": head.dative}[case]
    if isinstance(head, Name):
        return head.de if tree.other is None else f"{head.de} und {tree.other.de}"
    column = 3 if tree.plural else GENDERS[head.gender]
    article, endings = determiner(tree, case, column, none)
    adjective = tree.adjective.de_stem + endings[case][column] if tree.adjective else ""
    text = joined(article, tree.count.de, adjective, noun(head, case, tree.plural))
    if tree.owner is not None and isinstance(tree.owner.head, Noun):
        text = f"{text} {noun_phrase(tree.owner, 'g')}"
    if tree.relative is not None:
        role = tree.relative.verb.government[-1] if tree.relative.gap == "object" else "n"
        text = f"{text}, {RELATIVE[role][column]} {clause(tree.relative, 'final')},"
    return text


def determiner(tree: Phrase, case: str, column: int, none: bool) -> tuple[str, Paradigm]:
    """The article, and the endings of an adjective after it."""
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


def noun(entry: Noun, case: str, plural: bool) -> str:
    if plural:
        return entry.dative_plural if case == "d" else entry.de_plural
    return {"n": entry.de, "g": entry.genitive}.get(case, entry.oblique)
