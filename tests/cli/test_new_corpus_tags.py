"""The command new-corpus takes languages with scripts and regions, and refuses unknown ones."""

from pathlib import Path

import pytest

from bleuprint.corpus.file_languages import find_languages, parse_language
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
    ("name", "languages"),
    [
        pytest.param("t.pt-BR", ["pt-BR"], id="region"),
        pytest.param("flores.zho_Hant", ["zho_Hant"], id="script"),
        pytest.param("news.sr-Cyrl-RS.txt", ["sr-Cyrl-RS"], id="script and region"),
        pytest.param("en-pt_BR.txt.zip", ["en", "pt_BR"], id="pair of a code and a tag"),
        pytest.param("news.de-en.tsv", ["de", "en"], id="pair of codes"),
        pytest.param("news.pt_br", ["pt", "br"], id="pair, not a region in lower case"),
        pytest.param("news.de-Text.txt", ["de"], id="no script of this name"),
        pytest.param("is-it-true.English.txt", ["it", "en"], id="words and a name"),
    ],
)
def test_the_tag_in_the_name_of_a_file_is_its_language(name, languages):
    """Regions are in upper case, and scripts begin with a capital, as publishers write them."""
    assert find_languages(Path(name)) == languages


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
