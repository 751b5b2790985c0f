"""The overview of results: on a screen of 40 lines with 80 characters, whatever the experiment."""

import pytest

from bleuprint.config.published import Published
from bleuprint.report.overview import SCREEN_LINES, everything, one_screen
from bleuprint.report.published.literature import with_published_numbers
from bleuprint.report.table import DASH, Table
from bleuprint.report.terminal import show
from result_rows import compared_with, record, records_from_rows


@pytest.fixture(autouse=True)
def eighty_columns(monkeypatch):
    """Let the terminal have 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")


def experiment(systems=1, corpora=1, test_sets=1, seeds=1, name="system-{}"):
    """Return the records of an experiment in which each system is better than the one before.

    On corpus number c, system number s has 20 + c + s / 2 BLEU with each seed.

    Args:
        systems: The number of systems; the first one is the baseline.
        corpora: The number of corpora, named corpus0-en-de and so on. Each has its own test sets.
        test_sets: The number of test sets of each corpus, named test0 and so on.
        seeds: The number of seeds.
        name: The name of the systems, with {} for their number.
    """
    rows = []
    for system in range(systems):
        test = compared_with(name.format(0), p=0.01) if system > 0 else {}
        for corpus in range(corpora):
            for seed in range(seeds):
                for test_set in range(test_sets):
                    rows.append(
                        record(
                            name.format(system),
                            f"corpus{corpus}-en-de",
                            f"test{test_set}",
                            20 + corpus + system / 2,
                            seed=seed,
                            references_sha256=f"{corpus}{test_set}",
                            **test,
                        )
                    )
    return records_from_rows(*rows)


def printed_lines(parts, capsys):
    """Return the lines that a terminal shows of an overview."""
    show(parts)
    return capsys.readouterr().out.splitlines()


def printed_text(parts, capsys):
    """Return what a terminal shows of an overview, in one line."""
    return " ".join(" ".join(printed_lines(parts, capsys)).split())


@pytest.fixture(
    scope="module",
    params=[
        pytest.param({}, id="one result"),
        pytest.param({"systems": 3, "corpora": 2, "test_sets": 3}, id="six test sets"),
        pytest.param({"systems": 24, "seeds": 3}, id="24 systems"),
        pytest.param({"systems": 2, "corpora": 12, "test_sets": 2}, id="24 test sets"),
        pytest.param({"systems": 8, "corpora": 8}, id="8 systems and corpora"),
    ],
)
def sizes(request):
    """Return the arguments of `experiment` for experiments of different sizes."""
    return request.param


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("s{}", id="short names"),
        pytest.param("a system with a long name, of fifty characters, {}", id="long names"),
    ],
)
def any_records(request, sizes):
    """Return the records of experiments of different sizes with short and long names."""
    return experiment(**sizes, name=request.param)


def test_the_overview_of_any_experiment_fits_on_a_screen(any_records, capsys):
    """`bleuprint table` is read on a terminal of 40 lines with 80 characters, without scrolling.

    The last lines are messages of the command, one of them longer than a line.
    """
    long_message = "the same bytes as the committed results " * 3
    closing_lines = [long_message, "next: the page"]

    lines = printed_lines(one_screen(any_records, closing_lines=closing_lines), capsys)

    assert len(lines) <= SCREEN_LINES
    assert max(len(line) for line in lines) <= 80
    assert lines[-1].endswith("next: the page")


def test_the_overview_explains_differences_if_there_are_any(any_records, capsys):
    """With one system there is no difference, and a note on Δ and † would confuse."""
    systems = list(any_records.runs.system.unique())

    text = printed_text(one_screen(any_records), capsys)

    note = f"Δ is the difference from {systems[0]}. † marks p below 0.05"
    has_differences = len(systems) > 1
    assert (note in text) == has_differences


def test_the_whole_report_fits_the_width_of_a_terminal(any_records, capsys):
    lines = printed_lines(everything(any_records), capsys)

    assert max(len(line) for line in lines) <= 80


def test_of_many_systems_the_overview_shows_the_baseline_and_the_best(capsys):
    """The baseline is system-0; each system is better than the one before, so system-49 is best.

    A screen has too few lines for 50 systems. How many fit depends on the notes below them.
    """
    lines = printed_lines(one_screen(experiment(systems=50)), capsys)

    shown_systems = []
    for line in lines:
        first_word = line.removeprefix("Baseline: ").partition(" ")[0]
        if first_word.startswith("system-"):
            shown_systems.append(first_word)
    best_first = [f"system-{number}" for number in range(49, 0, -1)]
    assert len(lines) == SCREEN_LINES
    assert len(shown_systems) < 50
    assert shown_systems == ["system-0", *best_first[: len(shown_systems) - 1]]
    assert f"{50 - len(shown_systems)} more rows: bleuprint table --all" in lines


def test_the_whole_report_shows_all_systems():
    """`bleuprint table --all` is not limited to a screen."""
    first_part, *_ = everything(experiment(systems=50))

    assert isinstance(first_part, Table)
    title_row = 1  # the name of the test set
    assert len(first_part.rows) == title_row + 50


@pytest.fixture
def lines_of_12_test_sets(capsys):
    """Return the lines of the overview of three systems on 12 test sets, which do not all fit."""
    return printed_lines(one_screen(experiment(systems=3, corpora=12)), capsys)


def test_of_many_test_sets_the_overview_shows_the_baseline_and_the_best_of_each(
    lines_of_12_test_sets,
):
    """On each of 12 test sets there are three systems: system-0 is the baseline, system-2 the best.

    A screen has too few lines for 36 rows, and even for two rows of each test set. So the first
    test sets show both systems, and the last ones the baseline only.
    """
    names = []
    for line in lines_of_12_test_sets[3:]:  # after the heads of the columns
        has_interval = " [" in line
        if has_interval:
            names.append(line.removeprefix("Baseline: ").split()[0])

    with_best = names.count("system-2")
    with_baseline_only = names.count("system-0") - with_best
    assert with_best < 12
    assert names == ["system-0", "system-2"] * with_best + ["system-0"] * with_baseline_only
    assert f"{36 - len(names)} more rows: bleuprint table --all" in lines_of_12_test_sets


def test_the_overview_shows_each_score_below_its_test_set(lines_of_12_test_sets):
    """The helper `experiment` gives system s on corpus c 20 + c + s / 2 BLEU."""
    title = lines_of_12_test_sets.index("corpus1-en-de, test0")

    _baseline, best = lines_of_12_test_sets[title + 1 : title + 3]
    bleu_of_system_2_on_corpus_1 = 20 + 1 + 2 / 2
    assert best.split()[:2] == ["system-2", f"{bleu_of_system_2_on_corpus_1:.1f}"]


def test_published_numbers_stand_above_ours_in_the_column_of_their_bleu_variant(capsys):
    """One paper used the tokenizer intl, one sacreBLEU's default; the table has a column for each.

    Our systems have 20.0 and 20.5 BLEU, and 0.5 less with the tokenizer intl.
    """
    numbers = [
        Published("Paper", "Doe 2020", "corpus0-en-de", "test0", 38.0, "intl"),
        Published("Other", "Roe 2021", "corpus0-en-de", "test0", 37.5, "sacrebleu"),
    ]
    records = with_published_numbers(experiment(systems=2, test_sets=2), numbers)

    lines = printed_lines(one_screen(records), capsys)

    title = lines.index("corpus0-en-de, test0")
    name_intl_and_default = []
    for line in lines[title + 1 : title + 5]:
        name_without_space = line.replace(" (", "(").removeprefix("Baseline: ")
        name_intl_and_default.append(name_without_space.split()[:3])
    assert name_intl_and_default == [
        ["Paper(published)", "38.0", DASH],
        ["Other(published)", DASH, "37.5"],
        ["system-0", "19.5", "20.0"],
        ["system-1", "20.0", "20.5"],
    ]


def test_the_overview_of_one_seed_says_that_training_runs_were_compared(capsys):
    text = printed_text(one_screen(experiment(systems=2)), capsys)

    assert "(paired bootstrap, one tail)" in text
    assert "With one seed, the test compares these training runs" in text


def test_the_overview_of_several_seeds_says_that_seeds_were_compared(capsys):
    """Three seeds are compared by a t-test; one seed would be compared by the bootstrap."""
    text = printed_text(one_screen(experiment(systems=2, seeds=3)), capsys)

    assert "over 3 seeds" in text
    assert "one seed" not in text
    assert "bootstrap" not in text


def test_the_overview_of_an_only_system_explains_no_test(capsys):
    """One system has BLEU with an interval, and nothing that it could be compared with."""
    text = printed_text(one_screen(experiment(systems=1)), capsys)

    assert "20.0 [19" in text
    mark_of_significance = "†"
    assert mark_of_significance not in text
    assert DASH not in text


@pytest.mark.parametrize(
    ("sizes", "has_room"),
    [
        pytest.param({"systems": 2, "corpora": 2}, True, id="few results"),
        pytest.param({"systems": 22}, False, id="many results"),
    ],
)
def test_the_overview_shows_costs_if_there_is_room(sizes, has_room):
    """The overview is at most 40 lines; scores are more important than costs of training.

    The table of costs is the only one whose second column is the corpus.
    """
    parts = one_screen(experiment(**sizes))

    second_columns = [part.columns[1].label for part in parts if isinstance(part, Table)]
    shows_costs = "Corpus" in second_columns
    assert shows_costs == has_room
