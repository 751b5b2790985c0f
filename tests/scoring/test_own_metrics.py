"""Metrics in the folder own/: looked up by name, computed like built-in ones, and checked."""

from statistics import fmean

import pytest
from scipy.stats import binomtest

from bleuprint.runtime.errors import UserError
from bleuprint.runtime.own_code import pinned_name
from bleuprint.scoring.metrics import METRICS, own_keys, own_metrics
from bleuprint.scoring.own_metrics import check_own_metric
from bleuprint.scoring.score import score_test_set
from bleuprint.scoring.significance import paired_test
from measuring import translated_set
from own_code import write_module
from own_metrics import WORD_RECALL, exact_match_example

# 120 lines, of which the first 90 are right.
REFERENCES = [f"Haus {number} steht hier ." for number in range(120)]
TRANSLATIONS = [*REFERENCES[:90], *(line.replace("hier", "da") for line in REFERENCES[90:])]


@pytest.fixture(autouse=True)
def project(tmp_path, monkeypatch):
    """Work in a project with two own metrics."""
    monkeypatch.chdir(tmp_path)
    write_module(tmp_path, "exact_match", exact_match_example())
    write_module(tmp_path, "recall", WORD_RECALL)
    return tmp_path


def entries(*names, documents=None):
    """Return the entries of own metrics in scores.json, by metric and group."""
    test_set = translated_set(TRANSLATIONS, REFERENCES, "de", documents=documents)
    values = score_test_set(test_set, further_metrics=own_metrics(names))
    return {(value["metric"], value["group"]): value for value in values}


def test_an_own_metric_has_its_value_a_wilson_interval_and_its_code_as_signature(project):
    """The interval is computed by SciPy."""
    entry = entries("own.exact_match")["own.exact_match", ""]

    interval = binomtest(90, 120).proportion_ci(method="wilson")
    assert entry["value"] == 75
    assert entry["units"] == 120
    assert entry["ci_low"] == pytest.approx(100 * interval.low, abs=1e-5)
    assert entry["ci_high"] == pytest.approx(100 * interval.high, abs=1e-5)
    assert entry["signature"] == pinned_name("own.exact_match", project)


def test_scores_of_lines_are_averaged_in_percent():
    """30 of 120 translations have 4 of the 5 words of their reference."""
    entry = entries("own.recall")["own.recall", ""]

    assert entry["value"] == pytest.approx(100 * fmean([1.0] * 90 + [4 / 5] * 30))
    assert entry["ci_low"] < entry["value"] < entry["ci_high"]


def test_documents_are_resampled_as_for_built_in_scores():
    """There are 12 documents of 10 lines."""
    documents = [f"d{number // 10}" for number in range(120)]

    by_document = entries("own.exact_match", documents=documents)["own.exact_match", "document"]

    assert by_document["units"] == 12
    assert by_document["value"] == 75


def test_two_systems_are_compared_with_mcnemars_exact_test():
    """The second system is right in 30 more lines and wrong in 12 others.

    McNemar's exact test is a binomial test of the lines that only one system has right, here
    computed by SciPy.
    """
    (metric,) = own_metrics(["own.exact_match"])
    other = [f"{line} !" for line in REFERENCES[:12]] + REFERENCES[12:]
    first = metric.count(translated_set(TRANSLATIONS, REFERENCES))
    second = metric.count(translated_set(other, REFERENCES))

    tested = paired_test(metric, first, second)

    assert tested.randomization == pytest.approx(binomtest(12, 42).pvalue, abs=0.01)


def test_a_metric_is_looked_up_by_its_name_with_and_without_a_fingerprint(project):
    pinned = pinned_name("own.exact_match", project)

    assert METRICS["own.exact_match"].key == METRICS[pinned].key == "own.exact_match"
    assert METRICS[pinned].label == "Exact match"
    assert "own.exact_match" in METRICS
    assert "own.missing" not in METRICS
    assert "missing" not in METRICS
    with pytest.raises(KeyError):
        METRICS["missing"]


def test_the_list_of_metrics_has_the_built_in_ones_only():
    """What loops over all metrics, such as the models of scores, is about built-in ones."""
    own_metrics(["own.exact_match"])

    assert not [key for key in METRICS if key.startswith("own")]


def test_metrics_that_cannot_be_imported_here_are_not_shown(project):
    """Results of another project, or of an earlier revision, may name them."""
    write_module(project, "broken", "import missing_module\n")

    keys = own_keys(["bleu", "own.recall", "own.broken", "own.missing", "own.recall"])

    assert keys == ["own.recall"]


def test_a_pinned_name_is_refused_after_an_edit(project):
    pinned = pinned_name("own.exact_match", project)
    write_module(project, "exact_match", exact_match_example().replace("==", "!="))

    with pytest.raises(UserError, match=f"^own/exact_match.py has changed: {pinned} is expected"):
        own_metrics([pinned])


@pytest.mark.parametrize(
    ("is_lower_better", "direction"),
    [(False, "Higher is better."), (True, "Lower is better.")],
)
def test_the_text_below_the_table_says_which_direction_is_better(
    project, is_lower_better, direction
):
    module = WORD_RECALL.replace("label=", f"lower_is_better={is_lower_better}, label=")
    write_module(project, "recall", module)

    assert METRICS["own.recall"].about == direction


@pytest.mark.parametrize("label", ["BLEU", "Exact match"])
def test_two_metrics_may_not_have_the_same_label(project, label):
    """Their columns could not be told apart."""
    write_module(project, "recall", WORD_RECALL.replace("Word recall", label))

    message = f"^own.recall: the label '{label}' belongs to the metric "
    with pytest.raises(UserError, match=message):
        own_metrics(["own.exact_match", "own.recall"])


def test_what_a_metric_divides_by_may_be_0_on_some_lines(project):
    """The value is the share of the words that are longer than 4 letters, over all lines."""
    write_module(
        project,
        "long",
        "from bleuprint.scoring.metric import Metric\n"
        "def count(test_set):\n"
        "    words = [line.split() for line in test_set.hypotheses]\n"
        "    return [(sum(len(word) > 4 for word in each), len(each)) for each in words]\n"
        "METRIC = Metric(label='Long', statistics=count, value=lambda s: s[:, 0] / s[:, 1])\n",
    )
    (metric,) = own_metrics(["own.long"])
    counts = metric.count(translated_set(["", "steht da"], ["a", "b"]))

    assert metric.overall_value(counts) == 0.5


COUNT = """\
def count(test_set):
    return {RESULT}
"""
VALUE = """\
def value(sums):
    return {RESULT}
"""
ONES = "[(1, 1)] * len(test_set.references)"
METRIC_LINES = """\
from bleuprint.scoring.metric import Metric, percentage
METRIC = Metric(label="M", statistics={STATISTICS}, value={VALUE}{MORE})
"""


def module(statistics="count", value="percentage", more="", count=ONES, result="sums[:, 0]"):
    """Return the module of a metric: `count` is in line 2, `value` in line 4 and METRIC in 7."""
    functions = COUNT.replace("{RESULT}", count) + VALUE.replace("{RESULT}", result)
    metric = METRIC_LINES.replace("{STATISTICS}", statistics).replace("{VALUE}", value)
    return functions + metric.replace("{MORE}", more)


ROWS = "It must return a list with a row of whole numbers for each line, such as [(1, 1), (0, 1)]"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("import missing_module\n", "own/bad.py:1: ModuleNotFoundError: ", id="import"),
        pytest.param("METRIC = Metric()\n", "own/bad.py:1: NameError: ", id="missing import"),
        pytest.param("METRIC = 3\n", "METRIC is a value of the type int. Write", id="3"),
        pytest.param(
            module(more=", colour=3"),
            "own/bad.py:6: TypeError: Metric.__init__() got an",
            id="field",
        ),
        pytest.param(
            module(more=", digits='2'"),
            "METRIC: digits is '2'. It must have",
            id="type",
        ),
        pytest.param(module(more=", is_share=1"), "is_share is 1. It must have", id="bool"),
        pytest.param(module(more=", digits=True"), "digits is True. It must", id="bool as number"),
        pytest.param(module(more=", digits=-1"), "digits is -1. It must be from 0 to 6", id="-1"),
        pytest.param(
            module().replace('"M"', '"M\\nN"'), "label is 'M\\nN'. It must be one line", id="label"
        ),
        pytest.param(
            module().replace('"M"', f'"{"M" * 31}"'),
            "It must be one line of 1 to 30 characters",
            id="label of 31 characters",
        ),
        pytest.param(module(more=", kind='error'"), "kind is 'error'. Own metrics", id="kind"),
        pytest.param(module(statistics="'count'"), "statistics is 'count'. It must", id="no"),
        pytest.param(
            module(statistics="lambda: []"),
            "own/bad.py:6: <lambda> must take one argument, a TranslatedSet",
            id="no argument",
        ),
        pytest.param(
            module(value="lambda sums, lines: 0"),
            "own/bad.py:6: <lambda> must take one argument, an array with a row of sums",
            id="two arguments",
        ),
        pytest.param(
            module(count="test_set.lines"),
            "own/bad.py:2: AttributeError: 'TranslatedSet' object has no attribute 'lines'",
            id="exception",
        ),
        pytest.param(module(count="None"), "count returns a value of the type None", id="None"),
        pytest.param(
            module(count="'perfect'"),
            f"own/bad.py:1: count returns a value of the type str. {ROWS}",
            id="string",
        ),
        pytest.param(
            module(count="__import__('numpy').array(3)"),
            f"count returns a value of the type ndarray. {ROWS}",
            id="number of NumPy",
        ),
        pytest.param(
            module(count="['1 1'] * 3"),
            "count returns '1 1' for line 1",
            id="strings",
        ),
        pytest.param(
            module(count="[1, 0, 1]"), "own/bad.py:1: count returns 1 for line 1", id="numbers"
        ),
        pytest.param(
            module(count="[(1, 1), (None, 1), (1, 1)]"),
            f"count returns (None, 1) for line 2. {ROWS}",
            id="later row",
        ),
        pytest.param(
            module(count="[(1, 1), (1, 1), None]"),
            f"count returns None for line 3. {ROWS}",
            id="no row",
        ),
        pytest.param(
            module(count="[(1, 1), (1,), (1, 1)]"), "count returns rows of different", id="ragged"
        ),
        pytest.param(
            module(count="[(1, 1)]"),
            "own/bad.py:1: count returns 1 row for 3 lines. It must return one row for each line",
            id="another length",
        ),
        pytest.param(module(count="[]"), "count returns an empty list", id="empty"),
        pytest.param(
            module(count="[(0, 1), (0.83, 1), (0, 1)]"),
            "count returns (0.83, 1) for line 2. Counts are whole numbers. Count a score in "
            "millionths: round(MILLIONTHS * score)",
            id="fraction",
        ),
        pytest.param(
            module(count="[(float('nan'), 1)] * 3"), "count returns (nan, 1) for line 1", id="nan"
        ),
        pytest.param(module(count="[(10**13, 1)] * 3"), "at most 1,000,000,000,000", id="large"),
        pytest.param(
            module(count="[(2, 1)] * 3", more=", is_share=True"),
            "count returns (2, 1) for line 1. With is_share, a row has two numbers",
            id="no share",
        ),
        pytest.param(
            module(count="[[1]] * 3"), "own/bad.py: percentage fails: IndexError: ", id="one count"
        ),
        pytest.param(
            module(value="value", result="sums[:, 0] / (sums[:, 1] - 3)"),
            "own/bad.py:3: value returns inf for the sums [3.0, 3.0]. It must return a finite",
            id="infinite value",
        ),
        pytest.param(
            module(value="value", result="float('nan')"),
            "own/bad.py:3: value returns nan for 1 row of sums. It must return one number for each",
            id="one number",
        ),
        pytest.param(
            module(value="value", result="['high']"), "value returns ['high'] for 1 row", id="text"
        ),
        pytest.param(
            module(value="value", result="[100.0 if sums[:, 1] == 3 else 0.0]"),
            "own/bad.py:4: ValueError: The truth value of an array with more than one element",
            id="condition for one row",
        ),
        pytest.param(
            module(value="value", result="[50.0]"),
            "own/bad.py:3: value returns [50.0] for 2 rows of sums. It must return one number for",
            id="value of one row",
        ),
        pytest.param(
            module(value="value", result="1 // 0"),
            "own/bad.py:4: ZeroDivisionError: ",
            id="division",
        ),
    ],
)
def test_a_mistake_is_found_before_anything_is_scored(project, text, message):
    write_module(project, "bad", text)

    with pytest.raises(UserError) as error:
        for metric in own_metrics(["own.bad"]):
            check_own_metric(metric, corpus=None)

    assert message in str(error.value)
    assert str(error.value).startswith("own/bad.py")
    assert "\n" not in str(error.value)
