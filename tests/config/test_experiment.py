"""An experiment in params.yaml: each mistake is reported with its line, key and what is right.

Each test changes one place of PARAMS, a valid params.yaml (see tests/support/params.py).
"""

import pytest

from params import PARAMS, error_after_change, params_error, replace_once


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        pytest.param(
            "heads: 2",
            "true: 2",
            "25: systems.base.model.True: unknown key. Known keys: enc",
            id="not like any known key",
        ),
        pytest.param(
            "heads: 2",
            "haeds: 2",
            "25: systems.base.model.haeds: unknown key. Did you mean",
            id="like a known key",
        ),
        pytest.param(
            "    model: &",
            "    heads: 2\n    model: &",
            "base.heads: unknown key. Did you mean 'model.heads'?",
            id="belongs into a mapping below",
        ),
        pytest.param(
            "    model: &",
            "    init_from: {}\n    model: &",
            "Did you mean 'train.init_from'?",
            id="belongs into another mapping below",
        ),
        pytest.param(
            "  clip_norm: 1.0",
            "  lr: 1.0",
            "train.lr: unknown key. Did you mean 'lr_schedule.",
            id="belongs two levels below",
        ),
        pytest.param(
            "length_ratio: {",
            "length_rato: {",
            "14: corpora.own.filter.length_rato: unknown key. Did you mean 'length_ratio'?",
            id="rule",
        ),
        pytest.param(
            "non_printing: {}",
            "non_printing: {form: NFC}",
            "form: unknown key. Write {}",
            id="setting of a rule without settings",
        ),
    ],
)
def test_an_unknown_key_is_reported_with_a_suggestion(tmp_path, old, new, message):
    assert message in error_after_change(tmp_path, old, new)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        pytest.param(
            "heads: 2",
            "heads: 2.5",
            "25: systems.base.model.heads: 2.5 is not a whole number",
            id="fraction for a whole number",
        ),
        pytest.param(
            "heads: 2",
            "heads:",
            "base.model.heads: an empty value is not a whole number",
            id="no value",
        ),
        pytest.param(
            "  dropout: {",
            "  dropout: 0.1 # {",
            "dropout: 0.1 is not a mapping: {embedding: ..., ",
            id="number for a mapping",
        ),
        pytest.param(
            "norm: post",
            "norm: past",
            "29: systems.base.model.norm: 'past' is not one of post, pre",
            id="unknown word",
        ),
        pytest.param("seeds: [1]", "seeds: 1", "2: seeds: 1 is not a list", id="not a list"),
        pytest.param(
            "seeds: [1]", "seeds: [1.0]", "2: seeds.0: 1.0 is not a whole number", id="in a list"
        ),
        pytest.param(
            "lowercase: false", "lowercase: no", "'no' is not true or false", id="no for false"
        ),
        pytest.param(
            "{form: NFC}",
            "NFC",
            "12: corpora.own.clean.unicode: 'NFC' is not a mapping",
            id="word for a mapping",
        ),
        pytest.param(
            "{length_ratio: {max: 3.0}, length: {min: 1, max: 100}}",
            "[length_ratio]",
            "is not a mapping",
            id="list for a mapping",
        ),
        pytest.param(
            "precision: float32}",
            "precision: int8}",
            "decode.precision: 'int8' is not one of",
            id="unknown precision",
        ),
        pytest.param(
            "path: inputs/a.de",
            "path: [a.de, b.de]",
            "source.path: ['a.de', 'b.de'] is not text",
            id="list for text",
        ),
        pytest.param(
            "train: {a: ",
            "train: [x] # {a: ",
            "['x'] is not a mapping of names",
            id="list for a mapping of names",
        ),
        pytest.param(
            "{path: inputs/a.de}",
            "{url: http://x/a, sha256: aa}",
            "source.sha256: a SHA-256 is 64",
            id="short hash",
        ),
    ],
)
def test_a_value_of_the_wrong_type_is_reported(tmp_path, old, new, message):
    assert message in error_after_change(tmp_path, old, new)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        pytest.param(
            "seeds: [1]",
            "seeds: [1, 1]",
            "2: seeds: [1, 1]: needs one or more different seeds",
            id="a seed twice",
        ),
        pytest.param(
            "max: 100",
            "max: 0",
            "14: corpora.own.filter.length.max: 0 is out of range",
            id="below the minimum",
        ),
        pytest.param(
            "clip_norm: 1.0",
            f"clip_norm: 1{'0' * 400}",
            "47: systems.base.train.clip_norm: 1000",
            id="too large for a float",
        ),
        pytest.param(
            "d_model: 8",
            f"d_model: 0x{'f' * 5000}",
            "model.d_model: a number of thousands of dig",
            id="thousands of digits",
        ),
        pytest.param(
            "d_model: 8",
            f"d_model: 1{'0' * 24}",
            "is out of range: it must be at ",
            id="above the maximum",
        ),
    ],
)
def test_a_number_out_of_range_is_reported(tmp_path, old, new, message):
    assert message in error_after_change(tmp_path, old, new)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        pytest.param(
            "  own:",
            "  own.x:",
            "4: corpora.own.x: a name is of letters (a to z, A to Z), digits,",
            id="dot in the name of a corpus",
        ),
        pytest.param(
            "experiment: trial",
            f"experiment: {'a' * 101}",
            "digits, '-' and '_', at most 100",
            id="long name of an experiment",
        ),
    ],
)
def test_an_invalid_name_is_reported(tmp_path, old, new, message):
    assert message in error_after_change(tmp_path, old, new)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        pytest.param(
            "d_model: 8",
            "d_model: 7",
            "systems.base.model: d_model 7 is odd, but sinusoidal",
            id="odd d_model",
        ),
        pytest.param(
            "max_tokens: 100",
            "",
            "train: the key 'max_tokens' is missing. `like: NAME` takes",
            id="max_tokens missing",
        ),
        pytest.param(
            "max_tokens: 100",
            "max_tokens: 101",
            "max_tokens 101 is above tokens_per_update 100",
            id="batch above the update",
        ),
        pytest.param(
            "max_updates",
            "sentences_per_update: 8\n      max_updates",
            "needs exactly one of tokens_per",
            id="two sizes of an update",
        ),
        pytest.param(
            "max_updates: 10",
            "max_updates:",
            "base.train: training would never end. Set",
            id="no end of the training",
        ),
        pytest.param(
            "name: adam, ",
            "name: sgd, ",
            "train.optimizer: optimizer sgd has no setting betas",
            id="betas of sgd",
        ),
        pytest.param(
            "eps: 1e-9, ",
            "eps: 1e-9, momentum: 0.9, ",
            "optimizer: optimizer adam has no setting momentum",
            id="momentum of adam",
        ),
        pytest.param(
            "init_lr: 0.0}",
            "init_lr: 0.1}",
            "inverse_sqrt: warmup_init_lr 0.1 is above lr 0.001",
            id="warmup from above",
        ),
        pytest.param(
            "init_lr: 0.0}",
            "init_lr: 0.0}, noam: {factor: 1}",
            "needs exactly one of inverse_sqrt",
            id="two schedules",
        ),
        pytest.param(
            "keep_interval: 0",
            "keep_interval: 7",
            "keep_interval 7 is not a multiple of save_interval 5",
            id="keep_interval not a multiple",
        ),
    ],
)
def test_settings_of_a_training_that_contradict_each_other_are_reported(
    tmp_path, old, new, message
):
    assert message in error_after_change(tmp_path, old, new)


@pytest.mark.parametrize(
    ("average", "message"),
    [
        pytest.param("{}", "base.average: needs exactly one of last, best, ema", id="nothing"),
        pytest.param(
            "{last: 3}",
            "keeps only 2. Lower train.save_interval (5)",
            id="more than the training keeps",
        ),
        pytest.param(
            "{best: 1}",
            "is 1, but training keeps only 0. Raise train.keep_best",
            id="best ones are not kept",
        ),
        pytest.param(
            "{ema: true}", "average.ema needs the moving average", id="no moving average is kept"
        ),
        pytest.param(
            "{last: 1, ensemble: true}", "an ensemble needs more than", id="ensemble of one"
        ),
    ],
)
def test_an_average_of_checkpoints_that_are_not_kept_is_reported(tmp_path, average, message):
    assert message in error_after_change(tmp_path, "average: {last: 2}", f"average: {average}")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        pytest.param(
            "allow_unk: true",
            "allow_unk: false, replace_unk: true",
            "replace_unk true needs allow_unk",
            id="UNK is not allowed",
        ),
        pytest.param(
            "allow_unk: true",
            "allow_unk: true, replace_unk: true",
            "replace_unk needs a vocabulary",
            id="replace_unk with BPE",
        ),
        pytest.param(
            "min_len: 0",
            "min_len: 1024",
            "min_len 1024 leaves no position for EOS in model",
            id="min_len as long as the positions",
        ),
    ],
)
def test_decoding_that_the_model_or_vocabulary_does_not_allow_is_reported(
    tmp_path, old, new, message
):
    assert message in error_after_change(tmp_path, old, new)


@pytest.mark.parametrize(
    ("max_updates", "average", "keep_last", "keep_best", "remedy"),
    [
        # A checkpoint is saved every 5 updates.
        pytest.param(
            5, "last: 2", 2, 0, "Lower train.save_interval (5)", id="1 checkpoint for 2 to average"
        ),
        pytest.param(
            10,
            "last: 3",
            2,
            0,
            "Lower train.save_interval (5)",
            id="2 checkpoints for 3 to average",
        ),
        pytest.param(
            15, "last: 3", 2, 0, "Raise train.keep_last", id="2 of 3 checkpoints are kept"
        ),
        pytest.param(
            11, "last: 3", 2, 0, "Raise train.keep_last", id="2 of 3 are kept, with the last update"
        ),
        pytest.param(
            10,
            "best: 3",
            1,
            2,
            "Lower train.validate_interval (5)",
            id="2 validated checkpoints for 3 to average",
        ),
        pytest.param(
            15, "best: 3", 1, 2, "Raise train.keep_best", id="2 of 3 validated checkpoints are kept"
        ),
    ],
)
def test_the_message_about_too_few_checkpoints_says_how_to_keep_enough(
    tmp_path, max_updates, average, keep_last, keep_best, remedy
):
    """A checkpoint is saved and validated every 5 updates; training keeps the last and the best."""
    text = replace_once(PARAMS, "max_updates: 10", f"max_updates: {max_updates}")
    text = replace_once(text, "average: {last: 2}", f"average: {{{average}}}")
    text = replace_once(text, "keep_last: 2", f"keep_last: {keep_last}")
    text = replace_once(text, "keep_best: 0", f"keep_best: {keep_best}")

    message = params_error(tmp_path, text)

    average_setting = average.partition(":")[0]
    assert message.endswith(f". {remedy}, or lower average.{average_setting}")


def test_an_empty_file_is_reported_with_the_keys_that_it_needs(tmp_path):
    message = params_error(tmp_path, "# nothing yet\n")

    path = tmp_path / "params.yaml"
    assert message == f"{path}: not a mapping of experiment, seeds, corpora and systems"


def test_two_runs_with_the_same_name_are_reported(tmp_path):
    """DVC names a run SYSTEM-CORPUS-SEED, and silently drops the first of two equal names.

    System a on corpus b-c, and system a-b on corpus c, are both called a-b-c.
    """
    text = PARAMS.replace("  own:\n", "  c: &c\n").replace("systems:\n", "  b-c: *c\nsystems:\n")
    text = text.replace("  base:\n", "  a: &a\n").replace("published:", "  a-b: *a\npublished:")

    message = params_error(tmp_path, text)

    assert "called a-b-c: system a on corpus b-c and " in message
    assert ". Rename" in message
