"""The generated pages of docs/ are those of the code, and have every setting and command."""

import dataclasses
import re
import subprocess
import sys
import typing
from collections.abc import Iterator
from typing import Any

import pytest

from bleuprint.cli.main import command_parser
from bleuprint.config.experiment import Settings
from bleuprint.runtime.schema import Named
from root import ROOT

PAGES = {
    name: (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
    for name in ("settings", "commands")
}


@pytest.mark.parametrize("page", PAGES)
def test_the_committed_page_is_that_of_the_code(page: str) -> None:
    """Otherwise: bleuprint reference settings > docs/settings.md, and likewise commands."""
    command = [sys.executable, "-m", "bleuprint", "reference", page]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    assert done.stdout.decode() == PAGES[page]


def _dataclasses(kind: Any) -> Iterator[type]:
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        yield kind
        for hint in typing.get_type_hints(kind, include_extras=True).values():
            yield from _dataclasses(hint)
    for part in typing.get_args(kind):
        yield from part.kinds.values() if isinstance(part, Named) else _dataclasses(part)


def test_every_field_of_every_dataclass_is_on_the_page() -> None:
    kinds = set(_dataclasses(Settings))
    assert len(kinds) > 30  # with the rules
    for kind in kinds:
        for field in dataclasses.fields(kind):
            assert f"`{field.name}`" in PAGES["settings"], (kind, field.name)


def _cells(section: str, setting: str) -> list[str]:
    rows = PAGES["settings"].split(f"# `{section}`\n")[1].split("\n#")[0]
    (row,) = re.findall(rf"^\| `{setting}` \| (.*) \|$", rows, re.MULTILINE)
    return row.split(" | ")


def test_types_ranges_and_values_of_recipes() -> None:
    """Against params.yaml, table2.yaml and the dataclasses, read by eye."""
    shown = {
        ("systems.NAME.model", "d_model"): [
            "whole number from 1 to 1000000",
            "`96`",
            "`512`",
        ],
        ("systems.NAME.model", "norm"): ["`post`, `pre`", "`post`", "`post`"],
        ("systems.NAME.train", "label_smoothing"): ["number from 0, below 1", "`0.1`", "`0.1`"],
        ("systems.NAME.train", "patience"): ["whole number at least 1; optional", "–", "–"],
        ("systems.NAME.average", "ensemble"): ["`true`, `false`; optional, `false`", "–", "–"],
        ("corpora.NAME.vocabulary.bpe", "joint"): ["`true`, `false`", "`true`", "`true`"],
        ("systems.NAME.average", "updates"): ["2 whole numbers at least 1; optional", "–", "–"],
        ("corpora.NAME.split", "every"): ["whole number at least 2; optional", "–", "–"],
    }
    assert {key: _cells(*key) for key in shown} == shown
    files = "[`corpora.NAME.files.train.NAME`](#corporanamefilestrainname)"
    assert _cells("corpora.NAME.files", "tests")[0] == f"by name: {files}"
    assert "| `seeds` | list of whole numbers from 0 to 4294967295 |" in PAGES["settings"]
    length = (
        "{`min`: whole number at least 1; `max`: whole number at least 1}; optional. Drops a pair"
    )
    cells = _cells("corpora.NAME.filter", "length")
    assert cells[0].startswith(length) and cells[1] == "`{min: 1, max: 60}`"


def test_every_command_and_option_is_on_the_page() -> None:
    _, commands = command_parser()
    sections = dict(re.findall(r"(?ms)^### `bleuprint (\S+)`\n(.*?)(?=^##|\Z)", PAGES["commands"]))
    assert sections.keys() == commands.choices.keys()
    for name, parser in commands.choices.items():
        named = set(re.findall(r"^\| `(--[\w-]+)", sections[name], re.MULTILINE))
        shown = re.findall(r"--[\w-]+", parser.format_help().partition("example:")[0])
        assert named == set(shown) - {"--help"}, name
