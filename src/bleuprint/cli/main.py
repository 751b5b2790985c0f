"""The command `bleuprint`: it finds the command that the command line names, and runs it.

Each group of commands has a module, whose `add_commands` declares their options.
"""

import argparse
import difflib
import os
import sys
from collections.abc import Iterable
from pathlib import Path

from bleuprint import __version__
from bleuprint.cli import corpus, models, pipeline, scores, translate
from bleuprint.cli.options import Commands
from bleuprint.model.arithmetic import restart
from bleuprint.runtime.arguments import describe_empty_argument
from bleuprint.runtime.environment import set_missing_user_variables
from bleuprint.runtime.errors import run_main
from bleuprint.runtime.interrupts import block_interrupts

# Commands of bleuprint 1.0 that have a new name, with this name.
_NEW_NAMES = {"record": "sync"}
_START = """\
start here:
  make reproduce            run the experiment of params.yaml, print its table
  reports/index.html        its page, for a browser
  bleuprint plan            after an edit of params.yaml: what would run, why
  make recipe NAME=...      another experiment, one of recipes/
  make recipe NAME=own      your own text; then: bleuprint new-corpus FILE FILE
  bleuprint COMMAND --help  a command's options, with an example
  docs/                     the manual
"""


class _Help(argparse.RawDescriptionHelpFormatter):
    """The format of the help: below a title, a line for each command."""

    def __init__(self, prog: str) -> None:
        """Set the widths of the columns; `prog` is the name of the program."""
        super().__init__(prog, max_help_position=16)
        # By default, argparse makes the first column too narrow for indented commands.
        self._action_max_length = 14

    def format_help(self) -> str:
        """Return the help without the empty line that argparse puts before the commands."""
        return super().format_help().replace("\n  \n", "\n")


def main() -> None:
    """Run the command that the command line names, and exit."""
    run_main(_run_command)


def _run_command() -> None:
    """Parse the command line and run its command; exit with status 2 at a mistake in it."""
    _run_code_of_project()
    set_missing_user_variables()
    parser, commands = command_parser()
    _refuse_empty_argument(parser, commands)
    _check_name(parser, commands.choices)
    arguments, unknown_arguments = parser.parse_known_args()
    if unknown_arguments:
        # argparse would print the usage of bleuprint, instead of the command's usage.
        command_or_main = commands.choices.get(arguments.name, parser)
        command_or_main.error(f"unrecognized arguments: {' '.join(unknown_arguments)}")
    if arguments.command is None:
        parser.print_help(sys.stderr)
        sys.exit(2)
    if arguments.computes:
        _restart_for_torch(arguments)
    arguments.command(arguments)


def _restart_for_torch(arguments: argparse.Namespace) -> None:
    """Restart the process with the environment variables that torch reads when it is imported.

    Args:
        arguments: The parsed command line, which may name a system and a corpus.
    """
    values = vars(arguments)
    if "system" in values:
        restart(values["system"], values["corpus"])
    else:
        restart()


def _refuse_empty_argument(parser: argparse.ArgumentParser, commands: Commands) -> None:
    """Exit with status 2 if an argument is empty, as by a shell variable that is not set."""
    words = sys.argv[1:]
    name = words[0] if words else ""
    if name in commands.choices:
        problem = describe_empty_argument(words[1:], f"bleuprint {name}")
    else:
        problem = describe_empty_argument(words, "bleuprint")
    if problem:
        commands.choices.get(name, parser).error(problem)


def _run_code_of_project() -> None:
    """Restart with the code below src/ of the current folder, if other code is running.

    Stages run this code, too. A .venv that was copied, or that several clones share, has the path
    of another clone's code.
    """
    project_source = Path.cwd() / "src"
    running_source = Path(__file__).resolve().parents[2]
    has_code = (project_source / "bleuprint" / "__main__.py").is_file()
    if not has_code or project_source.resolve() == running_source:
        return
    python_path = os.environ.get("PYTHONPATH")
    if python_path:
        os.environ["PYTHONPATH"] = f"{project_source}{os.pathsep}{python_path}"
    else:
        os.environ["PYTHONPATH"] = str(project_source)
    block_interrupts()
    os.execv(sys.executable, [sys.executable, "-m", "bleuprint", *sys.argv[1:]])


def command_parser() -> tuple[argparse.ArgumentParser, Commands]:
    """Return the parser of the command line, and its commands."""
    parser = argparse.ArgumentParser(
        prog="bleuprint",
        usage="bleuprint COMMAND ...",
        description=_START,
        formatter_class=_Help,
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    parser.set_defaults(command=None)
    commands = parser.add_subparsers(title="commands", metavar="", dest="name", prog="bleuprint")
    for group in (pipeline, corpus, translate, models, scores):
        group.add_commands(commands)
    return parser, commands


def _check_name(parser: argparse.ArgumentParser, names: Iterable[str]) -> None:
    """Exit with status 2 if the command line names an unknown command, with the most similar one.

    Args:
        parser: The parser of the command line.
        names: The names of all commands.
    """
    if len(sys.argv) < 2:
        return
    name = sys.argv[1]
    if name in _NEW_NAMES:
        parser.error(f"the command {name} is called {_NEW_NAMES[name]} now")
    if name.startswith("-") or name in names:
        return
    similar_names = difflib.get_close_matches(name, names, n=1)
    if similar_names:
        parser.error(f"unknown command {name}: do you mean {similar_names[0]}?")
    parser.error(f"unknown command {name}; bleuprint --help lists all")
