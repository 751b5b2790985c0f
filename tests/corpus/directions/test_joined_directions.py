"""The directions of a multilingual corpus, `many`, are sampled and joined into one training text.

Each source begins with a tag that names its target language, such as <2de>.
"""

import shutil
from collections import Counter
from contextlib import chdir
from dataclasses import replace

import pytest

from bleuprint.config.paths import corpus_folder, filter_stats_file, shards_folder
from bleuprint.config.synthetic import check_synthetic_texts
from bleuprint.corpus.clean import Cleaning
from bleuprint.corpus.steps.directions import join_tokens, sampled_pairs
from bleuprint.corpus.steps.filter_stats import read_filter_stats
from bleuprint.corpus.steps.shard import AllShards, Shard, WholeText
from bleuprint.corpus.steps.sharded import run_step_on_pairs
from bleuprint.dataset.binarized import BinaryCorpus
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.schema import SettingError
from bleuprint.text.parallel import TextFolder
from bleuprint.text.tokenizers import tokenizer_for
from corpora import file_contents, targets_of
from multilingual import DIRECTIONS, SENTENCES, TRAINING_PAIRS, languages_of


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


def test_only_a_direction_whose_pairs_are_copied_gets_new_files_by_the_split(root):
    """The 4 pairs of en-fr are sampled more often; the other directions keep theirs.

    Files that do not change are hard links to those of the stage filter.
    """
    changed_files = set()
    for path in (root / "data/filter/many").rglob("*.??"):
        name = path.relative_to(root / "data/filter/many")
        if not (root / "data/split/many" / name).samefile(path):
            changed_files.add(name.as_posix())

    assert changed_files == {"en-fr/train.en", "en-fr/train.fr"}


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

    with pytest.raises(SettingError, match="a corpus with directions cannot contain") as error:
        check_synthetic_texts({"many": corpus}, {})

    assert error.value.keys == ["corpora", "many", "files", "train", "en-de-a"]
