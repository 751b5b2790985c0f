"""The page's section on data: filtering and corpus statistics as people read them."""

import json
import shutil

import pytest

from bleuprint.report.page.corpora import data_section, mark_unprintable
from bleuprint.report.page.report_data import ReportData
from bleuprint.report.records import collect
from pages import page_of
from result_trees import settings_in, write_all


@pytest.fixture(scope="module")
def original_data(tmp_path_factory):
    """Return the data of a page with one corpus. Tests must not change its files."""
    root = tmp_path_factory.mktemp("corpora")
    settings = settings_in(root, corpora={"news-en-de": ("first",)})
    write_all(root, settings)
    return ReportData(settings, collect(settings, root), root)


@pytest.fixture
def data(original_data, tmp_path):
    """Return the data in a copy of the folder, which a test may change.

    Each of seven stages drops one of 10,000 training pairs.
    """
    root = shutil.copytree(original_data.root, tmp_path / "copy")
    return ReportData(original_data.settings, original_data.records, root)


def rows_of(section):
    """Return the cells of every row of every table of the section."""
    rows = []
    for table in page_of(section).tables["data"]:
        rows += table.rows
    return rows


def change_filter_stats(data, stage, **train):
    """Change what a data stage says of the training text, such as `dropped` by the rule."""
    path = data.root / "data" / "filter_stats" / "news-en-de" / f"{stage}.json"
    content = json.loads(path.read_text())
    content["sets"]["train"].update(train)
    path.write_text(json.dumps(content))


def test_a_corpus_is_shown_with_the_pairs_before_and_after_filtering(data):
    corpus_row, *_ = rows_of(data_section(data))

    assert corpus_row[:4] == ["news-en-de (en to de)", "10,000", "9,993 (99.93%)", "0"]


def test_each_data_stage_is_shown_with_the_rules_that_changed_something(data):
    """The statistics of each stage also list `idle_rule` and `idle_edit`, with 0 pairs each.

    Rows with 0 pairs would hide the rules that matter, so the page omits both.
    """
    _corpus_row, _title, *stage_rows = rows_of(data_section(data))

    # Each stage drops one of 10,000 pairs by its rule, and changes seven by its edit.
    assert stage_rows[:7] == [
        ["download", "train", "download_rule 1", "download_edit 7", "10,000", "9,999"],
        ["clean", "train", "clean_rule 1", "clean_edit 7", "9,999", "9,998"],
        ["dedup", "train", "dedup_rule 1", "dedup_edit 7", "9,998", "9,997"],
        ["filter", "train", "filter_rule 1", "filter_edit 7", "9,997", "9,996"],
        ["split", "train", "split_rule 1", "split_edit 7", "9,996", "9,995"],
        ["tokenize", "train", "tokenize_rule 1", "tokenize_edit 7", "9,995", "9,994"],
        ["binarize", "train", "binarize_rule 1", "binarize_edit 7", "9,994", "9,993"],
    ]


def test_pairs_that_became_validation_and_test_sets_do_not_count_as_dropped(data):
    """The share of kept pairs tells users how much text their filters cost.

    A pair that moves to a validation or test set is not lost by a filter.
    """
    all_pairs = 10_000
    to_other_sets = 1_000 + 993
    kept = 8_000
    dropped = {"drawn_for_valid": 1_000, "drawn_for_test": 993, "held": 1}
    change_filter_stats(data, "binarize", pairs_out=kept, dropped=dropped)

    corpus_row, *_ = rows_of(data_section(data))

    kept_percent = 100 * kept / (all_pairs - to_other_sets)  # 99.91
    pairs, kept_pairs = corpus_row[1:3]
    assert pairs == "10,000, 1,993 drawn for other sets"
    assert kept_pairs == f"8,000 ({kept_percent:.2f}%)"


def edited_pair(source, new_source):
    """Return a sample of an edit, as statistics of a stage contain it."""
    return {
        "pair": 1,
        "source": source,
        "target": "b",
        "new_source": new_source,
        "new_target": "b",
    }


def sample_html(data, sample):
    """Return the HTML of a sample of an edit in the stage clean."""
    change_filter_stats(data, "clean", samples={"clean_edit": [sample]})
    body = data_section(data).body
    return body.split("<h4>clean: clean_edit</h4>")[1].split("<li>pair 1")[1]


def test_a_sample_shows_characters_that_do_not_print_as_code_points(data):
    """An edit that removes an invisible character would seem to change nothing."""
    soft_hyphen = "\xad"
    line_separator = "\u2028"
    before = f"a{soft_hyphen}b\r{line_separator}<"
    after = "ab <"

    html = sample_html(data, edited_pair(before, after))

    assert '>a<mark title="soft hyphen">U+00AD</mark>b' in html
    assert '<mark title="control character">U+000D</mark>' in html
    assert '<mark title="line separator">U+2028</mark>&lt;</bdi> → <bdi lang="en">ab &lt;' in html
    # The difference is visible, so neither of the two explanations is shown.
    assert "in another Unicode form" not in html
    assert "behind the first" not in html


def test_a_sample_says_that_texts_which_look_the_same_differ_in_their_unicode_form(data):
    """Ä can be one character, or a and a combining diaeresis: the edit would seem to do nothing."""
    a_and_combining_diaeresis = "a\u0308"
    one_character = "\xe4"

    html = sample_html(data, edited_pair(a_and_combining_diaeresis, one_character))

    assert "in another Unicode form" in html
    assert "behind the first" not in html


def test_a_sample_says_that_texts_differ_after_its_end(data):
    """Statistics store the first 200 characters of a text, so an edit after them is not visible."""
    first_200_characters = "x" * 200

    html = sample_html(data, edited_pair(first_200_characters, first_200_characters))

    assert "x</bdi>…" in html
    assert "behind the first 200 characters" in html


@pytest.fixture
def overlap_section(data):
    """Return the section if 15 training pairs had a sentence of a test set.

    One of them is a sample, with markup and an override of the direction.
    """
    pair = {"pair": 1234, "source": "<b>&\u202etxet", "target": "b"}
    edited = {**pair, "new_source": "<b>", "new_target": "b"}
    change_filter_stats(
        data,
        "dedup",
        dropped={"source_held_out": 12, "target_held_out": 3},
        samples={"target_held_out": [pair], "unicode": [edited]},
    )
    return data_section(data)


def test_training_pairs_with_a_test_sentence_are_counted_and_explained(overlap_section):
    """The stage dedup dropped 12 pairs with a source, and 3 with a target of a test set."""
    corpus_row, *_ = rows_of(overlap_section)

    _name, _pairs, _kept_pairs, overlap, *_ = corpus_row
    assert overlap == str(12 + 3)
    assert "source_held_out 12, target_held_out 3" in overlap_section.body
    assert "without regard to case, punctuation and spaces" in overlap_section.body


def test_samples_are_escaped(overlap_section):
    assert "pair 1,234" in overlap_section.body
    assert "<b>" not in overlap_section.body
    assert '→ <bdi lang="en">&lt;b&gt;</bdi>' in overlap_section.body


def test_a_test_set_is_shown_with_its_statistics(data):
    """The statistics of `data` are the same for English and German."""
    english_row, german_row = [row for row in rows_of(data_section(data)) if row[0] == "test.first"]

    figures = [
        "30",  # sentences
        "90",  # words
        "3.0",  # words per sentence: 90 / 30
        "120",  # tokens
        "1.33",  # tokens per word: 120 / 90
        "77.8%",  # words that are one token: 70 / 90
        "3",  # unknown tokens
        "17",  # tokens of the longest sentence
    ]
    assert english_row == ["test.first", "en", *figures]
    assert german_row == ["test.first", "de", *figures]


def test_a_corpus_is_shown_with_the_size_of_its_vocabulary_and_rare_tokens(data):
    corpus_row, *_ = rows_of(data_section(data))

    assert corpus_row[4] == "96 (8 rare)"


@pytest.fixture
def section_of_two_parts(data):
    """Return the section if the training text comes from two downloads of 7,000 pairs each."""
    part = {
        "pairs_in": 7000,
        "pairs_out": 5000,
        "changed": {},
        "dropped": {"metadata": 2000},
        "samples": {},
    }
    content = {
        "stage": "download",
        "corpus": "news-en-de",
        "settings": "",
        "sets": {"train.news": part, "train.talks": part},
    }
    path = data.root / "data" / "filter_stats" / "news-en-de" / "download.json"
    path.write_text(json.dumps(content))
    return data_section(data)


def test_each_part_of_a_download_is_a_row(section_of_two_parts):
    """Users can see which of two downloads loses its pairs.

    Of 7,000 pairs of each part, the rule `metadata` dropped 2,000, and no edit changed any.
    """
    download_rows = [row for row in rows_of(section_of_two_parts) if row[0] == "download"]

    # Stage, set, pairs dropped by each rule, pairs changed by each edit, pairs before and after.
    assert download_rows == [
        ["download", "train.news", "metadata 2,000", "–", "7,000", "5,000"],
        ["download", "train.talks", "metadata 2,000", "–", "7,000", "5,000"],
    ]


def test_the_parts_of_a_download_are_added_up_for_the_corpus(section_of_two_parts):
    """The statistics of the last stage say that 9,993 pairs are kept."""
    corpus_row, *_ = rows_of(section_of_two_parts)

    assert corpus_row[1:3] == ["14,000", "9,993 (71.38%)"]


def test_a_character_that_does_not_print_is_shown_as_its_code_point():
    assert mark_unprintable("a<\u200e\x07") == (
        'a&lt;<mark title="left-to-right mark">U+200E</mark>'
        '<mark title="control character">U+0007</mark>'
    )
