"""Sentences, words and units counted, against the text cut up one sentence at a time."""

from pathlib import Path

import pytest

from bleuprint.config.experiment import Bpe, Units, Words
from bleuprint.dataset import statistics
from bleuprint.dataset.binarized import BinaryCorpus
from bleuprint.dataset.statistics import Census
from bleuprint.dataset.subwords.vocabulary import SPECIALS
from bleuprint.text.parallel import read_lines
from corpora import PAIRS
from prepared import Prepared, prepare

SETS = {
    "train.a": [*PAIRS[:4], *((f"Na ja {n}.", f"Oh well {n}.") for n in range(120))],
    "valid.a": [("Ein Qualm.", "")],
    "test.x.a": [*PAIRS[3:], ("Zebras Qxy", "Yaks")],
}
JOINT = Units(bpe=Bpe(merges=40, joint=True, threshold=0, engine="incremental"))
APART = Units(bpe=Bpe(merges=15, joint=False, threshold=0, engine="incremental"))


def by_hand(made: Prepared, name: str, language: str) -> dict[str, object]:
    """What a side should have, by way of each word's own units."""
    segmentation = made.binary.segmentation(language)
    known = set(segmentation.vocabulary.units) - set(SPECIALS)
    lines = list(read_lines(made.root / "tokens" / f"{name}.{language}"))
    words = [line.split() for line in lines]
    units = [[segmentation.segment([word]) for word in line] for line in words]
    pieces, lengths = [0] * statistics.PIECES, [0] * (max(map(len, words)) + 1)
    for line in units:
        lengths[len(line)] += 1
        for word in line:
            pieces[min(len(word), statistics.PIECES) - 1] += 1
    return {
        "words": sum(map(len, words)),
        "units": sum(len(word) for line in units for word in line),
        "unknown": sum(unit not in known for line in units for word in line for unit in word),
        "longest": max(sum(map(len, line)) for line in units),
        "lengths": lengths,
        "pieces": pieces,
    }


@pytest.mark.parametrize("units", [JOINT, APART, Units(words=Words(True, 1000, 2))])
@pytest.mark.parametrize("at_once", [1, 2, 1 << 16])
def test_it_counts_what_cutting_up_each_word_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, units: Units, at_once: int
) -> None:
    monkeypatch.setattr(statistics, "_SENTENCES", at_once)
    made = prepare(tmp_path, SETS, units=units)
    found = Census.of(made.binary)
    assert list(found.sets) == ["train", "valid", "test.x"]
    assert found.joint == units.joint
    compared = 0
    for name, sides in found.sets.items():
        for language, side in sides.items():
            expected = by_hand(made, name, language)
            assert side.sentences == made.binary.sets[name].pairs
            assert (side.units, side.longest) == (expected["units"], expected["longest"])
            assert side.unknown == expected["unknown"]
            if units.words or not side.unknown:  # else it is a word, wherever it stands
                assert vars(side) == expected
                compared += 1
    assert compared >= 3


def test_an_unknown_unit_ends_a_word(tmp_path: Path) -> None:
    made = prepare(tmp_path, SETS, units=APART)
    side = Census.of(made.binary).sets["test.x"]["de"]
    ids = made.binary.side("test.x", "de")
    texts = made.binary.segmentation("de").vocabulary.units
    assert side.unknown > 0
    ends = [sum(not texts[i].endswith("@@") for i in one.tolist()[:-1]) for one in ids]
    assert side.words == sum(ends) == sum(side.pieces)
    assert [side.lengths[n] for n in sorted(set(ends))] == [
        ends.count(n) for n in sorted(set(ends))
    ]


def test_long_sentences_are_counted_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statistics, "LONGEST", 2)
    made = prepare(tmp_path, SETS, units=JOINT)
    side = Census.of(made.binary).sets["train"]["de"]
    words = [len(line.split()) for line in read_lines(made.root / "tokens" / "train.de")]
    assert side.lengths == [sum(min(n, 3) == length for n in words) for length in range(4)]


def test_vocabularies_and_their_rare_units(tmp_path: Path) -> None:
    made = prepare(tmp_path, SETS, units=JOINT)
    counts = [count for _, count in made.binary.segmentation("de").vocabulary.counts[4:]]
    found = Census.of(made.binary).vocabularies
    assert found["de"] == found["en"]
    assert (found["de"].size, found["de"].below_10) == (len(counts), sum(n < 10 for n in counts))
    assert 0 < found["de"].below_10 <= found["de"].below_100 < found["de"].size


def test_it_is_read_as_it_was_written(tmp_path: Path) -> None:
    prepare(tmp_path, SETS)
    written = Census.of(BinaryCorpus(tmp_path / "binary"))
    written.write(tmp_path / "census.json")
    assert Census.read(tmp_path / "census.json") == written
