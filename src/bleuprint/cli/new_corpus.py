"""The command new-corpus: what it says of a user's text and its systems, and what to do next."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from bleuprint.config.experiment import load
from bleuprint.runtime import environment
from bleuprint.runtime.counts import counted
from bleuprint.runtime.errors import UserError, say
from bleuprint.runtime.foreign_text import write_line

if TYPE_CHECKING:
    from bleuprint.corpus.inspect import Inspection
    from bleuprint.corpus.new_corpus import NewCorpus
    from bleuprint.dataset.fitted_pieces import FittedPieces
    from bleuprint.text.parallel import TextFolder
    from bleuprint.training.fitted_systems import TextSize

# The pairs, drawn from longer texts, on which the rules are tried.
_TRIED_PAIRS = 100_000
# The share of its pairs from which a rule that drops so many is named.
_MANY = 0.1
# Test sentences below which systems are not compared.
_FEW_TESTS = 100
# The minutes of all stages but trainings, and the pairs that are prepared in one more.
_REST, _PREPARED = 3, 50_000
# Half of the 95% interval of BLEU on 1,000 lines, Multi30k's.
_INTERVAL = 1.6


@dataclass(frozen=True)
class _Kept:
    """The pairs that remain for each set after the rules of an entry."""

    train: int
    valid: int
    test: int

    @property
    def pairs(self) -> int:
        """All pairs that remain."""
        return self.train + self.valid + self.test


def new_corpus(given: argparse.Namespace) -> None:
    """Add parallel text in inputs/ to params.yaml."""
    from bleuprint.corpus.new_corpus import Example, NewCorpus, insert
    from bleuprint.training.fitted_systems import TextSize, systems

    load()  # before the files are read, which may take minutes
    recipe, params = Path("recipes", "own.yaml"), Path("params.yaml")
    new = NewCorpus.of(given.files, given.languages, given.columns)
    with _scratch_folder() as scratch:
        inspection = _tried(new, scratch)
        kept = _kept(new, inspection)
        fitted = _fitted(new, scratch)
        restored = _not_restored(new, scratch)
    new = replace(new, pieces=fitted.size)
    text = TextSize(kept.train, fitted.source_length, fitted.target_length, fitted.size)
    example = Example.of(recipe) if recipe.exists() else None
    replaced, has_fitted_systems = insert(
        params, new, example, systems(text, not environment.has_gpu())
    )
    place = " in place of the example" if replaced else ""
    for line in new.about:
        write_line(line)
    write_line(f"{new.pairs:,} pairs; {params} has a new entry{place}:\n\n{new.entry}")
    about = "" if inspection.is_whole else "about "
    print(
        f"{about}{kept.pairs:,} of {new.pairs:,} pairs remain after the rules: "
        f"train {kept.train:,}, valid {kept.valid:,}, test {kept.test:,}"
    )
    if not has_fitted_systems:
        say(
            f"the systems of {params} stay, which were not fitted to this text; those of "
            "make recipe NAME=own are, if new-corpus follows at once",
            "note",
        )
    for note in _notes(new, inspection, kept):
        say(note, "note")
    if restored:
        say(f"reachable BLEU of the test set is {restored}", "note")
    print(*_training(new.name, text, kept.valid), sep="\n")
    print(*_next_steps(new, kept), sep="\n")


@contextmanager
def _scratch_folder() -> Iterator[Path]:
    """A temporary folder on the disk of the project."""
    work = environment.work()
    work.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=work, prefix="new-corpus-") as folder:
        yield Path(folder)


def _tried(new: "NewCorpus", scratch: Path) -> "Inspection":
    """What the rules of the entry do to the text, whose stages write below `scratch`."""
    from bleuprint.corpus.download.download import Sample
    from bleuprint.corpus.download.fetch import source_of_environment
    from bleuprint.corpus.inspect import prepare

    return prepare(
        new.name,
        new.corpus,
        Sample(_TRIED_PAIRS, 1),
        source_of_environment(),
        scratch,
        environment.workers(),
    )


def _fitted(new: "NewCorpus", scratch: Path) -> "FittedPieces":
    """The vocabulary for the training text that `_tried` has written below `scratch`."""
    from bleuprint.dataset.fitted_pieces import fitted_pieces

    return fitted_pieces(new.name, new.corpus, _split_text(new, scratch), new.most_pieces)


def _kept(new: "NewCorpus", inspection: "Inspection") -> _Kept:
    """The pairs of each set; raises UserError if nothing remains to train or test on."""
    if inspection.failure:
        names = " and ".join(map(str, new.files))
        raise UserError(
            f"{names}: the rules leave too few of the {new.pairs:,} pairs to train, validate and "
            f"test on: {inspection.failure}. Look at the languages, the columns and the text"
        )
    tests = [pairs for name, pairs in inspection.sets.items() if name.startswith("test.")]
    return _Kept(inspection.sets["train"], inspection.sets["valid"], sum(tests))


def _notes(new: "NewCorpus", inspection: "Inspection", kept: _Kept) -> Iterator[str]:
    """What is weak about the text and its preparation."""
    for stage, counts in inspection.stages.items():
        for rule, dropped in counts.dropped.items():
            if rule.startswith("drawn_for_") or dropped <= _MANY * counts.pairs_in:
                continue
            yield (
                f"rule {rule} of {stage} drops {dropped:,} of {counts.pairs_in:,} pairs "
                f"({dropped / counts.pairs_in:.0%}). {_REMEDIES.get(stage, '')}"
                f"To see some: bleuprint inspect {new.name}"
            )
    if kept.test < _FEW_TESTS:
        yield (
            f"the test set has only {kept.test} pairs, and systems are compared from "
            f"{_FEW_TESTS} on. Add text, or name a test set of your own in files.tests"
        )


_REMEDIES = {
    "filter": "If they are good pairs, remove the rule from filter in params.yaml. ",
    "dedup": "The setting dedup in params.yaml says which repeated pairs are dropped. ",
}


def _training(corpus: str, text: "TextSize", valid: int) -> Iterator[str]:
    """How long the systems are trained on a corpus, and how long that may take here."""
    from bleuprint.training import forecast

    systems = load().systems_on(corpus)
    cores = environment.workers()
    seconds_side_by_side: list[float] = []  # of trainings in one thread
    seconds_one_by_one: list[float] = []  # of trainings on all cores
    for name, system in systems.items():
        updates = forecast.updates(system.train, text)
        if updates is None:
            yield f"{name} trains until train.patience ends it"
            continue
        passes = forecast.passes(system.train, text, updates)
        most = counted(updates, "update")
        line = f"{name} trains for at most {most}, {passes:,.1f} passes over the text"
        if not environment.has_gpu():
            is_portable = system.arithmetic == "portable"
            threads = 1 if is_portable else cores
            seconds = forecast.seconds(system, text, valid, updates, threads)
            times = seconds_side_by_side if is_portable else seconds_one_by_one
            times.append(seconds)
            line += f": {counted(max(1, round(seconds / 60)), 'minute')}"
        yield line
    if seconds_side_by_side or seconds_one_by_one:
        longest = max(seconds_side_by_side, default=0.0)
        side_by_side = max(longest, sum(seconds_side_by_side) / cores)
        trained = side_by_side + sum(seconds_one_by_one)
        minutes = trained / 60 + _REST + text.pairs / _PREPARED
        idle = counted(cores, "idle core")
        time = counted(max(1, round(minutes)), "minute")
        yield f"forecast for {corpus}, without other corpora: {time}, on {idle} of this machine"
    yield "for a better system, in more hours: raise its train.max_updates in params.yaml"


def _next_steps(new: "NewCorpus", kept: _Kept) -> Iterator[str]:
    """What to expect of a small text, and what its user does next."""
    from bleuprint.report.page.cautions import PAIRS

    if kept.train < PAIRS:
        yield (
            f"{kept.train:,} training pairs are few: a system trained on them alone translates "
            "what is like them; add text, or start from a trained model (docs/training.md, "
            "Fine-tuning)"
        )
    known = _INTERVAL * (1000 / kept.test) ** 0.5
    yield f"BLEU will be known to about ±{known:.1f}, by a test set of {kept.test:,} pairs"
    yield "next: state the license of the text in params.yaml"
    yield f"next: bleuprint inspect {new.name} (what each rule drops, with samples)"
    yield "next: make reproduce (prepare, train, translate, print the table)"


def _not_restored(new: "NewCorpus", scratch: Path) -> str | None:
    """What a perfect translation of the test set scores, and what helps, if text is lost."""
    from bleuprint.corpus.split import NEW_TEST
    from bleuprint.scoring.reachable import loss

    test = _split_text(new, scratch)
    lines = [pair.target for pair in test.pairs(NEW_TEST)]
    try:
        return loss(lines, new.corpus, given=False)
    except UserError as error:  # BLEU needs a package
        return f"not known: {error}"


def _split_text(new: "NewCorpus", scratch: Path) -> "TextFolder":
    """The training, validation and test text that `_tried` has written below `scratch`."""
    from bleuprint.config import paths
    from bleuprint.text.parallel import TextFolder

    source, target = new.languages
    return TextFolder(paths.folder(new.name, "split", scratch), source, target)
