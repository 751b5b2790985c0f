"""p-values equal those of sacreBLEU's command line, run beside."""

from math import comb

import numpy as np
import pytest
from sacrebleu import CHRF, TER
from sacrebleu.significance import PairedTest as SacrebleuTest
from scipy.stats import binomtest

import result_trees as trees
from bleuprint.scoring import significance
from bleuprint.scoring.metrics import METRICS
from bleuprint.scoring.significance import (
    PairedTest,
    confidence_interval,
    evaluate_metric,
    paired_test,
)
from measuring import SACREBLEU, measure, paired_tests, translated_set
from scoring import example_texts, sacrebleu


@pytest.fixture(scope="module")
def references():
    """Return the references."""
    return example_texts("de")[0]


@pytest.fixture(scope="module")
def systems():
    """Return translations by system; `similar` has a few lines better or worse than `good`."""
    references, good, worse = example_texts("de")
    similar = list(good)
    similar[::7] = references[::7]
    similar[3::7] = worse[3::7]
    return {"good": good, "worse": worse, "similar": similar}


@pytest.fixture(scope="module")
def tests_of_systems(systems, references):
    """Return our tests against the baseline, by system and metric."""
    return paired_tests(systems, references, "de")


def test_each_system_but_the_first_is_tested(tests_of_systems):
    assert list(tests_of_systems) == ["worse", "similar"]


@pytest.mark.parametrize(
    ("kind", "option"), [("bootstrap", "--paired-bs"), ("randomization", "--paired-ar")]
)
def test_p_values_of_bleu_equal_those_of_sacrebleus_command_line(
    tmp_path, systems, references, tests_of_systems, kind, option
):
    """The systems worse and similar are tested against the first one, good."""
    trees.write_lines(tmp_path / "references", references)
    for name, lines in systems.items():
        trees.write_lines(tmp_path / name, lines)
    inputs = [tmp_path / "good", tmp_path / "worse", tmp_path / "similar"]

    options = ("-l", "en-de", "-i", *inputs, option)
    _, worse, similar = sacrebleu(tmp_path / "references", *options)

    for name, expected in (("worse", worse), ("similar", similar)):
        p_value = getattr(tests_of_systems[name]["bleu"], kind)
        assert p_value == pytest.approx(expected["BLEU"]["p_value"], abs=1e-6)


@pytest.mark.parametrize(
    ("key", "metric"),
    [("chrf2", CHRF()), ("chrf2pp", CHRF(word_order=2)), ("ter", TER())],
    ids=["chrf2", "chrf2pp", "ter"],
)
@pytest.mark.parametrize(("kind", "sacrebleu_name"), [("bootstrap", "bs"), ("randomization", "ar")])
def test_p_values_of_other_metrics_equal_those_of_sacrebleus_class(
    systems, references, tests_of_systems, key, metric, kind, sacrebleu_name
):
    """The systems worse and similar are tested against the first one, good.

    With these metrics sacreBLEU's command line often fails to write JSON, so its class is used.
    """
    test = SacrebleuTest([*systems.items()], {key: metric}, [references], sacrebleu_name)
    _, results = test()

    _good, worse, similar = results[METRICS[key].label]

    for name, expected in (("worse", worse), ("similar", similar)):
        p_value = getattr(tests_of_systems[name][key], kind)
        assert p_value == pytest.approx(expected.p_value, abs=1e-6)


@pytest.mark.parametrize("key", SACREBLEU)
def test_a_clearly_worse_system_is_significantly_worse(tests_of_systems, key):
    tested = tests_of_systems["worse"][key]
    assert max(tested.bootstrap, tested.randomization) < 0.05


@pytest.mark.parametrize("key", SACREBLEU)
def test_bootstrap_and_randomization_have_different_p_values(tests_of_systems, key):
    tested = tests_of_systems["similar"][key]
    assert tested.bootstrap != tested.randomization


def test_a_similar_system_is_not_significantly_different(tests_of_systems):
    tested = tests_of_systems["similar"]["bleu"]
    assert tested.bootstrap > 0.05
    assert tested.randomization > 0.05


def test_the_standard_error_is_the_deviation_of_differences_between_resamples():
    """The test resamples in a slow and simple way: 300 times, it draws 60 of 60 lines.

    Each resample is written out line by line, and sacreBLEU scores both systems on it.
    """
    references, good, worse = example_texts("de", lines=60)
    tested = paired_tests({"good": good, "worse": worse}, references, "de")["worse"]["chrf2"]

    metric = CHRF()
    sacrebleu_seed = 12345
    resamples = np.random.default_rng(sacrebleu_seed).choice(60, size=(1000, 60), replace=True)
    differences = []
    for lines in resamples[:300]:
        resampled_references = [[references[line] for line in lines]]
        good_score = metric.corpus_score([good[line] for line in lines], resampled_references)
        worse_score = metric.corpus_score([worse[line] for line in lines], resampled_references)
        differences.append(worse_score.score - good_score.score)

    # A standard deviation from 300 draws has itself a standard error of about 4 %.
    assert tested.standard_error == pytest.approx(np.std(differences, ddof=1), rel=0.12)


def test_systems_that_differ_in_one_line_differ_by_randomization_but_not_by_bootstrap():
    """A known weakness of sacreBLEU's approximate randomization, which this program reproduces.

    A trial swaps lines of the two systems at random. Here they differ in one line, so the
    difference is the same whether it is swapped or not. No trial has a larger one, and p is the
    smallest there is. The documentation warns of it.
    """
    references, good, _ = example_texts("de")
    other = [*good[:-1], references[-1]]

    tested = paired_tests({"good": good, "other": other}, references, "de")["other"]["bleu"]

    trials = 10_000
    assert tested.bootstrap > 0.05
    assert tested.randomization == round(1 / (trials + 1), 6)


def test_a_copy_of_the_baseline_has_a_p_of_one():
    """For comparison, a worse system is tested in the same call, and is significant."""
    references, good, worse = example_texts("de")
    systems = {"baseline": good, "worse": worse, "copy": list(good)}

    tested = paired_tests(systems, references, "de")

    no_difference = PairedTest(bootstrap=1.0, randomization=1.0, standard_error=0.0)
    assert tested["copy"] == dict.fromkeys(SACREBLEU, no_difference)
    assert tested["worse"]["bleu"].bootstrap < 0.05


def test_two_systems_with_a_score_of_zero_have_a_p_of_one():
    """Their translations differ, but nothing in them is correct, so their scores are equal."""
    references, _, _ = example_texts("de")
    systems = {"first": ["x"] * len(references), "second": ["y y y"] * len(references)}

    tested = paired_tests(systems, references, "de")["second"]

    no_difference = PairedTest(bootstrap=1.0, randomization=1.0, standard_error=0.0)
    assert tested["bleu"] == no_difference
    assert tested["chrf2"] == no_difference


@pytest.fixture
def forget_samples():
    """Return a function that forgets resamples and trials, so that they are drawn again."""

    def forget():
        significance._resampled_counts.cache_clear()
        significance._unswapped_units.cache_clear()

    yield forget
    forget()


def test_sacrebleus_environment_variable_does_not_change_the_seed_of_tests(
    monkeypatch, forget_samples
):
    """A p-value must be the same on each machine, even where a user has set SACREBLEU_SEED.

    Resamples are drawn once per process; `forget_samples` makes the second call draw them again.
    """
    references, good, _ = example_texts("de")
    systems = {"good": good, "better": [*good[:-2], *references[-2:]]}
    forget_samples()
    tests_before = paired_tests(systems, references, "de")

    monkeypatch.setenv("SACREBLEU_SEED", "7")
    forget_samples()
    tests_after = paired_tests(systems, references, "de")

    assert tests_after == tests_before


def test_sacrebleus_environment_variable_does_not_change_the_seed_of_intervals(
    monkeypatch, forget_samples
):
    """An interval must be the same on each machine, even where a user has set SACREBLEU_SEED.

    Resamples are drawn once per process; `forget_samples` makes the second call draw them again.
    """
    references, good, _ = example_texts("de")
    texts = translated_set(good, references, "de")
    forget_samples()
    entries_before = {key: measure(key, texts) for key in SACREBLEU}

    monkeypatch.setenv("SACREBLEU_SEED", "7")
    forget_samples()
    entries_after = {key: measure(key, texts) for key in SACREBLEU}

    assert entries_after == entries_before
    for entry in entries_after.values():
        assert "|seed:12345|" in entry["signature"]


@pytest.mark.parametrize("key", SACREBLEU)
def test_a_test_set_of_one_line_shows_no_difference(key):
    """All resamples of one line are the same, for which sacreBLEU would report certainty."""
    systems = {"baseline": ["be ba bo bi be"], "correct": ["a dog sees a cat today"]}
    references = ["a dog sees a cat today"]

    tested = paired_tests(systems, references, "en")["correct"][key]

    assert tested.bootstrap == 1.0
    assert tested.randomization == 1.0
    # Resamples are summed in float32, with rounding errors.
    assert tested.standard_error < 1e-4


def mcnemar_p_value(more, fewer):
    """Return p of McNemar's exact test: twice the smaller tail of Bin(n, 1/2), at most 1.

    Args:
        more: The number of lines in which the second system has an error and the first has none.
        fewer: The number of lines in which it is the other way round.
    """
    lines = more + fewer
    tail = sum(comb(lines, count) for count in range(min(more, fewer) + 1))
    return min(1.0, 2 * tail / 2**lines)


@pytest.mark.parametrize(
    ("only_second", "only_first"), [(12, 2), (2, 12), (5, 5), (1, 0), (0, 9), (6, 0)]
)
def test_randomization_of_errors_agrees_with_mcnemars_test(only_second, only_first):
    """Of 200 lines, the second system has an error in `only_second` in which the first has none.

    `only_first` is the other way round, and ten lines have an error in both. McNemar's exact test
    is the textbook test for such counts. sacreBLEU's way of counting trials would report certainty
    for 6 lines against 0.
    """
    # The counts of each line: 1 if it has an error, and 1 because the line counts.
    first = np.zeros((200, 2))
    second = np.zeros((200, 2))
    first[:, 1] = 1
    second[:, 1] = 1
    second[:only_second, 0] = 1
    first[only_second : only_second + only_first, 0] = 1
    first[150:160, 0] = 1
    second[150:160, 0] = 1

    tested = paired_test(METRICS["any error"], first, second)

    p_value = mcnemar_p_value(only_second, only_first)
    assert tested.randomization == pytest.approx(p_value, abs=0.015)


def test_the_share_of_lines_with_errors_has_wilsons_interval():
    """Ten of 100 lines have an error; seven more do not count, as their references have it, too.

    SciPy computes the expected interval.
    """
    with_error = [(1, 1)] * 10
    without_error = [(0, 1)] * 90
    not_counted = [(0, 0)] * 7
    statistics = np.array(with_error + without_error + not_counted, dtype=float)

    entry = evaluate_metric(METRICS["any error"], statistics, "")

    low, high = binomtest(10, 100).proportion_ci(0.95, "wilson")
    assert entry["value"] == 10
    assert entry["units"] == 100
    assert entry["ci_low"] == pytest.approx(100 * low, abs=1e-4)
    assert entry["ci_high"] == pytest.approx(100 * high, abs=1e-4)


def test_the_interval_is_zero_if_no_line_counts():
    no_line_counts = np.zeros((107, 2))
    assert confidence_interval(METRICS["any error"], no_line_counts) == (0, 0)
