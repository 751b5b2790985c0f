"""Word differences: what is marked, and that nothing of either text is lost."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bleuprint.report.word_diff import diff_words, split_words


def marked(translation, reference):
    """[-missing-] and {+added+}, as `git diff --word-diff` writes them."""
    signs = {"same": "{}", "missing": "[-{}-]", "added": "{{+{}+}}"}
    return "".join(signs[kind].format(text) for kind, text in diff_words(translation, reference))


@pytest.mark.parametrize(
    ("translation", "reference", "expected"),
    [
        ("A dog runs.", "A dog runs.", "A dog runs."),
        ("A cat runs.", "A dog runs.", "A[- dog-]{+ cat+} runs."),
        ("A dog.", "A big dog.", "A[- big-] dog."),
        ("A big, big dog.", "A big dog.", "A{+ big,+} big dog."),
        ("", "A dog.", "[-A dog.-]"),
        ("A dog.", "", "{+A dog.+}"),
        ("", "", ""),
        ("a dog", "A dog", "[-A-]{+a+} dog"),  # BLEU is cased, too
        ("A  dog .", "A dog.", "A  dog ."),  # spaces make no difference
        ("l'homme dort", "l'homme court", "l'homme[- court-]{+ dort+}"),
        ("我喜欢狗。", "我喜欢猫。", "我喜欢[-猫-]{+狗+}。"),
        ("ok 👍🏽", "ok 👍", "ok[- 👍-]{+ 👍🏽+}"),
        ("ولد صغير", "ولد كبير", "ولد[- كبير-]{+ صغير+}"),
    ],
)
def test_differences(translation, reference, expected):
    assert marked(translation, reference) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It's 3.5 - a test-case 'quoted'.", "It's|3|.|5|-|a|test-case|'|quoted|'|."),
        ("東京タワー is ไทย2go", "東|京|タ|ワ|ー|is|ไ|ท|ย|2go"),
        ("नमस्ते 🇩🇪 e\u0301te\u0301", "नमस्ते|🇩🇪|e\u0301te\u0301"),
    ],
)
def test_words(text, expected):
    assert [word.strip() for word in split_words(text)] == expected.split("|")


@given(st.text("ab ,-'é東\u0301\u2028\t👍\x01", max_size=12), st.text("ab ,東", max_size=12))
def test_nothing_is_lost(translation, reference):
    pieces = list(diff_words(translation, reference))
    assert "".join(text for kind, text in pieces if kind != "missing") == translation
    theirs = "".join(text for kind, text in pieces if kind != "added")
    assert "".join(theirs.split()) == "".join(reference.split())
    assert all(one.kind != other.kind for one, other in pairwise(pieces))
