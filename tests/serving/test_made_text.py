"""A training text of which a system translates one side."""

from types import SimpleNamespace

import pytest

from bleuprint.decoding.sampling import Sampler
from bleuprint.runtime.errors import UserError
from bleuprint.serving.made_text import translate_side
from bleuprint.serving.translator import Translator
from bleuprint.text import parallel
from bleuprint.text.parallel import BLOCK_PAIRS, TextFolder
from corpora import TORTURE, write_set
from trainings import WORDS


def lines():
    """Odd characters inside words, empty lines, and more lines than a block."""
    empty = [""] * BLOCK_PAIRS
    odd = [f"{c}{WORDS[i]}{c} {WORDS[-i]}{c}" for i, c in enumerate([*TORTURE, "".join(TORTURE)])]
    return ["", *odd, " ", *empty, f"{WORDS[3]} {WORDS[4]}"]


@pytest.mark.parametrize("source", [True, False])
def test_each_line_has_the_translation_that_translate_gives(tmp_path, translator, source):
    text = lines()
    given = TextFolder(tmp_path / "given", *(("en", "de") if source else ("de", "en")))
    write_set(given, "train", [("", line) if source else (line, "") for line in text])
    output = given.at(tmp_path / "made")
    output.path.mkdir()
    translate_side(translator, given, output, source, tag="☀")
    made = list(output.pairs("train"))
    alone = [translator([line])[0].best[0].text for line in text]
    assert any(alone) and alone[0] == ""
    if source:
        assert made == [
            (f"☀ {new}" if new else "", line) for new, line in zip(alone, text, strict=True)
        ]
    else:
        assert made == [
            (f"☀ {line}" if line.strip() else line, new)
            for new, line in zip(alone, text, strict=True)
        ]


def test_drawn_translations_do_not_depend_on_what_is_read_together(
    tmp_path, translator, monkeypatch
):
    given = TextFolder(tmp_path / "given", "en", "de")
    write_set(given, "train", [("", f"{word} {word} x") for word in WORDS])

    def made(name, seed="1 german"):
        output = given.at(tmp_path / name)
        output.path.mkdir()
        drawing = translator.corpus, (), translator.decode, Sampler(seed, None)
        translate_side(Translator(translator.model, *drawing), given, output, True, None)
        return [pair.source for pair in output.pairs("train")]

    first = made("first")
    assert len(set(first)) > 0.8 * len(first) and made("other", "2 german") != first
    monkeypatch.setattr(parallel, "BLOCK_PAIRS", 7)
    assert made("again") == first


def test_a_text_is_changed_line_by_line(tmp_path, translator):
    given = TextFolder(tmp_path / "given", "en", "de")
    write_set(given, "train", [("", line) for line in lines()])
    output = given.at(tmp_path / "made")
    output.path.mkdir()
    translate_side(translator, given, output, True, None, lambda text, line: f"{line} {text}")
    made = [pair.source.split(" ")[0] for pair in output.pairs("train")]
    assert made == [str(i) for i in range(len(lines()))]


def test_a_system_that_translates_to_nothing_is_named(tmp_path, capsys):
    class Silent:
        def __call__(self, lines):
            texts = ["a" if line == "some" else "" for line in lines]
            return [SimpleNamespace(best=[SimpleNamespace(text=text)]) for text in texts]

    for lines, message in (
        (["x"] * 3, "german: all 3 translations are empty"),
        (["x", "some"], ""),
    ):
        given = TextFolder(tmp_path / str(len(lines)) / "german", "de", "en")
        write_set(given, "train", [(line, "") for line in lines])
        output = given.at(tmp_path / str(len(lines)) / "made")
        output.path.mkdir()
        if message:
            with pytest.raises(UserError, match=message):
                translate_side(Silent(), given, output, source=False, tag=None)
        else:
            translate_side(Silent(), given, output, source=False, tag=None)
    assert "german: 1 of 2 translations are empty; clean drops them" in capsys.readouterr().err
