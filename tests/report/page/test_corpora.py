"""The page's section on data: ledgers and statistics as people read them."""

import json

import pytest

from bleuprint.report.page.context import ReportContext
from bleuprint.report.page.corpora import corpora
from bleuprint.report.records import collect
from pages import Page
from result_trees import STAGES, settings_in, write_all


def rows_of(body):
    """The cells of every row of every table."""
    tables = Page(f'<section id="data">{body}</section>').tables["data"]
    return [row for table in tables for row in table.rows]


@pytest.fixture(scope="module")
def context(tmp_path_factory):
    root = tmp_path_factory.mktemp("corpora")
    settings = settings_in(root, corpora={"news-en-de": ("first",)})
    write_all(root, settings)
    return ReportContext(settings, collect(settings, root), root)


def change_ledger(context, stage, **train):
    path = context.root / "data" / "ledgers" / "news-en-de" / f"{stage}.json"
    content = json.loads(path.read_text())
    content["sets"]["train"] |= train
    path.write_text(json.dumps(content))


def test_the_funnel_goes_stage_by_stage(context):
    body = corpora(context).body
    assert (
        f"<strong>{9_999 - 6:,} of 10,000 training pairs are trained on (99.93 %).</strong>" in body
    )
    rows = [row for row in rows_of(body) if row[1] in STAGES]
    assert rows == [  # without the rules that did nothing
        ["train", stage, f"{stage}_rule 1", f"{stage}_edit 7", f"{9_999 - number:,}"]
        for number, stage in enumerate(STAGES)
    ]


def test_what_is_drawn_for_other_sets_is_not_dropped(context):
    path = context.root / "data" / "ledgers" / "news-en-de" / "binarize.json"
    before = path.read_text()
    dropped = {"drawn_for_valid": 1_000, "drawn_for_test": 993, "held": 1}
    change_ledger(context, "binarize", pairs_out=8_000, dropped=dropped)
    section = corpora(context).body
    path.write_text(before)
    assert "<strong>8,000 of 8,007 training pairs are trained on (99.91 %).</strong>" in section
    assert "1,993 of 10,000 pairs were drawn for validation and test sets" in section
    assert "drawn_for" not in section.split("<h3>")[1].split("<table>")[0]


def test_a_sample_shows_what_was_changed(context):
    def sample(source, new):
        sides = {"source": source, "target": "b", "new_source": new, "new_target": "b"}
        return {"pair": 1, **sides}

    path = context.root / "data" / "ledgers" / "news-en-de" / "clean.json"
    before = path.read_text()
    samples = [
        sample("a\xadb\r\u2028<", "ab <"),  # what does not print
        sample("a\u0308", "\xe4"),  # what looks the same
        sample("x" * 200, "x" * 200),  # what was cut
    ]
    change_ledger(context, "clean", samples={"clean_edit": samples})
    body = corpora(context).body
    path.write_text(before)
    first, second, third = body.split("<h4>clean: clean_edit</h4>")[1].split("<li>pair 1")[1:4]
    assert '>a<mark title="soft hyphen">U+00AD</mark>b' in first
    assert '<mark title="control character">U+000D</mark>' in first
    assert '<mark title="line separator">U+2028</mark>&lt;</bdi> → <bdi lang="en">ab &lt;' in first
    assert "in another Unicode form" in second and "in another Unicode form" not in first
    assert "x</bdi>…" in third and "behind the first 200 characters" in third
    assert "behind the first" not in first + second


def test_overlap_and_samples_are_told(context):
    assert "compared without regard to case, punctuation and spaces: none was found" in (
        corpora(context).body
    )
    sample = {"pair": 1234, "source": "<b>&\u202etxet", "target": "b"}
    changed = {**sample, "new_source": "<b>", "new_target": "b"}
    dropped = {"source_held_out": 12, "target_held_out": 3}
    change_ledger(
        context,
        "dedup",
        dropped=dropped,
        samples={"target_held_out": [sample], "unicode": [changed]},
    )
    body = corpora(context).body
    assert "15 training pairs held one, and were removed" in body
    assert "source_held_out 12, target_held_out 3" in body
    assert "pair 1,234" in body and "<b>" not in body
    assert '→ <bdi lang="en">&lt;b&gt;</bdi>' in body
    assert corpora(context).body == body


def test_statistics_of_a_corpus(context):
    body = corpora(context).body
    rows = [row for row in rows_of(body) if row[0] == "test.first"]
    assert rows == [
        # 90 words in 30 sentences, 120 tokens; 70 of 90 words are one token
        ["test.first", language, "30", "90", "3.0", "120", "1.33", "77.8 %", "3", "17"]
        for language in ("en", "de")
    ]
    assert "96 tokens, of which 8 occur less than 10 times and 30 less than 100 times" in body


def test_parts_of_a_download_are_told_apart_and_counted(context):
    part = {"pairs_in": 7000, "pairs_out": 5000, "changed": {}, "dropped": {"metadata": 2000}}
    parts = {f"train.{name}": {**part, "samples": {}} for name in ("news", "talks")}
    path = context.root / "data" / "ledgers" / "news-en-de" / "download.json"
    before = path.read_text()
    path.write_text(json.dumps({"sets": parts}))
    section = corpora(context).body
    path.write_text(before)
    rows = [row for row in rows_of(section) if "download" in row]
    assert rows == [
        [f"train.{name}", "download", "metadata 2,000", "–", "5,000"] for name in ("news", "talks")
    ]
    assert "<strong>9,993 of 14,000 training pairs are trained on (71.38 %).</strong>" in section
