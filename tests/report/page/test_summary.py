"""The summary: the scores drawn to scale, verdicts no stronger than their evidence, cautions."""

import re
from dataclasses import replace

import pytest

import result_rows
import result_trees as trees
from bleuprint.config.corpus_files import File
from bleuprint.corpus.misalignment import Misfit
from bleuprint.corpus.set_findings import FINDINGS_FILE, Overlap, SetFindings
from bleuprint.report.page.cautions import cautions
from bleuprint.report.page.findings import best_systems
from bleuprint.report.page.report_data import ReportData
from bleuprint.report.page.summary import summary_section
from bleuprint.report.score_frame import score_frame
from pages import page_of

# The sum of the references of all rows.
REFERENCES_SHA256 = "4e" * 32


def record(corpus, system, bleu, p_value=None, **changes):
    """Make the record of a system, tested against the system `base` if it has a p-value."""
    tested = {} if p_value is None else result_rows.compared_with("base", p=p_value)
    tested.update(changes)
    return result_rows.record(system, corpus, "first", bleu, **tested)


def findings(*rows, deviations=None):
    """Return what the summary says of the best system of each test set.

    Args:
        rows: The records.
        deviations: The standard deviation over seeds, by the sum of the references, if known.
    """
    scores = score_frame(result_rows.records_from_rows(*rows))
    texts = []
    for finding in best_systems(scores, deviations or {}):
        texts.append(f"{finding.title}. {finding.text}")
    return texts


def test_a_significant_difference_is_reported_for_its_test_set():
    """One training of each system shows nothing about seeds, and the finding must say so."""
    base = record("news-en-de", "base", bleu=20.0)
    big = record("news-en-de", "big", bleu=22.0, p_value=0.001)

    (text,) = findings(base, big)

    assert text == (
        "news-en-de: big is 2.0 BLEU better than base in these two trainings. Significant over the "
        "test lines (p=0.001); how much another seed would change it is not known."
    )


def test_a_difference_that_is_not_significant_is_called_uncertain():
    base = record("news-en-fr", "base", bleu=20.0)
    big = record("news-en-fr", "big", bleu=23.0, p_value=0.2)

    (text,) = findings(base, big)

    assert text == (
        "news-en-fr: big is best, but perhaps not better than base. 3.0 BLEU above the baseline in "
        "these two trainings: not significant (p=0.200): this test does not tell them apart."
    )


def test_a_baseline_that_no_system_beats_is_reported():
    """The difference is significant, but big is worse."""
    base = record("news-en-fr", "base", bleu=20.0)
    big = record("news-en-fr", "big", bleu=17.0, p_value=0.001)

    (text,) = findings(base, big)

    assert text.startswith("news-en-fr: no system is better than the baseline base. BLEU 20.0")


def test_each_test_set_has_a_finding():
    """On news-en-de the difference is significant, on news-en-fr it is not."""
    first, second = findings(
        record("news-en-de", "base", bleu=20.0),
        record("news-en-fr", "base", bleu=20.0),
        record("news-en-de", "big", bleu=22.0, p_value=0.001),
        record("news-en-fr", "big", bleu=23.0, p_value=0.2),
    )

    assert first.startswith("news-en-de: big is 2.0 BLEU better than base")
    assert second.startswith("news-en-fr: big is best, but perhaps not better than base.")


def test_the_finding_says_how_much_more_the_better_system_costs():
    """Training big took 2e10 floating-point operations, training base 1e10."""
    base = record("news-en-de", "base", bleu=20.0, training_flops=1e10)
    big = record("news-en-de", "big", bleu=22.0, p_value=0.001, training_flops=2e10)

    (text,) = findings(base, big)

    assert text.endswith(" Training big costs 2 times the FLOPs of base.")


def test_a_metric_that_contradicts_a_significant_difference_is_named():
    """In BLEU, big is 2.0 better; in chrF2 it is worse: 33.0, the baseline has 40.0.

    The p-value of 0.001 is that of both metrics.
    """
    base = record("news-en-de", "base", bleu=20.0, chrf2=40.0)
    big = record("news-en-de", "big", bleu=22.0, p_value=0.001, chrf2=33.0)

    (text,) = findings(base, big)

    assert text.endswith(" Metrics that favor the baseline: chrF2 -7.0‡.")


def test_a_metric_that_is_not_significantly_worse_is_not_named():
    """A lower chrF2 with p = 0.2 may be chance, so it contradicts nothing."""
    base = record("news-en-de", "base", bleu=20.0, chrf2=40.0)
    big = record("news-en-de", "big", bleu=22.0, p_value=0.2, chrf2=33.0)

    (text,) = findings(base, big)

    assert "Metrics that favor the baseline" not in text


def test_an_only_system_is_reported_without_comparison():
    (text,) = findings(record("news-en-de", "base", bleu=20.0))

    assert text == "news-en-de: base is the only system. BLEU 20.0 [19.0, 22.0]"


@pytest.mark.parametrize(
    ("deviation", "verdict", "is_chance"),
    [
        pytest.param(0.7, "and beyond seed variance", False, id="seeds differ by up to 1.9"),
        pytest.param(0.8, "but within seed variance", True, id="seeds differ by up to 2.2"),
    ],
)
def test_a_difference_is_compared_with_the_seed_variance_of_committed_reports(
    deviation, verdict, is_chance
):
    """The systems differ by 2.0 BLEU; would two seeds of one system differ by less?

    Older reports say with which standard deviation the BLEU of one system varies over seeds. In 95
    of 100 cases, two seeds differ by less than 1.96 * sqrt(2) times this deviation.
    """
    base = record("news-en-de", "base", bleu=20.0)
    big = record("news-en-de", "big", bleu=22.0, p_value=0.001)

    (text,) = findings(base, big, deviations={REFERENCES_SHA256: deviation})

    seed_difference = 1.96 * 2**0.5 * deviation
    assert (
        f"Significant over the test lines (p=0.001), {verdict}, as estimated from reports/ "
        f"({seed_difference:.1f} BLEU)"
    ) in text
    assert text.endswith(": it may be chance.") == is_chance


@pytest.mark.parametrize(
    ("difference", "verdict"),
    [
        pytest.param(1.0, "and beyond", id="1.0 BLEU, larger than 0.98"),
        pytest.param(0.96, "but within", id="0.96 BLEU, smaller than 0.98"),
    ],
)
def test_systems_with_several_seeds_are_compared_by_their_means(difference, verdict):
    """Three seeds show that the difference is no chance of training.

    It may still be a chance of the test set: over its lines, the records of the helper give each
    difference the standard error 0.5, so 95 % of the errors are below 1.96 * 0.5 = 0.98 BLEU.
    """
    rows = []
    for seed in range(3):
        rows.append(record("news-en-de", "base", bleu=20.0 + seed / 10, seed=seed))
    for seed in range(3):
        bleu = 20.0 + seed / 9 + difference
        rows.append(record("news-en-de", "big", bleu=bleu, p_value=0.01, seed=seed, lines=500))

    (text,) = findings(*rows)

    assert "big is 1.0 BLEU better than base. Significant over 3 seeds (p<0.001), " in text
    assert f"{verdict} the sampling error of 500 test lines (1.0 BLEU)" in text


def test_an_external_system_is_compared_without_seed_variance():
    """Its translations come from a file, so there is no training that another seed would change.

    A seed variance of 9.0 BLEU is known from other reports, and must not be mentioned.
    """
    base = record("news-en-de", "base", bleu=20.0)
    online = record("news-en-de", "online", bleu=25.0, p_value=0.001, about="A service.")

    (text,) = findings(base, online, deviations={REFERENCES_SHA256: 9.0})

    assert text == (
        "news-en-de: online (external) is 5.0 BLEU better than base in these two "
        "translations. Significant over the test lines (p=0.001)."
    )


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """Return settings, and a folder with filtering and corpus statistics."""
    root = tmp_path_factory.mktemp("tree")
    settings = trees.settings_in(root, ("base", "big"), {"news-en-de": ("first",)})
    trees.write_texts(root, settings)
    return settings, root


def caution_texts(tree, *rows, kept_pairs=None, **settings):
    """Return the texts of the summary's cautions by the beginning of their titles.

    Args:
        tree: The settings and the folder of the project.
        rows: The records.
        kept_pairs: The number of training pairs of news-en-de; 9,993 if omitted.
        settings: The settings to change.
    """
    usual_settings, root = tree
    context = ReportData(
        replace(usual_settings, **settings), result_rows.records_from_rows(*rows), root
    )
    if kept_pairs is not None:
        counts = context.pair_counts["news-en-de"]
        context.pair_counts["news-en-de"] = replace(counts, kept=kept_pairs)
    texts = {}
    for caution in cautions(context):
        title = caution.title.split(":")[0].split(",")[0]
        texts[title] = caution.text
    return texts


@pytest.mark.parametrize(
    ("bleu", "lines", "expected"),
    [
        pytest.param(15.0, 200, [], id="enough"),
        pytest.param(14.9, 200, ["Low scores"], id="BLEU below 15"),
        pytest.param(15.0, 199, ["Few test lines"], id="less than 200 lines"),
    ],
)
def test_low_scores_and_few_test_lines_are_the_first_caution(tree, bleu, lines, expected):
    texts = caution_texts(tree, record("news-en-de", "base", bleu=bleu, lines=lines))

    assert list(texts) == [*expected, "Few sentence pairs to train on"]


def unseen_words(count):
    """Return the metric that counts words the training text lacks; 1,200 other words are seen."""
    entry = result_rows.measured("word_accuracy", 0, units=count)
    return {("word_accuracy", "count 0"): entry}


@pytest.fixture(scope="module")
def texts_of_a_poor_corpus(tree):
    """Return the cautions on 9,993 training pairs, errors in 10 % of lines and 64 unseen words."""
    errors = {"any error": 100, "repetition": 60, "numbers": 50}
    row = record("news-en-de", "base", bleu=20.0, **errors, metrics=unseen_words(64))
    return caution_texts(tree, row)


def test_few_training_pairs_are_counted(texts_of_a_poor_corpus):
    assert texts_of_a_poor_corpus["Few sentence pairs to train on"] == "9,993 of news-en-de"


def test_many_output_errors_are_named_with_the_most_frequent_one(texts_of_a_poor_corpus):
    assert texts_of_a_poor_corpus["Many lines with output errors"] == (
        "10% of base on news-en-de, first, mostly repetition"
    )


def test_unseen_words_are_reported_as_a_share(texts_of_a_poor_corpus):
    title = "Words of the references that the training text lacks"
    assert texts_of_a_poor_corpus[title] == "5% of news-en-de, first"


def test_a_corpus_at_the_limits_gets_no_caution(tree):
    """Cautions begin below 10,000 pairs, at 10 % of lines with errors, and at 5 % unseen words.

    A test set of these records has 1,000 lines, and 1,200 words that the training text contains.
    """
    unseen = 63  # 63 / (63 + 1,200) = 4.99 %
    errors = {"any error": 99}  # 9.9 % of 1,000 lines
    row = record("news-en-de", "base", bleu=20.0, metrics=unseen_words(unseen), **errors)

    assert caution_texts(tree, row, kept_pairs=10_000) == {}


def test_a_corpus_that_is_not_decontaminated_may_have_too_high_scores(tree):
    """Decontamination removes test sentences from the training text.

    Without it, a system may have learned the test sentences by heart.
    """
    settings, _root = tree
    corpus = settings.corpora["news-en-de"]
    corpus = replace(corpus, dedup=replace(corpus.dedup, decontaminate="none"))
    row = record("news-en-de", "base", bleu=20.0)

    texts = caution_texts(tree, row, kept_pairs=10_000, corpora={"news-en-de": corpus})

    assert texts == {"Scores may be too high": "news-en-de"}


def test_a_corpus_of_generated_text_is_named(tree):
    """A URL such as `copy:train.src` names text that the program itself generates: random symbols.

    High scores on it say nothing about real text.
    """
    settings, _root = tree
    corpus = settings.corpora["news-en-de"]
    train = {}
    for part, text in corpus.files.train.items():
        source = File(url="copy:train.src")
        target = File(url="copy:train.tgt")
        train[part] = replace(text, source=source, target=target)
    corpus = replace(corpus, files=replace(corpus.files, train=train))
    row = record("news-en-de", "base", bleu=20.0)

    texts = caution_texts(tree, row, kept_pairs=10_000, corpora={"news-en-de": corpus})

    assert texts == {"Generated text": "news-en-de"}


@pytest.mark.parametrize(
    ("systems", "last_entry"),
    [
        pytest.param(6, "10% of s6 on news-en-de, first, mostly repetition", id="six systems"),
        pytest.param(7, "and 1 more", id="seven systems"),
    ],
)
def test_a_caution_names_six_systems_and_counts_the_rest(tree, systems, last_entry):
    """Each system, s1 to s6 or s7, has an error in 100 of 1,000 lines, 60 of them repetitions.

    The caution is one text; without a limit, 50 systems would hide the other cautions.
    """
    errors = {"any error": 100, "repetition": 60}
    rows = []
    for number in range(1, systems + 1):
        rows.append(record("news-en-de", f"s{number}", bleu=20.0, **errors))

    text = caution_texts(tree, *rows)["Many lines with output errors"]

    entries = text.split("; ")
    assert len(entries) == systems
    assert entries[5] == "10% of s6 on news-en-de, first, mostly repetition"
    assert entries[-1].endswith(last_entry)


def test_a_clone_without_data_counts_no_pairs(tree, tmp_path):
    """It has the committed report and neither text nor filtering statistics."""
    rows = result_rows.records_from_rows(record("news-en-de", "base", bleu=20.0))
    context = ReportData(tree[0], rows, tmp_path)
    assert list(cautions(context)) == []


@pytest.fixture
def texts_with_findings(tree):
    """Return the cautions on a corpus with misaligned lines and test sentences in another set."""
    _, root = tree
    misaligned = {"train": (Misfit(10, 81, 1),), "test.first": (Misfit(1, 500, None),)}
    overlap = Overlap("first", "valid", 3, 200)
    folder = root / "data" / "test_stats" / "news-en-de"
    SetFindings(misaligned, (overlap,)).write(folder)
    yield caution_texts(tree, record("news-en-de", "base", bleu=20.0))
    (folder / FINDINGS_FILE).unlink()


def test_misaligned_lines_are_named(texts_with_findings):
    assert texts_with_findings["Lines that do not fit their translations"] == (
        "news-en-de, train: lines 10 to 81 fit the target 1 line later; "
        "news-en-de, test.first: lines 1 to 500 do not fit at all"
    )


def test_test_sentences_in_the_validation_set_are_counted(texts_with_findings):
    assert texts_with_findings["Test sentences in another held-out set"] == (
        "3 of 200 sentences of test set first are in the validation set (news-en-de)"
    )


@pytest.fixture
def summary_of_two_systems(tree):
    """Return the summary of base with BLEU 20 [19, 22] and big with BLEU 27 [26, 29]."""
    settings, root = tree
    base = record("news-en-de", "base", bleu=20.0)
    big = record("news-en-de", "big", bleu=27.0, p_value=0.2)
    return summary_section(ReportData(settings, result_rows.records_from_rows(base, big), root))


def test_intervals_are_drawn_to_a_scale_between_multiples_of_five(summary_of_two_systems):
    """The scale reaches from 15 to 30, so 19 is at (19 - 15) / 15 = 26.7 %."""
    intervals = re.findall(r'x1="(.*?)%" x2="(.*?)%"', summary_of_two_systems.body)

    assert intervals == [("26.7", "46.7"), ("73.3", "93.3")]


def test_the_table_of_scores_names_the_test_set_the_scale_and_the_baseline(
    summary_of_two_systems,
):
    """Base has BLEU 20 [19, 22], big 27 [26, 29].

    Intervals are drawn on a scale that ends at multiples of 5: from 15 to 30 here.
    """
    table, *_ = page_of(summary_of_two_systems).tables["summary"]

    title, scale, *_ = table.rows[0]
    assert title == "news-en-de, test set first (1,000 sentences)"
    assert scale == "15 30"
    assert table.row("big")["BLEU"] == "27.0 [26.0, 29.0]"
    assert table.marks == ["group", "baseline", ""]


def test_the_deviation_over_seeds_is_drawn_as_the_interval(tree):
    """Two seeds have BLEU 21 and 24: the mean is 22.5 and the standard deviation 3 / sqrt(2).

    The line is drawn from 22.5 - 2.12 to 22.5 + 2.12, on a scale from 20 to 25.
    """
    settings, root = tree
    rows = [
        record("news-en-de", "base", bleu=21.0, seed=1),
        record("news-en-de", "base", bleu=24.0, seed=2),
    ]
    context = ReportData(
        replace(settings, seeds=(1, 2)), result_rows.records_from_rows(*rows), root
    )

    svg = summary_section(context).body

    # x1 and x2 are the ends of the line, cx is the point of the mean: in the middle of the scale.
    ((start, end),) = re.findall(r'x1="(.*?)%" x2="(.*?)%".*cx="50.0%"', svg)
    mean = (21 + 24) / 2
    deviation = 3 / 2**0.5
    start_percent = 100 * (mean - deviation - 20) / (25 - 20)
    end_percent = 100 * (mean + deviation - 20) / (25 - 20)
    assert start == f"{start_percent:.1f}"
    assert end == f"{end_percent:.1f}"
