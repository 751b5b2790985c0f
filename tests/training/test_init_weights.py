"""Starts: the weights before the first update, by token; fingerprints; what is refused."""

import dataclasses
import hashlib
import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

import systems
from bleuprint.config.init_from import InitFrom
from bleuprint.config.optimization import Constant, LrSchedule
from bleuprint.config.paths import Run
from bleuprint.dataset.subwords.vocabulary import SPECIALS
from bleuprint.model.transformer import Transformer
from bleuprint.model.weights import named_weights, write_description
from bleuprint.runtime.errors import UserError
from bleuprint.training.fingerprints import Fingerprints
from bleuprint.training.init_weights import (
    InitFiles,
    add_weight_hashes,
    copy_init_weights,
    init_files,
)
from bleuprint.training.job import Job
from bleuprint.training.observer import Observer
from bleuprint.training.outputs import export_checkpoints
from bleuprint.training.trainer import Trainer
from prepared import prepare
from trainings import ALONE, merges, toy_pairs

RUN = Run("micro", "toy", 1)
ROWS = (
    "source_embedding.weight",
    "target_embedding.weight",
    "projection.weight",
    "projection.bias",
)


@pytest.fixture(scope="module")
def corpora(tmp_path_factory):
    """Two corpora of the same languages whose vocabularies share some tokens."""
    folder, sets = tmp_path_factory.mktemp("corpora"), []
    for name, count in (("first", 60), ("second", 20)):
        texts = {"train": toy_pairs(300, count), "valid": toy_pairs(20, 2)}
        sets.append(prepare(folder / name, texts, units=merges(count, joint=False)))
    return sets


def model_of(corpus, seed, **settings):
    """A model with random weights for a corpus."""
    torch.manual_seed(seed)
    sizes = [len(corpus.segmentation(each).vocabulary) for each in (corpus.source, corpus.target)]
    settings = {"tie_embeddings": "none", "output_bias": True, **settings}
    return Transformer(systems.model(**settings), *sizes)


def written(folder, model, corpus):
    """The folder of a model, with its vocabularies."""
    folder.mkdir(parents=True)
    save_file(
        {name: t.clone() for name, t in named_weights(model).items()}, folder / "model.safetensors"
    )
    write_description(folder, model.settings, corpus, "mark")
    for file in (corpus.folder / "segmentation").glob("vocabulary.*"):
        (folder / file.name).write_bytes(file.read_bytes())
    return InitFiles("general own", folder / "model.safetensors")


def test_rows_are_those_of_their_tokens_and_others_stay(tmp_path, corpora):
    first, second = (each.binary for each in corpora)
    start, model = model_of(first, 1), model_of(second, 2)
    initial = {name: tensor.clone() for name, tensor in named_weights(model).items()}
    said, *notes = copy_init_weights(model, second, written(tmp_path / "start", start, first))
    weights, given, taken = named_weights(model), named_weights(start), {}
    for name, tensor in weights.items():
        if name not in ROWS:
            assert torch.equal(tensor, given[name]), name
            continue
        side = second.source if name.startswith("source") else second.target
        here, there = (each.segmentation(side).vocabulary.tokens for each in (second, first))
        for row, token in enumerate(here):  # a loop over tokens is the reference
            expected = given[name][there.index(token)] if token in there else initial[name][row]
            assert torch.equal(tensor[row], expected), (name, token)
        words = {*here} - {*SPECIALS}
        taken[side] = f"{len(words & {*there}):,} of {len(words):,}"
    shares = [f"{taken[second.source]} source", f"{taken[second.target]} target"]
    assert (
        said == f"started from general own: {', '.join(f'{x} tokens taken over' for x in shares)}"
    )
    assert not notes


def test_few_known_tokens_are_noted(tmp_path, corpora):
    pairs = [(f"{'q' * n} w", f"{'Q' * n} W") for n in range(1, 60)]
    other = prepare(tmp_path / "other", {"train": pairs}, units=merges(0, joint=False)).binary
    start = written(tmp_path / "start", model_of(other, 1), other)
    first = corpora[0].binary
    said, note = copy_init_weights(model_of(first, 2), first, start)
    size = len(first.segmentation(first.source).vocabulary) - len(SPECIALS)
    assert f"own: 0 of {size} source tokens taken over" in said
    assert note.startswith("note: the start knows fewer than half of the tokens")


def test_a_joint_vocabulary_is_counted_once(tmp_path):
    joint = prepare(tmp_path / "corpus", {"train": toy_pairs(300, 9)}, units=merges(9)).binary
    start = written(tmp_path / "start", model_of(joint, 1), joint)
    (said,) = copy_init_weights(model_of(joint, 2), joint, start)
    size = len(joint.segmentation(joint.source).vocabulary) - len(SPECIALS)
    assert said == f"started from general own: {size} of {size} tokens taken over"


def job_on(corpus, start, **train):
    schedule = LrSchedule(constant=Constant(lr=0.0))
    settings = systems.train(lr_schedule=schedule, max_updates=2, validate_interval=2, **train)
    model = systems.model(tie_embeddings="none", output_bias=True)
    system = dataclasses.replace(systems.SYSTEM, model=model, train=settings)
    return Job(RUN, system, corpus.binary.folder, corpus.root / "split", "code", start)


@pytest.mark.usefixtures("one_thread")
def test_a_training_starts_there_and_a_learning_rate_of_0_stays_there(tmp_path, corpora):
    corpus = corpora[0]
    start = written(tmp_path / "start", given := model_of(corpus.binary, 7), corpus.binary)
    job = job_on(corpus, start)
    marks = Fingerprints.from_job(job)
    trainer = Trainer(job, ALONE, tmp_path / "work", marks, Observer())
    for _ in range(2):  # before the first update, and after the last
        for name, tensor in named_weights(trainer.model).items():
            assert torch.equal(tensor, named_weights(given)[name]), name
        trainer.run()
    # killed and started again it continues: its weights are not the start's once more
    with torch.no_grad():
        trainer.model.projection.weight.add_(1)
    trainer._save(is_finished=True)
    again = Trainer(job, ALONE, tmp_path / "work", marks, Observer())
    assert again.state.update == 2
    assert torch.equal(again.model.projection.weight, trainer.model.projection.weight)
    export_checkpoints(job, tmp_path / "work", marks, tmp_path / "checkpoints")
    # its own checkpoints are a start, with vocabularies
    with pytest.raises(
        UserError, match=r"checkpoints: no vocabulary.* has the SHA-256 of the source"
    ):
        init_files(InitFrom(folder=str(tmp_path / "checkpoints")), RUN)
    for file in (tmp_path / "start").glob("vocabulary.*"):
        file.rename(tmp_path / "checkpoints" / file.name)
    found = init_files(InitFrom(folder=str(tmp_path / "checkpoints")), RUN)
    assert found.weights.name == "0000002.safetensors"


def test_another_start_is_another_training(tmp_path, corpora):
    corpus = corpora[0]
    starts = [
        written(tmp_path / str(seed), model_of(corpus.binary, seed), corpus.binary)
        for seed in (1, 2)
    ]
    marks = [Fingerprints.from_job(job_on(corpus, start)) for start in (None, *starts)]
    assert len({mark.combined for mark in marks}) == 3
    assert len({(mark.settings, mark.code, mark.data) for mark in marks}) == 1
    assert marks[0].start is None and "start" not in marks[0].by_name()


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        (
            "model.json",
            b'"d_ff": ',
            b'"d_ff": 1',
            "model.json: the first weights have another architecture: model.d_ff is 64, but 164 "
            "in the model that the training starts from",
        ),
        (
            "model.json",
            b'"d_ff"',
            b'"d_fff"',
            "model.json is damaged: field model.d_fff is unknown",
        ),
        (
            "model.json",
            b'"model"',
            b'"modal"',
            "model.json is damaged: field model is missing",
        ),
        ("model.json", b"{", b"[", "model.json is damaged: "),
        ("model.safetensors", b"projection.bias", b"projection.bios", "not the weights of the mod"),
    ],
)
def test_a_damaged_or_foreign_start_is_refused_in_one_line(
    tmp_path, corpora, file, old, new, message
):
    first, second = (each.binary for each in corpora)
    start = written(tmp_path / "start", model_of(first, 1), first)
    path = tmp_path / "start" / file
    path.write_bytes(path.read_bytes().replace(old, new, 1))
    with pytest.raises(UserError) as raised:
        copy_init_weights(model_of(second, 2), second, start)
    assert message in str(raised.value)
    assert len(str(raised.value).splitlines()) == 1


def test_folders(tmp_path, corpora, monkeypatch):
    monkeypatch.chdir(tmp_path)
    corpus = corpora[0].binary
    folder = Path("their/models/small/own/1/averaged")
    weights = written(folder, model_of(corpus, 1), corpus).weights.resolve()
    for file in folder.glob("vocabulary.*"):  # a project has them with its binarized corpus
        (there := Path("their/data/binary/own/segmentation")).mkdir(parents=True, exist_ok=True)
        file.rename(there / file.name)
    given = {"folder": str(folder)}
    runs = {"small": {"own": {"train": {"init_from": given}}, "other": {"train": False}}}
    add_weight_hashes(runs)
    assert given["sha256"] == hashlib.sha256(weights.read_bytes()).hexdigest()
    model = model_of(corpora[1].binary, 2)
    copy_init_weights(model, corpora[1].binary, init_files(InitFrom(**given), RUN))
    (folder / "model.safetensors").write_bytes(b"x")
    for start, message in (
        (
            InitFrom(**given),
            "model.safetensors: its SHA-256 is not the one in train.init_from, but ",
        ),
        (InitFrom(folder="none"), "none: no such folder, but init_from of micro names it"),
        (
            InitFrom(folder="their/models"),
            "no model.safetensors or UPDATE.safetensors with model.json",
        ),
        (InitFrom(system="base", corpus="own"), "starts/micro/1/weights: no such folder"),
    ):
        with pytest.raises(UserError) as raised:
            init_files(start, RUN)
        assert message in str(raised.value)


def test_a_clone_without_the_folder_knows_its_sum(tmp_path, corpora, monkeypatch):
    monkeypatch.chdir(tmp_path)
    corpus = corpora[0].binary
    written(Path("start"), model_of(corpus, 1), corpus)

    def runs():
        return {"small": {"own": {"train": {"init_from": {"folder": "start"}}}}}

    add_weight_hashes(recorded := runs())
    Path("start").rename("elsewhere")
    with pytest.raises(UserError, match=r"start: no such folder, but init_from of small"):
        add_weight_hashes(runs())
    Path("reports").mkdir()
    params = "systems:\n  small:\n    train:\n      init_from: {folder: start}\n"
    Path("params.yaml").write_text(f"corpora:\n  own: {{}}\n{params}")
    place = r"^params.yaml:6: systems.small.train.init_from.folder: .*start: no such folder"
    with pytest.raises(UserError, match=place):
        add_weight_hashes(runs())
    for text in ("<<<<<<<", "[]", '{"runs": 1}', '{"runs": {"small": 1}}'):  # damaged
        Path("reports/resolved.json").write_text(text)
        with pytest.raises(UserError, match=r"start: no such folder"):
            add_weight_hashes(runs())
    Path("reports/resolved.json").write_text(json.dumps({"runs": recorded}))
    add_weight_hashes(found := runs())
    assert found == recorded and "sha256" in found["small"]["own"]["train"]["init_from"]


@pytest.mark.parametrize("updates", [("90", "100"), ("9999990", "10000000")])
def test_of_several_checkpoints_the_one_of_the_largest_update_is_the_start(
    tmp_path, corpora, updates
):
    folder = tmp_path / "start"
    weights = written(folder, model_of(corpora[0].binary, 1), corpora[0].binary).weights
    for update in updates:
        (folder / f"{update}.safetensors").write_bytes(weights.read_bytes())
    weights.unlink()
    found = init_files(InitFrom(folder=str(folder)), RUN)
    assert found.weights.name == f"{updates[-1]}.safetensors"


def test_releases(tmp_path, corpora, monkeypatch):
    monkeypatch.chdir(tmp_path)
    corpus, release = corpora[0].binary, Path("release")
    for system in ("large", "small"):
        written(release / f"models/{system}/own/1/averaged", model_of(corpus, 1), corpus)
    files = [path for path in release.rglob("*") if path.is_file()]
    sums = [
        f"{hashlib.sha256(x.read_bytes()).hexdigest()}  {x.relative_to(release)}\n" for x in files
    ]
    (release / "SHA256SUMS").write_text("".join(sums))
    one = InitFrom(folder="release/models/small/own/1/averaged")
    found = init_files(one, RUN)
    assert found.weights == tmp_path / "release/models/small/own/1/averaged/model.safetensors"
    with pytest.raises(
        UserError, match=r"contains 2 models. Name one of them, such as .*/large/own/1/averaged"
    ):
        init_files(InitFrom(folder="release"), RUN)
    (release / "models/large").rename(tmp_path / "large")
    assert init_files(InitFrom(folder="release"), RUN).weights == found.weights
    description = found.weights.with_name("model.json")
    content = json.loads(description.read_text())
    description.write_text(json.dumps(content | {"fingerprint": "other"}))
    with pytest.raises(
        UserError, match=r"model.json is damaged: its SHA-256 is not the one in SHA256"
    ):
        init_files(one, RUN)
