"""Commands that prepare, use and compare what the pipeline computes."""

import argparse
import difflib
import sys
from collections.abc import Iterable

import shtab

from bleuprint import __version__
from bleuprint.cli import corpus, models, pipeline, scores, translate
from bleuprint.cli.help import Parser, add_examples
from bleuprint.cli.options import Commands
from bleuprint.runtime.environment import complete_user
from bleuprint.runtime.errors import run
from bleuprint.runtime.reexec import reexec_for_speed
from bleuprint.runtime.streams import prepare


def main() -> None:
    """Run the command that the command line names."""
    complete_user()
    prepare()
    parser, commands = command_parser()
    _check_name(parser, commands.choices)
    given, unknown = parser.parse_known_args()
    if unknown:  # with the usage of the command, which argparse would not print
        commands.choices.get(given.name, parser).error(
            f"unrecognized arguments: {' '.join(unknown)}"
        )
    if given.command is None:
        parser.print_help(sys.stderr)
        sys.exit(2)
    if given.computes:
        reexec_for_speed()  # before torch is imported
    run(lambda: given.command(given))


def command_parser() -> tuple[argparse.ArgumentParser, Commands]:
    """The parser of the command line, and its commands."""
    parser = Parser(prog="bleuprint")
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = parser.add_subparsers(
        metavar="COMMAND", dest="name", parser_class=argparse.ArgumentParser
    )
    for group in (pipeline, corpus, translate, models, scores):
        group.add_commands(commands)
    _add_completion(commands, parser)
    add_examples(commands)
    parser.set_defaults(computes=False, command=None)
    return parser, commands


def _add_completion(commands: Commands, parser: argparse.ArgumentParser) -> None:
    completion = commands.add_parser("completion", help="the completion of commands for a shell")
    completion.add_argument("shell", choices=shtab.SUPPORTED_SHELLS)
    completion.set_defaults(command=lambda given: print(shtab.complete(parser, given.shell)))


def _check_name(parser: argparse.ArgumentParser, names: Iterable[str]) -> None:
    """Exit if the first argument is no command, naming the most similar one."""
    given = "".join(sys.argv[1:2])
    if given and not given.startswith("-") and given not in names:
        similar = difflib.get_close_matches(given, names, n=1)
        hint = f": do you mean {similar[0]}?" if similar else "; bleuprint --help lists all"
        parser.error(f"unknown command {given}{hint}")


if __name__ == "__main__":
    main()
