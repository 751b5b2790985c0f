"""The command new-corpus takes languages with scripts and regions, and refuses unknown ones."""

import pytest

from bleuprint.corpus.file_languages import parse_language
from bleuprint.runtime.errors import UserError
from new_corpus import FIVE_HUNDRED_PAIRS, analyze_pairs


def test_a_corpus_keeps_the_tags_that_the_user_names(project, capsys):
    """The text is identified as English and German, and the rules are those of these languages."""
    new = analyze_pairs(project, FIVE_HUNDRED_PAIRS, languages=["eng_Latn", "de-at"])

    assert new.languages == ("eng_Latn", "de-AT")
    assert new.name.endswith("-eng_Latn-de-AT")
    assert new.corpus.languages == ("eng_Latn", "de-AT")
    assert "language_id: {min_odds: 10.0}" in new.filter_rules
    assert new.language_note == ""
    assert "does not know" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("language", "usual"),
    [("ger", "de"), ("ZHO_hant", "zho_Hant"), ("pt-br", "pt-BR"), ("de", "de")],
)
def test_a_language_is_written_in_its_usual_form(language, usual):
    assert parse_language(language) == usual


@pytest.mark.parametrize(
    ("language", "message"),
    [
        ("xx", "--languages xx: language 'xx': 'xx' is an unknown code. Write a code"),
        ("zh-Hnat", "--languages zh-Hnat: language 'zh-Hnat': 'Hnat' is an unknown script"),
        ("German", "--languages German: not a language code of two or three letters. Use de"),
    ],
)
def test_an_unknown_language_is_one_line(language, message):
    with pytest.raises(UserError) as error:
        parse_language(language)

    assert message in str(error.value)
    assert "\n" not in str(error.value)
