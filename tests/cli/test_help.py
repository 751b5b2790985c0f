import re
import shlex
import subprocess

import pytest

from bleuprint.cli.main import command_parser


def test_each_command_has_a_line_and_an_example_of_its_own_options() -> None:
    parser, commands = command_parser()
    assert len(commands.choices) <= 16
    text = " ".join(parser.format_help().split())
    for action in commands._choices_actions:
        name, command = action.dest, commands.choices[action.dest]
        assert f"{name} {action.help}" in text
        example = shlex.split(re.sub(r"^example: | > .*", "", command.epilog or ""))
        assert example[:2] == ["bleuprint", name]
        command.parse_args(example[2:])


def test_bash_completes_commands_and_options(capsys: pytest.CaptureFixture[str]) -> None:
    parser, _ = command_parser()
    with pytest.raises(SystemExit) as end:
        parser.parse_args(["--completion", "bash"])
    assert not end.value.code
    script = capsys.readouterr().out
    for typed, expected in (("ta", {"table"}), ("translate --n", {"--n-best"})):
        words = typed.split()
        asked = f"COMP_WORDS=(bleuprint {typed}); COMP_CWORD={len(words)}; "
        asked += "$(complete -p bleuprint | grep -o '_shtab[a-z_]*'); echo ${COMPREPLY[@]}"
        command = ["bash", "-c", f"{script}\n{asked}"]
        done = subprocess.run(command, text=True, capture_output=True, check=True)
        assert set(done.stdout.split()) == expected
