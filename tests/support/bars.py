"""What progress bars count."""

from dataclasses import dataclass

from bleuprint.runtime.progress import Progress


@dataclass
class Bar:
    """A bar that was shown: its title, the total that it announced, and what was counted."""

    title: str
    total: int | None
    done: int


def recorded(monkeypatch):
    """The list of all bars from here on, which fills as they are shown."""
    bars = []
    show, advance = Progress.__init__, Progress.advance

    def recorded_show(self, what, total, unit, start=0, silent=False):
        show(self, what, total, unit, start, silent)
        self.recorded = Bar(what, total, start)
        bars.append(self.recorded)

    def recorded_advance(self, count=1, note=""):
        self.recorded.done += count
        advance(self, count, note)

    monkeypatch.setattr(Progress, "__init__", recorded_show)
    monkeypatch.setattr(Progress, "advance", recorded_advance)
    return bars
