"""Trainings that are refused, or end, with one clear line instead of training on bad data."""

import re
import shutil
import socket

import pytest

import systems
from bleuprint.config.optimization import Constant, LrSchedule
from bleuprint.config.paths import Run
from bleuprint.pipeline.train_stage import check_training
from bleuprint.runtime.errors import UserError
from bleuprint.training.fingerprints import Fingerprints
from bleuprint.training.job import Job
from params import write_resolved
from prepared import prepare
from servers import free_port
from shared_folders import left_unchanged
from trainings import (
    ALONE,
    checkpoints,
    fresh,
    merges,
    project,
    start,
    toy_pairs,
    train,
    wait_for_checkpoint,
    write_params,
)

OTHER = f"process 1 of 2 on {socket.gethostname()}"


@pytest.fixture(scope="module")
def untrained(tmp_path_factory):
    """The toy project. Not to be changed."""
    root = project(tmp_path_factory.mktemp("untrained"))
    with left_unchanged(root):
        yield root


def check_with_an_empty_set(root, empty):
    """Check a training on a corpus of three sets, of which one has no sentences."""
    sets = {"train": toy_pairs(60, 1), "valid": toy_pairs(5, 2), "test.x": toy_pairs(5, 3)}
    sets[empty] = []
    prepared = prepare(root, sets, units=merges(9))
    job = Job(
        run=Run("micro", "toy", 1),
        system=systems.system(train=systems.train(tokens_per_update=70)),
        corpus_folder=prepared.binary.folder,
        split_folder=root / "split",
        code_fingerprint="code",
    )
    check_training(job, Fingerprints.from_job(job), ALONE)


@pytest.mark.parametrize("name", ["train", "valid"])
def test_a_set_without_sentences_is_refused_by_its_name(tmp_path, name):
    with pytest.raises(UserError) as raised:
        check_with_an_empty_set(tmp_path, name)
    assert str(raised.value) == f"corpus toy: {name}.de has no sentences"


def test_a_test_set_without_sentences_hinders_no_training(tmp_path):
    check_with_an_empty_set(tmp_path, "test.x")


@pytest.mark.parametrize("processes", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_damaged_corpus_is_one_clear_line(untrained, tmp_path, processes):
    root = fresh(untrained, tmp_path)
    array = root / "data" / "binary" / "toy" / "train.de.ids.npy"
    content = bytearray(array.read_bytes())
    content[-2] ^= 1
    array.write_bytes(content)
    said = train(root, processes, status=1)
    (line,) = (line for line in said.split("\n") if line.startswith("bleuprint: error: "))
    assert "train.de.ids.npy is damaged" in line
    assert processes > 1 or said == f"{line}\n"
    assert "[rank" not in said  # a traceback of ours; what torchrun says is its own
    assert not (root / "work").exists()


def test_a_mistake_in_one_hosts_settings_is_not_waited_for(untrained, tmp_path, monkeypatch):
    """Two hosts with copies of their own: before the five minutes of a start are over."""
    roots = [fresh(untrained, tmp_path / name) for name in ("here", "there")]
    settings = roots[1] / "params.yaml"
    settings.write_text(settings.read_text().replace("micro:", "other:"))
    write_resolved(roots[1])
    said = together(roots, monkeypatch)
    line = f"error: {OTHER}: params.yaml: no systems entry 'micro'; there are: other\n"
    assert all(line in each for each in said)


@pytest.mark.parametrize(
    ("name", "what"),
    [
        (
            "data/binary/toy/train.de.ids.npy",
            " is damaged: its SHA-256 is not the one in corpus.json; ",
        ),
        (
            "data/binary/toy/valid.en.ends.npy",
            " is damaged: its SHA-256 is not the one in corpus.json; ",
        ),
        (
            "data/binary/toy/train.en.ids.npy",
            ": no such file, although corpus.json lists it; run: make reproduce\n",
        ),
    ],
)
def test_a_host_whose_copy_of_the_corpus_has_other_bytes_is_refused(
    untrained, tmp_path, monkeypatch, name, what
):
    """The header of the copy is that of the other host: only the bytes tell."""
    roots = [fresh(untrained, tmp_path / host) for host in ("here", "there")]
    array = roots[1] / name
    if "damaged" in what:
        content = array.read_bytes()
        array.write_bytes(content[:128] + content[128:][::-1])  # the header stays
        assert array.read_bytes() != content
    else:
        array.unlink()
    for each in together(roots, monkeypatch):
        assert f"bleuprint: error: {OTHER}: {name}{what}" in each
    assert not list(tmp_path.glob("*/work/trainings/*/checkpoint-*"))


def test_a_host_with_another_corpus_is_refused_by_the_name_of_a_file(tmp_path, monkeypatch):
    """Both corpora are sound; of the training text the target differs in one word."""
    pairs = toy_pairs(200, 1)
    others = [(pairs[0][0], pairs[0][1][::-1]), *pairs[1:]]
    roots = [project(tmp_path / "here", pairs=pairs), project(tmp_path / "there", pairs=others)]
    said = together(roots, monkeypatch)
    names = [re.search(r"same data as process 0 \((\S+) differs\)", each) for each in said]
    assert all(found and found[1].startswith("data/binary/toy/") for found in names), said
    assert all(found and not found[1].endswith("corpus.json") for found in names), said


def test_a_host_with_other_references_is_refused_by_the_name_of_their_file(
    untrained, tmp_path, monkeypatch
):
    roots = [fresh(untrained, tmp_path / name) for name in ("here", "there")]
    references = roots[1] / "data/split/toy/valid.en"
    references.write_text(references.read_text().replace("A", "E"))
    line = (
        f"bleuprint: error: {OTHER} does not have the same data as process 0 "
        "(data/split/toy/valid.en differs): processes train together from one folder, or from "
        "identical copies\n"
    )
    assert all(line in each for each in together(roots, monkeypatch))


def kill_at_checkpoint(root, **how):
    """Start a training and kill it at its first checkpoint."""
    process = start(root, **how)
    wait_for_checkpoint(root, 0)
    process.kill()
    process.communicate(timeout=60)


def test_processes_that_share_no_folder_are_refused(untrained, tmp_path, monkeypatch):
    """Two hosts, of which one has a checkpoint that the other does not see."""
    roots = [fresh(untrained, tmp_path / name) for name in ("here", "there")]
    kill_at_checkpoint(roots[0])
    said = together(roots, monkeypatch)
    (line,) = (line for line in said[1].splitlines() if line.startswith("bleuprint: error: "))
    assert re.search(r"checkpoint-\d+ is missing on .*, but rank 0 continues from it", line)


def test_processes_with_checkpoints_that_differ_are_refused(untrained, tmp_path, monkeypatch):
    """Two copies that were trained apart: each has a checkpoint of its own at the same update."""
    roots = [fresh(untrained, tmp_path / name) for name in ("here", "there")]
    for number, root in enumerate(roots):
        write_params(
            root, max_updates=1000, keep_last=100, keep_best=0, keep_interval=0
        )  # all are kept
        kill_at_checkpoint(root, processes=number + 1, cold=True)  # other sums, rounded otherwise
        _, *later = checkpoints(root)
        for checkpoint in later:
            shutil.rmtree(checkpoint)
    assert len({checkpoints(root)[0].name for root in roots}) == 1
    said = together(roots, monkeypatch)
    lines = [line for line in "".join(said).splitlines() if line.startswith("bleuprint: error: ")]
    assert any("is not the same on all of the 2 processes" in line for line in lines), said


def test_processes_without_a_batch_are_reported_once(untrained, tmp_path):
    root = fresh(untrained, tmp_path)
    write_params(root, tokens_per_update=40, max_tokens=40, max_updates=10)
    said = train(root, 2)
    message = (
        r"updates of 40 tokens have fewer batches of train\.max_tokens \(40\) than there are "
        r"processes \(2\), so some processes are idle: 22 would give each a batch"
    )
    assert len(re.findall(message, said)) == said.count("idle") == 1


def test_a_corpus_of_less_than_one_update_by_tokens_is_refused_with_values_that_work(tmp_path):
    root = project(tmp_path, pairs=toy_pairs(5, 1), tokens_per_update=500, max_tokens=400)
    said = train(root, status=1)
    match = re.search(
        r"error: corpus toy: train has \d+ target tokens, less than one update of micro: lower "
        r"train\.tokens_per_update \(500\) and train\.max_tokens \(400\) to (\d+), for example",
        said,
    )
    assert match, said
    value = int(match[1])
    write_params(root, tokens_per_update=value, max_tokens=value, max_updates=5)
    train(root)


def test_a_corpus_of_less_than_one_update_by_sentences_is_refused(tmp_path):
    pairs = [(f"ba {'be ' * number}", "BA") for number in range(1, 45)]
    root = project(tmp_path, pairs=pairs, tokens_per_update=None, sentences_per_update=45)
    said = train(root, status=1)
    assert said == (
        "bleuprint: error: corpus toy: train has 44 pairs, less than one update of micro: lower "
        "train.sentences_per_update (45) to 4, for example\n"
    )


def test_epochs_with_too_few_checkpoints_to_average_are_refused(tmp_path):
    root = project(tmp_path, max_updates=None, max_epochs=1, save_interval=1000)
    params = root / "params.yaml"
    text = params.read_text().replace("last: 1\n", "last: 3\n")
    params.write_text(text)
    write_resolved(root)
    said = train(root, status=1)
    assert re.search(r"max_epochs 1 are at most \d+ updates, too few: average\.last 3: ", said)


def test_a_diverging_training_is_reported_by_the_first_process_that_sees_it(tmp_path):
    schedule = LrSchedule(constant=Constant(1e30))
    root = project(
        tmp_path, lr_schedule=schedule, clip_norm=0.0, validate_interval=10, max_updates=1
    )
    said = train(root, status=1)
    assert re.search(
        r"error: the validation loss after update 1 is (nan|inf): lower the learning "
        r"rate \(train\.lr_schedule\)",
        said,
    )
    assert "Traceback" not in said


def test_a_test_sentence_beyond_the_model_is_refused_before_the_training(tmp_path):
    long = [("ba " * 300, "BA"), ("ba", "BA " * 300)]
    said = train(project(tmp_path, test=long), status=1)
    assert "line 1 of test.x.de has 601 tokens with EOS" in said
    assert not list(tmp_path.glob("work/trainings/*/checkpoint-*"))
    only_reference = project(tmp_path / "other", test=long[1:], max_updates=5)
    train(only_reference)


def test_a_sentence_beyond_a_batch_is_refused_before_the_training(tmp_path):
    pairs = [*toy_pairs(60, 1), ("ba " * 40, "BA " * 40)]
    said = train(project(tmp_path, pairs=pairs, max_tokens=30), status=1)
    line = r"line \d+ of train.de has \d+ tokens with EOS, and train.max_tokens of micro is 30: "
    assert re.search(line, said)


def test_a_corpus_of_less_than_a_sentence_of_the_other_side_is_trained_by_sentences(tmp_path):
    pairs = [("ba ba ba", "BA")]
    said = train(project(tmp_path, pairs=pairs, tokens_per_update=90, max_tokens=70), status=1)
    assert "less than one update of micro: set sentences_per_update: 1" in said


def test_processes_that_differ_are_refused(untrained, tmp_path, monkeypatch):
    roots = [fresh(untrained, tmp_path / name) for name in ("here", "there")]
    write_params(roots[1], label_smoothing=0.5)
    said = together(roots, monkeypatch)
    line = f"bleuprint: error: {OTHER} does not have the same settings as process 0: processes"
    assert all(line in each for each in said)
    assert not list(tmp_path.glob("*/work/trainings/*/checkpoint-*"))


def together(roots, monkeypatch):
    """The errors of processes that cannot train together, each in a folder of its own."""
    group = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    processes = []
    for rank, root in enumerate(roots):
        for name, value in {**group, "RANK": str(rank)}.items():
            monkeypatch.setenv(name, value)
        processes.append(start(root))
    said = [process.communicate(timeout=240)[0] for process in processes]
    assert all(process.returncode != 0 for process in processes)
    return said
