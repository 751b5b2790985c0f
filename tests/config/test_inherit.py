"""Settings that an entry of params.yaml inherits: by `like`, by `from`, and on single corpora."""

from dataclasses import replace

import pytest

from bleuprint.config.dotted_settings import dotted_settings
from bleuprint.config.experiment import load_resolved_settings, load_settings
from bleuprint.config.paths import RESOLVED
from bleuprint.config.runs import trained_runs
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.fingerprint import of_settings
from bleuprint.runtime.json_files import write_json
from params import PARAMS, line_number, params_error, read_params, replace_once
from root import ROOT

CORPUS = "  other: {like: own, target: en, filter: {length_ratio: null}}\n"
SYSTEMS = """\
  big: {like: base, model: {d_ff: 32}, decode: {beam: 3}}
  bigger: {like: big, model: {d_model: 16, d_k: 8, d_v: 8}}
  rotary: {like: base, train: {lr_schedule: {inverse_sqrt: null, constant: {lr: 0.1}}}}
  some:
    like: base
    corpora:
      other: {train: {label_smoothing: 0.2}, average: {last: null, best: 1}}
"""
# PARAMS, whose system is `base` and whose corpus is `own`, with these.
PARAMS_WITH_LIKE = replace_once(PARAMS, "systems:\n", f"{CORPUS}systems:\n")
PARAMS_WITH_LIKE = replace_once(PARAMS_WITH_LIKE, "published: []", f"{SYSTEMS}published: []")
PARAMS_WITH_LIKE = replace_once(PARAMS_WITH_LIKE, "keep_best: 0", "keep_best: 1")
BIG_LINE = line_number(PARAMS_WITH_LIKE, "  big: {")
CORPUS_OF_SOME_LINE = line_number(PARAMS_WITH_LIKE, "      other: {train")


def test_a_system_inherits_the_settings_that_it_does_not_change(tmp_path):
    """`big` is like `base`, but its d_ff is 32 and its beam is 3."""
    settings = read_params(tmp_path, PARAMS_WITH_LIKE)
    base = settings.system_settings("base")
    big = settings.system_settings("big")

    assert big.model.d_ff == 32
    assert big.decode.beam == 3
    assert big.model.d_model == 8
    assert big.train == base.train
    assert big.average == base.average


def test_a_system_inherits_from_a_system_that_inherits(tmp_path):
    """`bigger` is like `big` with d_model 16; `big` is like `base` with d_ff 32 and beam 3."""
    settings = read_params(tmp_path, PARAMS_WITH_LIKE)
    big = settings.system_settings("big")
    bigger = settings.system_settings("bigger")

    assert bigger.model.d_model == 16
    assert bigger.model.d_ff == 32  # of big
    assert bigger.decode == big.decode


def test_null_removes_an_inherited_setting(tmp_path):
    """`rotary` is like `base`, but its learning-rate schedule is constant.

    It sets the schedule of `base`, inverse_sqrt, to null.
    """
    schedule = read_params(tmp_path, PARAMS_WITH_LIKE).system_settings("rotary").train.lr_schedule

    assert schedule.inverse_sqrt is None
    assert schedule.constant is not None


def test_inherited_settings_are_equal_to_settings_written_in_full(tmp_path):
    """`big` is like `base`, but its d_ff is 32 and its beam is 3.

    Both spellings have one fingerprint.
    """
    settings = read_params(tmp_path, PARAMS_WITH_LIKE)
    base = settings.system_settings("base")
    big = settings.system_settings("big")
    text = replace_once(PARAMS, "d_ff: 16", "d_ff: 32")
    text = replace_once(text, "decode: {beam: 1,", "decode: {beam: 3,")
    text = replace_once(text, "keep_best: 0", "keep_best: 1")

    written_in_full = read_params(tmp_path, text).system_settings("base")

    assert written_in_full == big
    assert of_settings(written_in_full) == of_settings(big)
    assert of_settings(big) != of_settings(base)


def test_a_corpus_inherits_the_settings_that_it_does_not_change(tmp_path):
    """`other` is like `own`, but its target is English, and it has no filter by length ratio."""
    corpora = read_params(tmp_path, PARAMS_WITH_LIKE).corpora
    own = corpora["own"]
    other = corpora["other"]

    assert own.target == "no"
    assert other.target == "en"
    assert other.source == "de"
    assert [rule.name() for rule in other.filter] == ["length"]
    assert other.vocabulary == own.vocabulary


def test_a_system_may_have_other_settings_on_one_corpus(tmp_path):
    """`some` is like `base`, but changes label smoothing and averaging on the corpus `other`."""
    settings = read_params(tmp_path, PARAMS_WITH_LIKE)
    some = settings.system_settings("some")
    base_on_other = settings.system_on("base", "other")

    assert some.train.label_smoothing == 0.2
    assert base_on_other.train.label_smoothing == 0.1
    assert some.average.best == 1
    assert some.average.last is None
    assert some.model == base_on_other.model


def test_a_system_that_lists_corpora_is_trained_only_on_them(tmp_path):
    """`some` lists the corpus `other`."""
    settings = read_params(tmp_path, PARAMS_WITH_LIKE)

    assert ("some", "own", 1) not in trained_runs(settings)
    assert "some" not in settings.trained_systems_on("own")
    message = "^params.yaml: some is not trained on own, but only on other$"
    with pytest.raises(UserError, match=message):
        settings.system_on("some", "own")


def test_shown_settings_name_the_corpora_of_a_system_that_is_not_trained_on_all(tmp_path):
    shown = dotted_settings(read_params(tmp_path, PARAMS_WITH_LIKE), "some")

    assert shown["corpora"] == "other"
    assert shown["train.label_smoothing"] == "0.2"


def test_settings_that_differ_between_corpora_are_shown_for_each_corpus(tmp_path):
    """The system `base` has a beam of 1 on the corpus `own` and of 5 on `other`.

    The report shows settings by dotted keys such as decode.beam.
    """
    corpora_of_base = "    corpora: {own: {}, other: {decode: {beam: 5}}}\n"
    text = PARAMS_WITH_LIKE.replace("  big:", f"{corpora_of_base}  big:", 1)

    shown = dotted_settings(read_params(tmp_path, text), "base")

    assert shown["own.decode.beam"] == "1"
    assert shown["other.decode.beam"] == "5"
    assert "decode.beam" not in shown
    assert shown["decode.min_len"] == "0"  # the same on both corpora


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        pytest.param(
            "{like: base, model: {d_ff: 32}",
            "{like: bsae, model: {}",
            f":{BIG_LINE}: systems.big.like: no e",
            id="unknown system",
        ),
        pytest.param(
            "{like: base, model: {d_ff: 32}", "{like: big, model: {}", "big -> big", id="itself"
        ),
        pytest.param(
            "{like: base, model: {d_ff: 32}",
            "{like: bigger, model: {}",
            "big -> bigger -> big",
            id="cycle of two",
        ),
        pytest.param(
            "{like: base, model: {d_ff: 32}",
            "{like: [base], model: {}",
            "no entry ['base'] here",
            id="list",
        ),
        pytest.param(
            "{like: own, target", "{from: nowhere, target", "other.from: no file ", id="from"
        ),
        pytest.param(
            "  big: {like", "  big: {liek", "systems.big.liek: unknown key", id="misspelled"
        ),
    ],
)
def test_a_mistake_in_like_or_from_is_reported(tmp_path, old, new, message):
    assert old in PARAMS_WITH_LIKE
    text = PARAMS_WITH_LIKE.replace(old, new, 1)

    assert message in params_error(tmp_path, text)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        pytest.param(
            "d_ff: 32",
            "d_f: 32",
            f":{BIG_LINE}: systems.big.model.d_f: unknown key. Did you mean 'd_ff'?",
            id="unknown key",
        ),
        pytest.param(
            "inverse_sqrt: null",
            "invers_sqrt: null",
            "Did you mean 'inverse_sqrt'?",
            id="unknown key without value",
        ),
        pytest.param(
            "  big: {",
            "  odd: {7: 3}\n  next: {like: odd, foo: null}\n  big: {",
            "systems.next.foo",
            id="unknown key beside an inherited number as key",
        ),
        pytest.param(
            "      other: {train",
            "      none: {train",
            f":{CORPUS_OF_SOME_LINE}: systems.some.corpora.none: no such",
            id="unknown corpus",
        ),
        pytest.param(
            "    corpora:\n      other:",
            "    corpora: [other] #",
            "systems.some.corpora: names no",
            id="list of corpora",
        ),
        pytest.param(
            "smoothing: 0.2",
            "smoothing: 2",
            "some.corpora.other.train.label_smoothing: 2 is out",
            id="number on one corpus",
        ),
        pytest.param(
            "null, best: 1}",
            "null, best: 9}",
            "some.corpora.other: average.best is 9, but train",
            id="combination on one corpus",
        ),
    ],
)
def test_a_mistake_in_changed_settings_is_reported_at_the_system_that_changes_them(
    tmp_path, old, new, message
):
    """Each case makes a mistake in an entry that inherits from `base` by `like`.

    The message names the line of that entry, not of the entry that it inherits from.
    """
    assert old in PARAMS_WITH_LIKE
    text = PARAMS_WITH_LIKE.replace(old, new, 1)

    assert message in params_error(tmp_path, text)


def test_a_contradiction_with_inherited_settings_is_reported_at_the_inheriting_system(tmp_path):
    """`base` averages the last two checkpoints, and `big` keeps only one of them."""
    text = replace_once(PARAMS_WITH_LIKE, "model: {d_ff: 32}", "train: {keep_last: 1}")

    error = params_error(tmp_path, text)

    path = tmp_path / "params.yaml"
    assert error.startswith(
        f"{path}:{BIG_LINE}: systems.big: average.last is 2, but training keeps only 1"
    )


def test_all_mistakes_are_reported_at_once_and_not_again_where_they_are_inherited(tmp_path):
    """There are three: in `seeds`, in `base`, from which others inherit, and in `big`."""
    text = replace_once(PARAMS_WITH_LIKE, "seeds: [1]", "seeds: [one]")
    text = replace_once(text, "heads: 2", "head: 2")  # of base, from which other systems inherit
    text = replace_once(text, "d_ff: 32", "d_ff: none")

    lines = params_error(tmp_path, text).splitlines()

    # A line is FILE:LINE: KEY: EXPLANATION.
    keys = [line.split(": ")[1] for line in lines]
    assert sorted(keys) == ["seeds.0", "systems.base.model.head", "systems.big.model.d_ff"]


def test_a_corpus_or_system_with_a_mistake_does_not_hide_other_mistakes(tmp_path):
    """The corpus `other` and the system `rotary` cannot be read, but their names are known."""
    text = replace_once(PARAMS_WITH_LIKE, "seeds: [1]", "seed: [1]")
    text = replace_once(text, "heads: 2", "head: 2")
    text = replace_once(text, "d_ff: 32", "d_ff: none")
    text = replace_once(text, "other: {like: own,", "other: {from: none,")
    text = replace_once(text, "rotary: {like: base", "rotary: {like: bsae")

    lines = params_error(tmp_path, text).splitlines()

    # A line is FILE:LINE: KEY: EXPLANATION, or FILE: EXPLANATION.
    keys = [line.split(": ")[1] for line in lines]
    assert sorted(keys) == [
        "corpora.other.from",
        "seed",
        "systems.base.model.head",
        "systems.big.model.d_ff",
        "systems.rotary.like",
        "the key 'seeds' is missing",
    ]


def test_a_section_whose_only_entry_has_a_mistake_is_not_called_empty(tmp_path):
    text = replace_once(PARAMS, "  base:\n", "  base:\n    like: base\n")

    with pytest.raises(
        UserError, match=r"^\S+:\d+: systems\.base\.like: `like` leads in a circle: .*base -> base$"
    ):
        read_params(tmp_path, text)


# A corpus in the folder corpora/: its texts in all languages.
DESCRIBED_CORPUS = """\
license_and_citation: {mine: {license: none, bibtex: "@misc{mine,}"}}
files:
  train:
    a: {de: {path: inputs/a.de}, no: {path: inputs/a.no}, en: {path: inputs/a.en}}
  tests:
    first: {a: {de: {path: inputs/t.de}, no: {path: inputs/t.no}}}
"""


def write_described_corpus(folder, text=DESCRIBED_CORPUS):
    """Write the description of a corpus to corpora/mine.yaml."""
    (folder / "corpora").mkdir()
    (folder / "corpora" / "mine.yaml").write_text(text)


def params_with_described_corpus(settings):
    """Return a params.yaml with a corpus `back` that has the texts in corpora/mine.yaml.

    Args:
        settings: Settings of the corpus, as YAML, such as its languages.
    """
    vocabulary = "vocabulary: {words: {max_size: 9}}"
    corpus = f"  back: {{from: mine, {settings}, {vocabulary}}}\n"
    text = replace_once(PARAMS_WITH_LIKE, "systems:\n", f"{corpus}systems:\n")
    return replace_once(text, "tie_embeddings: all", "tie_embeddings: none")


def test_a_described_corpus_provides_the_texts_in_the_languages_of_an_entry(tmp_path):
    """corpora/mine.yaml describes texts in German, Norwegian and English.

    The corpus `back`, from Norwegian to German, takes two of these languages.
    """
    write_described_corpus(tmp_path)
    text = params_with_described_corpus("source: no, target: de")

    files = read_params(tmp_path, text).corpus("back").files

    training_text = files.train["a"]
    assert training_text.license_and_citation == "mine"
    assert training_text.source.path == "inputs/a.no"
    assert training_text.target.path == "inputs/a.de"
    assert files.tests["first"]["a"].source.path == "inputs/t.no"


@pytest.mark.parametrize(
    ("languages", "message"),
    [
        pytest.param(
            "source: en, target: de",
            r"mine\.yaml:6: .*first\.a: the text is not in 'en' \(.*\.source\)",
            id="a text lacks the language",
        ),
        pytest.param(
            "target: de",
            r"back\.from: the source language is missing",
            id="no source",
        ),
        pytest.param(
            "source: no, target: null",
            r"back\.from: the target language is missing",
            id="target is null",
        ),
        pytest.param(
            "source: no, target: [de]",
            r"back\.from: the target language is missing",
            id="target is a list",
        ),
        pytest.param(
            "source: no, target: no",
            r"back\.target: source and target are both 'no'",
            id="one language on both sides",
        ),
    ],
)
def test_languages_that_a_described_corpus_does_not_provide_are_reported(
    tmp_path, languages, message
):
    """corpora/mine.yaml has a training text in German, Norwegian and English.

    Its test set `first` lacks English.
    """
    write_described_corpus(tmp_path)

    with pytest.raises(UserError, match=message):
        read_params(tmp_path, params_with_described_corpus(languages))


def test_an_entry_may_change_and_remove_files_of_a_described_corpus(tmp_path):
    """corpora/mine.yaml has the training text `a` and the test set `first`.

    A file may be named by its language, here `no`, or by its side, here `target`.
    """
    write_described_corpus(tmp_path)
    languages = "source: no, target: de"
    described = read_params(tmp_path, params_with_described_corpus(languages)).corpus("back").files
    training_text = "a: {no: {path: inputs/b.no}, target: {size: 7}}"
    files = f"files: {{train: {{{training_text}}}, tests: {{first: null}}}}"

    changed = (
        read_params(tmp_path, params_with_described_corpus(f"{files}, {languages}"))
        .corpus("back")
        .files
    )

    described_text = described.train["a"]
    assert changed.train["a"].source == replace(described_text.source, path="inputs/b.no")
    assert changed.train["a"].target == replace(described_text.target, size=7)
    assert not changed.tests


def test_a_mistake_in_the_description_of_a_corpus_is_reported_in_its_file(tmp_path):
    """The key `path` is misspelled in line 4 of corpora/mine.yaml."""
    write_described_corpus(
        tmp_path, replace_once(DESCRIBED_CORPUS, "path: inputs/a.de", "pth: inputs/a.de")
    )

    with pytest.raises(UserError, match=r"mine\.yaml:4: files\.train\.a\.de\.pth: unknown key"):
        read_params(tmp_path, params_with_described_corpus("source: no, target: de"))


TWO_LICENSES = """\
license_and_citation:
  mine: {license: none, bibtex: "@misc{mine,}"}
  other: {license: none, bibtex: "@misc{other,}"}
files:
  train:
    a: {license_and_citation: mine, de: {path: inputs/a.de}, no: {path: inputs/a.no}}
  tests:
    first: {a: {license_and_citation: other, de: {path: inputs/t.de}, no: {path: inputs/t.no}}}
"""


@pytest.mark.parametrize(
    ("settings", "licenses"),
    [
        pytest.param("source: no, target: de", ["mine", "other"], id="with the test set"),
        pytest.param(
            "files: {tests: {first: null}}, source: no, target: de",
            ["mine"],
            id="without the test set",
        ),
    ],
)
def test_a_corpus_has_only_the_licenses_of_its_texts(tmp_path, settings, licenses):
    """The training text has the license `mine`, the test set the license `other`."""
    write_described_corpus(tmp_path, TWO_LICENSES)

    corpus = read_params(tmp_path, params_with_described_corpus(settings)).corpus("back")

    assert list(corpus.license_and_citation) == licenses


@pytest.mark.parametrize(
    "path",
    [ROOT / "params.yaml", *sorted((ROOT / "recipes").glob("*.yaml"))],
    ids=lambda path: path.stem,
)
def test_resolved_settings_are_equal_to_those_of_params(tmp_path, path):
    """The stage resolve writes all settings to a file, which the other stages read."""
    settings = load_settings(path, ROOT)
    write_json(tmp_path / RESOLVED, {**settings.resolved(), "inputs": {}, "code": {}})

    resolved_settings = load_resolved_settings(tmp_path)

    for name, corpus in settings.corpora.items():
        # How sets are drawn is not kept if params.yaml has the sets, since nothing uses it.
        expected_corpus = replace(corpus, split=corpus.effective_split())
        assert resolved_settings.corpora[name] == expected_corpus
    assert replace(resolved_settings, corpora=settings.corpora) == settings


def test_optional_settings_without_a_value_are_not_resolved(tmp_path):
    """Otherwise each new optional setting would make all results out of date."""
    settings = read_params(tmp_path)

    train = settings.resolved()["runs"]["base"]["own"]["train"]

    assert "patience" not in train
    assert train["max_updates"] == 10
