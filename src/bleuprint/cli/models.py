"""Commands that show trained systems or pass them on: serve, ui, export, release."""

import argparse
from pathlib import Path

from bleuprint.cli import options
from bleuprint.cli.options import Commands, add_command
from bleuprint.config.experiment import load_settings
from bleuprint.runtime.foreign_text import print_escaped
from bleuprint.runtime.progress import show_elapsed_time
from bleuprint.runtime.wording import counted


def add_commands(commands: Commands) -> None:
    run = "--system small --corpus phrasebook-en-de"
    add = add_command(commands, _serve, f"serve {run}", computes=True)
    options.add_search_options(add)
    port = options.whole_number(0, 65535)
    add("--port", type=port, default=8000, help="0: any free port (%(default)s)")
    add = add_command(commands, _ui, "ui")
    add("--port", type=options.whole_number(1, 65535), default=5000, help="(%(default)s)")
    add = add_command(commands, _export, f"export FOLDER {run}")
    add("folder", metavar="FOLDER", help="the folder to make")
    options.add_run_options(add)
    add("--precision", choices=("float32", "int8"), default="float32", help="(%(default)s)")
    add = add_command(commands, _release, "release FOLDER")
    add("folder", metavar="FOLDER", help="the folder to make")
    add("--system", help="the weights of this system alone (all)")
    add("--corpus", help="the weights on this corpus alone (all)")


def _serve(given: argparse.Namespace) -> None:
    """A page and a JSON endpoint on 127.0.0.1 to try a trained system."""
    from bleuprint.serving.server import serve

    settings = load_settings()
    decode = options.chosen_search(settings, given)
    run = options.trained_run(settings, given)
    serve(run, decode, given.port, options.chosen_languages(settings, given))


def _ui(given: argparse.Namespace) -> None:
    """Show the experiment's trainings in MLflow on 127.0.0.1."""
    from bleuprint.tracking.sync import log_results, note_problems
    from bleuprint.tracking.ui import check_port, show_mlflow

    settings = load_settings()
    check_port(given.port)
    note_problems(log_results(settings))
    show_mlflow(settings.experiment, given.port)


def _export(given: argparse.Namespace) -> None:
    """A trained system for CTranslate2 as a folder, without this project."""
    from bleuprint.serving.export import export

    settings = load_settings()
    run = options.trained_run(settings, given)
    export(settings, run, Path(given.folder), given.precision)


def _release(given: argparse.Namespace) -> None:
    """The experiment as a folder for others: weights, results, a card."""
    from bleuprint.pipeline.release import release

    folder = Path(given.folder)
    with show_elapsed_time("release: checking, copying and converting"):
        release(load_settings(), folder, given.system, given.corpus)
    files = [path for path in folder.rglob("*") if path.is_file()]
    size = sum(path.stat().st_size for path in files) / 1e6
    print_escaped(
        f"{folder}: {counted(len(files), 'file')}, {size:,.0f} MB; README.md is their card"
    )
    print("Before it is published, read the terms of the texts there. To check a copy of it:")
    print("sha256sum -c SHA256SUMS in it, or from here: bleuprint verify COPY")
