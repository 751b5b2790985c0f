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
    imports_torch: bool = False,
) -> AddArgument:
    """Add a command, such as `bleuprint inspect CORPUS`, to the command line.

    Args:
        commands: The subparsers of the command line, to which argparse adds commands.
        run: The function that runs the command, given the parsed arguments. The first paragraph of
            its docstring is the help of the command.
        example: An example that the help shows, such as `inspect phrasebook-en-de`; its first word
            is the name of the command.
        imports_torch: Whether the command imports torch. The process is then restarted first, with
            the environment variables that torch reads.

    Returns:
        The method `add_argument` of the command's parser, with which the caller declares the
        arguments of the command.
    """
    first_paragraph = (run.__doc__ or "").partition("\n\n")[0]
    description = " ".join(first_paragraph.split())
    name = example.split()[0]
    # The list of commands shows the sentence with a small first letter and without its full stop.
    short_help = description.removesuffix(".")
    short_help = f"{short_help[:1].lower()}{short_help[1:]}"
    command = commands.add_parser(
        name,
        help=short_help,
        description=description,
        epilog=f"example: bleuprint {example}",
    )
    command.set_defaults(command=run, imports_torch=imports_torch)
    return command.add_argument


def whole_number(low: int, high: int | None = None) -> Callable[[str], int]:
    """Return a function that argparse uses to read a whole number within limits.

    Args:
        low: The smallest number that is allowed.
        high: The largest number that is allowed; None for no limit.
    """

    def parse_number(text: str) -> int:
        """Convert the text of an argument to a number within the limits.

        argparse prints an ArgumentTypeError as a mistake in the command line.
        """
        if text.isdecimal():
            number = int(text)
            is_in_range = number >= low and (high is None or number <= high)
            if is_in_range:
                return number
        end = "" if high is None else f" to {high}"
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {low}{end}")

    return parse_number


# The type of an argument that is a number of things, at least 1.
count = whole_number(1)


def add_run_options(add_argument: AddArgument) -> None:
    """Add the options that choose a trained model: --system, --corpus and --seed."""
    add_argument("--system", required=True, help="a system of params.yaml")
    add_argument("--corpus", required=True, help="a corpus of params.yaml")
    add_argument("--seed", type=int, help="seed of the training (the first of params.yaml)")


def add_search_options(add_argument: AddArgument) -> None:
    """Add the options that choose a trained model and how it translates.

    These are --system, --corpus and --seed, --direction (between which languages) and --beam (the
    size of the beam search).
    """
    add_run_options(add_argument)
    add_argument(
        "--direction",
        metavar="EN-DE",
        help="direction of the text, if the corpus has several directions",
    )
    add_argument(
        "--beam",
        type=whole_number(1, MAX_BEAM),
        help="beam size, in place of the system's decode.beam",
    )


def chosen_search(settings: Settings, arguments: argparse.Namespace) -> Decode:
    """Return the search settings of the system that --system names.

    The option --beam, if it is given, takes the place of the system's beam size.

    Args:
        settings: The settings of the experiment.
        arguments: The parsed command line, with `system`.
    """
    decode = settings.system_on(arguments.system, arguments.corpus).decode
    if arguments.beam is None:
        return decode
    return replace(decode, beam=arguments.beam)


def chosen_languages(settings: Settings, arguments: argparse.Namespace) -> tuple[str, str]:
    """Return the source and the target language, such as `en` and `de`.

    The corpus that --corpus names has one language pair, or several directions from which
    --direction chooses.

    Raises:
        UserError: The corpus has several directions and --direction is missing, or it does not
            have this direction.
    """
    corpus = settings.corpus(arguments.corpus)
    return corpus.language_pair(arguments.corpus, arguments.direction).languages


def trained_run(settings: Settings, arguments: argparse.Namespace) -> Run:
    """Return the run that --system, --corpus and --seed name, after checking that it is trained.

    A run is a system that is trained on a corpus with one seed. The default of --seed is the first
    seed of params.yaml. A note is printed if params.yaml has changed since the training.

    Args:
        settings: The settings of the experiment.
        arguments: The parsed command line, with `system`, `corpus` and `seed`.

    Raises:
        UserError: params.yaml has no such run, or it has not been trained and averaged.
    """
    system = settings.system_on(arguments.system, arguments.corpus)
    seed = settings.seeds[0] if arguments.seed is None else arguments.seed
    run = Run(arguments.system, arguments.corpus, seed)
    _refuse_untrained(run, settings)
    if _has_other_settings(run, system):
        message = (
            f"{run}: params.yaml has changed since this training. To train again: make reproduce"
        )
        print_message(message, "note")
    return run


def _refuse_untrained(run: Run, settings: Settings) -> None:
    """Raise UserError if a run has no trained model, or its checkpoints are not averaged yet.

    Args:
        run: The run: a system that is trained on a corpus with one seed.
        settings: The settings in params.yaml. If the seed of the run is not among them, the error
            says so.
    """
    if not run.models_folder.exists():
        settings.check_seed(run.seed)  # Raises UserError if params.yaml has no such seed.
        raise UserError(
            f"{run.models_folder}: no trained model for {run}. Train it: make reproduce. "
            "Or download it: dvc pull"
        )
    averaged_folder = run.models_folder / "averaged"
    if not averaged_folder.exists():
        raise UserError(
            f"{averaged_folder}: the checkpoints of {run} are not averaged. Average them: make "
            "reproduce. Or download the average: dvc pull"
        )


def _has_other_settings(run: Run, system: System) -> bool:
    """Return whether a model was trained or averaged with other settings than params.yaml has now.

    Args:
        run: A trained run, whose checkpoints were averaged.
        system: The settings that params.yaml has for the system now.
    """
    training_file = run.results_folder / "training.json"
    if training_file.exists():
        training = TrainingFacts.read(training_file)
        # `training.settings` is a hash of the settings with which the model was trained.
        if training.settings != training_settings_sha256(system, run.seed):
            return True
    description = ModelDescription.read(run.models_folder / "averaged")
    if description.averaged is None:  # A single checkpoint, which was not averaged.
        return False
    return description.averaged.settings != system.average.chosen
