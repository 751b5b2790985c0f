"""Each direction of a multilingual corpus, `many`, is inspected and scored as one language pair."""

import shutil
from contextlib import chdir
from dataclasses import replace

import pytest

from bleuprint.config.experiment import load_resolved_settings
from bleuprint.config.paths import Run, corpus_folder
from bleuprint.corpus.download.download import Sample
from bleuprint.corpus.download.fetch import Downloads
from bleuprint.corpus.filter import Filtering
from bleuprint.corpus.inspect import inspect_corpus
from bleuprint.corpus.steps.filter_stats import SetCounts
from bleuprint.corpus.test_sets import describe_test_sets, read_set_description
from bleuprint.decoding.translation_record import TRANSLATION, TranslationRecord
from bleuprint.model.description import Averaged
from bleuprint.rules import CHECKS
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.json_files import read_json
from bleuprint.scoring.bleu import bleu_metric
from bleuprint.scoring.metric import TranslatedSet
from bleuprint.scoring.score import score_run, score_test_set
from corpora import lines_to_text
from multilingual import DIRECTIONS, TRAINING_PAIRS, languages_of, sentences_of_test_set


@pytest.mark.parametrize(
    ("test_set", "documents"),
    [("en-de-news", ["a", "a", "b", "b"]), ("de-en-news", None)],
    ids=["en-de, with documents", "de-en, without documents"],
)
def test_a_test_set_gets_the_document_ids_of_its_own_direction(
    root, tmp_path, corpus, test_set, documents
):
    """Only the test set of en-de has a file with the document of each line."""
    data = shutil.copytree(root / "data", tmp_path / "data")
    # A line with the document's id for each of the four sentences.
    ids_path = data / "raw/many/given/en-de/test.news.documents"
    ids_path.parent.mkdir(parents=True, exist_ok=True)
    ids_path.write_text("a\na\nb\nb\n")

    describe_test_sets("many", corpus, tmp_path)

    description = read_json(data / f"test_stats/many/{test_set}.json")
    assert description["documents"] == documents


def test_word_translations_are_not_learned_for_a_zero_shot_direction(root, corpus):
    """The check word_alignment learns from training pairs; a zero-shot direction has none."""
    pair = corpus.language_pair("many", "de-fr")
    check = CHECKS["word_alignment"](min=1.0)

    filtering = Filtering.for_corpus("many/de-fr", replace(pair, filter=(check,)), root)

    assert filtering.translations is None


def test_a_zero_shot_direction_cannot_be_inspected(root, tmp_path):
    with pytest.raises(UserError, match="is zero-shot, so there is no training text"):
        inspect_corpus("many/de-fr", load_resolved_settings(root), None, None, tmp_path, 1)


def test_inspections_of_all_directions_count_what_the_stages_count(root, tmp_path, stats_by_stage):
    """`bleuprint inspect` runs the stages on a sample, here on all pairs of one direction.

    The sums over all directions must equal the statistics that the stages themselves have written.
    """
    settings = load_resolved_settings(root)
    sample_of_all = Sample(pairs=1000, seed=1)
    source = Downloads(None, tmp_path / "store", None)

    sums = {"clean": SetCounts(), "dedup": SetCounts(), "filter": SetCounts()}
    with chdir(root):
        for direction in TRAINING_PAIRS:
            inspection = inspect_corpus(
                f"many/{direction}", settings, sample_of_all, source, tmp_path, 1
            )
            for stage, counts in sums.items():
                counts.add(inspection.stages[stage])

    for stage, counts in sums.items():
        assert counts.dropped == stats_by_stage[stage]["train"].dropped
        assert counts.pairs_out == stats_by_stage[stage]["train"].pairs_out


def test_a_direction_is_chosen_by_its_name(corpus):
    assert corpus.language_pair("many", "de-fr").languages == ("de", "fr")


@pytest.mark.parametrize(
    ("direction", "message"),
    [
        pytest.param(
            None, "Choose one by --direction: en-de, de-en, en-fr, de-fr", id="no direction"
        ),
        pytest.param(
            "fr-de",
            "--direction fr-de: many has only en-de, de-en, en-fr, de-fr",
            id="unknown direction",
        ),
    ],
)
def test_one_of_the_directions_of_a_multilingual_corpus_must_be_named(corpus, direction, message):
    with pytest.raises(UserError, match=message):
        corpus.language_pair("many", direction)


def test_a_corpus_with_one_language_pair_has_no_directions_to_choose_from(corpus):
    """The option --direction is needed only for a multilingual corpus."""
    bilingual_corpus = corpus.language_pair("many", "en-de")

    without_option = bilingual_corpus.language_pair("one", None)

    assert without_option is bilingual_corpus
    with pytest.raises(UserError, match=r"one has one language pair, en-de\. Remove --direction"):
        bilingual_corpus.language_pair("one", "en-de")


def imperfect_translations(direction):
    """Return translations of a test set of which the first is right, and others have an error."""
    _, target_language = languages_of(direction)
    references = sentences_of_test_set(direction, target_language)
    translations = [references[0]]
    for reference in references[1:]:
        translations.append(reference.replace("1", "one ", 1))
    return translations


@pytest.fixture(scope="module")
def scores(root):
    """The scores of a run by test set, for imperfect translations of all directions."""
    run = Run("base", "many", 1)
    hypotheses = root / run.results_folder / "hypotheses"
    hypotheses.mkdir(parents=True)
    for direction in DIRECTIONS:
        text = lines_to_text(imperfect_translations(direction))
        (hypotheses / f"test.{direction}-news.tgt").write_text(text)
    record = TranslationRecord("f", Averaged({}, []), {}, {}, {})
    record.write(root / run.results_folder / TRANSLATION)
    return score_run(load_resolved_settings(root), *run, root)


def test_a_run_has_scores_for_the_test_set_of_each_direction(scores):
    """The corpus `many` has the directions en-de, de-en, en-fr and de-fr, which is zero-shot."""
    assert list(scores) == ["en-de-news", "de-en-news", "en-fr-news", "de-fr-news"]


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_the_bleu_of_a_direction_is_computed_in_its_target_language(scores, direction):
    """The first translation of each test set is right, the others have an error.

    The tokenizer of BLEU depends on the target language; the expected value is that of sacreBLEU.
    """
    _, target_language = languages_of(direction)

    bleu_values = []
    for metric in scores[f"{direction}-news"]["metrics"]:
        if metric["metric"] == "bleu" and metric["group"] == "":
            bleu_values.append(metric["value"])

    bleu = bleu_metric(sentences_of_test_set(direction, target_language), target_language)
    expected = bleu.corpus_score(imperfect_translations(direction), None).score
    assert bleu_values == [pytest.approx(expected)]
    assert 0 < expected < 100


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_the_scores_of_a_direction_equal_those_of_a_corpus_with_this_language_pair(
    root, scores, direction
):
    """The first translation of each test set is right, the others have an error.

    `scores` is the result for the multilingual corpus; `score_test_set` scores one language pair.
    """
    source_language, target_language = languages_of(direction)
    descriptions = corpus_folder("many", "test_stats", root)
    translated_set = TranslatedSet(
        sentences_of_test_set(direction, source_language),
        sentences_of_test_set(direction, target_language),
        imperfect_translations(direction),
        load_resolved_settings(root).corpus(f"many/{direction}"),
        read_set_description(descriptions, f"{direction}-news"),
    )

    metrics = scores[f"{direction}-news"]["metrics"]

    assert metrics == score_test_set(translated_set)
    assert "wrong language" in {metric["metric"] for metric in metrics}
