"""SentencePiece vocabularies: pieces and ids equal the package's, and any text is read back."""

from collections import Counter
from itertools import chain

import numpy as np
import pytest
from sentencepiece import SentencePieceProcessor

from bleuprint.config.corpus import SentencePiece, Units, Words
from bleuprint.dataset import learn_sentencepiece
from bleuprint.dataset.learn_vocabulary import learn_segmentation
from bleuprint.dataset.statistics import CorpusStatistics
from bleuprint.dataset.subwords.segmentation import Segmentation
from bleuprint.dataset.subwords.vocabulary import BOS, EOS, PAD, SPECIALS, UNK
from bleuprint.runtime.errors import UserError
from bleuprint.text.parallel import TextFolder
from bleuprint.text.tokenizers import Tokenize
from corpora import PAIRS, TORTURE, file_contents, write_set
from prepared import prepare
from trainings import toy_pairs

# Lines that contain names of special symbols and bytes, marks of word starts, and rare scripts.
ODD_LINES = [
    "<s> </s> <pad> <unk>",
    "<0x41> \u2585",
    "▁",
    "a ▁ b▁c",
    "日本語 für 👍🏽 e\u0301 \u200d",
    "@@ x@@",
]


def sentencepiece_units(model="unigram", vocab_size=90, joint=True, byte_fallback=False):
    """Return the settings of a SentencePiece vocabulary."""
    return Units(sentencepiece=SentencePiece(model, vocab_size, joint, byte_fallback))


@pytest.fixture(scope="module")
def tokens(tmp_path_factory):
    """A training text of toy sentences, an empty pair and ODD_LINES on both sides."""
    folder = TextFolder(tmp_path_factory.mktemp("tokens"), "de", "en")
    odd_pairs = [(line, line) for line in ODD_LINES]
    write_set(folder, "train", [*PAIRS, *toy_pairs(300, 1), ("", ""), *odd_pairs])
    return folder


def learn(tokens, folder, units, workers=1):
    """Learn vocabularies, and return the segmentations of German and English."""
    learn_segmentation("c", units, tokens, folder, workers)
    return [Segmentation.read(folder, language) for language in ("de", "en")]


def training_lines(tokens, language):
    """Return the lines of one side of the training text."""
    return (tokens.path / f"train.{language}").read_text().split("\n")[:-1]


def test_a_min_count_that_no_word_reaches_is_refused(tokens, tmp_path):
    """A model with an empty vocabulary could output nothing."""
    units = Units(words=Words(joint=False, max_size=100, min_count=9999))

    with pytest.raises(
        UserError, match=r"^corpora\.c\..*min_count is 9999, but no word occurs that often"
    ):
        learn(tokens, tmp_path, units)


def test_lines_of_more_than_4192_bytes_are_learned_from(tmp_path):
    """SentencePiece ignores such lines by default, without a message.

    If they were ignored here, all their characters would be unknown.
    """
    characters = [chr(code_point) for code_point in range(0x4E00, 0x4E30)]
    long_line = "".join(characters) * 40
    assert len(long_line.encode()) > 4192
    folder = TextFolder(tmp_path, "de", "en")
    write_set(folder, "train", [(long_line, long_line)] * 2)

    segmentations = learn(folder, tmp_path / "learned", sentencepiece_units("bpe", 60))

    for segmentation in segmentations:
        assert UNK not in segmentation.encode([long_line])


@pytest.fixture(scope="module", params=["unigram", "bpe"])
def model(request):
    """The algorithm by which SentencePiece learns pieces."""
    return request.param


@pytest.fixture(scope="module", params=[True, False], ids=["joint", "separate"])
def joint(request):
    """Whether both languages share a vocabulary."""
    return request.param


@pytest.fixture(scope="module", params=[False, True], ids=["no bytes", "bytes"])
def byte_fallback(request):
    """Whether the vocabulary has a piece for each byte, for characters that it lacks."""
    return request.param


@pytest.fixture(scope="module")
def vocab_size(joint, byte_fallback):
    """The size of the vocabulary: 150 joint or 100 separate pieces, and 256 bytes."""
    size = 150 if joint else 100
    return size + 256 if byte_fallback else size


@pytest.fixture(scope="module")
def learned_folder(tokens, tmp_path_factory, model, joint, byte_fallback, vocab_size):
    """A folder with vocabularies of that kind and size."""
    folder = tmp_path_factory.mktemp("learned") / "bpe"
    learn(tokens, folder, sentencepiece_units(model, vocab_size, joint, byte_fallback))
    return folder


def read_processor(folder, language):
    """Return the processor of the package for the model in a folder."""
    return SentencePieceProcessor(model_file=str(folder / f"sentencepiece.{language}"))


@pytest.mark.parametrize("language", ["de", "en"])
def test_the_vocabulary_has_the_requested_size_and_special_symbols(
    learned_folder, vocab_size, language
):
    """Our vocabulary and the model of SentencePiece must have the same special symbols.

    `read_processor` opens the learned model by the package sentencepiece.
    """
    segmentation = Segmentation.read(learned_folder, language)

    processor = read_processor(learned_folder, language)

    assert len(segmentation.vocabulary) == vocab_size
    assert len(processor) == vocab_size
    assert processor.pad_id() == PAD == 0
    assert processor.bos_id() == BOS == 1
    assert processor.eos_id() == EOS == 2
    assert processor.unk_id() == UNK == 3


@pytest.mark.parametrize("language", ["de", "en"])
def test_pieces_and_ids_equal_those_of_the_package(learned_folder, tokens, language):
    """The package sentencepiece reads the same learned model; it is the reference.

    The last two lines have words and characters that the training text does not contain.
    """
    lines = [*training_lines(tokens, language), "Zebra, xyzzy!", "中"]
    processor = read_processor(learned_folder, language)

    segmentation = Segmentation.read(learned_folder, language)

    expected_pieces = processor.encode(lines, out_type=str)
    pieces = [segmentation.segment(line.split(" ")) for line in lines]
    assert pieces == expected_pieces
    expected_ids = []
    for line_ids in processor.encode(lines):
        expected_ids += [*line_ids, EOS]
    assert list(segmentation.encode(lines)) == expected_ids


@pytest.mark.parametrize("language", ["de", "en"])
def test_a_separate_vocabulary_counts_the_pieces_of_the_training_text(
    tokens, tmp_path, model, byte_fallback, language
):
    """The package sentencepiece splits the text into the ids that are counted here."""
    size = 100
    if byte_fallback:
        size += 256  # A piece for each byte.
    units = sentencepiece_units(model, size, joint=False, byte_fallback=byte_fallback)
    learn(tokens, tmp_path / "bpe", units)

    vocabulary = Segmentation.read(tmp_path / "bpe", language).vocabulary

    processor = read_processor(tmp_path / "bpe", language)
    lines = training_lines(tokens, language)
    expected_counts = Counter(chain.from_iterable(processor.encode(lines)))
    counts = [count for _, count in vocabulary.counts]
    for token_id in range(len(SPECIALS), size):
        assert counts[token_id] == expected_counts[token_id]


def test_only_joint_vocabularies_of_both_languages_are_equal(learned_folder, joint):
    """A vocabulary file lists the pieces of a language and their counts.

    With `joint`, one vocabulary is learned from both languages; otherwise one from each.
    """
    german = (learned_folder / "vocabulary.de").read_bytes()
    english = (learned_folder / "vocabulary.en").read_bytes()

    assert (german == english) == joint


@pytest.mark.parametrize("workers", [1, 2])
def test_the_same_text_gives_the_same_vocabularies_for_any_number_of_workers(
    tokens, tmp_path, model, workers
):
    """Results must not depend on the number of processors of a machine."""
    learn(tokens, tmp_path / "first", sentencepiece_units(model), workers=1)
    learn(tokens, tmp_path / "second", sentencepiece_units(model), workers)

    assert file_contents(tmp_path / "first") == file_contents(tmp_path / "second")


def test_a_text_without_a_word_is_refused(tmp_path):
    """SentencePiece itself would fail with a message about its internals."""
    empty = TextFolder(tmp_path / "tokens", "de", "en")
    write_set(empty, "train", [("", ""), ("", "")])  # Two pairs of empty sentences.

    with pytest.raises(UserError, match=r"cannot learn such a vocabulary: train has no text$"):
        learn(empty, tmp_path / "bpe", sentencepiece_units())


def test_with_byte_fallback_any_line_is_read_back(tokens, tmp_path, model):
    """With byte fallback, a character that is not in the vocabulary becomes its bytes.

    ODD_LINES contain names of special symbols, marks of SentencePiece and rare scripts.
    """
    units = sentencepiece_units(model, vocab_size=380, byte_fallback=True)
    german, _ = learn(tokens, tmp_path / "bpe", units)

    for line in [*training_lines(tokens, "de"), "中文 שלום xyz", *ODD_LINES]:
        ids = list(german.encode([line]))
        assert UNK not in ids
        # SentencePiece marks the start of a word by ▁, so that ▁ in the text is read as a space.
        assert " ".join(german.decode(ids)) == " ".join(line.replace("▁", " ").split())


def test_bytes_that_are_no_text_are_decoded_to_a_replacement_character(tokens, tmp_path, model):
    """A model may output any sequence of bytes: here a newline, a return, a null byte and 0xFF.

    These cannot be in a word of a sentence, so that U+FFFD replaces them.
    """
    units = sentencepiece_units(model, vocab_size=380, byte_fallback=True)
    german, _ = learn(tokens, tmp_path / "bpe", units)
    tokens_of_bytes = ["<0x0A>", "<0x0D>", "<0x00>", "<0xFF>"]
    word_start, *byte_ids = german.vocabulary.encode(["▁", *tokens_of_bytes])

    words = german.decode([word_start, *byte_ids, word_start, UNK, PAD, BOS, EOS])

    assert words == ["\ufffd", "<unk>"]


def test_unknown_characters_that_follow_each_other_are_one_token(tokens, tmp_path, model):
    """The Hebrew word is in no line of the training text, and there is no byte fallback."""
    german, _ = learn(tokens, tmp_path / "bpe", sentencepiece_units(model))

    ids = list(german.encode(["ba שלום di"]))

    assert ids.count(UNK) == 1
    assert german.decode(ids) == ["ba", "<unk>", "di"]


def test_dropout_leaves_sentencepiece_tokens_as_they_are(tokens, tmp_path, model):
    """Dropout skips BPE merges, which bleuprint does not have for a SentencePiece model."""
    german, _ = learn(tokens, tmp_path / "bpe", sentencepiece_units(model))
    ids = list(german.encode(["ba שלום di"]))

    ids_with_dropout = german.resegment(ids, 0.5, None)

    assert ids_with_dropout == ids


def test_of_a_large_text_every_nth_line_is_learned_from(tokens, tmp_path, monkeypatch):
    """The memory of SentencePiece limits the number of lines: here to 210, of over 600.

    Every third line must be used; the first 210 lines would be only German.
    """
    learned_lines = []
    learn_model = learn_sentencepiece.learn_model

    def record_lines(corpus, settings, lines):
        learned_lines.extend(lines)
        return learn_model(corpus, settings, learned_lines)

    monkeypatch.setattr(learn_sentencepiece, "_MAX_LINES", 210)
    monkeypatch.setattr(learn_sentencepiece, "learn_model", record_lines)

    learn(tokens, tmp_path / "bpe", sentencepiece_units(vocab_size=60))

    german_lines = training_lines(tokens, "de")[::3]
    english_lines = training_lines(tokens, "en")[::3]
    assert learned_lines == german_lines + english_lines


@pytest.mark.parametrize(
    ("vocab_size", "model_name", "message"),
    [
        pytest.param(
            5,
            "unigram",
            r"is 5, but SentencePiece cannot learn such a vocabulary: Vocabulary size is smaller",
            id="too small",
        ),
        pytest.param(
            99999,
            "unigram",
            r"is 99999, but .* size too high \(99999\). Please set it to a value",
            id="too large for unigram",
        ),
        pytest.param(
            99999,
            "bpe",
            r"is 99999, but .* size too high \(99999\). Please set it to a value <= \d+",
            id="too large for BPE",
        ),
    ],
)
def test_an_impossible_vocabulary_size_is_an_error_in_one_line(
    tokens, tmp_path, vocab_size, model_name, message
):
    """The user sees the name of the setting and SentencePiece's reason, without a traceback."""
    with pytest.raises(
        UserError, match=r"^corpora\.c\.vocabulary\.sentencepiece\.vocab_size "
    ) as error:
        learn(tokens, tmp_path / "bpe", sentencepiece_units(model_name, vocab_size))

    assert error.match(message)
    assert "\n" not in str(error.value)
    # SentencePiece adds a hint at an option of its own, which bleuprint does not have.
    assert "coverage option" not in str(error.value)
    assert not (tmp_path / "bpe").exists()


@pytest.fixture(scope="module", params=["none", "moses"])
def odd_test_set(request, tmp_path_factory):
    """A corpus with bytes as pieces, whose test set has odd characters in every place.

    The last six pairs of the test set are PAIRS.
    """
    odd_pairs = []
    for text in [*TORTURE, *ODD_LINES]:
        odd_pairs.append((f"{text}Die{text}Katze {text}", f"The {text} cat{text}"))
    train = toy_pairs(200, 1)
    for number, (source, target) in enumerate(odd_pairs):
        train.append((f"{source} {number}", f"{target} {number}"))
    sets = {"train": train, "valid": PAIRS, "test.x": [*odd_pairs, ("", "x"), *PAIRS]}
    return prepare(
        tmp_path_factory.mktemp("corpus"),
        sets,
        tokenize=Tokenize(request.param, lowercase=False, hyphens=False, escape=False),
        units=sentencepiece_units(vocab_size=400, byte_fallback=True),
    )


def test_no_line_with_odd_characters_is_lost_and_no_token_is_unknown(odd_test_set):
    size = odd_test_set.binary.sets["test.x"]

    assert size.pairs == len(TORTURE) + len(ODD_LINES) + 1 + len(PAIRS)
    assert size.unknown == 0


@pytest.mark.parametrize(("side", "language"), [(0, "de"), (1, "en")])
def test_sentences_with_odd_characters_are_read_back(odd_test_set, side, language):
    """The test set has characters at which programs end lines, rare scripts and marks of pieces.

    Its last six pairs are PAIRS, ordinary sentences.
    """
    corpus = odd_test_set.binary

    sentences = [corpus.text(language, ids.tolist()) for ids in corpus.side("test.x", language)]

    tokens_path = odd_test_set.text("tokens").path / f"test.x.{language}"
    expected = []
    for line in tokens_path.read_text().split("\n")[:-1]:
        # SentencePiece marks the start of a word by ▁, so that ▁ in the text is read as a space.
        words = line.replace("▁", " ").split()
        expected.append(corpus.tokenizer(language).detokenize(words))
    assert sentences == expected
    assert sentences[-6:] == [pair[side] for pair in PAIRS]


def test_the_statistics_of_a_corpus_in_pieces_count_its_words(tmp_path):
    """A word may have several pieces, but must be counted once.

    The test set consists of the pairs PAIRS and an empty pair.
    """
    sets = {"train": toy_pairs(200, 1), "valid": PAIRS, "test.x": [*PAIRS, ("", "")]}
    corpus = prepare(
        tmp_path,
        sets,
        tokenize=Tokenize("none", lowercase=False, hyphens=False, escape=False),
        units=sentencepiece_units("bpe", vocab_size=330, byte_fallback=True),
    ).binary

    side = CorpusStatistics.from_corpus(corpus).sets["test.x"]["de"]

    assert side.sentences == len(PAIRS) + 1
    german_words = " ".join(source for source, _ in PAIRS).split()
    assert side.words == len(german_words)


def test_the_last_piece_of_each_word_and_each_eos_end_a_word(tokens, tmp_path):
    """Word ends are needed to count words, and to align source words with output words."""
    units = sentencepiece_units("bpe", vocab_size=330, byte_fallback=True)
    german, _ = learn(tokens, tmp_path / "bpe", units)
    lines = ["Die Katze", "", "Er"]

    is_word_end = german.ends_word(np.array(list(german.encode(lines))))

    expected = []
    for line in lines:
        for word in line.split():
            piece_count = len(german.segment([word]))
            expected += [False] * (piece_count - 1) + [True]
        expected.append(True)  # EOS
    # Some of the three words have several pieces, besides the EOS of three lines.
    assert len(expected) > 3 + 3
    assert is_word_end.tolist() == expected
