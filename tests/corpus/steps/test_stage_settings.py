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

# Next to the corpus `own` of PARAMS: a corpus that differs from it in every setting, and a corpus
# with several directions.
OTHER_CORPORA = """\
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


@pytest.fixture
def settings(tmp_path):
    """The settings of a project with the corpora own, other and many."""
    path = tmp_path / "params.yaml"
    path.write_text(PARAMS.replace("systems:\n", OTHER_CORPORA))
    return load_settings(path, ROOT)


@pytest.mark.parametrize("corpus", ["own", "other"])
@pytest.mark.parametrize(
    ("stage", "input_folder", "output_folder", "filter_stats"),
    [
        (Cleaning, "raw/{corpus}/given", "clean/{corpus}/together", "clean"),
        (Deduplication, "clean/{corpus}/together", "dedup/{corpus}", "dedup"),
        (Filtering, "dedup/{corpus}", "filter/{corpus}", "filter"),
        (Tokenizing, "split/{corpus}", "tokens/{corpus}", "tokenize"),
        (Binarizing, "tokens/{corpus}", "binary/{corpus}", "binarize"),
    ],
)
def test_a_stage_reads_and_writes_the_folders_of_its_corpus(
    settings, tmp_path, corpus, stage, input_folder, output_folder, filter_stats
):
    """The corpora `own` and `other` translate from de to no."""
    step = stage.for_corpus(corpus, settings.corpus(corpus), tmp_path)

    data = tmp_path / "data"
    assert step.corpus == corpus
    assert step.input_text.path == data / input_folder.format(corpus=corpus)
    assert step.input_text.languages == ("de", "no")
    assert step.output == data / output_folder.format(corpus=corpus)
    assert step.filter_stats_path == data / "filter_stats" / corpus / f"{filter_stats}.json"


@pytest.mark.parametrize("name", ["own", "other"])
def test_the_stage_clean_has_the_edits_of_its_corpus(settings, tmp_path, name):
    corpus = settings.corpus(name)

    assert Cleaning.for_corpus(name, corpus, tmp_path).edits == corpus.clean


@pytest.mark.parametrize("name", ["own", "other"])
def test_the_stage_dedup_has_the_settings_and_edits_of_its_corpus(settings, tmp_path, name):
    """The corpora `own` and `other` differ in all their settings.

    The edits are needed to compare training text, which is edited, with held-out sets.
    """
    corpus = settings.corpus(name)

    dedup = Deduplication.for_corpus(name, corpus, tmp_path)

    assert dedup.settings == corpus.dedup
    assert dedup.edits == corpus.clean


@pytest.mark.parametrize("name", ["own", "other"])
def test_the_stage_filter_has_the_checks_and_tokenizer_of_its_corpus(settings, tmp_path, name):
    """The corpora `own` and `other` differ in all their settings; checks count tokens."""
    corpus = settings.corpus(name)

    filtering = Filtering.for_corpus(name, corpus, tmp_path)

    assert filtering.checks == corpus.filter
    assert filtering.tokenize == corpus.tokenize


@pytest.mark.parametrize("name", ["own", "other"])
def test_the_stage_tokenize_has_the_tokenizer_and_edits_of_its_corpus(settings, tmp_path, name):
    """The corpora `own` and `other` differ in all their settings."""
    corpus = settings.corpus(name)

    tokenizing = Tokenizing.for_corpus(name, corpus, tmp_path)

    assert tokenizing.settings == corpus.tokenize
    assert tokenizing.edits == corpus.clean
    # The corpus has files for train only; its other sets are drawn from the training text.
    assert tokenizing.sets_with_files == {"train"}


@pytest.mark.parametrize("name", ["own", "other"])
def test_the_stage_binarize_has_the_settings_of_its_corpus(settings, tmp_path, name):
    """The corpora `own` and `other` differ in all their settings."""
    corpus = settings.corpus(name)

    binarizing = Binarizing.for_corpus(name, corpus, tmp_path)

    assert binarizing.tokenize == corpus.tokenize
    assert binarizing.edits == corpus.clean
    assert binarizing.vocabulary == corpus.vocabulary
    assert binarizing.segmentation == tmp_path / "data" / "bpe" / name / "own"
    assert binarizing.pairs_header is None  # Only multilingual corpora have language tags.


@pytest.mark.parametrize("stage", [Cleaning, Deduplication, Filtering, Tokenizing, Binarizing])
def test_a_stage_of_two_corpora_with_different_settings_has_two_fingerprints(
    settings, tmp_path, stage
):
    """A fingerprint, the SHA-256 of the settings, tells whether an output is up to date.

    The corpora `own` and `other` differ in all their settings.
    """
    stage_of_own = stage.for_corpus("own", settings.corpus("own"), tmp_path)
    stage_of_other = stage.for_corpus("other", settings.corpus("other"), tmp_path)

    assert stage_of_own.settings_sha256 != stage_of_other.settings_sha256


def test_a_corpus_with_several_directions_is_binarized_with_a_tag_per_target_language(
    settings, tmp_path
):
    """The corpus `many` has the directions en-de and fr-en: its targets are de and en."""
    binarizing = Binarizing.for_corpus("many", settings.corpus("many"), tmp_path)

    assert binarizing.pairs_header == {"tags": {"<2de>": "de", "<2en>": "en"}}
