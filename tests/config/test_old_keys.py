"""Keys of params.yaml in bleuprint 1.0: all are named at once, with what to write instead."""

import subprocess

import pytest

from bleuprint.config.experiment import load_settings
from bleuprint.runtime.errors import UserError
from params import PARAMS, read
from root import ROOT
from tools.settings_of_1_0 import COMMIT

OLD = "a key of bleuprint 1.0"
TO_START = f"{OLD}: to start from a system, name it at the top level"
STRUCTURE = """\
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
"""
NAMES = """\
corpora:
  news:
    from: news
    clean: {tags: {}}
    filter:
      ratio: {max: 3.0}
      longest_word: {max: 40}
      alphabetic: {min: 0.5}
      script: {min: 0.5}
      numbers: {}
      sentence_marks: {}
      language_id: {likelier: 10.0}
      alignment_score: {min: 1.0}
    vocabulary:
      sentencepiece:
        model: bpe
        size: 99
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
published:
- &first {name: A, scored: otherwise}
- {<<: *first, name: B}
- {<<: *first, scored: tokens}
"""
NAMES_OF_CORPORA_FILE = """\
license_and_citation: {}
clean: {tags: {}}
filter: {numbers: {}}
"""
# The number of old keys in each recipe of 1.0, as `git show` has it.
KEYS_IN_RECIPES = {
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


def lines_of_error(path):
    """The lines that reading a params.yaml ends with."""
    with pytest.raises(UserError) as error:
        load_settings(path)
    return error.value.lines


def test_old_sections_are_named_at_once_with_their_lines(tmp_path):
    path = tmp_path / "params.yaml"
    path.write_text(STRUCTURE)
    starts = [
        f"{path}:4: systems.tiny.over: {OLD}: write one system for each value",
        f"{path}:3: systems.tiny.train.from: {TO_START}",
        f"{path}:5: systems.tiny.decode.engine: {OLD}: remove it; PyTorch translates",
        f"{path}:6: systems.tiny.corpora.news.train.from: {TO_START}",
        f"{path}:7: tuned: {OLD}: write its systems under systems, and name",
        f"{path}:8: tuned.last.random: {OLD}: write one system for each value",
        f"{path}:8: tuned.last.train.from: {TO_START}",
        f"{path}:9: outside: {OLD}: write each of its systems under systems, with about",
        f"{path}:10: made_texts: {OLD}: it is called synthetic now",
    ]
    lines = lines_of_error(path)
    assert len(lines) == len(starts)
    for line, start in zip(lines, starts, strict=True):
        assert line.startswith(start)


def test_old_names_are_named_at_once_with_the_new_ones(tmp_path):
    path = tmp_path / "params.yaml"
    path.write_text(NAMES)
    (tmp_path / "corpora").mkdir()
    file = tmp_path / "corpora" / "news.yaml"
    file.write_text(NAMES_OF_CORPORA_FILE)
    rules = f"{path}:%d: corpora.news.filter.%s: {OLD}: it is called %s now"
    units = f"{path}:%d: corpora.news.vocabulary.sentencepiece.%s: {OLD}: it is called %s now"
    system = f"{path}:%d: systems.tiny.%s: {OLD}: it is called %s now"
    kept = f"{path}:%d: systems.tiny.%s: {OLD}: write in its place: %s"
    number = f"{path}:%d: published.%d.scored: {OLD}: write metric: %s"
    assert lines_of_error(path) == [
        f"{path}:4: corpora.news.clean.tags: {OLD}: it is called html_tags now",
        rules % (6, "ratio", "length_ratio"),
        rules % (7, "longest_word", "long_word"),
        rules % (8, "alphabetic", "alphabet_ratio"),
        rules % (9, "script", "character_score"),
        rules % (10, "numbers", "numerals"),
        rules % (11, "sentence_marks", "terminal_punctuation"),
        rules % (13, "alignment_score", "word_alignment"),
        rules % (12, "language_id.likelier", "min_odds"),
        units % (16, "model", "model_type"),
        units % (17, "size", "vocab_size"),
        f"{file}:2: clean.tags: {OLD}: it is called html_tags now",
        f"{file}:3: filter.numbers: {OLD}: it is called numerals now",
        system % (21, "train.validate_every", "validate_interval"),
        system % (22, "train.checkpoint_every", "save_interval"),
        kept % (23, "train.keep", "keep_last: 2, keep_best: 1, keep_interval: 50"),
        system % (25, "decode.no_repeat_ngram", "no_repeat_ngram_size"),
        system % (26, "decode.min_length", "min_len"),
        kept % (29, "corpora.news.train.keep", "keep_best: 4"),
        system % (30, "corpora.news.decode.min_length", "min_len"),
        number % (32, 0, "unknown"),
        number % (34, 2, "tokens"),
    ]


@pytest.mark.parametrize("value", ["3", "[1]", "{last: 2, newest: 1}", "{}", ""])
def test_an_old_section_of_another_form_is_one_line(tmp_path, value):
    path = tmp_path / "params.yaml"
    path.write_text(f"systems:\n  tiny:\n    train: {{keep: {value}}}\n    decode: {value}\n")
    (line,) = lines_of_error(path)
    assert line.startswith(f"{path}:3: systems.tiny.train.keep: {OLD}: write in its place: keep_")


def test_an_unknown_key_of_an_old_section_is_told(tmp_path):
    path = tmp_path / "params.yaml"
    path.write_text("systems:\n  tiny:\n    train: {keep: {last: 2, newest: 1}}\n")
    (line,) = lines_of_error(path)
    new = "keep_last: 2; newest: unknown key; did you mean 'best'?"
    assert line == f"{path}:3: systems.tiny.train.keep: {OLD}: write in its place: {new}"


@pytest.mark.parametrize(("recipe", "keys"), KEYS_IN_RECIPES.items())
def test_a_recipe_of_1_0_is_told_each_key_to_change(tmp_path, recipe, keys):
    (tmp_path / "corpora").symlink_to(ROOT / "corpora")
    show = ["git", "show", f"{COMMIT}:recipes/{recipe}.yaml"]
    text = subprocess.run(show, cwd=ROOT, check=True, capture_output=True, encoding="utf-8").stdout
    path = tmp_path / "params.yaml"
    path.write_text(text, encoding="utf-8")
    lines = lines_of_error(path)
    assert len({*lines}) == len(lines) == keys
    recipe_lines = text.splitlines()
    for line in lines:
        place, dotted_key, said, _ = line.split(": ", 3)
        number = int(place.removeprefix(f"{path}:"))
        key = dotted_key.rpartition(".")[2]
        assert said == OLD
        assert f"{key}:" in recipe_lines[number - 1]


# Places of PARAMS for settings of each kind.
CLEAN = "clean: {"
RULE = "length_ratio: {max: 3.0}"
UNITS = "bpe: {num_merges: 10, joint: true, threshold: 0}"
NUMBER = "name: A, source: x, corpus: own, test: held-out, bleu: 3"
VARIANTS = (
    "one of sacrebleu, lower-cased, intl, tokens, tokenized, tokenized, lower-cased, "
    "compound-split, unknown"
)


@pytest.mark.parametrize(
    ("key", "old", "new", "kind"),
    [
        (
            "systems.base.train.validate_interval",
            "validate_interval: 5",
            "validate_interval: x",
            "a whole number",
        ),
        (
            "systems.base.train.save_interval",
            "save_interval: 5",
            "save_interval: x",
            "a whole number",
        ),
        ("systems.base.train.keep_last", "keep_last: 2", "keep_last: x", "a whole number"),
        ("systems.base.train.keep_best", "keep_best: 0", "keep_best: x", "a whole number"),
        (
            "systems.base.train.keep_interval",
            "keep_interval: 0",
            "keep_interval: x",
            "a whole number",
        ),
        ("systems.base.decode.min_len", "min_len: 0", "min_len: x", "a whole number"),
        (
            "systems.base.decode.no_repeat_ngram_size",
            "no_repeat_ngram_size: 0",
            "no_repeat_ngram_size: x",
            "a whole number",
        ),
        ("corpora.own.clean.html_tags", CLEAN, "clean: {html_tags: x, ", "a mapping"),
        ("corpora.own.filter.length_ratio.max", RULE, "length_ratio: {max: x}", "a number"),
        ("corpora.own.filter.long_word.max", RULE, "long_word: {max: x}", "a whole number"),
        ("corpora.own.filter.alphabet_ratio.min", RULE, "alphabet_ratio: {min: x}", "a number"),
        ("corpora.own.filter.character_score.min", RULE, "character_score: {min: x}", "a number"),
        ("corpora.own.filter.numerals", RULE, "numerals: x", "a mapping"),
        ("corpora.own.filter.terminal_punctuation", RULE, "terminal_punctuation: x", "a mapping"),
        ("corpora.own.filter.word_alignment.min", RULE, "word_alignment: {min: x}", "a number"),
        ("corpora.own.filter.language_id.min_odds", RULE, "language_id: {min_odds: x}", "a number"),
        (
            "corpora.own.vocabulary.sentencepiece.model_type",
            UNITS,
            "sentencepiece: {model_type: x}",
            "one of unigram, bpe",
        ),
        (
            "corpora.own.vocabulary.sentencepiece.vocab_size",
            UNITS,
            "sentencepiece: {vocab_size: x}",
            "a whole number",
        ),
        ("published.0.metric", "published: []", f"published: [{{{NUMBER}, metric: x}}]", VARIANTS),
    ],
)
def test_a_renamed_key_with_a_wrong_type_is_one_line(tmp_path, key, old, new, kind):
    assert PARAMS.count(old) == 1
    line = PARAMS[: PARAMS.index(old)].count("\n") + 1
    with pytest.raises(UserError) as error:
        read(tmp_path, PARAMS.replace(old, new))
    place = f"{tmp_path}/params.yaml:{line}: {key}"
    assert error.value.lines == [f"{place}: 'x' is not {kind}"]
