"""Keys of params.yaml in bleuprint 1.0: all are reported at once, each with its new name."""

import subprocess

import pytest

from bleuprint.config.experiment import load_settings
from bleuprint.runtime.errors import UserError
from params import PARAMS, line_number, params_error, replace_once
from root import ROOT
from tools.settings_of_1_0 import COMMIT

OLD_KEY = "a key of bleuprint 1.0"
# The number of old keys in each recipe of version 1.0, counted by hand.
OLD_KEYS_IN_RECIPES = {
    "ablations-multi30k": 4,
    "ablations-phrasebook": 3,
    "annotated-iwslt": 3,
    "annotated-multi30k": 3,
    "back-translation-phrasebook": 4,
    "cleaning-phrasebook": 10,
    "copy": 2,
    "course-multi30k": 7,
    "fine-tune-multi30k": 8,
    "iwslt14-de-en": 6,
    "multi30k": 4,
    "multi30k-cpu": 4,
    "multi30k-french": 4,
    "multilingual-multi30k": 6,
    "own": 9,
    "phrasebook": 9,
    "prepare-tanaka": 4,
    "slides-tanaka": 6,
    "table2": 14,
    "table2-multi30k": 6,
    "table3": 5,
    "table3-phrasebook": 3,
    "toy-sentence": 6,
}


def error_lines(path):
    """Return the lines of the error that reading a params.yaml must raise."""
    with pytest.raises(UserError) as error:
        load_settings(path)
    return error.value.lines


def assert_each_starts_with(lines, expected_starts):
    """Check that each line starts as expected, and that no other lines exist."""
    assert len(lines) == len(expected_starts)
    for line, expected_start in zip(lines, expected_starts, strict=True):
        assert line.startswith(expected_start)


def test_all_old_sections_are_reported_at_once_with_their_lines(tmp_path):
    """Version 1.0 had these sections; each message tells what to write in their place."""
    path = tmp_path / "params.yaml"
    path.write_text("""\
systems:
  tiny:
    train: {from: {folder: models/start}}
    over: {train.max_updates: [1, 2]}
    decode: {engine: ctranslate2}
    corpora: {news: {train: {from: {system: tiny, corpus: other}}}}
tuned:
  last: {like: tiny, random: 3, train: {from: {system: tiny, corpus: news}}}
outside: {}
made_texts: {}
""")

    lines = error_lines(path)

    start_at_top_level = f"{OLD_KEY}. To start from a system, name it at the top level"
    assert_each_starts_with(
        lines,
        [
            f"{path}:4: systems.tiny.over: {OLD_KEY}. Write one system for each value",
            f"{path}:3: systems.tiny.train.from: {start_at_top_level}",
            f"{path}:5: systems.tiny.decode.engine: {OLD_KEY}. Remove it: PyTorch translates",
            f"{path}:6: systems.tiny.corpora.news.train.from: {start_at_top_level}",
            f"{path}:7: tuned: {OLD_KEY}. Write its systems under systems, and name",
            f"{path}:8: tuned.last.random: {OLD_KEY}. Write one system for each value",
            f"{path}:8: tuned.last.train.from: {start_at_top_level}",
            f"{path}:9: outside: {OLD_KEY}. Write each of its systems under systems, with about",
            f"{path}:10: made_texts: {OLD_KEY}. It is called synthetic now",
        ],
    )


@pytest.fixture
def params_file(tmp_path):
    """Return the path of a params.yaml that a test will write."""
    return tmp_path / "params.yaml"


def test_old_names_of_rules_are_reported_with_the_new_ones(params_file):
    """Version 1.0 called these filters and edits by other names."""
    params_file.write_text("""\
corpora:
  news:
    clean: {tags: {}}
    filter:
      ratio: {max: 3.0}
      longest_word: {max: 40}
      alphabetic: {min: 0.5}
      script: {min: 0.5}
      numbers: {}
      sentence_marks: {}
      alignment_score: {min: 1.0}
      language_id: {likelier: 10.0}
""")

    rules = f"{params_file}:%d: corpora.news.%s: {OLD_KEY}. It is called %s now"
    assert error_lines(params_file) == [
        rules % (3, "clean.tags", "html_tags"),
        rules % (5, "filter.ratio", "length_ratio"),
        rules % (6, "filter.longest_word", "long_word"),
        rules % (7, "filter.alphabetic", "alphabet_ratio"),
        rules % (8, "filter.script", "character_score"),
        rules % (9, "filter.numbers", "numerals"),
        rules % (10, "filter.sentence_marks", "terminal_punctuation"),
        rules % (11, "filter.alignment_score", "word_alignment"),
        rules % (12, "filter.language_id.likelier", "min_odds"),
    ]


def test_old_names_in_the_description_of_a_corpus_are_reported_in_its_file(params_file):
    """`from: news` takes texts and rules from the file corpora/news.yaml."""
    params_file.write_text("corpora:\n  news: {from: news}\n")
    description = params_file.parent / "corpora" / "news.yaml"
    description.parent.mkdir()
    description.write_text("license_and_citation: {}\nclean: {tags: {}}\nfilter: {numbers: {}}\n")

    assert error_lines(params_file) == [
        f"{description}:2: clean.tags: {OLD_KEY}. It is called html_tags now",
        f"{description}:3: filter.numbers: {OLD_KEY}. It is called numerals now",
    ]


def test_old_names_of_sentencepiece_settings_are_reported_with_the_new_ones(params_file):
    """Version 1.0 called them model and size."""
    params_file.write_text("""\
corpora:
  news:
    vocabulary:
      sentencepiece:
        model: bpe
        size: 99
""")

    sentencepiece = "corpora.news.vocabulary.sentencepiece"
    assert error_lines(params_file) == [
        f"{params_file}:5: {sentencepiece}.model: {OLD_KEY}. It is called model_type now",
        f"{params_file}:6: {sentencepiece}.size: {OLD_KEY}. It is called vocab_size now",
    ]


def test_old_names_of_system_settings_are_reported_with_the_new_ones(params_file):
    """Version 1.0 called these settings by other names. `keep` is split into three."""
    params_file.write_text("""\
systems:
  tiny:
    train:
      validate_every: 5
      checkpoint_every: 5
      keep: {last: 2, best: 1, every: 50}
    decode:
      no_repeat_ngram: 3
      min_length: 2
    corpora:
      news:
        train: {keep: {best: 4}}
        decode: {min_length: 1}
""")

    renamed = f"{params_file}:%d: systems.tiny.%s: {OLD_KEY}. It is called %s now"
    replaced = f"{params_file}:%d: systems.tiny.%s: {OLD_KEY}. Write in its place: %s"
    assert error_lines(params_file) == [
        renamed % (4, "train.validate_every", "validate_interval"),
        renamed % (5, "train.checkpoint_every", "save_interval"),
        replaced % (6, "train.keep", "keep_last: 2, keep_best: 1, keep_interval: 50"),
        renamed % (8, "decode.no_repeat_ngram", "no_repeat_ngram_size"),
        renamed % (9, "decode.min_length", "min_len"),
        replaced % (12, "corpora.news.train.keep", "keep_best: 4"),
        renamed % (13, "corpora.news.decode.min_length", "min_len"),
    ]


def test_an_old_name_that_a_merge_key_copies_is_reported_once(params_file):
    """`<<: *first` copies the entry marked by `&first`, with its old name."""
    params_file.write_text("""\
published:
- &first {name: A, scored: otherwise}
- {<<: *first, name: B}
- {<<: *first, scored: tokens}
""")

    assert error_lines(params_file) == [
        f"{params_file}:2: published.0.scored: {OLD_KEY}. Write metric: unknown",
        f"{params_file}:4: published.2.scored: {OLD_KEY}. Write metric: tokens",
    ]


def test_old_names_in_all_sections_are_reported_at_once(params_file):
    """So a user of version 1.0 can correct params.yaml in one go, corpora/news.yaml included."""
    params_file.write_text("""\
corpora:
  news:
    from: news
    filter: {language_id: {likelier: 10.0}, alignment_score: {min: 1.0}}
    vocabulary: {sentencepiece: {size: 99}}
systems:
  tiny:
    decode: {min_length: 2}
published:
- {name: A, scored: otherwise}
""")
    description = params_file.parent / "corpora" / "news.yaml"
    description.parent.mkdir()
    description.write_text("license_and_citation: {}\nclean: {tags: {}}\n")

    assert error_lines(params_file) == [
        f"{params_file}:4: corpora.news.filter.alignment_score: {OLD_KEY}. It is called "
        "word_alignment now",
        f"{params_file}:4: corpora.news.filter.language_id.likelier: {OLD_KEY}. It is called "
        "min_odds now",
        f"{params_file}:5: corpora.news.vocabulary.sentencepiece.size: {OLD_KEY}. It is called "
        "vocab_size now",
        f"{description}:2: clean.tags: {OLD_KEY}. It is called html_tags now",
        f"{params_file}:8: systems.tiny.decode.min_length: {OLD_KEY}. It is called min_len now",
        f"{params_file}:10: published.0.scored: {OLD_KEY}. Write metric: unknown",
    ]


@pytest.mark.parametrize(
    "value",
    [
        pytest.param("3", id="number"),
        pytest.param("[1]", id="list"),
        pytest.param("{last: 2, newest: 1}", id="unknown key"),
        pytest.param("{}", id="empty mapping"),
        pytest.param("", id="no value"),
    ],
)
def test_an_old_section_with_any_value_is_reported_in_one_line(params_file, value):
    """Version 1.0 had `keep: {last: 2}` for today's keep_last.

    A wrong value in it must not end the check with a traceback.
    """
    text = f"systems:\n  tiny:\n    train: {{keep: {value}}}\n    decode: {value}\n"
    params_file.write_text(text)

    (line,) = error_lines(params_file)

    old_section = f"{params_file}:3: systems.tiny.train.keep: {OLD_KEY}"
    assert line.startswith(f"{old_section}. Write in its place: keep_")


def test_an_unknown_key_in_an_old_section_is_reported_too(params_file):
    """In version 1.0, `keep` had the keys last, best and every."""
    params_file.write_text("systems:\n  tiny:\n    train: {keep: {last: 2, newest: 1}}\n")

    (line,) = error_lines(params_file)

    assert line == (
        f"{params_file}:3: systems.tiny.train.keep: {OLD_KEY}. Write in its place: keep_last: 2; "
        "newest: unknown key. Did you mean 'best'?"
    )


@pytest.mark.parametrize(("recipe", "old_key_count"), OLD_KEYS_IN_RECIPES.items())
def test_each_old_key_of_a_recipe_of_1_0_is_reported_once(tmp_path, recipe, old_key_count):
    """The recipes come from the commit of version 1.0 in Git.

    The expected numbers of old keys were counted in them by hand.
    """
    (tmp_path / "corpora").symlink_to(ROOT / "corpora")
    command = ["git", "show", f"{COMMIT}:recipes/{recipe}.yaml"]
    process = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, encoding="utf-8")
    path = tmp_path / "params.yaml"
    path.write_text(process.stdout, encoding="utf-8")

    lines = error_lines(path)

    assert len(lines) == old_key_count
    assert len(set(lines)) == old_key_count
    recipe_lines = process.stdout.splitlines()
    for line in lines:
        location, dotted_key, problem = line.split(": ", 2)
        assert problem.startswith(f"{OLD_KEY}. ")
        number = int(location.removeprefix(f"{path}:"))
        last_key = dotted_key.rpartition(".")[2]
        assert f"{last_key}:" in recipe_lines[number - 1]


def assert_wrong_type_is_reported(folder, key, old, new, expected_type):
    """Change one place of PARAMS to the value `x`, and check the message about it.

    Args:
        folder: Where to write params.yaml.
        key: The dotted key of the value.
        old: The text to replace.
        new: The new text, with the key in its last part and the value `x`.
        expected_type: The type that the message names.
    """
    line = line_number(PARAMS, old)
    message = params_error(folder, replace_once(PARAMS, old, new))
    assert message == f"{folder}/params.yaml:{line}: {key}: 'x' is not {expected_type}"


@pytest.mark.parametrize(
    ("key", "old"),
    [
        ("train.validate_interval", "validate_interval: 5"),
        ("train.save_interval", "save_interval: 5"),
        ("train.keep_last", "keep_last: 2"),
        ("train.keep_best", "keep_best: 0"),
        ("train.keep_interval", "keep_interval: 0"),
        ("decode.min_len", "min_len: 0"),
        ("decode.no_repeat_ngram_size", "no_repeat_ngram_size: 0"),
    ],
)
def test_a_renamed_setting_of_a_system_must_be_a_whole_number(tmp_path, key, old):
    """The new names are checked like the old ones: each case writes x in place of a number."""
    name = key.partition(".")[2]

    assert_wrong_type_is_reported(
        tmp_path,
        key=f"systems.base.{key}",
        old=old,
        new=f"{name}: x",
        expected_type="a whole number",
    )


@pytest.mark.parametrize(
    ("key", "rule", "expected_type"),
    [
        pytest.param("length_ratio.max", "length_ratio: {max: x}", "a number", id="length_ratio"),
        pytest.param("long_word.max", "long_word: {max: x}", "a whole number", id="long_word"),
        pytest.param(
            "alphabet_ratio.min", "alphabet_ratio: {min: x}", "a number", id="alphabet_ratio"
        ),
        pytest.param(
            "character_score.min", "character_score: {min: x}", "a number", id="character_score"
        ),
        pytest.param("numerals", "numerals: x", "a mapping", id="numerals"),
        pytest.param(
            "terminal_punctuation",
            "terminal_punctuation: x",
            "a mapping",
            id="terminal_punctuation",
        ),
        pytest.param(
            "word_alignment.min", "word_alignment: {min: x}", "a number", id="word_alignment"
        ),
        pytest.param(
            "language_id.min_odds", "language_id: {min_odds: x}", "a number", id="language_id"
        ),
    ],
)
def test_a_renamed_filter_with_a_value_of_the_wrong_type_is_reported(
    tmp_path, key, rule, expected_type
):
    """Each case writes x in place of a value of a filter in the corpus `own`."""
    assert_wrong_type_is_reported(
        tmp_path,
        key=f"corpora.own.filter.{key}",
        old="length_ratio: {max: 3.0}",
        new=rule,
        expected_type=expected_type,
    )


def test_the_renamed_edit_html_tags_must_be_a_mapping(tmp_path):
    """The edit has no settings: `html_tags: {}` turns it on, and x is wrong."""
    assert_wrong_type_is_reported(
        tmp_path,
        key="corpora.own.clean.html_tags",
        old="clean: {",
        new="clean: {html_tags: x, ",
        expected_type="a mapping",
    )


@pytest.mark.parametrize(
    ("name", "expected_type"),
    [("model_type", "one of unigram, bpe"), ("vocab_size", "a whole number")],
)
def test_a_renamed_setting_of_sentencepiece_with_a_wrong_type_is_reported(
    tmp_path, name, expected_type
):
    """Each case writes x in place of a value of the vocabulary of `own`."""
    assert_wrong_type_is_reported(
        tmp_path,
        key=f"corpora.own.vocabulary.sentencepiece.{name}",
        old="bpe: {num_merges: 10, joint: true, threshold: 0}",
        new=f"sentencepiece: {{{name}: x}}",
        expected_type=expected_type,
    )


def test_the_renamed_metric_of_a_published_score_must_be_a_known_one(tmp_path):
    """The metric says how the score was computed; x is not among the known ways."""
    score = "{name: A, source: x, corpus: own, test: held-out, bleu: 3, metric: x}"

    assert_wrong_type_is_reported(
        tmp_path,
        key="published.0.metric",
        old="published: []",
        new=f"published: [{score}]",
        expected_type=(
            "one of sacrebleu, lower-cased, intl, tokens, tokenized, tokenized, lower-cased, "
            "compound-split, unknown"
        ),
    )
