"""Statistics of a corpus against counts made sentence by sentence."""

import pytest

from bleuprint.config.corpus import Bpe, Units, Words
from bleuprint.dataset import statistics
from bleuprint.dataset.binarized import BinaryCorpus
from bleuprint.dataset.statistics import CorpusStatistics
from bleuprint.dataset.subwords.vocabulary import SPECIALS
from bleuprint.text.parallel import read_lines
from corpora import PAIRS
from prepared import prepare

SETS = {
    "train": [*PAIRS[:4], *((f"Na ja {n}.", f"Oh well {n}.") for n in range(120))],
    "valid": [("Ein Qualm.", "")],
    "test.x": [*PAIRS[3:], ("Zebras Qxy", "Yaks")],
}
JOINT = Units(bpe=Bpe(num_merges=40, joint=True, threshold=0))
APART = Units(bpe=Bpe(num_merges=15, joint=False, threshold=0))


def by_hand(made, name, language):
    """What a side should have, computed from each word's own tokens."""
    segmentation = made.binary.segmentation(language)
    known = set(segmentation.vocabulary.tokens) - set(SPECIALS)
    lines = list(read_lines(made.root / "tokens" / f"{name}.{language}"))
    words = [line.split() for line in lines]
    tokens = [[segmentation.segment([word]) for word in line] for line in words]
    return {
        "sentences": len(lines),
        "words": sum(map(len, words)),
        "unsplit": sum(len(word) == 1 for line in tokens for word in line),
        "tokens": sum(len(word) for line in tokens for word in line),
        "unk": sum(token not in known for line in tokens for word in line for token in word),
        "max_tokens": max(sum(map(len, line)) for line in tokens),
    }


@pytest.mark.parametrize("units", [JOINT, APART, Units(words=Words(True, 1000, 2))])
@pytest.mark.parametrize("at_once", [1, 2, 1 << 16])
def test_counts_equal_those_of_words_segmented_one_by_one(tmp_path, monkeypatch, units, at_once):
    monkeypatch.setattr(statistics, "_BLOCK_SENTENCES", at_once)
    made = prepare(tmp_path, SETS, units=units)
    found = CorpusStatistics.from_corpus(made.binary)
    assert list(found.sets) == ["train", "valid", "test.x"]
    assert found.joint == units.joint
    compared = 0
    for name, sides in found.sets.items():
        for language, side in sides.items():
            expected = by_hand(made, name, language)
            for key in ("sentences", "tokens", "max_tokens", "unk"):
                assert getattr(side, key) == expected[key]
            if units.words or not side.unk:  # else it is a word, wherever it stands
                assert vars(side) == expected
                compared += 1
    assert compared >= 3


def test_vocabularies_and_their_rare_tokens(tmp_path):
    made = prepare(tmp_path, SETS, units=JOINT)
    counts = [count for _, count in made.binary.segmentation("de").vocabulary.counts[4:]]
    found = CorpusStatistics.from_corpus(made.binary).vocabularies
    assert found["de"] == found["en"]
    assert (found["de"].size, found["de"].below_10) == (len(counts), sum(n < 10 for n in counts))
    assert 0 < found["de"].below_10 < found["de"].size


def test_it_is_read_as_it_was_written(tmp_path):
    prepare(tmp_path, SETS)
    written = CorpusStatistics.from_corpus(BinaryCorpus(tmp_path / "binary"))
    written.write(tmp_path / "statistics.json")
    assert CorpusStatistics.read(tmp_path / "statistics.json") == written


def test_an_unknown_token_is_a_word_of_its_own(tmp_path):
    made = prepare(tmp_path, SETS, units=APART)
    side = CorpusStatistics.from_corpus(made.binary).sets["test.x"]["de"]
    tokens = made.binary.segmentation("de").vocabulary.tokens
    words = unsplit = 0
    for ids in made.binary.side("test.x", "de"):
        size = 0
        for token in ids.tolist()[:-1]:  # the last one is EOS
            size += 1
            if not tokens[token].endswith("@@"):
                words += 1
                unsplit += size == 1
                size = 0
    assert side.unk > 0
    assert (side.words, side.unsplit) == (words, unsplit)
