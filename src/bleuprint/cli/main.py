"""The command `bleuprint`: what is done beside the pipeline, with what it has made."""

import argparse
import re
import sys
from pathlib import Path
from typing import TypeAlias

from bleuprint.config import paths
from bleuprint.config.experiment import Settings, load
from bleuprint.runtime import environment
from bleuprint.runtime.errors import UserError, run

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def main() -> None:
    """Run the command that the command line names."""
    given = _parser().parse_args()
    run(lambda: given.command(given))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bleuprint", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for add in (_add_corpus_commands, _add_translate, _add_model_commands, _add_score_commands):
        add(commands)
    _add_mlflow_commands(commands)
    return parser


def _add_corpus_commands(commands: Commands) -> None:
    cite = commands.add_parser("cite", help="the BibTeX of what the experiment uses")
    cite.set_defaults(command=_cite)

    inspect = commands.add_parser("inspect", help="what each rule would drop, with samples")
    inspect.add_argument("corpus", metavar="CORPUS")
    inspect.add_argument(
        "--pairs", type=_count, default=100_000, help="how many of each file are read (%(default)s)"
    )
    inspect.add_argument(
        "--samples", type=_count, default=3, help="samples of each rule, up to 5 (%(default)s)"
    )
    inspect.set_defaults(command=_inspect)

    show = commands.add_parser("show", help="pairs of a binarised corpus as text")
    show.add_argument("corpus", metavar="CORPUS")
    show.add_argument("--set", default="train", help="train, valid or test.NAME (%(default)s)")
    show.add_argument(
        "--lines", type=_lines, metavar="M:N", help="pairs M to N, counted from 1 (the first 10)"
    )
    show.add_argument("--units", action="store_true", help="show the units, not the sentences")
    show.set_defaults(command=_show)


def _add_translate(commands: Commands) -> None:
    translate = commands.add_parser(
        "translate", help="translate sentences with a trained system, a line for each line"
    )
    translate.add_argument("files", nargs="*", metavar="FILE", help="(standard input)")
    _add_cell(translate)
    translate.add_argument("--beam", type=_count, help="instead of the system's decode.beam")
    translate.add_argument(
        "--n-best",
        type=_count,
        metavar="N",
        help="the N best of each line, as LINE ||| TEXT ||| SCORE, lines counted from 0",
    )
    translate.add_argument("--scores", action="store_true", help="each score before its text")
    translate.add_argument(
        "--checkpoints",
        type=_count,
        metavar="N",
        help="the last N checkpoints as an ensemble, instead of their average",
    )
    translate.add_argument(
        "--long",
        choices=("pieces", "cut"),
        default="pieces",
        help="what to do with sentences that are too long for the model (%(default)s)",
    )
    translate.add_argument(
        "--attention",
        type=_attention_file,
        metavar="FILE",
        help="write where the model looked, as .html (up to 100 lines) or .png (one line)",
    )
    translate.add_argument(
        "--given",
        metavar="FILE",
        help="score the translations in FILE, one for each line, instead of translating",
    )
    translate.set_defaults(command=_translate)


def _add_model_commands(commands: Commands) -> None:
    train = commands.add_parser(
        "train", help="what the stage of this name does, also on several hosts: docs/hosts.md"
    )
    train.add_argument("system", metavar="SYSTEM")
    train.add_argument("corpus", metavar="CORPUS")
    train.add_argument("seed", metavar="SEED", type=_seed)
    train.set_defaults(command=_train)
    serve = commands.add_parser(
        "serve", help="a page and a JSON endpoint on 127.0.0.1 to try a trained system"
    )
    _add_cell(serve)
    serve.add_argument(
        "--port", type=_port, default=8000, help="0 takes one that is free (%(default)s)"
    )
    serve.set_defaults(command=_serve)
    export = commands.add_parser(
        "export", help="a trained system as a folder for CTranslate2, without this project"
    )
    export.add_argument("folder", metavar="FOLDER")
    _add_cell(export)
    export.add_argument(
        "--precision", choices=("float32", "int8"), default="float32", help="(%(default)s)"
    )
    export.set_defaults(command=_export)


def _add_score_commands(commands: Commands) -> None:
    table = commands.add_parser("table", help="the experiment's scores and what they cost")
    table.add_argument(
        "--format",
        choices=("terminal", "markdown", "csv", "latex"),
        default="terminal",
        help="(%(default)s)",
    )
    table.set_defaults(command=_table)
    compare = commands.add_parser("compare", help="two systems beside each other, with sentences")
    compare.add_argument("first", metavar="A")
    compare.add_argument("second", metavar="B")
    compare.add_argument("--corpus", required=True)
    compare.add_argument("--test", help="one test set (all)")
    compare.add_argument("--seed", type=int, help="of the trainings (the first of params.yaml)")
    compare.add_argument(
        "--sentences", type=_count, default=10, help="how many better, and worse ones (%(default)s)"
    )
    compare.set_defaults(command=_compare)
    diff = commands.add_parser(
        "diff", help="what differs in settings, and what that did to data, curves and scores"
    )
    revision = "SYSTEM, SYSTEM@REVISION or @REVISION, of git or an experiment of DVC"
    diff.add_argument("first", metavar="A", help=revision)
    diff.add_argument("second", metavar="B", help="the same")
    diff.set_defaults(command=_diff)
    comet = commands.add_parser("comet", help="COMET scores, where comet-score is installed")
    _add_cell(comet)
    comet.add_argument("--model", default="Unbabel/wmt22-comet-da", help="(%(default)s)")
    comet.add_argument("--program", default="comet-score", help="(%(default)s)")
    comet.set_defaults(command=_comet)


def _add_mlflow_commands(commands: Commands) -> None:
    sync = commands.add_parser(
        "mlflow-sync", help="bring MLflow to what is in results/, as after a dvc pull"
    )
    sync.set_defaults(command=_mlflow_sync)
    register = commands.add_parser(
        "register", help="name a trained system the best of its corpus in MLflow's registry"
    )
    _add_cell(register)
    register.set_defaults(command=_register)


def _add_cell(command: argparse.ArgumentParser) -> None:
    """The options that name a training."""
    command.add_argument("--system", required=True)
    command.add_argument("--corpus", required=True)
    command.add_argument("--seed", type=int, help="of the training (the first of params.yaml)")


def _cite(_: argparse.Namespace) -> None:
    from bleuprint.report.citations import citations

    print(citations(load()), end="")


def _inspect(given: argparse.Namespace) -> None:
    from bleuprint.corpus.download.fetch import source_of_environment
    from bleuprint.corpus.preview import preview, report

    corpus = load().corpus(given.corpus)
    scratch = environment.work() / "inspect"
    accounts = preview(
        given.corpus, corpus, given.pairs, source_of_environment(), scratch, environment.workers()
    )
    for line in report(accounts, given.samples):
        print(line)


def _show(given: argparse.Namespace) -> None:
    from bleuprint.dataset.binarized import BinaryCorpus
    from bleuprint.dataset.show import show

    load().corpus(given.corpus)
    corpus = BinaryCorpus(paths.folder(given.corpus, "binary"))
    corpus.verify(given.set)
    start, stop = given.lines or (1, min(10, len(corpus.side(given.set, corpus.source))))
    for line in show(corpus, given.set, start, stop, given.units):
        print(line)


def _translate(given: argparse.Namespace) -> None:
    import dataclasses

    from bleuprint.runtime.malloc import keep_memory

    keep_memory()

    from bleuprint.config.system import WIDEST
    from bleuprint.serving.attention_file import Album
    from bleuprint.serving.score_given import score_streams
    from bleuprint.serving.translator import load_translator, translate_streams

    _check_together(given)
    settings = load()
    decode = settings.system(given.system).decode
    if (given.beam or 1) > WIDEST:
        raise UserError(f"--beam {given.beam} is beyond {WIDEST}")
    if given.beam:
        decode = dataclasses.replace(decode, beam=given.beam)
    if (given.n_best or 1) > decode.beam:
        raise UserError(f"--n-best {given.n_best} is beyond the beam of {decode.beam}")
    cell = _trained(settings, given)
    translator = load_translator(settings, cell, decode, given.checkpoints)
    album = None
    if given.attention:
        album = Album(given.attention, (translator.corpus.source, translator.corpus.target))
    if given.given:
        output = score_streams(translator, given.files, given.given)
    else:
        output = translate_streams(
            translator, given.files, given.n_best, given.scores, given.long, album
        )
    for lines in output:
        for line in lines:
            print(line)
        sys.stdout.flush()
    if album:
        album.write()


def _check_together(given: argparse.Namespace) -> None:
    """Raise UserError at options of `translate` that do not go together."""
    for option in ("n_best", "attention", "beam", "scores"):
        if given.given and getattr(given, option):
            raise UserError(
                f"--given searches nothing: it does not go with --{option.replace('_', '-')}"
            )
    for option in ("attention", "given"):
        if given.checkpoints and getattr(given, option):
            raise UserError(f"--{option} is of one model: it does not go with --checkpoints")


def _train(given: argparse.Namespace) -> None:
    from bleuprint.runtime.malloc import keep_memory

    keep_memory()

    from bleuprint.pipeline.train_stage import train_cell

    train_cell(paths.Cell(given.system, given.corpus, given.seed))


def _serve(given: argparse.Namespace) -> None:
    from bleuprint.runtime.malloc import keep_memory

    keep_memory()

    from bleuprint.serving.server import serve

    settings = load()
    serve(settings, _trained(settings, given), given.port)


def _table(given: argparse.Namespace) -> None:
    from bleuprint.report import main_table
    from bleuprint.report.recordcsv import csv_text
    from bleuprint.report.records import check_settings
    from bleuprint.report.records import load as load_records
    from bleuprint.report.terminal import show
    from bleuprint.tracking.timings import timing

    path = main_table.REPORTS / "results.json"
    records, settings = load_records(path), load()
    check_settings(records, settings, path)
    timings = {record.cell: timing(record.cell) for record in records}
    if given.format == "csv":
        print(csv_text(records, timings, settings.published), end="")
    elif given.format == "latex":
        print(main_table.tex(settings, records, timings), end="")
    elif given.format == "markdown":
        print("\n".join(main_table.summary(settings, records, timings)))
    else:
        show(main_table.parts(records, timings, settings.published))


def _compare(given: argparse.Namespace) -> None:
    from bleuprint.report.compare import Comparison, compare
    from bleuprint.report.terminal import show

    settings = load()
    seed = settings.seeds[0] if given.seed is None else given.seed
    compared = Comparison(given.first, given.second, given.corpus, seed)
    show(compare(settings, compared, given.test, given.sentences))


def _diff(given: argparse.Namespace) -> None:
    from bleuprint.report.diff import diff
    from bleuprint.report.terminal import show

    show(diff(given.first, given.second))


def _comet(given: argparse.Namespace) -> None:
    from bleuprint.report.comet import comet

    settings = load()
    cell = _cell(settings, given)
    for line in comet(settings, cell, given.model, given.program):
        print(line, flush=True)


def _export(given: argparse.Namespace) -> None:
    from bleuprint.serving.export import release

    settings = load()
    release(settings, _trained(settings, given), Path(given.folder), given.precision)


def _mlflow_sync(_: argparse.Namespace) -> None:
    from bleuprint.tracking.sync import sync_all

    for line in sync_all(load()):
        print(line, flush=True)


def _register(given: argparse.Namespace) -> None:
    from bleuprint.tracking.registry import register

    settings = load()
    print(register(settings, _trained(settings, given)))


def _trained(settings: Settings, given: argparse.Namespace) -> paths.Cell:
    """The training that the command line names; raises UserError if there is none."""
    cell = _cell(settings, given)
    if not cell.models.exists():
        raise UserError(
            f"{cell.models}: no training of {cell}; dvc repro makes it, dvc pull may fetch it"
        )
    return cell


def _cell(settings: Settings, given: argparse.Namespace) -> paths.Cell:
    settings.system(given.system)
    settings.corpus(given.corpus)
    seed = settings.seeds[0] if given.seed is None else given.seed
    return paths.Cell(given.system, given.corpus, seed)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1")
    return int(text)


def _seed(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(text)


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port, 0 to 65535")
    return int(text)


def _attention_file(text: str) -> Path:
    if Path(text).suffix not in (".html", ".png"):
        raise argparse.ArgumentTypeError(f"{text!r} ends in neither .html nor .png")
    return Path(text)


def _lines(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"([0-9]+):([0-9]+)", text)
    if found is None or not 1 <= int(found[1]) <= int(found[2]):
        raise argparse.ArgumentTypeError(f"{text!r} is not a range such as 10:20")
    return int(found[1]), int(found[2])


if __name__ == "__main__":
    main()
