"""Training that starts from another model's weights, with `train.init_from`."""

import dataclasses

import pytest
import torch

import systems
from bleuprint.config.init_from import InitFrom
from bleuprint.config.optimization import Constant, LrSchedule
from bleuprint.dataset.subwords.vocabulary import SPECIALS
from bleuprint.model.weights import named_weights
from bleuprint.runtime.errors import UserError
from bleuprint.training.fingerprints import Fingerprints
from bleuprint.training.init_weights import copy_init_weights, init_files
from bleuprint.training.job import Job
from bleuprint.training.observer import Observer
from bleuprint.training.outputs import export_checkpoints
from bleuprint.training.trainer import Trainer
from init_models import RUN, random_model, write_model
from prepared import prepare
from trainings import ONE_PROCESS, bpe_units, toy_pairs

# Weights with a row for each token of a vocabulary; all others do not depend on the vocabulary.
WEIGHTS_BY_TOKEN = (
    "source_embedding.weight",
    "target_embedding.weight",
    "projection.weight",
    "projection.bias",
)


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
    init_corpus = prepare(tmp_path / "q_and_w", init_text, units=bpe_units(0, joint=False)).binary
    files = write_model(tmp_path / "init", random_model(init_corpus, seed=1), init_corpus)
    corpus = corpora[0].binary

    message, note = copy_init_weights(random_model(corpus, seed=2), corpus, files)

    source_tokens = token_count(corpus, corpus.source)
    assert f"own: 0 of {source_tokens} source tokens taken over" in message
    assert note.startswith("note: the vocabulary of these weights contains fewer than half of the")


def test_the_tokens_of_a_joint_vocabulary_are_counted_once(tmp_path):
    """Source and target share one vocabulary, so the message has one number, not one per side."""
    corpus = prepare(tmp_path / "corpus", {"train": toy_pairs(300, 9)}, units=bpe_units(9)).binary
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
    return Trainer(job, ONE_PROCESS, work, Fingerprints.from_job(job), Observer())


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

    message = r"checkpoints lacks the source vocabulary: no file vocabulary"
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
            "contains other weights than",
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
