"""The search of an exported system, without CTranslate2: limits, batches and penalties."""

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
# A score of CTranslate2 is the log probability divided by length^alpha, EOS included.
SHORT = (-1.0, ["a"] * 2)
LONG = (-0.6, ["b"] * 9)


class Recorder:
    """Takes the place of CTranslate2, and keeps the calls.

    Each sentence has two outputs, SHORT and LONG, which begin with its own first subword.
    """

    def __init__(self):
        self.calls = []

    def translate_batch(self, sentences, **options):
        self.calls.append((sentences, options))
        scores, hypotheses = zip(SHORT, LONG, strict=True)
        results = []
        for first, *_ in sentences:
            outputs = [[first, *hypothesis[1:]] for hypothesis in hypotheses]
            results.append(SimpleNamespace(scores=scores, hypotheses=outputs))
        return results


def limits(sentences, **changes):
    """The limit of length with which each sentence is searched, in the order of the searches."""
    recorder = Recorder()
    search(recorder, sentences, SETTINGS | changes)
    return [
        (len(sentence), options["max_decoding_length"])
        for batch, options in recorder.calls
        for sentence in batch
    ]


def test_the_limit_follows_from_the_source_and_the_positions():
    # 2 * 3 + 7 and 2 * 5 + 7; 2 * 8 + 7 is more than 20 positions have room for beside EOS
    sentences = [["x"] * 3, ["x"] * 5, ["x"] * 8]
    assert limits(sentences) == [(3, 13), (5, 17), (8, 19)]
    assert limits(sentences, max_positions=100) == [(3, 13), (5, 17), (8, 23)]
    assert limits(sentences, max_len_a=1.5) == [(3, 11), (5, 14), (8, 19)]


def test_sentences_of_one_limit_are_searched_together_and_stay_in_order():
    recorder = Recorder()
    sentences = [["u"], ["v", "v"], [], ["w"]]
    outputs = search(recorder, sentences, SETTINGS)
    assert [batch for batch, _ in recorder.calls] == [[["u"], ["w"]], [["v", "v"]]]
    assert [output[:1] for output in outputs] == [["u"], ["v"], [], ["w"]]


def test_nothing_is_searched_if_an_output_may_have_no_subword():
    recorder = Recorder()
    assert search(recorder, [["x"]], SETTINGS | {"max_len_a": 0, "max_len_b": 0}) == [[]]
    assert recorder.calls == []


def test_the_search_has_the_settings_of_the_export():
    recorder = Recorder()
    search(recorder, [["x"], ["x"] * 8], SETTINGS)
    for (_, options), least in zip(recorder.calls, (9, 15), strict=True):
        # no more than the limit, which is 2 * 1 + 7
        assert options["min_decoding_length"] == least
        assert options["beam_size"] == options["num_hypotheses"] == 3
        assert options["length_penalty"] == 1.0
        assert options["no_repeat_ngram_size"] == 4
        assert options["disable_unk"] is True
        # longer sources than this are cut by the caller, which says so
        assert options["max_input_length"] == 0


@pytest.mark.parametrize(("kind", "best"), [("gnmt", SHORT), ("length", LONG)])
def test_the_best_output_is_that_of_the_length_penalty(kind, best):
    settings = SETTINGS | {"length_penalty": {"kind": kind, "alpha": 1.0}}
    _, hypothesis = best
    assert search(Recorder(), [[], ["x"]], settings)[1] == ["x", *hypothesis[1:]]


def test_scores_are_those_worked_out_by_hand():
    # three with EOS: -1.0 * 3 / (8 / 6); ten with EOS: -0.6 * 10 / (15 / 6)
    assert score(SHORT, SETTINGS, 20) == pytest.approx(-2.25)
    assert score(LONG, SETTINGS, 20) == pytest.approx(-2.4)
    # cut at nine subwords, without EOS: -0.6 * 9 / (14 / 6)
    assert score(LONG, SETTINGS, 9) == pytest.approx(-5.4 / (14 / 6))
    half = SETTINGS | {"length_penalty": {"kind": "gnmt", "alpha": 0.5}}
    assert score(SHORT, half, 20) == pytest.approx(-1.0 * (3 / (8 / 6)) ** 0.5)
    by_length = SETTINGS | {"length_penalty": {"kind": "length", "alpha": 1.0}}
    assert score(LONG, by_length, 20) == -0.6
