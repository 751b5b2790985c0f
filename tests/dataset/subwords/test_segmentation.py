"""A segmentation splits the words of a language into tokens with ids: subwords or whole words."""

import random
import subprocess
import sys
from collections import Counter
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
from corpora import TORTURE, file_contents, file_names, write_set

# The command of the package subword-nmt.
SUBWORD_NMT = Path(sys.executable).with_name("subword-nmt")
WORD_PARTS = {
    "de": ["ver", "kauf", "en", "lauf", "er", "ein", "ung", "bau", "haus", "ä", "x-", "q"],
    "en": ["re", "buy", "ing", "run", "er", "un", "in", "build", "house", "a", "x-", "en"],
}


def bpe_units(num_merges=80, joint=True, threshold=0):
    """Return the settings of BPE; subwords below the threshold are split further."""
    return Units(bpe=Bpe(num_merges=num_merges, joint=joint, threshold=threshold))


def word_units(joint=False, max_size=10**6, min_count=1):
    """Return the settings of a vocabulary of whole words."""
    return Units(words=Words(joint=joint, max_size=max_size, min_count=min_count))


def generate_sentence(generator, language):
    """Return up to six words that consist of the same few parts, and rarely of single letters."""
    parts = WORD_PARTS[language] + sorted(set("".join(WORD_PARTS[language])))
    weights = range(len(parts), 0, -1)
    words = []
    for _ in range(generator.randint(1, 6)):
        words.append("".join(generator.choices(parts, weights, k=generator.randint(1, 4))))
    return " ".join(words)


def generate_pairs(generator, count):
    """Return pairs of a German and an English sentence of generated words."""
    pairs = []
    for _ in range(count):
        german = generate_sentence(generator, "de")
        english = generate_sentence(generator, "en")
        pairs.append((german, english))
    return pairs


@pytest.fixture(scope="module")
def tokens(tmp_path_factory):
    """A training text of 200 generated pairs and an empty pair, and a validation set of 40."""
    generator = random.Random(3)
    folder = TextFolder(tmp_path_factory.mktemp("tokens"), "de", "en")
    write_set(folder, "train", [*generate_pairs(generator, 200), ("", "")])
    write_set(folder, "valid", generate_pairs(generator, 40))
    return folder


def encode_line(side, line):
    """Return the ids of one line, without its EOS."""
    *ids, end = side.encode([line])
    assert end == EOS
    return ids


def read_lines(path):
    """Return the lines of a file that newlines end, and only these."""
    return path.read_text().split("\n")[:-1]


def set_lines(tokens, name, language):
    """Return the lines of one side of a set."""
    return read_lines(tokens.path / f"{name}.{language}")


def learn(tokens, folder, units):
    """Learn a vocabulary, and return the segmentations of German and English."""
    learn_segmentation("c", units, tokens, folder)
    return [Segmentation.read(folder, language) for language in ("de", "en")]


def run_subword_nmt(*arguments):
    """Run the command of subword-nmt, and return its output."""
    command = [SUBWORD_NMT, *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True).stdout.decode()


def read_counts(path):
    """Return the counts in a file with a subword, a space and its count per line."""
    counts = {}
    for line in read_lines(path):
        subword, count = line.split(" ")
        counts[subword] = int(count)
    return counts


NUM_MERGES = 80
THRESHOLD = 8


@pytest.fixture(scope="module", params=[True, False], ids=["joint", "separate"])
def joint(request):
    """Whether both languages share their merges."""
    return request.param


@pytest.fixture(scope="module")
def reference_folder(tokens, tmp_path_factory, joint):
    """The output of the recipe in subword-nmt's README.

    codes.LANGUAGE are its merges, vocabulary.LANGUAGE its counts of subwords, and SET.LANGUAGE the
    segmented sets.
    """
    folder = tmp_path_factory.mktemp("reference")
    groups = [["de", "en"]] if joint else [["de"], ["en"]]
    for languages in groups:
        arguments = ["learn-joint-bpe-and-vocab", "-s", NUM_MERGES, "-o", folder / "codes"]
        texts = []
        vocabularies = []
        for language in languages:
            texts.append(tokens.path / f"train.{language}")
            vocabularies.append(folder / f"vocabulary.{language}")
        arguments += ["--input", *texts, "--write-vocabulary", *vocabularies]
        run_subword_nmt(*arguments)
        for language, vocabulary in zip(languages, vocabularies, strict=True):
            codes = (folder / "codes").read_text()
            (folder / f"codes.{language}").write_text(codes)
            for set_name in ("train", "valid"):
                arguments = ["apply-bpe", "-c", folder / "codes", "--vocabulary", vocabulary]
                arguments += ["--vocabulary-threshold", THRESHOLD]
                arguments += ["-i", tokens.path / f"{set_name}.{language}"]
                segmented = run_subword_nmt(*arguments)
                (folder / f"{set_name}.{language}").write_text(segmented)
    return folder


@pytest.fixture(scope="module")
def learned_folder(tokens, tmp_path_factory, joint):
    """The vocabulary that bleuprint learns with the same settings."""
    folder = tmp_path_factory.mktemp("learned") / "bpe"
    learn(tokens, folder, bpe_units(NUM_MERGES, joint, THRESHOLD))
    return folder


@pytest.mark.parametrize("language", ["de", "en"])
def test_merges_equal_those_of_subword_nmt(learned_folder, reference_folder, language):
    """`learned_folder` is written by bleuprint, `reference_folder` by the commands of subword-nmt.

    Both learn 80 merges from the same text.
    """
    codes = (learned_folder / f"codes.{language}").read_text()

    assert codes == (reference_folder / f"codes.{language}").read_text()


@pytest.mark.parametrize("language", ["de", "en"])
def test_allowed_subwords_are_those_that_reach_the_threshold(
    learned_folder, reference_folder, language
):
    """`learned_folder` is written by bleuprint, `reference_folder` by the commands of subword-nmt.

    The threshold is 8: rarer subwords are split further.
    """
    allowed = read_counts(learned_folder / f"allowed.{language}")

    expected = {}
    for subword, count in read_counts(reference_folder / f"vocabulary.{language}").items():
        if count >= THRESHOLD:
            expected[subword] = count
    assert allowed == expected


@pytest.mark.parametrize("set_name", ["train", "valid"])
@pytest.mark.parametrize("language", ["de", "en"])
def test_words_are_split_as_by_subword_nmt_with_a_threshold(
    learned_folder, reference_folder, tokens, set_name, language
):
    """`learned_folder` is written by bleuprint, `reference_folder` by the commands of subword-nmt.

    Both use 80 merges, and split subwords that occur fewer than 8 times.
    """
    side = Segmentation.read(learned_folder, language)

    segmented_lines = []
    for line in set_lines(tokens, set_name, language):
        segmented_lines.append(" ".join(side.segment(line.split(" "))))

    assert segmented_lines == read_lines(reference_folder / f"{set_name}.{language}")


def test_without_a_threshold_words_are_split_differently(reference_folder, tokens, tmp_path, joint):
    """`reference_folder` has a threshold of 8: this test shows that the threshold has an effect."""
    german, _ = learn(tokens, tmp_path / "bpe", bpe_units(NUM_MERGES, joint, threshold=0))

    segmented_lines = []
    for line in set_lines(tokens, "train", "de"):
        segmented_lines.append(" ".join(german.segment(line.split(" "))))

    assert segmented_lines != read_lines(reference_folder / "train.de")


UNITS = [
    pytest.param(bpe_units(), id="BPE"),
    pytest.param(bpe_units(threshold=8), id="BPE with threshold"),
    pytest.param(bpe_units(joint=False), id="separate BPE"),
    pytest.param(bpe_units(num_merges=0), id="BPE without merges"),
    pytest.param(word_units(), id="words"),
]


@pytest.mark.parametrize("units", UNITS)
def test_the_vocabulary_counts_the_tokens_of_the_training_text(units, tokens, tmp_path):
    """A joint vocabulary adds up the counts of both languages."""
    sides = learn(tokens, tmp_path / "bpe", units)

    counts_by_language = {}
    for side in sides:
        counts = Counter()
        for line in set_lines(tokens, "train", side.language):
            counts.update(side.segment(line.split(" ")))
        counts_by_language[side.language] = counts
    for side in sides:
        expected = counts_by_language[side.language]
        if units.joint:
            expected = counts_by_language["de"] + counts_by_language["en"]
        counts_without_specials = side.vocabulary.counts[len(SPECIALS) :]
        assert dict(counts_without_specials) == expected


def write_tokens(tmp_path, pairs):
    """Write the tokens of a training text, and return its folder."""
    folder = TextFolder(tmp_path / "tokens", "de", "en")
    write_set(folder, "train", pairs)
    return folder


def test_max_size_limits_the_words_of_each_language(tmp_path):
    """Each language keeps its two most frequent words: "b" occurs 3 times, "a@@" and "x" twice.

    In a vocabulary of whole words, "a@@" is a word like any other.
    """
    tokens = write_tokens(tmp_path, [("a@@ b a@@ c", "a@@ x"), ("b b", "x z")])
    units = word_units(joint=False, max_size=2)

    german, english = learn(tokens, tmp_path / "bpe", units)

    assert german.vocabulary.tokens == [*SPECIALS, "b", "a@@"]
    assert english.vocabulary.tokens == [*SPECIALS, "x", "a@@"]


def test_min_count_limits_the_words_of_a_joint_vocabulary(tmp_path):
    """Over both languages, "a@@" and "b" occur 3 times, "x" twice, and "c" and "z" once."""
    tokens = write_tokens(tmp_path, [("a@@ b a@@ c", "a@@ x"), ("b b", "x z")])
    units = word_units(joint=True, max_size=9, min_count=2)

    german, english = learn(tokens, tmp_path / "bpe", units)

    assert german.vocabulary.tokens == [*SPECIALS, "a@@", "b", "x"]
    assert english.vocabulary.tokens == [*SPECIALS, "a@@", "b", "x"]


def test_a_vocabulary_of_words_is_written_without_merges(tmp_path):
    """A vocabulary of subwords would also have the files codes.de and codes.en."""
    tokens = write_tokens(tmp_path, [("a b", "x")])

    learn(tokens, tmp_path / "bpe", word_units())

    names = file_names(tmp_path / "bpe")
    assert names == ["segmentation.json", "vocabulary.de", "vocabulary.en"]


def test_whole_words_that_look_like_subwords_are_not_joined(tmp_path):
    """In subwords, the mark @@ says that a word continues; in whole words, it means nothing."""
    tokens = write_tokens(tmp_path, [("a@@ b a@@ c", "a@@ x"), ("b b", "x z")])
    units = word_units(joint=True, max_size=9, min_count=2)
    german, _ = learn(tokens, tmp_path / "bpe", units)

    ids = encode_line(german, "a@@ b q")

    # The ids of the special symbols are 0 to 3. The word q is unknown.
    assert ids == [4, 5, UNK]
    assert german.decode([4, 5]) == ["a@@", "b"]
    assert german.decode([4, 5, UNK, EOS]) == german.join(["a@@", "b", "<unk>"])


def test_dropout_leaves_whole_words_as_they_are(tmp_path):
    tokens = write_tokens(tmp_path, [("a b", "x")])
    german, _ = learn(tokens, tmp_path / "bpe", word_units())

    assert german.resegment([4, 5, UNK], 0.5, random.Random(1)) == [4, 5, UNK]


@pytest.mark.parametrize(
    "units",
    [
        pytest.param(bpe_units(), id="BPE"),
        pytest.param(bpe_units(threshold=8), id="BPE with threshold"),
        pytest.param(word_units(), id="words"),
    ],
)
def test_ids_are_those_of_the_tokens_and_are_decoded_to_the_words(
    units, tokens, tmp_path, monkeypatch
):
    """A text survives the way to ids and back, also if the cache of words is full."""
    monkeypatch.setattr(memoize, "MAX_WORDS", 3)  # The size of the cache.

    for side in learn(tokens, tmp_path / "bpe", units):
        # All lines twice, since the cache may answer the second time.
        for line in set_lines(tokens, "train", side.language) * 2:
            words = line.split(" ") if line else []
            ids = encode_line(side, line)
            assert ids == side.vocabulary.encode(side.segment(words))
            assert UNK not in ids
            assert EOS not in ids
            assert side.decode([*ids, EOS]) == words


@pytest.mark.parametrize("units", [bpe_units(), word_units()], ids=["BPE", "words"])
def test_words_with_characters_that_end_lines_elsewhere_are_read_back(units, tmp_path):
    """TORTURE contains characters such as \u2028, at which str.splitlines would end a line."""
    words = [*TORTURE, "@@", "a@@"]
    for character in TORTURE:
        words += [f"{character}b{character}", f"a{character}"]
    line = " ".join(words)
    folder = TextFolder(tmp_path / "tokens", "de", "en")
    write_set(folder, "train", [(line, " ".join(reversed(words)))] * 3)

    for side in learn(folder, tmp_path / "bpe", units):
        ids = encode_line(side, line)
        ids_with_dropout = side.resegment(ids, 0.5, random.Random(1))
        assert side.decode(ids) == words
        assert side.decode(ids_with_dropout) == words


def test_dropout_draws_the_subwords_that_the_merges_draw(tokens, tmp_path):
    """`resegment` splits the words of ids again; it must draw what splitting the words would draw.

    BPE-dropout skips merges at random, here with a probability of 0.4. If a subword that is drawn
    is not in the vocabulary, the word is split without dropout.
    """
    english = learn(tokens, tmp_path / "bpe", bpe_units(threshold=8))[1]
    codes = segmentation.read_bpe(tmp_path / "bpe", "en")
    generator = random.Random(5)
    reference_generator = random.Random(5)

    for line in set_lines(tokens, "train", "en")[:-1]:
        expected_subwords = []
        for word in line.split(" "):
            subwords = codes.split(word, 0.4, reference_generator)
            if UNK in english.vocabulary.encode(subwords):
                subwords = codes.split(word)
            expected_subwords += subwords
        ids = english.resegment(encode_line(english, line), 0.4, generator)
        assert ids == english.vocabulary.encode(expected_subwords)


@pytest.fixture
def small_segmentation(tmp_path):
    """A segmentation in which ab, abc and xy are merged to one subword.

    The parts of xy are not in the vocabulary; those of ab, abc and "<unk>" are.
    """
    (tmp_path / "codes").write_text("#version: 0.2\na b</w>\na b\nab c</w>\nx y</w>\n")
    subwords = ["abc", "ab@@", "c", "a@@", "b@@", "b", "ab", "xy", "<@@", "u@@", "n@@", "k@@", ">"]
    vocabulary = Vocabulary((subword, 1) for subword in subwords)
    return Segmentation("en", vocabulary, segmentation.Bpe(tmp_path / "codes"))


def resegment_without_merges(side, ids):
    """Return the tokens of a sentence that is split again with a dropout of 1: no merges."""
    new_ids = side.resegment(ids, 1.0, random.Random(1))
    return [side.vocabulary.tokens[token_id] for token_id in new_ids]


def test_dropout_does_not_split_a_word_whose_parts_are_not_in_the_vocabulary(small_segmentation):
    """Both words are one subword. The vocabulary has the parts of abc, but not those of xy."""
    ids = encode_line(small_segmentation, "xy abc")

    assert resegment_without_merges(small_segmentation, ids) == ["xy", "a@@", "b@@", "c"]


def test_dropout_does_not_split_a_word_with_an_unknown_character(small_segmentation):
    """BPE-dropout could split ab into a and b. The character ŵ is unknown.

    The ids do not tell where a word with UNK begins or ends: the rest of ŵab looks like a word.
    """
    ids = encode_line(small_segmentation, "abŵ ab ŵab ab")
    assert ids == small_segmentation.vocabulary.encode(["ab@@", "?", "ab", "?", "ab", "ab"])

    tokens = resegment_without_merges(small_segmentation, ids)

    # Only the last ab follows a complete word: it alone is split, into a@@ and b.
    assert tokens == ["ab@@", "<unk>", "ab", "<unk>", "ab", "a@@", "b"]


def test_dropout_does_not_split_a_last_word_that_is_incomplete(small_segmentation):
    """The mark @@ says that the word continues, but the sentence ends."""
    ids = small_segmentation.vocabulary.encode(["ab", "ab@@"])

    assert resegment_without_merges(small_segmentation, ids) == ["a@@", "b", "ab@@"]


def test_in_a_vocabulary_of_words_each_token_ends_a_word_whatever_its_mark():
    """In a vocabulary of subwords, the mark @@ of "ge@@" would say that the word continues."""
    side = Segmentation("en", Vocabulary([("ge@@", 1), ("sehen", 1)]), None)

    ids = side.encode(["ge@@ sehen"])

    assert side.ends_word(ids).all()
    assert side.decode(ids) == ["ge@@", "sehen"]


def test_a_threshold_that_no_subword_reaches_is_an_error_that_leaves_no_output(tokens, tmp_path):
    with pytest.raises(UserError, match=r"corpora\.c\..*threshold is 99999, but no subword of de"):
        learn(tokens, tmp_path / "bpe", bpe_units(threshold=99999))

    assert list(tmp_path.iterdir()) == []


def test_a_missing_file_is_named(tokens, tmp_path):
    learn(tokens, tmp_path / "bpe", bpe_units())

    with pytest.raises(UserError, match=r"vocabulary\.fr: no such file"):
        Segmentation.read(tmp_path / "bpe", "fr")


@pytest.mark.parametrize("workers", [2, 5])
@pytest.mark.parametrize("units", [bpe_units(), word_units()], ids=["BPE", "words"])
def test_the_number_of_workers_does_not_change_the_vocabulary(tokens, tmp_path, units, workers):
    learn_segmentation("c", units, tokens, tmp_path / "one", workers=1)
    learn_segmentation("c", units, tokens, tmp_path / "many", workers=workers)

    assert file_contents(tmp_path / "many") == file_contents(tmp_path / "one")
