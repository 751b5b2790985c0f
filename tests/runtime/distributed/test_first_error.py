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


@pytest.mark.parametrize(
    ("first_end", "second_end", "status", "message"),
    [
        pytest.param(
            ProcessEnd(status=1, timestamp=1000.0, message="out of memory"),
            ProcessEnd(status=75, timestamp=1001.0, message="stopped"),
            1,
            "out of memory",
            id="two errors: the first",
        ),
        # A failed process needs a moment to record its error, so the loss may be recorded before.
        pytest.param(
            ProcessEnd(status=PEER_LOST, timestamp=1000.0, message="process 1 is lost"),
            ProcessEnd(status=1, timestamp=1002.0, message="out of memory"),
            1,
            "out of memory",
            id="lost peer, soon after an error: the error",
        ),
        # A connection may break by itself; then it is the cause, and errors follow from it.
        pytest.param(
            ProcessEnd(status=PEER_LOST, timestamp=1000.0, message="process 1 is lost"),
            ProcessEnd(status=1, timestamp=1010.0, message="no checkpoint"),
            PEER_LOST,
            "process 1 is lost",
            id="lost peer, much later an error: the loss",
        ),
    ],
)
@pytest.mark.parametrize("is_reversed", [False, True], ids=["by rank", "reversed ranks"])
def test_the_process_that_failed_first_is_reported(
    capsys, first_end, second_end, status, message, is_reversed
):
    """A process that has lost its peer is the first only if no other error comes soon after."""
    ends = [first_end, second_end]
    if is_reversed:
        ends.reverse()

    assert exit_of(ends, capsys) == (status, f"bleuprint: error: {message}\n")
