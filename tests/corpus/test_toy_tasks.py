"""The copy task is that of The Annotated Transformer; its splits have nothing in common."""

import hashlib
from collections import Counter

import pytest

from bleuprint.config.experiment import load_settings
from bleuprint.corpus.download.download import download_corpus
from bleuprint.corpus.download.fetch import Downloads
from bleuprint.corpus.toy_tasks import COPY_SPLITS, copy_task, toy_sentences
from bleuprint.text.parallel import TextFolder
from root import ROOT


def test_lines_of_the_copy_task():
    """Ten symbols of ten, the first always 1, the others equally often."""
    lines = {split: copy_task(split) for split in COPY_SPLITS}
    assert {split: len(found) for split, found in lines.items()} == COPY_SPLITS
    for found in lines.values():
        assert all(line.startswith("1 ") and len(line.split()) == 10 for line in found)
    counts = Counter(symbol for line in lines["train"] for symbol in line.split()[1:])
    assert set(counts) == {str(number) for number in range(1, 11)}
    # 288,000 draws: five standard deviations are 0.3 % of all
    assert all(abs(count / 288_000 - 0.1) < 0.003 for count in counts.values())
    assert len(set(lines["test"])) == 50
    assert not set(lines["train"]) & {*lines["valid"], *lines["test"]}
    assert not set(lines["valid"]) & set(lines["test"])


def test_the_bytes_are_always_the_same():
    text = "\n".join(line for split in COPY_SPLITS for line in copy_task(split))
    assert hashlib.sha256(text.encode()).hexdigest().startswith("7f30f52db53d17fe")


def test_sentences_differ_in_words_each_of_which_is_translated_in_one_way():
    pairs = [*zip(*(toy_sentences("sentences", side) for side in ("de", "en")), strict=True)]
    assert len({german for german, _ in pairs}) == len({english for _, english in pairs}) == 54
    words = {
        word
        for german, english in pairs
        for word in zip(german.split(), english.split(), strict=True)
    }
    assert len(words) == len({german for german, _ in words}) == len({en for _, en in words}) == 11
    (german,), (english,) = (toy_sentences("sentence", side) for side in ("de", "en"))
    assert (german.removesuffix(" P"), english) in pairs


@pytest.mark.parametrize("recipe", ["copy", "toy-sentence"])
def test_they_are_read_like_any_corpus(recipe, tmp_path):
    name, corpus = next(iter(load_settings(ROOT / "recipes" / f"{recipe}.yaml").corpora.items()))
    raw = TextFolder(tmp_path / "raw", corpus.source, corpus.target)
    nowhere = Downloads(str(tmp_path), tmp_path, None)
    download_corpus(name, corpus.files, raw, tmp_path / "filter_stats.json", nowhere)
    for split in raw.set_names():
        if recipe == "copy":
            lines = copy_task(split.partition(".")[0])
            assert list(raw.pairs(split)) == list(zip(lines, lines, strict=True))
        else:
            assert list(raw.pairs(split)) == [("ich mochte ein bier P", "i want a beer")]
