"""Checkpoints and models as files: complete, verified, and refused for another training."""

import dataclasses
import hashlib
import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

import systems
from bleuprint.config.experiment import Units, Words
from bleuprint.config.system import Keep
from bleuprint.dataset.binarized import BinaryCorpus
from bleuprint.model.transformer import Transformer
from bleuprint.model.weights import (
    WEIGHTS,
    load_model,
    named_weights,
    write_description,
)
from bleuprint.runtime.errors import UserError
from bleuprint.training import checkpoint
from corpora import PAIRS
from prepared import prepare

SHAPE = systems.model(d_model=8, d_ff=8, heads=2, d_k=4, d_v=4, tie_embeddings="decoder")


FILES = [*checkpoint.FILES, checkpoint.HASHES]


def save(folder: Path, update: int, value: float = 0.0, **state: Any) -> Path:
    tensors = {"a": torch.full((2, 3), value)}
    state = {"fingerprint": "f1", "loss": 0.1, **state}
    return checkpoint.save(folder, update, tensors, {"step": torch.tensor(1.0)}, state)


def updates(folder: Path) -> list[int]:
    return [checkpoint.update_of(path) for path in sorted(folder.glob("checkpoint-*"))]


def test_what_is_saved_is_read(tmp_path: Path) -> None:
    save(tmp_path, 3, 1.5)
    save(tmp_path, 12, 2.5)
    found = checkpoint.load_latest(tmp_path)
    assert found is not None
    assert (found.update, found.state["loss"]) == (12, 0.1)
    assert found.model["a"].tolist() == [[2.5] * 3] * 2


def test_weights_name_their_training_and_repeat_to_the_byte(tmp_path: Path) -> None:
    first, again = (save(tmp_path / name, 3, 1.5) for name in ("a", "b"))
    with safe_open(first / checkpoint.MODEL, "np") as file:
        assert file.metadata() == {"fingerprint": "f1"}
    for name in FILES:
        assert (first / name).read_bytes() == (again / name).read_bytes()


def test_the_newest_is_the_one_of_the_most_updates(tmp_path: Path) -> None:
    save(tmp_path, 9_999_999)
    save(tmp_path, 10_000_000)
    found = checkpoint.load_latest(tmp_path)
    assert found is not None
    assert found.update == 10_000_000


@pytest.mark.parametrize(
    ("there", "keep", "ranking", "finished", "stay"),
    [
        # the newest two regular ones, and the very last
        ([10, 20, 25, 30, 37], Keep(2, 0, 0), [], False, [20, 30, 37]),
        # the last checkpoint of a finished training counts as regular
        ([10, 20, 25, 30, 37], Keep(2, 0, 0), [], True, [30, 37]),
        ([10, 20, 30], Keep(2, 0, 0), [], True, [20, 30]),
        # fewer exist than are to be kept
        ([10, 20], Keep(5, 5, 0), [20], False, [10, 20]),
        # the best, of those that are there
        ([10, 20, 30, 40, 50], Keep(1, 2, 0), [20, 40, 10, 30, 50], False, [20, 40, 50]),
        ([20, 30, 40, 50], Keep(1, 2, 0), [10, 30, 20, 50, 40], False, [20, 30, 50]),
        # one of the best is one of the last
        ([10, 20, 30, 40], Keep(2, 1, 0), [40, 20, 10, 30], False, [30, 40]),
        # a best one that training ends with
        ([10, 20, 25], Keep(1, 1, 0), [25, 10, 20], True, [25]),
        # each thirtieth
        ([10, 20, 30, 40, 50, 60, 70], Keep(1, 0, 30), [], False, [30, 60, 70]),
        # all at once
        ([10, 20, 30, 40, 50, 60, 65], Keep(1, 1, 40), [20, 10], False, [20, 40, 60, 65]),
        ([], Keep(1, 1, 10), [], False, []),
    ],
)
def test_what_need_not_stay_goes(
    tmp_path: Path,
    there: list[int],
    keep: Keep,
    ranking: list[int],
    finished: bool,
    stay: list[int],
) -> None:
    for update in there:
        (tmp_path / f"checkpoint-{update:07d}").mkdir()
    (tmp_path / "damaged-checkpoint-0000005").mkdir()
    checkpoint.prune(tmp_path, keep, 10, ranking, finished)
    assert updates(tmp_path) == stay
    assert (tmp_path / "damaged-checkpoint-0000005").exists()


@pytest.mark.parametrize("seed", range(10))
def test_the_best_of_all_validations_are_there_at_the_end(tmp_path: Path, seed: int) -> None:
    """A long training, interrupted now and then, and killed between saving and pruning."""
    rng = random.Random(seed)
    end = rng.randrange(900, 1000)
    losses: dict[int, float] = {}
    keep, ranked = Keep(last=2, best=3, every=200), list[int]()
    for update in range(1, end + 1):
        if update % 20 == 0 or update == end:
            losses[update] = round(rng.random(), 1)  # so that some are the same
            ranked = sorted(losses, key=lambda one: (losses[one], one))
        if update % 10 == 0 or update == end or rng.random() < 0.02:
            (tmp_path / f"checkpoint-{update:07d}").mkdir()
            if rng.random() < 0.8 or update == end:
                checkpoint.prune(tmp_path, keep, 10, ranked, finished=update == end)
                assert set(ranked[:3]) <= set(updates(tmp_path))
    regular = sorted({*range(10, end + 1, 10), end})
    assert updates(tmp_path) == sorted({*regular[-2:], *ranked[:3], 200, 400, 600, 800, end})


def test_of_one_half_removed_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for update in (10, 20):
        save(tmp_path, update)

    def killed(folder: Path) -> None:
        (folder / checkpoint.MODEL).unlink()
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(shutil, "rmtree", killed)
        checkpoint.prune(tmp_path, Keep(1, 0, 0), 10, [], finished=False)
    assert updates(tmp_path) == [20]
    checkpoint.load_latest(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint-0000020"]


def cut_short(content: bytes, rng: random.Random) -> bytes:
    # what comes after the last bracket of JSON is no content
    return content[: rng.randrange(1, len(content) - 1)]


def flipped(content: bytes, rng: random.Random) -> bytes:
    at, changed = rng.randrange(len(content)), bytearray(content)
    changed[at] ^= 1 << rng.randrange(8)
    return bytes(changed)


def emptied(_: bytes, __: random.Random) -> bytes:
    return b""


@pytest.mark.parametrize("damage", [cut_short, flipped, emptied, None])
@pytest.mark.parametrize("name", FILES)
def test_damaged_ones_go_and_whole_ones_stay(
    tmp_path: Path,
    name: str,
    damage: Callable[[bytes, random.Random], bytes] | None,
    capsys: pytest.CaptureFixture[str],
) -> None:
    rng = random.Random(name)
    save(tmp_path, 1)
    for _ in range(30 if damage in (cut_short, flipped) else 1):
        path = save(tmp_path, 2) / name
        if damage:
            path.write_bytes(damage(path.read_bytes(), rng))
        else:
            path.unlink()
        checkpoint.load_latest(tmp_path)
        assert updates(tmp_path) == [1]
        said = capsys.readouterr().err
        assert "checkpoint-0000002 is damaged" in said
        assert name in said
    found = checkpoint.load_latest(tmp_path)
    assert found is not None
    assert found.update == 1


def test_of_several_damaged_ones_all_go(tmp_path: Path) -> None:
    for update in (1, 2, 3):
        save(tmp_path, update)
    for update in (2, 3):
        (tmp_path / f"checkpoint-{update:07d}" / checkpoint.OPTIMIZER).unlink()
    checkpoint.load_latest(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "checkpoint-0000001",
        "damaged-checkpoint-0000002",
        "damaged-checkpoint-0000003",
    ]


def test_what_is_older_than_a_whole_one_is_let_be(tmp_path: Path) -> None:
    # one of the best may be among them: it is missed when exported, and not passed over
    for update in (1, 2):
        save(tmp_path, update)
    (tmp_path / "checkpoint-0000001" / checkpoint.MODEL).unlink()
    checkpoint.load_latest(tmp_path)
    assert updates(tmp_path) == [1, 2]


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> BinaryCorpus:
    """A corpus with vocabularies of different sizes."""
    units = Units(words=Words(joint=False, max_size=100, min_count=1))
    return prepare(tmp_path_factory.mktemp("words"), {"train": PAIRS}, units=units).binary


def model_folder(root: Path, words: BinaryCorpus) -> tuple[Path, BinaryCorpus, Transformer]:
    """A model's folder, the corpus it belongs to, and the model itself."""
    folder = root / "model"
    folder.mkdir()
    shutil.copytree(words.folder, root / "corpus")
    corpus = BinaryCorpus(root / "corpus")
    source, target = (len(corpus.segmentation(side).vocabulary) for side in ("de", "en"))
    assert source != target
    torch.manual_seed(0)
    model = Transformer(SHAPE, source, target)
    tensors = {name: tensor.numpy().copy() for name, tensor in named_weights(model).items()}
    save_file(tensors, folder / WEIGHTS, {"fingerprint": "f"})
    write_description(folder, SHAPE, corpus, "f")
    describe_average(folder)
    return folder, corpus, model


def describe_average(folder: Path) -> None:
    """Record in model.json that the weights are an average, with their hash."""
    digest = hashlib.sha256((folder / WEIGHTS).read_bytes()).hexdigest()
    description = json.loads((folder / "model.json").read_text())
    description["averaged"] = {"updates": [10, 20], "sha256": digest}
    (folder / "model.json").write_text(json.dumps(description))


def test_a_model_reads_back_as_it_was(tmp_path: Path, words: BinaryCorpus) -> None:
    folder, corpus, model = model_folder(tmp_path, words)
    source, target = torch.tensor([[4, 5, 2]]), torch.tensor([[1, 4]])
    assert torch.equal(load_model(folder, corpus)(source, target), model.eval()(source, target))


def test_weights_in_place_of_an_average_are_refused(tmp_path: Path, words: BinaryCorpus) -> None:
    folder, corpus, _ = model_folder(tmp_path, words)
    older = {name: tensor * 2 for name, tensor in load_file(folder / WEIGHTS).items()}
    save_file(older, folder / WEIGHTS, {"fingerprint": "f"})
    with pytest.raises(UserError, match=r"model\.safetensors: is not the average that .*json desc"):
        load_model(folder, corpus)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("averaged", {"x": 1}),
        ("averaged", [1]),
        ("vocabularies", {}),
        ("vocabularies", {"source": {"size": "x", "sha256": "0"}, "target": {}}),
    ],
)
def test_a_damaged_description_is_one_clear_line(
    tmp_path: Path, words: BinaryCorpus, key: str, value: Any
) -> None:
    folder, corpus, _ = model_folder(tmp_path, words)
    description = json.loads((folder / "model.json").read_text())
    (folder / "model.json").write_text(json.dumps({**description, key: value}))
    with pytest.raises(UserError, match=r"^\S+model\.json: damaged: [^\n]+$"):
        load_model(folder, corpus)


def test_a_model_is_described_by_both_vocabularies(tmp_path: Path, words: BinaryCorpus) -> None:
    folder, corpus, _ = model_folder(tmp_path, words)
    described = json.loads((folder / "model.json").read_text())["vocabularies"]
    for side, language in (("source", "de"), ("target", "en")):
        file = (corpus.folder / "segmentation" / f"vocabulary.{language}").read_bytes()
        assert described[side]["size"] == file.count(b"\n")
        assert described[side]["sha256"] == hashlib.sha256(file).hexdigest()


@pytest.mark.parametrize("language", ["de", "en"])
def test_a_model_of_another_vocabulary_is_refused(
    tmp_path: Path, words: BinaryCorpus, language: str
) -> None:
    folder, corpus, _ = model_folder(tmp_path, words)
    path = corpus.folder / "segmentation" / f"vocabulary.{language}"
    *known, one, other, end = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([*known, other, one, end]))
    with pytest.raises(UserError, match=rf"another vocabulary than .*vocabulary\.{language}$"):
        load_model(folder, BinaryCorpus(corpus.folder))


def test_weights_of_another_shape_are_refused(tmp_path: Path, words: BinaryCorpus) -> None:
    folder, corpus, _ = model_folder(tmp_path, words)
    other = dataclasses.replace(SHAPE, d_ff=10)
    write_description(folder, other, corpus, "f")
    describe_average(folder)
    with pytest.raises(UserError, match=r"fc1\.bias is \(8,\) instead of \(10,\)"):
        load_model(folder, corpus)


def test_weights_that_are_not_finite_are_refused(tmp_path: Path, words: BinaryCorpus) -> None:
    folder, corpus, _ = model_folder(tmp_path, words)
    tensors = load_file(folder / WEIGHTS)
    tensors["encoder.0.self_attention_residual.norm.bias"][0] = np.nan
    save_file(tensors, folder / WEIGHTS, {"fingerprint": "f"})
    describe_average(folder)
    with pytest.raises(UserError, match=r"self_attention_residual\.norm\.bias is not finite"):
        load_model(folder, corpus)


@pytest.mark.parametrize("mark", [{"fingerprint": "g"}, {"by": "another"}, None])
def test_weights_of_another_training_are_refused(
    tmp_path: Path, words: BinaryCorpus, mark: dict[str, str] | None
) -> None:
    folder, corpus, _ = model_folder(tmp_path, words)
    save_file(load_file(folder / WEIGHTS), folder / WEIGHTS, mark)
    describe_average(folder)
    with pytest.raises(
        UserError, match=r"model\.safetensors: belongs to another training than .*json"
    ):
        load_model(folder, corpus)


def test_one_under_anothers_name_is_put_aside(tmp_path: Path) -> None:
    save(tmp_path, 40)
    shutil.copytree(tmp_path / "checkpoint-0000040", tmp_path / "checkpoint-0000050")
    found = checkpoint.load_latest(tmp_path)
    assert found is not None and found.update == 40
    assert (tmp_path / "damaged-checkpoint-0000050").exists()


def test_what_a_user_has_put_beside_them_is_let_be(tmp_path: Path) -> None:
    save(tmp_path, 40)
    for name in ("checkpoint-0000040.bak", "checkpoint-old"):
        (tmp_path / name).mkdir()
    assert [path.name for path in checkpoint.paths(tmp_path)] == ["checkpoint-0000040"]


def test_without_an_intact_checkpoint_training_starts_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for update in (10, 20):
        save(tmp_path, update)
        (tmp_path / f"checkpoint-{update:07d}" / checkpoint.STATE).unlink()
    assert checkpoint.load_latest(tmp_path) is None
    told = capsys.readouterr().err.splitlines()
    assert [line.rpartition(": ")[2] for line in told] == [
        "trying the previous one",
        "starting from scratch",
    ]
