"""The page's section on data: filtering and corpus statistics as people read them."""

import json
import shutil

import pytest

from bleuprint.report.page.corpora import data_section, mark_unprintable
from bleuprint.report.page.report_data import ReportData
from bleuprint.report.records import collect
from pages import page_of
from result_trees import STAGES, settings_in, write_all


def rows_of(section):
    """The cells of every row of every table."""
    return [row for table in page_of(section).tables["data"] for row in table.rows]


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    root = tmp_path_factory.mktemp("corpora")
    settings = settings_in(root, corpora={"news-en-de": ("first",)})
    write_all(root, settings)
    return root, settings, collect(settings, root)


@pytest.fixture
def context(tree, tmp_path):
    root, settings, records = tree
    return ReportData(settings, records, shutil.copytree(root, tmp_path / "copy"))


def change_filter_stats(context, stage, **train):
    path = context.root / "data" / "filter_stats" / "news-en-de" / f"{stage}.json"
    content = json.loads(path.read_text())
    content["sets"]["train"] |= train
    path.write_text(json.dumps(content))


def test_the_funnel_goes_stage_by_stage(context):
    first, _, *rows = rows_of(data_section(context))
    assert first[:4] == ["news-en-de (en to de)", "10,000", "9,993 (99.93%)", "0"]
    assert rows[: len(STAGES)] == [  # without the rules that did nothing
        [stage, "train", f"{stage}_rule 1", f"{stage}_edit 7", f"{left + 1:,}", f"{left:,}"]
        for stage, left in zip(STAGES, range(9_999, 0, -1), strict=False)
    ]


def test_what_is_drawn_for_other_sets_is_not_dropped(context):
    dropped = {"drawn_for_valid": 1_000, "drawn_for_test": 993, "held": 1}
    change_filter_stats(context, "binarize", pairs_out=8_000, dropped=dropped)
    (first, *_) = rows_of(data_section(context))
    assert first[1:3] == ["10,000, 1,993 drawn for other sets", "8,000 (99.91%)"]


def test_a_sample_shows_what_was_changed(context):
    def sample(source, new):
        sides = {"source": source, "target": "b", "new_source": new, "new_target": "b"}
        return {"pair": 1, **sides}

    samples = [
        sample("a\xadb\r\u2028<", "ab <"),  # what does not print
        sample("a\u0308", "\xe4"),  # what looks the same
        sample("x" * 200, "x" * 200),  # what was cut
    ]
    change_filter_stats(context, "clean", samples={"clean_edit": samples})
    body = data_section(context).body
    first, second, third = body.split("<h4>clean: clean_edit</h4>")[1].split("<li>pair 1")[1:4]
    assert '>a<mark title="soft hyphen">U+00AD</mark>b' in first
    assert '<mark title="control character">U+000D</mark>' in first
    assert '<mark title="line separator">U+2028</mark>&lt;</bdi> → <bdi lang="en">ab &lt;' in first
    assert "in another Unicode form" in second and "in another Unicode form" not in first
    assert "x</bdi>…" in third and "behind the first 200 characters" in third
    assert "behind the first" not in first + second


def test_overlap_and_samples_are_told(context):
    sample = {"pair": 1234, "source": "<b>&\u202etxet", "target": "b"}
    changed = {**sample, "new_source": "<b>", "new_target": "b"}
    dropped = {"source_held_out": 12, "target_held_out": 3}
    change_filter_stats(
        context,
        "dedup",
        dropped=dropped,
        samples={"target_held_out": [sample], "unicode": [changed]},
    )
    section = data_section(context)
    body = section.body
    assert rows_of(section)[0][3] == "15"
    assert "without regard to case, punctuation and spaces" in body
    assert "source_held_out 12, target_held_out 3" in body
    assert "pair 1,234" in body and "<b>" not in body
    assert '→ <bdi lang="en">&lt;b&gt;</bdi>' in body


def test_statistics_of_a_corpus(context):
    found = rows_of(data_section(context))
    assert [row for row in found if row[0] == "test.first"] == [
        # 90 words in 30 sentences, 120 tokens; 70 of 90 words are one token
        ["test.first", language, "30", "90", "3.0", "120", "1.33", "77.8%", "3", "17"]
        for language in ("en", "de")
    ]
    assert found[0][4] == "96 (8 rare)"


def test_parts_of_a_download_are_told_apart_and_counted(context):
    part = {"pairs_in": 7000, "pairs_out": 5000, "changed": {}, "dropped": {"metadata": 2000}}
    parts = {f"train.{name}": {**part, "samples": {}} for name in ("news", "talks")}
    path = context.root / "data" / "filter_stats" / "news-en-de" / "download.json"
    filter_stats = {"stage": "download", "corpus": "news-en-de", "settings": "", "sets": parts}
    path.write_text(json.dumps(filter_stats))
    first, *rows = rows_of(data_section(context))
    assert [row for row in rows if row[0].startswith("download")] == [
        ["download", f"train.{name}", "metadata 2,000", "–", "7,000", "5,000"]
        for name in ("news", "talks")
    ]
    assert first[1:3] == ["14,000", "9,993 (71.38%)"]


def test_what_does_not_print_is_shown_as_its_code_point():
    assert mark_unprintable("a<\u200e\x07") == (
        'a&lt;<mark title="left-to-right mark">U+200E</mark>'
        '<mark title="control character">U+0007</mark>'
    )
