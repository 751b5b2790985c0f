"""`over` of a system: its rows equal those that are written by hand, and draws repeat."""

import math

import pytest

from bleuprint.config.experiment import load_resolved
from bleuprint.config.paths import RESOLVED
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import write_json
from params import PARAMS, read

LR = "train.lr_schedule.inverse_sqrt.lr"
SWEEP = f"{{like: base, over: {{{LR}: [0.002, 1e-5], decode.beam: [1, 4]}}}}"
BY_HAND = """\
  lr-0p002-1: {like: base, train: {lr_schedule: {inverse_sqrt: {lr: 0.002}}}, decode: {beam: 1}}
  lr-0p002-4: {like: lr-0p002-1, decode: {beam: 4}}
  lr-1e-05-1: {like: lr-0p002-1, train: {lr_schedule: {inverse_sqrt: {lr: 0.00001}}}}
  lr-1e-05-4: {like: lr-1e-05-1, decode: {beam: 4}}
"""


def text(rows):
    return PARAMS.replace("published: []", f"{rows}published: []")


def swept(folder, over, corpora=""):
    """The settings with a system x that is like base, over some settings."""
    return read(folder, text(f"  x: {{like: base, over: {over}{corpora}}}\n"))


def test_rows_equal_those_written_by_hand(tmp_path):
    after = "  last: {like: lr-1e-05-4, model: {d_ff: 4}}\n"  # in the order of params.yaml
    settings = read(tmp_path, text(f"  lr: {SWEEP}\n{after}"))
    by_hand = read(tmp_path, text(BY_HAND + after))
    assert settings.systems == by_hand.systems == ["base", *settings.sweeps["lr"], "last"]
    assert settings.cells == by_hand.cells | {"lr": {"own": None}}
    resolved = settings.resolved()
    left_out = resolved["cells"].pop("lr")  # an entry for DVC's matrix, which trains nothing
    assert set(left_out["own"].values()) == {False}
    assert resolved.pop("sweeps") == {"lr": list(settings.sweeps["lr"])}
    assert resolved == by_hand.resolved()


def test_stages_read_the_rows(tmp_path):
    settings = read(tmp_path, text(f"  lr: {SWEEP}\n"))
    write_json(tmp_path / RESOLVED, {**settings.resolved(), "inputs": {}, "code": {}})
    assert load_resolved(tmp_path) == settings
    with pytest.raises(UserError, match="lr is a sweep; its systems are lr-0p002-1, lr-0p002-4, "):
        settings.on_corpora("lr")


def test_what_is_like_a_sweep_is_one(tmp_path):
    one = "  x: {like: base, over: {train.label_smoothing: [0.0, 0.2]}}\n"
    two = "  y: {like: x, model: {d_ff: 4}}\n  z: {like: x, over: null}\n"
    settings = read(tmp_path, text(one + two))
    assert settings.systems == ["base", "x-0p0", "x-0p2", "y-0p0", "y-0p2", "z"]
    assert settings.system("y-0p2").model.d_ff == 4
    assert settings.system("y-0p2").train == settings.system("x-0p2").train
    assert settings.cells["z"] == settings.cells["base"]


def test_values_of_every_kind_name_their_row(tmp_path):
    kinds = "{model.norm: [pre, post], train.compile: [true, false], train.keep.last: [2, 3]}"
    names = swept(tmp_path, kinds).sweeps["x"]
    assert names[:3] == ("x-pre-true-2", "x-pre-true-3", "x-pre-false-2") and len(names) == 8


def test_a_row_keeps_what_it_has_on_a_corpus(tmp_path):
    own = ", corpora: {own: {train: {clip_norm: 3.0}}}"
    settings = swept(tmp_path, "{decode.beam: [2, 3]}", own)
    assert [settings.system(name).train.clip_norm for name in settings.sweeps["x"]] == [3, 3]
    # what is swept is so on each corpus
    settings = swept(tmp_path, "{train.clip_norm: [2.0, 4.0]}", own)
    assert [settings.system(name).train.clip_norm for name in settings.sweeps["x"]] == [2, 4]
    settings = swept(tmp_path, "{corpora.own.train.clip_norm: [2.0, 4.0]}")
    assert [settings.system(name).train.clip_norm for name in settings.sweeps["x"]] == [2, 4]


DRAWN = f"""{{random: {{n: 40, seed: 7}}, {LR}: {{min: 1e-4, max: 0.1, log: true}},
    train.lr_schedule.inverse_sqrt.warmup_updates: {{min: 10, max: 13}},
    train.label_smoothing: {{min: 0.0, max: 0.3}}, decode.beam: [1, 4]}}"""


def test_draws_repeat_and_are_within_their_ranges(tmp_path):
    settings = swept(tmp_path, DRAWN)
    again, other = swept(tmp_path, DRAWN), swept(tmp_path, DRAWN.replace("seed: 7", "seed: 8"))
    assert again == settings and other.sweeps != settings.sweeps
    systems = [settings.system(name) for name in settings.sweeps["x"]]
    assert len(systems) == 40
    schedules = [system.train.lr_schedule.inverse_sqrt for system in systems]
    rates = [schedule.lr for schedule in schedules]
    assert all(1e-4 <= rate <= 0.1 and float(f"{rate:.3g}") == rate for rate in rates)
    # evenly by magnitude: a third in each of three decades; a plain draw has 1 % in the first
    assert 6 <= sum(rate < 1e-3 for rate in rates) <= 21
    assert 2.2 < -sum(map(math.log10, rates)) / 40 < 2.8
    assert {schedule.warmup_updates for schedule in schedules} == {10, 11, 12, 13}
    assert {system.decode.beam for system in systems} == {1, 4}
    smoothing = [system.train.label_smoothing for system in systems]
    assert all(0 <= value <= 0.3 for value in smoothing) and max(smoothing) > 0.2
    # no draw of another version of Python or of this code gives other rows
    assert settings.sweeps["x"][:2] == ("x-0p000936-10-0p195-1", "x-0p00405-11-0p0174-4")


@pytest.mark.parametrize(
    ("over", "message"),
    [
        ("{train.label_smothing: [0.1, 0.2]}", "over.train.label_smothing: unknown key; did you "),
        ("{like: [base, base2]}", "x.over.like: unknown key; known here"),
        ("{decode.beam: [4]}", "x.over.decode.beam: [4]: one value is no sweep; give several"),
        ("{decode.beam: 4}", "x.over.decode.beam: 4 is not a list of values"),
        ("{1: [2, 3]}", "x.over.1: 1 is no setting, such as decode.beam"),
        ("{decode.beam: [4, 5, 4]}", "x.over.decode.beam: 4 is there twice"),
        ("{train.clip_norm: [1, 1.0]}", "x.over.train.clip_norm: 1.0 is there twice"),
        ("{decode.beam: [4, [5]]}", "x.over.decode.beam: [5] is not a number, text, true or"),
        ("{decode.beam: [4, 0]}", "x.over.decode.beam: 0 is out of range: at least 1"),
        ("{train.label_smoothing: [0.1, '0.1']}", "x.over: two systems are called x-0p1"),
        ("{train.label_smoothing: [0.3, 0.4]}", "x.over: two systems are called x-0p3"),
        ("[0.1, 0.2]", "x.over: not a mapping of settings to lists of values"),
        ("{random: {n: 2, seed: 1}}", "x.over: not a mapping of settings to lists of values"),
        ("{decode.beam: {min: 1, max: 9}}", "x.over.decode.beam: a range needs draws: random: {n"),
        ("{random: {n: 2}, decode.beam: [1, 2]}", "x.over.random: the key 'seed' is missing"),
        ("{random: {n: 3, seed: 1}, decode.beam: [1, 2]}", "n: 3: there are no more than 2 comb"),
        ("{random: {n: 2, seed: 1}, decode.beam: {min: 1}}", "over.decode.beam: the key 'max' is "),
        ("{random: {n: 2, seed: 1}, decode.beam: {min: 3, max: 2}}", "max: 2 is not above min 3"),
        (
            "{random: {n: 2, seed: 1}, decode.beam: {min: 0, max: 2, log: true}}",
            "beam.min: 0: log needs it above 0",
        ),
    ],
)
def test_a_mistake_is_one_line_with_its_place(tmp_path, over, message):
    rows = f"  x-0p3: {{like: base}}\n  x: {{like: base, over: {over}}}\n"
    with pytest.raises(UserError) as raised:
        read(tmp_path, text(rows))
    (line,) = str(raised.value).splitlines()
    number = text(rows).partition("  x: {")[0].count("\n") + 1
    assert (
        line.startswith(f"{tmp_path / 'params.yaml'}:{number}: systems.x.over") and message in line
    )


def test_a_name_that_is_too_long_is_refused(tmp_path):
    with pytest.raises(UserError, match="at most 100"):
        read(tmp_path, text(f"  {'x' * 98}: {{like: base, over: {{decode.beam: [2, 30]}}}}\n"))


def test_the_names_of_sweeps_are_not_written_by_hand(tmp_path):
    with pytest.raises(UserError, match="sweeps: unknown key"):
        read(tmp_path, text("").replace("published: []", "sweeps: {}"))


def test_a_mistake_that_rows_inherit_is_named_once_where_it_stands(tmp_path):
    sweeps = """\
  x: {like: base, corpora: {own: {}}, over: {decode.beam: [2, 3], train.clip_norm: [1.0, 2.0]}}
  y: {like: base, over: {train.label_smoothing: [0.0, 0.2]}}
  z: {like: base, train: {clip_norm: 3.0}}
"""
    wrong = text(sweeps).replace("    average: {last: 2}\n", "    average:\n      last: 9\n")
    with pytest.raises(UserError) as raised:
        read(tmp_path, wrong)
    number = wrong.partition("      last: 9")[0].count("\n") + 1
    begin = f"{tmp_path / 'params.yaml'}:{number}: systems.base: average.last 9: training keeps 2"
    (line,) = str(raised.value).splitlines()
    assert line.startswith(begin)
    # a default stands nowhere: the first row, and the others by name
    wrong = text(sweeps).replace("    average: {last: 2}\n", "").replace("last: 2,", "last: 1,")
    with pytest.raises(UserError) as raised:
        read(tmp_path, wrong)
    (line,) = str(raised.value).splitlines()
    assert ": systems.base: average.last 5: training keeps 1" in line
    assert line.endswith(" (also systems.x.corpora.own, systems.y, systems.z)")


def test_what_is_swept_is_named_in_over(tmp_path):
    over = "{decode.beam: [2, 3], average.last: [1, 9]}"
    with pytest.raises(UserError, match=r"x\.over: average\.last 9: training keeps 2") as raised:
        swept(tmp_path, over)
    assert len(str(raised.value).splitlines()) == 1
