"""`bleuprint exp`: -S in one line before anything runs, and the commands to use afterwards."""

import pytest

from bleuprint.cli.exp import _overrides, check_overrides, next_steps
from bleuprint.runtime.errors import UserError


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "params.yaml"
    path.write_text("seeds: [1]\nsystems:\n  tiny: {decode: {beam: 1}}\n")
    return path


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-S", "systems.tiny.decode.baem=4"], "systems.tiny.decode.baem: unknown key; did you"),
        (["--set-param=systems.tinny.decode.beam=4"], "systems.tinny: unknown key; did you mean"),
        (["-n", "x", "-Sseed=3"], "-S seed=3: .*params.yaml: seed: unknown key; did you mean"),
        (["-S", "nosuch"], "^-S nosuch: not KEY=VALUE$"),
        (["-S", "params.yaml:nosuch"], "^-S params.yaml:nosuch: not KEY=VALUE$"),
        (["-S", "seeds=[1"], r"^-S seeds=\[1: not KEY=VALUE$"),
    ],
)
def test_a_key_that_is_not_there(path, arguments, message):
    with pytest.raises(UserError, match=message):
        check_overrides(_overrides(["run", *arguments]), path)


@pytest.mark.parametrize(
    "argument", ["systems.tiny.decode.beam=1,4", "+systems.new={}", "~seeds", "other.yaml:a.b=3"]
)
def test_a_key_that_is_there_or_is_added(path, argument):
    check_overrides(_overrides(["run", "--temp", "-S", argument]), path)


@pytest.mark.parametrize(
    ("arguments", "tmp_dir", "expected"),
    [
        (["-S", "systems.tiny.decode.beam=1"], True, "tiny tiny@able-jird"),
        (["-S", "seeds=[2]", "-S", "systems.tiny.x=1"], False, "tiny@HEAD tiny@able-jird"),
        (["-S", "seeds=[2]"], True, "HEAD able-jird"),
    ],
)
def test_the_next_step_compares_what_has_been_set(arguments, tmp_dir, expected):
    compare, show = next_steps(_overrides(["run", *arguments]), "able-jird", tmp_dir).splitlines()
    assert compare == f"to compare: bleuprint compare {expected}"
    assert "dvc exp show" in show
