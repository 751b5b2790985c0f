"""Rows that start from weights, and corpora that share a vocabulary: what params.yaml may say."""

import pytest

from bleuprint.runtime.errors import UserError
from bleuprint.runtime.flatten import dotted
from params import PARAMS, read

TUNED = """\
tuned:
  fine:
    like: base
    train: {from: {system: base, corpus: own}}
    corpora: {more: {}}
"""
MORE = """\
  more:
    like: own
    source: "no"
    target: "de"
vocabularies: {more: own}
systems:
"""
TEXT = PARAMS.replace("systems:\n", MORE).replace("published: []\n", TUNED)


def test_a_row_of_tuned_is_a_row_with_a_start(tmp_path):
    settings = read(tmp_path, TEXT)
    assert settings.systems == ["base", "fine"]
    assert settings.system("base").train.from_ is None
    assert settings.system_on("fine", "more").train.from_.cell == ("base", "own")
    assert settings.stage("train", "fine", "more", 1) == "train_tuned@fine-more-1"
    assert settings.stage("train", "base", "own", 1) == "train@base-own-1"
    # as users write it, for MLflow and for DVC
    assert dotted(settings.system("fine"))["train.from.system"] == "base"
    cell = settings.resolved()["cells"]["fine"]["more"]
    assert cell["train"]["from"] == {"system": "base", "corpus": "own"}
    assert "from" not in settings.resolved()["cells"]["base"]["own"]["train"]


def test_a_corpus_has_the_vocabulary_of_another(tmp_path):
    settings = read(tmp_path, TEXT)
    assert settings.corpus("more").vocabulary.of == "own"
    assert settings.corpus("more").vocabulary.bpe == settings.corpus("own").vocabulary.bpe
    assert settings.corpus("own").vocabulary.of is None


START = "{from: {system: base, corpus: own}}"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("base, corpus: own", "bose, corpus: own", "no system 'bose'; there are: base, fine"),
        ("base, corpus: own", "base, corpus: owl", "base is not trained on 'owl'; there are: own"),
        (START, "{max_updates: 9}", "tuned.fine: a row of tuned needs its own train.from"),
        (START, "{from: {folder: a}}", "tuned.fine: a row of tuned needs its own train.from"),
        ("base, corpus: own", "fine, corpus: more", "a cycle, each needs the next: fine on more"),
        (START, f"{START}\n    model: {{d_ff: 8}}", "model.d_ff is 8, and 16 of its start"),
        ("tuned:\n", "  other:\n", "systems.other"),
        ("  fine:\n", "  base:\n", "tuned.base: a system, too"),
        ("    average: {last: 2}", "    average: {last: 2, ensemble: true}", "an ensemble"),
        ("{more: {}}", "{more: {train: {from: {corpus: more}}}}", "rows that start from a system"),
        ("{more: own}", "{mire: own}", "vocabularies.mire: no corpus 'mire'; there are: own, more"),
        ("{more: own}", "{more: one}", "vocabularies.more: no corpus 'one'; there are: own, more"),
        ("{more: own}", "{more: own, own: more}", "own has the vocabulary of more itself"),
        ("{more: own}", "[more]", "vocabularies: is not a mapping of names"),
        ('source: "no"\n    t', "source: fr\n    t", "own, whose vocabulary it would have,"),
        ("like: own\n", "like: own\n    vocabulary: {of: own}\n", "set this at the top level, by"),
    ],
)
def test_what_is_refused_in_one_line(tmp_path, old, new, message):
    assert TEXT.count(old) == 1, old
    with pytest.raises(UserError) as raised:
        read(tmp_path, TEXT.replace(old, new))
    assert message in str(raised.value)
    assert len(str(raised.value).splitlines()) <= 2


@pytest.mark.parametrize(
    ("start", "message"),
    [
        ("{system: base, corpus: own}", "rows that start from a system belong under tuned"),
        ("{system: base}", "needs system and corpus, or a folder"),
        ("{folder: a, system: base}", "needs system and corpus, or a folder"),
    ],
)
def test_a_row_of_systems_starts_from_outside_alone(tmp_path, start, message):
    text = PARAMS.replace(
        "      max_updates: 10\n", f"      max_updates: 10\n      from: {start}\n"
    )
    with pytest.raises(UserError) as raised:
        read(tmp_path, text)
    assert message in str(raised.value)
    assert (
        read(tmp_path, text.replace(start, "{folder: a}")).system("base").train.from_.folder == "a"
    )


MADE = """\
  rev:
    like: own
    source: "no"
    target: "de"
    files: {train: {a: null, back: {license_and_citation: own, target: {path: inputs/a.de}}}}
made_texts: {back: {part_of: rev, system: SYSTEM, corpus: own}}
systems:
"""


@pytest.mark.parametrize(
    ("system", "more", "cycle"),
    [
        # what translates a text has the vocabulary of that text
        ("base", "vocabularies: {own: rev}\n", "rev -> base on own -> own -> rev"),
        # it starts from a training on the text
        (
            "fine",
            "tuned: {fine: {like: base, train: {from: {system: base, corpus: rev}}}}\n",
            "rev -> fine on own -> base on rev -> rev",
        ),
    ],
)
def test_a_cycle_of_several_kinds_is_one_line(tmp_path, system, more, cycle):
    text = PARAMS.replace("systems:\n", MADE.replace("SYSTEM", system)) + more
    with pytest.raises(UserError) as raised:
        read(tmp_path, text)
    (line,) = str(raised.value).splitlines()
    assert ": a cycle, each needs the next: " in line
    found = line.rpartition(": ")[2].split(" -> ")
    wanted = cycle.split(" -> ")[1:]
    assert any(found[1:] == wanted[i:] + wanted[:i] for i in range(len(wanted))), found
