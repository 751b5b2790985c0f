"""The values of environment variables: defaults, limits, and what is refused."""

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from bleuprint.runtime import environment, processor
from bleuprint.runtime.errors import UserError


@pytest.mark.parametrize("value", ["", " ", "\t"])
def test_a_variable_that_contains_only_spaces_counts_as_missing(monkeypatch, value):
    monkeypatch.setenv("BLEUPRINT_MIRROR", value)

    assert environment.nonempty_variable("BLEUPRINT_MIRROR") is None
    assert environment.mirror() is None


def test_a_missing_variable_has_no_value(monkeypatch):
    monkeypatch.delenv("BLEUPRINT_MIRROR", raising=False)

    assert environment.nonempty_variable("BLEUPRINT_MIRROR") is None


def test_the_address_of_the_mirror_is_returned(monkeypatch):
    monkeypatch.setenv("BLEUPRINT_MIRROR", "https://mirror.example/a")

    assert environment.mirror() == "https://mirror.example/a"


def test_a_mirror_with_a_password_is_refused(monkeypatch):
    """The address is copied into records and reports, which others may read."""
    monkeypatch.setenv("BLEUPRINT_MIRROR", "https://me:hush@mirror.example/a")

    with pytest.raises(UserError, match="BLEUPRINT_MIRROR contains a user name, password or key"):
        environment.mirror()


@pytest.mark.parametrize(
    ("variable", "function", "default"),
    [
        ("BLEUPRINT_WORKERS", environment.worker_count, 7),
        ("BLEUPRINT_PROCESSES", environment.process_count, None),
        ("BLEUPRINT_GPUS", environment.gpu_limit, None),
        ("BLEUPRINT_TIMEOUT", environment.timeout_seconds, 300),
    ],
)
def test_a_count_is_read_from_its_variable_or_has_a_default(
    monkeypatch, variable, function, default
):
    """By default there are as many workers as cores; this machine is said to have 7."""
    monkeypatch.setattr(processor, "THIS", replace(processor.THIS, cores=7))

    monkeypatch.delenv(variable, raising=False)
    assert function() == default

    monkeypatch.setenv(variable, " ")
    assert function() == default

    monkeypatch.setenv(variable, "12")
    assert function() == 12

    monkeypatch.setenv(variable, "1")
    assert function() == 1


@pytest.mark.parametrize("value", ["0", "-1", "1.5", "many"])
@pytest.mark.parametrize(
    ("variable", "function"),
    [
        ("BLEUPRINT_WORKERS", environment.worker_count),
        ("BLEUPRINT_PROCESSES", environment.process_count),
        ("BLEUPRINT_GPUS", environment.gpu_limit),
        ("BLEUPRINT_TIMEOUT", environment.timeout_seconds),
    ],
)
def test_a_count_that_is_not_a_positive_whole_number_is_refused(
    monkeypatch, variable, function, value
):
    monkeypatch.setenv(variable, value)

    expected = f"^{variable} is '{value}'. It must be a whole number from 1$"
    with pytest.raises(UserError, match=expected):
        function()


@pytest.mark.parametrize(
    ("value", "arguments", "expected"),
    [
        pytest.param("3", {"lowest": 3}, 3, id="lowest value"),
        pytest.param("3", {"lowest": 0, "highest": 3}, 3, id="highest value"),
        pytest.param("0", {"lowest": 0, "default": 5}, 0, id="zero instead of the default"),
        pytest.param(None, {"lowest": 0, "default": 5}, 5, id="default"),
        pytest.param(None, {"lowest": 1, "default": 0}, 0, id="default below the lowest value"),
    ],
)
def test_the_number_that_a_launcher_sets_is_read(monkeypatch, value, arguments, expected):
    """A launcher of several processes, such as torchrun, numbers them in the variable RANK."""
    monkeypatch.delenv("RANK", raising=False)
    if value is not None:
        monkeypatch.setenv("RANK", value)

    assert environment.launcher_number("RANK", **arguments) == expected


@pytest.mark.parametrize(
    ("value", "arguments", "limits"),
    [
        pytest.param("2", {"lowest": 3}, "from 3", id="below the lowest value"),
        pytest.param("4", {"lowest": 0, "highest": 3}, "from 0 to 3", id="above the highest"),
        pytest.param("-1", {"lowest": 0, "default": 5}, "from 0", id="negative"),
        pytest.param("", {"lowest": 0, "default": 5}, "from 0", id="empty"),
        pytest.param("\u0663", {"lowest": 0}, "from 0", id="Arabic digit three"),
        pytest.param(None, {"lowest": 0}, "from 0", id="missing"),
    ],
)
def test_a_wrong_number_from_a_launcher_is_refused(monkeypatch, value, arguments, limits):
    """A launcher of several processes, such as torchrun, numbers them in the variable RANK."""
    monkeypatch.delenv("RANK", raising=False)
    if value is not None:
        monkeypatch.setenv("RANK", value)

    expected = f"^RANK is {value!r}. It must be a whole number {limits}$"
    with pytest.raises(UserError, match=expected):
        environment.launcher_number("RANK", **arguments)


@pytest.mark.parametrize(("value", "is_emulating"), [("1", True), ("0", False), ("", False)])
def test_the_value_one_switches_the_emulation_of_number_formats_on(
    monkeypatch, value, is_emulating
):
    """A processor without bfloat16 can emulate it, slowly."""
    monkeypatch.setenv("BLEUPRINT_EMULATE", value)

    assert environment.is_emulating() == is_emulating


def test_files_of_running_work_are_stored_in_the_current_project(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DVC_ROOT", raising=False)

    assert environment.work_folder() == tmp_path / "work"
    assert not environment.is_experiment_copy()


def test_a_dvc_experiment_stores_its_files_in_the_original_project(monkeypatch, tmp_path):
    """DVC runs an experiment in a copy, which it removes; DVC_ROOT names the original project."""
    copy = tmp_path / "copy"
    copy.mkdir()
    monkeypatch.chdir(copy)
    monkeypatch.setenv("DVC_ROOT", str(tmp_path))

    assert environment.work_folder() == tmp_path / "work"
    assert environment.is_experiment_copy()


def test_passwords_are_read_from_the_netrc_file_of_the_user(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("NETRC", raising=False)

    assert environment.netrc_file() == tmp_path / ".netrc"


def test_the_variable_netrc_names_another_file_of_passwords(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NETRC", "~/other")

    assert environment.netrc_file() == tmp_path / "other"


def test_stages_search_for_programs_beside_this_python_first(monkeypatch):
    """DVC starts each stage as `python`, which must be the Python of this environment."""
    monkeypatch.setenv("PATH", "/a:/b")

    folders = environment.stage_path().split(os.pathsep)

    assert Path(folders[0]) == Path(sys.executable).parent
    assert folders[1:] == ["/a", "/b"]
