"""Which of several processes that trained together is reported, if all of them have failed."""

import pytest

from bleuprint.runtime.distributed.launch import ProcessEnd, _exit_as_first

# The exit status of a process that lost its connection to another one.
PEER_LOST = 69


def exit_of(ends, capsys):
    """Return the exit status and the message of the launcher, after processes ended so."""
    with pytest.raises(SystemExit) as raised:
        _exit_as_first(ends)
    return raised.value.code, capsys.readouterr().err


def test_the_process_that_failed_first_is_reported(capsys):
    first = ProcessEnd(status=1, timestamp=1000.0, message="out of memory")
    second = ProcessEnd(status=75, timestamp=1001.0, message="stopped")

    status, message = exit_of([second, first], capsys)

    assert status == 1
    assert message == "bleuprint: error: out of memory\n"


def test_a_process_that_lost_its_peer_is_not_taken_for_the_cause(capsys):
    """The failed process needs a moment to record its error, so the loss may be recorded before."""
    loss = ProcessEnd(status=PEER_LOST, timestamp=1000.0, message="process 1 is lost")
    cause = ProcessEnd(status=1, timestamp=1002.0, message="out of memory")

    status, message = exit_of([loss, cause], capsys)

    assert status == 1
    assert message == "bleuprint: error: out of memory\n"


def test_a_lost_peer_is_reported_if_other_errors_came_much_later(capsys):
    """A connection may break by itself; then it is the cause, and errors follow from it."""
    loss = ProcessEnd(status=PEER_LOST, timestamp=1000.0, message="process 1 is lost")
    consequence = ProcessEnd(status=1, timestamp=1010.0, message="no checkpoint")

    status, message = exit_of([consequence, loss], capsys)

    assert status == PEER_LOST
    assert message == "bleuprint: error: process 1 is lost\n"
