"""Rates and shares of a training's time, by a clock that a test moves."""

from collections import deque
from types import SimpleNamespace

import pytest

from bleuprint.tracking import stopwatch
from bleuprint.tracking.stopwatch import Stopwatch
from bleuprint.training import trainer
from bleuprint.training.observer import Observer
from trainings import job_in, project, train_here

# seconds of an update: until its data is there, of computing; of each validation
WAIT, WORK, VALIDATION = 1.0, 3.0, 50.0


@pytest.fixture
def clock(monkeypatch):
    """A clock for modules that call time.monotonic()."""
    clock = SimpleNamespace(now=100.0)
    for module in (stopwatch, trainer):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: clock.now))
    return clock


class Measured(Observer):
    """Measures a training by the clock, on which each update takes WORK after its data came."""

    def __init__(self, folder, clock):
        self.clock, self.points = clock, []
        self.stopwatch = Stopwatch(folder, {}, lambda: 0)

    def started(self, *_):
        self.stopwatch.start()

    def waited(self, seconds):
        self.stopwatch.waited(seconds)
        self.clock.now += WORK

    def updated(self, _, stats):
        self.stopwatch.count_update(stats.target_tokens)

    def recorded(self, *_):
        self.points.append(self.stopwatch.take_rates())

    def validated(self, *_):
        self.clock.now += VALIDATION
        self.stopwatch.exclude_pause()


def test_a_slow_loader_takes_its_share_of_the_time(tmp_path, monkeypatch, clock):
    prefetch = trainer.prefetch

    def slowly(items):
        for item in prefetch(items):
            clock.now += WAIT
            yield item

    monkeypatch.setattr(trainer, "prefetch", slowly)
    job = job_in(project(tmp_path, max_updates=12, validate_interval=4), monkeypatch)
    measured = Measured(tmp_path, clock)
    _, state, _ = train_here(job, tmp_path / "work", measured)
    assert [point["waiting"] for point in measured.points] == [WAIT / (WAIT + WORK)] * 12
    spent = sum(WAIT + WORK for _ in measured.points)
    tokens = sum(point["tokens_per_second"] * (WAIT + WORK) for point in measured.points)
    assert tokens == pytest.approx(state.target_tokens)
    assert clock.now == 100 + spent + 3 * VALIDATION
    assert all(point.keys().isdisjoint({"waiting", "tokens_per_second"}) for point in state.curve)


@pytest.mark.parametrize("late", [0, 1, 2])
@pytest.mark.parametrize("every", [1, 3])
def test_figures_that_come_late_change_no_rate(tmp_path, clock, late, every):
    """Update n of 100 n tokens takes 10 n seconds, of which it waits n; six of 12 are validated."""
    watch, pending, points = Stopwatch(tmp_path, {}, lambda: 0), deque(), []
    watch.start()

    def count():
        update = pending.popleft()
        watch.count_update(100 * update)
        if update % every == 0:
            points.append(watch.take_rates())

    for update in range(1, 13):
        clock.now += update
        watch.waited(update)
        clock.now += 9 * update
        pending.append(update)
        while len(pending) > (late if update % 6 else 0):
            count()
        if update % 6 == 0:
            clock.now += VALIDATION
            watch.exclude_pause()
    assert points == [{"tokens_per_second": 10.0, "waiting": 0.1}] * (12 // every)
