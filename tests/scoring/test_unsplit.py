"""check notes references that 13a would not split into words: texts of several scripts."""

from pathlib import Path

import params
from bleuprint.scoring.bleu_ceiling import ceiling_notes_before_run
from bleuprint.scoring.unsplit import lacks_words

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


def test_texts_that_13a_does_not_split():
    assert [language for language in TEXTS if lacks_words([TEXTS[language]], language)] == [*TEXTS]
    assert not [language for language in SPLIT if lacks_words([SPLIT[language]], language)]
    # languages for which another tokenizer is chosen, and lines of single words
    assert not lacks_words([TEXTS["ii"]], "zh") and not lacks_words([TEXTS["shn"]], "my")
    assert not lacks_words(["Haus", "Donaudampfschiff", "Tür"], "de") and not lacks_words([], "de")


def test_check_notes_references_at_hand(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    settings = params.read(tmp_path)
    Path("inputs").mkdir()
    for line in (ENGLISH, TEXTS["ii"]):
        assert not any("spaces" in note for note in ceiling_notes_before_run(settings))
        for name in ("a.de", "a.no"):
            Path("inputs", name).write_text(f"{line}\n" * 20)
    assert [note for note in ceiling_notes_before_run(settings) if "spaces" in note] == [
        "corpora.own: held-out has hardly any spaces in 'no', at which BLEU (13a) splits words: it "
        "will be near 0; compare systems by chrF2"
    ]
