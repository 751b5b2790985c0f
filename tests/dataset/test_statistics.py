"""The statistics of a corpus equal counts that are made sentence by sentence."""

import pytest

from bleuprint.config.corpus import Bpe, Units, Words
from bleuprint.dataset import statistics
from bleuprint.dataset.binarized import BinaryCorpus
from bleuprint.dataset.statistics import CorpusStatistics
from bleuprint.dataset.subwords.vocabulary import SPECIALS
from bleuprint.text.parallel import read_lines
from corpora import PAIRS
from prepared import prepare

JOINT_BPE = Units(bpe=Bpe(num_merges=40, joint=True, threshold=0))
SEPARATE_BPE = Units(bpe=Bpe(num_merges=15, joint=False, threshold=0))
JOINT_WORDS = Units(words=Words(joint=True, max_size=1000, min_count=2))


def small_sets():
    """Return a training text, a validation set with an empty side, and a test set.

    The test set contains words whose characters are not all in the training text.
    """
    train = list(PAIRS[:4])
    for number in range(120):
        train.append((f"Na ja {number}.", f"Oh well {number}."))
    return {
        "train": train,
        "valid": [("Ein Qualm.", "")],
        "test.x": [*PAIRS[3:], ("Zebras Qxy", "Yaks")],
    }


def count_word_by_word(outputs, set_name, language):
    """Return the statistics of one side of a set, computed from the subwords of each word.

    Args:
        outputs: The prepared corpus.
        set_name: The name of the set.
        language: The language of the side.
    """
    segmentation = outputs.binary.segmentation(language)
    known_subwords = set(segmentation.vocabulary.tokens) - set(SPECIALS)
    counts = {"sentences": 0, "words": 0, "unsplit": 0, "tokens": 0, "unk": 0, "max_tokens": 0}
    for line in read_lines(outputs.root / "tokens" / f"{set_name}.{language}"):
        tokens_in_sentence = 0
        for word in line.split():
            subwords = segmentation.segment([word])
            counts["words"] += 1
            counts["unsplit"] += len(subwords) == 1
            counts["unk"] += sum(subword not in known_subwords for subword in subwords)
            tokens_in_sentence += len(subwords)
        counts["sentences"] += 1
        counts["tokens"] += tokens_in_sentence
        counts["max_tokens"] = max(counts["max_tokens"], tokens_in_sentence)
    return counts


@pytest.mark.parametrize(
    "units",
    [JOINT_BPE, SEPARATE_BPE, JOINT_WORDS],
    ids=["joint BPE", "separate BPE", "joint words"],
)
@pytest.mark.parametrize("sentences_at_once", [1, 2, 1 << 16])
def test_statistics_equal_counts_word_by_word(tmp_path, monkeypatch, units, sentences_at_once):
    """The statistics are computed from the ids of a binarized corpus, in blocks of sentences.

    The expected counts are computed from the tokens of the text, word by word.
    """
    monkeypatch.setattr(statistics, "_BLOCK_SENTENCES", sentences_at_once)
    outputs = prepare(tmp_path, small_sets(), units=units)

    corpus_statistics = CorpusStatistics.from_corpus(outputs.binary)

    assert list(corpus_statistics.sets) == ["train", "valid", "test.x"]
    assert corpus_statistics.joint == units.joint
    sides_with_equal_words = 0
    for set_name, sides in corpus_statistics.sets.items():
        for language, side in sides.items():
            expected = count_word_by_word(outputs, set_name, language)
            assert side.sentences == expected["sentences"]
            assert side.tokens == expected["tokens"]
            assert side.max_tokens == expected["max_tokens"]
            assert side.unk == expected["unk"]
            # An unknown subword counts as a word, so that other sides may have more words.
            if units.words or side.unk == 0:
                assert vars(side) == expected
                sides_with_equal_words += 1
    assert sides_with_equal_words >= 3


def test_the_statistics_of_a_joint_vocabulary_count_its_tokens_and_the_rare_ones(tmp_path):
    """Tokens that occur fewer than 10 times in the training text are rare."""
    outputs = prepare(tmp_path, small_sets(), units=JOINT_BPE)

    vocabularies = CorpusStatistics.from_corpus(outputs.binary).vocabularies

    counts_with_specials = outputs.binary.segmentation("de").vocabulary.counts
    counts = [count for _, count in counts_with_specials[len(SPECIALS) :]]
    rare_counts = [count for count in counts if count < 10]
    assert vocabularies["de"].size == len(counts)
    assert vocabularies["de"].below_10 == len(rare_counts)
    assert 0 < len(rare_counts) < len(counts)
    assert vocabularies["en"] == vocabularies["de"]


def test_written_statistics_are_read_back(tmp_path):
    """The stage that counts writes a JSON file, and the report reads it."""
    prepare(tmp_path, small_sets())
    corpus_statistics = CorpusStatistics.from_corpus(BinaryCorpus(tmp_path / "binary"))

    corpus_statistics.write(tmp_path / "statistics.json")
    statistics_read = CorpusStatistics.read(tmp_path / "statistics.json")

    assert statistics_read == corpus_statistics


def test_an_unknown_token_counts_as_a_word(tmp_path):
    """The id of an unknown token does not tell whether its subword ended with the mark @@.

    The expected numbers are counted from the ids. A word is unsplit if it is a single subword.
    """
    outputs = prepare(tmp_path, small_sets(), units=SEPARATE_BPE)

    side = CorpusStatistics.from_corpus(outputs.binary).sets["test.x"]["de"]

    tokens = outputs.binary.segmentation("de").vocabulary.tokens
    words = 0
    unsplit_words = 0
    for ids in outputs.binary.side("test.x", "de"):
        subwords_of_word = 0
        ids_without_eos = ids.tolist()[:-1]
        for token_id in ids_without_eos:
            subwords_of_word += 1
            ends_word = not tokens[token_id].endswith("@@")
            if ends_word:
                words += 1
                unsplit_words += subwords_of_word == 1
                subwords_of_word = 0
    assert side.unk > 0
    assert side.words == words
    assert side.unsplit == unsplit_words
