"""Systems that start from trained weights, and corpora that share a vocabulary, in params.yaml."""

import pytest

from bleuprint.config.references import Entry, needed_by
from bleuprint.runtime.flatten import flatten_settings
from params import PARAMS, line_number, params_error, read_params, replace_once

START = "{system: base, corpus: own}"
# PARAMS trains the system `base` on the corpus `own`. Here `fine` starts from its weights, and is
# trained on the corpus `more`, which has the vocabulary of `own`.
PARAMS_WITH_INIT_FROM = replace_once(
    PARAMS,
    "systems:\n",
    """\
  more:
    like: own
    source: "no"
    target: "de"
vocabularies: {more: own}
systems:
""",
)
PARAMS_WITH_INIT_FROM = replace_once(
    PARAMS_WITH_INIT_FROM,
    "published: []\n",
    f"""\
  fine:
    like: base
    corpora: {{more: {{}}}}
init_from:
  fine: {START}
""",
)
START_LINE = line_number(PARAMS_WITH_INIT_FROM, f"  fine: {START}")


def test_a_system_may_start_from_the_weights_of_another(tmp_path):
    """`fine` on the corpus `more` starts from the weights of `base` on `own`."""
    settings = read_params(tmp_path, PARAMS_WITH_INIT_FROM)

    assert settings.trained_systems == ["base", "fine"]
    assert settings.system_settings("base").train.init_from is None
    assert settings.system_on("fine", "more").train.init_from.parent == ("base", "own")


def test_a_training_that_starts_from_another_has_its_own_stage(tmp_path):
    settings = read_params(tmp_path, PARAMS_WITH_INIT_FROM)

    assert settings.stage("train", "fine", "more", 1) == "train@fine-more-1"


def test_the_flat_settings_for_mlflow_contain_the_start(tmp_path):
    fine = read_params(tmp_path, PARAMS_WITH_INIT_FROM).system_settings("fine")

    assert flatten_settings(fine)["train.init_from.system"] == "base"


def test_the_resolved_settings_for_dvc_contain_the_start(tmp_path):
    runs = read_params(tmp_path, PARAMS_WITH_INIT_FROM).resolved()["runs"]

    assert runs["fine"]["more"]["train"]["init_from"] == {"system": "base", "corpus": "own"}
    assert "init_from" not in runs["base"]["own"]["train"]


def test_a_corpus_may_use_the_vocabulary_of_another(tmp_path):
    """params.yaml says `vocabularies: {more: own}`."""
    settings = read_params(tmp_path, PARAMS_WITH_INIT_FROM)

    assert settings.corpus("more").vocabulary.shared_from == "own"
    assert settings.corpus("more").vocabulary.bpe == settings.corpus("own").vocabulary.bpe
    assert settings.corpus("own").vocabulary.shared_from is None


def test_a_training_from_random_weights_needs_only_its_corpus(tmp_path):
    """`needed_by` returns what must be made before the training of `base` on `own`."""
    references = read_params(tmp_path, PARAMS_WITH_INIT_FROM).references()

    needed = needed_by(Entry("own", "base"), references)

    assert needed == {Entry("own", "base"), Entry("own")}


def test_a_training_needs_the_training_that_it_starts_from_and_both_corpora(tmp_path):
    """`fine`, on the corpus `more`, starts from the weights of `base` on the corpus `own`."""
    references = read_params(tmp_path, PARAMS_WITH_INIT_FROM).references()

    needed = needed_by(Entry("more", "fine"), references)

    assert needed == {
        Entry("more", "fine"),
        Entry("more"),
        Entry("own", "base"),
        Entry("own"),
    }


def test_shared_vocabularies_and_start_weights_are_copied_to_folders_of_their_own(tmp_path):
    """The corpus `more` uses the vocabulary of `own`; `fine` starts from the weights of `base`."""
    references = read_params(tmp_path, PARAMS_WITH_INIT_FROM).references()

    output_paths = set()
    for reference in references:
        for path in reference.outputs:
            output_paths.add(path.as_posix())
    assert output_paths == {"data/bpe/more/shared", "data/starts/fine/1/weights"}


def test_a_training_may_need_a_folder_of_another_project(tmp_path):
    """`base` starts from the weights in the folder `a`."""
    text = replace_once(
        PARAMS,
        "      max_updates: 10\n",
        "      max_updates: 10\n      init_from: {folder: a}\n",
    )

    references = read_params(tmp_path, text).references()

    assert Entry(folder="a") in needed_by(Entry("own", "base"), references)


def test_like_does_not_inherit_init_from(tmp_path):
    """`fine` starts from the weights of `base`; `again`, which is like `fine`, from random ones."""
    text = replace_once(
        PARAMS_WITH_INIT_FROM, "init_from:\n", "  again: {like: fine}\ninit_from:\n"
    )

    again = read_params(tmp_path, text).system_settings("again")

    assert again.train.init_from is None


def test_a_system_may_start_from_a_system_that_is_written_below_it(tmp_path):
    """`base`, from which `fine` starts, is moved below `fine`.

    DVC orders stages by the files that they read, so the order in params.yaml is free.
    """
    base = PARAMS_WITH_INIT_FROM[
        PARAMS_WITH_INIT_FROM.index("  base:\n") : PARAMS_WITH_INIT_FROM.index("  fine:\n")
    ]
    text = replace_once(PARAMS_WITH_INIT_FROM, base, "")
    text = replace_once(text, "init_from:\n", f"{base}init_from:\n")

    settings = read_params(tmp_path, text)

    assert settings.trained_systems == ["fine", "base"]
    assert settings.system_settings("fine").train.init_from.parent == ("base", "own")


def error_after_change(folder, old, new):
    """Change one place of PARAMS_WITH_INIT_FROM, and return the message that reading it ends with.

    The message must have one or two lines.
    """
    message = params_error(folder, replace_once(PARAMS_WITH_INIT_FROM, old, new))
    assert len(message.splitlines()) <= 2
    return message


@pytest.mark.parametrize(
    ("start", "message"),
    [
        pytest.param(
            "{system: bose, corpus: own}",
            "no system 'bose'; there are: base, fine",
            id="unknown system",
        ),
        pytest.param(
            "{system: base, corpus: owl}",
            "base is not trained on 'owl'; there are: own",
            id="unknown corpus",
        ),
        pytest.param(
            "{folder: a}",
            f":{START_LINE}: init_from.fine: names no training to start from",
            id="folder",
        ),
        pytest.param("null", f":{START_LINE}: init_from.fine: names no training", id="no value"),
        pytest.param("base", f":{START_LINE}: init_from.fine: names no training", id="only a name"),
        pytest.param(
            "{system: base, corpus: 3}",
            f":{START_LINE}: init_from.fine.corpus: 3 is not text",
            id="corpus is a number",
        ),
        pytest.param(
            "{system: base, corpus: own, seed: 1}",
            f":{START_LINE}: init_from.fine.seed: unknown key",
            id="unknown key",
        ),
        pytest.param(
            "{system: fine, corpus: more}",
            f":{START_LINE}: init_from.fine: in this circle, each needs the next: fine on "
            "more -> fine on more",
            id="from itself",
        ),
    ],
)
def test_a_start_that_names_no_training_is_reported(tmp_path, start, message):
    assert message in error_after_change(tmp_path, START, start)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        pytest.param(
            "corpora: {more: {}}",
            "corpora: {more: null}",
            f":{START_LINE}: init_from.fine: fine is trained on no corpus",
            id="system without a corpus",
        ),
        pytest.param(
            "  fine: {",
            "  find: {",
            f":{START_LINE}: init_from.find: no system 'find'; there are: base",
            id="start of an unknown system",
        ),
        pytest.param(
            f"init_from:\n  fine: {START}",
            "init_from: base",
            "init_from: 'base' is not a mapping of names",
            id="section is a word",
        ),
        pytest.param(
            f"init_from:\n  fine: {START}",
            "init_from:",
            "init_from: is empty. Remove the key",
            id="section is empty",
        ),
        pytest.param(
            "    like: base\n",
            "    like: base\n    model: {d_ff: 8}\n",
            "model.d_ff is 8, but 16 in",
            id="another size of the model",
        ),
        pytest.param(
            "    like: base\n",
            "    like: base\n    train: {init_from: {folder: a}}\n",
            # One line below, because of the inserted line.
            f":{START_LINE + 1}: init_from.fine: fine also starts from a model in train.init_from",
            id="two starts",
        ),
        pytest.param(
            "init_from:\n", "tuned:\n", "tuned: a key of bleuprint 1.0", id="key of version 1.0"
        ),
        pytest.param(
            "    average: {last: 2}",
            "    average: {last: 2, ensemble: true}",
            "an ensemble",
            id="start from an ensemble",
        ),
    ],
)
def test_a_system_that_cannot_start_from_a_training_is_reported(tmp_path, old, new, message):
    assert message in error_after_change(tmp_path, old, new)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        pytest.param(
            "{more: own}",
            "{mire: own}",
            "vocabularies.mire: no corpus 'mire'; there are: own, more",
            id="unknown corpus",
        ),
        pytest.param(
            "{more: own}",
            "{more: one}",
            "vocabularies.more: no corpus 'one'; there are: own, more",
            id="vocabulary of an unknown corpus",
        ),
        pytest.param(
            "{more: own}",
            "{more: own, own: more}",
            "own itself uses the vocabulary of more",
            id="cycle",
        ),
        pytest.param(
            "{more: own}",
            "[more]",
            "vocabularies: ['more'] is not a mapping of names",
            id="list",
        ),
        pytest.param(
            'source: "no"\n    t',
            "source: fr\n    t",
            "the vocabulary of own does not cover",
            id="another language",
        ),
        pytest.param(
            "like: own\n",
            "like: own\n    vocabulary: {of: own}\n",
            "this is not set here. Write",
            id="set in the corpus",
        ),
    ],
)
def test_a_corpus_that_cannot_use_a_vocabulary_is_reported(tmp_path, old, new, message):
    assert message in error_after_change(tmp_path, old, new)


def params_with_train_init_from(start):
    """Return a params.yaml whose system `base` has this setting `train.init_from`."""
    return replace_once(
        PARAMS,
        "      max_updates: 10\n",
        f"      max_updates: 10\n      init_from: {start}\n",
    )


def test_train_init_from_names_a_folder(tmp_path):
    settings = read_params(tmp_path, params_with_train_init_from("{folder: a}"))

    assert settings.system_settings("base").train.init_from.folder == "a"


@pytest.mark.parametrize(
    ("start", "message"),
    [
        pytest.param(
            "{system: base, corpus: own}",
            "init_from.system: only a folder or a pretrained model can be named here",
            id="system and corpus",
        ),
        pytest.param(
            "{corpus: own}",
            "init_from.corpus: only a folder or a pretrained model can be named here",
            id="corpus",
        ),
        pytest.param("{}", "names no model to start from. Set folder; or marian", id="nothing"),
        pytest.param(
            "{foldr: a}",
            "train.init_from.foldr: unknown key. Did you mean 'folder'?",
            id="misspelled",
        ),
        pytest.param(
            "{path: a}",
            "train.init_from.path: unknown key. Known keys: folder, marian, huggingface",
            id="unknown key",
        ),
    ],
)
def test_train_init_from_without_a_folder_is_reported(tmp_path, start, message):
    """The start from a system of this experiment stands at the top level of params.yaml."""
    assert message in params_error(tmp_path, params_with_train_init_from(start))


def params_with_synthetic_text(system, sections):
    """Return a params.yaml whose corpus `rev` has a text that a system on `own` translates.

    Args:
        system: The name of the system.
        sections: Other systems and sections, as YAML.
    """
    german = "{license_and_citation: own, target: {path: inputs/a.de}}"
    corpus = f"""\
  rev:
    like: own
    source: "no"
    target: "de"
    files: {{train: {{a: null, back: {german}}}}}
synthetic: {{back: {{part_of: rev, system: {system}, corpus: own}}}}
"""
    text = replace_once(PARAMS, "systems:\n", f"{corpus}systems:\n")
    return replace_once(text, "published: []\n", sections)


@pytest.mark.parametrize(
    ("system", "sections", "cycle"),
    [
        pytest.param(
            "base",
            "vocabularies: {own: rev}\n",
            ["rev", "base on own", "own"],
            id="the translating system has the vocabulary of the text",
        ),
        pytest.param(
            "fine",
            "  fine: {like: base}\ninit_from: {fine: {system: base, corpus: rev}}\n",
            ["rev", "fine on own", "base on rev"],
            id="the translating system starts from a training on the text",
        ),
    ],
)
def test_a_cycle_of_synthetic_text_and_trainings_is_reported_in_one_line(
    tmp_path, system, sections, cycle
):
    """Part of the corpus `rev` is translated by a system on `own`, which itself needs `rev`.

    The message may begin anywhere in the cycle.
    """
    error = params_error(tmp_path, params_with_synthetic_text(system, sections))

    assert "\n" not in error
    assert ": in this circle, each needs the next: " in error
    names = error.rpartition(": ")[2].split(" -> ")
    assert names[-1] == names[0]
    reported_cycle = names[:-1]
    start = reported_cycle.index(cycle[0])
    assert reported_cycle[start:] + reported_cycle[:start] == cycle
