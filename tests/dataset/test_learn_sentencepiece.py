"""SentencePiece's models: pieces and ids of the package itself, the same bytes, exact text."""

from collections import Counter

import numpy as np
import pytest
from sentencepiece import SentencePieceProcessor

from bleuprint.config.corpus import SentencePiece, Units, Words
from bleuprint.dataset import learn_sentencepiece
from bleuprint.dataset.learn_vocabulary import learn_segmentation
from bleuprint.dataset.statistics import CorpusStatistics
from bleuprint.dataset.subwords.segmentation import Segmentation
from bleuprint.dataset.subwords.vocabulary import BOS, EOS, PAD, UNK
from bleuprint.runtime.errors import UserError
from bleuprint.text.parallel import TextFolder
from bleuprint.text.tokenizers import Tokenize
from corpora import PAIRS, TORTURE, write_set
from prepared import prepare
from trainings import toy_pairs

MODELS = ["unigram", "bpe"]
NONE = Tokenize("none", lowercase=False, hyphens=False, escape=False)
ODD = [
    "<s> </s> <pad> <unk>",
    "<0x41> \u2585",
    "▁",
    "a ▁ b▁c",
    "日本語 für 👍🏽 e\u0301 \u200d",
    "@@ x@@",
]


def pieces(model="unigram", size=90, joint=True, byte=False):
    return Units(sentencepiece=SentencePiece(model, size, joint, byte))


@pytest.fixture(scope="module")
def tokens(tmp_path_factory):
    folder = TextFolder(tmp_path_factory.mktemp("tokens"), "de", "en")
    write_set(folder, "train", [*PAIRS, *toy_pairs(300, 1), ("", ""), *((odd, odd) for odd in ODD)])
    return folder


def learn(tokens, folder, units, workers=1):
    learn_segmentation("c", units, tokens, folder, workers)
    return [Segmentation.read(folder, language) for language in ("de", "en")]


def lines(tokens, language):
    return (tokens.path / f"train.{language}").read_text().split("\n")[:-1]


def test_a_vocabulary_without_words_is_refused(tokens, tmp_path):
    with pytest.raises(
        UserError, match=r"^corpora\.c\..*min_count is 9999, but no word occurs that often"
    ):
        learn(tokens, tmp_path, Units(words=Words(joint=False, max_size=100, min_count=9999)))


def test_long_lines_are_learned_from(tmp_path):
    """SentencePiece leaves out lines of more than 4,192 bytes without a word."""
    text = "".join(map(chr, range(0x4E00, 0x4E30))) * 40
    write_set(folder := TextFolder(tmp_path, "de", "en"), "train", [(text, text)] * 2)
    for segmentation in learn(folder, tmp_path / "learned", pieces("bpe", 60)):
        assert UNK not in segmentation.encode([text])


@pytest.mark.parametrize("byte", [False, True])
@pytest.mark.parametrize("joint", [True, False])
@pytest.mark.parametrize("model", MODELS)
def test_pieces_and_ids_are_those_of_the_package(tokens, tmp_path, model, joint, byte):
    size = (150 if joint else 100) + 256 * byte
    sides = learn(tokens, tmp_path / "bpe", pieces(model, size, joint, byte))
    for side in sides:
        theirs = SentencePieceProcessor(
            model_file=str(tmp_path / f"bpe/sentencepiece.{side.language}")
        )
        assert len(side.vocabulary) == len(theirs) == size
        assert (theirs.pad_id(), theirs.bos_id(), theirs.eos_id(), theirs.unk_id()) == (0, 1, 2, 3)
        text = [*lines(tokens, side.language), "Zebra, xyzzy!", "中"]
        expected = theirs.encode(text, out_type=str)
        assert [side.segment(line.split(" ")) for line in text] == expected
        ids = theirs.encode(text)
        assert list(side.encode(text)) == [i for each in ids for i in (*each, EOS)]
        counts = Counter(i for each in ids[:-2] for i in each)
        if not joint:
            assert [n for _, n in side.vocabulary.counts[4:]] == [counts[i] for i in range(4, size)]
    written = {(tmp_path / f"bpe/vocabulary.{side.language}").read_bytes() for side in sides}
    assert len(written) == (1 if joint else 2)


@pytest.mark.parametrize("model", MODELS)
def test_the_same_text_gives_the_same_bytes_by_any_number_of_workers(tokens, tmp_path, model):
    written = []
    for name, workers in (("one", 1), ("two", 2), ("again", 1)):
        folder = tmp_path / name
        learn(tokens, folder, pieces(model), workers)
        written.append({path.name: path.read_bytes() for path in folder.iterdir()})
    assert written[0] == written[1] == written[2]


def test_a_text_without_a_word_is_refused(tmp_path):
    empty = TextFolder(tmp_path / "tokens", "de", "en")
    write_set(empty, "train", [("", ""), ("", "")])
    with pytest.raises(UserError, match=r"cannot learn such a vocabulary: train has no text$"):
        learn(empty, tmp_path / "bpe", pieces())


@pytest.mark.parametrize("model", MODELS)
def test_bytes_bring_back_any_line(tokens, tmp_path, model):
    side, _ = learn(tokens, tmp_path / "bpe", pieces(model, 380, byte=True))
    for line in [*lines(tokens, "de"), "中文 שלום xyz", *ODD]:
        ids = list(side.encode([line]))
        assert UNK not in ids
        assert " ".join(side.decode(ids)) == " ".join(line.replace("▁", " ").split())
    spelled = [side.vocabulary.tokens.index(f"<0x{byte:02X}>") for byte in (0x0A, 0x0D, 0, 0xFF)]
    first = side.vocabulary.tokens.index("▁")
    assert side.decode([first, *spelled, first, UNK, PAD, BOS, EOS]) == ["\ufffd", "<unk>"]


@pytest.mark.parametrize("model", MODELS)
def test_unknown_characters_are_one_token(tokens, tmp_path, model):
    side, _ = learn(tokens, tmp_path / "bpe", pieces(model))
    ids = list(side.encode(["ba שלום di"]))
    assert ids.count(UNK) == 1
    assert side.decode(ids) == ["ba", "<unk>", "di"]
    assert side.resegment(ids, 0.5, None) == ids


def test_large_text_is_learned_from_in_even_steps(tokens, tmp_path, monkeypatch):
    seen: list[str] = []
    learn_model = learn_sentencepiece.learn_model

    def spy(corpus, settings, lines):
        seen.extend(lines)
        return learn_model(corpus, settings, seen)

    monkeypatch.setattr(learn_sentencepiece, "_MAX_LINES", 210)
    monkeypatch.setattr(learn_sentencepiece, "learn_model", spy)
    learn(tokens, tmp_path / "bpe", pieces(size=60))
    assert seen == lines(tokens, "de")[::3] + lines(tokens, "en")[::3]


@pytest.mark.parametrize(
    ("size", "model", "message"),
    [
        (
            5,
            "unigram",
            r"is 5, but SentencePiece cannot learn such a vocabulary: Vocabulary size is smaller",
        ),
        (99999, "unigram", r"is 99999, but .* size too high \(99999\). Please set it to a value"),
        (
            99999,
            "bpe",
            r"is 99999, but .* size too high \(99999\). Please set it to a value <= \d+",
        ),
    ],
)
def test_an_impossible_size_is_one_line(tokens, tmp_path, size, model, message):
    with pytest.raises(
        UserError, match=r"^corpora\.c\.vocabulary\.sentencepiece\.vocab_size "
    ) as error:
        learn(tokens, tmp_path / "bpe", pieces(model, size))
    assert error.match(message) and "\n" not in str(error.value)
    assert "coverage option" not in str(error.value)
    assert not (tmp_path / "bpe").exists()


@pytest.mark.parametrize("name", ["none", "moses"])
def test_text_goes_through_all_stages(tmp_path, name):
    """Odd characters in every place, also as the only text of a line, and no line is lost."""
    tokenize = Tokenize(name, lowercase=False, hyphens=False, escape=False)
    odd = [(f"{c}Die{c}Katze {c}", f"The {c} cat{c}") for c in [*TORTURE, *ODD]]
    held_out = [*odd, ("", "x"), *PAIRS]
    train = [(f"{source} {n}", f"{target} {n}") for n, (source, target) in enumerate(odd)]
    sets = {"train": [*toy_pairs(200, 1), *train], "valid": PAIRS, "test.x": held_out}
    units = pieces(size=400, byte=True)
    made = prepare(tmp_path / "one", sets, tokenize=tokenize, units=units)
    corpus = made.binary
    assert corpus.sets["test.x"].pairs == len(held_out) and corpus.sets["test.x"].unknown == 0
    for language, place in (("de", 0), ("en", 1)):
        side = corpus.side("test.x", language)
        found = [corpus.text(language, side[i].tolist()) for i in range(len(side))]
        tokens = made.text("tokens").path / f"test.x.{language}"
        expected = [
            corpus.tokenizer(language).detokenize(line.replace("▁", " ").split())
            for line in tokens.read_text().split("\n")[:-1]
        ]
        assert found == expected
        assert [found[i] for i in range(-6, 0)] == [pair[place] for pair in PAIRS]


def test_words_of_statistics_are_those_of_the_text(tmp_path):
    sets = {"train": toy_pairs(200, 1), "valid": PAIRS, "test.x": [*PAIRS, ("", "")]}
    corpus = prepare(tmp_path, sets, tokenize=NONE, units=pieces("bpe", 330, byte=True)).binary
    statistics = CorpusStatistics.from_corpus(corpus)
    side = statistics.sets["test.x"]["de"]
    assert side.words == sum(len(pair[0].split()) for pair in PAIRS)
    assert side.sentences == len(PAIRS) + 1
    segmentation = corpus.segmentation("de")
    found = segmentation.ends_word(np.array(list(segmentation.encode(["Die Katze", "", "Er"]))))
    sizes = [len(segmentation.segment([word])) for word in ("Die", "Katze", "Er")]
    assert max(sizes) > 1
    first, second, third = ([False] * (size - 1) + [True] for size in sizes)
    assert found.tolist() == [*first, *second, True, True, *third, True]  # each EOS among them
