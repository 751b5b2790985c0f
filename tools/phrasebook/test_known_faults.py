"""Known faults: each line is followed through clean, dedup and filter."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from bleuprint.config.corpus import Corpus
from bleuprint.config.corpus_files import File
from bleuprint.config.experiment import load
from bleuprint.config.paths import given
from bleuprint.corpus.clean import Cleaning
from bleuprint.corpus.steps.sharded import run_step
from bleuprint.rules import CHECKS
from bleuprint.text.parallel import Pair, TextFolder
from corpora import write_set
from root import ROOT
from tools.phrasebook import Line, generate, known_faults, noisy_lines
from tools.phrasebook.known_faults import FaultReport, has_known_faults, trace_faults

CORPUS = load(ROOT / "params.yaml").corpora["phrasebook-en-de"]


def trace(root: Path, corpus: Corpus = CORPUS) -> FaultReport:
    raw = TextFolder(given("c", root), "en", "de")
    lines = known_faults.noisy_lines()
    write_set(raw, "train", [Pair(line.text[0], line.text[1]) for line in lines])
    tests = [("We ask.", "Wir fragen.", ""), *generate("test")]
    write_set(raw, "test.a", [Pair(*text[:2]) for text in tests])
    run_step(Cleaning.of("c", corpus, root), root / "shards", None, 1)
    return trace_faults("c", corpus, root)


def test_lines_are_counted_by_their_fault_and_by_what_the_rules_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = ("I sleep in 2019.", "Ich schlafe 2019.", "")
    lines = [
        Line(good, "", good),
        Line(good, "duplicate"),
        Line(("He sees.", "", ""), "empty_side", ("He sees.", "Er sieht.", "")),
        Line(("We ask.", "Wir fragen.", ""), "test_sentence"),
        Line(("You must.", "Du mÃ¼sstest.", ""), "mojibake", ("You must.", "Du müsstest.", "")),
        Line(("I see.", "Ich kÃ¼sse Ã.", ""), "mojibake", ("I see.", "Ich küsse.", "")),
        Line(("He is 7.", "Er ist acht.", ""), "", ("He is 7.", "Er ist acht.", "")),
        Line(("You run.", "Er schläft.", ""), "misaligned", ("You run.", "Du läufst.", "")),
    ]  # fmt: skip
    monkeypatch.setattr(known_faults, "noisy_lines", lambda: lines)
    # translations cannot be learned from eight lines
    checks = tuple(check for check in CORPUS.filter if not check.needs_translations)
    found = trace(tmp_path, replace(CORPUS, filter=checks))
    assert found.lines == {
        "": 2, "duplicate": 1, "empty_side": 1, "test_sentence": 1, "mojibake": 2, "misaligned": 1
    }  # fmt: skip
    assert found.dropped == {"": 1, "duplicate": 1, "empty_side": 1, "test_sentence": 1}
    assert found.restored == {"mojibake": 1}
    assert found.recall("mojibake") == 0.5
    assert found.recall("misaligned") == 0
    assert {rule: hits.faults for rule, hits in found.rules.items()} == {
        "duplicate_pair": {"duplicate": 1},
        "empty_side": {"empty_side": 1},
        "source_held_out": {"test_sentence": 1},
        "mojibake": {"mojibake": 2},
        "numbers": {"": 1},
    }
    assert found.rules["numbers"].precision == 0
    assert found.rules["mojibake"].precision == 1
    assert found.found_by("mojibake") == ["mojibake 2"]


def test_faults_are_known_of_the_whole_noisy_text_alone() -> None:
    (text,) = CORPUS.files.train.values()

    def has(**parts: object) -> bool:
        return has_known_faults(replace(CORPUS, files=replace(CORPUS.files, train=parts)))

    assert has(a=text)
    assert not has(a=text, b=text)
    assert not has(a=replace(text, pairs=100))
    dedup = replace(CORPUS.dedup, pairs=False, sources=False, targets=False)
    copies = replace(CORPUS.files, train={"a": replace(text, repeat=2)})
    assert not has_known_faults(replace(CORPUS, dedup=dedup, files=copies))
    assert not has(a=replace(text, source=File(url="phrasebook:train.en")))


def test_alignment_score_finds_misaligned_lines_and_drops_no_good_one(tmp_path: Path) -> None:
    check = CHECKS["alignment_score"](min=1.0)  # type: ignore[call-arg]
    quick = tuple(rule for rule in CORPUS.filter if rule.name() in ("numbers", "sentence_marks"))
    found = trace(tmp_path, replace(CORPUS, filter=(*quick, check)))
    assert found.recall("misaligned") >= 0.9
    assert found.rules["alignment_score"].faults["misaligned"] > 100
    assert found.rules["alignment_score"].wrong == 0


def test_the_default_rules_find_what_the_documentation_says(tmp_path: Path) -> None:
    found = trace(tmp_path)
    docs = (ROOT / "docs" / "preparation.md").read_text("utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (\d+) \|.* (\d+) % \|$", docs, re.MULTILINE)
    documented = {fault: (int(lines), int(share)) for fault, lines, share in rows}
    assert documented == {
        fault: (found.lines[fault], round(100 * found.recall(fault))) for fault in found.faults
    }
    assert len(noisy_lines()) == sum(found.lines.values())
    assert f"{found.dropped['']} of {found.lines['']:,} lines without a fault" in docs
