"""The grammar of the embedded corpus, against hand-written forms."""

from dataclasses import replace

import pytest

from tools.phrasebook import english, french, german, lexicon
from tools.phrasebook.lexicon import Adjective, Noun, Verb, Words, verbs
from tools.phrasebook.trees import Clause, Phrase, Place, Sentence


def noun(en: str) -> Noun:
    return next(entry for entry in lexicon.NOUNS if entry.en == en)


def adjective(en: str) -> Adjective:
    return next(entry for entry in lexicon.ADJECTIVES if entry.en == en)


def verb(en: str, particle: str = "") -> Verb:
    entries = (entry for entry in lexicon.VERBS if (entry.en, entry.particle) == (en, particle))
    return next(entries)


def words(en: str) -> Words:
    rows = (*lexicon.ADVERBS, *lexicon.NUMBERS, *lexicon.CONJUNCTIONS)
    return next(row for row in rows if row.en == en)


def the(en: str, det: str = "the", is_plural: bool = False, adj: str = "") -> Phrase:
    return Phrase(noun(en), det, is_plural, adjective=adjective(adj) if adj else None)


def name(en: str, other: str = "") -> Phrase:
    names = {entry.en: entry for entry in lexicon.NAMES}
    return Phrase(names[en], is_plural=bool(other), second_name=names[other] if other else None)


def pro(en: str) -> Phrase:
    entry = next(entry for entry in lexicon.PRONOUNS if entry.en == en)
    return Phrase(entry, is_plural=entry.person in "34")


def in_all_languages(tree: Clause | Sentence) -> tuple[str, str, str]:
    """Return a tree in English, German and French."""
    tree = Sentence(tree) if isinstance(tree, Clause) else tree
    return english.sentence(tree), german.sentence(tree), french.sentence(tree)


def in_german(tree: Clause | Sentence) -> str:
    """Return a tree in German."""
    _, german_text, _ = in_all_languages(tree)
    return german_text


PAUL, ANNA = name("Paul"), name("Anna")
CALL = Clause(verb("call"), PAUL, object=ANNA)
CAN = lexicon.MODALS[0]
IT_RAINS = lexicon.WEATHER[0]
TO_KNOW_THAT = next(entry for entry in verbs("that") if entry.de == "wissen")


@pytest.mark.parametrize(
    ("article", "head", "is_plural", "forms"),
    [
        ("the", "dog", False, "der alte Hund|den alten Hund|dem alten Hund|des alten Hundes"),
        ("the", "cat", False, "die alte Katze|die alte Katze|der alten Katze|der alten Katze"),
        ("the", "horse", False, "das alte Pferd|das alte Pferd|dem alten Pferd|des alten Pferdes"),
        ("the", "dog", True, "die alten Hunde|die alten Hunde|den alten Hunden|der alten Hunde"),
        ("this", "cow", False, "diese alte Kuh|diese alte Kuh|dieser alten Kuh|dieser alten Kuh"),
        ("a", "dog", False, "ein alter Hund|einen alten Hund|einem alten Hund|eines alten Hundes"),
        ("a", "cat", False, "eine alte Katze|eine alte Katze|einer alten Katze|einer alten Katze"),
        (
            "a",
            "horse",
            False,
            "ein altes Pferd|ein altes Pferd|einem alten Pferd|eines alten Pferdes",
        ),
        ("bare", "dog", True, "alte Hunde|alte Hunde|alten Hunden|alter Hunde"),
        (
            "some",
            "egg",
            True,
            "einige alte Eier|einige alte Eier|einigen alten Eiern|einiger alter Eier",
        ),
        ("the", "bear", False, "der alte Bär|den alten Bären|dem alten Bären|des alten Bären"),
    ],
)
def test_german_article_adjective_and_noun_are_declined_together(
    article: str, head: str, is_plural: bool, forms: str
) -> None:
    """The expected forms are nominative, accusative, dative and genitive; "bare": no article."""
    phrase = the(head, article, is_plural, "old")

    nominative = german.noun_phrase(phrase, "n")
    accusative = german.noun_phrase(phrase, "a")
    dative = german.noun_phrase(phrase, "d")
    genitive = german.noun_phrase(phrase, "g")

    assert f"{nominative}|{accusative}|{dative}|{genitive}" == forms


def test_german_possessives_decline_like_ein() -> None:
    her_three_old_daughters = Phrase(
        noun("daughter"), "own", True, words("three"), adjective("old"), owner=pro("she")
    )

    dative = german.noun_phrase(her_three_old_daughters, "d")

    assert dative == "ihren drei alten Töchtern"


def test_german_kein_declines_like_ein() -> None:
    """A negated "a" or bare plural becomes a form of "kein"."""
    an_old_dog = the("dog", "a", adj="old")
    old_dogs = the("dog", "bare", is_plural=True, adj="old")

    assert german.noun_phrase(an_old_dog, "a", is_negated=True) == "keinen alten Hund"
    assert german.noun_phrase(old_dogs, "n", is_negated=True) == "keine alten Hunde"


def test_the_german_name_of_an_owner_stands_before_the_noun() -> None:
    annas_old_brother = Phrase(noun("brother"), "own", adjective=adjective("old"), owner=ANNA)

    assert german.noun_phrase(annas_old_brother, "n") == "Annas alter Bruder"


def test_the_german_adjective_teuer_loses_an_e_before_an_ending() -> None:
    the_expensive_bicycle = the("bicycle", adj="expensive")

    assert german.noun_phrase(the_expensive_bicycle, "d") == "dem teuren Fahrrad"


@pytest.mark.parametrize(
    ("phrase", "text"),
    [
        pytest.param(the("apple", "a"), "an apple", id="vowel"),
        pytest.param(the("university", "a"), "a university", id="vowel spoken as a consonant"),
        pytest.param(the("egg", "a", adj="small"), "a small egg", id="adjective decides"),
        pytest.param(the("man", "a", adj="honest"), "an honest man", id="silent h"),
    ],
)
def test_the_english_article_follows_the_sound_of_the_next_word(phrase: Phrase, text: str) -> None:
    assert english.noun_phrase(phrase) == text


@pytest.mark.parametrize(
    ("preposition", "phrase", "text"),
    [
        ("de", the("cat"), "du chat"),
        ("de", the("cat", is_plural=True), "des chats"),
        ("de", the("man"), "de l'homme"),
        ("de", the("woman"), "de la femme"),
        ("de", the("cat", "a", is_plural=True), "de chats"),
        ("à", the("museum"), "au musée"),
        ("à", the("child", is_plural=True), "aux enfants"),
        ("à", the("school"), "à l'école"),
        ("à côté de", the("garden"), "à côté du jardin"),
        ("avec", pro("they"), "avec eux"),
        ("de", name("Anna"), "d'Anna"),
        ("de", name("Leon"), "de Leon"),
    ],
)
def test_a_french_preposition_merges_with_the_article(
    preposition: str, phrase: Phrase, text: str
) -> None:
    """Such as de + le chat = du chat; before a vowel, the article or preposition loses its own."""
    with_preposition = french.with_preposition(preposition, phrase)

    assert french.elided(with_preposition) == text


@pytest.mark.parametrize(
    ("phrase", "article", "text"),
    [
        (the("man", "a", adj="old"), "", "un vieil homme"),
        (the("woman", "a", adj="old"), "", "une vieille femme"),
        (the("man", "this"), "", "cet homme"),
        (the("tree", "the", True, "beautiful"), "", "les beaux arbres"),
        (the("tree", "bare", True, "beautiful"), "", "de beaux arbres"),
        (the("tree", "bare", True, "strange"), "", "des arbres étranges"),
        (the("dress", "the", True, "white"), "", "les robes blanches"),
        (the("horse", "many", True), "", "beaucoup de chevaux"),
        (the("water", "bare"), "", "de l'eau"),
        (the("bread", "bare"), "", "du pain"),
        (the("bread", "bare"), "de", "de pain"),
        (the("orange", "a"), "de", "d'orange"),
        (Phrase(noun("scarf"), "own", owner=pro("she")), "", "son écharpe"),
        (Phrase(noun("car"), "own", owner=pro("he")), "", "sa voiture"),
        (Phrase(noun("potato"), "the", True), "", "les pommes de terre"),
    ],
)
def test_french_adjectives_articles_and_possessives_agree_with_the_noun(
    phrase: Phrase, article: str, text: str
) -> None:
    """ARTICLE "de" replaces an article such as "du", as after a negation (pas de pain)."""
    noun_phrase = french.noun_phrase(phrase, article)

    assert french.elided(noun_phrase) == text


@pytest.mark.parametrize(
    ("tree", "text"),
    [
        pytest.param(CALL, "Paul ruft Anna an.", id="present"),
        pytest.param(Sentence(CALL, "yesno"), "Ruft Paul Anna an?", id="question"),
        pytest.param(
            Sentence(Clause(TO_KNOW_THAT, pro("I")), "", words("that"), CALL),
            "Ich weiß, dass Paul Anna anruft.",
            id="subordinate clause",
        ),
        pytest.param(replace(CALL, tense="past"), "Paul hat Anna angerufen.", id="perfect"),
        pytest.param(replace(CALL, tense="future"), "Paul wird Anna anrufen.", id="future"),
        pytest.param(replace(CALL, modal=CAN), "Paul kann Anna anrufen.", id="modal verb"),
        pytest.param(
            Clause(verb("try"), PAUL, infinitive=CALL),
            "Paul versucht, Anna anzurufen.",
            id="infinitive with zu",
        ),
    ],
)
def test_a_german_verb_is_separated_from_its_prefix_only_in_main_clauses(
    tree: Clause | Sentence, text: str
) -> None:
    """The verb "an|rufen" (to call): CALL is the clause "Paul calls Anna"."""
    assert in_german(tree) == text


def test_a_relative_clause_follows_its_noun_in_each_language() -> None:
    we_saw = Clause(verb("see"), pro("we"), "past", gap="object", gap_gender="m")
    the_old_man_whom_we_saw = replace(the("man", adj="old"), relative=we_saw)
    his_three_daughters = Phrase(noun("daughter"), "own", True, words("three"), owner=pro("he"))

    tree = Clause(verb("call"), the_old_man_whom_we_saw, object=his_three_daughters)

    assert in_all_languages(tree) == (
        "The old man whom we saw calls his three daughters.",
        "Der alte Mann, den wir gesehen haben, ruft seine drei Töchter an.",
        "Le vieil homme que nous avons vu appelle ses trois filles.",
    )


def test_a_relative_pronoun_takes_its_case_from_the_verb_of_its_clause() -> None:
    """German "helfen" takes the dative: "denen", although the women are the subject of "sleep"."""
    paul_helped = Clause(
        verb("help"), PAUL, "past", gap="object", is_gap_plural=True, gap_gender="f"
    )
    the_women_whom_paul_helped = replace(the("woman", is_plural=True), relative=paul_helped)

    assert in_all_languages(Clause(verb("sleep"), the_women_whom_paul_helped)) == (
        "The women whom Paul helped sleep.",
        "Die Frauen, denen Paul geholfen hat, schlafen.",
        "Les femmes que Paul a aidées dorment.",
    )


def test_the_german_subject_follows_the_verb_if_an_adverb_comes_first() -> None:
    """The German verb stays the second part of the sentence: "Gestern hat Paul", not "Paul hat"."""
    tree = replace(CALL, tense="past", time=words("yesterday"), is_fronted=True)

    assert in_all_languages(tree) == (
        "Yesterday, Paul called Anna.",
        "Gestern hat Paul Anna angerufen.",
        "Hier, Paul a appelé Anna.",
    )


def test_the_german_reflexive_pronoun_stands_before_the_subject_after_a_first_adverb() -> None:
    tree = Clause(verb("rest"), the("man"), time=words("now"), is_fronted=True)

    assert in_german(tree) == "Jetzt ruht sich der Mann aus."


def test_a_subordinate_clause_may_come_first() -> None:
    tree = Sentence(CALL, "", words("if"), IT_RAINS, starts_with_second=True)

    assert in_all_languages(tree) == (
        "If it is raining, Paul calls Anna.",
        "Wenn es regnet, ruft Paul Anna an.",
        "S'il pleut, Paul appelle Anna.",
    )


def test_a_subordinate_clause_may_come_last() -> None:
    he_calls_anna = replace(CALL, subject=pro("he"))
    tree = Sentence(CALL, "", words("because"), he_calls_anna)

    _, german_text, french_text = in_all_languages(tree)

    assert german_text == "Paul ruft Anna an, weil er Anna anruft."
    assert french_text == "Paul appelle Anna parce qu'il appelle Anna."


@pytest.mark.parametrize(
    ("clause", "texts"),
    [
        pytest.param(
            Clause(verb("buy"), pro("I"), object=the("car", "a"), is_negated=True),
            ("I do not buy a car.", "Ich kaufe kein Auto.", "Je n'achète pas de voiture."),
            id="indefinite object",
        ),
        pytest.param(
            Clause(verb("buy"), pro("I"), "past", object=the("car"), is_negated=True),
            (
                "I did not buy the car.",
                "Ich habe das Auto nicht gekauft.",
                "Je n'ai pas acheté la voiture.",
            ),
            id="definite object",
        ),
        pytest.param(
            Clause(verb("buy"), pro("I"), object=the("bread", "bare"), frequency=words("never")),
            ("I never buy bread.", "Ich kaufe nie Brot.", "Je n'achète jamais de pain."),
            id="never",
        ),
    ],
)
def test_each_language_negates_a_clause_in_its_own_way(
    clause: Clause, texts: tuple[str, str, str]
) -> None:
    """German "kein" or "nicht"; French "ne ... pas", with "de" for an indefinite article."""
    assert in_all_languages(clause) == texts


@pytest.mark.parametrize(
    ("tree", "text"),
    [
        (Clause(verb("leave"), pro("she"), "past"), "Elle est partie."),
        (Clause(verb("leave"), name("Anna", "Julia"), "past"), "Anna et Julia sont parties."),
        (Clause(verb("leave"), name("Anna", "Paul"), "past"), "Anna et Paul sont partis."),
        (Clause(verb("get", "up"), pro("we"), "past"), "Nous nous sommes levés."),
        (
            Clause(verb("sit", "down"), the("lady", is_plural=True), "past"),
            "Les dames se sont assises.",
        ),
        (Clause(verb("see"), pro("he"), "past", pro("she")), "Il l'a vue."),
        (Clause(verb("see"), pro("he"), "past", the("woman")), "Il a vu la femme."),
        (Clause(verb("answer"), pro("he"), "past", pro("she")), "Il lui a répondu."),
        (Clause(verb("talk", "with"), pro("he"), "past", pro("she")), "Il a parlé avec elle."),
    ],
)
def test_the_french_participle_agrees_with_the_subject_or_an_object_before_the_verb(
    tree: Clause, text: str
) -> None:
    """With "être", it agrees with the subject; with "avoir", with a direct object before it."""
    assert french.sentence(Sentence(tree)) == text


def test_a_french_object_pronoun_stands_before_the_infinitive() -> None:
    """In "Je vais le chercher", the pronoun "le" (him) comes before "chercher" (look for)."""
    tree = Clause(verb("look", "for"), pro("I"), "future", pro("he"))

    assert in_all_languages(tree) == (
        "I will look for him.",
        "Ich werde ihn suchen.",
        "Je vais le chercher.",
    )


def test_the_preposition_of_a_verb_merges_with_the_article_of_its_object() -> None:
    """German an + dem = am; French à + le = au."""
    tree = Clause(verb("take", "part in"), pro("I"), object=the("concert"))

    _, german_text, french_text = in_all_languages(tree)

    assert german_text == "Ich nehme am Konzert teil."
    assert french_text == "Je participe au concert."


def test_a_pronoun_for_the_recipient_stands_before_the_direct_object() -> None:
    tree = Clause(verb("give"), pro("I"), object=the("book"), recipient=pro("they"))

    assert in_all_languages(tree) == (
        "I give them the book.",
        "Ich gebe ihnen das Buch.",
        "Je leur donne le livre.",
    )


@pytest.mark.parametrize(
    ("clause", "question", "texts"),
    [
        pytest.param(
            Clause(verb("buy"), PAUL, "past"),
            "what",
            ("What did Paul buy?", "Was hat Paul gekauft?", "Qu'est-ce que Paul a acheté ?"),
            id="for the object",
        ),
        pytest.param(
            Clause(verb("call"), None, object=ANNA),
            "who",
            ("Who calls Anna?", "Wer ruft Anna an?", "Qui appelle Anna ?"),
            id="for the subject",
        ),
        pytest.param(
            Clause(verb("answer"), pro("he")),
            "whom",
            ("Whom does he answer?", "Wem antwortet er?", "À qui est-ce qu'il répond ?"),
            id="for an object in the dative",
        ),
    ],
)
def test_a_question_asks_for_a_part_of_the_clause(
    clause: Clause, question: str, texts: tuple[str, str, str]
) -> None:
    assert in_all_languages(Sentence(clause, question)) == texts


@pytest.mark.parametrize(
    ("place", "text"),
    [
        pytest.param(Place("to", the("garden")), "in den Garten", id="direction: accusative"),
        pytest.param(Place("at", the("garden")), "im Garten", id="position: dative"),
        pytest.param(Place("to", the("station")), "zum Bahnhof", id="zu"),
        pytest.param(Place("to", name("France")), "nach Frankreich", id="nach before a country"),
    ],
)
def test_the_german_preposition_of_a_place_tells_direction_from_position(
    place: Place, text: str
) -> None:
    assert german.place_phrase(place) == text


@pytest.mark.parametrize(
    ("place", "text"),
    [
        pytest.param(Place("to", the("station")), "à la gare", id="à before a place"),
        pytest.param(Place("to", name("France")), "en France", id="en before a country"),
        pytest.param(Place("from", name("Italy")), "d'Italie", id="de before a vowel"),
    ],
)
def test_the_french_preposition_of_a_place_depends_on_the_kind_of_place(
    place: Place, text: str
) -> None:
    assert french.elided(french.place_phrase(place)) == text


def test_an_adjective_after_to_be_agrees_with_the_subject_and_is_compared() -> None:
    to_be = verbs("copula")[0]
    tree = Clause(to_be, the("woman"), adjective=adjective("old"), than=PAUL)

    # The French adjective has the feminine form: vieille, not vieux.
    assert in_all_languages(tree) == (
        "The woman is older than Paul.",
        "Die Frau ist älter als Paul.",
        "La femme est plus vieille que Paul.",
    )


def test_nouns_exist_for_each_class_that_a_verb_asks_for() -> None:
    """A verb such as "eat" allows objects of the class "food"; without nouns it has no sentence."""
    known_classes = {"city"}  # of the names of cities
    for entry in lexicon.NOUNS:
        known_classes.update(entry.classes)

    for entry in lexicon.VERBS:
        places = [place.rpartition(":")[2].rstrip("!") for place in entry.place]
        assert {*entry.subject, *entry.object, *places} <= known_classes, entry.en


def test_the_pronouns_have_each_grammatical_person() -> None:
    """0 to 2 are singular (I, you, he or she), 3 is "we" and 4 is "they"."""
    persons = [pronoun.person for pronoun in lexicon.PRONOUNS]

    assert persons == ["0", "1", "2", "2", "3", "4"]
