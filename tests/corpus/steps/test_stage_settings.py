"""A stage of a corpus reads, writes and uses what belongs to this corpus."""

import pytest

from bleuprint.config.experiment import load_settings
from bleuprint.corpus.clean import Cleaning
from bleuprint.corpus.dedup import Deduplication
from bleuprint.corpus.filter import Filtering
from bleuprint.corpus.tokenize import Tokenizing
from bleuprint.dataset.binarize import Binarizing
from params import PARAMS
from root import ROOT

# Beside `own`, a corpus that differs from it in every setting, and one of several directions.
OTHERS = """\
  other:
    like: own
    clean: {unicode: {form: NFKC}}
    dedup: {pairs: false, sources: true, targets: false, decontaminate: exact}
    filter: {length: {min: 2, max: 90}}
    tokenize: {name: characters, lowercase: true}
    vocabulary: {bpe: {num_merges: 20, joint: true, threshold: 0}}
  many:
    from: phrasebook
    directions:
      en-de: {}
      fr-en: {}
    split: {temperature: 5}
    vocabulary: {bpe: {num_merges: 10}}
systems:
"""
STAGES = [
    (Cleaning, "raw/CORPUS/given", "clean/CORPUS", "clean"),
    (Deduplication, "clean/CORPUS", "dedup/CORPUS", "dedup"),
    (Filtering, "dedup/CORPUS", "filter/CORPUS", "filter"),
    (Tokenizing, "split/CORPUS", "tokens/CORPUS", "tokenize"),
    (Binarizing, "tokens/CORPUS", "binary/CORPUS", "binarize"),
]


@pytest.fixture
def settings(tmp_path):
    path = tmp_path / "params.yaml"
    path.write_text(PARAMS.replace("systems:\n", OTHERS))
    return load_settings(path, ROOT)


@pytest.mark.parametrize("corpus", ["own", "other"])
@pytest.mark.parametrize(("stage", "before", "after", "filter_stats"), STAGES)
def test_paths_are_those_of_the_corpus(
    settings, tmp_path, corpus, stage, before, after, filter_stats
):
    made = stage.for_corpus(corpus, settings.corpus(corpus), tmp_path)
    data = tmp_path / "data"
    assert made.corpus == corpus
    assert made.input_text.path == data / before.replace("CORPUS", corpus)
    assert made.input_text.languages == ("de", "no")
    assert made.output == data / after.replace("CORPUS", corpus)
    assert made.filter_stats_path == data / "filter_stats" / corpus / f"{filter_stats}.json"


@pytest.mark.parametrize("name", ["own", "other"])
def test_settings_are_those_of_the_corpus(settings, tmp_path, name):
    corpus = settings.corpus(name)
    cleaning, dedup, filtering, tokenizing, binarizing = (
        stage.for_corpus(name, corpus, tmp_path) for stage, *_ in STAGES
    )
    assert cleaning.edits == corpus.clean
    assert (dedup.settings, dedup.edits) == (corpus.dedup, corpus.clean)
    assert (filtering.checks, filtering.tokenize) == (corpus.filter, corpus.tokenize)
    assert (tokenizing.settings, tokenizing.edits) == (corpus.tokenize, corpus.clean)
    assert tokenizing.given == {"train"}
    assert (binarizing.tokenize, binarizing.edits) == (corpus.tokenize, corpus.clean)
    assert binarizing.vocabulary == corpus.vocabulary
    assert binarizing.segmentation == tmp_path / "data" / "bpe" / name / "own"
    assert binarizing.pairs_header is None


def test_two_corpora_have_different_settings(settings, tmp_path):
    for stage, *_ in STAGES:
        own, other = (
            stage.for_corpus(name, settings.corpus(name), tmp_path) for name in ("own", "other")
        )
        assert own.settings_sha256 != other.settings_sha256, stage


def test_several_directions_are_binarized_with_their_tags(settings, tmp_path):
    binarizing = Binarizing.for_corpus("many", settings.corpus("many"), tmp_path)
    assert binarizing.pairs_header == {"tags": {"<2de>": "de", "<2en>": "en"}}
