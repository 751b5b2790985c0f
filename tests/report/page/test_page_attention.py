"""The page's attention maps: which are kept if space is short, and that text is escaped.

An attention map shows how much each target token attends to each source token.
"""

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

# Each has maps of the first line of the test sets first and second.
SYSTEMS = ("base", "better", "other")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Return the data of a page with six maps. Tests must not change its files."""
    root = tmp_path_factory.mktemp("tree")
    corpora = {"news-en-de": ("first", "second")}
    settings = trees.settings_in(root, SYSTEMS, corpora, attention=True)
    trees.write_texts(root, settings)
    for system, errors in (("base", 0.3), ("better", 0.0), ("other", 0.2)):
        trees.write_run(root, settings, Run(system, "news-en-de", 1), errors)
    return ReportData(settings, collect(settings, root), root)


@pytest.fixture
def data_copy(data, tmp_path):
    """Return the data in a copy of the folder, which a test may change."""
    root = shutil.copytree(data.root, tmp_path / "copy")
    return ReportData(data.settings, data.records, root)


def attention_file(data, system):
    """Return the path of a system's attention maps."""
    folder = data.root / Run(system, "news-en-de", 1).results_folder
    return folder / "hypotheses" / "attention.json"


def maps_text(body):
    """Return the JSON list of maps that the page contains for its script."""
    (text,) = re.findall(r'<script type="application/json" id="maps-data">(.*)</script>', body)
    return text


def maps_of(body):
    """Return the maps that the page contains."""
    return json.loads(maps_text(body))


def test_maps_of_all_systems_are_shown_the_baseline_first(data):
    """Each of three systems stored the attention of the first line of both test sets."""
    body = attention.attention_section(data).body

    shown_maps = [(entry["system"], entry["sentence"]) for entry in maps_of(body)]
    first = "news-en-de, test set first, line 1"
    second = "news-en-de, test set second, line 1"
    assert shown_maps == [
        ("base", first),
        ("base", second),
        ("better", first),
        ("better", second),
        ("other", first),
        ("other", second),
    ]
    assert "Maps of 2 sentences" in body


def test_the_section_does_not_mention_room_if_all_maps_are_shown(data):
    assert "room for" not in attention.attention_section(data).body


def test_maps_of_the_first_systems_are_kept_if_there_is_no_room_for_all(data, monkeypatch):
    """Attention maps are large, and a page of many megabytes opens slowly.

    Here the limit is set to the size of four of the six maps, two for each system.
    """
    all_maps = maps_text(attention.attention_section(data).body).strip("[]")
    texts_of_maps = re.split(r',(?=\{"sentence")', all_maps)
    size_of_four = sum(len(text.encode()) for text in texts_of_maps[:4])
    monkeypatch.setattr(attention, "MAX_BYTES", size_of_four)

    body = attention.attention_section(data).body

    systems = [entry["system"] for entry in maps_of(body)]
    assert systems == ["base", "base", "better", "better"]
    assert "room for 4 of 6 maps" in body


def test_at_least_one_map_is_shown(data, monkeypatch):
    monkeypatch.setattr(attention, "MAX_BYTES", 1)

    assert len(maps_of(attention.attention_section(data).body)) == 1


def test_there_is_no_section_if_no_sentence_has_a_map(data_copy):
    """Long sentences are stored without a map; if all are long, the section would be empty."""
    for system in SYSTEMS:
        write_attention(attention_file(data_copy, system), {"first": [], "second": []})

    assert attention.attention_section(data_copy) is None


def test_tokens_are_escaped_and_have_no_control_characters(data_copy):
    """Tokens stand inside a <script> element; `</script>` in a token must not end it."""
    hostile_tokens = ["</script><b>", "مرحبا", "\x01", "👍"]
    weights = np.full((1, 1, 4, 4), 0.25, np.float32)  # one layer, one head, four tokens
    maps = dict.fromkeys(ATTENTION_KINDS, AttentionMap(hostile_tokens, hostile_tokens, weights))
    sentence = SentenceAttention(1, maps)
    write_attention(attention_file(data_copy, "base"), {"first": [sentence], "second": [sentence]})

    body = attention.attention_section(data_copy).body

    assert "<b>" not in body
    assert body.count("<script") == 1
    shown_tokens = maps_of(body)[0]["maps"]["cross"]["rows"]
    replacement_character = "\ufffd"
    assert shown_tokens == ["</script><b>", "مرحبا", replacement_character, "👍"]


def test_there_is_no_section_if_the_settings_ask_for_no_attention(tmp_path):
    """Systems store attention only with the setting `decode.attention`."""
    settings = trees.settings_in(
        tmp_path, ("base",), {"news-en-de": ("first",)}, seeds=(1,), attention=None
    )
    trees.write_texts(tmp_path, settings)
    trees.write_run(tmp_path, settings, Run("base", "news-en-de", 1), errors=0.3)

    data = ReportData(settings, collect(settings, tmp_path), tmp_path)

    assert attention.attention_section(data) is None
