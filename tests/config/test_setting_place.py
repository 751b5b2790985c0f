"""Where params.yaml has a setting, for messages."""

import pytest

from bleuprint.config.setting_place import place_of_setting
from params import PARAMS

TEXT = PARAMS.replace(
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
SYSTEMS = TEXT[: TEXT.index("  wide:\n")].count("\n") + 1


def line_of(text):
    return TEXT[: TEXT.index(text)].count("\n") + 1


@pytest.mark.parametrize(
    ("keys", "place"),
    [
        ("runs.base.own.model.d_model", f":{line_of('d_model: 8')}: systems.base.model.d_model"),
        ("runs.wide.own.model.d_model", f":{SYSTEMS + 2}: systems.wide.model.d_model"),
        ("runs.wide.own.model.heads", f":{line_of('heads: 2')}: systems.base.model.heads"),
        (
            "runs.wider.own.train.max_updates",
            f":{SYSTEMS + 5}: systems.wider.corpora.own.train.max_updates",
        ),
        ("corpora.own.files.train.a.source.path", ":9: corpora.own.files.train.a.source.path"),
        # a default, a corpus that has left params.yaml, and a system that has
        ("runs.wide.own.arithmetic", f":{SYSTEMS}: systems.wide"),
        ("runs.wide.other.model", f":{SYSTEMS}: systems.wide"),
        ("runs.narrow.own.model", f":{line_of('systems:')}: systems"),
    ],
)
def test_a_setting_is_where_it_is_written(tmp_path, keys, place):
    (tmp_path / "params.yaml").write_text(TEXT)
    found = str(place_of_setting(keys.split("."), tmp_path))
    assert found.removeprefix(f"{tmp_path}/params.yaml") == place


@pytest.mark.parametrize("text", [None, "systems: [", "- a list"])
def test_without_a_valid_file_it_is_known_by_its_keys(tmp_path, text):
    if text is not None:
        (tmp_path / "params.yaml").write_text(text)
    place = place_of_setting(["corpora", "own", "source"], tmp_path)
    assert str(place) == f"{tmp_path}/params.yaml: corpora.own.source"
