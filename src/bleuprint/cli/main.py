"""Commands that prepare, use and compare what the pipeline computes."""

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

# The names of commands in bleuprint 1.0, and their names now.
_OLD_NAMES = {"record": "sync"}
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
    """Each command in a line with its help, below their title."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=16)
        self._action_max_length = 14  # argparse forgets by how much commands are indented

    def format_help(self) -> str:
        """Without the line that argparse leaves for the names of the commands."""
        return super().format_help().replace("\n  \n", "\n")


def main() -> None:
    """Run the command that the command line names, and exit."""
    run_main(_run_command)


def _run_command() -> None:
    _run_code_of_project()
    set_missing_user_variables()
    parser, commands = command_parser()
    _refuse_empty_argument(parser, commands)
    _check_name(parser, commands.choices)
    given, unknown = parser.parse_known_args()
    if unknown:  # with the usage of the command, which argparse would not print
        commands.choices.get(given.name, parser).error(
            f"unrecognized arguments: {' '.join(unknown)}"
        )
    if given.command is None:
        parser.print_help(sys.stderr)
        sys.exit(2)
    if given.computes:  # before torch is imported
        named = vars(given)
        run = (named["system"], named["corpus"]) if "system" in named else ()
        restart(*run)
    given.command(given)


def _refuse_empty_argument(parser: argparse.ArgumentParser, commands: Commands) -> None:
    """Exit if an argument is empty, with the usage of the command and the command line."""
    words = sys.argv[1:]
    name = words[0] if words else ""
    if name in commands.choices:
        problem = describe_empty_argument(words[1:], f"bleuprint {name}")
    else:
        problem = describe_empty_argument(words, "bleuprint")
    if problem:
        commands.choices.get(name, parser).error(problem)


def _run_code_of_project() -> None:
    """Restart with the code of src/, as stages do, if this is the code of another project.

    A .venv that was copied, or that clones and worktrees share, has the address of one of them.
    """
    source, given = Path.cwd() / "src", os.environ.get("PYTHONPATH")
    own = Path(__file__).resolve().parents[2]
    if (source / "bleuprint" / "__main__.py").is_file() and source.resolve() != own:
        os.environ["PYTHONPATH"] = f"{source}{os.pathsep}{given}" if given else str(source)
        block_interrupts()
        os.execv(sys.executable, [sys.executable, "-m", "bleuprint", *sys.argv[1:]])


def command_parser() -> tuple[argparse.ArgumentParser, Commands]:
    """The parser of the command line, and its commands."""
    usage = "bleuprint COMMAND ..."
    parser = argparse.ArgumentParser("bleuprint", usage, _START, formatter_class=_Help)
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    parser.set_defaults(command=None)
    commands = parser.add_subparsers(title="commands", metavar="", dest="name", prog="bleuprint")
    for group in (pipeline, corpus, translate, models, scores):
        group.add_commands(commands)
    return parser, commands


def _check_name(parser: argparse.ArgumentParser, names: Iterable[str]) -> None:
    """Exit if the first argument is no command, naming the most similar one."""
    given = "".join(sys.argv[1:2])
    if given in _OLD_NAMES:
        parser.error(f"the command {given} is called {_OLD_NAMES[given]} now")
    if given and not given.startswith("-") and given not in names:
        similar = difflib.get_close_matches(given, names, n=1)
        hint = f": do you mean {similar[0]}?" if similar else "; bleuprint --help lists all"
        parser.error(f"unknown command {given}{hint}")
