"""External systems in the report: scored and tested like a trained system, and marked.

The translations of an external system come from files that params.yaml names.
"""

import shutil
from math import isnan
from statistics import fmean

import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

import result_trees as trees
from bleuprint.config.experiment import load_settings
from bleuprint.config.paths import COSTS_CSV, Run
from bleuprint.decoding.copied_translations import copy_translations
from bleuprint.report import frame, report
from bleuprint.report.compare import compare
from bleuprint.report.notes import all_notes, file_warning_notes
from bleuprint.report.overview import everything, one_screen
from bleuprint.report.page.cautions import cautions
from bleuprint.report.page.report_data import ReportData
from bleuprint.report.records import check_settings, collect
from bleuprint.report.score_frame import score_frame
from bleuprint.report.score_tables import wide_bleu_table
from bleuprint.report.table import Table
from bleuprint.runs.results import Results
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.json_files import read_json
from bleuprint.runtime.regular_files import sha256_of
from bleuprint.scoring.score import score_run
from result_rows import rows_of, score_of
from result_trees import Experiment

CORPUS = "news-en-de"
CORPORA = {CORPUS: ("first", "second"), "talks-en-fr": ("only",)}


def external_entry(about, translations):
    """Return the entry of an external system on news-en-de, as in params.yaml.

    Args:
        about: What the system is, in the words of the user.
        translations: The file with the translations of each test set, and its SHA-256.
    """
    return {"about": about, "translations": translations, "corpora": {CORPUS: {}}}


def copy_and_score(settings, root):
    """Copy and score the translations of each external system, as translate and score do."""
    for name in settings.external:
        run = Run(name, CORPUS, settings.seeds[0])
        copy_translations(settings, run, root)
        score_run(settings, *run, root)


def add_external_copies(root, seeds):
    """Add the external systems as-tiny and as-small, and score them.

    Their files are copies of the translations by tiny and small with the first seed: as-tiny has
    both test sets of news-en-de, as-small only the first one.

    Args:
        root: The folder of the experiment.
        seeds: The seeds of the experiment.

    Returns:
        The settings with the external systems.
    """
    entries = {}
    for system, tests in (("tiny", ["first", "second"]), ("small", ["first"])):
        translations = {}
        for test in tests:
            folder = root / Run(system, CORPUS, seeds[0]).results_folder
            original = folder / f"hypotheses/test.{test}.de"
            path = f"inputs/external/{system}.{test}.de"
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(original, root / path)
            translations[test] = {"path": path, "sha256": sha256_of(original)}
        entries[f"as-{system}"] = external_entry(f"{system} & <b>others</b>", translations)
    settings = trees.settings_in(root, corpora=CORPORA, seeds=seeds, external=entries)
    copy_and_score(settings, root)
    return settings


@pytest.fixture(scope="module")
def experiment_with_external(tmp_path_factory):
    """Return an experiment with as-tiny and as-small, after the report stage, with one seed.

    Tests must not change its files.
    """
    root = tmp_path_factory.mktemp("external")
    trees.write_all(root, trees.settings_in(root, corpora=CORPORA))
    settings = add_external_copies(root, (1,))
    report.write_reports(settings, root)
    return Experiment(root, settings)


@pytest.fixture
def external_copy(experiment_with_external, tmp_path):
    """Return a copy of the experiment with external systems, which a test may change."""
    root = shutil.copytree(experiment_with_external.root, tmp_path / "copy")
    return Experiment(root, experiment_with_external.settings)


@pytest.fixture(scope="module")
def records(experiment_with_external):
    """Return the saved records of the experiment with external systems."""
    return frame.load(experiment_with_external.root)


def metrics_of(records, system):
    """Return the metrics of a system with its first seed on the test set `first`."""
    metrics = records.metrics
    rows = metrics[(metrics.system == system) & (metrics.test == "first")]
    return rows[rows.seed == rows.seed.iloc[0]].set_index(["metric", "group"])


@pytest.mark.parametrize("system", ["tiny", "small"])
def test_an_external_system_gets_the_scores_of_a_system_with_the_same_translations(records, system):
    """The external system `as-tiny` is a file with the translations of the trained system `tiny`.

    In the same way, `as-small` is a copy of `small`.
    """
    trained = metrics_of(records, system)
    external = metrics_of(records, f"as-{system}")

    columns = ["value", "ci_low", "ci_high", "signature", "units"]
    assert trained.loc[external.index, columns].equals(external[columns])


@pytest.mark.parametrize("system", ["tiny", "small"])
def test_an_external_system_has_all_scores_that_need_no_model(records, system):
    """Loss and perplexity need a model's probabilities; a file of translations has none.

    The external system `as-tiny` is a file with the translations of the trained system `tiny`.
    """
    trained = metrics_of(records, system)
    external = metrics_of(records, f"as-{system}")

    missing_metrics = set(trained.index) - set(external.index)
    assert missing_metrics == {("loss", ""), ("perplexity", ""), ("word_perplexity", "")}


def test_an_external_system_with_the_translations_of_the_baseline_does_not_differ(records):
    """The external system `as-tiny` is a file with the translations of the baseline `tiny`."""
    bleu = metrics_of(records, "as-tiny").loc[("bleu", "")]

    assert bleu.baseline == "tiny"
    assert bleu.difference == 0
    assert bleu.p == 1


def test_an_external_system_is_tested_as_a_system_with_the_same_translations(records):
    """The external system `as-small` is a file with the translations of the system `small`."""
    external = metrics_of(records, "as-small")
    trained = metrics_of(records, "small")

    columns = ["p", "p_randomization", "standard_error", "difference"]
    assert external[columns].equals(trained.loc[external.index, columns])


@pytest.fixture
def records_without_external(experiment_with_external, tmp_path):
    """Return the records that are collected if params.yaml names no external system."""
    settings = trees.settings_in(tmp_path, corpora=CORPORA)
    return collect(settings, experiment_with_external.root)


def test_external_systems_do_not_change_the_runs_of_trained_systems(
    records, records_without_external
):
    """Adding an external system to an experiment adds rows and changes none of the others.

    The column `about` says what an external system is; it is empty for trained systems.
    """
    trained = records.runs[records.runs.about.isna()].reset_index(drop=True)

    assert records_without_external.runs.about.isna().all()
    assert_frame_equal(
        trained.drop(columns="about"),
        records_without_external.runs.drop(columns="about"),
        check_like=True,
        check_dtype=False,
    )


def test_external_systems_change_only_the_corrected_p_values_of_trained_systems(
    records, records_without_external
):
    """Holm's correction depends on the number of systems."""
    trained = records.metrics[records.metrics.system.isin(["tiny", "small"])]

    assert_frame_equal(
        trained.drop(columns="p_holm").reset_index(drop=True),
        records_without_external.metrics.drop(columns="p_holm"),
        check_dtype=False,
    )


def test_the_training_of_an_external_system_is_unknown(records):
    """The column `about` says what an external system is; it is empty for trained systems.

    `as-tiny` has translations of two test sets, `as-small` of the first one.
    """
    external = records.runs[records.runs.about.notna()]

    runs = list(zip(external.system, external.test, strict=True))
    assert runs == [("as-tiny", "first"), ("as-tiny", "second"), ("as-small", "first")]
    facts_of_training = ["parameters", "training_flops", "training_sha256", "train_seconds"]
    assert external[facts_of_training].isna().all(axis=None)


def test_results_json_says_what_an_external_system_is(experiment_with_external):
    """The text `small & <b>others</b>` is what params.yaml says about `as-small`."""
    runs = read_json(experiment_with_external.root / frame.RESULTS)["runs"]

    (run,) = [run for run in runs if run["system"] == "as-small"]
    assert run["about"] == "small & <b>others</b>"
    assert run["parameters"] is None
    assert run["training_sha256"] is None


def test_costs_csv_contains_no_external_system(experiment_with_external):
    costs = pd.read_csv(experiment_with_external.root / COSTS_CSV)

    assert set(costs.system) == {"tiny", "small"}


def test_the_row_of_an_external_system_has_dashes_for_what_is_unknown(records):
    """`as-small` is a file with translations of `small`, for one of two test sets.

    How much computing they took is unknown, and so is BLEU on the second test set.
    """
    cells = rows_of(wide_bleu_table(score_frame(records)))["as-small (external)"]

    bleu_of_small = metrics_of(records, "small").value["bleu", ""]
    assert cells["news-en-de, first BLEU"].startswith(f"{bleu_of_small:.1f} [")
    assert cells["news-en-de, first FLOPs"] == "–"
    assert cells["news-en-de, second BLEU"] == "–"


@pytest.mark.parametrize(
    ("name", "escaped_about"),
    [
        pytest.param(
            "table.md",
            "as-tiny (external), news-en-de: tiny & &lt;b>others&lt;/b>.\n",
            id="Markdown",
        ),
        pytest.param("table.tex", "tiny \\& $<$b$>$others$<$/b$>$. as-small", id="LaTeX"),
        pytest.param("index.html", "tiny &amp; &lt;b&gt;others", id="HTML"),
    ],
)
def test_reports_mark_external_systems_and_say_what_they_are(
    experiment_with_external, name, escaped_about
):
    """What `as-tiny` is, `tiny & <b>others</b>`, was typed by a user into params.yaml.

    Each format must show these characters and not read them as its own commands.
    """
    text = (experiment_with_external.root / "reports" / name).read_text("utf-8")

    assert "as-small (external)" in text
    assert escaped_about in text
    if name == "index.html":
        assert "<b>others" not in text


def test_table_csv_says_what_an_external_system_is(experiment_with_external):
    table = pd.read_csv(experiment_with_external.root / "reports/table.csv")

    assert set(table[table.system == "as-small"].about) == {"small & <b>others</b>"}


# The beginning of a warning on files that do not look like plain sentences.
SUBWORD_WARNING = f"Look at in-subwords (external), {CORPUS}, first: 100% of the lines look like"


@pytest.fixture(scope="module")
def experiment_with_subwords(experiment_with_external, tmp_path_factory):
    """Return an experiment whose external system in-subwords has a file of BPE subwords."""
    root = shutil.copytree(
        experiment_with_external.root, tmp_path_factory.mktemp("subwords") / "copy"
    )
    original = root / f"results/tiny/{CORPUS}/1/hypotheses/test.first.de"
    subwords = root / "inputs/external/subwords.de"
    lines = []
    for line in original.read_text("utf-8").splitlines():
        lines.append(f"{line[:4]}@@ {line[4:]}")
    trees.write_lines(subwords, lines)
    file = {"path": "inputs/external/subwords.de", "sha256": sha256_of(subwords)}
    entries = {"in-subwords": external_entry("others", {"first": file})}
    settings = trees.settings_in(root, corpora=CORPORA, external=entries)
    copy_and_score(settings, root)
    report.write_reports(settings, root)
    return Experiment(root, settings)


def test_a_note_warns_of_a_file_of_subwords(experiment_with_subwords):
    (note,) = file_warning_notes(frame.load(experiment_with_subwords.root))

    assert note.startswith(f"{SUBWORD_WARNING} BPE subwords (@@), such as line 1. ")


@pytest.mark.parametrize("name", ["table.md", "table.tex", "index.html"])
def test_reports_warn_of_a_file_of_subwords(experiment_with_subwords, name):
    text = (experiment_with_subwords.root / "reports" / name).read_text("utf-8")

    warning = SUBWORD_WARNING.replace("%", "\\%") if name == "table.tex" else SUBWORD_WARNING
    assert warning in text


@pytest.mark.parametrize("view", [one_screen, everything])
def test_the_terminal_warns_of_a_file_of_subwords(experiment_with_subwords, view, monkeypatch):
    """A file whose words are split, such as `sub@@ words`, gets a wrong BLEU.

    On a terminal of 1,000 columns, the warning is not broken into lines.
    """
    monkeypatch.setenv("COLUMNS", "1000")

    parts = view(frame.load(experiment_with_subwords.root))

    warnings = [part for part in parts if str(part).startswith(SUBWORD_WARNING)]
    assert warnings


def caution_titles(experiment):
    """Return the titles of the cautions on the page of an experiment."""
    records = frame.load(experiment.root)
    data = ReportData(experiment.settings, records, experiment.root)
    return [caution.title for caution in cautions(data)]


def test_the_page_warns_of_a_file_of_subwords_only(
    experiment_with_subwords, experiment_with_external
):
    """A file whose words are split, such as `sub@@ words`, gets a wrong BLEU; others get none."""
    title = "Translations that may not be sentences, or are copies"

    assert title in caution_titles(experiment_with_subwords)
    assert title not in caution_titles(experiment_with_external)


def test_translations_of_an_external_system_that_changed_after_scoring_are_refused(external_copy):
    """One more space is enough: the report would show scores of another text."""
    root, settings = external_copy
    translations = root / "results/as-small" / CORPUS / "1/hypotheses/test.first.de"
    translations.write_text(translations.read_text("utf-8").replace(" ", "  ", 1), "utf-8")

    with pytest.raises(UserError, match=r"test\.first\.de has changed since .*as-small"):
        Results.open(settings, Run("as-small", CORPUS, 1), root).check()


def test_results_of_another_file_of_translations_are_refused(external_copy):
    """Params.yaml names each file of translations with its SHA-256.

    After a change of the SHA-256 there, results.json is that of the file before.
    """
    root, settings = external_copy
    check_settings(frame.load(root), settings, frame.RESULTS)  # No error before the change.
    params = root / "params.yaml"
    old_sha256 = settings.external_systems_on(CORPUS)["as-small"].translations["first"].sha256
    params.write_text(params.read_text().replace(old_sha256, "a" * 64))

    with pytest.raises(UserError, match="computed with another params"):
        check_settings(frame.load(root), load_settings(params), frame.RESULTS)


@pytest.fixture(scope="module")
def records_of_two_seeds(experiment, tmp_path_factory):
    """Return the records of as-tiny and as-small, and of trained systems with the seeds 3 and 1."""
    root = shutil.copytree(experiment.root, tmp_path_factory.mktemp("seeds") / "copy")
    settings = add_external_copies(root, (3, 1))
    return collect(settings, root)


def bleu_by_seed(records, system):
    """Return the rows of BLEU of a system on the test set `first`, one for each seed."""
    metrics = records.metrics
    return metrics[
        (metrics.system == system)
        & (metrics.test == "first")
        & (metrics.metric == "bleu")
        & (metrics.group == "")
    ]


def test_an_external_system_has_the_same_score_with_each_seed(records_of_two_seeds):
    rows = bleu_by_seed(records_of_two_seeds, "as-small")

    assert list(rows.seed) == [3, 1]
    assert rows.value.nunique() == 1


def test_an_external_system_differs_from_the_mean_of_the_baseline_over_seeds(
    records_of_two_seeds,
):
    """The baseline was trained with two seeds; `as-small` is one file of translations."""
    bleu_of_file = bleu_by_seed(records_of_two_seeds, "as-small").value.iloc[0]
    mean_of_baseline = fmean(bleu_by_seed(records_of_two_seeds, "tiny").value)

    score = score_of(records_of_two_seeds, "as-small", test="first")

    assert score.difference == pytest.approx(bleu_of_file - mean_of_baseline, abs=1e-5)


def test_an_external_system_has_an_interval_and_no_deviation(records_of_two_seeds):
    """Trained systems with several seeds show a standard deviation in place of the interval.

    An external system is one file whatever the seed, so its deviation would always be 0.
    """
    score = score_of(records_of_two_seeds, "as-small", test="first")

    assert isnan(score.difference_deviation)
    assert isnan(score.deviation)
    assert score.ci_low == bleu_by_seed(records_of_two_seeds, "as-small").ci_low.iloc[0]


def test_an_external_system_is_not_significant_if_it_equals_one_seed_of_the_baseline(
    records_of_two_seeds,
):
    """As-tiny has the translations of tiny's first seed, and the largest p-value counts."""
    assert score_of(records_of_two_seeds, "as-tiny", test="first").p == 1


def test_a_note_explains_the_test_of_an_external_system_with_several_seeds(records_of_two_seeds):
    text = " ".join(all_notes(records_of_two_seeds))

    assert "largest of the paired bootstraps against each seed" in text


@pytest.fixture
def small_and_its_copy(experiment_with_external, monkeypatch):
    """Return the tables in which `compare` compares small with an external copy of it."""
    monkeypatch.chdir(experiment_with_external.root)
    settings, scores = [part for part in compare("small", "as-small") if isinstance(part, Table)]
    return {"settings": settings, "scores": scores}


def test_compare_finds_no_difference_in_scores_from_an_external_copy(small_and_its_copy):
    """The external system of `compare small as-small` is a file with translations of `small`."""
    scores = small_and_its_copy["scores"]

    assert len(scores.rows) >= 4
    for row in scores.rows:
        difference, p_value = scores.texts(row)[5:7]
        assert difference == "+0.0"
        assert p_value == "1.000 n.s."


def test_compare_lists_the_settings_of_an_external_system(small_and_its_copy):
    """`small` is trained; the external system has a description and a file with its SHA-256."""
    settings_table = small_and_its_copy["settings"]

    names = {settings_table.texts(row)[0] for row in settings_table.rows}
    assert names == {
        f"{CORPUS}.about",
        f"{CORPUS}.translations.first.path",
        f"{CORPUS}.translations.first.sha256",
    }


def test_compare_shows_sentences_of_external_systems(experiment_with_external, monkeypatch):
    """Both external systems have translations of the corpus, which `Most improved` lists."""
    monkeypatch.chdir(experiment_with_external.root)

    parts = compare("as-tiny", "as-small", CORPUS)

    text = "\n".join(str(part) for part in parts)
    assert "Most improved" in text


def test_compare_refuses_a_corpus_that_an_external_system_does_not_translate(
    experiment_with_external, monkeypatch
):
    """The experiment has two corpora; the files of `as-tiny` translate news-en-de only."""
    monkeypatch.chdir(experiment_with_external.root)

    with pytest.raises(UserError, match="as-tiny: the report contains no results on talks-en-fr"):
        list(compare("tiny", "as-tiny", "talks-en-fr"))
