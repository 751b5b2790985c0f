"""Commands that look at corpora: cite, inspect, new-corpus, show."""

import argparse
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from bleuprint.cli.options import Commands, count, whole_number
from bleuprint.config import paths
from bleuprint.config.experiment import Settings, load
from bleuprint.runtime import environment
from bleuprint.runtime.errors import UserError, say

if TYPE_CHECKING:
    from bleuprint.corpus.new_corpus import Draft
    from bleuprint.dataset.binarized import BinaryCorpus

# Below it, a text may not have as many subwords as are usual.
_FEW_PAIRS = 20_000


def add_commands(commands: Commands) -> None:
    cite = commands.add_parser("cite", help="the BibTeX of what the experiment uses")
    cite.set_defaults(command=_cite)

    inspect = commands.add_parser("inspect", help="what each rule would drop, with samples")
    inspect.add_argument("corpus", metavar="CORPUS", help="a corpus of params.yaml")
    inspect.add_argument(
        "--pairs", type=count, default=100_000, help="pairs to draw from each text (%(default)s)"
    )
    inspect.add_argument(
        "--seed", type=whole_number(0), default=1, help="seed of the drawing (%(default)s)"
    )
    inspect.add_argument(
        "--samples", type=whole_number(1, 5), default=3, help="samples of each rule (%(default)s)"
    )
    inspect.set_defaults(command=_inspect)

    new = commands.add_parser(
        "new-corpus", help="add two files in inputs/ to params.yaml, with rules that suit them"
    )
    new.add_argument(
        "files", nargs=2, type=Path, metavar="FILE", help="the source text, then the target text"
    )
    new.set_defaults(command=_new_corpus)

    show = commands.add_parser("show", help="pairs of a binarized corpus as text")
    show.add_argument("corpus", metavar="CORPUS", help="a corpus of params.yaml")
    show.add_argument("--set", default="train", help="train, valid or test.NAME (%(default)s)")
    show.add_argument(
        "--lines", type=_lines, metavar="M:N", help="pairs M to N, counted from 1 (the first 10)"
    )
    show.add_argument("--subwords", action="store_true", help="show subwords, not sentences")
    show.set_defaults(command=_show)


def _lines(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"([0-9]+):([0-9]+)", text)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise argparse.ArgumentTypeError(f"{text!r} is not a range such as 10:20")
    return int(match[1]), int(match[2])


def _cite(_: argparse.Namespace) -> None:
    from bleuprint.report.citations import citations

    print(citations(load()), end="")


def _inspect(given: argparse.Namespace) -> None:
    from bleuprint.corpus.download.download import Sample
    from bleuprint.corpus.download.fetch import source_of_environment
    from bleuprint.corpus.inspect import inspect_corpus, report

    corpus, sample = load().corpus(given.corpus), Sample(given.pairs, given.seed)
    scratch = environment.work() / "inspect"
    inspection = inspect_corpus(
        given.corpus, corpus, sample, source_of_environment(), scratch, environment.workers()
    )
    for line in report(inspection, given.samples):
        print(line)


def _new_corpus(given: argparse.Namespace) -> None:
    from bleuprint.config.insert_corpus import insert_corpus, replaced_by
    from bleuprint.corpus.download.fetch import source_of_environment
    from bleuprint.corpus.new_corpus import draft, report

    params, example = Path("params.yaml"), Path("recipes", "own.yaml")
    settings = load()  # before the files are read, which may take minutes
    entry = draft(given.files)
    replaced_by(params, entry.name, example)
    for note in entry.notes():
        say(note, "note")
    entry = _restoring(entry, settings)
    scratch = environment.work() / "new-corpus"
    new = entry.suggest(source_of_environment(), scratch, environment.workers())
    replaced = insert_corpus(params, new.name, new.entry, example)
    for note in new.notes(load().systems_on(new.name)):
        say(note, "note")
    for line in report(new):
        print(line)
    place = "" if replaced is None else f" in place of {replaced}"
    print(f"params.yaml has a new entry{place}; state the license of the text in it:")
    print(new.entry, end="")


def _restoring(entry: "Draft", settings: Settings) -> "Draft":
    """The draft; with SentencePiece if the tokenizer does not restore the target text."""
    from bleuprint.corpus.new_corpus import EDITS
    from bleuprint.rules.rule import edited
    from bleuprint.scoring.reachable import TOKENIZE
    from bleuprint.scoring.reachable_sample import loss

    corpus = entry.corpus([*EDITS], [])
    lines = [edited(line, corpus.target, corpus.clean) for line in entry.samples[1]]
    try:
        found = loss(lines, corpus, given=False)
    except UserError as error:  # BLEU needs a package
        say(str(error), "note")
        return entry
    if found is None:
        return entry
    dropout = any(settings.system(name).train.bpe_dropout for name in settings.systems)
    pieces = None if found.step != TOKENIZE or dropout or entry.segmented else _pieces(entry)
    what = f"reachable BLEU is {found.bleu} with {corpus.tokenize.name}"
    say(f"{what}: {found.help if pieces is None else 'the entry has SentencePiece'}", "note")
    return replace(entry, pieces=pieces)


def _pieces(entry: "Draft") -> int | None:
    """The size of a vocabulary that SentencePiece can learn from the training text; None: of none.

    Tried on half of the samples' distinct lines: others are held out or dropped.
    """
    from bleuprint.config.corpus import SentencePiece
    from bleuprint.dataset.learn_sentencepiece import feasible_size

    if entry.pairs > _FEW_PAIRS:
        return entry.merges
    lines = sorted({line for side in entry.samples for line in side})[::2]
    settings = SentencePiece("unigram", entry.merges, joint=True, byte_fallback=True)
    return feasible_size(settings, lines)


def _show(given: argparse.Namespace) -> None:
    from bleuprint.dataset.binarized import BinaryCorpus

    load().corpus(given.corpus)
    corpus = BinaryCorpus(paths.folder(given.corpus, "binary"))
    corpus.verify(given.set)
    start, stop = given.lines or (1, min(10, len(corpus.side(given.set, corpus.source))))
    for line in pairs_as_text(corpus, given.set, start, stop, given.subwords):
        print(line)


def pairs_as_text(
    corpus: "BinaryCorpus", name: str, start: int, stop: int, subwords: bool = False
) -> Iterator[str]:
    """Pairs `start` to `stop` of the set `name`, both included and counted from 1.

    Yields lines "number source target", separated by tabs: detokenized sentences, or the subwords
    that the model reads. Raises UserError, before the first line, if the set has no such pairs.
    """
    languages = corpus.source, corpus.target
    pairs = len(corpus.side(name, corpus.source))
    if not 1 <= start <= stop <= pairs:
        raise UserError(f"pairs {start} to {stop} of {name}: it has {pairs}, counted from 1")

    def text(language: str, number: int) -> str:
        ids = corpus.side(name, language)[number - 1].tolist()
        if subwords:
            return " ".join(corpus.segmentation(language).vocabulary.decode(ids))
        return corpus.text(language, ids)

    return (
        "\t".join((str(number), *(text(language, number) for language in languages)))
        for number in range(start, stop + 1)
    )
