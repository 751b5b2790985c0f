"""`bleuprint compare`: two systems of a report, and how it shows them."""

import re
import shutil
import subprocess
import sys
from dataclasses import replace

import pytest
from scipy.stats import ttest_rel

import result_trees as trees
from bleuprint.config.paths import Run
from bleuprint.report import frame
from bleuprint.report.compare import compare_systems, p_values_by_metric, score_texts
from bleuprint.report.compared_sentences import sentence_bleu_changes
from bleuprint.report.compared_systems import ReportedSystem, ScoresPair
from bleuprint.report.frame import RESULTS
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.json_files import read_json
from bleuprint.scoring.record import SCORES_FILE
from bleuprint.text.parallel import read_lines
from comparison import (
    SMALL,
    TINY,
    cells_by_line,
    compare,
    read_references,
    read_translations,
    score_cells,
    write_project,
    write_results,
)
from measuring import paired_tests, value_of
from result_rows import record, records_from_rows
from scoring import example_texts


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """Return the project of `write_project`. Tests must not change its files."""
    root = tmp_path_factory.mktemp("project")
    write_project(root)
    return root


def p_text(p_value):
    """Return a p-value as the table of scores shows it."""
    return f"{p_value:.3f} n.s." if p_value >= 0.05 else f"{p_value:.3f}"


@pytest.fixture
def project_copy(project, tmp_path):
    """Return a copy of the project, which a test may change."""
    return shutil.copytree(project, tmp_path / "copy")


@pytest.fixture(scope="module")
def comparison(project):
    """Return what `compare tiny small` prints, with as many samples as the command draws."""
    with pytest.MonkeyPatch.context() as patch:
        trees.all_samples(patch)
        return compare(project, "tiny", "small")


@pytest.mark.parametrize(
    ("metric", "label"),
    [("bleu", "BLEU"), ("chrf2", "chrF2"), ("chrf2pp", "chrF2++"), ("ter", "TER")],
)
def test_compare_shows_both_scores_and_their_difference(project, comparison, metric, label):
    """`comparison` is what `bleuprint compare tiny small` prints in `project`."""
    tiny_scores = read_json(project / TINY.results_folder / SCORES_FILE)["first"]
    small_scores = read_json(project / SMALL.results_folder / SCORES_FILE)["first"]
    tiny = value_of(tiny_scores, metric)
    small = value_of(small_scores, metric)

    _corpus, _test_set, *cells = score_cells(comparison, label)

    assert cells[:4] == [label, f"{tiny:.1f}", f"{small:.1f}", f"{small - tiny:+.1f}"]


@pytest.mark.usefixtures("all_samples")
def test_compare_shows_the_p_value_of_the_paired_bootstrap_test(project, comparison):
    """`comparison` is what `bleuprint compare tiny small` prints in `project`."""
    translations = {
        "tiny": read_translations(project, TINY),
        "small": read_translations(project, SMALL),
    }
    references = read_references(project)
    test_of_small = paired_tests(translations, references, "de")["small"]["bleu"]

    _corpus, _test_set, _metric, *cells = score_cells(comparison, "BLEU")

    _tiny_score, _small_score, _difference, shown_p_value, *_agreement = cells
    assert shown_p_value == p_text(test_of_small.bootstrap)


def test_compare_says_that_the_settings_are_the_same(comparison):
    assert "The settings are the same.\n" in comparison


@pytest.fixture
def project_with_new_settings(project_copy):
    """Return the project after small got another d_ff and more updates, without new results."""
    params = project_copy / "params.yaml"
    before_small, small = params.read_text("utf-8").split("  small:")
    small = small.replace("updates: 10", "updates: 20").replace("d_ff: 64", "d_ff: 128")
    params.write_text(f"{before_small}  small:{small}", encoding="utf-8")
    return project_copy


def test_compare_refuses_results_of_other_settings(project_with_new_settings):
    error = compare(project_with_new_settings, "tiny", "small", status=1)

    assert "was computed with another params.yaml" in error


def test_compare_lists_the_settings_that_differ(project_with_new_settings):
    """The settings of `small` say d_ff 128 and 20 updates, those of `tiny` 64 and 10."""
    root = project_with_new_settings
    trees.write_run(root, trees.load_settings(root / "params.yaml"), SMALL, errors=0.15)
    write_results(root)

    lines = cells_by_line(compare(root, "tiny", "small"))

    assert ["model.d_ff", "64", "128"] in lines
    assert ["train.max_updates", "10", "20"] in lines


@pytest.fixture(scope="module")
def project_with_three_seeds(tmp_path_factory):
    """Return a project whose two systems are trained with the seeds 1, 2 and 3."""
    root = tmp_path_factory.mktemp("three_seeds")
    settings = trees.settings_in(root, corpora={"news-en-de": ("first",)}, seeds=(1, 2, 3))
    trees.write_all(root, settings)
    write_results(root)
    return root


def bleu_by_seed(root, system):
    """Return the BLEU of a system on `first` with the seeds 1, 2 and 3."""
    values = []
    for seed in (1, 2, 3):
        scores = read_json(root / Run(system, "news-en-de", seed).results_folder / SCORES_FILE)
        values.append(value_of(scores["first"], "bleu"))
    return values


def test_several_seeds_are_compared_by_a_paired_t_test(project_with_three_seeds):
    """Each system was trained with three seeds; runs with the same seed are a pair."""
    root = project_with_three_seeds
    p_value = ttest_rel(bleu_by_seed(root, "tiny"), bleu_by_seed(root, "small")).pvalue

    _corpus, _test_set, _metric, *cells = score_cells(compare(root, "tiny", "small"), "BLEU")

    tiny_score, _small_score, _difference, shown_p_value, *_agreement = cells
    mean_and_deviation = r"\d+\.\d ± \d+\.\d"
    assert re.fullmatch(mean_and_deviation, tiny_score)
    assert shown_p_value == p_text(p_value)


@pytest.mark.parametrize(
    "seeds_of_report", [(1, 2, 3), (3, 1, 2)], ids=["ascending", "another order"]
)
def test_scores_are_in_the_order_of_the_compared_seeds(project_with_three_seeds, seeds_of_report):
    """A paired t-test pairs the runs of two reports by their position.

    The reports may list their seeds in different orders; both must give them in the order asked
    for, or runs of different seeds become pairs.
    """
    root = project_with_three_seeds
    settings = replace(trees.load_settings(root / "params.yaml"), seeds=seeds_of_report)
    system = ReportedSystem(
        "tiny", None, "", settings, frame.load(root), are_corpora_different=False
    )
    compared_seeds = (3, 1, 2)

    (scores,) = system.scores(compared_seeds).values()

    assert tuple(scores.runs.seed) == compared_seeds


def sentences_of_first_test_set(output):
    """Return what `compare` prints of the sentences of the test set `first`."""
    _, _, text = output.partition("test set first\n")
    return text.partition("test set second\n")[0]


@pytest.fixture(scope="module")
def sentence_comparison(project):
    """Return what `compare` prints for a corpus, which includes sentences."""
    return compare(project, "tiny", "small", "--corpus", "news-en-de")


def test_the_most_changed_sentences_come_first(sentence_comparison):
    """Compared are `tiny` and `small`; lines that both translate like the reference do not change.

    In `tiny`, the lines 4, 9 and 10 are wrong in every word, and 21 in a part; in `small`, 31 is.
    """
    text = sentences_of_first_test_set(sentence_comparison)

    _, improved_and_worsened = text.split("Most improved")
    improved, worsened = improved_and_worsened.split("Most worsened")
    line_number = re.compile(r"^line (\d+):", re.MULTILINE)
    assert line_number.findall(improved) == ["4", "9", "10", "21"]
    assert line_number.findall(worsened) == ["31"]
    assert "line 4: +100.0, from 0.0 to 100.0" in improved


def test_the_number_of_changed_sentences_can_be_limited(project):
    """`--sentences 2` shows up to two improved and up to two worsened lines.

    From `small` to `tiny`, line 31 improves; 4, 9 and 10 worsen equally, so 4 and 9 are shown.
    """
    output = compare(project, "small", "tiny", "--corpus", "news-en-de", "--sentences", "2")

    text = sentences_of_first_test_set(output)
    line_numbers = re.findall(r"^line (\d+):", text, re.MULTILINE)
    assert line_numbers == ["31", "4", "9"]


def test_a_changed_sentence_is_shown_with_source_reference_and_both_translations(
    project, sentence_comparison
):
    """Line 4 is translated as `nothing` by `tiny`, and like the reference by `small`."""
    sources = list(read_lines(project / "data/split/news-en-de/test.first.en"))
    source_of_line_4 = sources[3]
    reference_of_line_4 = read_references(project)[3]

    text = sentences_of_first_test_set(sentence_comparison)

    _, _, from_line_4 = text.partition("line 4")
    labeled_sentences = []
    for line in from_line_4.splitlines()[1:5]:
        labeled_sentences.append(line.split(maxsplit=1))
    assert labeled_sentences == [
        ["source", source_of_line_4],
        ["reference", reference_of_line_4],
        ["tiny", "nothing"],
        ["small", reference_of_line_4],
    ]


def test_the_title_of_sentences_names_systems_corpus_seed_and_test_set(sentence_comparison):
    assert "\ntiny and small on news-en-de, seed 1, test set first\n" in sentence_comparison


def test_control_characters_of_sentences_do_not_reach_the_terminal(sentence_comparison):
    """The translation of line 21 contains ESC [31m, which would color the text after it."""
    assert "[31m" in sentence_comparison
    assert "worse" in sentence_comparison
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u202e]", sentence_comparison)


def test_sentences_are_scored_by_the_tokenizer_of_the_target_language(project_copy):
    """BLEU splits Chinese into characters, which gives these sentences other scores than words.

    The references are German; results.json is changed to say that the target language is Chinese.
    """
    root = project_copy
    results = root / RESULTS
    content = results.read_text("utf-8")
    results.write_text(content.replace('"target": "de"', '"target": "zh"'), "utf-8")

    output = compare(root, "tiny", "small", "--corpus", "news-en-de")

    # Lines such as "line 4: +100.0, from 0.0 to 100.0".
    pattern = re.compile(r"^line (\d+): .* from (.*) to (.*)$", re.MULTILINE)
    printed = pattern.findall(sentences_of_first_test_set(output))
    tiny = read_translations(root, TINY)
    small = read_translations(root, SMALL)
    scores = {}
    for language in ("de", "zh"):
        changes = sentence_bleu_changes(tiny, small, read_references(root), language)
        scores[language] = []
        for number, _, _ in printed:
            row = changes.loc[int(number)]
            scores[language].append((number, f"{row['first']:.1f}", f"{row['second']:.1f}"))
    assert printed == scores["zh"]
    assert printed != scores["de"]


def test_systems_may_have_the_names_of_the_labels_of_sentences(tmp_path):
    """Four lines show a sentence: its source, its reference, and two translations by system.

    The systems here are named `reference` and `source`, too; none of the four lines may get lost.
    """
    settings = trees.settings_in(tmp_path, ("reference", "source"), {"news-en-de": ("first",)})
    trees.write_all(tmp_path, settings)
    write_results(tmp_path)

    output = compare(tmp_path, "reference", "source", "--corpus", "news-en-de")

    _, _, from_first_sentence = output.partition("\nline ")
    labels = []
    for line in from_first_sentence.split("\n")[1:5]:
        label, *_words = line.split()
        labels.append(label)
    assert labels == ["source", "reference", "reference", "source"]


@pytest.fixture
def reported_tiny(tmp_path):
    """Return a function that makes a report's system from its BLEU by seed."""
    settings = trees.settings_in(tmp_path, corpora={"news-en-de": ("first",)})

    def make_system(scores, revision="", **facts):
        rows = []
        for seed, bleu in scores.items():
            rows.append(record("tiny", "news-en-de", "first", bleu=bleu, seed=seed, **facts))
        return ReportedSystem(
            "tiny",
            None,
            revision,
            replace(settings, seeds=tuple(scores)),
            records_from_rows(*rows),
            are_corpora_different=False,
        )

    return make_system


def scores_pair(first, second, seeds):
    """Return the scores of two systems on their only test set."""
    (first_scores,) = first.scores(seeds).values()
    (second_scores,) = second.scores(seeds).values()
    return ScoresPair(first_scores, second_scores)


def test_revisions_with_the_same_references_are_compared_by_a_paired_t_test(reported_tiny):
    """One system, as reported on the branch main and now, with three seeds each."""
    old = reported_tiny({1: 30.0, 2: 31.0, 3: 32.0}, revision="main")
    new = reported_tiny({1: 31.0, 2: 31.5, 3: 34.0})

    p_values = p_values_by_metric(old, new, scores_pair(old, new, (1, 2, 3)))

    expected = ttest_rel([30, 31, 32], [31, 31.5, 34]).pvalue
    assert p_values["bleu"] == pytest.approx(expected)


def test_revisions_with_other_references_have_no_p_value(reported_tiny):
    """The test set has changed between main and now, so the scores cannot be tested as pairs."""
    old = reported_tiny({1: 30.0, 2: 31.0, 3: 32.0}, revision="main", references_sha256="4e" * 32)
    new = reported_tiny({1: 31.0, 2: 31.5, 3: 34.0}, references_sha256="99" * 32)

    p_values = p_values_by_metric(old, new, scores_pair(old, new, (1, 2, 3)))

    assert p_values["bleu"] is None


def test_only_seeds_of_both_systems_are_compared(reported_tiny):
    """The new report also has BLEU 90 with seed 2, which the old one lacks: it must not count."""
    old = reported_tiny({1: 30.0}, revision="main")
    new = reported_tiny({1: 31.0, 2: 90.0})

    *_, scores, note, _ = compare_systems(old, new, sentences=0)

    (bleu_texts,) = [texts for texts in map(scores.texts, scores.rows) if texts[2] == "BLEU"]
    old_bleu, new_bleu, difference = bleu_texts[3:6]
    assert old_bleu == "30.0"
    assert new_bleu == "31.0"
    assert difference == "+1.0"
    assert note.startswith("Seeds: 1. p: ")


def test_systems_without_a_common_seed_are_refused(reported_tiny):
    """Runs with the same seed are compared as pairs; here the reports have the seeds 1 and 2."""
    old = reported_tiny({1: 30.0}, revision="main")
    new = reported_tiny({2: 90.0})

    with pytest.raises(UserError, match=r"^tiny@main and tiny have no seed in common,"):
        list(compare_systems(old, new, sentences=0))


@pytest.mark.parametrize(
    ("p_value", "target", "agreement"),
    [
        pytest.param(0.04, "de", "53%", id="significant"),
        pytest.param(0.06, "de", "–", id="not significant"),
        pytest.param(0.04, "sym", "–", id="not a natural language"),
        pytest.param(None, "de", "–", id="not tested"),
    ],
)
def test_human_agreement_is_shown_for_significant_differences_between_languages(
    reported_tiny, p_value, target, agreement
):
    """Human agreement: the percentage of people who would also prefer the better system.

    For a difference of 0.4 BLEU it is 88.333 / (1 + e^(-0.96639 * 0.4)) = 52.6 % (Kocmi et al.
    2024). People cannot judge the random symbols of the language `sym`.
    """
    old = reported_tiny({1: 20.0}, target=target)
    new = reported_tiny({1: 20.4}, target=target)

    texts = score_texts("bleu", scores_pair(old, new, (1,)), p_value)

    assert texts.agreement == agreement


@pytest.mark.parametrize("language", ["de", "zh"])
def test_sentence_scores_are_those_of_sacrebleu(tmp_path, language):
    """The expected scores are printed by `sacrebleu --sentence-level`, run as a program.

    Two of the 62 lines have fewer than four words, whose BLEU needs a special case.
    """
    references, good, worse = example_texts(language, lines=60)
    references += ["Ja", "so gut"]
    good += ["Ja", "gut so"]
    worse += ["Nein", "so gut"]
    trees.write_lines(tmp_path / "references", references)
    trees.write_lines(tmp_path / "good", good)
    trees.write_lines(tmp_path / "worse", worse)

    changes = sentence_bleu_changes(good, worse, references, language)

    assert list(changes.index) == list(range(1, 60 + 2 + 1))
    for name, scores in (("good", changes["first"]), ("worse", changes["second"])):
        command = [sys.executable, "-m", "sacrebleu", str(tmp_path / "references")]
        command += ["-i", str(tmp_path / name), "-l", f"en-{language}"]
        command += ["--sentence-level", "--width", "6"]
        process = subprocess.run(command, capture_output=True, check=True, text=True)
        printed = re.findall(r"eff:yes\S* = (\d+\.\d+) ", process.stdout)
        assert printed == [f"{score:.6f}" for score in scores]
        assert len(set(scores)) > 1
