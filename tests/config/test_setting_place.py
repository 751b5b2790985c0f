"""Messages about a setting name the line of params.yaml that sets it."""

import pytest

from bleuprint.config.setting_place import place_of_setting
from params import PARAMS, line_number, replace_once

# PARAMS has the corpus `own` and the system `base`; each of these systems inherits from another.
PARAMS_WITH_LIKE = replace_once(
    PARAMS,
    "published: []\n",
    """\
  wide:
    like: base
    model: {d_model: 16}
  wider:
    like: wide
    corpora: {own: {train: {max_updates: 20}}}
""",
)


def place_in_text(folder, dotted_key):
    """Write PARAMS_WITH_LIKE to params.yaml; return LINE: KEY, the place of a resolved setting."""
    path = folder / "params.yaml"
    path.write_text(PARAMS_WITH_LIKE)
    place = place_of_setting(dotted_key.split("."), folder)
    return str(place).removeprefix(f"{path}:")


@pytest.mark.parametrize(
    ("dotted_key", "line_start", "key_in_params"),
    [
        pytest.param(
            "runs.base.own.model.d_model",
            "d_model: 8",
            "systems.base.model.d_model",
            id="set by the system",
        ),
        pytest.param(
            "runs.wide.own.model.d_model",
            "model: {d_model: 16}",
            "systems.wide.model.d_model",
            id="changed by a system that inherits",
        ),
        pytest.param(
            "runs.wide.own.model.heads",
            "heads: 2",
            "systems.base.model.heads",
            id="inherited from another system",
        ),
        pytest.param(
            "runs.wider.own.train.max_updates",
            "corpora: {own: {train: {max_updates: 20}}}",
            "systems.wider.corpora.own.train.max_updates",
            id="changed on one corpus",
        ),
        pytest.param(
            "corpora.own.files.train.a.source.path",
            "train: {a: ",
            "corpora.own.files.train.a.source.path",
            id="file of a corpus",
        ),
    ],
)
def test_the_place_of_a_setting_is_the_line_that_sets_it(
    tmp_path, dotted_key, line_start, key_in_params
):
    """A message about a setting names the line of params.yaml to edit.

    `wide` is like `base` with d_model 16; `wider` is like `wide` with 20 updates on the corpus
    `own`.
    """
    line = line_number(PARAMS_WITH_LIKE, line_start)

    assert place_in_text(tmp_path, dotted_key) == f"{line}: {key_in_params}"


@pytest.mark.parametrize(
    ("dotted_key", "line_start", "key_in_params"),
    [
        pytest.param(
            "runs.wide.own.arithmetic", "  wide:\n", "systems.wide", id="setting with its default"
        ),
        pytest.param(
            "runs.wide.other.model", "  wide:\n", "systems.wide", id="corpus that was removed"
        ),
        pytest.param("runs.narrow.own.model", "systems:", "systems", id="system that was removed"),
    ],
)
def test_the_place_of_a_setting_that_params_does_not_contain_is_the_entry_around_it(
    tmp_path, dotted_key, line_start, key_in_params
):
    """`wide` is in params.yaml without the setting or corpus; `narrow` is not there at all."""
    line = line_number(PARAMS_WITH_LIKE, line_start)

    assert place_in_text(tmp_path, dotted_key) == f"{line}: {key_in_params}"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(None, id="no file"),
        pytest.param("systems: [", id="not YAML"),
        pytest.param("- a list", id="not a mapping"),
    ],
)
def test_the_place_has_a_key_without_a_line_if_params_cannot_be_read(tmp_path, text):
    """A message still names the file and the key, so that the user knows what is meant."""
    if text is not None:
        (tmp_path / "params.yaml").write_text(text)

    place = place_of_setting(["corpora", "own", "source"], tmp_path)

    assert str(place) == f"{tmp_path}/params.yaml: corpora.own.source"
