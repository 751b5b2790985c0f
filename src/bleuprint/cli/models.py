"""Commands that make or serve a model: train, serve, export."""

import argparse
from pathlib import Path

from bleuprint.cli.options import Commands, add_cell_options, trained_cell
from bleuprint.config.experiment import load
from bleuprint.config.paths import Cell


def add_commands(commands: Commands) -> None:
    train = commands.add_parser(
        "train", help="run the stage of this name, also on several hosts: docs/hosts.md"
    )
    train.add_argument("system", metavar="SYSTEM")
    train.add_argument("corpus", metavar="CORPUS")
    train.add_argument("seed", metavar="SEED", type=_seed)
    train.set_defaults(command=_train)

    serve = commands.add_parser(
        "serve", help="a page and a JSON endpoint on 127.0.0.1 to try a trained system"
    )
    add_cell_options(serve)
    serve.add_argument("--port", type=_port, default=8000, help="0: any free port (%(default)s)")
    serve.set_defaults(command=_serve)

    export = commands.add_parser(
        "export", help="a trained system as a folder for CTranslate2, without this project"
    )
    export.add_argument("folder", metavar="FOLDER")
    add_cell_options(export)
    export.add_argument(
        "--precision", choices=("float32", "int8"), default="float32", help="(%(default)s)"
    )
    export.set_defaults(command=_export)


def _seed(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(text)


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port, 0 to 65535")
    return int(text)


def _train(given: argparse.Namespace) -> None:
    from bleuprint.runtime.malloc import reexec_with_malloc_settings

    reexec_with_malloc_settings()

    from bleuprint.pipeline.train_stage import train_cell

    train_cell(Cell(given.system, given.corpus, given.seed))


def _serve(given: argparse.Namespace) -> None:
    from bleuprint.runtime.malloc import reexec_with_malloc_settings

    reexec_with_malloc_settings()

    from bleuprint.serving.server import serve

    settings = load()
    serve(settings, trained_cell(settings, given), given.port)


def _export(given: argparse.Namespace) -> None:
    from bleuprint.serving.export import release

    settings = load()
    release(settings, trained_cell(settings, given), Path(given.folder), given.precision)
