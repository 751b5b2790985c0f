"""Measured tokens per second and waiting times of a training, by a clock that the test moves."""

from collections import deque
from types import SimpleNamespace

import pytest

from bleuprint.tracking import stopwatch
from bleuprint.tracking.stopwatch import Stopwatch
from bleuprint.training import trainer
from bleuprint.training.observer import Observer
from trainings import job_in, make_project, train_here

# Seconds on the clock of the test: an update first waits for its data, and then computes.
WAIT_SECONDS = 1.0
COMPUTE_SECONDS = 3.0
VALIDATION_SECONDS = 50.0


def install_clock(patch):
    """Give the modules that call time.monotonic() a clock; its attribute `now` is the time."""
    clock = SimpleNamespace(now=100.0)
    for module in (stopwatch, trainer):
        patch.setattr(module, "time", SimpleNamespace(monotonic=lambda: clock.now))
    return clock


class MeasuringObserver(Observer):
    """Measures a training with a stopwatch, and moves the clock.

    An update takes COMPUTE_SECONDS after its data came, a validation VALIDATION_SECONDS.

    Attributes:
        rates: What the stopwatch measured for each update.
    """

    def __init__(self, folder, clock):
        """Measure a training whose work folder is `folder`."""
        self.clock = clock
        self.rates = []
        self.stopwatch = Stopwatch(folder, {}, lambda: 0)

    def started(self, *_):
        """Start the stopwatch."""
        self.stopwatch.start()

    def waited(self, seconds):
        """Tell the stopwatch that the data has come, and let the update take its time."""
        self.stopwatch.waited(seconds)
        self.clock.now += COMPUTE_SECONDS

    def updated(self, _, stats):
        """Tell the stopwatch how many tokens the update had."""
        self.stopwatch.count_update(stats.target_tokens)

    def recorded(self, *_):
        """Take what was measured for the update."""
        self.rates.append(self.stopwatch.take_rates())

    def validated(self, *_):
        """Let the validation take its time, which is no part of the training's rates."""
        self.clock.now += VALIDATION_SECONDS
        self.stopwatch.exclude_pause()


def slow_down_loading(patch, clock):
    """Let the trainer wait WAIT_SECONDS for the data of each update."""
    fast_prefetch = trainer.prefetch

    def prefetch_slowly(items):
        for item in fast_prefetch(items):
            clock.now += WAIT_SECONDS
            yield item

    patch.setattr(trainer, "prefetch", prefetch_slowly)


@pytest.fixture(scope="module")
def measured_training(tmp_path_factory):
    """Train 12 updates with 3 validations; return the observer and the state of the training."""
    folder = tmp_path_factory.mktemp("measured")
    with pytest.MonkeyPatch.context() as patch:
        clock = install_clock(patch)
        slow_down_loading(patch, clock)
        job = job_in(make_project(folder, max_updates=12, validate_interval=4), patch)
        observer = MeasuringObserver(folder, clock)
        _, state, _ = train_here(job, folder / "work", observer)
    return observer, state


def test_the_measured_waiting_is_the_share_of_time_without_data(measured_training):
    observer, _ = measured_training

    shares = [rates["waiting"] for rates in observer.rates]
    assert shares == [WAIT_SECONDS / (WAIT_SECONDS + COMPUTE_SECONDS)] * 12


def test_tokens_per_second_times_seconds_are_the_tokens_of_the_training(measured_training):
    """On the clock of this training, each update waits 1 s for data and computes for 3 s.

    The time of validations, 50 s each, does not count: it would lower the rate.
    """
    observer, state = measured_training
    seconds_per_update = WAIT_SECONDS + COMPUTE_SECONDS

    tokens = 0.0
    for rates in observer.rates:
        tokens += rates["tokens_per_second"] * seconds_per_update

    assert tokens == pytest.approx(state.target_tokens)


def test_the_clock_moves_by_updates_and_validations_only(measured_training):
    """The clock starts at 100 s. The training has 12 updates of 4 s and 3 validations of 50 s.

    This confirms the setting in which the other tests measure rates.
    """
    observer, _ = measured_training

    update_seconds = 12 * (WAIT_SECONDS + COMPUTE_SECONDS)
    validation_seconds = 3 * VALIDATION_SECONDS
    assert observer.clock.now == 100.0 + update_seconds + validation_seconds


def test_the_training_state_leaves_out_measured_rates(measured_training):
    """Rates depend on the machine, and the state must be the same on all machines."""
    _, state = measured_training

    for point in state.curve:
        assert "waiting" not in point
        assert "tokens_per_second" not in point


@pytest.mark.parametrize("delay", [0, 1, 2])
@pytest.mark.parametrize("record_interval", [1, 3])
def test_rates_do_not_depend_on_when_the_tokens_of_an_update_are_known(
    tmp_path, monkeypatch, delay, record_interval
):
    """A GPU works ahead, so the tokens of an update are known only after later updates.

    Update n has 100 x n tokens and takes 10 x n seconds, of which it waits n: 10 tokens per second
    and a tenth of waiting in each update. Updates 6 and 12 are followed by a validation, at which
    all tokens are known.

    Tokens are known `delay` updates later, and rates are taken after `record_interval` updates.
    """
    clock = install_clock(monkeypatch)
    watch = Stopwatch(tmp_path, {}, lambda: 0)
    uncounted_updates = deque()
    rates = []

    watch.start()
    for update in range(1, 13):
        clock.now += update
        watch.waited(update)
        clock.now += 9 * update
        uncounted_updates.append(update)
        is_validated = update % 6 == 0
        updates_that_stay_unknown = 0 if is_validated else delay
        while len(uncounted_updates) > updates_that_stay_unknown:
            counted_update = uncounted_updates.popleft()
            watch.count_update(100 * counted_update)
            if counted_update % record_interval == 0:
                rates.append(watch.take_rates())
        if is_validated:
            clock.now += VALIDATION_SECONDS
            watch.exclude_pause()

    rates_of_each_update = {"tokens_per_second": 10.0, "waiting": 0.1}
    assert rates == [rates_of_each_update] * (12 // record_interval)
