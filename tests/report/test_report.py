"""The report stage, from the results of runs to the files in reports/."""

import dataclasses
import os
import shutil
import subprocess
import sys

import pandas
import pytest

import result_trees as trees
from bleuprint.config.paths import Run
from bleuprint.report import notes, report
from bleuprint.report.frame import RESULTS, load
from bleuprint.report.overview import everything, one_screen
from bleuprint.report.terminal import show
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.json_files import read_json, write_json
from bleuprint.runtime.regular_files import sha256_of
from bleuprint.training.history import EarlyEnd
from pages import Page
from result_trees import Experiment


@pytest.fixture(scope="module")
def experiment(tmp_path_factory):
    """Return an experiment with one seed, so that each score in a table is that of a run."""
    root = tmp_path_factory.mktemp("experiment")
    settings = trees.settings_in(root)
    trees.write_all(root, settings)
    return Experiment(root, settings)


def report_files(root):
    """Return the content of each file that the report stage writes, by the name of the file."""
    contents = {}
    for path in (root / "reports").iterdir():
        if path.name != "resolved.json":
            contents[path.name] = path.read_bytes()
    return contents


def report_text(root, name):
    """Return the text of a file in reports/."""
    return (root / "reports" / name).read_text("utf-8")


def on_one_line(text):
    """Return a text without its line breaks and repeated spaces."""
    return " ".join(text.split())


# What the report says of a run that stopped before train.max_updates.
EARLY_END_NOTE = (
    "small on news-en-de, seed 1, ended at update 30 of 700: bleu has not improved in 3 "
    "validations (best 0.003 at update 15); warmup of 4,000 updates was not over. Raise "
    "train.patience or train.validate_interval"
)


@pytest.fixture(scope="module")
def experiment_with_early_end(tmp_path_factory):
    """Return the folder of an experiment in which patience ended a run after 30 of 700 updates."""
    root = tmp_path_factory.mktemp("early_end")
    settings = trees.settings_in(root, ("tiny", "small"), {"news-en-de": ("first",)})
    trees.write_all(root, settings)
    training_file = root / "results/small/news-en-de/1/training.json"
    early_end = EarlyEnd(30, 700, "bleu", 3, 0.003, 15, warmup_updates=4000)
    training = read_json(training_file)
    write_json(training_file, {**training, "early_end": dataclasses.asdict(early_end)})
    report.write_reports(settings, root)
    return root


def test_table_md_notes_that_a_run_ended_early(experiment_with_early_end):
    assert f"- {EARLY_END_NOTE}." in report_text(experiment_with_early_end, "table.md")


def test_the_page_warns_that_a_run_ended_early(experiment_with_early_end):
    page = on_one_line(report_text(experiment_with_early_end, "index.html"))

    assert "Training runs that may have ended too early" in page
    assert EARLY_END_NOTE in page


@pytest.mark.parametrize("view", [one_screen, everything])
def test_the_terminal_notes_that_a_run_ended_early(
    experiment_with_early_end, view, capsys, monkeypatch
):
    """Patience ended the run after 30 of 700 updates, before warmup was over.

    A user of `bleuprint table`, or of `table --all`, must see that its scores are not comparable.
    """
    monkeypatch.chdir(experiment_with_early_end)

    show(view(load(experiment_with_early_end)))

    printed = on_one_line(capsys.readouterr().out)
    assert f"{EARLY_END_NOTE}." in printed


def test_the_report_stage_writes_nine_files(reported_experiment):
    """DVC expects these files, and fails if one is missing."""
    assert set(report_files(reported_experiment.root)) == {
        "index.html",
        "results.json",
        "metrics.json",
        "table.md",
        "table.csv",
        "costs.csv",
        "table.tex",
        "training.csv",
        "validation.csv",
    }


def test_table_md_contains_each_score_with_interval_and_signature(reported_experiment):
    """The expected scores are read from results.json."""
    root = reported_experiment.root
    text = report_text(root, "table.md")

    for row in load(root).to_frame().itertuples():
        is_over_all_lines = not row.group
        if row.metric in ("bleu", "chrf2", "chrf2pp", "ter") and is_over_all_lines:
            assert f"{row.value:.1f} [{row.ci_low:.1f}, {row.ci_high:.1f}]" in text
            assert f"`{row.signature}`" in text
        elif row.metric == "length_ratio":
            assert f"{row.value:.3f}" in text


def test_table_md_identifies_the_references_of_each_test_set(reported_experiment):
    """Scores of two papers can be compared if the SHA-256 of the references is the same."""
    root = reported_experiment.root
    text = report_text(root, "table.md")

    for run in load(root).runs.itertuples():
        references = root / "data/split" / run.corpus / f"test.{run.test}.{run.target}"
        first_digits = sha256_of(references)[:12]
        assert first_digits in text


@pytest.mark.parametrize(
    "title", ["news-en-de, first", "talks-en-fr, only", "Word recall by training frequency"]
)
def test_table_md_has_a_titled_table_for_each_test_set_and_breakdown(reported_experiment, title):
    assert f"## {title}\n\n| System " in report_text(reported_experiment.root, "table.md")


@pytest.mark.parametrize("corpus", ["news-en-de", "talks-en-fr"])
def test_table_md_counts_the_pairs_that_each_data_stage_drops(reported_experiment, corpus):
    text = on_one_line(report_text(reported_experiment.root, "table.md"))

    assert f"| {corpus} | clean | train | clean_rule 1 | clean_edit 7 | 9,999 | 9,998 |" in text


def test_table_md_names_no_device(reported_experiment):
    assert "Test CPU" not in report_text(reported_experiment.root, "table.md")


def test_table_tex_has_two_tables_a_caption_and_the_packages_to_load(reported_experiment):
    """Users include table.tex in a paper. The experiment is named trial_run."""
    text = report_text(reported_experiment.root, "table.tex")

    assert text.startswith("% Needs \\usepackage{booktabs,graphicx}.\n")
    assert "\\caption{Results of trial\\_run." in text
    assert text.count("\\begin{tabular}") == 2
    assert text.count("\\end{tabular}") == 2


def test_counted_operations_are_in_the_tables(reported_experiment):
    """A training counts its floating-point operations, which are the same on every machine.

    For tiny it counted 4.2 * 10^12, which is the last column of its row.
    """
    table_md = report_text(reported_experiment.root, "table.md")
    baseline_row = next(
        line for line in table_md.splitlines() if line.startswith("| Baseline: tiny")
    )
    *_, last_cell = [cell.strip() for cell in baseline_row.strip("|").split("|")]

    assert last_cell == "4.2e12"
    assert "MFU, model FLOPs utilization" in table_md
    assert "& 4.2e12 &" in report_text(reported_experiment.root, "table.tex")


def test_measured_costs_are_in_costs_csv_and_on_the_page(reported_experiment):
    """Training took 3,725 s on one device with 3e12 sustained operations per second.

    It needed 1,500,000,000 bytes of memory.
    """
    root = reported_experiment.root
    costs = pandas.read_csv(root / "reports" / "costs.csv")

    operations = 3725 * 1 * 3e12  # 1.1 * 10^16
    assert costs.train_seconds[0] == 3725.0
    assert costs.training_flops_by_time[0] == operations
    page = report_text(root, "index.html")
    assert "1.1e16" in page
    assert "1.5 GB" in page


@pytest.fixture
def reported_copy(reported_experiment, tmp_path):
    """Return a copy of the experiment after the report stage, which a test may change."""
    root = shutil.copytree(reported_experiment.root, tmp_path / "reported")
    return Experiment(root, reported_experiment.settings)


@pytest.fixture
def written_page(reported_copy):
    """Return the page of a report, in the experiment `reported_copy`."""
    return reported_copy.root / "reports" / report.HTML_REPORT


def write_page_if_outdated(experiment):
    """Write the page if results.json is newer, as `bleuprint table` does.

    Results.json may come from DVC or Git, and the page is stored in neither of them.
    """
    root, settings = experiment
    report.write_html_report_if_outdated(settings, load(root), root)


def test_an_up_to_date_page_is_not_written_again(reported_copy, written_page):
    """Writing the page takes seconds, and `bleuprint table` checks it each time."""
    modified = written_page.stat().st_mtime_ns

    write_page_if_outdated(reported_copy)

    assert written_page.stat().st_mtime_ns == modified


def test_a_page_that_is_older_than_the_results_is_written_again(reported_copy, written_page):
    """The time stamp of results.json is set to ten seconds after that of the page."""
    modified = written_page.stat().st_mtime_ns
    ten_seconds_later = written_page.stat().st_mtime + 10
    os.utime(reported_copy.root / RESULTS, (ten_seconds_later, ten_seconds_later))

    write_page_if_outdated(reported_copy)

    assert written_page.stat().st_mtime_ns > modified


def test_a_missing_page_is_written(reported_copy, written_page):
    """A clone has results.json from Git, and the page is not in Git."""
    written_page.unlink()

    write_page_if_outdated(reported_copy)

    assert b"1.5 GB" in written_page.read_bytes()


def test_no_page_is_written_if_translations_are_of_other_results(reported_copy, written_page):
    """After a checkout, results.json may be of another commit than the translations in results/.

    A page of both would show sentences that do not belong to its scores.
    """
    written_page.unlink()
    translations = sorted(reported_copy.root.glob("results/tiny/*/1/hypotheses/*"))[0]
    content = translations.read_bytes()
    translations.write_bytes(content.replace(b"a", b"b"))

    write_page_if_outdated(reported_copy)

    assert not written_page.exists()

    translations.write_bytes(content)
    write_page_if_outdated(reported_copy)

    assert written_page.exists()


def test_no_page_is_written_without_the_texts(reported_copy, written_page):
    """A clone has results.json without the data; not even a temporary file may remain.

    Temporary files of the program have a name that begins with a dot.
    """
    written_page.unlink()
    shutil.rmtree(reported_copy.root / "data")

    write_page_if_outdated(reported_copy)

    assert not written_page.exists()
    temporary_files = list(written_page.parent.glob(".*"))
    assert temporary_files == []


def test_no_report_is_written_if_statistics_of_a_data_stage_are_missing(experiment_copy):
    """Either all files of a report are written, or none: an old table beside a new one misleads."""
    root, settings = experiment_copy
    (root / "data/filter_stats/talks-en-fr/dedup.json").unlink()

    with pytest.raises(UserError, match=r"talks-en-fr/dedup\.json: no such file"):
        report.write_reports(settings, root)

    assert report_files(root) == {}


def test_only_the_page_contains_sentences_of_a_corpus(reported_experiment):
    """Licenses may forbid to publish sentences, so the files that Git stores contain none.

    Each word of the corpora begins with WORD, which no other text contains.
    """
    root = reported_experiment.root
    translations = root / Run("tiny", "news-en-de", 1).results_folder / "hypotheses/test.first.de"
    samples_of_pairs = root / "data/filter_stats/news-en-de/clean.json"
    assert trees.WORD in translations.read_text("utf-8")
    assert trees.WORD in samples_of_pairs.read_text("utf-8")

    files_with_sentences = []
    for name, content in report_files(root).items():
        if trees.WORD.encode() in content:
            files_with_sentences.append(name)

    assert files_with_sentences == ["index.html"]


def test_the_report_stage_writes_the_same_bytes_each_time(reported_copy):
    """DVC and Git compare bytes: a time stamp in a file would look like a new result."""
    root, settings = reported_copy
    first_files = report_files(root)

    report.write_reports(settings, root)

    assert report_files(root) == first_files


def test_only_the_page_and_costs_csv_name_the_device(reported_experiment):
    """Other files must be the same on every machine, since Git compares them.

    The trainings ran on the device "Test CPU".
    """
    names = set()
    for name, content in report_files(reported_experiment.root).items():
        if b"Test CPU" in content:
            names.add(name)

    assert names == {"index.html", "costs.csv"}


def test_costs_csv_keeps_the_times_of_the_same_trainings_if_timings_are_gone(reported_copy):
    """Times are measured in timings/, which Git does not store, and copied to costs.csv.

    A colleague who clones the project and runs `report` must not lose the times in costs.csv.
    """
    root, settings = reported_copy
    first_files = report_files(root)
    shutil.rmtree(root / "timings")

    report.write_reports(settings, root)

    assert report_files(root)["costs.csv"] == first_files["costs.csv"]
    assert report_files(root)["table.csv"] == first_files["table.csv"]


def test_only_the_page_and_costs_csv_change_without_any_times(reported_copy):
    """Times are known from timings/ and costs.csv; here, both are deleted."""
    root, settings = reported_copy
    first_files = report_files(root)
    shutil.rmtree(root / "timings")
    (root / "reports/costs.csv").unlink()

    report.write_reports(settings, root)

    changed = set()
    for name, content in report_files(root).items():
        if content != first_files[name]:
            changed.add(name)
    assert changed == {"index.html", "costs.csv"}


# How far BLEU can rise: that of the references after tokenization and its reversal.
CEILING_NOTE = "BLEU ceiling of second on news-en-de: 58.9 (clean -0.2, tokenize -40.9). "


@pytest.fixture(scope="module")
def experiment_with_low_ceiling(experiment, tmp_path_factory):
    """Return the folder of an experiment whose preparation damages the references of `second`."""
    root = shutil.copytree(experiment.root, tmp_path_factory.mktemp("ceiling") / "copy")
    ceilings = {
        "first": {"clean": 100.0, "tokenize": 99.5},
        "second": {"clean": 99.8, "tokenize": 58.94},
    }
    write_json(root / "data/corpus_stats/news-en-de/bleu_ceiling.json", ceilings)
    report.write_reports(experiment.settings, root)
    return root


def test_table_md_notes_a_low_bleu_ceiling_at_the_bleu_scores(experiment_with_low_ceiling):
    """The BLEU ceiling: what a perfect system would get after preparation changed the references.

    It explains low BLEU scores, so the note stands below these, and only once in the file.
    """
    text = report_text(experiment_with_low_ceiling, "table.md")

    bleu_part, *_other_sections = text.split("## Other scores")
    assert bleu_part.count(f"- {CEILING_NOTE}") == 1
    assert text.count("BLEU ceiling") == 1


def test_table_tex_notes_a_low_bleu_ceiling(experiment_with_low_ceiling):
    assert CEILING_NOTE in report_text(experiment_with_low_ceiling, "table.tex")


def test_the_summary_of_the_page_notes_a_low_bleu_ceiling(experiment_with_low_ceiling):
    """On the page, the part of the note before the colon is a title, and has no colon."""
    page = Page(report_text(experiment_with_low_ceiling, "index.html"))

    summary = page.sections["summary"]
    title_and_text = CEILING_NOTE.replace(":", ".", 1)
    assert summary.count(title_and_text) == 1
    assert summary.count("BLEU ceiling") == 1


@pytest.mark.parametrize("view", [everything, one_screen])
def test_the_terminal_notes_a_low_bleu_ceiling(experiment_with_low_ceiling, view, monkeypatch):
    """Both views of `bleuprint table` show it once, and by its present name."""
    monkeypatch.chdir(experiment_with_low_ceiling)

    texts = [on_one_line(part) for part in view(load()) if isinstance(part, str)]

    notes_on_ceiling = [text for text in texts if text.startswith(CEILING_NOTE)]
    assert len(notes_on_ceiling) == 1
    name_in_version_1_0 = "Reachable"
    assert name_in_version_1_0 not in " ".join(notes.all_notes(load()))


def test_the_table_on_the_terminal_is_shown_without_loading_torch(saved_experiment):
    """Loading PyTorch takes two seconds, and only the page needs it, to describe the model.

    A new process shows the table, and ends with status 1 if PyTorch was imported. The page in its
    folder is newer than the results, so it is not written.
    """
    root = saved_experiment.root
    (root / "reports" / "index.html").touch()
    code = """
import sys
from pathlib import Path
from bleuprint.config.experiment import load_settings
from bleuprint.report import frame, overview, report
from bleuprint.report.terminal import show
records = frame.load(Path())
report.write_html_report_if_outdated(load_settings(), records)
show(overview.one_screen(records))
sys.exit('torch' in sys.modules)
"""

    process = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True)

    assert process.returncode == 0, process.stderr
    assert "tiny" in process.stdout
