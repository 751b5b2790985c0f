"""Systems that start from weights, corpora that share a vocabulary: what params.yaml may say."""

import pytest

from bleuprint.config.references import Entry, needed_by
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.flatten import flatten_settings
from params import PARAMS, read

FINE = """\
  fine:
    like: base
    corpora: {more: {}}
init_from:
  fine: {system: base, corpus: own}
"""
MORE = """\
  more:
    like: own
    source: "no"
    target: "de"
vocabularies: {more: own}
systems:
"""
TEXT = PARAMS.replace("systems:\n", MORE).replace("published: []\n", FINE)


def test_a_system_may_start_from_another(tmp_path):
    settings = read(tmp_path, TEXT)
    assert settings.trained_systems == ["base", "fine"]
    assert settings.system_settings("base").train.init_from is None
    assert settings.system_on("fine", "more").train.init_from.parent == ("base", "own")
    assert settings.stage("train", "fine", "more", 1) == "train@fine-more-1"
    # as users write it, for MLflow and for DVC
    assert flatten_settings(settings.system_settings("fine"))["train.init_from.system"] == "base"
    run = settings.resolved()["runs"]["fine"]["more"]
    assert run["train"]["init_from"] == {"system": "base", "corpus": "own"}
    assert "init_from" not in settings.resolved()["runs"]["base"]["own"]["train"]


def test_a_corpus_has_the_vocabulary_of_another(tmp_path):
    settings = read(tmp_path, TEXT)
    assert settings.corpus("more").vocabulary.of == "own"
    assert settings.corpus("more").vocabulary.bpe == settings.corpus("own").vocabulary.bpe
    assert settings.corpus("own").vocabulary.of is None


def test_a_training_needs_all_that_its_parent_needs(tmp_path):
    references = read(tmp_path, TEXT).references()
    base = {Entry("own", "base"), Entry("own")}
    assert needed_by(Entry("own", "base"), references) == base
    fine = Entry("more", "fine")
    assert needed_by(fine, references) == {fine, Entry("more"), *base}
    outputs = {path.as_posix() for reference in references for path in reference.outputs}
    assert outputs == {"data/bpe/more/shared", "data/starts/fine/1/weights"}


def test_a_folder_of_another_project_is_needed(tmp_path):
    start = "      max_updates: 10\n      init_from: {folder: a}\n"
    references = read(tmp_path, PARAMS.replace("      max_updates: 10\n", start)).references()
    assert Entry(folder="a") in needed_by(Entry("own", "base"), references)


def test_a_start_is_not_inherited(tmp_path):
    settings = read(tmp_path, TEXT.replace("init_from:\n", "  again: {like: fine}\ninit_from:\n"))
    assert settings.system_settings("again").train.init_from is None


def test_a_system_may_start_from_one_below(tmp_path):
    """As in DVC, which orders stages by what they read, the order of entries says nothing."""
    below = "  base:\n" + TEXT.partition("  base:\n")[2].partition("  fine:\n")[0]
    text = TEXT.replace(below, "").replace("init_from:\n", f"{below}init_from:\n")
    settings = read(tmp_path, text)
    assert settings.trained_systems == ["fine", "base"]
    assert settings.system_settings("fine").train.init_from.parent == ("base", "own")


# The line of the start in params.yaml.
LINE = TEXT[: TEXT.index("  fine: {system")].count("\n") + 1
START = "{system: base, corpus: own}"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("base, corpus: own", "bose, corpus: own", "no system 'bose'; there are: base, fine"),
        ("base, corpus: own", "base, corpus: owl", "base is not trained on 'owl'; there are: own"),
        (START, "{folder: a}", f":{LINE}: init_from.fine: needs system and corpus: the training"),
        ("{more: {}}", "{more: null}", f":{LINE}: init_from.fine: fine is trained on no corpus"),
        (START, "null", f":{LINE}: init_from.fine: needs system and corpus"),
        (START, "base", f":{LINE}: init_from.fine: needs system and corpus"),
        (START, "{system: base, corpus: 3}", f":{LINE}: init_from.fine.corpus: 3 is not text"),
        (START, f"{START[:-1]}, seed: 1}}", f":{LINE}: init_from.fine.seed: unknown key"),
        ("  fine: {", "  find: {", f":{LINE}: init_from.find: no system 'find'; there are: base"),
        (
            f"init_from:\n  fine: {START}",
            "init_from: base",
            "init_from: 'base' is not a mapping of names",
        ),
        (f"init_from:\n  fine: {START}", "init_from:", "init_from: is empty: remove the key"),
        (
            "base, corpus: own",
            "fine, corpus: more",
            f":{LINE}: init_from.fine: a cycle, each needs the next: fine on more -> fine on more",
        ),
        (
            "    like: base\n",
            "    like: base\n    model: {d_ff: 8}\n",
            "model.d_ff is 8, but 16 in",
        ),
        (
            "    like: base\n",
            "    like: base\n    train: {init_from: {folder: a}}\n",
            f":{LINE + 1}: init_from.fine: fine has another start in its train.init_from",
        ),
        ("init_from:\n", "tuned:\n", "tuned: a key of bleuprint 1.0"),
        ("    average: {last: 2}", "    average: {last: 2, ensemble: true}", "an ensemble"),
        ("{more: own}", "{mire: own}", "vocabularies.mire: no corpus 'mire'; there are: own, more"),
        ("{more: own}", "{more: one}", "vocabularies.more: no corpus 'one'; there are: own, more"),
        ("{more: own}", "{more: own, own: more}", "own has the vocabulary of more itself"),
        ("{more: own}", "[more]", "vocabularies: ['more'] is not a mapping of names"),
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
        ("{system: base, corpus: own}", "init_from.system: to start from a system of this"),
        (
            "{corpus: own}",
            "init_from.corpus: to start from a system of this experiment, name it at",
        ),
        ("{}", "needs system and corpus, or a folder"),
        ("{foldr: a}", "train.init_from.foldr: unknown key; did you mean 'folder'?"),
        ("{path: a}", "train.init_from.path: unknown key; known here: folder"),
    ],
)
def test_train_init_from_is_a_folder(tmp_path, start, message):
    text = PARAMS.replace(
        "      max_updates: 10\n", f"      max_updates: 10\n      init_from: {start}\n"
    )
    with pytest.raises(UserError) as raised:
        read(tmp_path, text)
    assert message in str(raised.value)
    settings = read(tmp_path, text.replace(f"init_from: {start}", "init_from: {folder: a}"))
    assert settings.system_settings("base").train.init_from.folder == "a"


MADE = """\
  rev:
    like: own
    source: "no"
    target: "de"
    files: {train: {a: null, back: {license_and_citation: own, target: {path: inputs/a.de}}}}
synthetic: {back: {part_of: rev, system: SYSTEM, corpus: own}}
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
            "  fine: {like: base}\ninit_from: {fine: {system: base, corpus: rev}}\n",
            "rev -> fine on own -> base on rev -> rev",
        ),
    ],
)
def test_a_cycle_of_several_kinds_is_one_line(tmp_path, system, more, cycle):
    text = PARAMS.replace("systems:\n", MADE.replace("SYSTEM", system))
    text = text.replace("published: []\n", more)
    with pytest.raises(UserError) as raised:
        read(tmp_path, text)
    (line,) = str(raised.value).splitlines()
    assert ": a cycle, each needs the next: " in line
    found = line.rpartition(": ")[2].split(" -> ")
    wanted = cycle.split(" -> ")[1:]
    assert any(found[1:] == wanted[i:] + wanted[:i] for i in range(len(wanted))), found
