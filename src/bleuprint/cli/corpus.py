"""Commands that look at corpora: cite, inspect, new-corpus."""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from bleuprint.cli.options import Commands, add_command, count, whole_number
from bleuprint.config.experiment import load
from bleuprint.runtime import environment
from bleuprint.runtime.errors import UserError, say
from bleuprint.runtime.html import counted

if TYPE_CHECKING:
    from bleuprint.corpus.new_corpus import NewCorpus
    from bleuprint.training.fitted_systems import TextSize

# The minutes of all stages but trainings, and the pairs that are prepared in one more.
_REST, _PREPARED = 3, 50_000
# Half of the 95 % interval of BLEU on 1,000 lines, Multi30k's.
_INTERVAL = 1.6


def add_commands(commands: Commands) -> None:
    add_command(commands, _cite, "cite > references.bib")
    add = add_command(commands, _inspect, "inspect phrasebook-en-de")
    add("corpus", metavar="CORPUS", help="a corpus of params.yaml")
    help_ = "pairs to draw from the training texts (%(default)s)"
    add("--pairs", type=count, default=100_000, help=help_)
    add("--seed", type=whole_number(0), default=1, help="seed of the drawing (%(default)s)")
    add("--samples", type=whole_number(1, 5), default=3, help="samples of each rule (%(default)s)")
    example = "new-corpus inputs/mine.de inputs/mine.en"
    add = add_command(commands, _new_corpus, example, computes=True)
    help_ = "the source text, then the target text; or one .tsv or .tmx file with both"
    add("files", nargs="+", type=Path, metavar="FILE", help=help_)
    help_ = "their languages, such as de en (the ends of their names)"
    add("--languages", nargs=2, metavar="CODE", help=help_)


def _cite(_: argparse.Namespace) -> None:
    """The BibTeX of what the experiment uses."""
    from bleuprint.report.citations import citations

    print(citations(load()), end="")


def _inspect(given: argparse.Namespace) -> None:
    """What each rule would drop, with samples."""
    from bleuprint.corpus.download.download import Sample
    from bleuprint.corpus.download.fetch import source_of_environment
    from bleuprint.corpus.inspect import inspect_corpus, report

    settings, sample = load(), Sample(given.pairs, given.seed)
    scratch = environment.work() / "inspect"
    inspection = inspect_corpus(
        given.corpus, settings, sample, source_of_environment(), scratch, environment.workers()
    )
    print(*report(inspection, given.samples), sep="\n")
    for note in inspection.notes:
        say(note, "note")


def _new_corpus(given: argparse.Namespace) -> None:
    """Add parallel text in inputs/ to params.yaml."""
    from bleuprint.corpus.new_corpus import Example, NewCorpus, insert
    from bleuprint.training.fitted_systems import TextSize, systems

    load()  # before the files are read, which may take minutes
    recipe, params = Path("recipes", "own.yaml"), Path("params.yaml")
    new = NewCorpus.of(given.files, given.languages)
    valid, test = new.held_out
    pairs = round(new.pairs * (1 - valid - test))
    text = TextSize(pairs, *new.subwords, new.merges)
    example = Example.of(recipe) if recipe.exists() else None
    replaced, fitted = insert(params, new, example, systems(text, not environment.has_gpu()))
    place = " in place of the example" if replaced else ""
    print(f"{new.pairs:,} pairs; {params} has a new entry{place}:\n\n{new.entry}")
    if not fitted:
        say(
            f"the systems of {params} stay, which were not fitted to this text; those of "
            "make recipe NAME=own are, if new-corpus follows at once",
            "note",
        )
    if restored := _not_restored(new):
        say(f"reachable BLEU is {restored}", "note")
    print(*_training(new.name, text, round(valid * new.pairs)), sep="\n")
    print(*_next_steps(new, round(test * new.pairs)), sep="\n")


def _training(corpus: str, text: "TextSize", valid: int) -> Iterator[str]:
    """How long the systems are trained on a corpus, and how long that may take here."""
    from bleuprint.training import forecast

    systems, cores = load().systems_on(corpus), environment.workers()
    beside, alone = list[float](), list[float]()  # seconds: of one thread, of all cores
    for name, system in systems.items():
        if (updates := forecast.updates(system.train, text)) is None:
            yield f"{name} trains until train.patience ends it"
            continue
        passes = forecast.passes(system.train, text, updates)
        line = f"{name} trains for at most {updates:,} updates, {passes:,.1f} passes over the text"
        if not environment.has_gpu():
            portable = system.arithmetic == "portable"
            took = forecast.seconds(system, text, valid, updates, 1 if portable else cores)
            (beside if portable else alone).append(took)
            line += f": {counted(max(1, round(took / 60)), 'minute')}"
        yield line
    if beside or alone:
        trained = max(0.0, *beside, sum(beside) / cores) + sum(alone)
        minutes = trained / 60 + _REST + text.pairs / _PREPARED
        yield f"forecast: {minutes:,.0f} minutes in all, on {cores} idle cores of this machine"
    yield "for a better system, in more hours: raise its train.max_updates in params.yaml"


def _next_steps(new: "NewCorpus", test: int) -> Iterator[str]:
    """What to expect of a small text, and what its user does next."""
    from bleuprint.report.page.cautions import PAIRS

    if new.pairs < PAIRS:
        yield (
            f"{new.pairs:,} pairs are few: a system trained on them alone translates what is like "
            "them; add text, or start from a trained model (docs/training.md, Fine-tuning)"
        )
    known = _INTERVAL * (1000 / test) ** 0.5
    yield f"BLEU will be known to about ±{known:.1f}, by a test set of some {test:,} pairs"
    yield "next: state the license of the text in params.yaml"
    yield f"next: bleuprint inspect {new.name} (what each rule drops, with samples)"
    yield "next: make reproduce (prepare, train, translate, print the table)"


def _not_restored(new: "NewCorpus") -> str | None:
    """What a perfect translation scores, and what helps, if the tokenizer loses text."""
    from bleuprint.rules.rule import edited
    from bleuprint.scoring.reachable import loss

    corpus = new.corpus
    lines = [edited(pair.target, corpus.target, corpus.clean) for pair in new.sample]
    try:
        return loss(lines, corpus, given=False)
    except UserError as error:  # BLEU needs a package
        return f"not known: {error}"
