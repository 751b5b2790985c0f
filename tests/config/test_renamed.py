import re
from itertools import product
from pathlib import Path

import pytest

from bleuprint.config import renamed
from bleuprint.config.experiment import load
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.schema import load_yaml

BEFORE = Path(__file__).with_name("params-before-renaming.yaml")


def places(pattern):
    """The keys that a pattern of the table matches, with x for each wildcard."""
    parts = [part.split("|") for part in re.split(r"[()]", pattern)]
    return ["".join(chosen).replace("*", "x") for chosen in product(*parts)]


def read(path, key, value="1"):
    """Load a params.yaml that has but this key; the error."""
    names = key.split(".")
    lines = [f"{'  ' * depth}{name}:" for depth, name in enumerate(names)]
    path.write_text("\n".join(lines) + f" {value}\n")
    with pytest.raises(UserError) as error:
        load(path)
    return str(error.value), len(names)


TABLES = renamed.tables()
KEYS = [(key, new) for pattern, new in TABLES[0].items() for key in places(pattern)]
VALUES = [
    (key, value, new)
    for pattern, new in TABLES[1].items()
    for places_of, _, value in [pattern.partition(": ")]
    for key in places(places_of)
]


@pytest.mark.parametrize(("key", "new"), KEYS)
def test_a_former_key_is_refused_with_its_place_and_the_new_one(tmp_path, key, new):
    path = tmp_path / "params.yaml"
    message, line = read(path, key)
    assert "\n" not in message
    if message.startswith(f"{path}:{line}:"):
        assert message == f"{path}:{line}: {key}: renamed to {new}"
    else:  # the key above it is a former one, too
        old = key.rpartition(".")[2]
        assert f"{old} to {new} ({line})" in message
    above = key.rpartition(".")[0]
    for old_above, new_above in ((".schedule", ".lr_schedule"), ("_square_root", "_sqrt")):
        above = above.replace(old_above, new_above)
    above = above.replace(".about", ".license_and_citation")
    assert "unknown key" not in read(path, f"{above}.{new}")[0]


@pytest.mark.parametrize(("key", "value", "new"), VALUES)
def test_a_former_value_is_refused_with_the_new_one(tmp_path, key, value, new):
    path = tmp_path / "params.yaml"
    message, line = read(path, key, value)
    if message.endswith(f"renamed to {new}"):
        assert message == f"{path}:{line}: {key}: {value} renamed to {new}"
    else:
        assert f"{value} to {new} ({line})" in message
    places_of, _, name = key.rpartition(".")
    name = {"overlap": "decontaminate", "smoothing_over": "label_smoothing_target"}.get(name, name)
    assert "is not one of" not in read(path, f"{places_of}.{name}", new)[0]


def test_a_whole_file_of_former_names_is_refused_in_one_line():
    with pytest.raises(UserError) as error:
        load(BEFORE)
    assert str(error.value) == (
        f"{BEFORE}:13: corpora.phrasebook-en-de.about: renamed to license_and_citation; all of "
        "them, with their lines: about to license_and_citation (13, 24, 29, 35, 52, 57, 63),"
        " licence to license (15),"
        " unprinted to non_printing (38), overlap to decontaminate (39),"
        " folded to normalized (39), by to name (43, 92),"
        " merges to num_merges (44), engine to learner (44),"
        " positions to positional_encoding (80), max_length to max_positions (81),"
        " tie to tie_embeddings (86), initialisation to init (87),"
        " batch_tokens to max_tokens (90), updates to max_updates (91, 117),"
        " epsilon to eps (92), schedule to lr_schedule (93),"
        " inverse_square_root to inverse_sqrt (93), peak to lr (93),"
        " warmup to warmup_updates (93), start to warmup_init_lr (93),"
        " smoothing_over to label_smoothing_target (96), vocabulary to uniform (96),"
        " measure to validation_metric (100), alpha to length_penalty.alpha (105, 119),"
        " penalty to length_penalty.kind (105, 119), max_ratio to max_len_a (105, 119),"
        " max_extra to max_len_b (105, 119), no_repeat to no_repeat_ngram (106, 120),"
        " unknown to allow_unk (106, 120)"
    )


def test_a_rule_of_ones_own_may_have_a_former_name(tmp_path, monkeypatch):
    path = tmp_path / "params.yaml"
    path.write_text("corpora: {c: {filter: {language: {likelier: 3}}}}\n")
    assert renamed.refusal(load_yaml(path), path) is not None
    monkeypatch.setattr(renamed, "CHECKS", {"language": None})
    assert renamed.refusal(load_yaml(path), path) is None
