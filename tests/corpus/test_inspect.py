from dataclasses import replace

import pytest

from bleuprint.config import experiment
from bleuprint.config.corpus_files import File, Text
from bleuprint.config.directions import Direction
from bleuprint.corpus.download.download import Sample
from bleuprint.corpus.download.fetch import Downloads
from bleuprint.corpus.inspect import inspect_corpus, inspection_lines
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
    return experiment.load_settings()


def inspected(settings, tmp_path, pairs, seed=1, name="own"):
    source = Downloads(None, tmp_path / "store", None)
    sample = Sample(pairs, seed)
    return inspect_corpus(name, settings, sample, source, tmp_path / "work" / "x", 1)


def test_each_rule_reports_what_it_did(corpus, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    inspection = inspected(corpus, tmp_path, 1000)
    counts = inspection.stages
    assert list(counts) == ["clean", "dedup", "filter", "split"]
    assert counts["clean"].changed == {"unicode": 1, "non_printing": 2}
    assert counts["clean"].dropped == {"empty_side": 1}
    assert counts["dedup"].dropped["duplicate_pair"] == 1
    assert counts["filter"].dropped == {"length": 1, "length_ratio": 0}
    lines = list(inspection_lines(inspection, 1))
    assert lines[0] == "clean: 10 pairs in, 9 out"
    shown = lines.index("  unicode: 1 changed, 10.00%")
    assert [line.split() for line in lines[shown + 1 : shown + 3]] == [
        ["-", "e\u0301in\\x00s", "one"],
        [">", "\u00e9in\\x00s", "one"],
    ]
    assert 30 < lines[shown + 1].index("one") < 40  # in the middle of the terminal
    assert "  length_ratio: 0 dropped, 0.00%" in lines
    # 7 pairs of 10 pass the filter; a twentieth of them, at least 1, goes to each held-out set
    assert lines[-1] == "pairs that remain: train 5, valid 1, test.held-out 1"
    assert max(map(len, lines)) <= 60
    assert len(list(inspection_lines(inspection, 3))) > len(lines)


def test_a_stage_that_drops_all_pairs_shows_what_drops_them(corpus, tmp_path):
    write_set(TextFolder(tmp_path / "inputs", "de", "no"), "a", [LONG, LONG])
    inspection = inspected(corpus, tmp_path, 1000)
    last = inspection.stages["filter"]
    assert (last.dropped["length"], last.pairs_out) == (1, 0)
    lines = list(inspection_lines(inspection, 1))
    assert "  length: 1 dropped, 100.00%" in lines and "ein sehr" in "".join(lines)


def test_shares_of_a_sample_have_intervals(corpus, tmp_path):
    """Wilson 1927: (p + z^2 / 2n -+ z (pq / n + z^2 / 4n^2)^0.5) / (1 + z^2 / n), for 1 of 4."""
    draws = [inspected(corpus, tmp_path, 4, seed) for seed in range(20)]
    assert all((draw.pairs, draw.stages["clean"].pairs_in) == (10, 4) for draw in draws)
    changed = [draw.stages["clean"].changed["unicode"] for draw in draws]
    seed = changed.index(1)
    assert 0 in changed and draws[seed] == inspected(corpus, tmp_path, 4, seed)
    head, *lines = inspection_lines(draws[seed], 1)
    assert head.startswith(f"4 of 10 pairs, drawn by seed {seed}; ")
    assert "  unicode: 1 changed, 25.00% [4.56%, 69.94%]" in lines


def test_nothing_is_left_behind(corpus, tmp_path):
    before = {path.name for path in tmp_path.iterdir()}
    inspected(corpus, tmp_path, 100)
    assert {path.name for path in tmp_path.iterdir()} == before | {"work"}
    assert not [path for path in (tmp_path / "work").rglob("*") if path.is_file()]


def many_pairs(start, count):
    words = ["eins", "zwei", "drei", "vier", "acht", "neun", "elf"]
    return [(f"{words[n % 7]} {n}", f"one {n}") for n in range(start, start + count)]


def test_sets_of_a_sample_are_estimates_but_for_those_that_are_given(tmp_path, monkeypatch):
    """By hand: of 200 pairs 100 are drawn, of which 5 are tests: twice as many of all pairs."""
    monkeypatch.chdir(tmp_path)
    inputs = TextFolder(tmp_path / "inputs", "de", "no")
    write_set(inputs, "a", many_pairs(0, 200))
    write_set(inputs, "v", many_pairs(1000, 6))
    text = "{license_and_citation: own, source: {path: inputs/v.de}, target: {path: inputs/v.no}}"
    assert PARAMS.count("valid: {}") == 1
    (tmp_path / "params.yaml").write_text(PARAMS.replace("valid: {}", f"valid: {{v: {text}}}"))
    inspection = inspected(experiment.load_settings(), tmp_path, 100)
    assert inspection.stages["filter"].pairs_out == 100
    assert inspection.sets == {"train": 190, "valid": 6, "test.held-out": 10}
    whole = inspected(experiment.load_settings(), tmp_path, 200)
    assert whole.sets == {"train": 190, "valid": 6, "test.held-out": 10}


def test_of_several_directions_one_is_to_be_named(corpus, tmp_path):
    own = corpus.corpora["own"]
    directions = {"de-no": Direction(), "no-de": Direction()}
    several = replace(own)
    object.__setattr__(several, "directions", directions)
    settings = replace_corpus(corpus, several)
    said = r"^corpora\.own has 2 directions: own/de-no, own/no-de; name one: bleuprint inspect "
    with pytest.raises(UserError, match=f"{said}own/de-no$"):
        inspected(settings, tmp_path, 10)


@pytest.mark.parametrize(
    ("train", "said"),
    [
        ({}, r"corpora\.own is zero-shot, so there is no training text to inspect"),
        (
            {"a": Text("own", source=File(path="inputs/a.de"))},
            r"corpora\.own: systems translate .* training texts, so there is no text to inspect",
        ),
    ],
)
def test_a_corpus_without_a_text_to_inspect_is_refused(corpus, tmp_path, train, said):
    own = replace(corpus.corpora["own"])
    object.__setattr__(own, "files", replace(own.files, train=train))
    with pytest.raises(UserError, match=f"^{said}$"):
        inspected(replace_corpus(corpus, own), tmp_path, 10)


def replace_corpus(settings, own):
    """The settings with another corpus, whose systems are not checked."""
    changed = replace(settings)
    object.__setattr__(changed, "corpora", {"own": own})
    return changed
