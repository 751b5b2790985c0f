"""Commands that make, serve or log models: train, serve, export, release, log-model and others."""

import argparse
from pathlib import Path

from bleuprint.cli.options import (
    Commands,
    add_cell_options,
    trained_cell,
    whole_number,
)
from bleuprint.config.experiment import load
from bleuprint.config.paths import Cell
from bleuprint.runtime.secrets import mask


def add_commands(commands: Commands) -> None:
    train = commands.add_parser(
        "train",
        help="train one system on one corpus with one seed, on one or several hosts: docs/hosts.md",
    )
    train.add_argument("system", metavar="SYSTEM", help="a system of params.yaml")
    train.add_argument("corpus", metavar="CORPUS", help="a corpus of params.yaml")
    train.add_argument("seed", metavar="SEED", type=whole_number(0), help="a seed of params.yaml")
    train.set_defaults(command=_train, computes=True)

    serve = commands.add_parser(
        "serve", help="a page and a JSON endpoint on 127.0.0.1 to try a trained system"
    )
    add_cell_options(serve)
    port = whole_number(0, 65535)
    serve.add_argument("--port", type=port, default=8000, help="0: any free port (%(default)s)")
    serve.set_defaults(command=_serve, computes=True)

    export = commands.add_parser(
        "export", help="a trained system as a folder for CTranslate2, without this project"
    )
    export.add_argument("folder", metavar="FOLDER", help="the folder to make")
    add_cell_options(export)
    export.add_argument(
        "--precision", choices=("float32", "int8"), default="float32", help="(%(default)s)"
    )
    export.set_defaults(command=_export)

    log = commands.add_parser(
        "log-model", help="a trained system as a model version in MLflow, for load_model"
    )
    add_cell_options(log)
    log.add_argument(
        "--precision", choices=("float32", "int8"), default="float32", help="(%(default)s)"
    )
    log.set_defaults(command=_log_model)

    release = commands.add_parser(
        "release", help="the experiment as a folder for others: weights, results, sums, a card"
    )
    release.add_argument("folder", metavar="FOLDER", help="the folder to make")
    release.add_argument("--system", help="the weights of this system alone (all)")
    release.add_argument("--corpus", help="the weights on this corpus alone (all)")
    release.set_defaults(command=_release)

    sync = commands.add_parser(
        "mlflow-sync", help="log what is in results/ to MLflow, for example after dvc pull"
    )
    sync.set_defaults(command=_sync)


def _train(given: argparse.Namespace) -> None:
    from bleuprint.pipeline.train_stage import train_cell

    train_cell(Cell(given.system, given.corpus, given.seed))


def _serve(given: argparse.Namespace) -> None:
    from bleuprint.serving.server import serve

    settings = load()
    serve(settings, trained_cell(settings, given), given.port)


def _export(given: argparse.Namespace) -> None:
    from bleuprint.serving.export import export

    settings = load()
    export(settings, trained_cell(settings, given), Path(given.folder), given.precision)


def _release(given: argparse.Namespace) -> None:
    from bleuprint.pipeline.release import release

    release(load(), Path(given.folder), given.system, given.corpus)


def _sync(_: argparse.Namespace) -> None:
    from bleuprint.tracking.sync import sync_all

    for line in sync_all(load()):
        print(line, flush=True)


def _log_model(given: argparse.Namespace) -> None:
    from bleuprint.serving.log_model import log_model
    from bleuprint.tracking import store

    settings = load()
    address = log_model(settings, trained_cell(settings, given), given.precision)
    print(f"MLflow at {mask(store.uri())}: model version {address}")
    print(f'mlflow.pyfunc.load_model("{address}").predict(["..."])')
