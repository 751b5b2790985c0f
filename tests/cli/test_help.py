import re
import shlex
import subprocess
from itertools import chain

from bleuprint.cli.help import EXAMPLES
from bleuprint.cli.main import command_parser


def test_each_command_is_in_the_help_once_with_an_example_of_its_own_options():
    _, commands = command_parser()
    assert sorted(chain.from_iterable(EXAMPLES.values())) == sorted(commands.choices)
    for name, example in (pair for group in EXAMPLES.values() for pair in group.items()):
        line = re.sub(r"^source <\((.*)\)$| > .*", r"\1", example)
        assert shlex.split(line)[:2] == ["bleuprint", name]
        commands.choices[name].parse_args(shlex.split(line)[2:])


def test_help_says_what_each_command_does():
    parser, commands = command_parser()
    text = " ".join(parser.format_help().split())
    for action in commands._choices_actions:
        assert f"{action.dest} {action.help}" in text


def test_bash_completes_commands_and_options(capsys):
    parser, _ = command_parser()
    given = parser.parse_args(["completion", "bash"])
    given.command(given)
    script = capsys.readouterr().out
    for typed, expected in (("tr", {"translate", "train"}), ("translate --n", {"--n-best"})):
        words = typed.split()
        asked = f"COMP_WORDS=(bleuprint {typed}); COMP_CWORD={len(words)}; "
        asked += "$(complete -p bleuprint | grep -o '_shtab[a-z_]*'); echo ${COMPREPLY[@]}"
        command = ["bash", "-c", f"{script}\n{asked}"]
        done = subprocess.run(command, text=True, capture_output=True, check=True)
        assert set(done.stdout.split()) == expected
