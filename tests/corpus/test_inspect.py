import json

import pytest

from bleuprint.config import experiment
from bleuprint.corpus.download.fetch import Source
from bleuprint.corpus.inspect import inspect_corpus, report, visible
from bleuprint.runtime.errors import UserError
from bleuprint.text.parallel import TextFolder
from corpora import PAIRS, write_set
from params import PARAMS

LONG = ("ein sehr " * 60 + "langer", "a very " * 60 + "long one")


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pairs = [*PAIRS, PAIRS[0], LONG, ("e\u0301in\x00s", "one"), ("\u200b", "lost")]
    write_set(TextFolder(tmp_path / "inputs", "de", "no"), "a", pairs)
    (tmp_path / "params.yaml").write_text(PARAMS)
    return experiment.load().corpus("own")


def inspected(corpus, tmp_path, pairs):
    source = Source(None, tmp_path / "store", None)
    return inspect_corpus("own", corpus, pairs, source, tmp_path / "work" / "x", 1)


def test_each_rule_says_what_it_did(corpus, tmp_path):
    counts = inspected(corpus, tmp_path, 1000)
    assert list(counts) == ["clean", "dedup", "filter"]
    assert counts["clean"].changed == {"unicode": 1, "non_printing": 2}
    assert counts["clean"].dropped == {"empty_side": 1}
    assert counts["dedup"].dropped["duplicate_pair"] == 1
    assert counts["filter"].dropped == {"length": 1, "ratio": 0}
    lines = list(report(counts, 1))
    assert lines[0] == "clean: 10 pairs in, 9 out"
    assert "  unicode: 1 changed (10.00%)" in lines
    shown = lines.index("  unicode: 1 changed (10.00%)")
    assert lines[shown + 1 : shown + 4] == [
        "         9  e\u0301in\\x00s",
        "          > \u00e9in\\x00s",
        "            one",
    ]
    assert "  ratio: 0 dropped (0.00%)" in lines
    assert len(list(report(counts, 3))) > len(lines)


def test_only_so_many_pairs_are_read(corpus, tmp_path):
    assert inspected(corpus, tmp_path, 4)["clean"].pairs_in == 4


def test_nothing_is_left_behind(corpus, tmp_path):
    before = {path.name for path in tmp_path.iterdir()}
    inspected(corpus, tmp_path, 100)
    assert {path.name for path in tmp_path.iterdir()} == before | {"work"}
    assert not [path for path in (tmp_path / "work").rglob("*") if path.is_file()]


def test_texts_that_are_not_parallel_are_refused(corpus, tmp_path):
    path = tmp_path / "inputs" / "a.no"
    path.write_bytes(path.read_bytes() + b"one more\n")
    with pytest.raises(UserError, match=r"inputs/a\.de has 10 lines and inputs/a\.no has 11"):
        inspected(corpus, tmp_path, 1000)
    assert json.loads(json.dumps(str(visible("a\tb\u2028")))) == "a\\tb\\u2028"
