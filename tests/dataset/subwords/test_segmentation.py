import random
import subprocess
import sys
from collections import Counter
from itertools import chain
from pathlib import Path

import pytest

from bleuprint.config.corpus import Bpe, Units, Words
from bleuprint.dataset.learn_vocabulary import learn_segmentation
from bleuprint.dataset.subwords import segmentation
from bleuprint.dataset.subwords.segmentation import Segmentation
from bleuprint.dataset.subwords.vocabulary import EOS, SPECIALS, UNK, Vocabulary
from bleuprint.runtime import memoize
from bleuprint.runtime.errors import UserError
from bleuprint.text.parallel import TextFolder
from corpora import TORTURE, write_set

SUBWORD_NMT = Path(sys.executable).with_name("subword-nmt")
PARTS = {
    "de": ["ver", "kauf", "en", "lauf", "er", "ein", "ung", "bau", "haus", "ä", "x-", "q"],
    "en": ["re", "buy", "ing", "run", "er", "un", "in", "build", "house", "a", "x-", "en"],
}


def bpe(merges=80, joint=True, threshold=0):
    return Units(bpe=Bpe(num_merges=merges, joint=joint, threshold=threshold))


def in_words(joint=False, max_size=10**6, min_count=1):
    return Units(words=Words(joint=joint, max_size=max_size, min_count=min_count))


@pytest.fixture(scope="module")
def tokens(tmp_path_factory):
    """Made-up words whose parts recur, with a stray letter now and then."""
    draw = random.Random(3)

    def sentence(language):
        parts = PARTS[language] + sorted(set("".join(PARTS[language])))
        return " ".join(
            "".join(draw.choices(parts, range(len(parts), 0, -1), k=draw.randint(1, 4)))
            for _ in range(draw.randint(1, 6))
        )

    folder = TextFolder(tmp_path_factory.mktemp("tokens"), "de", "en")
    write_set(folder, "train", [(sentence("de"), sentence("en")) for _ in range(200)] + [("", "")])
    write_set(folder, "valid", [(sentence("de"), sentence("en")) for _ in range(40)])
    return folder


def ids_of(side, line):
    """The ids of one line, without its EOS."""
    *ids, end = side.encode([line])
    assert end == EOS
    return ids


def lines(tokens, name, language):
    return (tokens.path / f"{name}.{language}").read_text().split("\n")[:-1]


def learn(tokens, folder, units):
    learn_segmentation("c", units, tokens, folder)
    return [Segmentation.read(folder, language) for language in ("de", "en")]


def run(*command):
    command = [SUBWORD_NMT, *map(str, command)]
    return subprocess.run(command, check=True, capture_output=True).stdout.decode()


def counts_in(path):
    entries = (line.split(" ") for line in path.read_text().split("\n")[:-1])
    return {unit: int(count) for unit, count in entries}


def theirs(tokens, folder, joint, merges, threshold):
    """The recipe of subword-nmt's README: its codes, vocabularies and the segmented sets."""
    found = {}
    train = dict(zip(("de", "en"), tokens.files("train"), strict=True))
    for group in [["de", "en"]] if joint else [["de"], ["en"]]:
        sides = [train[language] for language in group]
        codes = folder / f"codes.{group[0]}"
        vocabularies = [folder / f"vocabulary.{language}" for language in group]
        learn = ["learn-joint-bpe-and-vocab", "-s", merges, "-o", codes, "--input", *sides]
        run(*learn, "--write-vocabulary", *vocabularies)
        for language, vocabulary in zip(group, vocabularies, strict=True):
            limits = ["--vocabulary", vocabulary, "--vocabulary-threshold", threshold]
            for name in ("train", "valid"):
                file = tokens.path / f"{name}.{language}"
                text = run("apply-bpe", "-c", codes, *limits, "-i", file)
                found[name, language] = text.split("\n")[:-1]
            found["codes", language] = codes.read_text()
            usual = counts_in(vocabulary).items()
            found["allowed", language] = {u: n for u, n in usual if n >= threshold}
    return found


@pytest.mark.parametrize("joint", [True, False])
def test_units_are_those_of_subword_nmt_with_a_threshold(joint, tokens, tmp_path):
    reference = theirs(tokens, tmp_path, joint, 80, 8)
    for side in learn(tokens, tmp_path / "bpe", bpe(80, joint, 8)):
        language = side.language
        assert (tmp_path / f"bpe/codes.{language}").read_text() == reference["codes", language]
        allowed = counts_in(tmp_path / f"bpe/allowed.{language}")
        assert allowed == reference["allowed", language]
        for name in ("train", "valid"):
            found = [
                " ".join(side.segment(line.split(" "))) for line in lines(tokens, name, language)
            ]
            assert found == reference[name, language]
    free = learn(tokens, tmp_path / "free", bpe(80, joint))[0]
    assert free.segment(lines(tokens, "train", "de")[:-1]) != reference["train", "de"]


@pytest.mark.parametrize("units", [bpe(), bpe(threshold=8), bpe(joint=False), bpe(0), in_words()])
def test_the_vocabulary_counts_the_units_of_train(units, tokens, tmp_path):
    sides = learn(tokens, tmp_path / "bpe", units)
    counts = [
        Counter(chain.from_iterable(side.segment(line.split(" ")) for line in text))
        for side in sides
        for text in [lines(tokens, "train", side.language)]
    ]
    if units.joint:
        counts = [counts[0] + counts[1]] * 2
    for side, expected in zip(sides, counts, strict=True):
        assert dict(side.vocabulary.counts[len(SPECIALS) :]) == expected


def test_words_are_limited_by_count_and_number(tmp_path):
    folder = TextFolder(tmp_path / "tokens", "de", "en")
    write_set(folder, "train", [("a@@ b a@@ c", "a@@ x"), ("b b", "x z")])
    de, en = learn(folder, tmp_path / "bpe", in_words(joint=False, max_size=2))
    assert de.vocabulary.tokens == [*SPECIALS, "b", "a@@"]
    assert en.vocabulary.tokens == [*SPECIALS, "x", "a@@"]
    joint = learn(folder, tmp_path / "bpe", in_words(joint=True, max_size=9, min_count=2))
    assert {side.vocabulary.tokens == [*SPECIALS, "a@@", "b", "x"] for side in joint} == {True}
    names = {path.name for path in (tmp_path / "bpe").iterdir()}
    assert names == {"segmentation.json", "vocabulary.de", "vocabulary.en"}
    assert ids_of(joint[0], "a@@ b q") == [4, 5, UNK]
    assert joint[0].decode([4, 5, UNK, EOS]) == joint[0].join(["a@@", "b", "<unk>"])
    assert joint[0].decode([4, 5]) == ["a@@", "b"]
    assert joint[0].resegment([4, 5, UNK], 0.5, random.Random(1)) == [4, 5, UNK]


@pytest.mark.parametrize("units", [bpe(), bpe(threshold=8), in_words()])
def test_ids_are_those_of_the_units_and_decode_to_the_tokens(units, tokens, tmp_path, monkeypatch):
    monkeypatch.setattr(memoize, "MAX_WORDS", 3)
    for side in learn(tokens, tmp_path / "bpe", units):
        for line in lines(tokens, "train", side.language) * 2:
            ids = ids_of(side, line)
            words = line.split(" ") if line else []
            assert ids == side.vocabulary.encode(side.segment(words))
            assert UNK not in ids and EOS not in ids
            assert side.decode([*ids, EOS]) == words


@pytest.mark.parametrize("units", [bpe(), in_words()])
def test_characters_that_end_lines_elsewhere_come_back(units, tmp_path):
    odd = [*TORTURE, "@@", "a@@", *(f"{a}b{a}" for a in TORTURE), *(f"a{a}" for a in TORTURE)]
    folder = TextFolder(tmp_path / "tokens", "de", "en")
    write_set(folder, "train", [(" ".join(odd), " ".join(reversed(odd)))] * 3)
    for side in learn(folder, tmp_path / "bpe", units):
        assert side.decode(ids_of(side, " ".join(odd))) == odd
        numbers = random.Random(1)
        assert side.decode(side.resegment(ids_of(side, " ".join(odd)), 0.5, numbers)) == odd


def test_dropout_draws_what_the_codes_draw(tokens, tmp_path):
    side = learn(tokens, tmp_path / "bpe", bpe(threshold=8))[1]
    codes = segmentation.read_bpe(tmp_path / "bpe", "en")
    numbers, again = random.Random(5), random.Random(5)
    for line in lines(tokens, "train", "en")[:-1]:
        units = [
            drawn if UNK not in side.vocabulary.encode(drawn) else codes.split(word)
            for word in line.split(" ")
            for drawn in [codes.split(word, 0.4, numbers)]
        ]
        expected = side.vocabulary.encode(chain.from_iterable(units))
        assert side.resegment(ids_of(side, line), 0.4, again) == expected


def hand_made(tmp_path):
    """Ab and abc are one unit; the parts of xy are not in the vocabulary, those of <unk> are."""
    (tmp_path / "codes").write_text("#version: 0.2\na b</w>\na b\nab c</w>\nx y</w>\n")
    units = ["abc", "ab@@", "c", "a@@", "b@@", "b", "ab", "xy", "<@@", "u@@", "n@@", "k@@", ">"]
    codes = segmentation.Bpe(tmp_path / "codes")
    return Segmentation("en", Vocabulary((unit, 1) for unit in units), codes)


def test_words_whose_parts_have_no_ids_stay_as_they_are(tmp_path):
    side = hand_made(tmp_path)
    ids = ids_of(side, "xy abc")
    drawn = side.resegment(ids, 1.0, random.Random(1))
    assert [side.vocabulary.tokens[i] for i in drawn] == ["xy", "a@@", "b@@", "c"]


def test_words_that_hold_unk_stay_as_they_are(tmp_path):
    side = hand_made(tmp_path)
    # abŵ ab, then ŵab: its rest, "ab", looks like a word of its own; then ab once more.
    ids = ids_of(side, "abŵ ab ŵab ab")
    assert side.vocabulary.encode(["ab@@", "?", "ab", "?", "ab", "ab"]) == ids
    drawn = side.resegment(ids, 1.0, random.Random(1))
    kept = ["ab@@", "<unk>", "ab", "<unk>", "ab", "a@@", "b"]
    assert [side.vocabulary.tokens[i] for i in drawn] == kept
    assert side.resegment(side.vocabulary.encode(["ab", "ab@@"]), 1.0, random.Random(1)) == (
        side.vocabulary.encode(["a@@", "b", "ab@@"])
    )


def test_a_whole_word_ends_with_its_token_whatever_its_mark():
    side = Segmentation("en", Vocabulary([("ge@@", 1), ("sehen", 1)]), None)
    ids = side.encode(["ge@@ sehen"])
    assert side.ends_word(ids).all() and side.decode(ids) == ["ge@@", "sehen"]


def test_a_threshold_that_no_unit_reaches_is_refused(tokens, tmp_path):
    with pytest.raises(UserError, match=r"corpora\.c\..*threshold is 99999, but no subword of de"):
        learn(tokens, tmp_path / "bpe", bpe(threshold=99999))
    assert list(tmp_path.iterdir()) == []


def test_a_missing_file_is_named(tokens, tmp_path):
    learn(tokens, tmp_path / "bpe", bpe())
    with pytest.raises(UserError, match=r"vocabulary\.fr: no such file"):
        Segmentation.read(tmp_path / "bpe", "fr")


@pytest.mark.parametrize("units", [bpe(), in_words()], ids=["bpe", "words"])
def test_workers_change_no_byte(tokens, tmp_path, units):
    written = []
    for workers in (1, 2, 5):
        folder = tmp_path / str(workers)
        learn_segmentation("c", units, tokens, folder, workers)
        written.append({path.name: path.read_bytes() for path in folder.iterdir()})
    assert written[0] == written[1] == written[2]
