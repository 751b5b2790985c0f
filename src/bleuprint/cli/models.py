"""Commands that show systems or pass them on: serve, ui, export, import, release."""

import argparse
from pathlib import Path

from bleuprint.cli import options
from bleuprint.cli.options import Commands, add_command
from bleuprint.config.experiment import load_settings
from bleuprint.runtime import environment
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.foreign_text import print_escaped
from bleuprint.runtime.progress import show_elapsed_time
from bleuprint.runtime.wording import counted


def add_commands(commands: Commands) -> None:
    """Add the commands serve, ui, export, import and release to the command line of bleuprint.

    Args:
        commands: The subparsers of the command line, to which argparse adds commands.
    """
    example_run = "--system small --corpus phrasebook-en-de"

    add_argument = add_command(commands, _serve, f"serve {example_run}", imports_torch=True)
    options.add_search_options(add_argument)
    any_port = options.whole_number(0, 65535)
    add_argument(
        "--port", type=any_port, default=8000, help="port; 0 for any free port (%(default)s)"
    )

    add_argument = add_command(commands, _ui, "ui")
    fixed_port = options.whole_number(1, 65535)
    add_argument("--port", type=fixed_port, default=5000, help="port (%(default)s)")

    add_argument = add_command(commands, _export, f"export FOLDER {example_run}")
    add_argument("folder", metavar="FOLDER", help="the folder to make")
    options.add_run_options(add_argument)
    precisions = ("float32", "int8")
    add_argument("--precision", choices=precisions, default="float32", help="(%(default)s)")
    add_argument(
        "--format",
        choices=("ctranslate2", "marian"),
        default="ctranslate2",
        help="marian: for the library transformers of Hugging Face (%(default)s)",
    )

    add_argument = add_command(commands, _import, "import opus-mt-en-de inputs/opus-mt-en-de")
    add_argument("model", metavar="MODEL", help="its folder, or OWNER/NAME@COMMIT")
    add_argument("folder", metavar="FOLDER", help="the folder to make")

    add_argument = add_command(commands, _release, "release FOLDER")
    add_argument("folder", metavar="FOLDER", help="the folder to make")
    add_argument("--system", help="only the weights of this system (all)")
    add_argument("--corpus", help="only the weights on this corpus (all)")


def _serve(arguments: argparse.Namespace) -> None:
    """Serve a page and a JSON endpoint on 127.0.0.1 to try a trained system.

    The arguments name the system, the languages and the beam, and the port.
    """
    from bleuprint.serving.server import serve

    settings = load_settings()
    decode = options.chosen_search(settings, arguments)
    run = options.trained_run(settings, arguments)
    serve(run, decode, arguments.port, options.chosen_languages(settings, arguments))


def _ui(arguments: argparse.Namespace) -> None:
    """Show the experiment's trainings in MLflow on 127.0.0.1.

    Trainings that MLflow does not have yet are logged first.
    """
    from bleuprint.tracking.sync import log_results, print_problems
    from bleuprint.tracking.ui import check_port, show_mlflow

    settings = load_settings()
    check_port(arguments.port)
    print_problems(log_results(settings))
    show_mlflow(settings.experiment, arguments.port)


def _export(arguments: argparse.Namespace) -> None:
    """Write a trained system into a folder that does not need this project.

    CTranslate2 is a library that runs trained models fast. It needs only the files in the folder.
    So does the library transformers of Hugging Face, which reads the Marian format.
    """
    from bleuprint.serving.export import export
    from bleuprint.serving.export_marian import export_marian

    settings = load_settings()
    run = options.trained_run(settings, arguments)
    folder = Path(arguments.folder)
    if arguments.format == "ctranslate2":
        export(settings, run, folder, arguments.precision)
        return
    if arguments.precision != "float32":
        raise UserError("--format marian has no int8 weights. Leave out --precision")
    export_marian(settings, run, folder)


def _import(arguments: argparse.Namespace) -> None:
    """Write a pretrained OPUS-MT model of Hugging Face as a model to start from.

    Then print the settings with which a system starts from this model.
    """
    from bleuprint.corpus.download.fetch import downloads_of_environment
    from bleuprint.serving.download_marian import download_marian, is_name
    from bleuprint.serving.import_marian import describe_use, import_marian

    folder = Path(arguments.folder)
    marian_folder = Path(arguments.model)
    if is_name(arguments.model):
        marian_folder = environment.work_folder() / "pretrained" / arguments.model
        download_marian(arguments.model, downloads_of_environment(), marian_folder)
    model = import_marian(marian_folder, folder)
    print_escaped(describe_use(folder, model))


def _release(arguments: argparse.Namespace) -> None:
    """Write the experiment into a folder for others: weights, results, a card.

    Then print the size of the folder, and how to check a copy of it.
    """
    from bleuprint.pipeline.release import release

    folder = Path(arguments.folder)
    with show_elapsed_time("release: checking, copying and converting"):
        release(load_settings(), folder, arguments.system, arguments.corpus)
    files = [path for path in folder.rglob("*") if path.is_file()]
    megabytes = sum(path.stat().st_size for path in files) / 1e6
    print_escaped(
        f"{folder}: {counted(len(files), 'file')}, {megabytes:,.0f} MB. README.md describes them"
    )
    print("Before you publish the folder, read the terms of its texts. To check a copy of it:")
    print("sha256sum -c SHA256SUMS in it, or from here: bleuprint verify COPY")
