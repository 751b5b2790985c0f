"""What commands share: how they are declared, types of arguments, options that name a training."""

import argparse
from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from bleuprint.config.experiment import Settings
from bleuprint.config.paths import Run
from bleuprint.config.runs import training_settings_sha256
from bleuprint.config.system import MAX_BEAM, Decode
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
    """Declare a command, which the first word of `example` names; returns its `add_argument`.

    `run` gets what was parsed; its docstring is the help. `computes`: whether torch is loaded, for
    which the process starts again with its settings.
    """
    about = " ".join((run.__doc__ or "").split())
    command = commands.add_parser(
        example.partition(" ")[0],
        help=f"{about[:1].lower()}{about[1:-1]}",
        description=about,
        epilog=f"example: bleuprint {example}",
    )
    command.set_defaults(command=run, computes=computes)
    return command.add_argument


def whole_number(low: int, high: int | None = None) -> Callable[[str], int]:
    """The type of an argument that is a whole number from `low` to `high`."""

    def parsed(text: str) -> int:
        if not text.isdecimal() or not low <= int(text) <= (high or int(text)):
            end = f" to {high}" if high else ""
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {low}{end}")
        return int(text)

    return parsed


count = whole_number(1)


def add_run_options(add: AddArgument) -> None:
    """The options that name a training."""
    add("--system", required=True, help="a system of params.yaml")
    add("--corpus", required=True, help="a corpus of params.yaml")
    add("--seed", type=int, help="seed of the training (the first of params.yaml)")


def add_search_options(add: AddArgument) -> None:
    """The options that name a training, and how it translates."""
    add_run_options(add)
    add("--direction", metavar="EN-DE", help="of a corpus with directions: that of the text")
    add("--beam", type=whole_number(1, MAX_BEAM), help="instead of the system's decode.beam")


def chosen_search(settings: Settings, given: argparse.Namespace) -> Decode:
    """The search of `add_search_options`."""
    decode = settings.system_on(given.system, given.corpus).decode
    return replace(decode, beam=given.beam) if given.beam else decode


def chosen_languages(settings: Settings, given: argparse.Namespace) -> tuple[str, str]:
    """The source and target language of `add_search_options`; raises UserError if not clear."""
    corpus = settings.corpus(given.corpus)
    return corpus.language_pair(given.corpus, given.direction).languages


def trained_run(settings: Settings, given: argparse.Namespace) -> Run:
    """The run that the options name; says if it was trained with other settings than these.

    Raises UserError if params.yaml lacks it, or if it has not been trained and averaged.
    """
    system = settings.system_on(given.system, given.corpus)
    seed = settings.seeds[0] if given.seed is None else given.seed
    named = Run(given.system, given.corpus, seed)
    if not named.models_folder.exists():
        settings.check_seed(seed)
        raise UserError(
            f"{named.models_folder}: no training of {named}; run: make reproduce, or dvc pull"
        )
    if not (averaged := named.models_folder / "averaged").exists():
        raise UserError(f"{averaged}: no average of {named}; run: make reproduce, or dvc pull")
    facts = named.results_folder / "training.json"
    average = ModelDescription.read(averaged).averaged
    expected = training_settings_sha256(system, seed)
    is_other_training = facts.exists() and TrainingFacts.read(facts).settings != expected
    is_other_average = average is not None and average.settings != system.average.chosen
    if is_other_training or is_other_average:
        print_message(
            f"{named}: trained with other settings than params.yaml has: make reproduce", "note"
        )
    return named
