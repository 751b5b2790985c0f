"""Power of test sets and seeds, by hand and as `bleuprint table --power` prints it."""

import os
import re
import sys
from pathlib import Path

import pandas as pd
import pytest

import processes
import result_trees as trees
from bleuprint.config.paths import Cell
from bleuprint.report.frame import RESULTS, save
from bleuprint.report.grid import Grid
from bleuprint.report.power_table import parts, power, summary
from bleuprint.report.records import collect
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import read_json
from bleuprint.scoring.significance import paired_tests
from bleuprint.text.parallel import read_lines
from result_rows import against, frame, record, rows_of

Z = 1.959964 + 0.841621


def against_base(
    system: str, test: str, bleu: float, error: float, **changes: float
) -> dict[str, object]:
    return record(
        system,
        "news-en-de",
        test,
        bleu,
        **{**against("base", 0.2), "standard_error": error},
        **changes,
    )


ONE_SEED = frame(
    record("base", "news-en-de", "first", 30.0),
    record("base", "news-en-de", "second", 30.0, lines=100),
    against_base("good", "first", 31.0, 0.5),
    against_base("good", "second", 30.0, 2.0, lines=100),
    against_base("bad", "first", 28.0, 0.4),
)


def test_one_seed_by_hand() -> None:
    table = power(ONE_SEED)
    assert list(table.system) == ["good", "good", "bad"] and set(table.baseline) == {"base"}
    assert list(table.difference) == [1.0, 0.0, -2.0]
    assert list(table.detectable) == pytest.approx([Z * 0.5, Z * 2.0, Z * 0.4], abs=1e-5)
    # 1000 * (1.4007925 / 1)^2 = 1962.2; no number shows that nothing is something; 313.96
    assert list(table.lines_needed) == [1963, float("inf"), 314]
    assert list(power(ONE_SEED, 0.5).lines_needed) == [7849, 12559, 5024]
    assert "seeds" not in table


def test_seeds_by_hand() -> None:
    records = frame(
        *(record("base", "news-en-de", "first", 30.0 + seed, seed=seed) for seed in (1, 2, 3)),
        *(
            against_base("good", "first", 30.0 + seed + more, 0.3 * seed, seed=seed)
            for seed, more in ((1, 0.5), (2, 1.0), (3, 1.5))
        ),
    )
    (row,) = power(records).itertuples()
    assert (row.difference, row.seeds) == (1.0, 3)
    assert row.standard_error == pytest.approx(0.6)
    assert row.deviation == pytest.approx(0.5)
    # statsmodels: effects 3.264044 of three seeds; 2 takes 4.22 of them
    assert row.detectable_by_seeds == pytest.approx(0.5 * 3.264044, rel=1e-5)
    assert row.seeds_needed == 5
    assert summary(records) == (
        "To be found significant in 80% of such experiments, a difference from the baseline has to "
        "be 1.7 BLEU on 1,000 sentences and 1.6 over 3 seeds. Smaller ones take more sentences or "
        "seeds: bleuprint table --power says how many."
    )
    grid, *notes = parts(records)
    assert isinstance(grid, Grid) and rows_of(grid)["good"]["by seeds Seeds needed"] == "5"
    assert "paired t-test over 3 seeds" in str(notes[-1])


def test_one_sentence_tells_of_all_test_sets() -> None:
    assert (
        "has to be 1.1 to 1.4 BLEU on 1,000 sentences (news-en-de, first); 5.6 BLEU on 100 "
        "sentences (news-en-de, second). Smaller"
    ) in summary(ONE_SEED)
    alike = ONE_SEED[ONE_SEED.test == "second"]
    twice = pd.concat([alike, alike.assign(test="third")], ignore_index=True)
    assert "has to be 5.6 BLEU on 100 sentences. Smaller" in summary(twice)


def test_what_has_no_power() -> None:
    alone = frame(record("base", "news-en-de", "first", 30.0))
    with pytest.raises(UserError, match="there is one system"):
        list(parts(alone))
    with pytest.raises(UserError, match="earlier version, has no standard errors; run: dvc repro"):
        list(parts(ONE_SEED.assign(standard_error=None)))
    assert list(summary(alone)) == []


def test_identical_translations_show_no_power() -> None:
    records = frame(
        *(record("base", "news-en-de", "first", 30.0, seed=seed) for seed in (1, 2)),
        *(against_base("same", "first", 30.0, 0.0, seed=seed) for seed in (1, 2)),
    )
    grid, *notes = parts(records)
    assert isinstance(grid, Grid)
    cells = rows_of(grid)["same"]
    unknown = ("Detectable", "Lines needed"), ("Detectable", "Seeds needed")
    for group, heads in zip(("by lines", "by seeds"), unknown, strict=True):
        assert [cells[f"{group} {head}"] for head in heads] == ["–", "–"]
    assert any("unknown where the standard error" in str(note) for note in notes)
    assert list(summary(records)) == []
    assert not any("unknown" in str(note) for note in parts(ONE_SEED))
    both = pd.concat([ONE_SEED, frame(against_base("same", "second", 30.0, 0.0))])
    assert list(summary(both)) == list(summary(ONE_SEED))


def printed(root: Path, *arguments: str, status: int = 0) -> str:
    command = [sys.executable, "-m", "bleuprint.cli.main", "table", "--power", *arguments]
    done = processes.run_text(command, root, {**os.environ, "COLUMNS": "200"})
    assert done.returncode == status, done.stderr
    return done.stderr if status else done.stdout


@pytest.mark.usefixtures("all_samples")
def test_the_command(tmp_path: Path) -> None:
    corpora = {"news-en-de": ("first",)}
    settings = trees.settings_in(tmp_path, ("tiny", "small", "large"), corpora)
    trees.write_all(tmp_path, settings)
    (tmp_path / RESULTS).parent.mkdir(exist_ok=True)
    save(collect(settings, tmp_path), tmp_path / RESULTS)
    lines = {
        system: list(
            read_lines(
                tmp_path / Cell(system, "news-en-de", 1).results / "hypotheses/test.first.de"
            )
        )
        for system in settings.systems
    }
    references = list(read_lines(tmp_path / "data/split/news-en-de/test.first.de"))

    def shown(output: str) -> dict[str, list[str]]:
        rows = (re.split(r" {2,}", line) for line in output.split("\n"))
        return {row[0]: row[3:] for row in rows if row[1:3] == ["news-en-de", "first"]}

    default = shown(printed(tmp_path))
    assert list(default) == ["small", "large"]
    error = paired_tests(lines, references, "de")["small"]["bleu"].standard_error
    assert default["small"][2:5] == [f"{error:.2f}", f"{Z * error:.2f}", "40"]
    output = printed(tmp_path, "0.5")
    needed = 40 * (Z * error / 0.5) ** 2
    assert float(shown(output)["small"][-1].replace(",", "")) == pytest.approx(needed, abs=1.01)
    assert "Needed: for a difference of 0.5." in output
    for number in ("0", "1e300", "abc"):
        message = f"'{number}' is not a number above 0, 100 at most"
        assert message in printed(tmp_path, number, status=2)


def test_scores_of_an_earlier_version_are_compared_as_far_as_they_go(tmp_path: Path) -> None:
    settings = trees.settings_in(tmp_path, corpora={"news-en-de": ("first",)})
    trees.write_all(tmp_path, settings)
    path = tmp_path / Cell("tiny", "news-en-de", 1).results / "scores.json"
    scores = read_json(path)
    del scores["first"]["chrfpp"]
    trees.write_json(path, scores)
    done = processes.run_text(
        [sys.executable, "-m", "bleuprint.cli.main", "compare", "tiny", "small"], tmp_path
    )
    assert done.returncode == 0, done.stderr
    labels = re.findall(r"^news-en-de +first +(\S+)", done.stdout, re.M)
    assert labels[:3] == ["BLEU", "chrF2", "TER"] and "chrF2++" not in labels
