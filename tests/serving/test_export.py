"""The README of an exported system: its scores, the licenses of its texts, its provenance."""

from copy import copy

import pytest

from bleuprint.config.paths import Run
from bleuprint.config.system import Average
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.html import escape_markdown
from bleuprint.runtime.json_files import read_json
from bleuprint.scoring.metrics import METRICS
from bleuprint.serving.export import export, render_readme
from bleuprint.tracking.hardware import text_libraries
from mlservers import write_project
from systems import with_systems

TINY_RUN = Run("tiny", "news-en-de", 1)


@pytest.fixture
def settings(tmp_path, monkeypatch):
    """Return the settings of a project with results, and make its folder the working folder."""
    monkeypatch.chdir(tmp_path)
    return write_project(tmp_path, seeds=(1,))


def score_of_all_sentences(test_set_scores, metric):
    """Return the score of a whole test set by a metric, and not the score of a sentence group."""
    (score,) = [
        score
        for score in test_set_scores["metrics"]
        if score["metric"] == metric and score["group"] == ""
    ]
    return score


def test_the_readme_says_on_how_much_text_the_system_was_trained(settings):
    text = render_readme(settings, TINY_RUN, "int8", "7 pairs")

    assert ", trained on 7 pairs, " in text  # The last argument, which counts the training text.


@pytest.mark.parametrize("metric", ["bleu", "chrf2", "chrf2pp", "ter"])
def test_the_readme_lists_the_scores_on_each_test_set(settings, metric):
    """Each score has a row with its 95% interval, and each metric a line with its signature.

    The signature lists the options of sacreBLEU; without it, a score cannot be compared.
    """
    text = render_readme(settings, TINY_RUN, "int8", "7 pairs")

    scores = read_json(TINY_RUN.results_folder / "scores.json")
    assert scores
    label = METRICS[metric].label
    for test_set_scores in scores.values():
        score = score_of_all_sentences(test_set_scores, metric)
        interval = f"[{score['ci_low']:.2f}, {score['ci_high']:.2f}]"
        assert f"| {label} | {score['value']:.2f} | {interval} |\n" in text
        assert text.count(f"\n- {label}: `{score['signature']}`\n") == 1


def test_the_readme_lists_the_licenses_of_the_training_text(settings):
    text = render_readme(settings, TINY_RUN, "int8", "7 pairs")

    texts = settings.corpus(TINY_RUN.corpus).license_and_citation
    for name, text_settings in texts.items():
        assert f"- {name}: {escape_markdown(text_settings.license)}\n" in text


def test_the_readme_contains_the_fingerprint_of_the_training(settings):
    text = render_readme(settings, TINY_RUN, "int8", "7 pairs")

    training = read_json(TINY_RUN.results_folder / "training.json")
    assert training["fingerprint"] in text


def test_the_readme_contains_no_scores_of_translations_that_changed_after_scoring(settings):
    """It says instead that the translations have not been scored."""
    hypotheses = TINY_RUN.results_folder / "hypotheses" / "test.first.de"
    hypotheses.write_text("other\n")

    assert "had not been scored" in render_readme(settings, TINY_RUN, "int8", "7 pairs")


def test_the_export_of_an_ensemble_is_refused(settings, tmp_path):
    """An exported folder contains a single model; an ensemble translates with three."""
    ensemble = copy(settings.system_settings("tiny"))
    # Not by `replace`, which would check that the training keeps three checkpoints; it keeps one.
    object.__setattr__(ensemble, "average", Average(last=3, ensemble=True))
    settings = with_systems(settings, {"tiny": ensemble})

    with pytest.raises(
        UserError, match=r"^cannot export an ensemble\. Set average\.ensemble: false$"
    ):
        export(settings, TINY_RUN, tmp_path / "out", "float32")

    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("tokenizer", "source", "target", "tokenizer_packages"),
    [
        pytest.param("moses", "en", "de", ["sacremoses"], id="moses"),
        pytest.param("spacy", "en", "de", ["spacy", "sacremoses"], id="spacy"),
        pytest.param(
            "segmenter", "ja", "en", ["fugashi", "unidic-lite", "sacremoses"], id="segmenter"
        ),
        pytest.param("none", "en", "de", [], id="none"),
    ],
)
def test_the_required_packages_are_those_of_the_tokenizers_and_of_bpe(
    settings, tokenizer, source, target, tokenizer_packages
):
    """The README of an exported system lists them in a pip command.

    English has no segmenter and is tokenized by sacremoses; spaCy's tokens are joined by it.
    """
    corpus = copy(settings.corpus("news-en-de"))
    tokenize = copy(corpus.tokenize)
    # Not by `replace`, which would check that the packages of the tokenizer are installed.
    object.__setattr__(tokenize, "name", tokenizer)
    object.__setattr__(corpus, "tokenize", tokenize)
    object.__setattr__(corpus, "source", source)
    object.__setattr__(corpus, "target", target)

    assert text_libraries(corpus) == [*tokenizer_packages, "subword-nmt"]
