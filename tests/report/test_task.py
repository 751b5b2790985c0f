"""Corpora with the same test sets are rows of one table, which compares their preparations.

A task is a test set, that is, sources and references. Two corpora that split the same text into
different tokens or subwords have the same task, so their scores can be compared.
"""

import shutil

import pandas as pd
import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.significance import PairedTest

import result_trees as trees
from bleuprint.config.paths import Run
from bleuprint.report import report
from bleuprint.report.compare import compare
from bleuprint.report.frame import RESULTS
from bleuprint.report.page.differences import describe_rows
from bleuprint.report.page.lines import lines_of_sets
from bleuprint.report.page.report_data import ReportData
from bleuprint.report.paired import holm_correction
from bleuprint.report.records import collect
from bleuprint.report.score_frame import bleu_rows, score_frame
from bleuprint.report.score_tables import wide_bleu_table
from bleuprint.report.score_texts import format_difference
from bleuprint.report.table import DASH, Table
from bleuprint.report.tasks import table_row_name, task_names
from bleuprint.text.parallel import read_lines
from recipes import SETTINGS
from result_rows import compared_with, record, records_from_rows, rows_of
from result_trees import Experiment

# The share of wrong words in the translations of each system and corpus. The second preparation is
# better for one system and worse for the other.
WRONG_WORDS = {
    ("tiny", "bpe-en-de"): 0.25,
    ("tiny", "words-en-de"): 0.15,
    ("small", "bpe-en-de"): 0.1,
    ("small", "words-en-de"): 0.2,
}


def write_runs(experiment, corpora):
    """Write and score the translations of both systems on some of the corpora."""
    for (system, corpus), errors in WRONG_WORDS.items():
        if corpus in corpora:
            trees.write_run(experiment.root, experiment.settings, Run(system, corpus, 1), errors)


@pytest.fixture(scope="module")
def experiment(tmp_path_factory):
    """Return the results of two systems on three corpora.

    The corpora bpe-en-de and words-en-de have the same test set, and talks-en-de has another one.
    """
    root = tmp_path_factory.mktemp("task")
    corpora = {"bpe-en-de": ("only",), "words-en-de": ("only",), "talks-en-de": ("only",)}
    settings = trees.settings_in(root, ("tiny", "small"), corpora)
    trees.write_texts(root, settings)
    split = root / "data" / "split"
    for file in ("test.only.en", "test.only.de"):
        shutil.copy(split / "bpe-en-de" / file, split / "words-en-de" / file)
    results = Experiment(root, settings)
    write_runs(results, ("bpe-en-de", "words-en-de"))
    for system in ("tiny", "small"):
        trees.write_run(root, settings, Run(system, "talks-en-de", 1), 0.2)
    return results


@pytest.fixture
def experiment_copy(experiment, tmp_path):
    """Return a copy of the experiment, which a test may change."""
    root = shutil.copytree(experiment.root, tmp_path / "copy")
    return Experiment(root, experiment.settings)


def read_translations(root, system, corpus):
    """Return a system's translations of the only test set of a corpus."""
    folder = root / Run(system, corpus, 1).results_folder
    return list(read_lines(folder / "hypotheses/test.only.de"))


def bleu_of(records, system, corpus):
    """Return the record of a system's BLEU on the only test set of a corpus."""
    metrics = records.metrics
    rows = metrics[
        (metrics.metric == "bleu")
        & (metrics.group == "")
        & (metrics.system == system)
        & (metrics.corpus == corpus)
    ]
    (row,) = rows.itertuples()
    return row


@pytest.mark.usefixtures("all_samples")
def test_all_rows_of_a_task_are_tested_against_its_first_row_as_sacrebleu_does(experiment):
    """Two corpora prepare the same text in two ways and have the same test set: they are a task.

    Two systems on each are four rows, and the first one, tiny on bpe-en-de, is the baseline. The
    expected p-values are those of sacreBLEU's paired bootstrap test.
    """
    root, settings = experiment
    outputs = []
    for system, corpus in WRONG_WORDS:
        outputs.append((f"{system}, {corpus}", read_translations(root, system, corpus)))
    references = list(read_lines(root / "data/split/bpe-en-de/test.only.de"))
    paired_test = PairedTest(outputs, {"BLEU": BLEU()}, [references], "bs", n_samples=1000)
    baseline, *others = paired_test()[1]["BLEU"]
    corrected_p_values = holm_correction([result.p_value for result in others])

    records = collect(settings, root)

    _baseline_row, *other_rows = WRONG_WORDS
    for (system, corpus), expected, p_holm in zip(
        other_rows, others, corrected_p_values, strict=True
    ):
        row = bleu_of(records, system, corpus)
        assert row.baseline == "tiny, bpe-en-de"
        assert row.difference == pytest.approx(expected.score - baseline.score, abs=1e-5)
        assert row.p == pytest.approx(expected.p_value, abs=1e-6)
        assert row.p_holm == pytest.approx(p_holm, abs=1e-6)
    assert pd.isna(bleu_of(records, "tiny", "bpe-en-de").difference)


def test_a_corpus_with_another_test_set_has_its_own_baseline(experiment):
    records = collect(experiment.settings, experiment.root)

    assert bleu_of(records, "small", "talks-en-de").baseline == "tiny"


@pytest.fixture(scope="module")
def scores(experiment):
    """Return the score frame of the experiment."""
    return score_frame(collect(experiment.settings, experiment.root))


def test_each_system_and_preparation_is_a_row_of_the_table(scores):
    """The corpora bpe-en-de and words-en-de are two preparations of one text, with one test set.

    The rows without a corpus are those of a third corpus, which has a test set of its own.
    """
    assert list(rows_of(wide_bleu_table(scores))) == [
        "Baseline: tiny, bpe-en-de",
        "tiny, words-en-de",
        "Baseline: tiny",
        "small, bpe-en-de",
        "small, words-en-de",
        "small",
    ]


def test_preparations_of_one_test_set_share_the_columns_of_the_table(scores):
    """The corpora bpe-en-de and words-en-de have one test set, and talks-en-de another one.

    Trainings of tiny took 4.2 * 10^12 operations, those of small 9.9 * 10^13.
    """
    rows = {}
    for name, cells in rows_of(wide_bleu_table(scores)).items():
        rows[name.removeprefix("Baseline: ")] = cells

    flops = {"tiny": "4.2e12", "small": "9.9e13"}
    for score in bleu_rows(scores):
        if score.corpus == "talks-en-de":
            columns = "talks-en-de, only"
        else:
            columns = "en-de (bpe-en-de, …), only"
        cells = rows[score.row_name]
        assert cells[f"{columns} BLEU"] == score.score_text
        assert cells[f"{columns} Δ BLEU"] == (score.difference_text or DASH)
        assert cells[f"{columns} FLOPs"] == flops[score.system]


def test_rows_of_another_task_have_no_score_in_the_columns_of_a_task(scores):
    rows = rows_of(wide_bleu_table(scores))

    for name in ("Baseline: tiny", "small"):  # of talks-en-de
        assert rows[name]["en-de (bpe-en-de, …), only BLEU"] == "–"


@pytest.fixture
def records_with_a_changed_reference(experiment_copy):
    """Return the records after one reference of words-en-de got a space at its end."""
    root, settings = experiment_copy
    references = root / "data/split/words-en-de/test.only.de"
    first_line, rest = references.read_text("utf-8").split("\n", maxsplit=1)
    references.write_text(f"{first_line} \n{rest}", encoding="utf-8")
    write_runs(experiment_copy, ["words-en-de"])
    return collect(settings, root)


def test_corpora_whose_references_differ_in_one_line_are_different_tasks(
    records_with_a_changed_reference,
):
    """A space at the end of one reference is enough: scores of both corpora are not comparable.

    Each corpus then has its own group of columns, and rows are named after the system alone.
    """
    table = wide_bleu_table(score_frame(records_with_a_changed_reference))

    groups = [column.group for column in table.columns[1:]]
    assert list(dict.fromkeys(groups)) == [
        "bpe-en-de, only",
        "words-en-de, only",
        "talks-en-de, only",
    ]
    assert list(rows_of(table)) == ["Baseline: tiny", "small"]


def test_each_task_has_its_own_baseline(records_with_a_changed_reference):
    assert set(records_with_a_changed_reference.metrics.baseline.dropna()) == {"tiny"}


@pytest.fixture(scope="module")
def reports(experiment, tmp_path_factory):
    """Return the texts of the written reports by the name of the file."""
    root = shutil.copytree(experiment.root, tmp_path_factory.mktemp("reports") / "copy")
    report.write_reports(experiment.settings, root)
    texts = {}
    for name in ("table.md", "table.tex", "index.html"):
        texts[name] = (root / "reports" / name).read_text("utf-8")
    return texts


@pytest.mark.parametrize("name", ["table.md", "table.tex", "index.html"])
def test_reports_contain_a_row_for_each_preparation_and_say_why(reports, name):
    assert "Baseline: tiny, bpe-en-de" in reports[name]
    assert "small, words-en-de" in reports[name]
    assert "bpe-en-de, words-en-de have the same test sets" in reports[name]


def test_the_page_shows_the_sentences_of_all_preparations_together(reports):
    assert "<h3>en-de (bpe-en-de, …), test set only" in reports["index.html"]
    assert "<b>small, words-en-de</b> " in reports["index.html"]


def test_table_md_depends_on_the_records_alone(experiment, reports):
    root, settings = experiment
    assert report.table_md(settings, collect(settings, root), root) == reports["table.md"]


def test_sentences_are_shown_with_the_translations_of_all_preparations(experiment):
    """The corpora bpe-en-de and words-en-de are two preparations of one text, with one test set."""
    root, settings = experiment
    data = ReportData(settings, collect(settings, root), root)

    sentences_of_both, _sentences_of_talks = lines_of_sets(data)

    expected = {
        "tiny, bpe-en-de": read_translations(root, "tiny", "bpe-en-de"),
        "tiny, words-en-de": read_translations(root, "tiny", "words-en-de"),
        "small, bpe-en-de": read_translations(root, "small", "bpe-en-de"),
        "small, words-en-de": read_translations(root, "small", "words-en-de"),
    }
    assert sentences_of_both.outputs == expected
    assert list(sentences_of_both.outputs) == list(expected)  # in this order


def last_table(parts):
    """Return the texts of each row of the table of scores, which `compare` yields last."""
    tables = [part for part in parts if isinstance(part, Table)]
    return [tables[-1].texts(row) for row in tables[-1].rows]


def shows_sentences(parts):
    """Return whether a comparison shows sentences, whose titles contain the number of the line."""
    return any("line " in part for part in parts if isinstance(part, str))


@pytest.mark.usefixtures("all_samples")
def test_compare_tests_two_preparations_of_one_test_set(experiment_copy, monkeypatch):
    """A row of the report is named `SYSTEM, CORPUS`; the user may omit the space."""
    root, settings = experiment_copy
    records = collect(settings, root)
    records.save(root / RESULTS)
    monkeypatch.chdir(root)

    parts = list(compare("tiny, bpe-en-de", "tiny,words-en-de", sentences=1))

    assert parts[0] == "tiny, bpe-en-de and tiny, words-en-de"
    (cells,) = [texts for texts in last_table(parts) if texts[2] == "BLEU"]
    in_report = bleu_of(records, "tiny", "words-en-de")
    difference, p_value = cells[5:7]
    assert difference == f"{in_report.difference:+.1f}"
    assert p_value.split()[0] == f"{in_report.p:.3f}"
    assert shows_sentences(parts)


def test_compare_does_not_test_systems_on_different_test_sets(experiment_copy, monkeypatch):
    """The corpora bpe-en-de and talks-en-de have different test sets.

    Their scores are shown without a p-value, and no sentence can be shown with both translations.
    """
    root, settings = experiment_copy
    collect(settings, root).save(root / RESULTS)
    monkeypatch.chdir(root)

    parts = list(compare("tiny, bpe-en-de", "small, talks-en-de"))

    p_values = {texts[6] for texts in last_table(parts)}
    assert p_values == {"–"}
    assert not shows_sentences(parts)


@pytest.fixture(scope="module")
def multi30k_descriptions():
    """Return what the page says of each row of a recipe that compares preparations."""
    settings = SETTINGS["ablations-multi30k"]
    return describe_rows(settings, dict.fromkeys(settings.corpora, "en-de"))


def test_the_first_row_is_described_by_the_size_of_its_model(multi30k_descriptions):
    assert multi30k_descriptions["small, bpe-4000"].startswith("1 + 1 layers")
    assert multi30k_descriptions["small, bpe-4000"] == multi30k_descriptions["small"]


@pytest.mark.parametrize(
    ("row_name", "description"),
    [
        pytest.param("small, bpe-2000", "bpe.num_merges 2000", id="other corpus"),
        pytest.param(
            "small-bpe-dropout, bpe-4000", "bpe_dropout 0.1, corpora bpe-4000", id="other system"
        ),
        pytest.param(
            "small-bpe-dropout, lower",
            "bpe_dropout 0.1, corpora bpe-4000; tokenize.lowercase true",
            id="other system and corpus",
        ),
    ],
)
def test_another_row_is_described_by_the_settings_that_differ(
    multi30k_descriptions, row_name, description
):
    assert multi30k_descriptions[row_name] == description


def test_a_preparation_without_subwords_is_described_by_its_vocabulary(multi30k_descriptions):
    assert multi30k_descriptions["small, words"].startswith("words.joint true, ")


@pytest.mark.parametrize(
    ("difference", "is_significant", "text"),
    [
        pytest.param(0.04, True, "+0.04", id="two decimals"),
        pytest.param(-0.0049, True, "-0.005", id="three decimals"),
        pytest.param(0.06, True, "+0.1", id="one decimal"),
        pytest.param(0.04, False, "+0.0", id="not significant"),
        pytest.param(-0.04, False, "+0.0", id="negative, not significant"),
        pytest.param(0.0, True, "+0.0", id="zero"),
        pytest.param(-12.34, True, "-12.3", id="large"),
    ],
)
def test_a_significant_difference_has_the_decimals_to_differ_from_zero(
    difference, is_significant, text
):
    assert format_difference(difference, is_significant) == text


@pytest.mark.parametrize(
    ("bleu", "p_value", "text"),
    [
        pytest.param(40.04, 0.001, "+0.04‡ p=0.001", id="better"),
        pytest.param(39.97, 0.001, "-0.03‡ p=0.001", id="worse"),
        pytest.param(40.04, 0.2, "+0.0 n.s. p=0.200", id="not significant"),
        pytest.param(40.0, 0.001, "+0.0 n.s. p=0.001", id="no difference"),
    ],
)
def test_a_difference_that_rounds_to_zero_is_shown_with_its_sign(bleu, p_value, text):
    """The baseline has 40.0 BLEU. ‡ marks a significant difference, and n.s. all others.

    Differences have one decimal. `+0.0‡` would not say which system is better, so a significant one
    gets a second decimal. A difference of exactly 0 is never marked.
    """
    records = records_from_rows(
        record("tiny", "news-en-de", "only", bleu=40.0),
        record("small", "news-en-de", "only", bleu=bleu, **compared_with("tiny", p=p_value)),
    )

    rows = rows_of(wide_bleu_table(score_frame(records)))

    assert rows["small"]["news-en-de, only Δ BLEU"] == text


def task_row(corpus, test, languages, references_sha256):
    """Return a row of the table of test sets that `task_names` reads.

    Args:
        corpus: The name of the corpus.
        test: The name of the test set.
        languages: The source and the target language, such as en-de.
        references_sha256: The fingerprint of the references.
    """
    source, target = languages.split("-")
    return {
        "corpus": corpus,
        "test": test,
        "source": source,
        "target": target,
        "sources_sha256": "50",
        "references_sha256": references_sha256,
    }


@pytest.fixture
def tasks():
    """Return the names of the tasks of four corpora, of which bpe and words share a test set."""
    test_sets = [
        task_row("own", "only", "en-de", "r1"),
        task_row("bpe", "news", "en-de", "r2"),
        task_row("words", "news", "en-de", "r2"),
        task_row("talks-en-fr", "talks", "en-fr", "r3"),
    ]
    return task_names(pd.DataFrame(test_sets))


def test_a_task_is_named_by_its_languages_and_its_first_corpus(tasks):
    assert tasks["bpe"] == "en-de (bpe, …)"
    assert tasks["words"] == "en-de (bpe, …)"


def test_a_task_of_one_corpus_is_named_by_the_corpus_with_its_languages(tasks):
    """The name talks-en-fr contains the languages already."""
    assert tasks["own"] == "own (en-de)"
    assert tasks["talks-en-fr"] == "talks-en-fr"


def test_a_row_names_the_corpus_only_if_its_task_has_several(tasks):
    assert table_row_name("small", "own", tasks) == "small"
    assert table_row_name("small", "words", tasks) == "small, words"


def test_a_task_with_several_language_pairs_is_named_without_languages():
    """Corpora with the same test sets are a task, named after the languages if there is one pair.

    The corpora `many` and `more` have test sets of two pairs, with the same references r1 and r2.
    """
    many_rows = [
        task_row("many", "en-de-news", "en-de", "r1"),
        task_row("many", "de-fr-news", "de-fr", "r2"),
    ]
    more_rows = [
        task_row("more", "en-de-news", "en-de", "r1"),
        task_row("more", "de-fr-news", "de-fr", "r2"),
    ]

    name_of_one = task_names(pd.DataFrame(many_rows))
    names_of_both = task_names(pd.DataFrame(many_rows + more_rows))

    assert name_of_one == {"many": "many"}
    assert names_of_both == {"many": "many, …", "more": "many, …"}
