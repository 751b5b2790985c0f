"""The commands of README.md's how-to for a corpus of one's own, in a project of recipe `own`."""

import re
import shlex
import shutil

import pytest

from bleuprint.cli.main import command_parser
from bleuprint.config.experiment import load
from bleuprint.corpus import phrasebook
from bleuprint.corpus.new_corpus import Draft
from bleuprint.runtime.errors import UserError
from root import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")


def run(line):
    _, commands = command_parser()
    _, name, *arguments = shlex.split(line)
    given = commands.choices[name].parse_args(arguments)
    given.command(given)


def test_what_the_readme_says(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "recipes").mkdir()
    (tmp_path / "inputs").mkdir()
    shutil.copy(ROOT / "recipes" / "own.yaml", tmp_path / "recipes")
    shutil.copy(ROOT / "recipes" / "own.yaml", tmp_path / "params.yaml")
    (line,) = re.findall(r"(?m)^\$ (bleuprint new-corpus .*)", README)
    for name in shlex.split(line)[2:]:
        language = name[-2:]
        text = "".join(f"{each}\n" for each in phrasebook.sentences("valid", language))
        (tmp_path / name).write_text(text, encoding="utf-8", newline="\n")
    run(line)
    output = capsys.readouterr()
    assert output.out.startswith("500 pairs: no rule changes or drops any\n")
    assert not output.err
    assert "\nparams.yaml has a new entry in place of mine-de-en; " in output.out
    entry = output.out[output.out.index("  mine-de-en:\n") :]
    params = (tmp_path / "params.yaml").read_text(encoding="utf-8")
    assert entry in params and "  mine-de-en:" not in params.replace(entry, "")
    run("bleuprint check")
    output = capsys.readouterr()
    assert output.out == "own: params.yaml is valid\n"
    assert "no such file" not in output.err  # the note on an entry without its files
    settings = load()
    assert list(settings.systems_on("mine-de-en")) == ["small", "medium"]
    monkeypatch.setattr(Draft, "suggest", None)  # refused before a sample is cleaned
    with pytest.raises(UserError, match="has an entry mine-de-en already"):
        run(line)
