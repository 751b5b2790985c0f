"""Settings by corpus: a system has other sections on one, or is trained on some corpora only."""

from dataclasses import dataclass

import pytest

from bleuprint.runtime.errors import UserError
from bleuprint.runtime.fingerprint import of_settings
from bleuprint.tracking.cell_results import cells_of
from params import PARAMS, read

ON_OTHER = """\
    corpora:
      own: {}
      other: {model: {<<: *model, d_ff: 32}, decode: {<<: *decode, beam: 3}}
"""
TWO_CORPORA = (
    PARAMS.replace("  own:\n    source", "  own: &own\n    source")
    .replace("systems:\n  base:", "  other: {<<: *own}\nsystems:\n  base: &base")
    .replace("decode: {", "decode: &decode {")
    .replace("published: []", f"{ON_OTHER}  plain: {{<<: *base, corpora: }}\npublished: []")
)


def test_a_system_has_other_settings_on_a_corpus(tmp_path):
    settings = read(tmp_path, TWO_CORPORA)
    own, other = (settings.system_on("base", corpus) for corpus in ("own", "other"))
    assert own == settings.system_on("plain", "own") == settings.system_on("plain", "other")
    assert (own.model.d_ff, own.decode.beam) == (16, 1)
    assert (other.model.d_ff, other.decode.beam) == (32, 3)
    assert (other.model.d_model, other.train, other.average) == (8, own.train, own.average)
    # settings on a corpus are the same however they are written
    written = TWO_CORPORA.replace(f"{ON_OTHER}", "").replace("d_ff: 16", "d_ff: 32")
    plain = read(tmp_path, written.replace("{beam: 1,", "{beam: 3,")).system_on("plain", "own")
    assert of_settings(plain) == of_settings(other) != of_settings(own)
    shown = settings.system("base").dotted()
    assert {key: value for key, value in shown.items() if key.startswith("corpora")} == {
        "corpora": "own, other",
        "corpora.other.model.d_ff": "32",
        "corpora.other.decode.beam": "3",
    }
    assert shown.keys() - settings.system("plain").dotted().keys() == {
        key for key in shown if key.startswith("corpora")
    }


def test_a_system_is_trained_on_some_corpora(tmp_path):
    text = TWO_CORPORA.replace("      own: {}\n", "")
    settings = read(tmp_path, text)
    assert list(settings.systems_on("own")) == ["plain"]
    assert list(settings.systems_on("other")) == ["base", "plain"]
    assert cells_of(settings) == [("base", "other", 1), ("plain", "own", 1), ("plain", "other", 1)]
    message = "base is not trained on own; systems.base.corpora has: other"
    with pytest.raises(UserError, match=f"^params.yaml: {message}$"):
        settings.system_on("base", "own")
    # joint vocabularies are needed on the corpora that it is trained on
    words = "vocabulary: {words: {joint: false, max_size: 9, min_count: 1}}"
    other = text.replace("    vocabulary: {bpe", f"    {words}\n    #").replace(
        "  other: {<<: *own}",
        "  other: {<<: *own, vocabulary: {words: {joint: true, max_size: 9, min_count: 1}}}",
    )
    with pytest.raises(UserError, match=r"systems\.plain: ties all .* but corpus own has"):
        read(tmp_path, other)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "      own: {}",
            "      none: {}",
            "systems.base.corpora.none: no such corpus; there are: own, o",
        ),
        (
            "{model: {<<: *model",
            "{mdl: {<<: *model",
            "corpora.other.mdl: unknown key; did you mean",
        ),
        ("d_ff: 32", "d_f: 32", "corpora.other.model.d_f: unknown key; did you mean 'd_ff'?"),
        ("d_ff: 32", "d_ff: 0", "systems.base.corpora.other.model.d_ff: 0 is out of range: from 1"),
        (
            "{model: {<<: *model, d_ff: 32}",
            "{average: {last: 9}",
            "corpora.other: average.last 9: ",
        ),
        (ON_OTHER, "    corpora: {}\n", "systems.base: corpora is empty: leave it out for all"),
        (
            ON_OTHER,
            "    corpora: [own]\n",
            "systems.base.corpora: ['own'] is not a mapping of names",
        ),
    ],
)
def test_overrides_that_cannot_be_are_one_line(tmp_path, old, new, message):
    assert TWO_CORPORA.count(old) == 1
    text = TWO_CORPORA.replace(old, new)
    with pytest.raises(UserError) as raised:
        read(tmp_path, text)
    assert message in str(raised.value) and "\n" not in str(raised.value)


def test_every_corpus_and_published_number_has_a_system(tmp_path):
    alone = TWO_CORPORA.replace("  plain: {<<: *base, corpora: }\n", "")
    with pytest.raises(UserError, match=r"corpora\.own: no system is trained on it"):
        read(tmp_path, alone.replace("      own: {}\n", ""))
    number = (
        "published: [{name: A, source: B, corpus: own, test: held-out, bleu: 1, scored: intl, "
        "system: base}]"
    )
    read(tmp_path, TWO_CORPORA.replace("published: []", number))
    with pytest.raises(UserError, match=r"published\.0\.system: no system 'base' on own; "):
        read(tmp_path, TWO_CORPORA.replace("published: []", number).replace("      own: {}\n", ""))


def test_an_optional_setting_at_its_default_changes_no_fingerprint() -> None:
    """So that one which a later version adds makes no result stale."""

    @dataclass(frozen=True)
    class Decode:
        beam: int

    before = of_settings(Decode(4))

    @dataclass(frozen=True)
    class Decode:  # type: ignore[no-redef]
        beam: int
        penalty: float = 1.0

    assert of_settings(Decode(4, 1.0)) == before != of_settings(Decode(4, 2.0))
