"""Word differences between translation and reference: what is marked, and that nothing is lost."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bleuprint.report.word_diff import diff_words, split_words


def diff_text(translation, reference):
    """Return a word difference as `git diff --word-diff` writes it: [-missing-] and {+added+}."""
    signs = {"same": "{}", "missing": "[-{}-]", "added": "{{+{}+}}"}
    parts = []
    for kind, text in diff_words(translation, reference):
        parts.append(signs[kind].format(text))
    return "".join(parts)


@pytest.mark.parametrize(
    ("translation", "reference", "expected"),
    [
        pytest.param("A dog runs.", "A dog runs.", "A dog runs.", id="equal"),
        pytest.param("A cat runs.", "A dog runs.", "A[- dog-]{+ cat+} runs.", id="replaced"),
        pytest.param("A dog.", "A big dog.", "A[- big-] dog.", id="missing"),
        pytest.param("A big, big dog.", "A big dog.", "A{+ big,+} big dog.", id="added"),
        pytest.param("", "A dog.", "[-A dog.-]", id="empty translation"),
        pytest.param("A dog.", "", "{+A dog.+}", id="empty reference"),
        pytest.param("", "", "", id="both empty"),
        pytest.param("a dog", "A dog", "[-A-]{+a+} dog", id="case, which BLEU counts"),
        pytest.param("A  dog .", "A dog.", "A  dog .", id="spaces make no difference"),
        pytest.param(
            "l'homme dort", "l'homme court", "l'homme[- court-]{+ dort+}", id="apostrophe"
        ),
        pytest.param("我喜欢狗。", "我喜欢猫。", "我喜欢[-猫-]{+狗+}。", id="Chinese"),
        pytest.param("ok 👍🏽", "ok 👍", "ok[- 👍-]{+ 👍🏽+}", id="emoji with skin color"),
        pytest.param("ولد صغير", "ولد كبير", "ولد[- كبير-]{+ صغير+}", id="Arabic"),
    ],
)
def test_differing_words_are_marked_as_missing_or_added(translation, reference, expected):
    assert diff_text(translation, reference) == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param(
            "It's 3.5 - a test-case 'quoted'.",
            "It's|3|.|5|-|a|test-case|'|quoted|'|.",
            id="punctuation",
        ),
        pytest.param("東京タワー is ไทย2go", "東|京|タ|ワ|ー|is|ไ|ท|ย|2go", id="no spaces"),
        pytest.param("नमस्ते 🇩🇪 e\u0301te\u0301", "नमस्ते|🇩🇪|e\u0301te\u0301", id="combining marks"),
    ],
)
def test_a_text_is_split_into_words_and_characters_of_scripts_without_spaces(text, words):
    assert [word.strip() for word in split_words(text)] == words.split("|")


TRANSLATIONS = st.text("ab ,-'é東\u0301\u2028\t👍\x01", max_size=12)
REFERENCES = st.text("ab ,東", max_size=12)


@given(TRANSLATIONS, REFERENCES)
def test_the_pieces_of_a_difference_contain_the_whole_translation(translation, reference):
    pieces = diff_words(translation, reference)

    assert "".join(text for kind, text in pieces if kind != "missing") == translation


@given(TRANSLATIONS, REFERENCES)
def test_the_pieces_of_a_difference_contain_the_reference_without_spaces(translation, reference):
    pieces = diff_words(translation, reference)

    text = "".join(text for kind, text in pieces if kind != "added")
    assert "".join(text.split()) == "".join(reference.split())


@given(TRANSLATIONS, REFERENCES)
def test_neighboring_pieces_of_a_difference_are_of_different_kinds(translation, reference):
    pieces = list(diff_words(translation, reference))

    for piece, next_piece in pairwise(pieces):
        assert piece.kind != next_piece.kind
