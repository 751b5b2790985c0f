"""The report counts the pairs that were read and dropped in parts of a corpus."""

import pytest

from bleuprint.config.parts import part_filter_stats_file
from bleuprint.config.paths import filter_stats_file
from bleuprint.corpus.steps.filter_stats import STAGES, FilterStats
from bleuprint.report.page.funnel import training_pair_counts, training_pairs_table
from bleuprint.runtime.json_files import write_json


def write_counts(path, stage, set_name, *, kept, rule="", dropped=0):
    """Write the statistics of a stage that has kept and dropped so many pairs of a set."""
    rules = (rule,) if rule else ()
    stats = FilterStats(stage=stage, corpus="own", settings="", rules=rules, edits=())
    counts = stats.add_set(set_name)
    counts.count_kept(kept)
    for _ in range(dropped):
        counts.count_dropped(rule)
    stats.write(path)


@pytest.fixture
def root(tmp_path):
    """The folder of a project whose corpus has the part crawl with 100 pairs and 50 other pairs.

    Cleaning drops 10 pairs of crawl, filtering 20. Of the other 120 pairs, 7 are duplicates. The
    corpus does not have the part news, which another corpus has.
    """
    for stage in ("download", "clean", "filter"):
        write_json(part_filter_stats_file("own", "news", stage, tmp_path), {})
    crawl = {}
    for stage in ("download", "clean", "filter"):
        crawl[stage] = part_filter_stats_file("own", "crawl", stage, tmp_path)
    write_counts(crawl["download"], "download", "train.crawl", kept=100)
    write_counts(crawl["clean"], "clean", "train", kept=90, rule="empty_side", dropped=10)
    write_counts(crawl["filter"], "filter", "train", kept=70, rule="length", dropped=20)
    of_corpus = {stage: filter_stats_file("own", stage, tmp_path) for stage in STAGES}
    for stage in STAGES:
        write_counts(of_corpus[stage], stage, "train", kept=113)
    write_counts(of_corpus["download"], "download", "train.other", kept=50)
    write_counts(of_corpus["clean"], "clean", "train", kept=50)
    write_counts(of_corpus["dedup"], "dedup", "train", kept=113, rule="duplicate", dropped=7)
    return tmp_path


def test_pairs_of_parts_and_of_other_texts_are_counted(root):
    counts = training_pair_counts("own", root)

    assert counts.read == 100 + 50
    assert counts.kept == 113
    assert counts.dropped == {"empty_side": 10, "length": 20, "duplicate": 7}
    assert counts.read - sum(counts.dropped.values()) == counts.kept


def test_the_table_has_the_stages_of_a_part_before_those_of_the_corpus(root):
    table = str(training_pairs_table(["own"], root).rows)

    assert table.index("train.crawl") < table.index("train.other")
    assert "length 20" in table
    assert "news" not in table
