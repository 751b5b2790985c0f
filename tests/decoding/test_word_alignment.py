"""Alignment of words by the decoder's attention, and replacement of unknown words."""

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
from trainings import bpe_units, toy_pairs


def model_that_attends_to(places):
    """Make a model that attends to chosen places.

    Args:
        places: For each output token, the index of the source token attended to. EOS attends to
            EOS.
    """

    def attention_weights(source, target):
        cross = torch.zeros(1, 1, target.size(1), source.size(1))
        for row, place in enumerate([*places, source.size(1) - 1]):
            cross[0, 0, row, place] = 1
        return without_self_attention(source, target, [cross])

    return SimpleNamespace(device="cpu", attention_weights=attention_weights)


def model_with_cross_attention(layers):
    """Make a model whose attention to the source is fixed, one tensor for each decoder layer."""

    def attention_weights(source, target):
        return without_self_attention(source, target, layers)

    return SimpleNamespace(device="cpu", attention_weights=attention_weights)


def without_self_attention(source, target, cross_layers):
    """Return attention weights that are 0 within the source and within the target."""
    encoder = torch.zeros(1, 1, source.size(1), source.size(1))
    decoder = torch.zeros(1, 1, target.size(1), target.size(1))
    return AttentionWeights([encoder], [decoder], cross_layers)


def prepare_toy_corpus(folder, units):
    """Prepare a toy corpus whose vocabulary has these units."""
    pairs = toy_pairs(100, 1)
    sets = {"train": pairs, "valid": pairs[:5], "test.x": toy_pairs(30, 5)}
    return prepare(folder, sets, units=units)


@pytest.fixture(scope="module")
def word_corpus(tmp_path_factory):
    """A corpus with vocabularies of the 20 most frequent of 60 words."""
    folder = tmp_path_factory.mktemp("words")
    return prepare_toy_corpus(folder, Units(words=Words(max_size=20)))


@pytest.fixture(scope="module")
def character_corpus(tmp_path_factory):
    """A corpus whose tokens are characters; @@ joins a character to the next one."""
    return prepare_toy_corpus(tmp_path_factory.mktemp("characters"), bpe_units(0)).binary


def test_replace_unk_replaces_an_unknown_word_by_the_source_word_attended_to(word_corpus):
    """The first output token attends to the third source word, the third one to the first word."""
    corpus = word_corpus.binary
    known_word = corpus.segmentation("en").vocabulary.tokens[6]
    model = model_that_attends_to([2, 0, 0])
    aligner = WordAligner(model, corpus, systems.decode(replace_unk=True))

    words = aligner.output_words([UNK, 5, UNK, EOS], ["one", "two", "three"], [UNK, 6, UNK])

    assert words == ["three", known_word, "one"]


def test_special_tokens_of_an_output_are_left_out(word_corpus):
    """Sampling draws any token of the vocabulary, also PAD and BOS, which are not text."""
    model = model_that_attends_to([2, 0, 0])
    aligner = WordAligner(model, word_corpus.binary, systems.decode(replace_unk=True))

    words = aligner.output_words([UNK, 5, UNK, EOS], ["one", "two", "three"], [PAD, UNK, BOS])

    assert words == ["one"]


def test_replace_unk_keeps_known_words(word_corpus):
    """Both tokens of the output, 5 and 6, are words of the vocabulary."""
    corpus = word_corpus.binary
    known_words = corpus.segmentation("en").vocabulary.tokens[5:7]
    aligner = WordAligner(model_that_attends_to([]), corpus, systems.decode(replace_unk=True))

    words = aligner.output_words([UNK, 5, UNK, EOS], ["one", "two", "three"], [5, 6])

    assert words == known_words


def test_without_replace_unk_an_unknown_word_is_written_as_unk(word_corpus):
    """The output is an unknown word and token 6, a word of the vocabulary."""
    corpus = word_corpus.binary
    known_word = corpus.segmentation("en").vocabulary.tokens[6]
    aligner = WordAligner(model_that_attends_to([]), corpus, systems.decode())

    words = aligner.output_words([UNK, 5, UNK, EOS], ["one", "two", "three"], [UNK, 6])

    assert words == ["<unk>", known_word]


def test_bars_in_words_are_escaped_in_a_written_alignment():
    """`|||` separates source, target and links."""
    alignment = WordAlignment(["a", "|||", "b"], ["|||"], [(1, 0)])

    assert str(alignment) == "a &#124;&#124;&#124; b ||| &#124;&#124;&#124; ||| 1-0"


def test_an_alignment_contains_the_words_that_replaced_unknown_ones(word_corpus):
    """An alignment is written as: source words, output words, links.

    The output tokens attend to the source words 2, 0 and 0.
    """
    corpus = word_corpus.binary
    known_word = corpus.segmentation("en").vocabulary.tokens[6]
    model = model_that_attends_to([2, 0, 0])
    aligner = WordAligner(model, corpus, systems.decode(replace_unk=True))

    alignment = aligner.align(["one", "two", "three"], [([UNK, 5, UNK, EOS], [UNK, 6, UNK])])

    # A link is SOURCE-TARGET; both count from 0.
    assert str(alignment) == f"one two three ||| three {known_word} one ||| 0-1 0-2 2-0"


@pytest.mark.parametrize(
    ("second_head", "attended"),
    [
        # The means of the heads are 0.15, 0.15, 0.1 and 0.6.
        pytest.param([0.0, 0.2, 0.2, 0.6], 0, id="the first of equal means"),
        pytest.param([0.0, 0.21, 0.2, 0.6], 1, id="the largest mean"),
    ],
)
def test_a_token_attends_to_the_word_with_the_largest_mean_weight_in_the_last_layer(
    word_corpus, second_head, attended
):
    """EOS is not a word: its weight, 0.6, is the largest, but does not count."""
    first_head = [0.3, 0.1, 0.0, 0.6]
    first_layer = torch.tensor([[[[1.0, 0, 0, 0]] * 2] * 2])  # does not count either
    last_layer = torch.tensor([[[first_head] * 2, [second_head] * 2]])
    batch_heads_target_source = (1, 2, 2, 4)
    assert first_layer.shape == last_layer.shape == batch_heads_target_source
    model = model_with_cross_attention([first_layer, last_layer])
    aligner = WordAligner(model, word_corpus.binary, systems.decode())

    assert aligner.most_attended([4, 5, 6, EOS], [7]) == [attended]


@pytest.fixture(scope="module")
def unknown_word_model(word_corpus):
    """A random model whose translations contain many unknown words."""
    corpus = word_corpus.binary
    torch.manual_seed(5)
    settings = systems.model(decoder_layers=2, tie_embeddings="none", output_bias=True)
    source_size = len(corpus.segmentation("de").vocabulary)
    target_size = len(corpus.segmentation("en").vocabulary)
    model = Transformer(settings, source_size, target_size).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2)
        model.projection.bias[UNK] += 12
    return model


def attended_words(model, source_ids, output_ids, source_words):
    """Return the source word that each output token attends to, by the mean over the heads."""
    target = torch.tensor([[BOS, *output_ids]])
    last_layer = model.attention_weights(torch.tensor([source_ids]), target).cross[-1]
    words = []
    for row in range(len(output_ids)):
        without_eos = last_layer[0].mean(0)[row, :-1]
        words.append(source_words[int(without_eos.argmax())])
    return words


def translate_stage_lines(word_corpus, model, folder, replace_unk):
    """Run the translate stage; return the translations of the test set x.

    Args:
        word_corpus: The prepared corpus.
        model: The model that translates.
        folder: Where to write the weights and the translations.
        replace_unk: The setting decode.replace_unk.
    """
    prepared = SimpleNamespace(binary=word_corpus.binary)
    checkpoints = exported(folder, prepared, {9: model}, model.settings)
    average_checkpoints(checkpoints, Average(last=1), folder / "averaged")
    translate.translate_tests(
        word_corpus.root / "binary",
        folder / "averaged",
        systems.decode(beam=2, max_len_b=5, replace_unk=replace_unk),
        folder / "results",
        word_corpus.root / "tokens",
    )
    text = (folder / "results" / "hypotheses" / "test.x.en").read_text()
    return text.split("\n")[:-1]


def searched_translations(word_corpus, model):
    """Search the test set x without the stage.

    Returns:
        For each sentence, the words of its best translation, in which <unk> stands for an unknown
        word, and the source words that these attend to most, by the mean of torch.
    """
    corpus = word_corpus.binary
    source = corpus.side("test.x", "de")
    source_file, _ = word_corpus.text("tokens").files("test.x")
    results = Engine(model, systems.decode(beam=2, max_len_b=5)).search(source, source.lengths)
    translations = []
    for source_line, source_ids, (best,) in zip(
        read_lines(source_file), source, results, strict=True
    ):
        words = corpus.segmentation("en").decode(best.tokens)
        attended = attended_words(model, source_ids.tolist(), best.tokens, source_line.split())
        translations.append((words, attended))
    return translations


def test_the_translate_stage_writes_unknown_words_as_unk_by_default(
    word_corpus, unknown_word_model, tmp_path
):
    """The model is random; many of its output tokens stand for an unknown word."""
    translations = searched_translations(word_corpus, unknown_word_model)
    expected_lines = [" ".join(words) for words, _ in translations]

    lines = translate_stage_lines(word_corpus, unknown_word_model, tmp_path, replace_unk=None)

    assert lines == expected_lines
    lines_with_unknown_words = [line for line in lines if "<unk>" in line]
    assert len(lines_with_unknown_words) > 10


def test_the_translate_stage_replaces_unknown_words_by_the_source_words_attended_to(
    word_corpus, unknown_word_model, tmp_path
):
    """An unknown word is often a name, which is the same in both languages."""
    expected_lines = []
    for words, attended in searched_translations(word_corpus, unknown_word_model):
        replaced_words = []
        for word, attended_word in zip(words, attended, strict=True):
            replaced_words.append(attended_word if word == "<unk>" else word)
        expected_lines.append(" ".join(replaced_words))

    lines = translate_stage_lines(word_corpus, unknown_word_model, tmp_path, replace_unk=True)

    assert lines == expected_lines
    assert "<unk>" not in " ".join(lines)


@pytest.fixture(scope="module")
def source_ids(character_corpus):
    """The token ids of b@@ a d@@ e f@@ i and EOS."""
    token_ids = character_corpus.segmentation("de").encode(["ba de fi"]).tolist()
    assert len(token_ids) == 6 + 1
    return token_ids


@pytest.fixture(scope="module")
def output_ids(character_corpus):
    """The token ids of D@@ E B@@ A, without EOS."""
    token_ids = character_corpus.segmentation("en").encode(["DE BA"]).tolist()
    assert len(token_ids) == 4 + 1
    return token_ids[:-1]


def test_links_of_characters_become_links_of_their_words(character_corpus, source_ids, output_ids):
    """Words count from 0: `1-0` links the second source word and the first word of the output."""
    # D and E attend to d and e, B to b and A to i: the word BA has two links.
    model = model_that_attends_to([2, 3, 0, 5])
    aligner = WordAligner(model, character_corpus, systems.decode())

    alignment = aligner.align(["ba", "de", "fi"], [(source_ids, output_ids)])

    assert str(alignment) == "ba de fi ||| DE BA ||| 0-1 1-0 2-1"


def test_words_of_a_second_piece_count_on_from_those_of_the_first(
    character_corpus, source_ids, output_ids
):
    """A sentence that is too long for the model is translated in pieces."""
    # In each piece the first two characters attend to the first two.
    aligner = WordAligner(model_that_attends_to([0, 1]), character_corpus, systems.decode())
    first_piece = ([*source_ids[:4], EOS], output_ids[:2])  # ba de, DE
    second_piece = (source_ids[4:], output_ids[2:])  # fi, BA

    alignment = aligner.align(["ba", "de", "fi"], [first_piece, second_piece])

    assert str(alignment) == "ba de fi ||| DE BA ||| 0-0 2-1"


@pytest.fixture
def tagged_corpus(word_corpus, monkeypatch):
    """The corpus of words, where token 4 of the source is a tag for the target language."""
    corpus = word_corpus.binary
    tag = corpus.segmentation("de").vocabulary.tokens[4]
    monkeypatch.setattr(corpus.tags, "languages", {tag: "en"})
    return corpus


@pytest.fixture
def tag_aligner(tagged_corpus):
    """An aligner whose model attends most to the tag, then to word 2, and word 1."""
    cross_attention = torch.tensor([[[[0.7, 0.1, 0.2, 0.0], [0.6, 0.3, 0.0, 0.1]]]])
    model = model_with_cross_attention([cross_attention])
    return WordAligner(model, tagged_corpus, systems.decode(replace_unk=True))


def test_an_unknown_word_is_never_replaced_by_the_tag(tag_aligner):
    words = tag_aligner.output_words([4, UNK, UNK, EOS], ["one", "two"], [UNK, UNK])

    assert words == ["two", "one"]


def test_no_word_is_aligned_to_the_tag(tag_aligner):
    alignment = tag_aligner.align(["one", "two"], [([4, UNK, UNK, EOS], [UNK, UNK])])

    assert alignment.links == [(0, 1), (1, 0)]


def test_an_unknown_word_stays_if_the_source_contains_only_a_tag(tag_aligner):
    assert tag_aligner.output_words([4, EOS], [], [UNK]) == ["<unk>"]


def test_nothing_is_aligned_if_the_source_contains_only_a_tag(tag_aligner):
    assert tag_aligner.align([], [([4, EOS], [UNK])]).links == []


def test_an_unknown_character_does_not_divide_its_source_word(character_corpus):
    """The tokens are characters. ß is not in the vocabulary, but is part of the word `bßa`."""
    source_words = ["bßa", "de"]
    source_ids = character_corpus.segmentation("de").encode([" ".join(source_words)]).tolist()
    assert UNK in source_ids  # for ß
    assert len(source_ids) == 3 + 2 + 1
    output_ids = character_corpus.segmentation("en").encode(["BA"]).tolist()[:-1]
    # B attends to a, the third character of the first word, and A to e, in the second word.
    aligner = WordAligner(model_that_attends_to([2, 4]), character_corpus, systems.decode())

    alignment = aligner.align(source_words, [(source_ids, output_ids)])

    assert alignment.links == [(0, 0), (1, 0)]


@pytest.fixture(scope="module", params=[70, 130])
def sentencepiece_corpus(request, tmp_path_factory):
    """A corpus with 70 or 130 pieces of SentencePiece.

    With 70 words are divided into several pieces, with 130 each word of the text is a piece.
    """
    units = Units(sentencepiece=SentencePiece("unigram", request.param, joint=True))
    corpus = prepare_toy_corpus(tmp_path_factory.mktemp("sentencepiece"), units).binary
    three_words_and_eos = 3 + 1
    is_divided = len(corpus.segmentation("de").encode(["ba de fi"])) > three_words_and_eos
    assert is_divided == (request.param == 70)
    return corpus


@pytest.mark.parametrize("line", ["ba de fi", "xyz ba", "🙂 ba 🙂🙂 fi", "▁ ba"])
def test_a_translation_that_copies_each_piece_is_aligned_word_by_word(sentencepiece_corpus, line):
    """The model attends from each output token to the source token at the same place.

    The tokens are SentencePiece pieces, parts of words or whole words.
    """
    segmentation = sentencepiece_corpus.segmentation("de")
    source_words = line.split()
    source_ids = segmentation.encode([line]).tolist()
    output_ids = source_ids[:-1]
    model = model_that_attends_to(range(len(output_ids)))
    aligner = WordAligner(model, sentencepiece_corpus, systems.decode())

    alignment = aligner.align(source_words, [(source_ids, output_ids)])

    assert alignment.target == segmentation.decode(output_ids)
    # Unknown pieces next to each other are decoded as one word.
    if len(alignment.target) == len(source_words):
        assert alignment.links == [(number, number) for number in range(len(source_words))]


@pytest.mark.parametrize("length", [0, 1, 2, 12])
def test_each_token_of_an_output_belongs_to_a_word_of_its_text(character_corpus, length):
    """For 50 random outputs of character tokens, the decoded words number their tokens in order."""
    segmentation = character_corpus.segmentation("en")
    generator = torch.Generator().manual_seed(1)
    for _ in range(50):
        tokens = torch.randint(UNK, 20, (length,), generator=generator).tolist()

        words, word_numbers = words_of_output(segmentation, tokens)

        assert words == segmentation.decode(tokens)
        assert len(word_numbers) == length
        assert sorted(word_numbers) == word_numbers
        assert set(word_numbers) == set(range(len(words)))
