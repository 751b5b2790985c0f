"""`like`, `from` and settings on single corpora: what an entry has, and where its values stand."""

from dataclasses import replace

import pytest

from bleuprint.config.dotted_settings import dotted_settings
from bleuprint.config.experiment import Settings, load_resolved_settings, load_settings
from bleuprint.config.paths import RESOLVED
from bleuprint.config.runs import trained_runs
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import write_json
from bleuprint.runtime.fingerprint import of_settings
from params import PARAMS, read
from root import ROOT

ROWS = """\
  big: {like: base, model: {d_ff: 32}, decode: {beam: 3}}
  bigger: {like: big, model: {d_model: 16, d_k: 8, d_v: 8}}
  rotary: {like: base, train: {lr_schedule: {inverse_sqrt: null, constant: {lr: 0.1}}}}
  some:
    like: base
    corpora:
      other: {train: {label_smoothing: 0.2}, average: {last: null, best: 1}}
"""
CORPUS = "  other: {like: own, target: en, filter: {length_ratio: null}}\nsystems:\n"
TEXT = PARAMS.replace("systems:\n", CORPUS).replace("published: []", f"{ROWS}published: []")
TEXT = TEXT.replace("keep_best: 0", "keep_best: 1")


def test_a_row_says_what_differs(tmp_path):
    settings = read(tmp_path, TEXT)
    base, big, bigger, rotary = map(settings.system_settings, ("base", "big", "bigger", "rotary"))
    assert (big.model.d_ff, big.decode.beam) == (32, 3)
    assert (big.model.d_model, big.train, big.average) == (8, base.train, base.average)
    assert (bigger.model.d_ff, bigger.model.d_model, bigger.decode) == (32, 16, big.decode)
    schedule = rotary.train.lr_schedule
    assert schedule.inverse_sqrt is None and schedule.constant is not None
    # however settings are written, they are the same
    written = PARAMS.replace("d_ff: 16", "d_ff: 32").replace("{beam: 1,", "{beam: 3,")
    plain = read(tmp_path, written.replace("best: 0", "best: 1")).system_settings("base")
    assert plain == big and of_settings(plain) == of_settings(big) != of_settings(base)


def test_a_corpus_says_what_differs(tmp_path):
    own, other = read(tmp_path, TEXT).corpora.values()
    assert (other.source, other.target, own.target) == ("de", "en", "no")
    assert [rule.name() for rule in other.filter] == ["length"]
    assert other.vocabulary == own.vocabulary


def test_a_system_has_other_settings_on_a_corpus(tmp_path):
    settings = read(tmp_path, TEXT)
    some, base = settings.system_settings("some"), settings.system_on("base", "other")
    assert (some.train.label_smoothing, base.train.label_smoothing) == (0.2, 0.1)
    assert (some.average.best, some.average.last) == (1, None)
    assert some.model == base.model
    assert ("some", "own", 1) not in trained_runs(settings)
    assert "some" not in settings.trained_systems_on("own")
    message = "some is not trained on own; systems.some.corpora has: other"
    with pytest.raises(UserError, match=f"^params.yaml: {message}$"):
        settings.system_on("some", "own")
    shown = dotted_settings(settings, "some")
    assert shown["corpora"] == "other" and shown["train.label_smoothing"] == "0.2"


def test_what_differs_by_corpus_is_shown_by_corpus(tmp_path):
    row = "    corpora: {own: {}, other: {decode: {beam: 5}}}\n  big:"
    shown = dotted_settings(read(tmp_path, TEXT.replace("  big:", row, 1)), "base")
    assert (shown["own.decode.beam"], shown["other.decode.beam"]) == ("1", "5")
    assert "decode.beam" not in shown and shown["decode.min_len"] == "0"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("{like: base, model: {d_ff: 32}", "{like: bsae, model: {}", "64: systems.big.like: no e"),
        ("{like: base, model: {d_ff: 32}", "{like: big, model: {}", "big -> big"),
        ("{like: base, model: {d_ff: 32}", "{like: bigger, model: {}", "big -> bigger -> big"),
        ("{like: base, model: {d_ff: 32}", "{like: [base], model: {}", "no entry ['base'] here"),
        ("d_ff: 32", "d_f: 32", ":64: systems.big.model.d_f: unknown key; did you mean 'd_ff'?"),
        ("inverse_sqrt: null", "invers_sqrt: null", "did you mean 'inverse_sqrt'?"),
        ("      other: {train", "      none: {train", "70: systems.some.corpora.none: no such"),
        ("smoothing: 0.2", "smoothing: 2", "some.corpora.other.train.label_smoothing: 2 is out"),
        ("null, best: 1}", "null, best: 9}", "some.corpora.other: average.best 9: train"),
        ("    corpora:\n      other:", "    corpora: [other] #", "systems.some.corpora: names no"),
        ("{like: own, target", "{from: nowhere, target", "other.from: no file "),
        ("  big: {", "  odd: {7: 3}\n  next: {like: odd, foo: null}\n  big: {", "systems.next.foo"),
        ("  big: {like", "  big: {liek", "systems.big.liek: unknown key"),
    ],
)
def test_a_mistake_is_named_where_it_stands(tmp_path, old, new, message):
    assert TEXT.count(old) >= 1
    with pytest.raises(UserError) as raised:
        read(tmp_path, TEXT.replace(old, new, 1))
    assert message in str(raised.value)


def test_a_mistake_of_a_row_is_not_one_of_its_base(tmp_path):
    text = TEXT.replace("model: {d_ff: 32}", "train: {keep_last: 1}")
    number = text.partition("  big:")[0].count("\n") + 1
    with pytest.raises(UserError) as raised:
        read(tmp_path, text)
    said = f"{tmp_path / 'params.yaml'}:{number}: systems.big: average.last 2: training keeps 1"
    assert str(raised.value).startswith(said)


def test_all_mistakes_are_said_at_once(tmp_path):
    text = TEXT.replace("d_ff: 32", "d_ff: none").replace("heads: 2", "head: 2")
    with pytest.raises(UserError) as raised:
        read(tmp_path, text.replace("seeds: [1]", "seeds: [one]"))
    lines = str(raised.value).splitlines()
    keys = ("seeds.0", "systems.base.model.head", "systems.big.model.d_ff")
    assert [key for key in keys if not any(f" {key}: " in line for line in lines)] == []
    assert len(lines) == len(keys)  # once, though rows inherit them
    # with rows and corpora that cannot be whole, whose names other rows may still have
    text = text.replace("{like: own,", "{from: none,").replace("seeds: [1]", "seed: [1]")
    text = text.replace("rotary: {like: base", "rotary: {like: bsae")
    with pytest.raises(UserError) as raised:
        read(tmp_path, text)
    found = [line.split(": ")[1] for line in str(raised.value).splitlines()]
    assert sorted(found) == [
        *("corpora.other.from", "seed", "systems.base.model.head", "systems.big.model.d_ff"),
        *("systems.rotary.like", "the key 'seeds' is missing"),
    ]


def test_a_section_whose_entries_are_all_wrong_is_not_called_empty(tmp_path):
    with pytest.raises(UserError, match=r"^\S+:\d+: systems\.base\.like: a circle .*base -> base$"):
        read(tmp_path, PARAMS.replace("  base:\n", "  base:\n    like: base\n"))


FILES = """\
license_and_citation: {mine: {license: none, bibtex: "@misc{mine,}"}}
files:
  train:
    a: {de: {path: inputs/a.de}, no: {path: inputs/a.no}, en: {path: inputs/a.en}}
  tests:
    first: {a: {de: {path: inputs/t.de}, no: {path: inputs/t.no}}}
"""


def test_a_corpus_is_described_once_by_language(tmp_path):
    (tmp_path / "corpora").mkdir()
    (tmp_path / "corpora" / "mine.yaml").write_text(FILES)
    given = "  back: {from: mine, source: no, target: de, vocabulary: {words: {max_size: 9}}}\n"
    tags = "tie_embeddings: all"
    text = TEXT.replace("systems:\n", f"{given}systems:\n").replace(tags, "tie_embeddings: none")
    corpus = read(tmp_path, text).corpus("back")
    text_a, test = corpus.files.train["a"], corpus.files.tests["first"]["a"]
    assert (text_a.license_and_citation, text_a.source.path) == ("mine", "inputs/a.no")
    assert (text_a.target.path, test.source.path) == ("inputs/a.de", "inputs/t.no")
    for given, message in (
        ("source: en, target: de", r"mine\.yaml:6: .*first\.a: has no text in 'en' \(.*\.source\)"),
        ("target: de", r"back\.from: needs a language, such as en, under source"),
        ("source: no, target: null", r"back\.from: needs a language, such as en, under target"),
        ("source: no, target: [de]", r"back\.from: needs a language, such as en, under target"),
        ("source: no, target: no", r"back\.target: 'no' is the source language, too"),
    ):
        with pytest.raises(UserError, match=message):
            read(tmp_path, text.replace("source: no, target: de", given))
    own = "files: {train: {a: {no: {path: inputs/b.no}, target: {size: 7}}}, tests: {first: null}}"
    whole = read(tmp_path, text.replace("from: mine", f"from: mine, {own}")).corpus("back").files
    assert whole.train["a"].source == replace(text_a.source, path="inputs/b.no")
    assert whole.train["a"].target == replace(text_a.target, size=7) and not whole.tests
    (tmp_path / "corpora" / "mine.yaml").write_text(FILES.replace("path: inputs/a.de", "pth: x"))
    with pytest.raises(UserError, match=r"mine\.yaml:4: files\.train\.a\.de\.pth: unknown key"):
        read(tmp_path, text)


def test_a_described_corpus_has_the_licenses_that_its_texts_name(tmp_path):
    (tmp_path / "corpora").mkdir()
    other = '  other: {license: none, bibtex: "@misc{other,}"}'
    mine = FILES.split("\n")[0].partition("{")[2].removesuffix("}")
    files = FILES.split("\n", 1)[1].replace("a: {", "a: {license_and_citation: mine, ")
    files = files.replace(
        "first: {a: {license_and_citation: mine", "first: {a: {license_and_citation: other"
    )
    written = f"license_and_citation:\n  {mine}\n{other}\n{files}"
    (tmp_path / "corpora" / "mine.yaml").write_text(written)
    given = "  b: {from: mine, source: no, target: de, vocabulary: {words: {max_size: 9}}}\n"
    text = TEXT.replace("systems:\n", f"{given}systems:\n")
    text = text.replace("tie_embeddings: all", "tie_embeddings: none")
    assert [*read(tmp_path, text).corpus("b").license_and_citation] == ["mine", "other"]
    text = text.replace("from: mine,", "from: mine, files: {tests: {first: null}},")
    assert [*read(tmp_path, text).corpus("b").license_and_citation] == ["mine"]


@pytest.mark.parametrize(
    "path", [ROOT / "params.yaml", *sorted((ROOT / "recipes").glob("*.yaml"))], ids=lambda p: p.stem
)
def test_resolved_settings_are_read_back(tmp_path, path):
    settings = load_settings(path, ROOT)
    write_json(tmp_path / RESOLVED, {**settings.resolved(), "inputs": {}, "code": {}})
    again = load_resolved_settings(tmp_path)
    # the shares of sets that are given are not kept, since nothing uses them
    for name, corpus in settings.corpora.items():
        assert again.corpora[name] == replace(corpus, split=corpus.effective_split())
    assert replace(again, corpora=settings.corpora) == settings


def test_what_is_not_set_is_left_out(tmp_path):
    """So that a new optional setting makes nothing out of date."""
    settings: Settings = read(tmp_path)
    train = settings.resolved()["runs"]["base"]["own"]["train"]
    assert "patience" not in train and train["max_updates"] == 10
