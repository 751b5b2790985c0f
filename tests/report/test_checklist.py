"""The checklists: each question is there, and its evidence is what records made by hand say."""

import re
from pathlib import Path

import pandas as pd
import pytest

import result_trees as trees
from bleuprint.config.experiment import Settings, load
from bleuprint.report.checklist import QUESTIONS, checklist
from bleuprint.report.checklist_facts import recorded_facts
from result_rows import TWO_SYSTEMS, frame

ROWS = [{**row, "training_sha256": row["system"] + row["corpus"]} for row in TWO_SYSTEMS]
MEASURED = {"versions": "Python 3.11.0, torch 2.0.0"}


def answers(settings: Settings, records: pd.DataFrame, root: Path) -> dict[str, tuple[str, str]]:
    """State and evidence, its lines joined, by the number of the question."""
    found = {}
    for paragraph in re.split("\n\n", "\n".join(checklist(settings, records, root))):
        if match := re.match(r"(\w+ ?\d) \[(.*?)\] [^\n]*\n?(.*)", paragraph, re.DOTALL):
            found[match[1]] = match[2], " ".join(match[3].split())
    return found


@pytest.fixture(scope="module", name="settings")
def _settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return trees.settings_in(tmp_path_factory.mktemp("settings"))


def test_every_question_once_with_facts_that_are_recorded(settings: Settings) -> None:
    records = frame(*ROWS).assign(**MEASURED)
    found = answers(settings, records, Path("nowhere"))
    sections = {"A": 2, "B": 6, "C": 4, "D": 5, "E": 1}
    places = {"Models ": 3, "Datasets ": 5, "Code ": 5, "Results ": 6}
    expected = [f"{s}{n + 1}" for s, count in {**sections, **places}.items() for n in range(count)]
    assert list(found) == list(QUESTIONS.number) == expected
    used = {name for names in QUESTIONS.facts for name in names.split()}
    assert used == set(recorded_facts(settings, records, Path("nowhere")))
    for number, (state, text) in found.items():
        assert ("OPEN: " in text) == (state != "recorded"), number
        assert text.startswith("OPEN: ") == (state == "open"), number
    # nobody but the authors knows
    for number in ("A1", "A2", "B3", "B4", "D1", "D2", "D3", "D4", "D5", "E1"):
        assert found[number][0] == "open"


def test_evidence_of_one_seed(settings: Settings, tmp_path: Path) -> None:
    trees.write_texts(tmp_path, settings)
    found = answers(settings, frame(*ROWS).assign(**MEASURED), tmp_path)

    def says(number: str, text: str) -> None:
        assert text in found[number][1], found[number]

    says("B2", "params.yaml: news-en-de, talks-en-fr: own: none")
    says("B5", "params.yaml: news-en-de: en to de params.yaml: talks-en-fr: en to fr")
    # trees.py: 10,000 pairs less one at each of seven stages
    says("B6", "data/ledgers/news-en-de/binarize.json: train 9,993 pairs, test.first 40 pairs")
    says("B6", "reports/results.json: news-en-de, first, news-en-de, second, talks-en-fr, only: ")
    says("B6", f"1,000 lines, SHA-256 of references {'4e' * 32}")
    assert found["B6"][0] == "recorded"
    says(
        "Datasets 3", "9,993 of 10,000 training pairs kept; dropped by download_rule 1, clean_rule"
    )
    says("C1", "tiny on news-en-de, tiny on talks-en-fr, small on news-en-de, small on talks-en-fr")
    says("C1", ": 2.57M")
    # 2 x (43,200 + 61) s on four devices; 3 x 3.28e18 + 5e17
    says("C1", "trainings 4, training_flops 1.0e19, hours 24.03, device_hours 96.14")
    says("C1", "reports/costs.csv: Fast Chip, 8 x 4 threads")
    says("C3", "params.yaml: seeds 1: scores are of a single run, in brackets the 95 % interval")
    says("C3", "tiny on talks-en-fr, only: BLEU 33.3 [32.3, 35.3]")
    says("C3", "small on talks-en-fr, only: BLEU 43.3 [42.3, 45.3]; +10.0‡ p=0.049 against tiny")
    says(
        "C4", "reports/costs.csv: Python 3.11.0, torch 2.0.0 constraints.txt: the version of every"
    )
    says("C4", "BLEU nrefs:1|tok:13a|version:2.6.0")
    says("C4", "clean.unicode.form NFC, dedup.pairs True")
    says("Datasets 4", "params.yaml: news-en-de, talks-en-fr: inputs/a, inputs/b")
    says("Code 2", "trained at commit abcdef0123456789")
    says("Results 2", "4 trainings; 6 evaluations")
    says("Results 5", "tiny on news-en-de, small on news-en-de: 12:00:00 (h:mm:ss)")
    says("Results 4", "see C3")


def test_what_is_not_here_is_open(settings: Settings, tmp_path: Path) -> None:
    records = frame(*ROWS, missing="small")
    records.loc[records.system == "tiny", "commit"] = "abc+"
    found = answers(settings, records, tmp_path)
    pull = "OPEN: the ledgers of news-en-de, talks-en-fr are not here; run: dvc pull"
    assert found["B6"][0] == "in part" and found["B6"][1].endswith(pull)
    assert found["Results 5"][0] == "in part"
    assert "small on news-en-de, small on talks-en-fr: –" in found["Results 5"][1]
    assert found["Results 5"][1].endswith("OPEN: reports/costs.csv lacks the time of a training")
    assert "OPEN: reports/costs.csv has no versions" in found["Code 1"][1]
    assert "OPEN: a training ran with changes that were not committed (+)" in found["Code 2"][1]


def test_several_seeds_and_a_license_of_many_lines(tmp_path: Path) -> None:
    text = r'license: "CC\x85BY\u2028 4.0\r\x1c,\nread it"'
    trees.settings_in(tmp_path, seeds=(3, 1))
    params = (tmp_path / "params.yaml").read_text("utf-8")
    (tmp_path / "params.yaml").write_text(params.replace("license: none", text), encoding="utf-8")
    settings = load(tmp_path / "params.yaml")
    rows = [{**row, "seed": seed, "bleu": row["bleu"] + seed} for seed in (3, 1) for row in ROWS]
    found = answers(settings, frame(*rows), tmp_path)
    assert "seeds 3, 1: scores are means ± standard deviations over them" in found["C3"][1]
    assert "tiny on talks-en-fr, only: BLEU 35.3 ± 1.4" in found["C3"][1]
    lines = list(checklist(settings, frame(*rows), tmp_path))
    assert "    params.yaml: news-en-de, talks-en-fr: own: CC BY 4.0 , read it" in lines
