"""The page's attention maps: which are kept if space is short; text is escaped."""

import json
import re
import shutil

import numpy as np
import pytest

import result_trees as trees
from bleuprint.config.paths import Run
from bleuprint.decoding.attention_maps import (
    ATTENTION_KINDS,
    AttentionMap,
    SentenceAttention,
    write_attention,
)
from bleuprint.report.page import attention
from bleuprint.report.page.report_data import ReportData
from bleuprint.report.records import collect

SYSTEMS = ("base", "better", "other")
HOSTILE = ["</script><b>", "مرحبا", "\x01", "👍"]


@pytest.fixture(scope="module")
def context(tmp_path_factory):
    root = tmp_path_factory.mktemp("tree")
    corpora = {"news-en-de": ("first", "second")}
    settings = trees.settings_in(root, SYSTEMS, corpora, attention=True)
    trees.write_texts(root, settings)
    for system, errors in zip(SYSTEMS, (0.3, 0.0, 0.2), strict=True):
        trees.write_run(root, settings, Run(system, "news-en-de", 1), errors)
    return ReportData(settings, collect(settings, root), root)


def entries(body):
    (data,) = re.findall(r'<script type="application/json" id="maps-data">(.*)</script>', body)
    return json.loads(data)


def test_maps_are_of_every_system_the_baseline_first(context):
    section = attention.attention_section(context)
    assert "room for" not in section.body
    assert "Maps of 2 sentences" in section.body
    named = [(one["sentence"], one["system"]) for one in entries(section.body)]
    places = [f"news-en-de, test set {test}, line 1" for test in ("first", "second")]
    assert named == [(place, name) for name in ("base", "better", "other") for place in places]


def test_room_goes_to_the_baseline_first(context, monkeypatch):
    whole = attention.attention_section(context)
    (data,) = re.findall(r'id="maps-data">\[(.*)\]</script>', whole.body)
    sizes = [len(one.encode()) for one in re.split(r',(?=\{"sentence")', data)]
    monkeypatch.setattr(attention, "BUDGET", sum(sizes[:4]))
    section = attention.attention_section(context)
    assert [one["system"] for one in entries(section.body)] == ["base", "base", "better", "better"]
    assert "room for 4 of 6 maps" in section.body
    monkeypatch.setattr(attention, "BUDGET", 1)
    assert len(entries(attention.attention_section(context).body)) == 1


def test_without_maps_there_is_no_section(context, tmp_path):
    """Test sets whose sentences are all too long have none."""
    root = tmp_path / "tree"
    shutil.copytree(context.root, root)
    for system in SYSTEMS:
        path = root / Run(system, "news-en-de", 1).results_folder / "hypotheses" / "attention.json"
        write_attention(path, {"first": [], "second": []})
    without_maps = ReportData(context.settings, context.records, root)
    assert attention.attention_section(without_maps) is None


def test_units_are_no_markup(context):
    path = (
        context.root / Run("base", "news-en-de", 1).results_folder / "hypotheses" / "attention.json"
    )
    kept = path.read_bytes()
    maps = {
        kind: AttentionMap(HOSTILE, HOSTILE, np.full((1, 1, 4, 4), 0.25, np.float32))
        for kind in ATTENTION_KINDS
    }
    try:
        write_attention(path, {name: [SentenceAttention(1, maps)] for name in ("first", "second")})
        section = attention.attention_section(context)
    finally:
        path.write_bytes(kept)
    assert "<b>" not in section.body and section.body.count("<script") == 1
    assert entries(section.body)[0]["maps"]["cross"]["rows"] == [*HOSTILE[:2], "\ufffd", "👍"]


def test_a_page_of_systems_without_attention_has_no_such_section(tmp_path):
    settings = trees.settings_in(tmp_path, ("base",), {"news-en-de": ("first",)})
    trees.write_texts(tmp_path, settings)
    trees.write_run(tmp_path, settings, Run("base", "news-en-de", 1), 0.3)
    context = ReportData(settings, collect(settings, tmp_path), tmp_path)
    assert attention.attention_section(context) is None
