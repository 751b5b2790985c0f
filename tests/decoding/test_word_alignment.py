"""Unknown words are replaced by, and words aligned to, those that the decoder attended to."""

import dataclasses
from types import SimpleNamespace

import pytest
import torch
from test_translate import exported

import systems
from bleuprint.config.corpus import SentencePiece, Units, Words
from bleuprint.config.system import Average
from bleuprint.dataset.subwords.vocabulary import BOS, EOS, PAD, UNK
from bleuprint.decoding import translate
from bleuprint.decoding.engine import Engine
from bleuprint.decoding.word_alignment import WordAligner, WordAlignment, words_of_output
from bleuprint.model.transformer import AttentionWeights, Transformer
from bleuprint.text.parallel import read_lines
from bleuprint.training.averaging import average_checkpoints
from prepared import prepare
from trainings import merges, toy_pairs

PLAIN = systems.decode()


def looking(places, layers=None):
    """A model whose output token i attends to the source token places[i]; EOS to EOS."""

    def attention_weights(source, target):
        cross = torch.zeros(1, 1, target.size(1), source.size(1))
        for row, place in enumerate([*places, source.size(1) - 1]):
            cross[0, 0, row, place] = 1
        square = [torch.zeros(1, 1, each.size(1), each.size(1)) for each in (source, target)]
        return AttentionWeights(square[:1], square[1:], layers or [cross])

    return SimpleNamespace(device="cpu", attention_weights=attention_weights)


def prepared(folder, units):
    pairs = toy_pairs(100, 1)
    sets = {"train": pairs, "valid": pairs[:5], "test.x": toy_pairs(30, 5)}
    return prepare(folder, sets, units=units)


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    """A corpus with vocabularies of the 20 most frequent of 60 words."""
    return prepared(tmp_path_factory.mktemp("words"), Units(words=Words(max_size=20)))


@pytest.fixture(scope="module")
def characters(tmp_path_factory):
    """A corpus whose tokens are characters."""
    return prepared(tmp_path_factory.mktemp("characters"), merges(0)).binary


def test_an_unknown_word_is_the_one_attended_to(words):
    corpus = words.binary
    vocabulary = corpus.segmentation("en").vocabulary.tokens
    decode = systems.decode(replace_unk=True)
    given = [UNK, 5, UNK, EOS], ["one", "two", "three"]
    model = looking([2, 0, 0])
    found = WordAligner(model, corpus, decode).output_words(*given, [UNK, 6, UNK])
    assert found == ["three", vocabulary[6], "one"]
    # of sampling, which draws any token: special ones are no words
    found = WordAligner(model, corpus, decode).output_words(*given, [PAD, UNK, BOS])
    assert found == ["one"]
    unused = looking([])
    assert WordAligner(unused, corpus, decode).output_words(*given, [5, 6]) == vocabulary[5:7]
    found = WordAligner(unused, corpus, PLAIN).output_words(*given, [UNK, 6])
    assert found == ["<unk>", vocabulary[6]]
    aligned = WordAligner(model, corpus, decode).align(given[1], [(given[0], [UNK, 6, UNK])])
    barred = WordAlignment(["a", "|||", "b"], ["|||"], [(1, 0)])
    assert str(barred) == "a &#124;&#124;&#124; b ||| &#124;&#124;&#124; ||| 1-0"
    assert str(aligned) == f"one two three ||| three {vocabulary[6]} one ||| 0-1 0-2 2-0"


def test_the_last_layer_decides_by_the_mean_of_its_heads_and_never_for_the_end(words):
    first = torch.tensor([[[[1.0, 0, 0, 0]] * 2]])
    last = torch.tensor([[[[0.3, 0.1, 0.0, 0.6]] * 2, [[0.0, 0.2, 0.2, 0.6]] * 2]])
    assert last.shape == (1, 2, 2, 4)
    model = looking([], [first.expand(1, 2, 2, 4), last])
    aligner = WordAligner(model, words.binary, PLAIN)
    # means 0.15, 0.15, 0.1, 0.6: of equal ones the first
    assert aligner.attended([4, 5, 6, EOS], [7]) == [0]
    last[0, 1, 0, 1] += 0.01
    assert aligner.attended([4, 5, 6, EOS], [7]) == [1]


def test_the_stage_replaces_unknown_words(words, tmp_path):
    """A test set, with the weights of the model's own attention, which torch averages here."""
    corpus, settings = words.binary, systems.decode(beam=2, max_len_b=5)
    torch.manual_seed(5)
    sizes = (len(corpus.segmentation(side).vocabulary) for side in ("de", "en"))
    shape = systems.model(decoder_layers=2, tie_embeddings="none", output_bias=True)
    model = Transformer(shape, *sizes).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2)
        model.projection.bias[UNK] += 12
    checkpoints = exported(tmp_path, SimpleNamespace(binary=corpus), {9: model}, shape)
    average_checkpoints(checkpoints, Average(last=1), tmp_path / "averaged")
    given = words.root / "binary", tmp_path / "averaged"
    for decode in (settings, dataclasses.replace(settings, replace_unk=True)):
        folder = tmp_path / str(decode.replace_unk)
        translate.translate_tests(*given, decode, folder, words.root / "tokens")
    plain, replaced = (
        (tmp_path / name / "hypotheses" / "test.x.en").read_text().split("\n")
        for name in ("None", "True")
    )
    source = corpus.side("test.x", "de")
    found = Engine(model, settings).search(source, source.lengths)
    texts = words.text("tokens").files("test.x")[0]
    lines, changed = list(read_lines(texts)), 0
    for i, (line, (best,)) in enumerate(zip(lines, found, strict=True)):
        before = corpus.segmentation("en").decode(best.tokens)
        target = torch.tensor([[1, *best.tokens]])
        weights = model.attention_weights(torch.tensor([source[i].tolist()]), target).cross[-1]
        expected = []
        for row, word in enumerate(before):
            place = int(weights[0].mean(0)[row, :-1].argmax())
            expected.append(line.split()[place] if word == "<unk>" else word)
        changed += expected != before
        assert (plain[i], replaced[i]) == (" ".join(before), " ".join(expected))
    assert changed > 10 and "<unk>" in " ".join(plain) and "<unk>" not in " ".join(replaced)


def test_links_are_of_words_and_counted_from_0(characters):
    """Of characters: b@@ a d@@ e f@@ i to D@@ E B@@ A."""
    source, target = (characters.segmentation(side) for side in ("de", "en"))
    words = ["ba", "de", "fi"]
    ids, tokens = (
        s.encode([" ".join(text)]).tolist() for s, text in ((source, words), (target, ["DE", "BA"]))
    )
    assert (len(ids), len(tokens)) == (7, 5)
    aligned = WordAligner(looking([2, 3, 0, 5]), characters, PLAIN).align(
        words, [(ids, tokens[:-1])]
    )
    # A is aligned to fi and B to ba: a word with two links
    assert str(aligned) == "ba de fi ||| DE BA ||| 0-1 1-0 2-1"
    # a second piece follows the first
    pieces = [([*ids[:4], EOS], tokens[:2]), (ids[4:], tokens[2:-1])]
    aligned = WordAligner(looking([0, 1]), characters, PLAIN).align(words, pieces)
    assert str(aligned) == "ba de fi ||| DE BA ||| 0-0 2-1"


def test_the_tag_of_a_direction_is_no_word(words, monkeypatch):
    """Of sources with a tag, which the model attends to, the largest weight at a word counts."""
    corpus, decode = words.binary, systems.decode(replace_unk=True)
    tag = corpus.segmentation("de").vocabulary.tokens[4]
    monkeypatch.setattr(corpus.tags, "languages", {tag: "en"})
    cross = torch.tensor([[[[0.7, 0.1, 0.2, 0.0], [0.6, 0.3, 0.0, 0.1]]]])
    aligner = WordAligner(looking([], [cross]), corpus, decode)
    source, two = [4, UNK, UNK, EOS], ["one", "two"]
    assert aligner.output_words(source, two, [UNK, UNK]) == ["two", "one"]
    assert aligner.align(two, [(source, [UNK, UNK])]).links == [(0, 1), (1, 0)]
    assert aligner.output_words([4, EOS], [], [UNK]) == ["<unk>"]
    assert aligner.align([], [([4, EOS], [UNK])]).links == []


def test_an_unknown_character_divides_no_source_word(characters):
    words = ["bßa", "de"]
    ids = characters.segmentation("de").encode([" ".join(words)]).tolist()
    assert UNK in ids and len(ids) == 6
    tokens = characters.segmentation("en").encode(["BA"]).tolist()[:-1]
    aligned = WordAligner(looking([2, 4]), characters, PLAIN).align(words, [(ids, tokens)])
    assert aligned.links == [(0, 0), (1, 0)]


@pytest.mark.parametrize("size", [70, 130])
def test_words_of_sentencepiece(tmp_path, size):
    """A translation that copies the tokens is aligned word by word, whatever the pieces."""
    units = Units(sentencepiece=SentencePiece("unigram", size, joint=True))
    corpus = prepared(tmp_path, units).binary
    segmentation = corpus.segmentation("de")
    for line in ["ba de fi", "xyz ba", "🙂 ba 🙂🙂 fi", "▁ ba"]:
        ids = segmentation.encode([line]).tolist()
        tokens = ids[:-1]
        words = line.split()
        aligned = WordAligner(looking(range(len(tokens))), corpus, PLAIN).align(
            words, [(ids, tokens)]
        )
        assert aligned.target == segmentation.decode(tokens)
        if len(aligned.target) == len(words):
            assert aligned.links == [(i, i) for i in range(len(words))]
    # words are pieces, or divided
    assert (len(segmentation.encode(["ba de fi"])) > 4) == (size == 70)


def test_words_of_an_output_are_those_of_its_text(characters):
    segmentation = characters.segmentation("en")
    generator = torch.Generator().manual_seed(1)
    for length in [0, 1, 1, 2, *[12] * 50]:
        tokens = torch.randint(UNK, 20, (length,), generator=generator).tolist()
        words, places = words_of_output(segmentation, tokens)
        assert words == segmentation.decode(tokens) and len(places) == length
        assert sorted(places) == places and set(places) == set(range(len(words)))
