"""What commands share: how they are declared, types of arguments, and options that name a run."""

import argparse
from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from bleuprint.config.experiment import Settings
from bleuprint.config.paths import Run
from bleuprint.config.runs import training_settings_sha256
from bleuprint.config.system import MAX_BEAM, Decode, System
from bleuprint.model.description import ModelDescription
from bleuprint.runtime.errors import UserError, print_message
from bleuprint.training.history import TrainingFacts

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
AddArgument: TypeAlias = Callable[..., argparse.Action]


def add_command(
    commands: Commands,
    run: Callable[[argparse.Namespace], None],
    example: str,
    computes: bool = False,
) -> AddArgument:
    """Declare a command.

    Args:
        commands: The commands of bleuprint, to which it is added.
        run: The function of the command, which takes the parsed arguments. Its docstring is the
            help.
        example: An example of its arguments; the first word is the name of the command.
        computes: Whether the command imports torch, for which the process has to be restarted with
            other environment variables.

    Returns:
        The method by which arguments are added to the command, `add_argument`.
    """
    description = " ".join((run.__doc__ or "").split())
    name = example.split()[0]
    # In the list of commands, the help begins with a small letter and has no full stop.
    short_help = f"{description[:1].lower()}{description[1:-1]}"
    command = commands.add_parser(
        name,
        help=short_help,
        description=description,
        epilog=f"example: bleuprint {example}",
    )
    command.set_defaults(command=run, computes=computes)
    return command.add_argument


def whole_number(low: int, high: int | None = None) -> Callable[[str], int]:
    """Return the type of an argument that is a whole number.

    Args:
        low: The smallest number.
        high: The largest number; None for no limit.
    """

    def parse_number(text: str) -> int:
        """Return the number in a text; raise ArgumentTypeError if it is not in the range."""
        if text.isdecimal() and int(text) >= low and (high is None or int(text) <= high):
            return int(text)
        end = "" if high is None else f" to {high}"
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {low}{end}")

    return parse_number


# The type of an argument that is a number of things, at least 1.
count = whole_number(1)


def add_run_options(add_argument: AddArgument) -> None:
    """Add the options that name a run: --system, --corpus and --seed."""
    add_argument("--system", required=True, help="a system of params.yaml")
    add_argument("--corpus", required=True, help="a corpus of params.yaml")
    add_argument("--seed", type=int, help="seed of the training (the first of params.yaml)")


def add_search_options(add_argument: AddArgument) -> None:
    """Add the options that name a run, and those that say how it translates."""
    add_run_options(add_argument)
    add_argument(
        "--direction",
        metavar="EN-DE",
        help="of a corpus with directions: that of the text",
    )
    add_argument(
        "--beam",
        type=whole_number(1, MAX_BEAM),
        help="instead of the system's decode.beam",
    )


def chosen_search(settings: Settings, arguments: argparse.Namespace) -> Decode:
    """Return how the chosen system translates, with the beam of --beam if it is given."""
    decode = settings.system_on(arguments.system, arguments.corpus).decode
    if arguments.beam is None:
        return decode
    return replace(decode, beam=arguments.beam)


def chosen_languages(settings: Settings, arguments: argparse.Namespace) -> tuple[str, str]:
    """Return the source and target language to translate between.

    Raises:
        UserError: The corpus has several directions and --direction is missing, or it does not
            have this direction.
    """
    corpus = settings.corpus(arguments.corpus)
    return corpus.language_pair(arguments.corpus, arguments.direction).languages


def trained_run(settings: Settings, arguments: argparse.Namespace) -> Run:
    """Return the run that --system, --corpus and --seed name; without --seed, that of the first.

    A note is printed if the run was trained or averaged with other settings than params.yaml has.

    Raises:
        UserError: params.yaml has no such run, or it has not been trained and averaged.
    """
    system = settings.system_on(arguments.system, arguments.corpus)
    seed = settings.seeds[0] if arguments.seed is None else arguments.seed
    run = Run(arguments.system, arguments.corpus, seed)
    if not run.models_folder.exists():
        settings.check_seed(seed)
        raise UserError(
            f"{run.models_folder}: no training of {run}; run: make reproduce, or dvc pull"
        )
    averaged = run.models_folder / "averaged"
    if not averaged.exists():
        raise UserError(f"{averaged}: no average of {run}; run: make reproduce, or dvc pull")
    if _has_other_settings(run, system):
        message = f"{run}: trained with other settings than params.yaml has: make reproduce"
        print_message(message, "note")
    return run


def _has_other_settings(run: Run, system: System) -> bool:
    """Return whether a run was trained or averaged with other settings than those of a system.

    Args:
        run: A run with an averaged model.
        system: The settings that params.yaml has for the run now.
    """
    training_file = run.results_folder / "training.json"
    if training_file.exists():
        training = TrainingFacts.read(training_file)
        if training.settings != training_settings_sha256(system, run.seed):
            return True
    averaged = ModelDescription.read(run.models_folder / "averaged").averaged
    return averaged is not None and averaged.settings != system.average.chosen
