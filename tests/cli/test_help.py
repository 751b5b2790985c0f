import re
import shlex

from bleuprint.cli.main import command_parser


def test_help_lists_each_command():
    parser, commands = command_parser()
    help_text = " ".join(parser.format_help().split())  # without line breaks

    for action in commands._choices_actions:
        assert f"{action.dest} {action.help}" in help_text


def test_the_example_in_the_help_of_each_command_can_be_parsed():
    """The help of a command ends with a line such as `example: bleuprint compare tiny small`."""
    _, commands = command_parser()

    for name, command in commands.choices.items():
        example = re.sub(r"^example: ", "", command.epilog or "")
        example = re.sub(r" > .*", "", example)  # The shell handles `> FILE`.
        words = shlex.split(example)
        assert words[:2] == ["bleuprint", name]
        command.parse_args(words[2:])  # ends the test with an error if the options are wrong


def test_help_fits_a_terminal_of_80_columns(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    parser, _ = command_parser()

    lines = parser.format_help().splitlines()

    assert "start here:" in lines
    longest_line = max(lines, key=len)
    assert len(longest_line) <= 80, longest_line


def test_help_begins_a_line_for_each_command(monkeypatch):
    """The name is indented by four columns; further lines of its description by more."""
    monkeypatch.setenv("COLUMNS", "80")
    parser, commands = command_parser()

    lines = parser.format_help().splitlines()

    lines_on_commands = lines[lines.index("commands:") + 1 :]
    first_words = []
    for line in lines_on_commands:
        assert line.strip(), "the list of commands has an empty line"
        if line[4] != " ":
            first_words.append(line.split()[0])
    assert first_words == list(commands.choices)
