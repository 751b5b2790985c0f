"""French: agreement, clitics, elision and contraction."""

from __future__ import annotations

import re

from tools.phrasebook.lexicon import Adjective, Name, Noun, Pronoun, Weather
from tools.phrasebook.trees import Clause, Phrase, Place, Sentence, joined

AVOIR = ("ai", "as", "a", "avons", "ont")
ETRE = ("suis", "es", "est", "sommes", "sont")
ALLER = ("vais", "vas", "va", "allons", "vont")
IMPERFECT = {
    "être": ("étais", "étais", "était", "étions", "étaient"),
    "avoir": ("avais", "avais", "avait", "avions", "avaient"),
}
VOWELS = tuple("aâàeéèêiîoôœuh")
NOT_ELIDING = ("huit", "onze")
CONTRACTIONS = {"de le": "du", "de les": "des", "à le": "au", "à les": "aux"}
QUESTION_WORDS = {
    "yesno": "est-ce que",
    "where": "où est-ce que",
    "when": "quand est-ce que",
    "why": "pourquoi est-ce que",
    "what": "qu'est-ce que",
    "whom": "qui est-ce que",
    "who": "qui",
}
QUANTIFIERS = {"many": "beaucoup de", "some": "quelques", "every": "chaque"}
# A clitic, an article or a conjunction loses its vowel before another one.
ELISION = re.compile(
    r"\b([JjMmTtSsNnDdLl]e|[Ll]a|[Qq]ue) (?!huit|onze)(?=[aâàeéèêiîoôœuhAEÉIO]|y )"
)
SI_IL = re.compile(r"\b([Ss])i (?=ils?\b)")


def sentence(tree: Sentence) -> str:
    text, second, link = clause(tree.clause), tree.second, tree.link
    if tree.ask:
        asks_to = tree.ask == "whom" and tree.clause.verb.fr_government
        text = joined("à" if asks_to else "", QUESTION_WORDS[tree.ask], text)
    elif second is not None:
        other = second.fr if isinstance(second, Weather) else clause(second)
        comma = "," if link.fr == "mais" else ""
        text = f"{link.fr} {other}, {text}" if tree.first else f"{text}{comma} {link.fr} {other}"
    text = elided(text)
    return text[0].upper() + text[1:] + (" ?" if tree.ask else ".")


def elided(text: str) -> str:
    return SI_IL.sub(r"\1'", ELISION.sub(lambda match: match[1][:-1] + "'", text))


def clause(tree: Clause) -> str:
    subject = "il" if "exist" in tree.verb.traits else noun_phrase(tree.subject)
    start, time = (f"{tree.time.fr}, {subject}", "") if tree.fronted else (subject, tree.time.fr)
    markers = [trait[4:] for trait in tree.verb.traits if trait.startswith("inf:")]
    return joined(
        start,
        predicate(tree),
        *complements(tree),
        time,
        infinitive(tree.infinitive, *markers),
        infinitive(tree.purpose, "pour"),
    )


def infinitive(tree: Clause | None, *markers: str) -> str:
    if tree is None:
        return ""
    return joined(*markers, clitic(tree), tree.verb.fr, *complements(tree), tree.time.fr)


def predicate(tree: Clause) -> str:
    """Clitics, negation and all parts of the verb."""
    verb, modal, person, past = tree.verb, tree.modal, tree.person, tree.tense == "past"
    before, rest = clitic(tree), ""
    if tree.tense == "progressive":
        finite, rest, before = ETRE[person], f"en train de {before} {verb.fr}", ""
    elif tree.tense == "future" or modal is not None:
        forms = ALLER if modal is None else modal.fr_past if past else modal.fr
        finite, rest, before = forms[person], f"{before} {verb.fr}", ""
    elif past and verb.fr in IMPERFECT:
        finite = IMPERFECT[verb.fr][person]
    elif past:
        finite, rest = (ETRE if verb.fr_auxiliary else AVOIR)[person], past_participle(tree)
    else:
        finite = verb.fr_present[person]
    adverb = "pas" if tree.negative else tree.frequency.fr
    # a complement may begin with "pas"
    negative = tree.negative or adverb == "jamais" or tree.complement.fr.startswith("pas ")
    return " ".join(" ".join(("ne" if negative else "", before, finite, adverb, rest)).split())


def clitic(tree: Clause) -> str:
    """The pronoun before the verb, if any."""
    verb = tree.verb
    if "exist" in verb.traits:
        return "y"
    if verb.reflexive in ("fr", "both"):
        head = tree.subject.head if tree.subject is not None else None
        return head.fr_reflexive if isinstance(head, Pronoun) else "se"
    if tree.recipient is not None and isinstance(tree.recipient.head, Pronoun):
        return tree.recipient.head.indirect
    if tree.object is not None and isinstance(tree.object.head, Pronoun):
        if verb.fr_government == "à*":
            return tree.object.head.indirect
        return "" if verb.fr_government else tree.object.head.clitic
    return ""


def past_participle(tree: Clause) -> str:
    """Agrees with the subject after être, and with a direct object before avoir."""
    verb, target = tree.verb, tree.object
    if verb.fr_auxiliary:
        return agreed(verb.fr_participle, *agreement(tree.subject, tree))
    if not verb.fr_government:
        if tree.gap == "object":
            return agreed(verb.fr_participle, *agreement(None, tree))
        if target is not None and isinstance(target.head, Pronoun):
            return agreed(verb.fr_participle, *agreement(target, tree))
    return verb.fr_participle


def agreement(tree: Phrase | None, clause: Clause) -> tuple[str, bool]:
    """The gender of a phrase and whether it is plural; None: of the gap of its clause."""
    if tree is None:
        return clause.gap_gender, clause.gap_plural
    plural = tree.head.person in "34" if isinstance(tree.head, Pronoun) else tree.plural
    return gender(tree), plural


def agreed(text: str, gender_: str, plural: bool) -> str:
    """A participle with its endings."""
    text += "e" if gender_ == "f" else ""
    return text + ("s" if plural and not text.endswith("s") else "")


def gender(tree: Phrase) -> str:
    if isinstance(tree.head, Noun):
        return tree.head.fr_gender
    both = tree.other is None or tree.other.sex == "f"
    return "f" if tree.head.sex == "f" and both else "m"


def complements(tree: Clause) -> list[str]:
    """The words between the verb and the time."""
    recipient = tree.recipient
    after = recipient is not None and not isinstance(recipient.head, Pronoun)
    return [
        tree.manner.fr,
        object_phrase(tree),
        tree.complement.fr,
        predicate_adjective(tree),
        with_preposition("à", recipient) if recipient is not None and after else "",
        place(tree.companion),
        place(tree.place),
    ]


def object_phrase(tree: Clause) -> str:
    """The object, unless it is a clitic."""
    target, preposition = tree.object, tree.verb.fr_government
    if target is None or (isinstance(target.head, Pronoun) and preposition in ("", "à*")):
        return ""
    if preposition:
        return with_preposition(preposition.rstrip("*"), target)
    none = (tree.negative or tree.frequency.fr == "jamais") and "copula" not in tree.verb.traits
    return noun_phrase(target, "de" if none else "")


def predicate_adjective(tree: Clause) -> str:
    if tree.adjective is None:
        return ""
    text = inflected(tree.adjective, *agreement(tree.subject, tree))
    return text if tree.than is None else f"plus {text} que {stressed(tree.than)}"


def place(tree: Place | None) -> str:
    if tree is None:
        return ""
    if tree.preposition is not None:
        return with_preposition(tree.preposition.fr, tree.phrase)
    head = tree.phrase.head
    if isinstance(head, Noun):
        return with_preposition(head.place[5 + (tree.relation == "to")], tree.phrase)
    country = isinstance(head, Name) and head.kind == "country"
    preposition = "de" if tree.relation == "from" else "en" if country else "à"
    return f"{preposition} {noun_phrase(tree.phrase)}"


def with_preposition(preposition: str, tree: Phrase) -> str:
    """A phrase after a preposition: `de` and `à` contract with le and les, `de` replaces des."""
    after_de = preposition == "de" or preposition.endswith(" de")
    text = stressed(tree, "bare" if after_de else "")
    start, _, rest = text.partition(" ")
    head, _, last = preposition.rpartition(" ")
    contraction = CONTRACTIONS.get(f"{last} {start}", "")
    if not contraction or (start == "le" and elides(rest)) or isinstance(tree.head, Name):
        return f"{preposition} {text}"
    return joined(head, contraction, rest)


def stressed(tree: Phrase, article: str = "") -> str:
    return tree.head.stressed if isinstance(tree.head, Pronoun) else noun_phrase(tree, article)


def elides(text: str) -> bool:
    return text.lower().startswith(VOWELS) and not text.startswith(NOT_ELIDING)


def noun_phrase(tree: Phrase | None, article: str = "") -> str:
    """`article` replaces the indefinite and partitive ones: `de` (negation) or none (`bare`)."""
    if tree is None:
        return ""
    head, adjective = tree.head, tree.adjective
    if isinstance(head, Pronoun):
        return head.fr
    if isinstance(head, Name):
        return head.fr if tree.other is None else f"{head.fr} et {tree.other.fr}"
    core = head.fr_plural if tree.plural else head.fr
    first = adjective is not None and adjective.position == "pre"
    if adjective is not None:
        form = inflected(adjective, head.fr_gender, tree.plural, core if first else "")
        core = f"{form} {core}" if first else f"{core} {form}"
    core = joined(tree.count.fr, core)
    text = joined(determiner(tree, article, first, core), core)
    if tree.owner is not None and not isinstance(tree.owner.head, Pronoun):
        text = f"{text} {with_preposition('de', tree.owner)}"
    if tree.relative is not None:
        text = f"{text} {'que' if tree.relative.gap == 'object' else 'qui'} {clause(tree.relative)}"
    return text


def determiner(tree: Phrase, article: str, adjective_first: bool, core: str) -> str:
    """The article before `core`, without elision."""
    kind, feminine, vowel = tree.det, gender(tree) == "f", elides(core)
    if tree.owner is not None and isinstance(tree.owner.head, Pronoun):
        owner = tree.owner.head.fr_owner
        return owner[2] if tree.plural else owner[feminine and not (vowel and len(owner[1]) == 2)]
    if kind == "the" or tree.owner is not None:
        return "les" if tree.plural else "la" if feminine else "le"
    if kind == "this":
        return "ces" if tree.plural else "cette" if feminine else "cet" if vowel else "ce"
    if kind in QUANTIFIERS:
        return QUANTIFIERS[kind]
    if kind == "role" or tree.count:
        return ""
    if article == "de" or (article and (tree.plural or kind == "bare")):
        return "" if article == "bare" else "de"
    if tree.plural:
        return "de" if adjective_first else "des"
    if kind == "bare":
        return "de la" if feminine else "de le" if vowel else "du"
    return "une" if feminine else "un"


def inflected(adjective: Adjective, gender_: str, plural: bool, following: str = "") -> str:
    if gender_ == "f":
        return adjective.fr_feminine_plural if plural else adjective.fr_feminine
    if plural:
        return adjective.fr_plural
    return adjective.fr_vowel if adjective.fr_vowel and elides(following) else adjective.fr
