"""Records the progress bars that code shows, and what they count."""

from dataclasses import dataclass

from bleuprint.runtime.progress import Progress


@dataclass
class Bar:
    """A progress bar that was shown.

    Attributes:
        title: Its title.
        total: The total that it announced; None if it is not known.
        done: How much was counted.
    """

    title: str
    total: int | None
    done: int


def record_bars(monkeypatch):
    """Return a list of the bars that are shown from now on; it grows with each new bar."""
    bars = []
    show = Progress.__init__
    advance = Progress.advance

    def recorded_show(self, title, total, unit, start=0, is_silent=False):
        show(self, title, total, unit, start, is_silent)
        self.recorded = Bar(title, total, start)
        bars.append(self.recorded)

    def recorded_advance(self, count=1, note=""):
        self.recorded.done += count
        advance(self, count, note)

    monkeypatch.setattr(Progress, "__init__", recorded_show)
    monkeypatch.setattr(Progress, "advance", recorded_advance)
    return bars
