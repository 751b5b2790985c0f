"""Rules of own code in worker processes and shards: the same bytes as in one process."""

import json

import pytest

from bleuprint.corpus.clean import Cleaning
from bleuprint.corpus.filter import Filtering
from bleuprint.rules import find_check, find_edit
from bleuprint.text.parallel import TextFolder
from corpora import TOKENIZE, file_contents, write_set
from own_code import write_module
from steps import run_sharded

SEVENTHS = """\
from dataclasses import dataclass

from bleuprint.rules.rule import Check


@dataclass(frozen=True)
class NoSevenths(Check):
    apart: int

    def keeps(self, candidate):
        return int(candidate.pair.source.split()[0]) % 7 != self.apart
"""
DASHES = """\
from dataclasses import dataclass

from bleuprint.rules.rule import Edit


@dataclass(frozen=True)
class Dashes(Edit):
    by: str

    def edit(self, sentence, language):
        return sentence.replace("—", self.by)
"""
# 9,000 pairs are nine blocks, enough for several worker processes.
PAIRS = [(f"{number} — a", f"— {number}") for number in range(9000)]
SHARDS_AND_WORKERS = [(1, 2), (1, 5), (2, 2)]


@pytest.fixture(autouse=True)
def project(tmp_path, monkeypatch):
    """Work in a project with an own check and an own edit."""
    monkeypatch.chdir(tmp_path)
    write_module(tmp_path, "sevenths", SEVENTHS)
    write_module(tmp_path, "dashes", DASHES)
    write_set(TextFolder(tmp_path / "before", "de", "en"), "train", PAIRS)
    return tmp_path


def filtered(project, shards, workers):
    """Run the stage filter with the own check; return its text and statistics as bytes."""
    rule = find_check("own.sevenths")(apart=0)
    output = project / f"filtered-{shards}-{workers}"
    before = TextFolder(project / "before", "de", "en")
    step = Filtering(
        "m", before, output / "text", output / "stats.json", (rule,), tokenize=TOKENIZE
    )
    run_sharded(step, project / f"shards-{shards}-{workers}", shards, workers)
    return file_contents(output)


def cleaned(project, shards, workers):
    """Run the stage clean with the own edit; return its text and statistics as bytes."""
    rule = find_edit("own.dashes")(by="~")
    output = project / f"cleaned-{shards}-{workers}"
    before = TextFolder(project / "before", "de", "en")
    step = Cleaning("m", before, output / "text", output / "stats.json", (rule,))
    run_sharded(step, project / f"cleaning-{shards}-{workers}", shards, workers)
    return file_contents(output)


@pytest.mark.parametrize(("shards", "workers"), SHARDS_AND_WORKERS)
def test_an_own_check_keeps_the_same_pairs_in_several_processes(project, shards, workers):
    """1,286 of the 9,000 numbers are multiples of 7."""
    expected = filtered(project, shards=1, workers=1)

    contents = filtered(project, shards, workers)

    assert contents == expected
    (statistics,) = [text for path, text in contents.items() if path.endswith("stats.json")]
    train = json.loads(statistics)["sets"]["train"]
    assert train["pairs_in"] - train["pairs_out"] == 1286


@pytest.mark.parametrize(("shards", "workers"), SHARDS_AND_WORKERS)
def test_an_own_edit_writes_the_same_text_in_several_processes(project, shards, workers):
    expected = cleaned(project, shards=1, workers=1)

    contents = cleaned(project, shards, workers)

    assert contents == expected
    (source,) = [text for path, text in contents.items() if path.endswith("train.de")]
    assert source.decode().splitlines()[8999] == "8999 ~ a"
