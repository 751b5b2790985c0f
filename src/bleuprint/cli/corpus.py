"""Commands that look at corpora: cite, inspect, new-corpus."""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from bleuprint.cli.options import Commands, add_command, count, whole_number
from bleuprint.config.experiment import Settings, load
from bleuprint.runtime import environment
from bleuprint.runtime.errors import UserError, say

if TYPE_CHECKING:
    from bleuprint.corpus.new_corpus import NewCorpus

# Below it, a text may not have as many subwords as are usual.
_FEW_PAIRS = 20_000


def add_commands(commands: Commands) -> None:
    add_command(commands, _cite, "cite > references.bib")
    add = add_command(commands, _inspect, "inspect phrasebook-en-de")
    add("corpus", metavar="CORPUS", help="a corpus of params.yaml")
    help_ = "pairs to draw from each text (%(default)s)"
    add("--pairs", type=count, default=100_000, help=help_)
    add("--seed", type=whole_number(0), default=1, help="seed of the drawing (%(default)s)")
    add("--samples", type=whole_number(1, 5), default=3, help="samples of each rule (%(default)s)")
    add = add_command(commands, _new_corpus, "new-corpus inputs/mine.de inputs/mine.en")
    add("files", nargs=2, type=Path, metavar="FILE", help="the source text, then the target text")
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

    corpus, sample = load().corpus(given.corpus), Sample(given.pairs, given.seed)
    scratch = environment.work() / "inspect"
    inspection = inspect_corpus(
        given.corpus, corpus, sample, source_of_environment(), scratch, environment.workers()
    )
    print(*report(inspection, given.samples), sep="\n")


def _new_corpus(given: argparse.Namespace) -> None:
    """Add two parallel files in inputs/ to params.yaml."""
    from bleuprint.corpus.new_corpus import NewCorpus, insert

    settings = load()  # before the files are read, which may take minutes
    example = Path("recipes", "own.yaml")
    new = _restoring(NewCorpus.of(given.files, given.languages), settings)
    text = example.read_text(encoding="utf-8") if example.exists() else None
    place = " in place of the example" if insert(Path("params.yaml"), new, text) else ""
    print(f"{new.pairs:,} pairs; params.yaml has a new entry{place}:\n\n{new.entry}")
    print(f"State the license of the text in it. What the rules drop: bleuprint inspect {new.name}")


def _restoring(new: "NewCorpus", settings: Settings) -> "NewCorpus":
    """The entry; with SentencePiece if the tokenizer does not restore the target text."""
    from bleuprint.config.corpus import SentencePiece
    from bleuprint.dataset.learn_sentencepiece import feasible_size
    from bleuprint.rules.rule import edited
    from bleuprint.scoring.reachable import TOKENIZE, loss

    corpus = new.corpus
    lines = [edited(pair.target, corpus.target, corpus.clean) for pair in new.sample]
    try:
        found = loss(lines, corpus, given=False)
    except UserError as error:  # BLEU needs a package
        say(str(error), "note")
        return new
    if found is None:
        return new
    help_ = found.help
    dropout = any(settings.system(name).train.bpe_dropout for name in settings.systems)
    if found.step == TOKENIZE and not dropout and not new.segmented:
        # tried on half of the distinct lines: others are held out or dropped
        some = sorted({line for pair in new.sample for line in pair})[::2]
        pieces = feasible_size(SentencePiece(size=new.merges, byte_fallback=True), some)
        if pieces is not None:
            help_ = "the entry has SentencePiece"
            # a text of more pairs has as many pieces as are usual
            new = replace(new, pieces=new.merges if new.pairs > _FEW_PAIRS else pieces)
    say(f"reachable BLEU is {found.bleu} with {corpus.tokenize.name}: {help_}", "note")
    return new
