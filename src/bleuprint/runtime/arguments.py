"""Arguments that name nothing, as a shell passes them for a variable that is not set."""

import shlex
from collections.abc import Sequence


def describe_empty_argument(arguments: Sequence[str], command: str = "") -> str:
    """Describe the first argument that is empty or of spaces alone; "" if there is none.

    Such an argument must choose and confirm nothing: `Path("")` is the working folder, and an
    empty option is easily taken for one that was not given.

    Args:
        arguments: what follows the command; `--name=` is an empty argument, too.
        command: the words before the arguments, such as `bleuprint verify`. If it is given, the
            message quotes the whole command line.
    """
    for position, argument in enumerate(arguments):
        name, has_value, value = argument.partition("=")
        if argument.startswith("--") and has_value:
            if not value.strip():
                return f"{name} is empty: is a variable not set?"
        elif not argument.strip():
            before = arguments[position - 1] if position else ""
            if before.startswith("--"):
                return f"{before} is empty: is a variable not set?"
            place = f"argument {position + 1}"
            if command:
                place += f" of {command} {shlex.join(arguments)}"
            return f"{place} is empty: is a variable not set?"
    return ""
