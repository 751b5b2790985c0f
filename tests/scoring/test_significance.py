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
from measuring import SACREBLEU, measure, paired_tests, texts_of
from scoring import sacrebleu, text


def test_p_values_equal_the_command_line(tmp_path):
    references, good, worse = text("de")
    similar = list(good)
    similar[::7], similar[3::7] = references[::7], worse[3::7]
    systems = {"good": good, "worse": worse, "similar": similar}
    for name, lines in {"references": references, **systems}.items():
        trees.write_lines(tmp_path / name, lines)
    ours = paired_tests(systems, references, "de")
    inputs = [tmp_path / name for name in systems]
    options = (tmp_path / "references", "-l", "en-de", "-i", *inputs)
    bootstrap, randomisation = (sacrebleu(*options, f"--paired-{kind}") for kind in ("bs", "ar"))
    assert list(ours) == ["worse", "similar"]
    for tests, one, other in zip(ours.values(), bootstrap[1:], randomisation[1:], strict=True):
        p_values = tests["bleu"].bootstrap, tests["bleu"].randomization
        expected = [each["BLEU"]["p_value"] for each in (one, other)]
        assert p_values == pytest.approx(expected, abs=1e-6)
    # with other metrics its command line often fails to write JSON: they are of its class
    for key, metric in {"chrf2": CHRF(), "chrf2pp": CHRF(word_order=2), "ter": TER()}.items():
        for kind, name in {"bootstrap": "bs", "randomization": "ar"}.items():
            test = SacrebleuTest([*systems.items()], {key: metric}, [references], name)
            _, *expected = test()[1][METRICS[key].label]
            for tests, result in zip(ours.values(), expected, strict=True):
                assert getattr(tests[key], kind) == pytest.approx(result.p_value, abs=1e-6), key
    for key in SACREBLEU:
        worse, same = ours["worse"][key], ours["similar"][key]
        assert max(worse.bootstrap, worse.randomization) < 0.05
        assert same.bootstrap != same.randomization
    assert ours["similar"]["bleu"].bootstrap > 0.05 < ours["similar"]["bleu"].randomization


def test_the_standard_error_is_that_of_scores_of_resamples():
    """Each resample is drawn, written out line by line and scored as a text of its own."""
    references, good, worse = text("de")
    found = paired_tests({"good": good, "worse": worse}, references, "de")["worse"]["chrf2"]
    rows = np.random.default_rng(12345).choice(60, size=(1000, 60), replace=True)[:300]
    metric = CHRF()
    deltas = []
    for row in rows:
        expected = [[references[line] for line in row]]
        scores = [metric.corpus_score([s[i] for i in row], expected).score for s in (good, worse)]
        deltas.append(scores[1] - scores[0])
    # that of a standard deviation from 300 draws is about 4 %
    assert found.standard_error == pytest.approx(np.std(deltas, ddof=1), rel=0.12)


def test_a_difference_in_one_line_alone_is_no_difference_to_the_bootstrap():
    # Swapped or not, systems that differ in one line differ by as much: sacreBLEU's randomisation
    # counts what is larger, finds nothing, and is as sure as it can be. Docs warn of it.
    references, good, _ = text("de")
    found = paired_tests({"a": good, "b": [*good[:-1], references[-1]]}, references, "de")["b"][
        "bleu"
    ]
    assert found.bootstrap > 0.05
    assert found.randomization == round(1 / 10001, 6)


def test_identical_translations_do_not_differ():
    references, good, worse = text("de")
    tested = paired_tests({"a": good, "b": worse, "c": list(good)}, references, "de")
    assert tested["c"] == dict.fromkeys(SACREBLEU, PairedTest(1.0, 1.0, 0.0))
    assert tested["b"]["bleu"].bootstrap < 0.05


def test_scores_of_zero_do_not_differ():
    references, good, _ = text("de")
    systems = {"a": ["x"] * len(good), "b": ["y y y"] * len(good)}
    tested = paired_tests(systems, references, "de")["b"]
    assert tested["bleu"] == tested["chrf2"] == PairedTest(1.0, 1.0, 0.0)


@pytest.fixture
def forget_samples():
    """A function: resamples and trials are drawn again where they are used next."""

    def forget():
        significance._resampled_counts.cache_clear()
        significance._trials.cache_clear()

    yield forget
    forget()


def test_the_seed_is_not_the_users_environment(monkeypatch, forget_samples):
    references, good, _ = text("de")
    systems = {"a": good, "b": [*good[:-2], *references[-2:]]}
    forget_samples()
    before = paired_tests(systems, references, "de")
    monkeypatch.setenv("SACREBLEU_SEED", "7")
    forget_samples()
    assert paired_tests(systems, references, "de") == before


def test_the_seed_of_intervals_is_not_the_users_environment(monkeypatch, forget_samples):
    references, good, _ = text("de")
    texts = texts_of(good, references, "de")
    forget_samples()
    before = {key: measure(key, texts) for key in SACREBLEU}
    monkeypatch.setenv("SACREBLEU_SEED", "7")
    forget_samples()
    after = {key: measure(key, texts) for key in SACREBLEU}
    assert after == before
    for measured_after in after.values():
        assert "|seed:12345|" in measured_after["signature"]


def test_one_line_shows_nothing():
    """All its samples are the same, for which sacreBLEU would report certainty."""
    systems = {"base": ["be ba bo bi be"], "other": ["a dog sees a cat today"]}
    found = paired_tests(systems, ["a dog sees a cat today"], "en")
    for tested in found["other"].values():
        # but for rounding: sums of resamples are in float32
        assert (tested.bootstrap, tested.randomization) == (1.0, 1.0)
        assert tested.standard_error < 1e-4


def exact(more, fewer):
    """McNemar's exact test by its definition: twice the smaller tail of Bin(n, 1/2), at most 1."""
    n, least = more + fewer, min(more, fewer)
    return min(1.0, 2 * sum(comb(n, k) for k in range(least + 1)) / 2**n)


@pytest.mark.parametrize(("more", "fewer"), [(12, 2), (2, 12), (5, 5), (1, 0), (0, 9), (6, 0)])
def test_randomization_of_shares_agrees_with_mcnemar(more, fewer):
    """Ties count: sacreBLEU's way would take 6 lines against 0 for certain."""
    lines = np.ones((200, 2))
    first, second = lines.copy(), lines.copy()
    first[:, 0], second[:, 0] = 0, 0
    second[:more, 0] = first[more : more + fewer, 0] = 1
    first[150:160, 0] = second[150:160, 0] = 1
    found = paired_test(METRICS["any error"], first, second)
    assert found.randomization == pytest.approx(exact(more, fewer), abs=0.015)


def test_wilsons_interval():
    statistics = np.array([(1, 1)] * 10 + [(0, 1)] * 90 + [(0, 0)] * 7, dtype=float)
    found = evaluate_metric(METRICS["any error"], statistics, "")
    expected = binomtest(10, 100).proportion_ci(0.95, "wilson")
    assert (found["value"], found["units"]) == (10, 100)
    assert (found["ci_low"], found["ci_high"]) == pytest.approx(
        [100 * end for end in expected], abs=1e-4
    )
    assert confidence_interval(METRICS["any error"], statistics * 0) == (0, 0)
