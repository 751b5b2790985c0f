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
    """Prepare two corpora of the same languages whose vocabularies share some tokens."""
    folder = tmp_path_factory.mktemp("corpora")
    corpora = []
    for name, merge_count in (("first", 60), ("second", 20)):
        texts = {"train": toy_pairs(300, seed=merge_count), "valid": toy_pairs(20, seed=2)}
        corpora.append(prepare(folder / name, texts, units=merges(merge_count, joint=False)))
    return corpora


def random_model(corpus, seed):
    """Make a model with random weights for a corpus."""
    torch.manual_seed(seed)
    source_size = len(corpus.segmentation(corpus.source).vocabulary)
    target_size = len(corpus.segmentation(corpus.target).vocabulary)
    settings = systems.model(tie_embeddings="none", output_bias=True)
    return Transformer(settings, source_size, target_size)


def write_model(folder, model, corpus):
    """Write a model and its vocabularies into a folder, and return its files.

    It is the model that a training starts from: its init model.
    """
    folder.mkdir(parents=True)
    weights = {name: tensor.clone() for name, tensor in named_weights(model).items()}
    save_file(weights, folder / "model.safetensors")
    write_description(folder, model.settings, corpus, "mark")
    for file in (corpus.folder / "segmentation").glob("vocabulary.*"):
        (folder / file.name).write_bytes(file.read_bytes())
    return InitFiles("general own", folder / "model.safetensors")


def token_count(corpus, side):
    """Return the size of a vocabulary without special tokens."""
    return len(corpus.segmentation(side).vocabulary) - len(SPECIALS)


def test_weights_that_do_not_depend_on_the_vocabulary_are_copied_from_the_init_model(
    tmp_path, corpora
):
    """All weights but embeddings and projection have the same shape in both models."""
    init_corpus = corpora[0].binary
    corpus = corpora[1].binary
    init_model = random_model(init_corpus, seed=1)
    files = write_model(tmp_path / "init", init_model, init_corpus)
    model = random_model(corpus, seed=2)

    copy_init_weights(model, corpus, files)

    init_weights = named_weights(init_model)
    for name, weights in named_weights(model).items():
        if name not in WEIGHTS_BY_TOKEN:
            assert torch.equal(weights, init_weights[name]), name


@pytest.mark.parametrize("name", WEIGHTS_BY_TOKEN)
def test_rows_of_tokens_are_copied_if_the_init_model_has_the_token_and_else_stay_random(
    tmp_path, corpora, name
):
    """An embedding, for example, has a row for each token of its vocabulary.

    The vocabularies of the two corpora share some of their tokens.
    """
    init_corpus = corpora[0].binary
    corpus = corpora[1].binary
    init_model = random_model(init_corpus, seed=1)
    files = write_model(tmp_path / "init", init_model, init_corpus)
    model = random_model(corpus, seed=2)
    random_rows = named_weights(model)[name].clone()

    copy_init_weights(model, corpus, files)

    init_rows = named_weights(init_model)[name]
    rows = named_weights(model)[name]
    language = corpus.source if name.startswith("source") else corpus.target
    init_tokens = init_corpus.segmentation(language).vocabulary.tokens
    for row, token in enumerate(corpus.segmentation(language).vocabulary.tokens):
        expected = random_rows[row]
        if token in init_tokens:
            expected = init_rows[init_tokens.index(token)]
        assert torch.equal(rows[row], expected), token


def test_a_training_says_how_many_tokens_of_each_side_the_init_model_has(tmp_path, corpora):
    """Special tokens, such as EOS, do not count. More than half are shared: there is no note."""
    init_corpus = corpora[0].binary
    corpus = corpora[1].binary
    files = write_model(tmp_path / "init", random_model(init_corpus, seed=1), init_corpus)

    message, *notes = copy_init_weights(random_model(corpus, seed=2), corpus, files)

    counts = []
    for language in (corpus.source, corpus.target):
        tokens = set(corpus.segmentation(language).vocabulary.tokens) - set(SPECIALS)
        init_tokens = set(init_corpus.segmentation(language).vocabulary.tokens)
        shared_tokens = tokens & init_tokens
        counts.append(f"{len(shared_tokens):,} of {len(tokens):,}")
    source_counts, target_counts = counts
    assert message == (
        f"started from general own: {source_counts} source tokens taken over, "
        f"{target_counts} target tokens taken over"
    )
    assert notes == []


def test_an_init_model_that_has_fewer_than_half_of_the_tokens_is_noted(tmp_path, corpora):
    """The text of the init model contains only the letters q and w, which the corpus lacks."""
    pairs = [("q" * length + " w", "Q" * length + " W") for length in range(1, 60)]
    init_text = {"train": pairs}
    init_corpus = prepare(tmp_path / "q_and_w", init_text, units=merges(0, joint=False)).binary
    files = write_model(tmp_path / "init", random_model(init_corpus, seed=1), init_corpus)
    corpus = corpora[0].binary

    message, note = copy_init_weights(random_model(corpus, seed=2), corpus, files)

    source_tokens = token_count(corpus, corpus.source)
    assert f"own: 0 of {source_tokens} source tokens taken over" in message
    assert note.startswith("note: the vocabulary of these weights contains fewer than half of the")


def test_the_tokens_of_a_joint_vocabulary_are_counted_once(tmp_path):
    """Source and target share one vocabulary, so the message has one number, not one per side."""
    corpus = prepare(tmp_path / "corpus", {"train": toy_pairs(300, 9)}, units=merges(9)).binary
    files = write_model(tmp_path / "init", random_model(corpus, seed=1), corpus)

    (message,) = copy_init_weights(random_model(corpus, seed=2), corpus, files)

    tokens = token_count(corpus, corpus.source)
    assert message == f"started from general own: {tokens} of {tokens} tokens taken over"


def job_on(corpus, files, learning_rate=0.0, **train_settings):
    """Return a training of two updates.

    Args:
        corpus: A prepared corpus.
        files: The files of the init model; None to start from random weights.
        learning_rate: The learning rate of both updates; 0 leaves the weights unchanged.
        train_settings: Settings of the training that differ from the usual ones.
    """
    schedule = LrSchedule(constant=Constant(lr=learning_rate))
    settings = systems.train(
        lr_schedule=schedule, max_updates=2, validate_interval=2, **train_settings
    )
    model = systems.model(tie_embeddings="none", output_bias=True)
    system = dataclasses.replace(systems.SYSTEM, model=model, train=settings)
    return Job(RUN, system, corpus.binary.folder, corpus.root / "split", "code", files)


def new_trainer(job, work):
    """Return a trainer, which continues from the last checkpoint in its work folder, if any."""
    return Trainer(job, ALONE, work, Fingerprints.from_job(job), Observer())


def assert_same_weights(model, expected_model):
    """Fail unless all weights of two models are equal."""
    expected_weights = named_weights(expected_model)
    for name, weights in named_weights(model).items():
        assert torch.equal(weights, expected_weights[name]), name


@pytest.mark.usefixtures("one_thread")
def test_a_training_begins_with_the_weights_of_its_init_model(tmp_path, corpora):
    """Both models have the vocabularies of one corpus, so that all weights are copied."""
    corpus = corpora[0]
    init_model = random_model(corpus.binary, seed=7)
    files = write_model(tmp_path / "init", init_model, corpus.binary)

    trainer = new_trainer(job_on(corpus, files, learning_rate=0.0), tmp_path / "work")

    assert_same_weights(trainer.model, init_model)


@pytest.mark.usefixtures("one_thread")
def test_a_training_keeps_the_weights_of_its_init_model_until_its_first_update(tmp_path, corpora):
    """With learning rate 0, updates change nothing: the run itself must not draw new weights."""
    corpus = corpora[0]
    init_model = random_model(corpus.binary, seed=7)
    files = write_model(tmp_path / "init", init_model, corpus.binary)
    trainer = new_trainer(job_on(corpus, files, learning_rate=0.0), tmp_path / "work")

    trainer.run()

    assert_same_weights(trainer.model, init_model)


@pytest.mark.usefixtures("one_thread")
def test_a_training_continues_with_its_saved_weights_instead_of_those_of_the_init_model(
    tmp_path, corpora
):
    """Copying the init model again would lose what a killed training had learned."""
    corpus = corpora[0]
    files = write_model(tmp_path / "init", random_model(corpus.binary, seed=7), corpus.binary)
    job = job_on(corpus, files)
    trainer = new_trainer(job, tmp_path / "work")
    trainer.run()
    with torch.no_grad():
        trainer.model.projection.weight.add_(1)  # as if updates had changed the weights
    trainer._save(is_finished=True)

    continued = new_trainer(job, tmp_path / "work")

    assert continued.state.update == 2
    assert torch.equal(continued.model.projection.weight, trainer.model.projection.weight)


@pytest.fixture
def exported(tmp_path, corpora):
    """Train and export the checkpoints.

    Returns:
        The folder of the exported checkpoints, and a folder with their vocabularies.
    """
    corpus = corpora[0]
    files = write_model(tmp_path / "init", random_model(corpus.binary, seed=7), corpus.binary)
    job = job_on(corpus, files)
    new_trainer(job, tmp_path / "work").run()
    fingerprints = Fingerprints.from_job(job)
    export_checkpoints(job, tmp_path / "work", fingerprints, tmp_path / "checkpoints")
    return tmp_path / "checkpoints", tmp_path / "init"


@pytest.mark.usefixtures("one_thread")
def test_exported_checkpoints_without_vocabularies_are_refused_as_init_model(exported):
    """Only vocabularies tell which row of an embedding is that of which token."""
    checkpoints, _ = exported

    message = r"checkpoints: no vocabulary.* has the SHA-256 of the source"
    with pytest.raises(UserError, match=message):
        init_files(InitFrom(folder=str(checkpoints)), RUN)


@pytest.mark.usefixtures("one_thread")
def test_exported_checkpoints_with_vocabularies_are_an_init_model(exported):
    """The checkpoints are those of a training of two updates; its last weights are taken."""
    checkpoints, vocabularies = exported
    for file in vocabularies.glob("vocabulary.*"):
        file.rename(checkpoints / file.name)

    files = init_files(InitFrom(folder=str(checkpoints)), RUN)

    assert files.weights.name == "0000002.safetensors"


@pytest.fixture
def fingerprints_of_starts(tmp_path, corpora):
    """Return the fingerprints of a training without init model, and with each of two."""
    corpus = corpora[0]
    fingerprints = [Fingerprints.from_job(job_on(corpus, None))]
    for seed in (1, 2):
        init_model = random_model(corpus.binary, seed)
        files = write_model(tmp_path / str(seed), init_model, corpus.binary)
        fingerprints.append(Fingerprints.from_job(job_on(corpus, files)))
    return fingerprints


def test_each_init_model_gives_a_training_another_fingerprint(fingerprints_of_starts):
    """Trainings with different fingerprints do not continue each other's checkpoints."""
    assert len({fingerprints.combined for fingerprints in fingerprints_of_starts}) == 3


@pytest.mark.parametrize("part", ["settings", "code", "data"])
def test_the_init_model_does_not_change_the_fingerprints_of_other_parts(
    fingerprints_of_starts, part
):
    assert len({fingerprints.by_name()[part] for fingerprints in fingerprints_of_starts}) == 1


def test_a_training_without_init_model_has_no_fingerprint_of_its_start(fingerprints_of_starts):
    without_init_model = fingerprints_of_starts[0]

    assert without_init_model.start is None
    assert "start" not in without_init_model.by_name()


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        pytest.param(
            "model.json",
            b'"d_ff": ',
            b'"d_ff": 1',
            "model.json: the first weights have another architecture: model.d_ff is 64, but 164 "
            "in the model that the training starts from",
            id="another architecture",
        ),
        pytest.param(
            "model.json",
            b'"d_ff"',
            b'"d_fff"',
            "model.json is damaged: field model.d_fff is unknown",
            id="unknown field",
        ),
        pytest.param(
            "model.json",
            b'"model"',
            b'"modal"',
            "model.json is damaged: field model is missing",
            id="missing field",
        ),
        pytest.param("model.json", b"{", b"[", "model.json is damaged: ", id="not JSON"),
        pytest.param(
            "model.safetensors",
            b"projection.bias",
            b"projection.bios",
            "not contain the weights of the mod",
            id="unknown weight",
        ),
    ],
)
def test_a_damaged_or_unsuitable_init_model_is_refused_in_one_line(
    tmp_path, corpora, file, old, new, message
):
    """In one of the model's two files, `old` is replaced by `new`, its first occurrence."""
    init_corpus = corpora[0].binary
    corpus = corpora[1].binary
    files = write_model(tmp_path / "init", random_model(init_corpus, seed=1), init_corpus)
    path = tmp_path / "init" / file
    path.write_bytes(path.read_bytes().replace(old, new, 1))

    with pytest.raises(UserError) as raised:
        copy_init_weights(random_model(corpus, seed=2), corpus, files)

    assert message in str(raised.value)
    assert len(str(raised.value).splitlines()) == 1


@pytest.fixture
def project_model(tmp_path, corpora, monkeypatch):
    """Write a model of another project, whose vocabularies are in its binarized corpus.

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
    """If the weights change later, their new hash tells DVC to train again."""
    init_from = {"folder": str(project_model)}
    runs = {"small": {"own": {"train": {"init_from": init_from}}, "other": {"train": False}}}

    add_weight_hashes(runs)

    weights = (project_model / "model.safetensors").read_bytes()
    assert init_from["sha256"] == hashlib.sha256(weights).hexdigest()


def test_a_model_of_another_project_is_an_init_model(project_model, corpora):
    """Its vocabularies are read from the other project; without them, copying is an error."""
    corpus = corpora[1].binary
    weights_path = project_model / "model.safetensors"
    sha256 = hashlib.sha256(weights_path.read_bytes()).hexdigest()

    files = init_files(InitFrom(folder=str(project_model), sha256=sha256), RUN)
    copy_init_weights(random_model(corpus, seed=2), corpus, files)

    assert files.weights.read_bytes() == weights_path.read_bytes()


def test_an_init_model_whose_weights_have_changed_is_refused(project_model):
    """The setting `sha256` is that of the weights before they were overwritten."""
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
        pytest.param(
            InitFrom(folder="none"),
            "none does not exist, but init_from of micro names it",
            id="no folder",
        ),
        pytest.param(
            InitFrom(folder="their/models"),
            "does not contain weights (model.safetensors or UPDATE.safetensors) and model.json",
            id="no model in the folder",
        ),
        pytest.param(
            InitFrom(system="base", corpus="own"),
            "starts/micro/1/weights does not exist",
            id="no model of the system",
        ),
    ],
)
def test_an_init_model_that_does_not_exist_is_refused(init_from, message):
    """`init_from` names a folder, or a system and its corpus. The training is one of `micro`."""
    with pytest.raises(UserError) as raised:
        init_files(init_from, RUN)

    assert message in str(raised.value)


def runs_with_init_from():
    """Return the resolved settings of a run whose init model is in the folder `start`."""
    return {"small": {"own": {"train": {"init_from": {"folder": "start"}}}}}


@pytest.fixture
def recorded_runs(tmp_path, corpora, monkeypatch):
    """Return settings with the hash of the init model, whose folder then gets another name.

    The working directory is the project.
    """
    monkeypatch.chdir(tmp_path)
    corpus = corpora[0].binary
    write_model(Path("start"), random_model(corpus, seed=1), corpus)
    runs = runs_with_init_from()
    add_weight_hashes(runs)
    Path("start").rename("elsewhere")
    Path("reports").mkdir()
    return runs


@pytest.mark.usefixtures("recorded_runs")
def test_an_init_model_whose_folder_is_missing_is_refused():
    with pytest.raises(UserError, match=r"start does not exist, but init_from of small"):
        add_weight_hashes(runs_with_init_from())


@pytest.mark.usefixtures("recorded_runs")
def test_the_message_about_a_missing_init_model_names_its_line_in_params_yaml():
    """Folder `start` does not exist, and no committed settings contain the hash of its weights."""
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
        add_weight_hashes(runs_with_init_from())


@pytest.mark.usefixtures("recorded_runs")
@pytest.mark.parametrize("damaged_json", ["<<<<<<<", "[]", '{"runs": 1}', '{"runs": {"small": 1}}'])
def test_a_damaged_resolved_json_gives_no_hash_of_a_missing_init_model(damaged_json):
    """A conflict of a Git merge may damage it. The error is the one about the missing folder."""
    Path("reports/resolved.json").write_text(damaged_json)

    with pytest.raises(UserError, match=r"start does not exist"):
        add_weight_hashes(runs_with_init_from())


def test_the_hash_of_a_missing_init_model_is_read_from_the_committed_settings(recorded_runs):
    """A clone of the project has reports/resolved.json, but not the folder of the init model."""
    Path("reports/resolved.json").write_text(json.dumps({"runs": recorded_runs}))
    runs = runs_with_init_from()
    assert "sha256" not in runs["small"]["own"]["train"]["init_from"]

    add_weight_hashes(runs)

    assert "sha256" in runs["small"]["own"]["train"]["init_from"]
    assert runs == recorded_runs


@pytest.mark.parametrize("updates", [("90", "100"), ("9999990", "10000000")])  # last is largest
def test_the_checkpoint_of_the_largest_update_in_a_folder_is_the_init_model(
    tmp_path, corpora, updates
):
    """Sorted as text, the larger of the two updates would come first."""
    folder = tmp_path / "init"
    corpus = corpora[0].binary
    weights = write_model(folder, random_model(corpus, seed=1), corpus).weights
    for update in updates:
        (folder / f"{update}.safetensors").write_bytes(weights.read_bytes())
    weights.unlink()

    files = init_files(InitFrom(folder=str(folder)), RUN)

    assert files.weights.name == f"{updates[-1]}.safetensors"


@pytest.fixture
def release(tmp_path, corpora, monkeypatch):
    """Write a release of two models, large and small, with the SHA-256 of their files."""
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


def test_a_model_in_a_release_is_an_init_model(release):
    """A release contains the models of several systems; the folder names one of them."""
    folder = release / "models/small/own/1/averaged"

    files = init_files(InitFrom(folder=str(folder)), RUN)

    assert files.weights == folder.resolve() / "model.safetensors"


@pytest.mark.usefixtures("release")
def test_a_release_with_two_models_is_refused_with_an_example_of_one():
    """The release contains the systems large and small, of which large comes first."""
    message = r"contains 2 models. Name one of them, such as .*/large/own/1/averaged"
    with pytest.raises(UserError, match=message):
        init_files(InitFrom(folder="release"), RUN)


def test_a_release_with_one_model_is_an_init_model(release, tmp_path):
    """Without its second model, the release as a whole can be named: the choice is clear."""
    (release / "models/large").rename(tmp_path / "large")

    files = init_files(InitFrom(folder="release"), RUN)

    folder = release / "models/small/own/1/averaged"
    assert files.weights == folder.resolve() / "model.safetensors"


def test_a_file_of_a_release_that_differs_from_sha256sums_is_refused(release):
    """A release lists the SHA-256 of its files; one of them is changed, as by a broken download."""
    folder = release / "models/small/own/1/averaged"
    description_path = folder / "model.json"
    description = json.loads(description_path.read_text())
    description["fingerprint"] = "other"
    description_path.write_text(json.dumps(description))

    message = r"model.json is damaged: its SHA-256 is not the one in SHA256"
    with pytest.raises(UserError, match=message):
        init_files(InitFrom(folder=str(folder)), RUN)
