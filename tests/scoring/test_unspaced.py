"""check notes references that 13a would not split into words: texts of several scripts."""

from pathlib import Path

import pytest

import params
from bleuprint.scoring.bleu_ceiling import ceiling_notes_before_run
from bleuprint.scoring.unspaced import lacks_spaces_for_bleu

# The beginning of the Declaration of Human Rights, article 1.
ENGLISH = "All human beings are born free and equal in dignity and rights. They are endowed with"
TEXTS = {
    "shn": "ၵူၼ်းတင်းသဵင်ႈၼႆႉပဵၼ်ဢၼ်ၵိူတ်ႇမႃးတွၼ်ႈတႃႇလွတ်ႈလႅဝ်းလႄႈ မီးၵုင်ႇမုၼ်သုၼ်ႇလႆႈမိူၼ်ၵၼ်",
    "ii": "ꊿꂷꃅꄿꐨꐥ, ꌅꅍꀂꏽꐯꒈꃅꐥꌐ. ꊿꊇꉪꍆꌋꆀꁨꉌꑌꐥ, ꄷꀋꁨꂛꊨꅫꃀꃅꐥꄡꑟ.",
    "nod": "ᨾᨶᩩᩔ᩼ᨴᩢ᩠ᨦᩉᩖᩣ᩠ᨿᨠᩮᩥ᩠ᨯᨾᩣᨾᩦᩋᩥᩔᩁᩈᩮᩁᩦᨻᩣ᩠ᨷ ᩓᩃᩢᨠ᩠ᨱᩣᩉᩮ᩠ᨾᩣᩋ᩠ᨦᨠᩢ᩠ᨶ",
    "am": "የሰው፡ልጅ፡ሁሉ፡ሲወለድ፡ነጻና፡በክብርና፡በመብትም፡እኩልነት፡ያለው፡ነው።",
    "jv": "ꦱꦧꦼꦤ꧀ꦲꦸꦮꦺꦴꦁꦏꦭꦲꦶꦂꦲꦏꦺꦏꦤ꧀ꦛꦶꦩꦂꦢꦶꦏꦭꦤ꧀ꦢꦂꦧꦺꦩꦂꦠꦧꦠ꧀ꦭꦤ꧀ꦲꦏ꧀ꦲꦏ꧀",
}
SPLIT = {
    "en": ENGLISH,
    "kl": "Inuit tamarmik inunngorput nammineersinnaassuseqarlutik assigiimmillu ataqqinassuseqar",
    "jje": "모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다.",
    "ta": "மனிதப் பிறிவியினர் சகலரும் சுதந்திரமாகவே பிறக்கின்றனர்",
}


@pytest.mark.parametrize("language", TEXTS)
def test_a_text_without_spaces_lacks_words(language):
    """13a, the usual tokenizer of BLEU, splits words at spaces and punctuation."""
    assert lacks_spaces_for_bleu([TEXTS[language]], language)


@pytest.mark.parametrize("language", SPLIT)
def test_a_text_with_spaces_has_words(language):
    assert not lacks_spaces_for_bleu([SPLIT[language]], language)


def test_empty_lines_do_not_make_a_text_with_spaces_lack_words():
    """BLEU needs spaces between words, and is near 0 in a language without them.

    Spaces are counted: a line has one less than it has words. An empty line must not count as -1,
    even if there are 35, the most before the text is too short to be judged.
    """
    greenlandic = SPLIT["kl"]  # a language with spaces and long words
    long_line = " ".join([greenlandic] * 10)
    empty_lines = [""] * 35

    assert not lacks_spaces_for_bleu([long_line, *empty_lines], "kl")


@pytest.mark.parametrize(
    ("text", "language"),
    [(TEXTS["ii"], "zh"), (TEXTS["shn"], "my")],
    ids=["Yi text as Chinese", "Shan text as Burmese"],
)
def test_a_language_with_a_tokenizer_of_its_own_does_not_lack_words(text, language):
    """BLEU splits Chinese and Burmese into characters."""
    assert not lacks_spaces_for_bleu([text], language)


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(["Haus", "Donaudampfschiff", "Tür"], id="lines of one word"),
        pytest.param([], id="no lines"),
    ],
)
def test_a_text_that_needs_no_spaces_does_not_lack_words(lines):
    assert not lacks_spaces_for_bleu(lines, "de")


def write_inputs(line):
    """Write 20 times the same line to both sides of the training text."""
    Path("inputs").mkdir()
    for name in ("a.de", "a.no"):
        Path("inputs", name).write_text(f"{line}\n" * 20)


def notes_on_spaces(settings):
    """Return the notes of `bleuprint check` that mention spaces."""
    return [note for note in ceiling_notes_before_run(settings) if "spaces" in note]


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Return the settings of a project in the current folder, whose inputs are missing."""
    monkeypatch.chdir(tmp_path)
    return params.read(tmp_path)


def test_check_has_no_note_on_missing_references(project):
    assert notes_on_spaces(project) == []


def test_check_has_no_note_on_references_with_spaces(project):
    write_inputs(ENGLISH)

    assert notes_on_spaces(project) == []


def test_check_notes_references_without_spaces(project):
    """Yi is written without spaces. `bleuprint check` says so before a run, with what to do."""
    yi = TEXTS["ii"]
    write_inputs(yi)

    assert notes_on_spaces(project) == [
        "corpora.own: held-out has hardly any spaces in 'no', at which BLEU (13a) splits words, so "
        "it will be near 0. Compare systems by chrF2"
    ]
