"""The search of an exported system, with a stand-in for CTranslate2: lengths, batches, scores."""

from types import SimpleNamespace

import pytest

from bleuprint.serving.standalone import score, search

SETTINGS = {
    "beam": 3,
    "max_len_a": 2,
    "max_len_b": 7,
    "max_positions": 20,
    "min_len": 15,
    "no_repeat_ngram_size": 4,
    "allow_unk": False,
    "length_penalty": {"kind": "gnmt", "alpha": 1.0},
}
# Outputs of CTranslate2: a score, which is the log-probability divided by length^alpha (EOS is part
# of the length), and the subwords.
SHORT_OUTPUT = (-1.0, ["a"] * 2)
LONG_OUTPUT = (-0.6, ["b"] * 9)


class StandInTranslator:
    """Takes the place of CTranslate2, and records the calls.

    For each sentence it returns SHORT_OUTPUT and LONG_OUTPUT, each with the first subword of the
    sentence as its first subword.

    Attributes:
        calls: The sentences and the options of each call.
    """

    def __init__(self):
        """Begin without calls."""
        self.calls = []

    def translate_batch(self, sentences, **options):
        """Record a call, and return two outputs for each sentence."""
        self.calls.append((sentences, options))
        results = []
        for sentence in sentences:
            scores = []
            hypotheses = []
            for output_score, subwords in (SHORT_OUTPUT, LONG_OUTPUT):
                scores.append(output_score)
                hypotheses.append([sentence[0], *subwords[1:]])
            results.append(SimpleNamespace(scores=scores, hypotheses=hypotheses))
        return results


@pytest.mark.parametrize(
    ("source_length", "changes", "expected_limit"),
    [
        pytest.param(3, {}, 2 * 3 + 7, id="2 x 3 + 7"),
        pytest.param(5, {}, 2 * 5 + 7, id="2 x 5 + 7"),
        # 2 x 8 + 7 = 23 subwords and EOS do not fit in 20 positions.
        pytest.param(8, {}, 20 - 1, id="positions without EOS"),
        pytest.param(3, {"max_positions": 100}, 2 * 3 + 7, id="many positions, 3"),
        pytest.param(5, {"max_positions": 100}, 2 * 5 + 7, id="many positions, 5"),
        pytest.param(8, {"max_positions": 100}, 2 * 8 + 7, id="many positions, 8"),
        pytest.param(3, {"max_len_a": 1.5}, 11, id="1.5 x 3 + 7, rounded down"),
        pytest.param(5, {"max_len_a": 1.5}, 14, id="1.5 x 5 + 7, rounded down"),
        pytest.param(8, {"max_len_a": 1.5}, 19, id="1.5 x 8 + 7"),
    ],
)
def test_the_maximum_output_length_depends_on_the_source_length(
    source_length, changes, expected_limit
):
    """The limit is max_len_a x source length + max_len_b, if the model has as many positions.

    max_len_a is 2, max_len_b is 7, and the model has 20 positions.
    """
    translator = StandInTranslator()

    search(translator, [["x"] * source_length], SETTINGS | changes)

    ((_, options),) = translator.calls
    assert options["max_decoding_length"] == expected_limit


def test_sentences_with_different_maximum_lengths_are_searched_one_after_the_other():
    """CTranslate2 takes one maximum length for all sentences of a call.

    The maximum is 2 x source length + 7, and at most 19: 20 positions, one of them for EOS.
    """
    translator = StandInTranslator()
    sentences = [["x"] * 3, ["x"] * 5, ["x"] * 8]

    search(translator, sentences, SETTINGS)

    batches = [batch for batch, _ in translator.calls]
    limits = [options["max_decoding_length"] for _, options in translator.calls]
    assert batches == [[["x"] * 3], [["x"] * 5], [["x"] * 8]]
    assert limits == [2 * 3 + 7, 2 * 5 + 7, 19]


def test_sentences_with_the_same_maximum_length_are_searched_together():
    translator = StandInTranslator()

    search(translator, [["u"], ["v", "v"], [], ["w"]], SETTINGS)

    # The maximum length depends on the source length; an empty sentence is not searched.
    batches = [batch for batch, _ in translator.calls]
    assert batches == [[["u"], ["w"]], [["v", "v"]]]


def test_outputs_are_in_the_order_of_the_sentences():
    """The stand-in's output begins with the first subword of its sentence."""
    outputs = search(StandInTranslator(), [["u"], ["v", "v"], [], ["w"]], SETTINGS)

    first_subwords = [output[:1] for output in outputs]
    assert first_subwords == [["u"], ["v"], [], ["w"]]


def test_outputs_are_empty_without_a_search_if_their_maximum_length_is_0():
    translator = StandInTranslator()
    settings = SETTINGS | {"max_len_a": 0, "max_len_b": 0}

    assert search(translator, [["x"]], settings) == [[]]
    assert translator.calls == []


@pytest.mark.parametrize(
    ("source", "expected_min_length"),
    [
        pytest.param(["x"] * 8, 15, id="min_len"),
        pytest.param(["x"], 2 * 1 + 7, id="the maximum length, which is less than min_len"),
    ],
)
def test_the_minimum_output_length_is_at_most_the_maximum(source, expected_min_length):
    """The setting min_len is 15. The maximum is 2 x source length + 7."""
    translator = StandInTranslator()

    search(translator, [source], SETTINGS)

    ((_, options),) = translator.calls
    assert options["min_decoding_length"] == expected_min_length


@pytest.mark.parametrize("source", [["x"], ["x"] * 8], ids=["short", "long"])
def test_ctranslate2_searches_with_the_exported_settings(source):
    """The exported settings have a beam of 3, alpha 1.0, and no repeated 4-grams or unknown words.

    The best of all 3 outputs is chosen by the script, whose length penalty CTranslate2 lacks.
    """
    translator = StandInTranslator()

    search(translator, [source], SETTINGS)

    ((_, options),) = translator.calls
    assert options["beam_size"] == 3
    assert options["num_hypotheses"] == 3
    assert options["length_penalty"] == 1.0
    assert options["no_repeat_ngram_size"] == 4
    assert options["disable_unk"] is True
    # 0 turns CTranslate2's own limit off: the script shortens long sources itself, and says so.
    assert options["max_input_length"] == 0


@pytest.mark.parametrize(
    ("penalty", "best_subwords"),
    [
        pytest.param("gnmt", ["x", "a"], id="gnmt prefers the short output"),
        pytest.param("length", ["x"] + ["b"] * 8, id="length prefers the long output"),
    ],
)
def test_the_length_penalty_chooses_the_best_output(penalty, best_subwords):
    """The stand-in for CTranslate2 returns a short output (score -1.0) and a long one (-0.6).

    These are log-probabilities divided by the length: the penalty `length` prefers -0.6. The GNMT
    penalty divides the log-probabilities by less: the short output gets -2.25, the long one -2.4.
    """
    settings = SETTINGS | {"length_penalty": {"kind": penalty, "alpha": 1.0}}

    outputs = search(StandInTranslator(), [[], ["x"]], settings)

    assert outputs[1] == best_subwords


def test_the_gnmt_penalty_divides_by_five_plus_the_length_over_six():
    """CTranslate2's score times the length is the log-probability.

    The short output has the score -1.0 and the subwords a, a; the long one -0.6 and nine times b.
    """
    # 3 subwords with EOS.
    short_score = -1.0 * 3 / ((5 + 3) / 6)
    assert short_score == -2.25
    assert score(SHORT_OUTPUT, SETTINGS, max_length=20) == pytest.approx(short_score)
    # 10 subwords with EOS.
    long_score = -0.6 * 10 / ((5 + 10) / 6)
    assert long_score == pytest.approx(-2.4)
    assert score(LONG_OUTPUT, SETTINGS, max_length=20) == pytest.approx(long_score)


def test_the_length_of_an_output_that_was_cut_off_does_not_include_eos():
    """LONG_OUTPUT has the score -0.6 and 9 subwords, which is the maximum length here.

    CTranslate2's score times the length is the log-probability, which GNMT's penalty divides.
    """
    expected_score = -0.6 * 9 / ((5 + 9) / 6)  # 9 subwords, without EOS

    assert score(LONG_OUTPUT, SETTINGS, max_length=9) == pytest.approx(expected_score)


def test_alpha_is_the_exponent_of_the_length_penalty():
    """SHORT_OUTPUT has the score -1.0, the log-probability / 3^alpha: it has 3 subwords with EOS.

    The GNMT penalty is ((5 + length) / 6)^alpha.
    """
    settings = SETTINGS | {"length_penalty": {"kind": "gnmt", "alpha": 0.5}}
    expected_score = -1.0 * (3 / ((5 + 3) / 6)) ** 0.5

    assert score(SHORT_OUTPUT, settings, max_length=20) == pytest.approx(expected_score)


def test_the_penalty_length_gives_the_score_of_ctranslate2():
    """CTranslate2 returns -0.6 for LONG_OUTPUT, which it has divided by the length already."""
    settings = SETTINGS | {"length_penalty": {"kind": "length", "alpha": 1.0}}

    assert score(LONG_OUTPUT, settings, max_length=20) == -0.6
