"""The languages of a corpus are tags of BCP 47, also in the names of directions."""

import pytest

from bleuprint.config.experiment import load_settings
from bleuprint.config.pair_name import direction_of_text, split_direction
from params import PARAMS, error_after_change, params_error, replace_once
from root import ROOT

# Two directions of which one is the beginning of the other, and one with a tag on both sides.
DIRECTIONS = ["en-zh", "en-zh-Hant", "zho_Hant-pt-BR"]


def direction_entry(direction):
    """Return the entry of a direction in params.yaml, with a text in each set."""
    source, target = split_direction(direction)
    sets = []
    for name in ("train", "valid", "test"):
        sets.append(
            f"{{license_and_citation: own, source: {{path: inputs/{name}.{source}}}, "
            f"target: {{path: inputs/{name}.{target}}}}}"
        )
    train, valid, test = sets
    files = f"{{train: {{a: {train}}}, valid: {{a: {valid}}}, tests: {{news: {{a: {test}}}}}}}"
    return f"      {direction}: {{files: {files}}}\n"


def read_directions(folder, directions):
    """Return the corpus `many` with these directions, read from a params.yaml."""
    entries = "".join(map(direction_entry, directions))
    corpus = (
        f"  many:\n    directions:\n{entries}"
        "    vocabulary: {bpe: {num_merges: 10}}\n"
        '    license_and_citation: {own: {license: none, bibtex: "@misc{own,}"}}\n'
    )
    path = folder / "params.yaml"
    path.write_text(replace_once(PARAMS, "systems:\n", f"{corpus}systems:\n"))
    return load_settings(path, ROOT).corpus("many")


@pytest.mark.parametrize(
    ("direction", "languages"),
    [
        ("en-de", ("en", "de")),
        ("en-zh-Hant", ("en", "zh-Hant")),
        ("sr-Latn-en", ("sr-Latn", "en")),
        ("pt-BR-en-GB", ("pt-BR", "en-GB")),
        ("zh-Hant-TW-es-419", ("zh-Hant-TW", "es-419")),
        ("eng_Latn-zho_Hant", ("eng_Latn", "zho_Hant")),
        ("de-1996-en", ("de-1996", "en")),
    ],
)
def test_a_direction_is_split_between_its_languages(direction, languages):
    """A tag contains hyphens itself, so the first or last hyphen may be the wrong one."""
    assert split_direction(direction) == languages


@pytest.mark.parametrize("text", ["ende", "en-zh-hant", "en--de", "en-de-", "EN-DE"])
def test_other_text_is_not_a_direction(text):
    with pytest.raises(ValueError, match="Write SOURCE-TARGET"):
        split_direction(text)


def test_a_text_belongs_to_the_longest_direction_that_its_name_begins_with():
    assert direction_of_text("en-zh-Hant-news", DIRECTIONS) == "en-zh-Hant"
    assert direction_of_text("en-zh-news", DIRECTIONS) == "en-zh"


def test_each_direction_with_tags_keeps_its_own_texts(tmp_path):
    """The texts of en-zh-Hant do not become texts `Hant-a` of en-zh."""
    corpus = read_directions(tmp_path, DIRECTIONS)

    for name, pair in corpus.language_pairs("many").items():
        direction = name.removeprefix("many/")
        assert pair.languages == split_direction(direction)
        assert list(pair.files.train) == ["a"]
        [text] = pair.files.train.values()
        assert text.source.path == f"inputs/train.{pair.source}"
        assert list(pair.files.tests) == ["news"]
        test_name = f"{direction}-news"
        assert corpus.origin_of_test("many", test_name) == (name, "news")
        assert corpus.language_pair_of_test(test_name) == pair


@pytest.mark.parametrize("tag", ["zh-Hant", "sr-Cyrl", "pt-BR", "zho_Hant"])
def test_a_corpus_may_have_a_language_with_script_or_region(tmp_path, tag):
    """The rule character_score knows Chinese, Serbian and Portuguese."""
    text = replace_once(PARAMS, 'target: "no"', f'target: "{tag}"')
    text = replace_once(text, "length_ratio: {max: 3.0}", "character_score: {min: 0.5}")
    path = tmp_path / "params.yaml"
    path.write_text(text)

    assert load_settings(path, ROOT).corpus("own").target == tag


@pytest.mark.parametrize(
    ("tag", "message"),
    [
        ("xx", "yaml:6: corpora.own.target: language 'xx': 'xx' is an unknown code"),
        ("zh-Hnat", "yaml:6: corpora.own.target: language 'zh-Hnat': 'Hnat' is an unknown"),
        ("zh-hant", "yaml:6: corpora.own.target: a language is a tag such as 'de', 'pt-BR'"),
    ],
)
def test_an_unknown_tag_is_one_error_with_its_line(tmp_path, tag, message):
    error = error_after_change(tmp_path, 'target: "no"', f'target: "{tag}"')

    assert message in error
    assert "\n" not in error


def test_a_rule_that_does_not_know_the_language_of_a_tag_names_the_tag(tmp_path):
    text = replace_once(PARAMS, "length_ratio: {max: 3.0}", "character_score: {min: 0.5}")
    text = replace_once(text, 'target: "no"', 'target: "qaa-Latn"')

    assert "character_score does not support language 'qaa-Latn'" in params_error(tmp_path, text)


def test_a_described_corpus_is_read_in_the_languages_that_it_names(tmp_path):
    """A file in corpora/ lists its files by tags; `pairs` and `tag` are settings, not languages."""
    (tmp_path / "corpora").mkdir()
    (tmp_path / "corpora" / "flores.yaml").write_text(
        "license_and_citation: {f: {license: none, bibtex: '@misc{f,}'}}\n"
        "files: {train: {dev: {pairs: 5, eng_Latn: {path: inputs/dev.eng_Latn}, "
        "zho_Hant: {path: inputs/dev.zho_Hant}, zho_Hans: {path: inputs/dev.zho_Hans}}}}\n"
    )
    corpus = (
        "  flores: {from: flores, source: eng_Latn, target: zho_Hant, "
        "vocabulary: {bpe: {num_merges: 1}}}\n"
    )
    path = tmp_path / "params.yaml"
    path.write_text(replace_once(PARAMS, "systems:\n", f"{corpus}systems:\n"))

    text = load_settings(path, tmp_path).corpus("flores").files.train["dev"]

    assert text.pairs == 5
    assert text.target.path == "inputs/dev.zho_Hant"
