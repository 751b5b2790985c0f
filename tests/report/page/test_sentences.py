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

# Lines that could damage a page: markup, text from right to left with an override of direction,
# emoji with control characters and a line separator, and a very long word.
HOSTILE = [
    '<script>document.title="x"</script> & "quotes"',
    "ولد صغير \u202eabc",
    "👍🏽 \x00\x01\u2028ok",
    "w" * 400,
]


def hostile_tree(root):
    """Write results of tiny and small on 100 lines, of which the first four are hostile.

    Sources and references begin with the lines of HOSTILE, translations with the same lines in
    reverse order. Tiny has more errors than small in the other lines.

    Args:
        root: The folder of the experiment.

    Returns:
        The data from which the page is made.
    """
    settings = trees.settings_in(root, corpora={"news-en-de": ("first",)}, attention=True)
    trees.write_texts(root, settings)
    for language in ("en", "de"):
        path = root / "data" / "split" / "news-en-de" / f"test.first.{language}"
        trees.write_lines(path, HOSTILE + list(read_lines(path))[len(HOSTILE) :])
    trees.describe(root, settings, "news-en-de")
    for system, errors in (("tiny", 0.3), ("small", 0.1)):
        run = Run(system, "news-en-de", 1)
        trees.write_run(root, settings, run, errors)
        lines = list(read_lines(root / run.results_folder / "hypotheses" / "test.first.de"))
        trees.translate(root, settings, run, "first", HOSTILE[::-1] + lines[len(HOSTILE) :])
    return ReportData(settings, collect(settings, root), root)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Return the data of a page with hostile sentences. Tests must not change its files."""
    return hostile_tree(tmp_path_factory.mktemp("tree"))


@pytest.fixture(scope="module")
def body(data):
    """Return the HTML of the page's section on sentences."""
    return sentences.sentences_section(data).body


def articles_of(body):
    """Return the HTML of each line in the list of all lines."""
    return body.split('<div class="lines"')[1].split("<article ")[1:]


def read_text(data, name):
    """Return the lines of a text of the corpus, such as test.first.en."""
    return list(read_lines(data.root / "data" / "split" / "news-en-de" / name))


def read_translations(data, system):
    """Return the translations of a system."""
    folder = data.root / Run(system, "news-en-de", 1).results_folder
    return list(read_lines(folder / "hypotheses" / "test.first.de"))


def shown_translation(article, system):
    """Return the HTML of a system's translation in the article of a line, and its BLEU."""
    ((translation, bleu),) = re.findall(f"<p><b>{system}</b> (.*?) <i>(.*?)</i>", article)
    return translation, bleu


def without_spaces(text):
    """Return a text without white space."""
    return "".join(text.split())


def test_every_line_is_shown_with_its_number_source_and_reference(data, body):
    """The first lines, HOSTILE, contain markup and control characters; other tests check these."""
    sources = read_text(data, "test.first.en")
    references = read_text(data, "test.first.de")

    articles = articles_of(body)

    assert len(articles) == len(sources) == 100
    for index, article in enumerate(articles):
        assert f"<h4>{index + 1}</h4>" in article
        if index >= len(HOSTILE):
            shown_source, shown_reference, *_translations = re.findall("<bdi>(.*?)</bdi>", article)
            assert unescape(shown_source) == sources[index]
            assert unescape(shown_reference) == references[index]


@pytest.mark.parametrize("system", ["tiny", "small"])
def test_every_translation_is_shown_with_its_sentence_bleu(data, body, system):
    references = read_text(data, "test.first.de")
    bleu_of_lines = sentence_bleu(read_translations(data, system), references, "de")

    for bleu, article in zip(bleu_of_lines, articles_of(body), strict=True):
        _translation, shown_bleu = shown_translation(article, system)
        assert shown_bleu == f"{bleu:.1f}"


@pytest.mark.parametrize("system", ["tiny", "small"])
def test_a_translation_that_equals_its_reference_is_not_repeated(data, body, system):
    """The page shows `= reference` in its place, and the sentence itself once, as the reference."""
    translations = read_translations(data, system)
    references = read_text(data, "test.first.de")

    for index, article in enumerate(articles_of(body)):
        shown, _ = shown_translation(article, system)
        is_equal = translations[index] == references[index]
        assert (shown == "<em>= reference</em>") == is_equal


@pytest.mark.parametrize("system", ["tiny", "small"])
def test_marked_differences_contain_all_words_of_translation_and_reference(data, body, system):
    """<ins> marks words that only the translation has, <del> those that only the reference has.

    Without the deleted words the text must be the translation, without the inserted ones the
    reference; otherwise the page would show words that nobody wrote.
    """
    translations = read_translations(data, system)
    references = read_text(data, "test.first.de")

    for index, article in enumerate(articles_of(body)):
        is_equal = translations[index] == references[index]
        if index < len(HOSTILE) or is_equal:
            continue
        shown, _ = shown_translation(article, system)
        # First remove the deleted (or inserted) words, then the remaining tags.
        translation = unescape(re.sub("<del>.*?</del>|</?(ins|bdi)>", "", shown))
        reference = unescape(re.sub("<ins>.*?</ins>|</?(del|bdi)>", "", shown))
        assert translation.split() == translations[index].split()
        assert without_spaces(reference) == without_spaces(references[index])


def test_markup_in_sentences_is_escaped(body):
    assert "<script" not in body
    assert "&lt;script&gt;" in body


def test_control_characters_in_sentences_are_removed(body):
    """The override of direction, U+202E, would turn around the text after it."""
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u202e]", body)
    assert "<bdi>ولد صغير abc</bdi>" in body


def test_the_section_is_the_same_each_time(data, body):
    assert sentences.sentences_section(data).body == body


@pytest.fixture
def nine_characters(monkeypatch):
    """Let sentences be cut after nine characters."""
    monkeypatch.setattr(sentences, "_MAX_CHARACTERS", 9)


@pytest.mark.usefixtures("nine_characters")
def test_a_sentence_is_cut_only_if_it_is_too_long():
    assert sentences._cut_long("123456789") == "123456789"
    assert sentences._cut_long("123456789a") == "123456789 … (cut)"


@pytest.mark.usefixtures("nine_characters")
@pytest.mark.parametrize(
    ("translation", "reference"),
    [
        pytest.param("a b d", "a b c", id="short"),
        pytest.param("a b 56789", "a b 01234", id="nine characters"),
    ],
)
def test_differences_of_short_sentences_are_marked(translation, reference):
    pieces = sentences._mark_differences(translation, reference)

    assert pieces != [("same", "", translation)]


@pytest.mark.usefixtures("nine_characters")
@pytest.mark.parametrize(
    ("translation", "reference", "shown"),
    [
        pytest.param("a b 56789a", "a b c", "a b 56789 … (cut)", id="long translation"),
        pytest.param("a b c", "a b 56789a", "a b c", id="long reference"),
    ],
)
def test_differences_of_long_sentences_are_not_marked(translation, reference, shown):
    """Finding them takes time that grows with the square of the length."""
    pieces = sentences._mark_differences(translation, reference)

    assert pieces == [("same", "", shown)]


@pytest.fixture
def four_lines():
    """Return four lines of 1, 2, 3 and 4 characters with the sentence BLEU of a and b."""
    texts = ["x", "xx", "xxx", "xxxx"]
    bleu = pd.DataFrame({"a": [0.0, 100.0, 0.0, 100.0], "b": [0.0, 40.0, 0.0, 30.0]})
    return SetLines(
        task="c",
        test="t",
        languages=("en", "de"),
        sources=texts,
        references=texts,
        outputs={"a": texts, "b": texts},
        bleu=bleu,
        hidden_systems=0,
    )


def test_lines_are_ranked_by_the_lowest_bleu_and_equal_ones_by_their_length(four_lines):
    """The lines 0 and 2 have BLEU 0 in both systems, and line 2 is longer."""
    assert four_lines.rank_worst_first() == [2, 0, 3, 1]


def test_lines_are_ranked_by_the_difference_between_systems(four_lines):
    """Line 3 differs by 70, line 1 by 60; lines without a difference are left out."""
    assert four_lines.rank_by_difference() == [3, 1]


@pytest.fixture
def small_body(data, monkeypatch):
    """Return the HTML of the sentences if they have room for 16,000 bytes."""
    monkeypatch.setattr(sentences, "MAX_BYTES", 16_000)
    return sentences.sentences_section(data).body


def test_a_section_without_room_for_all_lines_says_how_many_it_shows(small_body):
    """The test set has 100 lines; the size of the section is limited to 16,000 bytes here."""
    shown_lines = len(articles_of(small_body))

    assert 5 < shown_lines < 100
    assert f"The page has room for {shown_lines} of 100 lines" in small_body
    assert f"<summary>{shown_lines} of 100 lines</summary>" in small_body


def test_the_shown_lines_use_most_of_their_room(small_body):
    lines, *_ = "".join(articles_of(small_body)).split("</div>")

    assert 12_000 < len(lines.encode()) <= 16_000


def test_lines_that_were_chosen_stay_in_the_order_of_the_test_set(small_body):
    """The section has room for some of 100 lines, and takes the most interesting ones first."""
    line_numbers = []
    for article in articles_of(small_body):
        (number,) = re.findall(r"<h4>(\d+)</h4>", article)
        line_numbers.append(int(number))

    assert line_numbers == sorted(line_numbers)


@pytest.fixture
def four_systems():
    """Return the scores of the baseline base and three systems that are better."""
    test = result_rows.compared_with("base", p=0.5)
    records = result_rows.records_from_rows(
        result_rows.record("base", "news-en-de", "t", bleu=1.0),
        result_rows.record("a", "news-en-de", "t", bleu=4.0, **test),
        result_rows.record("b", "news-en-de", "t", bleu=2.0, **test),
        result_rows.record("c", "news-en-de", "t", bleu=5.0, **test),
    )
    return bleu_rows(score_frame(records))


def test_a_few_systems_are_all_shown(four_systems):
    names = [row.row_name for row in shown_systems(four_systems)]

    assert names == ["base", "a", "b", "c"]


def test_of_too_many_systems_the_baseline_and_the_best_are_shown(four_systems):
    names = [row.row_name for row in shown_systems(four_systems, 3)]

    assert names == ["base", "a", "c"]
