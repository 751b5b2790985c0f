"""Training that starts from another model's weights, with `train.init_from`."""

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
# Weights with a row for each token of a vocabulary; all others do not depend on the vocabulary.
WEIGHTS_BY_TOKEN = (
    "source_embedding.weight",
    "target_embedding.weight",
    "projection.weight",
    "projection.bias",
)


@pytest.fixture(scope="module")
def corpora(tmp_path_factory):
    """Two corpora of the same languages whose vocabularies share some tokens."""
    folder = tmp_path_factory.mktemp("corpora")
    corpora = []
    for name, count in (("first", 60), ("second", 20)):
        texts = {"train": toy_pairs(300, count), "valid": toy_pairs(20, 2)}
        corpora.append(prepare(folder / name, texts, units=merges(count, joint=False)))
    return corpora


def random_model(corpus, seed):
    """Make a model with random weights for a corpus."""
    torch.manual_seed(seed)
    source_size = len(corpus.segmentation(corpus.source).vocabulary)
    target_size = len(corpus.segmentation(corpus.target).vocabulary)
    settings = systems.model(tie_embeddings="none", output_bias=True)
    return Transformer(settings, source_size, target_size)


def write_model(folder, model, corpus):
    """Write a model and its vocabularies into a folder; return it as a start of trainings."""
    folder.mkdir(parents=True)
    weights = {name: tensor.clone() for name, tensor in named_weights(model).items()}
    save_file(weights, folder / "model.safetensors")
    write_description(folder, model.settings, corpus, "mark")
    for file in (corpus.folder / "segmentation").glob("vocabulary.*"):
        (folder / file.name).write_bytes(file.read_bytes())
    return InitFiles("general own", folder / "model.safetensors")


def word_count(corpus, side):
    """Return the size of a vocabulary without special tokens."""
    return len(corpus.segmentation(side).vocabulary) - len(SPECIALS)


def test_weights_that_do_not_depend_on_the_vocabulary_are_those_of_the_start(tmp_path, corpora):
    first = corpora[0].binary
    second = corpora[1].binary
    start = random_model(first, seed=1)
    model = random_model(second, seed=2)

    copy_init_weights(model, second, write_model(tmp_path / "start", start, first))

    start_weights = named_weights(start)
    for name, tensor in named_weights(model).items():
        if name not in WEIGHTS_BY_TOKEN:
            assert torch.equal(tensor, start_weights[name]), name


@pytest.mark.parametrize("name", WEIGHTS_BY_TOKEN)
def test_a_token_has_the_row_of_the_start_if_the_start_knows_it_else_its_random_row(
    tmp_path, corpora, name
):
    first = corpora[0].binary
    second = corpora[1].binary
    start = random_model(first, seed=1)
    model = random_model(second, seed=2)
    random_rows = named_weights(model)[name].clone()

    copy_init_weights(model, second, write_model(tmp_path / "start", start, first))

    start_rows = named_weights(start)[name]
    rows = named_weights(model)[name]
    side = second.source if name.startswith("source") else second.target
    start_tokens = first.segmentation(side).vocabulary.tokens
    for row, token in enumerate(second.segmentation(side).vocabulary.tokens):
        if token in start_tokens:
            expected = start_rows[start_tokens.index(token)]
        else:
            expected = random_rows[row]
        assert torch.equal(rows[row], expected), token


def test_the_message_of_the_start_counts_the_known_tokens_of_both_sides(tmp_path, corpora):
    first = corpora[0].binary
    second = corpora[1].binary
    start = write_model(tmp_path / "start", random_model(first, seed=1), first)

    message, *notes = copy_init_weights(random_model(second, seed=2), second, start)

    shares = []
    for side in (second.source, second.target):
        tokens = set(second.segmentation(side).vocabulary.tokens) - set(SPECIALS)
        known_tokens = tokens & set(first.segmentation(side).vocabulary.tokens)
        shares.append(f"{len(known_tokens):,} of {len(tokens):,}")
    assert message == (
        f"started from general own: {shares[0]} source tokens taken over, "
        f"{shares[1]} target tokens taken over"
    )
    assert not notes


def test_a_start_that_knows_fewer_than_half_of_the_tokens_is_noted(tmp_path, corpora):
    pairs = [("q" * length + " w", "Q" * length + " W") for length in range(1, 60)]
    foreign = prepare(tmp_path / "foreign", {"train": pairs}, units=merges(0, joint=False)).binary
    start = write_model(tmp_path / "start", random_model(foreign, seed=1), foreign)
    corpus = corpora[0].binary

    message, note = copy_init_weights(random_model(corpus, seed=2), corpus, start)

    source_words = word_count(corpus, corpus.source)
    assert f"own: 0 of {source_words} source tokens taken over" in message
    assert note.startswith("note: the vocabulary of these weights contains fewer than half of the")


def test_the_message_of_the_start_counts_the_tokens_of_a_joint_vocabulary_once(tmp_path):
    corpus = prepare(tmp_path / "corpus", {"train": toy_pairs(300, 9)}, units=merges(9)).binary
    start = write_model(tmp_path / "start", random_model(corpus, seed=1), corpus)

    (message,) = copy_init_weights(random_model(corpus, seed=2), corpus, start)

    words = word_count(corpus, corpus.source)
    assert message == f"started from general own: {words} of {words} tokens taken over"


def job_on(corpus, start, **train):
    """Make the job of a training with learning rate 0, of two updates, with this start."""
    schedule = LrSchedule(constant=Constant(lr=0.0))
    settings = systems.train(lr_schedule=schedule, max_updates=2, validate_interval=2, **train)
    model = systems.model(tie_embeddings="none", output_bias=True)
    system = dataclasses.replace(systems.SYSTEM, model=model, train=settings)
    return Job(RUN, system, corpus.binary.folder, corpus.root / "split", "code", start)


@pytest.mark.usefixtures("one_thread")
def test_a_training_with_learning_rate_0_begins_and_ends_with_the_weights_of_its_start(
    tmp_path, corpora
):
    corpus = corpora[0]
    start_model = random_model(corpus.binary, seed=7)
    start = write_model(tmp_path / "start", start_model, corpus.binary)
    job = job_on(corpus, start)
    trainer = Trainer(job, ALONE, tmp_path / "work", Fingerprints.from_job(job), Observer())

    start_weights = named_weights(start_model)
    for name, tensor in named_weights(trainer.model).items():
        assert torch.equal(tensor, start_weights[name]), name
    trainer.run()
    for name, tensor in named_weights(trainer.model).items():
        assert torch.equal(tensor, start_weights[name]), name


@pytest.mark.usefixtures("one_thread")
def test_a_training_that_continues_has_its_own_weights_and_not_those_of_the_start(
    tmp_path, corpora
):
    corpus = corpora[0]
    start = write_model(tmp_path / "start", random_model(corpus.binary, seed=7), corpus.binary)
    job = job_on(corpus, start)
    fingerprints = Fingerprints.from_job(job)
    trainer = Trainer(job, ALONE, tmp_path / "work", fingerprints, Observer())
    trainer.run()
    with torch.no_grad():
        trainer.model.projection.weight.add_(1)
    trainer._save(is_finished=True)

    continued = Trainer(job, ALONE, tmp_path / "work", fingerprints, Observer())

    assert continued.state.update == 2
    assert torch.equal(continued.model.projection.weight, trainer.model.projection.weight)


@pytest.mark.usefixtures("one_thread")
def test_exported_checkpoints_are_a_start_once_their_vocabularies_are_beside_them(
    tmp_path, corpora
):
    corpus = corpora[0]
    start = write_model(tmp_path / "start", random_model(corpus.binary, seed=7), corpus.binary)
    job = job_on(corpus, start)
    fingerprints = Fingerprints.from_job(job)
    Trainer(job, ALONE, tmp_path / "work", fingerprints, Observer()).run()
    checkpoints = tmp_path / "checkpoints"
    export_checkpoints(job, tmp_path / "work", fingerprints, checkpoints)

    with pytest.raises(
        UserError, match=r"checkpoints: no vocabulary.* has the SHA-256 of the source"
    ):
        init_files(InitFrom(folder=str(checkpoints)), RUN)
    for file in (tmp_path / "start").glob("vocabulary.*"):
        file.rename(checkpoints / file.name)
    files = init_files(InitFrom(folder=str(checkpoints)), RUN)

    assert files.weights.name == "0000002.safetensors"


def test_each_start_gives_a_training_another_fingerprint(tmp_path, corpora):
    """Trainings with different fingerprints do not continue each other's checkpoints."""
    corpus = corpora[0]
    fingerprints = [Fingerprints.from_job(job_on(corpus, None))]
    for seed in (1, 2):
        model = random_model(corpus.binary, seed)
        start = write_model(tmp_path / str(seed), model, corpus.binary)
        fingerprints.append(Fingerprints.from_job(job_on(corpus, start)))

    without_start = fingerprints[0]
    assert len({fingerprint.combined for fingerprint in fingerprints}) == 3
    assert without_start.start is None
    assert "start" not in without_start.by_name()
    # The start is a part of its own: the other parts are equal.
    assert {fingerprint.settings for fingerprint in fingerprints} == {without_start.settings}
    assert {fingerprint.code for fingerprint in fingerprints} == {without_start.code}
    assert {fingerprint.data for fingerprint in fingerprints} == {without_start.data}


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
        (
            "model.safetensors",
            b"projection.bias",
            b"projection.bios",
            "not contain the weights of the mod",
        ),
    ],
)
def test_a_damaged_or_foreign_start_is_refused_in_one_line(
    tmp_path, corpora, file, old, new, message
):
    first = corpora[0].binary
    second = corpora[1].binary
    start = write_model(tmp_path / "start", random_model(first, seed=1), first)
    path = tmp_path / "start" / file
    path.write_bytes(path.read_bytes().replace(old, new, 1))

    with pytest.raises(UserError) as raised:
        copy_init_weights(random_model(second, seed=2), second, start)

    assert message in str(raised.value)
    assert len(str(raised.value).splitlines()) == 1


@pytest.fixture
def project_model(tmp_path, corpora, monkeypatch):
    """The folder of a model in another project, whose vocabularies are in its binarized corpus.

    The working directory is the one that contains the other project.
    """
    monkeypatch.chdir(tmp_path)
    corpus = corpora[0].binary
    folder = Path("their/models/small/own/1/averaged")
    write_model(folder, random_model(corpus, seed=1), corpus)
    segmentation = Path("their/data/binary/own/segmentation")
    segmentation.mkdir(parents=True)
    for file in folder.glob("vocabulary.*"):
        file.rename(segmentation / file.name)
    return folder


def test_the_hash_of_the_weights_is_added_to_init_from(project_model):
    init_from = {"folder": str(project_model)}
    runs = {"small": {"own": {"train": {"init_from": init_from}}, "other": {"train": False}}}

    add_weight_hashes(runs)

    weights = (project_model / "model.safetensors").read_bytes()
    assert init_from["sha256"] == hashlib.sha256(weights).hexdigest()


def test_a_model_of_another_project_is_a_start(project_model, corpora):
    corpus = corpora[1].binary
    weights = (project_model / "model.safetensors").read_bytes()
    sha256 = hashlib.sha256(weights).hexdigest()

    files = init_files(InitFrom(folder=str(project_model), sha256=sha256), RUN)

    copy_init_weights(random_model(corpus, seed=2), corpus, files)


def test_a_start_whose_weights_have_changed_is_refused(project_model):
    weights = project_model / "model.safetensors"
    sha256 = hashlib.sha256(weights.read_bytes()).hexdigest()
    weights.write_bytes(b"x")

    message = r"model.safetensors has SHA-256 [0-9a-f]{64}, which is not the one in train.init_from"
    with pytest.raises(UserError, match=message):
        init_files(InitFrom(folder=str(project_model), sha256=sha256), RUN)


@pytest.mark.usefixtures("project_model")
@pytest.mark.parametrize(
    ("init_from", "message"),
    [
        (InitFrom(folder="none"), "none does not exist, but init_from of micro names it"),
        (
            InitFrom(folder="their/models"),
            "does not contain weights (model.safetensors or UPDATE.safetensors) and model.json",
        ),
        (InitFrom(system="base", corpus="own"), "starts/micro/1/weights does not exist"),
    ],
    ids=["no folder", "no model in the folder", "no model of the system"],
)
def test_a_start_that_does_not_exist_is_refused(init_from, message):
    with pytest.raises(UserError) as raised:
        init_files(init_from, RUN)

    assert message in str(raised.value)


def runs_with_a_start():
    """Return resolved settings of a run that starts from the model in the folder `start`."""
    return {"small": {"own": {"train": {"init_from": {"folder": "start"}}}}}


@pytest.fixture
def recorded_runs(tmp_path, corpora, monkeypatch):
    """The settings with the hash of the start, whose folder does not exist any more.

    The working directory is the project.
    """
    monkeypatch.chdir(tmp_path)
    corpus = corpora[0].binary
    write_model(Path("start"), random_model(corpus, seed=1), corpus)
    runs = runs_with_a_start()
    add_weight_hashes(runs)
    Path("start").rename("elsewhere")
    Path("reports").mkdir()
    return runs


@pytest.mark.usefixtures("recorded_runs")
def test_a_start_without_its_folder_is_refused():
    with pytest.raises(UserError, match=r"start does not exist, but init_from of small"):
        add_weight_hashes(runs_with_a_start())


@pytest.mark.usefixtures("recorded_runs")
def test_the_message_of_a_missing_start_names_its_line_in_params_yaml():
    lines = [
        "corpora:",
        "  own: {}",
        "systems:",
        "  small:",
        "    train:",
        "      init_from: {folder: start}",
    ]
    Path("params.yaml").write_text("\n".join(lines) + "\n")

    message = r"^params.yaml:6: systems.small.train.init_from.folder: .*start does not exist"
    with pytest.raises(UserError, match=message):
        add_weight_hashes(runs_with_a_start())


@pytest.mark.usefixtures("recorded_runs")
@pytest.mark.parametrize(
    "damaged_record", ["<<<<<<<", "[]", '{"runs": 1}', '{"runs": {"small": 1}}']
)
def test_a_damaged_record_contains_no_hash_of_a_missing_start(damaged_record):
    Path("reports/resolved.json").write_text(damaged_record)

    with pytest.raises(UserError, match=r"start does not exist"):
        add_weight_hashes(runs_with_a_start())


def test_the_hash_of_a_missing_start_is_read_from_the_committed_settings(recorded_runs):
    """A clone has reports/resolved.json, but not the folder of the model."""
    Path("reports/resolved.json").write_text(json.dumps({"runs": recorded_runs}))
    runs = runs_with_a_start()

    add_weight_hashes(runs)

    assert runs == recorded_runs
    assert "sha256" in runs["small"]["own"]["train"]["init_from"]


@pytest.mark.parametrize("updates", [("90", "100"), ("9999990", "10000000")])
def test_of_several_checkpoints_the_one_of_the_largest_update_is_the_start(
    tmp_path, corpora, updates
):
    folder = tmp_path / "start"
    corpus = corpora[0].binary
    weights = write_model(folder, random_model(corpus, seed=1), corpus).weights
    for update in updates:
        (folder / f"{update}.safetensors").write_bytes(weights.read_bytes())
    weights.unlink()

    files = init_files(InitFrom(folder=str(folder)), RUN)

    assert files.weights.name == f"{updates[-1]}.safetensors"


@pytest.fixture
def release(tmp_path, corpora, monkeypatch):
    """The folder `release` with two models, large and small, and their SHA256SUMS."""
    monkeypatch.chdir(tmp_path)
    corpus = corpora[0].binary
    release = Path("release")
    for system in ("large", "small"):
        folder = release / f"models/{system}/own/1/averaged"
        write_model(folder, random_model(corpus, seed=1), corpus)
    lines = []
    for path in release.rglob("*"):
        if path.is_file():
            sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
            lines.append(f"{sha256}  {path.relative_to(release)}\n")
    (release / "SHA256SUMS").write_text("".join(lines))
    return release


def test_a_model_of_a_release_is_a_start(release):
    folder = release / "models/small/own/1/averaged"

    files = init_files(InitFrom(folder=str(folder)), RUN)

    assert files.weights == folder.resolve() / "model.safetensors"


@pytest.mark.usefixtures("release")
def test_a_release_with_two_models_is_refused_with_an_example_of_one():
    with pytest.raises(
        UserError, match=r"contains 2 models. Name one of them, such as .*/large/own/1/averaged"
    ):
        init_files(InitFrom(folder="release"), RUN)


def test_a_release_with_one_model_is_a_start(release, tmp_path):
    (release / "models/large").rename(tmp_path / "large")

    files = init_files(InitFrom(folder="release"), RUN)

    folder = release / "models/small/own/1/averaged"
    assert files.weights == folder.resolve() / "model.safetensors"


def test_a_file_of_a_release_that_differs_from_sha256sums_is_refused(release):
    folder = release / "models/small/own/1/averaged"
    description = json.loads((folder / "model.json").read_text())
    (folder / "model.json").write_text(json.dumps(description | {"fingerprint": "other"}))

    with pytest.raises(
        UserError, match=r"model.json is damaged: its SHA-256 is not the one in SHA256"
    ):
        init_files(InitFrom(folder=str(folder)), RUN)
