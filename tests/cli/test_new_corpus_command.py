"""The commands of README.md's how-to for a corpus of one's own, in a project of recipe `own`."""

import re
import shlex
import shutil

import pytest

from bleuprint.cli.main import command_parser
from bleuprint.config.experiment import load
from bleuprint.corpus import phrasebook
from bleuprint.corpus.new_corpus import Draft
from bleuprint.dataset.learn_sentencepiece import learn_model
from bleuprint.dataset.subwords.pieces import Pieces
from bleuprint.runtime.errors import UserError
from bleuprint.scoring.reachable_sample import loss
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


# Moses prints both without the spaces.
SPACED = ["' {} '", "'{}'"]


@pytest.mark.parametrize("spoiled", [False, True])
def test_a_tokenizer_that_does_not_restore_the_text(tmp_path, monkeypatch, capsys, spoiled):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "inputs").mkdir()
    shutil.copy(ROOT / "recipes" / "own.yaml", tmp_path / "params.yaml")
    lines = [list(phrasebook.sentences("valid", language)) for language in ("en", "de")]
    if spoiled:
        lines[1] = [SPACED[number % 2].format(line) for number, line in enumerate(lines[1])]
    for language, side in zip(("en", "de"), lines, strict=True):
        text = "".join(f"{line}\n" for line in side)
        (tmp_path / f"inputs/odd.{language}").write_text(text, encoding="utf-8")
    run("bleuprint new-corpus inputs/odd.en inputs/odd.de")
    noted = "reachable BLEU is " in capsys.readouterr().err
    corpus = load().corpora["odd-en-de"]
    assert noted == spoiled == (corpus.tokenize.name == "none")
    if spoiled:
        pieces = corpus.vocabulary.sentencepiece
        model = Pieces(written(tmp_path, learn_model("odd", pieces, [*lines[0], *lines[1]])))
        assert [model.join(model.split(line)) for line in lines[1]] == lines[1]
        assert loss(lines[1], corpus, given=True) is None
    run("bleuprint check")
    assert "reachable" not in capsys.readouterr().err


def test_bpe_dropout_keeps_bpe(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "inputs").mkdir()
    own = (ROOT / "recipes" / "own.yaml").read_text(encoding="utf-8")
    assert "bpe_dropout: 0.0" in own
    (tmp_path / "params.yaml").write_text(own.replace("bpe_dropout: 0.0", "bpe_dropout: 0.1"))
    for language in ("en", "de"):
        side = phrasebook.sentences("valid", language)
        text = "".join(f"{SPACED[n % 2].format(line)}\n" for n, line in enumerate(side))
        (tmp_path / f"inputs/odd.{language}").write_text(text, encoding="utf-8")
    run("bleuprint new-corpus inputs/odd.en inputs/odd.de")
    assert "with vocabulary.sentencepiece restores all text" in capsys.readouterr().err
    assert load().corpora["odd-en-de"].vocabulary.bpe


def written(folder, model):
    (folder / "model").write_bytes(model)
    return folder / "model"
