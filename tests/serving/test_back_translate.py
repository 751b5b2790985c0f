"""A training text of which a system translates one side."""

from types import SimpleNamespace

import pytest

from bleuprint.decoding.sampling import Sampler
from bleuprint.runtime.errors import UserError
from bleuprint.serving.back_translate import translate_side
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


def made(root, translator, text, source=True, tag=None, **more):
    """The pairs of lines of text, as source or target, with their translations."""
    given = TextFolder(root / "german", *(("en", "de") if source else ("de", "en")))
    write_set(given, "train", [("", line) if source else (line, "") for line in text])
    output = given.with_path(root / "made")
    output.path.mkdir(exist_ok=True)
    translate_side(translator, given, output, source, tag, **more)
    return list(output.pairs("train"))


@pytest.mark.parametrize("source", [True, False])
def test_each_line_has_the_translation_that_translate_gives(tmp_path, translator, source):
    text = lines()
    found = made(tmp_path, translator, text, source, tag="☀")
    alone = [translator([line])[0].translations[0].text for line in text]
    assert any(alone) and alone[0] == ""
    if source:
        assert found == [
            (f"☀ {new}" if new else "", line) for new, line in zip(alone, text, strict=True)
        ]
    else:
        assert found == [
            (f"☀ {line}" if line.strip() else line, new)
            for new, line in zip(alone, text, strict=True)
        ]


def test_drawn_translations_do_not_depend_on_what_is_read_together(
    tmp_path, translator, monkeypatch
):
    def drawn(seed="1 german"):
        drawing = translator.corpus, (), translator.decode, Sampler(seed, None)
        text = [f"{word} {word} x" for word in WORDS]
        pairs = made(tmp_path, Translator(translator.model, *drawing), text)
        return [pair.source for pair in pairs]

    first = drawn()
    assert len(set(first)) > 0.8 * len(first) and drawn("2 german") != first
    monkeypatch.setattr(parallel, "BLOCK_PAIRS", 7)
    assert drawn() == first


def test_a_text_is_changed_line_by_line(tmp_path, translator):
    found = made(tmp_path, translator, lines(), change=lambda text, line: f"{line} {text}")
    assert [pair.source.split(" ")[0] for pair in found] == list(map(str, range(len(lines()))))


def test_a_system_that_translates_to_nothing_is_named(tmp_path, capsys):
    class Silent:
        def __call__(self, lines):
            texts = ["a" if line == "some" else "" for line in lines]
            return [SimpleNamespace(translations=[SimpleNamespace(text=text)]) for text in texts]

    with pytest.raises(UserError, match="german: all 3 translations are empty"):
        made(tmp_path, Silent(), ["x"] * 3, source=False)
    made(tmp_path, Silent(), ["x", "some"], source=False)
    note = "german: 1 of 2 translations are empty. The stage clean drops these sentence pairs"
    assert note in capsys.readouterr().err
