"""The page of every command, as Markdown; conf.py puts it into the site."""

import argparse

from bleuprint.cli.main import command_parser


def commands() -> str:
    """Return a section for each command."""
    _, parsers = command_parser()
    text = ""
    for name, command in parsers.choices.items():
        example = (command.epilog or "").removeprefix("example: ")
        text += f"\n## `bleuprint {name}`\n\n{command.description}\n\n```\n{example}\n```\n"
        if rows := "".join(_argument(each) for each in command._actions):
            text += f"\n| argument | meaning |\n|---|---|\n{rows}"
    return text


def _argument(action: argparse.Action) -> str:
    if argparse.SUPPRESS in (action.help, action.default):  # --help too
        return ""
    name = ", ".join(action.option_strings)
    value = "" if action.nargs == 0 else str(action.metavar or (name and action.dest.upper()))
    choices = f"{', '.join(map(str, action.choices))} " if action.choices else ""
    help_text = (action.help or "") % {"default": action.default}
    return f"| `{f'{name} {value}'.strip()}` | {_run(choices + help_text)} |\n"


def _run(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
