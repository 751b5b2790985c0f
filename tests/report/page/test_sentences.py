"""The page's sentences: what is marked, scored, chosen and left out."""

import re
from html import unescape

import pandas as pd
import pytest

import result_rows
import result_trees as trees
from bleuprint.config.paths import Run
from bleuprint.report.page import sentences
from bleuprint.report.page.lines import SetLines, shown_systems
from bleuprint.report.page.report_data import ReportData
from bleuprint.report.records import collect
from bleuprint.report.score_frame import bleu_rows, score_frame
from bleuprint.scoring.sacrebleu_metrics import sentence_bleu
from bleuprint.text.parallel import read_lines

# Markup, right to left, emoji, control characters, a very long word.
HOSTILE = [
    '<script>document.title="x"</script> & "quotes"',
    "ولد صغير \u202eabc",
    "👍🏽 \x00\x01\u2028ok",
    "w" * 400,
]


def hostile_tree(root):
    """Two systems; some lines of both sides and of outputs are hostile."""
    settings = trees.settings_in(root, corpora={"news-en-de": ("first",)}, attention=True)
    trees.write_texts(root, settings)
    for language in ("en", "de"):
        path = root / "data" / "split" / "news-en-de" / f"test.first.{language}"
        trees.write_lines(path, [*HOSTILE, *[*read_lines(path)][len(HOSTILE) :]])
    trees.describe(root, settings, "news-en-de")
    for system, errors in (("tiny", 0.3), ("small", 0.1)):
        run = Run(system, "news-en-de", 1)
        trees.write_run(root, settings, run, errors)
        lines = [*read_lines(root / run.results_folder / "hypotheses" / "test.first.de")]
        hostile = [*HOSTILE[::-1], *lines[len(HOSTILE) :]]
        trees.translate(root, settings, run, "first", hostile)
    return ReportData(settings, collect(settings, root), root)


@pytest.fixture(scope="module")
def context(tmp_path_factory):
    return hostile_tree(tmp_path_factory.mktemp("tree"))


def made(bleu):
    """Lines of the lengths 1, 2, ... with these scores."""
    texts = ["x" * (i + 1) for i in range(len(next(iter(bleu.values()))))]
    outputs = dict.fromkeys(bleu, texts)
    return SetLines("c", "t", ("en", "de"), texts, texts, outputs, pd.DataFrame(bleu), 0)


def list_of(body):
    """The lines of the list that holds all."""
    return body.split('<div class="lines"')[1].split("<article ")[1:]


def test_every_line_is_there_with_its_texts_and_scores(context):
    section = sentences.sentences_section(context)
    split = context.root / "data" / "split" / "news-en-de"
    sources, references = ([*read_lines(split / f"test.first.{side}")] for side in ("en", "de"))
    found = list_of(section.body)
    assert len(found) == len(sources) == 100
    for number, article in enumerate(found):
        assert f"<h4>{number + 1}</h4>" in article
        texts = [unescape(one) for one in re.findall("<bdi>(.*?)</bdi>", article)]
        if number >= len(HOSTILE):
            assert texts[:2] == [sources[number], references[number]]
    for system in ("tiny", "small"):
        path = context.root / Run(system, "news-en-de", 1).results_folder / "hypotheses"
        lines = [*read_lines(path / "test.first.de")]
        bleu = sentence_bleu(lines, references, "de")
        for number, article in enumerate(found):
            (row,) = re.findall(f"<p><b>{system}</b> (.*?) <i>(.*?)</i>", article)
            assert row[1] == f"{bleu[number]:.1f}"
            same = lines[number] == references[number]
            assert (row[0] == "<em>= reference</em>") == same
            if number >= len(HOSTILE) and not same:
                ours = re.sub("<del>.*?</del>|</?(ins|bdi)>", "", row[0])
                theirs = re.sub("<ins>.*?</ins>|</?(del|bdi)>", "", row[0])
                assert unescape(ours).split() == lines[number].split()
                assert "".join(unescape(theirs).split()) == "".join(references[number].split())


def test_text_is_no_markup_and_has_no_control_characters(context):
    section = sentences.sentences_section(context)
    assert "<script" not in section.body and "&lt;script&gt;" in section.body
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u202e]", section.body)
    assert "<bdi>ولد صغير abc</bdi>" in section.body
    assert sentences.sentences_section(context).body == section.body


def test_only_what_is_too_long_is_cut(monkeypatch):
    monkeypatch.setattr(sentences, "_MAX_CHARACTERS", 9)
    assert sentences._cut_long("123456789") == "123456789"
    assert sentences._cut_long("123456789a") == "123456789 … (cut)"


def test_only_differences_of_short_lines_are_marked(monkeypatch):
    monkeypatch.setattr(sentences, "_MAX_CHARACTERS", 9)
    assert sentences._mark_differences("a b d", "a b c") != [("same", "", "a b d")]
    assert sentences._mark_differences("a b 56789", "a b 01234") != [("same", "", "a b 56789")]
    assert sentences._mark_differences("a b 56789a", "a b c") == [("same", "", "a b 56789 … (cut)")]
    assert sentences._mark_differences("a b c", "a b 56789a") == [("same", "", "a b c")]


def test_worst_and_most_different():
    lines = made({"a": [0.0, 100.0, 0.0, 100.0], "b": [0.0, 40.0, 0.0, 30.0]})
    assert lines.rank_worst_first() == [2, 0, 3, 1]  # of equals the longer one
    assert lines.rank_by_difference() == [3, 1]


def test_what_has_no_room_is_said(context, monkeypatch):
    monkeypatch.setattr(sentences, "BUDGET", 16_000)
    section = sentences.sentences_section(context)
    found = list_of(section.body)
    assert 5 < len(found) < 100
    assert f"The page has room for {len(found)} of 100 lines" in section.body
    assert f"<summary>{len(found)} of 100 lines</summary>" in section.body
    shown = "".join(found).split("</div>")[0]
    assert 12_000 < len(shown.encode()) <= 16_000
    numbers = [int(one) for article in found for one in re.findall(r"<h4>(\d+)</h4>", article)]
    assert numbers == sorted(numbers)


def test_of_many_systems_the_baseline_and_the_best_are_shown():
    scores = {"base": 1.0, "a": 4.0, "b": 2.0, "c": 5.0}
    records = [
        result_rows.record(
            *(name, "news-en-de", "t", score),
            **({} if name == "base" else result_rows.against("base", 0.5)),
        )
        for name, score in scores.items()
    ]
    found = bleu_rows(score_frame(result_rows.frame(*records)))
    assert [shown.row_name for shown in shown_systems(found)] == list(scores)
    assert [shown.row_name for shown in shown_systems(found, 3)] == ["base", "a", "c"]
