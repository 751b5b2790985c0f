"""The overview: on a screen of 40 lines of 80 characters whatever the experiment, and true."""

import re

import pytest

from bleuprint.config.published import Published
from bleuprint.report.overview import LINES, everything, one_screen
from bleuprint.report.published.literature import with_published_numbers
from bleuprint.report.table import NONE, Table
from bleuprint.report.terminal import show
from result_rows import against, frame, record


@pytest.fixture(autouse=True)
def eighty_columns(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")


def experiment(systems, corpora, tests, seeds=1, name="system-{}"):
    """Each system 0.5 BLEU above the one before it; every test set in a corpus of its own task."""
    return frame(
        *(
            record(
                *(name.format(system), f"corpus{corpus}-en-de", f"test{test}"),
                20 + system / 2 + corpus,
                seed=seed,
                **(against(name.format(0), 0.01) if system else {}),
                references_sha256=f"{corpus}{test}",
            )
            for system in range(systems)
            for corpus in range(corpora)
            for seed in range(seeds)
            for test in range(tests)
        )
    )


def printed(parts, capsys):
    show(parts)
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(
    ("systems", "corpora", "tests", "seeds"),
    [(1, 1, 1, 1), (3, 2, 3, 1), (24, 1, 1, 3), (2, 12, 2, 1), (8, 8, 1, 1)],
)
@pytest.mark.parametrize("name", ["s{}", "a system with a long name, of fifty characters, {}"])
def test_any_experiment_fits_on_a_screen(systems, corpora, tests, seeds, name, capsys):
    records = experiment(systems, corpora, tests, seeds, name)
    after = ["the same bytes as the committed results " * 3, "next: the page"]
    lines = printed(one_screen(records, closing_lines=after), capsys)
    assert len(lines) <= LINES and max(map(len, lines)) <= 80
    text = " ".join(" ".join(lines).split())
    assert text.endswith("next: the page")
    if systems > 1:
        assert f"Δ is the difference from {name.format(0)}. † marks p below 0.05" in text
    assert max(map(len, printed(everything(records), capsys))) <= 80


def test_what_does_not_fit_is_counted_and_the_best_and_the_baseline_are_shown(capsys):
    records = experiment(50, 1, 1)
    lines = printed(one_screen(records), capsys)
    names = [line.removeprefix("Baseline: ").split()[0] for line in lines if line]
    shown = [name for name in names if name.startswith("system-")]
    assert len(lines) == LINES and len(shown) < 50
    assert shown == ["system-0", *(f"system-{n}" for n in range(49, 50 - len(shown), -1))]
    assert f"{50 - len(shown)} more rows: bleuprint table --all" in lines
    (grid,) = (part for part in everything(records)[:1] if isinstance(part, Table))
    assert len(grid.rows) == 51  # with the name of the test set


def test_of_many_test_sets_the_baseline_and_the_best_come_first(capsys):
    lines = printed(one_screen(experiment(3, 12, 1)), capsys)
    rows = [line.removeprefix("Baseline: ") for line in lines[3:] if " [" in line]
    names = [row.split()[0] for row in rows]
    both, rest = divmod(len(names), 2)
    assert both < 12 and names == ["system-0", "system-2"] * both + ["system-0"] * rest
    # the numbers are those of the records: of corpus1 20 + 1 + 2 / 2
    place = lines.index("corpus1-en-de, test0")
    assert lines[place + 2].split()[:2] == ["system-2", "22.0"]
    assert f"{36 - len(names)} more rows: bleuprint table --all" in lines


def test_published_numbers_stand_beside_ours_of_the_same_variant(capsys):
    where = "corpus0-en-de", "test0"
    numbers = [
        Published("Paper", "Doe 2020", *where, 38.0, "intl"),
        Published("Other", "Roe 2021", *where, 37.5, "sacrebleu"),
    ]
    lines = printed(one_screen(with_published_numbers(experiment(2, 1, 2), numbers)), capsys)
    place = lines.index("corpus0-en-de, test0")
    rows = [
        line.replace(" (", "(").removeprefix("Baseline: ").split()
        for line in lines[place + 1 : place + 5]
    ]
    # intl is 0.5 below BLEU
    assert [row[:3] for row in rows] == [
        ["Paper(published)", "38.0", NONE],
        ["Other(published)", NONE, "37.5"],
        ["system-0", "19.5", "20.0"],
        ["system-1", "20.0", "20.5"],
    ]


def test_one_seed_and_several_say_what_was_tested(capsys):
    one = " ".join(printed(one_screen(experiment(2, 1, 1)), capsys))
    assert (
        "(paired bootstrap, one tail)" in one
        and "With one seed, the test compares these training runs" in one
    )
    three = " ".join(printed(one_screen(experiment(2, 1, 1, 3)), capsys))
    assert "over 3 seeds" in three and "one seed" not in three and "bootstrap" not in three
    alone = " ".join(printed(one_screen(experiment(1, 1, 1)), capsys))
    assert "†" not in alone and NONE not in alone and re.search(r"20\.0 \[19", alone)


def test_costs_come_where_there_is_room():
    def has_costs(records):
        return any(
            isinstance(part, Table) and part.columns[1].label == "Corpus"
            for part in one_screen(records)
        )

    assert has_costs(experiment(2, 2, 1)) and not has_costs(experiment(22, 1, 1))
