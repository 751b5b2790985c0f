"""The stage binarize writes the tokens of a corpus as ids in arrays of numpy."""

import json
import tracemalloc
from dataclasses import asdict

import numpy as np
import pytest

from bleuprint.config.corpus import Bpe, Units
from bleuprint.corpus.steps.shard import Shard
from bleuprint.dataset import binarize
from bleuprint.dataset.binarize import Binarizing
from bleuprint.dataset.binarized import BinaryCorpus, SetSize
from bleuprint.dataset.learn_vocabulary import learn_segmentation
from bleuprint.dataset.subwords.segmentation import Segmentation
from bleuprint.dataset.subwords.vocabulary import EOS, UNK, Vocabulary
from bleuprint.runtime.errors import UserError
from bleuprint.text import parallel
from bleuprint.text.parallel import TextFolder
from corpora import EDITS, PAIRS, TOKENIZE, UNITS, file_contents, write_set
from steps import run_sharded


def write_vocabularies(folder, joint=False, **words_by_language):
    """Write a segmentation into words; the ids of each language count from 4.

    Args:
        folder: The folder to create.
        joint: Whether the segmentation says that both languages share a vocabulary.
        **words_by_language: The words of each language, in the order of their ids.
    """
    folder.mkdir(parents=True)
    header = {"kind": "words", "joint": joint}
    (folder / "segmentation.json").write_text(json.dumps(header))
    for language, words in words_by_language.items():
        Vocabulary((word, 1) for word in words).write(folder / f"vocabulary.{language}")


def binarizing_step(root, output="out", **sets):
    """Write tokens, and return the step that binarizes them with the segmentation in bpe/.

    Args:
        root: The folder of the tokens, the segmentation and the output.
        output: The name of the output folder.
        **sets: The tokens of each set; test_x is the set test.x.
    """
    tokens = TextFolder(root / "tokens", "de", "en")
    for name, pairs in sets.items():
        write_set(tokens, name.replace("_", "."), pairs)
    return Binarizing(
        corpus="c",
        input_text=tokens,
        output=root / output,
        filter_stats_path=root / f"{output}.json",
        segmentation=root / "bpe",
        tokenize=TOKENIZE,
        edits=EDITS,
        vocabulary=UNITS,
    )


def run(step, shards=1, workers=1):
    """Run the step, and return the corpus that it writes."""
    run_sharded(step, step.output.with_name("shards"), shards, workers)
    return BinaryCorpus(step.output)


def id_lists(side):
    """Return the ids of each sentence of a side, as lists that can be compared."""
    return [ids.tolist() for ids in side]


@pytest.mark.parametrize(
    ("set_name", "language", "expected_ids"),
    [
        pytest.param(
            "train", "de", [[4, 5, EOS], [5, EOS], [4, UNK, EOS]], id="German training text"
        ),
        pytest.param(
            "train", "en", [[4, EOS], [EOS], [UNK, UNK, 4, EOS]], id="English training text"
        ),
        # Names of special symbols in a text are unknown words, or "</s>" would end a sentence.
        pytest.param("valid", "de", [[UNK, UNK, UNK, EOS]], id="German validation text"),
        pytest.param("valid", "en", [[4, EOS]], id="English validation text"),
    ],
)
def test_words_become_ids_and_each_sentence_ends_in_eos(tmp_path, set_name, language, expected_ids):
    """The ids of words count from 4, after the special symbols: a is 4, b is 5, and x is 4.

    The words q and y are not in the vocabularies.
    """
    write_vocabularies(tmp_path / "bpe", de=["a", "b"], en=["x"])
    step = binarizing_step(
        tmp_path,
        train=[("a b", "x"), ("b", ""), ("a q", "y y x")],
        valid=[("</s> <unk> <pad>", "x")],
    )

    side = run(step).side(set_name, language)

    assert id_lists(side) == expected_ids
    assert side.lengths.tolist() == list(map(len, expected_ids))


@pytest.mark.parametrize(
    ("set_name", "pairs", "source_tokens", "target_tokens", "unknown"),
    [("train", 3, 8, 7, 3), ("valid", 1, 4, 2, 3)],
)
def test_the_sizes_of_sets_count_tokens_with_eos(
    tmp_path, set_name, pairs, source_tokens, target_tokens, unknown
):
    """The words q and y are unknown, and names of special symbols in a text, too.

    Each sentence has one EOS more than its words: the three German training sentences have 3 + 2 +
    3 tokens.
    """
    write_vocabularies(tmp_path / "bpe", de=["a", "b"], en=["x"])
    step = binarizing_step(
        tmp_path,
        train=[("a b", "x"), ("b", ""), ("a q", "y y x")],
        valid=[("</s> <unk> <pad>", "x")],
    )

    size = run(step).sets[set_name]

    assert size == SetSize(pairs, source_tokens, target_tokens, unknown)


def test_corpus_json_describes_how_the_text_was_prepared(tmp_path):
    """A translator reads corpus.json to prepare its input in the same way."""
    write_vocabularies(tmp_path / "bpe", joint=True, de=["a"], en=["a"])
    step = binarizing_step(tmp_path, train=[("a", "a")])

    corpus = run(step)

    # The step has the edits unicode and non_printing, and the tokenizer settings TOKENIZE.
    header = json.loads((step.output / "corpus.json").read_text())
    assert header["format"] == "bleuprint binary corpus"
    assert header["version"] == 1
    assert header["clean"] == {"unicode": {"form": "NFC"}, "non_printing": {}}
    assert header["tokenize"] == asdict(TOKENIZE)
    assert corpus.joint


def test_the_segmentation_is_copied_into_the_corpus(tmp_path):
    """So a trained model needs only the folder of its corpus to translate."""
    write_vocabularies(tmp_path / "bpe", joint=True, de=["a"], en=["a"])
    step = binarizing_step(tmp_path, train=[("a", "a")])

    run(step)

    assert file_contents(step.output / "segmentation") == file_contents(tmp_path / "bpe")


SEPARATE_BPE = Units(bpe=Bpe(num_merges=10, joint=False, threshold=0))
JOINT_BPE = Units(bpe=Bpe(num_merges=30, joint=True, threshold=0))
# 27 pairs, some with empty sides: 14 blocks of at most two pairs.
PAIRS_WITH_EMPTY_SIDES = [*PAIRS, ("", "x"), ("y", ""), ("", "")] * 3


@pytest.fixture(params=[SEPARATE_BPE, JOINT_BPE], ids=["separate BPE", "joint BPE"])
def reference_step(request, tmp_path, monkeypatch):
    """A step that has run on the whole text, in blocks of two pairs."""
    monkeypatch.setattr(parallel, "BLOCK_PAIRS", 2)
    monkeypatch.setattr(binarize, "_BLOCK_ELEMENTS", 7)
    step = binarizing_step(tmp_path, "reference", train=PAIRS_WITH_EMPTY_SIDES, test_x=PAIRS)
    learn_segmentation("c", request.param, step.input_text, step.segmentation)
    run(step)
    return step


def test_shards_and_workers_do_not_change_the_output(reference_step, tmp_path):
    """The reference step has processed the text, a training and a test set, in one process."""
    arrays_per_set = 4
    segmentation_files = 5
    expected = file_contents(reference_step.output)
    # Two sets, their segmentation, and corpus.json.
    assert len(expected) == 2 * arrays_per_set + segmentation_files + 1

    for shards in (1, 2, 7):
        for workers in (1, 2, 5):
            step = binarizing_step(tmp_path, f"{shards}-{workers}")
            run(step, shards, workers)
            assert file_contents(step.output) == expected, (shards, workers)
            assert step.filter_stats_path.read_bytes() == (
                reference_step.filter_stats_path.read_bytes()
            )


@pytest.mark.parametrize(("side", "language"), [(0, "de"), (1, "en")])
def test_each_sentence_of_a_text_in_blocks_is_read_back(reference_step, side, language):
    """The text was binarized in blocks of two pairs; some pairs have an empty side."""
    segmentation = Segmentation.read(reference_step.segmentation, language)

    ids = id_lists(BinaryCorpus(reference_step.output).side("train", language))

    expected_ids = []
    for pair in PAIRS_WITH_EMPTY_SIDES:
        expected_ids.append(list(segmentation.encode([pair[side]])))
    assert ids == expected_ids


@pytest.mark.parametrize(
    ("vocabulary_size", "dtype"),
    [
        # With the four special symbols before the words, the largest id is 65,535 or 65,536.
        pytest.param(65532, np.uint16, id="largest vocabulary of two bytes"),
        pytest.param(65533, np.uint32, id="one word more"),
    ],
)
def test_ids_take_two_bytes_if_the_vocabulary_allows(tmp_path, vocabulary_size, dtype):
    """Two bytes hold the ids 0 to 65,535, which halves the size of most corpora on disk."""
    words = [f"w{number}" for number in range(vocabulary_size)]
    write_vocabularies(tmp_path / "bpe", de=words, en=["x"])
    step = binarizing_step(tmp_path, train=[(words[-1], "x")])

    corpus = run(step)

    ids = corpus.side("train", "de")[0]
    assert ids.dtype == dtype
    assert ids.tolist() == [vocabulary_size + 3, EOS]
    assert corpus.side("train", "en")[0].dtype == np.uint16
    header_bytes = 128
    size = (step.output / "train.de.ids.npy").stat().st_size
    assert size == header_bytes + 2 * np.dtype(dtype).itemsize


def test_shards_are_joined_without_being_in_memory(tmp_path):
    """A corpus may exceed the memory: joining a file of 20 MB must take less than 12 MB."""
    write_vocabularies(tmp_path / "bpe", de=["a"], en=["b"])
    pair_of_50_words = (" ".join(["a"] * 50), " ".join(["b"] * 50))
    step = binarizing_step(tmp_path, train=[pair_of_50_words] * 1000)
    shard_folder = tmp_path / "shard"
    shard_folder.mkdir()
    step.process_shard(Shard(), shard_folder, 1)
    # The files of a shard have no header, so that 200 copies in a row are a larger shard.
    for path in shard_folder.iterdir():
        path.write_bytes(path.read_bytes() * 200)

    tracemalloc.start()
    try:
        step.gather([shard_folder], 1)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert (step.output / "train.de.ids.npy").stat().st_size > 20_000_000
    assert peak_bytes < 12_000_000


def test_an_empty_set_is_written_and_read(tmp_path):
    """Files are mapped into memory, for which an empty array is a special case."""
    write_vocabularies(tmp_path / "bpe", de=["a"], en=["b"])

    # The argument `test_empty` makes the test set `test.empty`.
    step = binarizing_step(tmp_path, train=[("a", "b")], test_empty=[])

    side = run(step).side("test.empty", "de")

    assert len(side) == 0
    assert list(side) == []
    assert side.lengths.tolist() == []


@pytest.mark.parametrize("set_name", ["train", "test.x"])
@pytest.mark.parametrize(
    ("english_lines", "message"),
    [
        pytest.param(
            b"b\n\xff\n",
            r"{set_name}\.en:2: byte 1 of the line is 0xff",
            id="byte that is not UTF-8",
        ),
        pytest.param(
            b"b\n", r"{set_name}\.de has 2 lines and .*{set_name}\.en has 1", id="missing line"
        ),
    ],
)
def test_a_text_that_cannot_be_read_is_an_error_that_leaves_no_output(
    tmp_path, set_name, english_lines, message
):
    """A half-written corpus would look complete to the next stage."""
    write_vocabularies(tmp_path / "bpe", de=["a"], en=["b"])
    two_pairs = [("a", "b"), ("a", "b")]
    # The argument `test_x` makes the test set `test.x`.
    step = binarizing_step(tmp_path, train=two_pairs, test_x=two_pairs)
    (tmp_path / "tokens" / f"{set_name}.en").write_bytes(english_lines)

    with pytest.raises(UserError, match=message.format(set_name=set_name)):
        run(step)

    assert not step.output.exists()
    assert not step.filter_stats_path.exists()
    # Outputs that are being written have hidden names.
    hidden_files = list(tmp_path.glob(".*"))
    assert hidden_files == []


def test_hidden_files_of_a_workflow_manager_are_not_copied(tmp_path):
    """Snakemake marks the folders that it manages by such files."""
    write_vocabularies(tmp_path / "bpe", de=["a"], en=["b"])
    step = binarizing_step(tmp_path, "without", train=[("a", "b")])
    run(step)

    (tmp_path / "bpe" / ".snakemake_timestamp").touch()
    step_with_hidden_file = binarizing_step(tmp_path, "with")
    run(step_with_hidden_file)

    assert file_contents(step_with_hidden_file.output) == file_contents(step.output)


def test_the_statistics_count_the_pairs_of_each_set(tmp_path):
    """Binarizing drops no pair, not even one with an empty side."""
    write_vocabularies(tmp_path / "bpe", de=["a"], en=["b"])
    step = binarizing_step(tmp_path, train=[("a", "b")] * 5, valid=[("a", "")], test_x=[])

    corpus = run(step, shards=2)

    filter_stats = json.loads(step.filter_stats_path.read_text())
    assert filter_stats["stage"] == "binarize"
    assert filter_stats["corpus"] == "c"
    assert list(filter_stats["sets"]) == ["train", "valid", "test.x"]
    assert list(corpus.sets) == ["train", "valid", "test.x"]
    for name, pair_count in (("train", 5), ("valid", 1), ("test.x", 0)):
        counts = filter_stats["sets"][name]
        assert counts["pairs_in"] == pair_count
        assert counts["pairs_out"] == pair_count
        assert not counts["dropped"]
        assert corpus.sets[name].pairs == pair_count
