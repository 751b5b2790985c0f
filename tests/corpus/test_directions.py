"""A multilingual corpus, `many`, has several directions; each is scored as its own language pair.

The training pairs of all directions are sampled and joined, and each source begins with a tag that
names its target language, such as <2de>.
"""

import runpy
import shutil
import sys
from collections import Counter
from contextlib import chdir
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import systems
from bleuprint.config.experiment import load_resolved_settings
from bleuprint.config.paths import Run, corpus_folder, filter_stats_file, shards_folder
from bleuprint.config.synthetic import check_synthetic_texts
from bleuprint.corpus.clean import Cleaning
from bleuprint.corpus.download.download import Sample
from bleuprint.corpus.download.fetch import Downloads
from bleuprint.corpus.filter import Filtering
from bleuprint.corpus.inspect import inspect_corpus
from bleuprint.corpus.steps.directions import join_tokens, sampled_pairs
from bleuprint.corpus.steps.filter_stats import SetCounts, filter_stats_by_stage, read_filter_stats
from bleuprint.corpus.steps.shard import AllShards, Shard, WholeText
from bleuprint.corpus.steps.sharded import run_step_on_pairs
from bleuprint.corpus.test_sets import describe_test_sets, read_set_description
from bleuprint.dataset.binarized import BinaryCorpus
from bleuprint.dataset.subwords.vocabulary import EOS
from bleuprint.decoding.engine import Engine
from bleuprint.decoding.translate import best_translations
from bleuprint.decoding.translation_record import TRANSLATION, TranslationRecord
from bleuprint.model.description import Averaged
from bleuprint.model.transformer import Transformer
from bleuprint.rules import CHECKS
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.json_files import read_json
from bleuprint.runtime.schema import SettingError
from bleuprint.scoring.bleu import bleu_metric
from bleuprint.scoring.metric import TranslatedSet
from bleuprint.scoring.score import score_run, score_test_set
from bleuprint.serving.translator import Translator
from bleuprint.text.parallel import TextFolder
from bleuprint.text.tokenizers import tokenizer_for
from corpora import file_contents, lines_to_text, targets_of
from params import PARAMS, write_resolved
from root import ROOT
from steps import DATA_STAGES

# 24 sentences in each language, of which those with the same number translate each other.
BINARY_NUMBERS = [f"{number:05b}" for number in range(24)]
SENTENCES = {
    "en": list(map("It's {} o'clock, isn't it?".format, BINARY_NUMBERS)),
    "de": list(map("Es ist {} Uhr, nicht wahr?".format, BINARY_NUMBERS)),
    "fr": list(map("C'est l'heure {}, n'est-ce pas ?".format, BINARY_NUMBERS)),
}
# The number of training pairs of each direction that is trained; de-fr is zero-shot.
TRAINING_PAIRS = {"en-de": 14, "de-en": 14, "en-fr": 4}
DIRECTIONS = ["en-de", "de-en", "en-fr", "de-fr"]
# The numbers of the sentences in each file. The zero-shot direction has a test set of its own.
RANGES = {
    "train": range(14),
    "valid": range(14, 16),
    "test": range(16, 20),
    "zero_shot_test": range(20, 24),
}


def is_zero_shot(direction):
    """Whether the model is not trained on a direction."""
    return direction not in TRAINING_PAIRS


def languages_of(direction):
    """Return the source and the target language of a direction."""
    return tuple(direction.split("-"))


def sentences_of(name, language):
    """Return the sentences of a file of inputs/."""
    return [SENTENCES[language][number] for number in RANGES[name]]


def sentences_of_test_set(direction, language):
    """Return the sentences of the test set of a direction."""
    return sentences_of("zero_shot_test" if is_zero_shot(direction) else "test", language)


def text_of_params(name, direction, pairs=None):
    """Return the settings of a text of a direction in params.yaml, in YAML.

    Args:
        name: The name of the files in inputs/.
        direction: The direction.
        pairs: The setting `pairs`: how many pairs to take; all if None.
    """
    source, target = languages_of(direction)
    amount = f", pairs: {pairs}" if pairs else ""
    return (
        f"{{a: {{license_and_citation: own, source: {{path: inputs/{name}.{source}}}, "
        f"target: {{path: inputs/{name}.{target}}}{amount}}}}}"
    )


def direction_of_params(direction):
    """Return the entry of a direction in params.yaml, in YAML."""
    train = text_of_params("train", direction, TRAINING_PAIRS.get(direction, 14))
    valid = text_of_params("valid", direction)
    test_name = "zero_shot_test" if is_zero_shot(direction) else "test"
    tests = text_of_params(test_name, direction)
    zero_shot = "zero_shot: true, " if is_zero_shot(direction) else ""
    files = f"{{train: {train}, valid: {valid}, tests: {{news: {tests}}}}}"
    return f"      {direction}: {{{zero_shot}files: {files}}}\n"


def params_with_directions():
    """Return a params.yaml with the corpus `many`, whose directions are sampled with T = 2."""
    directions = "".join(direction_of_params(direction) for direction in DIRECTIONS)
    corpus = (
        f"  many:\n    directions:\n{directions}"
        "    split: {temperature: 2}\n"
        "    vocabulary: {bpe: {num_merges: 10}}\n"
        '    license_and_citation: {own: {license: none, bibtex: "@misc{own,}"}}\n'
    )
    return PARAMS.replace("systems:\n", f"{corpus}systems:\n")


def run_stage(script, root):
    """Run the script of a stage on the corpus `many`, in this process."""
    with chdir(root), pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [f"{script}.py", "many"])
        runpy.run_path(str(ROOT / "stages" / f"{script}.py"), run_name="stage")["main"]()


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """The folder of a project after all stages of data.

    The German training sentence 3 is a sentence of the test set of de-fr, so that the stage dedup
    drops its pairs.
    """
    root = tmp_path_factory.mktemp("many")
    (root / "inputs").mkdir()
    for language in SENTENCES:
        for name in RANGES:
            lines = sentences_of(name, language)
            if (name, language) == ("train", "de"):
                lines[3] = SENTENCES["de"][21]
            path = root / "inputs" / f"{name}.{language}"
            path.write_text(lines_to_text(lines))
    (root / "params.yaml").write_text(params_with_directions())
    write_resolved(root)
    for script in DATA_STAGES:
        run_stage(script, root)
        # Snakemake leaves such files in the folders that a stage writes.
        for output in (root / "data").glob("*/many"):
            (output / ".snakemake_timestamp").touch()
    return root


@pytest.fixture
def corpus(root):
    """The settings of the corpus `many`."""
    return load_resolved_settings(root).corpus("many")


@pytest.mark.parametrize("temperature", [1, 2, 5, 100])
def test_the_share_of_a_direction_is_proportional_to_its_size_to_the_power_of_1_over_t(temperature):
    """Temperature-based sampling copies pairs of small directions: they are seen more often.

    T is the temperature: 1 keeps the sizes, a high T makes all directions equally large.
    """
    pairs = {"a": 100_000, "b": 10_000, "c": 10}

    sampled = sampled_pairs(pairs, temperature)

    weights = {}
    for name, count in pairs.items():
        weights[name] = count ** (1 / temperature)
    for name, count in sampled.items():
        share = count / sum(sampled.values())
        expected_share = weights[name] / sum(weights.values())
        assert share == pytest.approx(expected_share, abs=1e-4)


@pytest.mark.parametrize("temperature", [1, 2, 5, 100])
def test_sampling_keeps_the_largest_direction_and_enlarges_others(temperature):
    """Temperature-based sampling copies pairs of small directions and keeps all of large ones."""
    pairs = {"a": 100_000, "b": 10_000, "c": 10}

    sampled = sampled_pairs(pairs, temperature)

    assert sampled["a"] == pairs["a"]
    assert sampled["b"] >= pairs["b"]


@pytest.mark.parametrize("temperature", [1, 2, 5, 100])
def test_only_a_temperature_of_1_leaves_all_directions_as_they_are(temperature):
    """Temperature-based sampling copies pairs of small directions: they are seen more often."""
    pairs = {"a": 100_000, "b": 10_000, "c": 10}

    assert (sampled_pairs(pairs, temperature) == pairs) == (temperature == 1)


def count_training_pairs(root, tokenize):
    """Return how often each detokenized training pair occurs, by direction, without its tag.

    Args:
        root: The folder of the project.
        tokenize: The settings of the tokenizer.
    """
    language_by_start = {"It": "en", "Es": "de", "C'": "fr"}
    counts = {direction: Counter() for direction in TRAINING_PAIRS}
    for source, target in TextFolder(root / "data/tokens/many", "src", "tgt").pairs("train"):
        tag, _, source_without_tag = source.partition(" ")
        source_language = language_by_start[source_without_tag[:2]]
        target_language = language_by_start[target[:2]]
        assert tag == f"<2{target_language}>"
        source_tokenizer = tokenizer_for(source_language, tokenize)
        target_tokenizer = tokenizer_for(target_language, tokenize)
        pair = (
            source_tokenizer.detokenize(source_without_tag.split()),
            target_tokenizer.detokenize(target.split()),
        )
        counts[f"{source_language}-{target_language}"][pair] += 1
    return counts


def test_the_joined_training_text_has_the_sampled_number_of_pairs_of_each_direction(root, corpus):
    """The corpus `many` has 14 training pairs of en-de and of de-en, and 4 of en-fr.

    Its temperature is 2: a direction with n pairs gets a share proportional to the square root of
    n.
    """
    counts = count_training_pairs(root, corpus.tokenize)

    # The stage dedup dropped one of 14 pairs with German, which has a sentence of a test set.
    pairs_with_german = 13
    pairs_with_french = 4
    assert counts["en-de"].total() == pairs_with_german
    assert counts["de-en"].total() == pairs_with_german
    scale = (pairs_with_french / pairs_with_german) ** (1 / 2)
    assert counts["en-fr"].total() == round(pairs_with_german * scale)
    assert set(counts) == {"en-de", "de-en", "en-fr"}


@pytest.mark.parametrize("direction", TRAINING_PAIRS)
def test_the_joined_training_text_contains_each_pair_of_a_direction_equally_often(
    root, corpus, direction
):
    """Sampling copies the four pairs of en-fr to seven or so: no pair may have two copies more."""
    counts = count_training_pairs(root, corpus.tokenize)[direction]

    source_language, target_language = languages_of(direction)
    expected_pairs = set()
    for number in range(TRAINING_PAIRS[direction]):
        # The stage dedup has dropped the German sentence 3.
        if number == 3 and "de" in direction:
            continue
        pair = (SENTENCES[source_language][number], SENTENCES[target_language][number])
        expected_pairs.add(pair)
    assert set(counts) == expected_pairs
    assert max(counts.values()) - min(counts.values()) <= 1


def test_the_joined_corpus_has_one_validation_set_and_a_test_set_per_direction(root):
    """The corpus `many` has the directions en-de, de-en, en-fr and de-fr, which is zero-shot.

    The validation sets of all directions are joined, so that one loss chooses the checkpoint; BLEU
    is reported per direction.
    """
    text = TextFolder(root / "data/tokens/many", "src", "tgt")

    assert text.set_names() == [
        "train",
        "valid",
        "test.de-en-news",
        "test.de-fr-news",
        "test.en-de-news",
        "test.en-fr-news",
    ]


def test_a_zero_shot_direction_has_no_validation_pairs(root):
    """The corpus `many` has the directions en-de, de-en, en-fr and de-fr, which is zero-shot."""
    text = TextFolder(root / "data/tokens/many", "src", "tgt")

    assert text.count("valid") == 2 * len(TRAINING_PAIRS)  # Two pairs of each other direction.


def test_the_sources_of_a_zero_shot_test_set_begin_with_the_tag_of_the_target(root):
    """The tag <2fr> tells the model to translate to French, which it never did from German."""
    tokens = TextFolder(root / "data/tokens/many", "src", "tgt")

    first_pair = next(iter(tokens.pairs("test.de-fr-news")))

    # The test set begins with sentence 20, in which the time is 20 in binary digits.
    assert first_pair.source.startswith("<2fr> Es ist 10100 Uhr")


def test_the_references_of_a_zero_shot_test_set_are_kept_as_published(root):
    """Sentences 20 to 23 are the test set of the zero-shot direction de-fr."""
    text = TextFolder(root / "data/split/many", "src", "tgt")

    references = targets_of(text.pairs("test.de-fr-news"))

    assert references == SENTENCES["fr"][20:24]


@pytest.fixture
def stats_by_stage(root):
    """The filtering statistics of all stages, joined over the directions."""
    with chdir(root):
        return filter_stats_by_stage("many")


def test_statistics_of_the_download_are_those_of_each_text(stats_by_stage):
    assert stats_by_stage["download"]["train.en-fr-a"].pairs_in == 14
    assert stats_by_stage["download"]["test.de-fr-news.a"].pairs_out == 4


def test_statistics_of_cleaning_and_deduplication_are_sums_over_the_directions(stats_by_stage):
    assert stats_by_stage["clean"]["train"].pairs_out == 14 + 14 + 4
    # The German sentence 3, which is also in a test set, is once a source and once a target.
    assert stats_by_stage["dedup"]["train"].dropped["source_held_out"] == 1
    assert stats_by_stage["dedup"]["train"].dropped["target_held_out"] == 1


def test_statistics_of_the_split_count_copies_of_pairs(root, stats_by_stage):
    """Temperature-based sampling copies pairs of small directions after the stage filter."""
    pairs_after_sampling = BinaryCorpus(root / "data/binary/many").sets["train"].pairs

    split = stats_by_stage["split"]["train"]

    assert split.pairs_in == stats_by_stage["filter"]["train"].pairs_out
    assert split.pairs_out == pairs_after_sampling
    assert stats_by_stage["binarize"]["train"].pairs_out == pairs_after_sampling
    assert pairs_after_sampling > split.pairs_in
    assert split.changed == {"copies": pairs_after_sampling - split.pairs_in}


def test_no_statistics_of_single_directions_remain(root):
    """The statistics of all directions are joined in one file per stage."""
    folder = filter_stats_file("many", "clean", root).parent

    assert [path for path in folder.iterdir() if path.is_dir()] == []


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_a_translation_is_detokenized_in_the_language_of_the_tag(root, corpus, direction):
    """The source begins with a tag, such as <2de>, that names the target language.

    French has a space before a question mark, so that the wrong language would give another text.
    """
    binary_corpus = BinaryCorpus(root / "data/binary/many")
    _, target_language = languages_of(direction)
    sources = binary_corpus.side(f"test.{direction}-news", "src")
    targets = binary_corpus.side(f"test.{direction}-news", "tgt")

    translations = []
    for source, target in zip(sources, targets, strict=True):
        translations.append(binary_corpus.translation(source, target))

    assert translations == sentences_of_test_set(direction, target_language)
    words = binary_corpus.segmentation("tgt").decode(targets[0])
    tokenizer = tokenizer_for(target_language, corpus.tokenize)
    assert translations[0] == tokenizer.detokenize(words)


def random_translator(root, direction, **decode_settings):
    """Return a translator of a direction whose model has random weights."""
    with chdir(root):
        pair = load_resolved_settings().corpus("many").language_pair("many", direction)
        binary_corpus = BinaryCorpus(root / "data/binary/many")
        source_size = len(binary_corpus.segmentation("src").vocabulary)
        target_size = len(binary_corpus.segmentation("tgt").vocabulary)
        torch.manual_seed(1)
        settings = systems.model(tie_embeddings="none")
        model = Transformer(settings, source_size, target_size).eval()
        decode = systems.decode(**decode_settings)
        return Translator(model, binary_corpus, pair.clean, decode, None, pair.languages)


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_the_translator_gives_the_model_the_ids_of_the_binarized_corpus(root, direction):
    """Both put the tag of the target language, such as <2de>, before the source."""
    translator = random_translator(root, direction)
    source_language, _ = languages_of(direction)

    translations = translator(sentences_of_test_set(direction, source_language))

    sources = BinaryCorpus(root / "data/binary/many").side(f"test.{direction}-news", "src")
    for translation, source_ids in zip(translations, sources, strict=True):
        assert translation.pieces[0].source == source_ids.tolist()


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_the_alignment_of_a_translation_has_the_source_words_without_the_tag(root, direction):
    """A source begins with a tag, such as <2de>, that names the target language."""
    translator = random_translator(root, direction)
    source_language, _ = languages_of(direction)

    translations = translator(sentences_of_test_set(direction, source_language))

    tokens = TextFolder(root / "data/tokens/many", "src", "tgt").pairs(f"test.{direction}-news")
    for translation, pair in zip(translations, tokens, strict=True):
        _, *words = pair.source.split()
        assert translator.alignment(translation).source == words


def tag_ids(root):
    """Return the ids of the tag <2de>, which is several subwords in this corpus."""
    *ids, _ = BinaryCorpus(root / "data/binary/many").segmentation("src").encode(["<2de>"]).tolist()
    assert len(ids) > 1
    return ids


def test_each_piece_of_a_long_sentence_begins_with_the_tag(root):
    """A sentence that is too long for the model is translated in pieces.

    Without the tag, which names the target language, the model would translate a piece into any
    language.
    """
    translator = random_translator(root, "en-de", max_len_b=3)

    short, long = translator(["It's so. Isn't it?", "o'clock " * 200])

    assert len(short.pieces) == 1
    assert len(long.pieces) > 1
    tag = tag_ids(root)
    for piece in [*short.pieces, *long.pieces]:
        assert piece.source[: len(tag)] == tag
        assert len(piece.source) <= translator.model.settings.max_positions


def test_an_empty_sentence_has_an_empty_translation_although_its_tag_has_tokens(root):
    translator = random_translator(root, "en-de", max_len_b=3)

    assert translator([""])[0].translations[0].text == ""


class Side(list):
    """The source sentences of a set, as lists of ids."""

    @property
    def lengths(self):
        """The length of each sentence."""
        return np.array([len(sentence) for sentence in self])


def test_decoding_a_test_set_skips_a_source_that_consists_of_its_tag(root):
    """Such a source is an empty sentence, whose translation must be empty, too."""
    translator = random_translator(root, "en-de", max_len_b=3)
    tag = tag_ids(root)
    sentence = translator(["It's so. Isn't it?"])[0].pieces[0].source
    side = Side([[*tag, EOS], sentence])
    # A stand-in for a binarized corpus whose test set has these two sources.
    corpus = SimpleNamespace(
        source="src",
        side=lambda *_: side,
        search_lengths=lambda sources: translator.corpus.tags.search_lengths(
            sources, sources.lengths
        ),
    )

    translations = best_translations(Engine(translator.model, translator.decode), corpus, "test.x")

    has_tokens = [bool(translation.tokens) for translation in translations]
    assert has_tokens == [False, True]


def test_a_sentence_that_contains_a_tag_is_refused(root):
    translator = random_translator(root, "en-de", max_len_b=3)

    with pytest.raises(UserError, match="contains the word '<2fr>', which is the tag"):
        translator(["It is <2fr> o'clock."])


@pytest.mark.parametrize(
    ("test_set", "documents"), [("en-de-news", ["a", "a", "b", "b"]), ("de-en-news", None)]
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
            None, "choose one by --direction: en-de, de-en, en-fr, de-fr", id="no direction"
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
    with pytest.raises(UserError, match="one has one language pair, en-de; remove --direction"):
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


def test_cleaning_all_directions_in_shards_gives_the_same_files(root, corpus):
    """A cluster cleans parts of the text (shards) in jobs of their own, and then joins them.

    The fixture `root` has cleaned the whole text at once. The three trained directions have 14, 14
    and 4 training pairs.
    """
    clean_folder = corpus_folder("many", "clean", root)
    contents_without_shards = file_contents(clean_folder)

    with chdir(root):
        for shard in Shard.all(total=2):
            run_step_on_pairs(Cleaning, "many", corpus, shard, workers=1)
        # Snakemake expects the shards in these folders.
        assert (shards_folder("many", "clean") / "2-of-2" / "de-fr").is_dir()
        joined_shards = AllShards(total=2)
        run_step_on_pairs(Cleaning, "many", corpus, joined_shards, workers=1)

    assert file_contents(clean_folder) == contents_without_shards
    filter_stats = read_filter_stats(filter_stats_file("many", "clean", root))
    assert filter_stats["train"].pairs_in == 14 + 14 + 4


def test_a_stage_runs_although_a_later_stage_failed_and_left_statistics_of_a_direction(
    root, corpus
):
    """A failed stage leaves the statistics of single directions, which it joins at its end.

    The user then changes the settings and runs all stages again, from the first one on.
    """
    stats_of_failed_stage = filter_stats_file("many/de-en", "filter", root)
    stats_of_failed_stage.parent.mkdir()
    stats_of_failed_stage.write_text("{}")

    with chdir(root):
        run_step_on_pairs(Cleaning, "many", corpus, WholeText(), 1)  # Raises no exception.

    # Other tests use the same folder.
    shutil.rmtree(stats_of_failed_stage.parent)


def test_a_text_with_a_tag_as_a_source_word_is_refused(tmp_path, monkeypatch, corpus):
    """The model could not tell such a word from the tag of the target language.

    In a target, <2fr> is a word like any other, so that train.de is accepted.
    """
    monkeypatch.chdir(tmp_path)
    for direction in DIRECTIONS:
        source_language, target_language = languages_of(direction)
        folder = corpus_folder("many", "tokens") / direction
        folder.mkdir(parents=True)
        for name in ("train", "valid"):
            (folder / f"{name}.{source_language}").write_text("a b\nc <2fr> d\n")
            (folder / f"{name}.{target_language}").write_text("a <2fr>\nb\n")

    message = r"en-de/train.en:2: the text contains the word '<2fr>', which is the tag"
    with pytest.raises(UserError, match=message):
        join_tokens("many", corpus)


def test_a_monolingual_text_in_a_corpus_with_directions_is_refused(corpus):
    """A monolingual text is for back-translation, which only bilingual corpora support."""
    parallel_text = corpus.files.train["en-de-a"]
    monolingual_text = replace(parallel_text, source=None)
    train = {**corpus.files.train, "en-de-a": monolingual_text}
    corpus = replace(corpus, files=replace(corpus.files, train=train))

    with pytest.raises(SettingError, match="a corpus with directions cannot have such") as error:
        check_synthetic_texts({"many": corpus}, {})

    assert error.value.keys == ["corpora", "many", "files", "train", "en-de-a"]
