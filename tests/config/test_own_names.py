"""The names of own code in params.yaml: their fingerprints, and mistakes."""

import pytest

from bleuprint.config.experiment import load_settings
from bleuprint.runtime.errors import UserErrors
from bleuprint.runtime.own_code import pinned_name
from own_code import PLAIN_PARTS, write_module
from own_metrics import WORD_RECALL

PARAMS = """\
experiment: own-code
seeds: [1]
corpora:
  c:
    source: en
    target: de
    license_and_citation: {own: {license: none, bibtex: "@misc{own,}"}}
    files:
      train:
        a: {license_and_citation: own, source: {path: inputs/a.en}, target: {path: inputs/a.de}}
    vocabulary: {bpe: {num_merges: 40}}
systems:
  tiny:
    train: {tokens_per_update: 300, max_tokens: 300, max_updates: 60}
    average: {last: 1}
  own-row:
    like: tiny
    model: {VALUE}
"""


def load(root, model):
    """Load a params.yaml in which the second system has the given settings of the model."""
    path = root / "params.yaml"
    path.write_text(PARAMS.replace("VALUE", model), encoding="utf-8")
    return load_settings(path)


def test_the_name_of_own_code_gets_its_fingerprint_in_the_systems_that_name_it(tmp_path):
    write_module(tmp_path, "plain", PLAIN_PARTS)

    settings = load(tmp_path, "positions: own.plain")

    pinned = pinned_name("own.plain", tmp_path)
    assert pinned.startswith("own.plain@")
    assert settings.system_on("own-row", "c").model.own_parts == {"positions": pinned}
    assert settings.system_on("tiny", "c").model.own_parts == {}


def test_only_settings_of_systems_with_own_code_change_when_it_is_edited(tmp_path):
    write_module(tmp_path, "plain", PLAIN_PARTS)
    before = load(tmp_path, "layer: own.plain").resolved()

    write_module(tmp_path, "plain", PLAIN_PARTS.replace("relu()", "sigmoid()"))
    after = load(tmp_path, "layer: own.plain").resolved()

    assert after["runs"]["own-row"]["c"]["model"] != before["runs"]["own-row"]["c"]["model"]
    del after["runs"]["own-row"], before["runs"]["own-row"]
    assert after == before


def test_a_system_without_own_code_has_no_keys_for_it(tmp_path):
    """So results of earlier versions stay valid."""
    model = load(tmp_path, "d_ff: 64").resolved()["runs"]["tiny"]["c"]["model"]

    assert not model.keys() & {"positions", "attention", "feed_forward", "layer"}


def test_a_fingerprint_in_params_yaml_must_be_the_one_of_the_code(tmp_path):
    write_module(tmp_path, "plain", PLAIN_PARTS)
    pinned = pinned_name("own.plain", tmp_path)
    load(tmp_path, f"layer: {pinned}")

    write_module(tmp_path, "plain", PLAIN_PARTS.replace("relu()", "sigmoid()"))

    with pytest.raises(UserErrors, match=f"plain.py has changed: {pinned} is expected"):
        load(tmp_path, f"layer: {pinned}")


@pytest.mark.parametrize(
    ("model", "message"),
    [
        pytest.param(
            "layer: own.plan",
            "own-row.model.layer: own/plan.py: no such file; there are: own.broken, own.plain. "
            "Did you mean 'own.plain'?",
            id="missing module",
        ),
        pytest.param(
            "layer: own.broken", "own-row.model.layer: own/broken.py:1: invalid", id="no Python"
        ),
        pytest.param(
            "layer: own.empty",
            "own-row.model.layer: own/empty.py has no class EncoderLayer or DecoderLayer, which "
            "model.layer needs",
            id="missing class",
        ),
        pytest.param(
            "layer: plain",
            "own-row.model.layer: 'plain' is not the name of a module in own/. Write own.NAME",
            id="another name",
        ),
        pytest.param(
            "layer: own/plain.py", "'own/plain.py' is not the name of a module", id="path"
        ),
        pytest.param("layer: own.../x", "'own.../x' is not the name of a module", id="dots"),
        pytest.param("layer: own", "'own' is not the name of a module", id="the folder"),
        pytest.param("layer: 3", "3 is not text", id="number"),
        pytest.param("layers: own.plain", "unknown key. Did you mean", id="unknown setting"),
    ],
)
def test_a_mistake_names_line_and_setting(tmp_path, model, message):
    """The setting is in line 18 of params.yaml."""
    write_module(tmp_path, "plain", PLAIN_PARTS)
    write_module(tmp_path, "broken", "def f(:\n")
    if "empty" in model:
        write_module(tmp_path, "empty", "")

    with pytest.raises(UserErrors) as error:
        load(tmp_path, model)

    (line,) = error.value.lines
    assert "params.yaml:18: " in line
    assert message in line


def load_metrics(root, metrics):
    """Load a params.yaml with a list of metrics in its last line, 19."""
    path = root / "params.yaml"
    params = PARAMS.replace("{VALUE}", "{}")
    path.write_text(f"{params}metrics: {metrics}\n", encoding="utf-8")
    return load_settings(path)


def test_a_metric_gets_its_fingerprint(tmp_path):
    write_module(tmp_path, "recall", WORD_RECALL)

    settings = load_metrics(tmp_path, "[own.recall]")

    assert settings.metrics == (pinned_name("own.recall", tmp_path),)


def test_without_own_metrics_the_list_of_metrics_is_empty(tmp_path):
    """DVC compares the list, so it must exist."""
    assert load(tmp_path, "d_ff: 64").resolved()["metrics"] == []


def test_only_the_list_of_metrics_changes_when_a_metric_is_edited(tmp_path):
    write_module(tmp_path, "recall", WORD_RECALL)
    before = load_metrics(tmp_path, "[own.recall]").resolved()

    write_module(tmp_path, "recall", WORD_RECALL.replace("set(", "list("))
    after = load_metrics(tmp_path, "[own.recall]").resolved()

    assert after.pop("metrics") != before.pop("metrics")
    assert after == before


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        pytest.param(
            "[own.recal]",
            "metrics.0: own/recal.py: no such file; there are: own.plain, own.recall. Did you mean",
            id="missing module",
        ),
        pytest.param(
            "[own.recall, own.plain]",
            "metrics.1: own/plain.py has no METRIC. Write METRIC = Metric(...)",
            id="no metric",
        ),
        pytest.param(
            "[own.recall, own.recall]", "metrics.1: own.recall is listed twice. Remove", id="twice"
        ),
        pytest.param(
            "[bleu]",
            "metrics.0: 'bleu' is not the name of a module in own/. Write own.NAME for "
            "own/NAME.py. The built-in metrics, such as BLEU, are always computed",
            id="built-in metric",
        ),
        pytest.param("[3]", "metrics.0: 3 is not the name of a module in own/", id="number"),
        pytest.param("own.recall", "metrics: 'own.recall' is not a list", id="no list"),
        pytest.param("{own.recall: {}}", "metrics: ", id="mapping"),
    ],
)
def test_a_mistake_in_the_list_of_metrics_names_line_and_place(tmp_path, metrics, message):
    write_module(tmp_path, "plain", PLAIN_PARTS)
    write_module(tmp_path, "recall", WORD_RECALL)

    with pytest.raises(UserErrors) as error:
        load_metrics(tmp_path, metrics)

    (line,) = error.value.lines
    assert "params.yaml:19: " in line
    assert message in line


def test_a_metric_with_a_type_is_found(tmp_path):
    """The module is not imported when params.yaml is read."""
    module = WORD_RECALL.replace("METRIC =", "METRIC: Metric =")
    write_module(tmp_path, "recall", module)

    assert load_metrics(tmp_path, "[own.recall]").metrics
