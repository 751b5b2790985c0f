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
    ONE_PROCESS,
    bpe_units,
    checkpoints,
    make_project,
    start,
    toy_pairs,
    train,
    untrained_copy,
    wait_for_checkpoint,
    write_params,
)

# How messages name the second of two processes that train together.
SECOND_PROCESS = f"process 1 of 2 on {socket.gethostname()}"


@pytest.fixture(scope="module")
def untrained(tmp_path_factory):
    """Return the folder of the toy project. Not to be changed."""
    root = make_project(tmp_path_factory.mktemp("untrained"))
    with left_unchanged(root):
        yield root


@pytest.fixture
def two_copies(untrained, tmp_path):
    """Return the folders of two copies of the toy project, as on two hosts."""
    first = untrained_copy(untrained, tmp_path / "here")
    second = untrained_copy(untrained, tmp_path / "there")
    return first, second


def error_lines(output):
    """Return the lines with our errors in the output of a process."""
    return [line for line in output.splitlines() if line.startswith("bleuprint: error: ")]


def fail_together(roots, monkeypatch):
    """Start two processes that are to train together, which must both fail.

    Args:
        roots: The folder in which each process works.
        monkeypatch: Sets the variables by which the processes find each other.

    Returns:
        What each process printed.
    """
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    monkeypatch.setenv("MASTER_PORT", str(free_port()))
    processes = []
    for rank, root in enumerate(roots):
        monkeypatch.setenv("RANK", str(rank))
        processes.append(start(root))
    outputs = [process.communicate(timeout=240)[0] for process in processes]
    assert all(process.returncode != 0 for process in processes)
    return outputs


def check_training_with_an_empty_set(root, empty_set):
    """Check a training on a corpus of three sets, of which one has no sentences.

    Args:
        root: The folder in which the corpus is prepared.
        empty_set: The name of the empty set: train, valid or test.x.
    """
    sets = {"train": toy_pairs(60, 1), "valid": toy_pairs(5, 2), "test.x": toy_pairs(5, 3)}
    sets[empty_set] = []
    prepared = prepare(root, sets, units=bpe_units(9))
    job = Job(
        run=Run("micro", "toy", 1),
        system=systems.system(train=systems.train(tokens_per_update=70)),
        corpus_folder=prepared.binary.folder,
        split_folder=root / "split",
        code_fingerprint="code",
    )
    check_training(job, Fingerprints.from_job(job), ONE_PROCESS)


@pytest.mark.parametrize("set_name", ["train", "valid"])
def test_the_error_for_a_training_or_validation_set_without_sentences_names_it(tmp_path, set_name):
    with pytest.raises(UserError) as error:
        check_training_with_an_empty_set(tmp_path, set_name)

    assert str(error.value) == f"corpus toy: {set_name}.de has no sentences"


def test_a_training_does_not_need_sentences_in_a_test_set(tmp_path):
    check_training_with_an_empty_set(tmp_path, "test.x")


def flip_a_bit_of_the_training_text(root):
    """Damage the token ids of the training text, near the end of the file."""
    array_file = root / "data" / "binary" / "toy" / "train.de.ids.npy"
    content = bytearray(array_file.read_bytes())
    content[-2] ^= 1
    array_file.write_bytes(content)


@pytest.mark.parametrize("processes", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_damaged_corpus_is_reported_in_one_line(untrained, tmp_path, processes):
    """A disk error has flipped one bit of the training text; its checksum does not fit.

    Two processes report it once, without tracebacks, which would begin with [rank0] or [rank1].
    """
    root = untrained_copy(untrained, tmp_path)
    flip_a_bit_of_the_training_text(root)

    output = train(root, processes, status=1)

    (line,) = error_lines(output)
    assert "train.de.ids.npy is damaged" in line
    if processes == 1:
        assert output == f"{line}\n"
    # With two processes, torchrun, which starts them, adds lines of its own.
    assert "[rank" not in output
    assert not (root / "work").exists()


def test_a_mistake_in_the_settings_of_one_host_is_reported_by_both_processes(
    two_copies, monkeypatch
):
    """Two hosts train together; the second one has another name of the system in params.yaml.

    The first process must report it at once. Alone, it would wait five minutes for the second one.
    """
    first, second = two_copies
    params_file = second / "params.yaml"
    params_file.write_text(params_file.read_text().replace("micro:", "other:"))
    write_resolved(second)

    outputs = fail_together([first, second], monkeypatch)

    problem = "params.yaml: no systems entry 'micro'; there are: other"
    for output in outputs:
        assert f"error: {SECOND_PROCESS}: {problem}\n" in output


def assert_reported_by_both(outputs, message, roots):
    """Check that both processes report an error of the second one, and have not begun to train.

    Args:
        outputs: What each process printed.
        message: The message that follows `process 1 of 2 on HOST: `.
        roots: The folder in which each process worked.
    """
    for output in outputs:
        assert f"bleuprint: error: {SECOND_PROCESS}: {message}" in output
    for root in roots:
        assert not list(root.glob("work/trainings/*/checkpoint-*"))


@pytest.mark.parametrize(
    "name", ["data/binary/toy/train.de.ids.npy", "data/binary/toy/valid.en.ends.npy"]
)
def test_both_hosts_report_a_damaged_file_in_the_corpus_of_the_second_host(
    two_copies, monkeypatch, name
):
    """Two hosts train together, each from its own copy of the project.

    In the second copy, the numbers in a file of the corpus are in reverse order.
    """
    array_file = two_copies[1] / name
    content = array_file.read_bytes()
    header = content[:128]  # of the .npy file, which stays as it is
    numbers = content[128:]
    damaged_content = header + numbers[::-1]
    assert damaged_content != content
    array_file.write_bytes(damaged_content)

    outputs = fail_together(two_copies, monkeypatch)

    message = f"{name} is damaged: its SHA-256 differs from the one in corpus.json. "
    assert_reported_by_both(outputs, message, two_copies)


def test_both_hosts_report_a_missing_file_in_the_corpus_of_the_second_host(two_copies, monkeypatch):
    """Two hosts train together, each from its own copy of the project."""
    name = "data/binary/toy/train.en.ids.npy"
    (two_copies[1] / name).unlink()

    outputs = fail_together(two_copies, monkeypatch)

    message = f"{name}: no such file, although corpus.json lists it. Run: make reproduce\n"
    assert_reported_by_both(outputs, message, two_copies)


def test_both_hosts_name_a_file_in_which_their_corpora_differ(tmp_path, monkeypatch):
    """Two hosts train together on two valid corpora; the target of the first pair differs."""
    pairs = toy_pairs(200, 1)
    source, target = pairs[0]
    reversed_target = target[::-1]
    other_pairs = [(source, reversed_target), *pairs[1:]]
    first = make_project(tmp_path / "here", pairs=pairs)
    second = make_project(tmp_path / "there", pairs=other_pairs)

    outputs = fail_together([first, second], monkeypatch)

    for output in outputs:
        match = re.search(r"same data as process 0 \((\S+) differs\)", output)
        assert match, outputs
        different_file = match[1]
        assert different_file.startswith("data/binary/toy/")
        # corpus.json contains the hashes of all files, so naming it would not show what differs.
        assert not different_file.endswith("corpus.json")


def test_both_hosts_name_the_file_if_their_validation_references_differ(two_copies, monkeypatch):
    """Two hosts train together, each from its own copy of the project.

    In the second copy, the words of the validation references are different.
    """
    references_file = two_copies[1] / "data/split/toy/valid.en"
    references_file.write_text(references_file.read_text().replace("A", "E"))

    outputs = fail_together(two_copies, monkeypatch)

    line = (
        f"bleuprint: error: {SECOND_PROCESS} does not have the same data as process 0 "
        "(data/split/toy/valid.en differs). Start all processes in one folder, or in identical "
        "copies of it\n"
    )
    for output in outputs:
        assert line in output


def kill_at_checkpoint(root, **options):
    """Start a training and kill it at its first checkpoint.

    Args:
        root: The project's folder.
        options: How to start it; see `start`.
    """
    process = start(root, **options)
    wait_for_checkpoint(root, 0)
    process.kill()
    process.communicate(timeout=60)


def test_two_hosts_are_refused_if_only_the_first_has_the_checkpoint_to_continue_from(
    two_copies, monkeypatch
):
    """Each host has its own copy of the project, and a training was killed in the first copy.

    The second host would start from the first update instead.
    """
    kill_at_checkpoint(two_copies[0])

    _, second_output = fail_together(two_copies, monkeypatch)

    (line,) = error_lines(second_output)
    assert re.search(r"checkpoint-\d+ is missing on .*, but rank 0 continues from it", line)


def train_to_first_checkpoint(root, processes):
    """Train until there is a checkpoint, kill the training, and keep only its first checkpoint.

    Args:
        root: The project's folder.
        processes: How many processes train together.

    Returns:
        The name of the checkpoint, which contains its update.
    """
    write_params(root, max_updates=1000, keep_last=100, keep_best=0, keep_interval=0)
    kill_at_checkpoint(root, processes=processes, cold=True)
    first_checkpoint, *later_checkpoints = checkpoints(root)
    for checkpoint in later_checkpoints:
        shutil.rmtree(checkpoint)
    return first_checkpoint.name


def test_two_hosts_with_different_checkpoints_of_the_same_update_are_refused(
    two_copies, monkeypatch
):
    """One copy of the project was trained by one process, the other copy by two processes.

    Two processes add gradients in another order, so the rounded weights differ. Training together
    from different weights would give neither result.
    """
    first, second = two_copies
    first_name = train_to_first_checkpoint(first, processes=1)
    second_name = train_to_first_checkpoint(second, processes=2)
    assert first_name == second_name  # of the same update

    outputs = fail_together(two_copies, monkeypatch)

    lines = error_lines(outputs[0]) + error_lines(outputs[1])
    message = "differs between the 2 processes"
    assert any(message in line for line in lines), outputs


def test_a_note_that_an_update_has_too_few_batches_for_all_processes_is_printed_once(
    untrained, tmp_path
):
    """An update of 40 tokens is one batch of 40 tokens, so the second of two processes is idle."""
    root = untrained_copy(untrained, tmp_path)
    write_params(root, tokens_per_update=40, max_tokens=40, max_updates=10)

    output = train(root, processes=2)

    message = (
        r"updates of 40 tokens have fewer batches of train\.max_tokens \(40\) than there are "
        r"processes \(2\), so some processes are idle\. Lower train\.max_tokens to 22, which"
    )
    assert len(re.findall(message, output)) == 1
    assert output.count("idle") == 1


def test_the_error_for_a_corpus_smaller_than_one_update_proposes_settings_that_work(tmp_path):
    """Five short pairs have less than 500 target tokens. The second training uses the proposal."""
    root = make_project(tmp_path, pairs=toy_pairs(5, 1), tokens_per_update=500, max_tokens=400)

    output = train(root, status=1)

    match = re.search(
        r"error: corpus toy: train has \d+ target tokens, less than one update of micro. Lower "
        r"train\.tokens_per_update \(500\) and train\.max_tokens \(400\) to (\d+), for example",
        output,
    )
    assert match, output
    proposed_tokens = int(match[1])
    write_params(root, tokens_per_update=proposed_tokens, max_tokens=proposed_tokens, max_updates=5)
    train(root)


def test_a_corpus_with_fewer_pairs_than_one_update_needs_is_refused(tmp_path):
    """An update of 45 sentences would need 45 pairs of the 44 in the training set."""
    pairs = [(f"ba {'be ' * number}", "BA") for number in range(1, 45)]  # 44 pairs
    root = make_project(tmp_path, pairs=pairs, tokens_per_update=None, sentences_per_update=45)

    output = train(root, status=1)

    assert output == (
        "bleuprint: error: corpus toy: train has 44 pairs, less than one update of micro. Lower "
        "train.sentences_per_update (45) to 4, for example\n"
    )


def test_a_training_that_would_save_too_few_checkpoints_to_average_is_refused(tmp_path):
    """The last 3 checkpoints are to be averaged, and one is saved every 1,000 updates.

    One epoch of this corpus has fewer updates. Without the check, `average` would fail after hours.
    """
    root = make_project(tmp_path, max_updates=None, max_epochs=1, save_interval=1000)
    params_file = root / "params.yaml"
    params_file.write_text(params_file.read_text().replace("last: 1\n", "last: 3\n"))
    write_resolved(root)

    output = train(root, status=1)

    assert re.search(
        r"max_epochs 1 gives too few updates \(\d+\): average\.last is 3, but ", output
    )


def test_the_error_for_a_diverging_training_advises_to_lower_the_learning_rate(tmp_path):
    """A learning rate of 1e30 makes the weights, and so the loss, infinite or NaN."""
    root = make_project(
        tmp_path,
        lr_schedule=LrSchedule(constant=Constant(1e30)),
        clip_norm=0.0,
        validate_interval=10,
        max_updates=1,
    )

    output = train(root, status=1)

    message = r"the validation loss after update 1 is (nan|inf). Lower the learning rate "
    assert re.search(rf"error: {message}\(train\.lr_schedule\)", output)
    assert "Traceback" not in output


def test_a_test_source_longer_than_the_model_allows_is_refused_before_the_training(tmp_path):
    """Without the check, `translate` would fail after the training. Line 2 is short enough."""
    long_source = "ba " * 300  # 600 tokens: `b` and `a`
    root = make_project(tmp_path, test=[(long_source, "BA"), ("ba", "BA " * 300)])

    output = train(root, status=1)

    assert "line 1 of test.x.de has 601 tokens with EOS" in output  # 600 and end-of-sentence
    checkpoints_saved = list(tmp_path.glob("work/trainings/*/checkpoint-*"))
    assert checkpoints_saved == []


def test_a_test_reference_may_be_longer_than_the_model_allows(tmp_path):
    """The model reads only the sources of a test set."""
    long_reference = "BA " * 300
    root = make_project(tmp_path, test=[("ba", long_reference)], max_updates=5)

    train(root)  # Fails the test if the training ends with an error.


def test_a_sentence_longer_than_a_batch_is_refused_before_the_training(tmp_path):
    """A batch has at most 30 tokens. The last training pair has 40 words on each side."""
    long_pair = ("ba " * 40, "BA " * 40)
    root = make_project(tmp_path, pairs=[*toy_pairs(60, 1), long_pair], max_tokens=30)

    output = train(root, status=1)

    problem = r"has \d+ tokens with EOS, but train.max_tokens of micro is 30\. "
    assert re.search(rf"line \d+ of train.de {problem}", output)


def test_a_corpus_of_one_pair_is_advised_to_count_updates_in_sentences(tmp_path):
    """The size of an update counts target tokens, here few: one word.

    The size of a batch counts the longer side, here the source. If the update were small enough for
    the target, a batch would be too small for the source.
    """
    root = make_project(tmp_path, pairs=[("ba ba ba", "BA")], tokens_per_update=90, max_tokens=70)

    output = train(root, status=1)

    assert "less than one update of micro. Set sentences_per_update: 1" in output


def test_two_hosts_with_different_settings_are_refused(two_copies, monkeypatch):
    """Two hosts train together, each from its own copy of the project.

    In the second copy, label_smoothing is edited. No checkpoint is saved.
    """
    first, second = two_copies
    write_params(second, label_smoothing=0.5)

    outputs = fail_together([first, second], monkeypatch)

    problem = "does not have the same settings as process 0. Start all processes"
    for output in outputs:
        assert f"bleuprint: error: {SECOND_PROCESS} {problem}" in output
    for root in two_copies:
        checkpoints_saved = list(root.glob("work/trainings/*/checkpoint-*"))
        assert checkpoints_saved == []
