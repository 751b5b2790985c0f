"""Commands for MLflow: mlflow-sync, register."""

import argparse

from bleuprint.cli.options import Commands, add_cell_options, trained_cell
from bleuprint.config.experiment import load


def add_commands(commands: Commands) -> None:
    sync = commands.add_parser(
        "mlflow-sync", help="log what is in results/ to MLflow, for example after dvc pull"
    )
    sync.set_defaults(command=_sync)

    register = commands.add_parser(
        "register", help="register a trained system in MLflow as the best of its corpus"
    )
    add_cell_options(register)
    register.set_defaults(command=_register)


def _sync(_: argparse.Namespace) -> None:
    from bleuprint.tracking.sync import sync_all

    for line in sync_all(load()):
        print(line, flush=True)


def _register(given: argparse.Namespace) -> None:
    from bleuprint.tracking.registry import register

    settings = load()
    print(register(settings, trained_cell(settings, given)))
