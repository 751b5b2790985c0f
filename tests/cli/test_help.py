import re
import shlex

from bleuprint.cli.main import command_parser


def test_each_command_has_a_line_and_an_example_of_its_own_options():
    parser, commands = command_parser()
    text = " ".join(parser.format_help().split())
    for action in commands._choices_actions:
        name, command = action.dest, commands.choices[action.dest]
        assert f"{name} {action.help}" in text
        example = shlex.split(re.sub(r"^example: | > .*", "", command.epilog or ""))
        assert example[:2] == ["bleuprint", name]
        command.parse_args(example[2:])


def test_help_fits_a_terminal_and_a_command_begins_its_line(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    parser, commands = command_parser()
    lines = parser.format_help().splitlines()
    assert "start here:" in lines
    assert max(map(len, lines)) <= 80
    of_commands = lines[lines.index("commands:") + 1 :]
    assert [line.split()[0] for line in of_commands if line[4] != " "] == [*commands.choices]
    assert all(map(str.strip, of_commands)), "no empty line"
