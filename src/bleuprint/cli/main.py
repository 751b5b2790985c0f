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

# The commands of bleuprint 1.0 that were renamed: the old name, then the new name.
_NEW_NAMES = {"record": "sync"}
_START = """\
start here:
  make reproduce            run the experiment of params.yaml, print its table
  reports/index.html        its HTML report, for a browser
  bleuprint plan            after an edit of params.yaml: what would run, why
  make recipe NAME=...      another experiment, one of recipes/
  make recipe NAME=own      your own text; then: bleuprint new-corpus FILE FILE
  bleuprint COMMAND --help  a command's options, with an example
  docs/                     the manual
"""


class _Help(argparse.RawDescriptionHelpFormatter):
    """The format of the help: below a title, a line for each command."""

    def __init__(self, prog: str) -> None:
        """Set the width of the first column, which names the commands and options.

        Args:
            prog: The name of the program, `bleuprint`, or of one of its commands.
        """
        first_column_width = 16
        super().__init__(prog, max_help_position=first_column_width)
        # argparse makes the column as wide as the longest name, but forgets that names are indented
        # by two characters: the longest one would not fit. It looks for names longer than this
        # start value, which gives the column its full width.
        self._action_max_length = first_column_width - 2

    def format_help(self) -> str:
        """Return the help without the empty line that argparse puts before the commands."""
        return super().format_help().replace("\n  \n", "\n")


def main() -> None:
    """Run the command that the command line names, and exit."""
    run_main(_run_command)


def _run_command() -> None:
    """Parse the command line and run its command.

    The process exits with status 2 if there is a mistake in the command line, or no command.
    """
    _run_code_of_project()
    set_missing_user_variables()
    parser, commands = command_parser()
    _refuse_empty_argument(parser, commands)
    _refuse_unknown_command(parser, commands.choices)
    arguments, unknown_arguments = parser.parse_known_args()
    if unknown_arguments:
        # `error` prints the usage of a parser. The command's own parser shows its usage; argparse
        # itself would use the parser of all commands.
        parser_of_command = commands.choices.get(arguments.name, parser)
        parser_of_command.error(f"unrecognized arguments: {' '.join(unknown_arguments)}")
    if arguments.command is None:
        parser.print_help(sys.stderr)
        sys.exit(2)
    if arguments.imports_torch:
        _restart_for_torch(arguments)
    run = arguments.command
    run(arguments)


def _restart_for_torch(arguments: argparse.Namespace) -> None:
    """Restart this process with the environment variables that torch needs.

    Libraries read these variables only when a process starts, so it would be too late to set them
    now. In the restarted process, they are set, and this function does nothing.

    Args:
        arguments: The parsed command line. If the command has the options --system and --corpus,
            some of the variables depend on the settings of this system.
    """
    has_system = "system" in arguments
    if has_system:
        restart(arguments.system, arguments.corpus)
    else:
        restart()


def _refuse_empty_argument(parser: argparse.ArgumentParser, commands: Commands) -> None:
    """Exit with status 2 if an argument is empty.

    A shell passes an empty argument for `"$NAME"` if the variable is not set. The command would
    take it for the current folder.

    Args:
        parser: The parser of the whole command line. It prints the error if no command is named.
        commands: The commands of bleuprint. The parser of a command prints the error, with the
            usage of the command.
    """
    words = sys.argv[1:]
    first_word = words[0] if words else ""
    command = commands.choices.get(first_word)
    if command is not None:
        problem = describe_empty_argument(words[1:], f"bleuprint {first_word}")
        if problem:
            command.error(problem)
    else:
        problem = describe_empty_argument(words, "bleuprint")
        if problem:
            parser.error(problem)


def _run_code_of_project() -> None:
    """Restart the command with the code in src/ of the current folder, if other code is running.

    The stages of a project run the code in its src/, so its commands should, too. Other code runs
    if a .venv was copied from another clone, or if several clones share one.
    """
    project_source = Path.cwd() / "src"
    running_source = Path(__file__).resolve().parents[2]
    is_in_project = (project_source / "bleuprint" / "__main__.py").is_file()
    if not is_in_project or project_source.resolve() == running_source:
        return
    # Python searches the folders in PYTHONPATH before those of the .venv.
    python_path = os.environ.get("PYTHONPATH")
    if python_path:
        os.environ["PYTHONPATH"] = f"{project_source}{os.pathsep}{python_path}"
    else:
        os.environ["PYTHONPATH"] = str(project_source)
    # A Ctrl-C while Python starts again would print a traceback. The new process unblocks it.
    block_interrupts()
    os.execv(sys.executable, [sys.executable, "-m", "bleuprint", *sys.argv[1:]])


def command_parser() -> tuple[argparse.ArgumentParser, Commands]:
    """Build the parser of the command line with all commands of bleuprint.

    Returns:
        The parser, and its subparsers, one for each command. In the parsed arguments, `name` is the
        name of the command, and `command` is the function that runs it; None without a command.
    """
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


def _refuse_unknown_command(parser: argparse.ArgumentParser, command_names: Iterable[str]) -> None:
    """Exit with status 2 if the command line names an unknown command, and suggest a similar one.

    argparse itself would list all commands.

    Args:
        parser: The parser of the whole command line, which prints the error.
        command_names: The names of all commands.
    """
    if len(sys.argv) < 2:
        return
    name = sys.argv[1]
    if name in _NEW_NAMES:
        parser.error(f"the command {name} is called {_NEW_NAMES[name]} now")
    is_option = name.startswith("-")
    if is_option or name in command_names:
        return
    similar_names = difflib.get_close_matches(name, command_names, n=1)
    if similar_names:
        parser.error(f"unknown command {name}. Do you mean {similar_names[0]}?")
    parser.error(f"unknown command {name}. To list all commands: bleuprint --help")
