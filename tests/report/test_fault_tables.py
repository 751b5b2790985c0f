"""Faults in the report: damaged outputs are seen, tested against the baseline, and shown."""

import random
import shutil
from pathlib import Path

import pytest

import result_trees as trees
from bleuprint.config.experiment import Settings
from bleuprint.config.paths import Cell
from bleuprint.report import fault_tables
from bleuprint.report.compare import compare
from bleuprint.report.frame import RESULTS, load, save
from bleuprint.report.grid import Grid
from bleuprint.report.page.context import ReportContext
from bleuprint.report.page.faults import faults as faults_section
from bleuprint.report.records import collect
from bleuprint.report.report import table_md
from bleuprint.runtime.files import read_json, write_json
from bleuprint.scoring.output_faults import paired_p
from bleuprint.scoring.score import score_cell
from bleuprint.tracking.sync import read_cell
from result_rows import fault, frame, record

CORPUS, TEST = "news-en-de", "first"
# Of 40 lines: the baseline loses three numbers, the damaged system these and nine more.
LOST = {"tiny": 3, "small": 12}


def damage(root: Path, settings: Settings, system: str, seed: int) -> None:
    """Sources with a number, references with the same, and outputs without some of them."""
    split = root / "data" / "split" / CORPUS
    for language in ("en", "de"):
        path = split / f"test.{TEST}.{language}"
        text = path.read_text("utf-8").split("\n")[:-1]
        if not text[0].startswith("7 "):
            trees.write_lines(path, [f"7 {line}" for line in text])
    trees.describe(root, settings, CORPUS)
    cell = Cell(system, CORPUS, seed)
    references = (split / f"test.{TEST}.de").read_text("utf-8").split("\n")[:-1]
    lost = random.Random(seed).sample(range(40), 12)[: LOST[system]]
    broken = [line[2:] if n in lost else line for n, line in enumerate(references)]
    trees.write_lines(root / cell.results / "hypotheses" / f"test.{TEST}.de", broken)
    trees.write_translation(root, settings, cell)
    trees.write_maps(root, settings, cell)
    score_cell(settings, *cell, root)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Settings]:
    root = tmp_path_factory.mktemp("faults")
    with pytest.MonkeyPatch.context() as patch:
        trees.few_samples(patch)
        settings = trees.settings_in(root, corpora={CORPUS: (TEST,)})
        trees.write_all(root, settings)
        for system in LOST:
            damage(root, settings, system, 1)
        save(collect(settings, root), root / RESULTS)
    return root, settings


def test_damaged_outputs_are_in_the_record(made: tuple[Path, Settings]) -> None:
    root, _ = made
    records = load(root).set_index("system")
    numbers = {s: {f["name"]: f for f in records.faults[s]}["numbers"] for s in LOST}
    assert {system: found["count"] for system, found in numbers.items()} == LOST
    assert numbers["tiny"]["p"] is None
    assert numbers["small"]["p"] == paired_p([[]], [range(9)]) == 0.003906
    assert 0 < numbers["small"]["low"] < 12 < numbers["small"]["high"] < 40
    # a committed report has no sentence
    assert trees.WORD not in (root / RESULTS).read_text("utf-8")


def test_damage_is_in_every_table(
    made: tuple[Path, Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    root, settings = made
    records = load(root)
    (finding,) = (f for f in fault_tables.findings(records) if "numbers" in f)
    assert finding == (
        "news-en-de, first: small has 12 lines with 'numbers', tiny 3, 4.0 times as many: p=0.004‡"
    )
    markdown = table_md(settings, records, root)
    assert finding in markdown and "## Faults that need no reference" in markdown
    assert finding in fault_tables.parts(records)
    section = faults_section(ReportContext(settings, records, root))
    assert section is not None and finding.replace("'", "&#39;") in section.body
    assert section.body.count("<b>output</b>") >= 6
    monkeypatch.chdir(root)
    shown = [part for part in compare("tiny", "small") if isinstance(part, Grid)]
    rows = [row.cells for row in shown[-1].rows]
    assert (CORPUS, TEST, "numbers", "3", "12", "p=0.004") in rows
    trained = read_cell(settings, Cell("small", CORPUS, 1))
    assert trained and f"test_faulty_lines/{CORPUS}/first" in trained.scores


def test_results_of_an_earlier_version_are_read(
    made: tuple[Path, Settings], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [{n: v for n, v in row.items() if n != "faults"} for row in read_json(made[0] / RESULTS)]
    write_json(tmp_path / RESULTS, rows)
    records = load(tmp_path)
    assert "of an earlier version, without 1 columns such as faults" in capsys.readouterr().err
    assert list(records.bleu) == list(load(made[0]).bleu)
    assert fault_tables.counts(records) is None and fault_tables.findings(records) == []
    assert list(fault_tables.parts(records)) == []


def test_scores_of_an_earlier_version_are_read(
    made: tuple[Path, Settings], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "copy"
    shutil.copytree(made[0], root)
    path = root / Cell("tiny", CORPUS, 1).results / "scores.json"
    scores = read_json(path)
    del scores[TEST]["faults"]
    write_json(path, scores)
    trees.few_samples(monkeypatch)
    assert fault_tables.counts(collect(made[1], root)) is None
    monkeypatch.chdir(root)
    assert not any("faults" in part for part in compare("tiny", "small") if isinstance(part, str))


def test_several_seeds_have_means_and_one_p(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trees.few_samples(monkeypatch)
    settings = trees.settings_in(tmp_path, corpora={CORPUS: (TEST,)}, seeds=(1, 2))
    trees.write_all(tmp_path, settings)
    for system in LOST:
        for seed in settings.seeds:
            damage(tmp_path, settings, system, seed)
    for system in LOST:  # once more: the text has changed since the first was scored
        for seed in settings.seeds:
            damage(tmp_path, settings, system, seed)
    records = collect(settings, tmp_path)
    table = fault_tables.counts(records)
    assert table is not None
    place = [column.label for column in table.columns].index("numbers")
    cells = {row.cells[0]: row.cells[place] for row in table.rows}
    assert cells["tiny"] == "3.0 ± 0.0" and cells["small"].startswith("12.0 ± 0.0")
    drawn = [random.Random(seed).sample(range(40), 12) for seed in (1, 2)]
    expected = paired_p([d[:3] for d in drawn], drawn)
    p = {f["name"]: f["p"] for f in records[records.system == "small"].faults.iloc[1]}
    assert p["numbers"] == expected < 0.05


def test_holms_correction_is_over_all_systems_and_faults() -> None:
    """Of five tests, 0.009 holds (times five), and 0.02 does not (times four)."""
    of = {
        "base": [fault("any fault", 3), fault("numbers", 0), fault("loop", 1)],
        "a": [fault("any fault", 9, p=0.009), fault("numbers", 9, p=0.02), fault("loop", 1, p=1)],
        "b": [fault("any fault", 3, p=0.3), fault("numbers", 2, p=0.5)],
    }
    rows = [
        record(system, "news-en-de", "t", 30.0, faults=faults, baseline=system != "base" and "base")
        for system, faults in of.items()
    ]
    rows[0]["baseline"] = None
    table = fault_tables.counts(frame(*rows))
    assert table is not None
    assert [row.cells[3:] for row in table.rows] == [
        ("0", "0", "0"),
        ("3 [2, 6]", "0 [0, 0]", "1 [0, 2]"),
        ("9 [4, 18]‡", "9 [4, 18]†", "1 [0, 2]"),
        ("3 [2, 6]", "2 [1, 4]", "–"),
    ]
