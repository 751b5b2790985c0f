"""Empty arguments of a command, which a shell passes for a variable that is not set."""

import shlex
from collections.abc import Sequence

_EMPTY_PROBLEM = "is empty. Is a variable not set?"


def describe_empty_argument(arguments: Sequence[str], command: str = "") -> str:
    """Return a message about the first argument that is empty or consists of spaces.

    A shell passes an empty argument for `"$NAME"` if the variable is not set. Without this check,
    the program would read it as the working folder, or as an option that was not given.

    Args:
        arguments: The words after the command. `--name=` counts as empty, too.
        command: The words before the arguments, such as `bleuprint verify`. If it is given, the
            message quotes the whole command line.

    Returns:
        The message; an empty string if no argument is empty.
    """
    for position, argument in enumerate(arguments):
        option, equals_sign, value = argument.partition("=")
        has_form_with_equals_sign = argument.startswith("--") and equals_sign  # `--name=value`
        if has_form_with_equals_sign and not value.strip():
            return f"{option} {_EMPTY_PROBLEM}"
        if not argument.strip():
            previous_argument = arguments[position - 1] if position > 0 else ""
            is_value_of_option = previous_argument.startswith("--")  # `--name value`
            if is_value_of_option:
                return f"{previous_argument} {_EMPTY_PROBLEM}"
            message = f"argument {position + 1}"  # Users count from 1.
            if command:
                message += f" of {command} {shlex.join(arguments)}"
            return f"{message} {_EMPTY_PROBLEM}"
    return ""
