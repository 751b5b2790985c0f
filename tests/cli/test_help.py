import re
import shlex

from bleuprint.cli.main import command_parser


def test_each_command_has_a_line_and_an_example_of_its_own_options():
    parser, commands = command_parser()
    assert len(commands.choices) <= 16
    text = " ".join(parser.format_help().split())
    for action in commands._choices_actions:
        name, command = action.dest, commands.choices[action.dest]
        assert f"{name} {action.help}" in text
        example = shlex.split(re.sub(r"^example: | > .*", "", command.epilog or ""))
        assert example[:2] == ["bleuprint", name]
        command.parse_args(example[2:])
