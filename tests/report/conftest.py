"""Results of two systems with two seeds, and a copy for tests that change them."""

import pickle
import shutil
from pathlib import Path
from typing import Any

import pytest
from markupsafe import Markup

import result_trees as trees
from bleuprint.config.experiment import Settings
from bleuprint.report.page import curves
from bleuprint.report.page.context import ReportContext
from bleuprint.scoring import significance


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer trials of randomization, and each chart drawn once: equal data give equal charts."""
    monkeypatch.setattr(significance, "TRIALS", 500)
    monkeypatch.setattr(curves, "_chart", drawn_once)


_DRAWN: dict[bytes, Markup] = {}
_chart = curves._chart


def drawn_once(context: ReportContext, *chart: Any) -> Markup:
    settings = context.settings
    key = pickle.dumps((list(settings.systems), settings.seeds, *chart))
    if key not in _DRAWN:
        _DRAWN[key] = _chart(context, *chart)
    return _DRAWN[key]


@pytest.fixture(scope="module", name="made")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Settings]:
    root = tmp_path_factory.mktemp("made")
    settings = trees.settings_in(root, seeds=(3, 1))
    trees.write_all(root, settings)
    return root, settings


@pytest.fixture
def copy(made: tuple[Path, Settings], tmp_path: Path) -> tuple[Path, Settings]:
    shutil.copytree(made[0], tmp_path / "copy")
    return tmp_path / "copy", made[1]
