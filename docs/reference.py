"""Write the page of every command as Markdown; conf.py puts it into the site."""

import argparse

from bleuprint.cli.main import command_parser


def commands() -> str:
    """Return a section for each command, as Markdown."""
    _, parsers = command_parser()
    sections = []
    for name, command in parsers.choices.items():
        sections.append(_section(name, command))
    return "".join(sections)


def _section(name: str, command: argparse.ArgumentParser) -> str:
    """Return the section of a command: what it does, an example and its arguments."""
    example = (command.epilog or "").removeprefix("example: ")
    text = f"\n## `bleuprint {name}`\n\n{command.description}\n\n```\n{example}\n```\n"
    rows = ""
    for action in command._actions:
        # argparse itself adds --help, which every command has.
        is_hidden = argparse.SUPPRESS in (action.help, action.default)
        if not is_hidden:
            rows += _argument_row(action)
    if rows:
        text += f"\n| argument | meaning |\n|---|---|\n{rows}"
    return text


def _argument_row(action: argparse.Action) -> str:
    """Return the row of an argument in the table of a command."""
    name = ", ".join(action.option_strings)
    value = ""
    if action.nargs != 0:
        # A positional argument has no option strings; its name in the help is `metavar`.
        option_value = action.dest.upper() if name else ""
        value = str(action.metavar or option_value)
    argument = f"{name} {value}".strip()
    help_text = (action.help or "") % {"default": action.default}
    if action.choices:
        choices = ", ".join(map(str, action.choices))
        help_text = f"{choices} {help_text}"
    return f"| `{argument}` | {_table_cell(help_text)} |\n"


def _table_cell(text: str) -> str:
    """Return a text as one cell of a Markdown table, which must not contain a line end."""
    return text.replace("|", "\\|").replace("\n", " ")
