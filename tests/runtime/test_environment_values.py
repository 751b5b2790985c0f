"""The values of environment variables: defaults, limits, and what is refused."""

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from bleuprint.runtime import environment, processor
from bleuprint.runtime.errors import UserError


@pytest.mark.parametrize("value", ["", " ", "\t"])
def test_an_empty_variable_is_not_set(monkeypatch, value):
    monkeypatch.setenv("BLEUPRINT_MIRROR", value)
    assert environment.nonempty_variable("BLEUPRINT_MIRROR") is None
    assert environment.mirror() is None
    monkeypatch.delenv("BLEUPRINT_MIRROR")
    assert environment.nonempty_variable("BLEUPRINT_MIRROR") is None


def test_a_mirror_with_a_password_is_refused(monkeypatch):
    monkeypatch.setenv("BLEUPRINT_MIRROR", "https://mirror.example/a")
    assert environment.mirror() == "https://mirror.example/a"
    monkeypatch.setenv("BLEUPRINT_MIRROR", "https://me:hush@mirror.example/a")
    with pytest.raises(UserError, match="BLEUPRINT_MIRROR holds a user name, password or key"):
        environment.mirror()


@pytest.mark.parametrize(
    ("variable", "function", "default"),
    [
        ("BLEUPRINT_WORKERS", environment.worker_count, 7),
        ("BLEUPRINT_PROCESSES", environment.process_count, None),
        ("BLEUPRINT_TIMEOUT", environment.timeout_seconds, 300),
    ],
)
def test_counts(monkeypatch, variable, function, default):
    monkeypatch.setattr(processor, "THIS", replace(processor.THIS, cores=7))
    monkeypatch.delenv(variable, raising=False)
    assert function() == default
    for value, count in (("1", 1), ("12", 12), (" ", default)):
        monkeypatch.setenv(variable, value)
        assert function() == count
    for value in ("0", "-1", "1.5", "many"):
        monkeypatch.setenv(variable, value)
        said = f"^{variable} is '{value}': it must be a whole number from 1$"
        with pytest.raises(UserError, match=said):
            function()


@pytest.mark.parametrize(
    ("value", "arguments", "expected"),
    [
        ("3", {"lowest": 3}, 3),
        ("3", {"lowest": 0, "highest": 3}, 3),
        ("0", {"lowest": 0, "default": 5}, 0),
        (None, {"lowest": 0, "default": 5}, 5),
        (None, {"lowest": 1, "default": 0}, 0),
    ],
)
def test_a_whole_number_within_its_limits(monkeypatch, value, arguments, expected):
    monkeypatch.delenv("RANK", raising=False)
    if value is not None:
        monkeypatch.setenv("RANK", value)
    assert environment.launcher_number("RANK", **arguments) == expected


@pytest.mark.parametrize(
    ("value", "arguments", "limits"),
    [
        ("2", {"lowest": 3}, "from 3"),
        ("4", {"lowest": 0, "highest": 3}, "from 0 to 3"),
        ("-1", {"lowest": 0, "default": 5}, "from 0"),
        ("", {"lowest": 0, "default": 5}, "from 0"),
        ("\u0663", {"lowest": 0}, "from 0"),
        (None, {"lowest": 0}, "from 0"),
    ],
)
def test_any_other_number_is_refused(monkeypatch, value, arguments, limits):
    monkeypatch.delenv("RANK", raising=False)
    if value is not None:
        monkeypatch.setenv("RANK", value)
    said = f"^RANK is {value!r}: it must be a whole number {limits}$"
    with pytest.raises(UserError, match=said):
        environment.launcher_number("RANK", **arguments)


@pytest.mark.parametrize(("value", "emulates"), [("1", True), ("0", False), ("", False)])
def test_formats_are_emulated_where_it_is_asked_for(monkeypatch, value, emulates):
    monkeypatch.setenv("BLEUPRINT_EMULATE", value)
    assert environment.is_emulating() == emulates


def test_a_copy_of_an_experiment_works_in_the_folder_of_the_project(monkeypatch, tmp_path):
    copy = tmp_path / "copy"
    copy.mkdir()
    monkeypatch.chdir(copy)
    monkeypatch.delenv("DVC_ROOT", raising=False)
    assert environment.work_folder() == copy / "work"
    assert not environment.is_experiment_copy()
    monkeypatch.setenv("DVC_ROOT", str(tmp_path))
    assert environment.work_folder() == tmp_path / "work"
    assert environment.is_experiment_copy()


def test_passwords_are_in_the_users_netrc_or_in_the_file_named(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("NETRC", raising=False)
    assert environment.netrc_file() == tmp_path / ".netrc"
    monkeypatch.setenv("NETRC", "~/other")
    assert environment.netrc_file() == tmp_path / "other"


def test_stages_find_this_python_first(monkeypatch):
    monkeypatch.setenv("PATH", "/a:/b")
    first, rest = environment.stage_path().split(os.pathsep, 1)
    assert (Path(first), rest) == (Path(sys.executable).parent, "/a:/b")
