"""External systems in the report: scored and tested like a trained system, and marked."""

import shutil
from math import isnan
from statistics import fmean

import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

import result_trees as trees
from bleuprint.config.experiment import load_settings
from bleuprint.config.paths import Run
from bleuprint.decoding.copied_translations import copy_translations
from bleuprint.report import frame, report
from bleuprint.report.compare import compare
from bleuprint.report.notes import all_notes as notes_of
from bleuprint.report.notes import file_warning_notes
from bleuprint.report.overview import everything, one_screen
from bleuprint.report.page.cautions import cautions
from bleuprint.report.page.report_data import ReportData
from bleuprint.report.paired import largest_p_value
from bleuprint.report.records import check_settings, collect
from bleuprint.report.same_results import compare_records
from bleuprint.report.score_frame import score_frame
from bleuprint.report.score_tables import wide_bleu_table
from bleuprint.runs.results import Results
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import read_json, sha256_of
from bleuprint.scoring.score import score_run
from result_rows import against, record, rows_of, score_of, values
from result_rows import frame as made_by_hand

AGAINST = against("tiny", 0.01)
CORPUS = "news-en-de"
CORPORA = {CORPUS: ("first", "second"), "talks-en-fr": ("only",)}


def with_rows(root, seeds):
    """Files that are the translations of each system with the first seed, and their rows."""
    rows = {}
    for system in ("tiny", "small"):
        tests = {}
        for test in ("first", "second")[: 2 if system == "tiny" else 1]:
            made = (
                root / Run(system, CORPUS, seeds[0]).results_folder / f"hypotheses/test.{test}.de"
            )
            path = f"inputs/external/{system}.{test}.de"
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(made, root / path)
            tests[test] = {"path": path, "sha256": sha256_of(made)}
        rows[f"as-{system}"] = external(f"{system} & <b>others</b>", tests)
    settings = trees.settings_in(root, corpora=CORPORA, seeds=seeds, external=rows)
    copy_and_score(settings, root)
    return settings


def external(about, files):
    """The entry of an external system on the first corpus."""
    return {"about": about, "translations": files, "corpora": {CORPUS: {}}}


def copy_and_score(settings, root):
    """What the stages translate and score do for each external system."""
    for name in settings.external:
        cell = Run(name, CORPUS, settings.seeds[0])
        copy_translations(settings, cell, root)
        score_run(settings, *cell, root)


@pytest.fixture(scope="module")
def outside(tmp_path_factory):
    """After the report stage, with one seed. Not to be changed."""
    root = tmp_path_factory.mktemp("outside")
    trees.write_all(root, trees.settings_in(root, corpora=CORPORA))
    settings = with_rows(root, (1,))
    report.write_reports(settings, root)
    return root, settings


@pytest.fixture(scope="module")
def records(outside):
    return frame.load(outside[0])


def of(records, system, test="first"):
    """The metrics of a row, of its first seed."""
    rows = records.metrics[(records.metrics.system == system) & (records.metrics.test == test)]
    return rows[rows.seed == rows.seed.iloc[0]].set_index(["metric", "group"])


def test_the_same_translations_have_the_same_scores(records):
    for system in ("tiny", "small"):
        ours, theirs = of(records, system), of(records, f"as-{system}")
        assert {*ours.index} - {*theirs.index} == {
            (name, "") for name in ("loss", "perplexity", "word_perplexity")
        }
        columns = ["value", "ci_low", "ci_high", "signature", "units"]
        assert ours.loc[theirs.index, columns].equals(theirs[columns])
    same = of(records, "as-tiny").loc[("bleu", "")]
    assert (same.baseline, same.difference, same.p) == ("tiny", 0, 1)
    tested = ["p", "p_randomization", "standard_error", "difference"]
    assert of(records, "as-small")[tested].equals(
        of(records, "small").loc[of(records, "as-small").index, tested]
    )


def test_the_records_of_systems_are_those_without_them(outside, records, tmp_path):
    """Apart from Holm's correction, which is by the number of rows."""
    alone = collect(trees.settings_in(tmp_path, corpora=CORPORA), outside[0])
    trained = records.runs[records.runs.about.isna()].reset_index(drop=True)
    assert alone.runs.about.isna().all()
    assert_frame_equal(
        trained.drop(columns="about"),
        alone.runs.drop(columns="about"),
        check_like=True,
        check_dtype=False,
    )
    of_systems = records.metrics[records.metrics.system.isin(["tiny", "small"])]
    assert_frame_equal(
        of_systems.drop(columns="p_holm").reset_index(drop=True),
        alone.metrics.drop(columns="p_holm"),
        check_dtype=False,
    )


def test_nothing_is_known_of_their_training(outside, records):
    theirs = records.runs[records.runs.about.notna()]
    assert list(theirs.system + theirs.test) == ["as-tinyfirst", "as-tinysecond", "as-smallfirst"]
    unknown = ["parameters", "training_flops", "training_sha256", "train_seconds"]
    assert theirs[unknown].isna().all(axis=None)
    (stored,) = (
        row for row in read_json(outside[0] / frame.RESULTS)["runs"] if row["system"] == "as-small"
    )
    assert stored["parameters"] is stored["training_sha256"] is None
    assert stored["about"] == "small & <b>others</b>"
    assert set(pd.read_csv(outside[0] / frame.COSTS).system) == {"tiny", "small"}


def test_they_are_marked_wherever_they_are_shown(outside, records):
    root, _ = outside
    row = rows_of(wide_bleu_table(score_frame(records)))["as-small (external)"]
    assert row["news-en-de, first FLOPs"] == row["news-en-de, second BLEU"] == "–"
    assert row["news-en-de, first BLEU"].startswith(
        f"{of(records, 'small').value['bleu', '']:.1f} ["
    )
    reports = root / "reports"
    table, page, tex = (
        (reports / name).read_text("utf-8") for name in ("table.md", "index.html", "table.tex")
    )
    for text in (table, page, tex):
        assert "as-small (external)" in text
    assert "as-tiny (external), news-en-de: tiny & &lt;b>others&lt;/b>.\n" in table
    assert "tiny \\& $<$b$>$others$<$/b$>$. as-small" in tex
    assert "tiny &amp; &lt;b&gt;others" in page and "<b>others" not in page
    csv = pd.read_csv(reports / "table.csv")
    assert set(csv[csv.system == "as-small"].about) == {"small & <b>others</b>"}


def test_a_file_in_another_form_is_named_wherever_its_row_is_shown(outside, tmp_path, monkeypatch):
    root = shutil.copytree(outside[0], tmp_path / "copy")
    made = root / f"results/tiny/{CORPUS}/1/hypotheses/test.first.de"
    path = root / "inputs/external/subwords.de"
    lines = made.read_text("utf-8").split("\n")[:-1]
    path.write_text("".join(f"{line[:4]}@@ {line[4:]}\n" for line in lines), "utf-8")
    file = {"path": "inputs/external/subwords.de", "sha256": sha256_of(path)}
    rows = {"in-subwords": external("others", {"first": file})}
    settings = trees.settings_in(root, corpora=CORPORA, external=rows)
    copy_and_score(settings, root)
    report.write_reports(settings, root)
    records = frame.load(root)
    start = f"Look at in-subwords (external), {CORPUS}, first: 100% of the lines look like"
    (note,) = file_warning_notes(records)
    assert note.startswith(f"{start} BPE subwords (@@), such as line 1; ")
    for name in ("table.md", "table.tex", "index.html"):
        expected = start.replace("%", "\\%") if name == "table.tex" else start
        assert expected in (root / "reports" / name).read_text("utf-8")
    monkeypatch.setenv("COLUMNS", "1000")
    for parts in (one_screen(records), everything(records)):
        assert any(str(part).startswith(start) for part in parts)
    title = "Translations that may not be sentences, or are copies"
    assert title in [each.title for each in cautions(ReportData(settings, records, root))]
    before = ReportData(outside[1], frame.load(outside[0]), outside[0])
    assert title not in [each.title for each in cautions(before)]


def test_results_of_another_file_are_refused(outside, tmp_path):
    root = shutil.copytree(outside[0], tmp_path / "copy")
    settings = outside[1]
    check_settings(frame.load(root), settings, frame.RESULTS)
    copy = root / "results/as-small" / CORPUS / "1/hypotheses/test.first.de"
    copy.write_text(copy.read_text("utf-8").replace(" ", "  ", 1), "utf-8")
    with pytest.raises(UserError, match=r"test\.first\.de: has changed since .*as-small"):
        Results.open(settings, Run("as-small", CORPUS, 1), root).check()
    text = (root / "params.yaml").read_text()
    old = settings.external_systems_on(CORPUS)["as-small"].translations["first"].sha256
    (root / "params.yaml").write_text(text.replace(old, 64 * "a"))
    with pytest.raises(UserError, match="made with another params"):
        check_settings(frame.load(root), load_settings(root / "params.yaml"), frame.RESULTS)


def test_with_seeds_it_is_compared_with_each(made, tmp_path):
    root = shutil.copytree(made[0], tmp_path / "copy")
    settings = with_rows(root, (3, 1))
    records = collect(settings, root)
    metrics = records.metrics[records.metrics.test == "first"]
    ours, theirs = (
        metrics[(metrics.system == system) & (metrics.metric == "bleu") & (metrics.group == "")]
        for system in ("tiny", "as-small")
    )
    assert list(theirs.seed) == [3, 1] and theirs.value.nunique() == 1
    row = score_of(records, "as-small", test="first")
    assert row.difference == pytest.approx(theirs.value.iloc[0] - fmean(ours.value), abs=1e-5)
    assert isnan(row.difference_deviation)
    assert isnan(row.deviation) and row.ci_low == theirs.ci_low.iloc[0]
    # the same as the baseline's first seed, and worse or better than its second
    assert score_of(records, "as-tiny", test="first").p == 1
    assert "largest of the paired bootstraps against each seed" in " ".join(notes_of(records))


def test_the_largest_p_is_that_of_all_seeds():
    assert largest_p_value([1.0, 2.0, 0.5], [0.01, 0.03, 0.02]) == 0.03
    assert largest_p_value([1.0, -2.0], [0.01, 0.01]) == 1
    assert largest_p_value([0.0, 1.0], [1.0, 0.01]) == 1


def test_they_take_part_in_holms_correction_and_the_best_score():
    rows = [
        record("tiny", "news-en-de", "first", 30.0),
        record("small", "news-en-de", "first", 40.0, **against("tiny", 0.02)),
        record("a", "news-en-de", "first", 41.0, about="A", **against("tiny", 0.04)),
    ]
    records = made_by_hand(*rows)
    assert values(records, column="p_holm")[1:] == [0.04, 0.04]
    table = wide_bleu_table(score_frame(records))
    bleu = table.column("BLEU")
    assert [row.cell(bleu).is_best for row in table.rows] == [False, False, True]
    assert [row.kind for row in table.rows] == ["baseline", "", ""]
    names = [table.texts(row)[0] for row in table.rows]
    assert names == ["Baseline: tiny", "small", "a (external)"]


def test_compared_with_a_system(outside, monkeypatch):
    monkeypatch.chdir(outside[0])
    parts = list(compare("small", "as-small"))
    settings, scores = (part for part in parts if not isinstance(part, str))
    assert {tuple(scores.texts(row)[5:7]) for row in scores.rows} == {("+0.0", "1.000 n.s.")}
    assert len(scores.rows) >= 4
    keys = {"about", "translations.first.path", "translations.first.sha256"}
    assert {settings.texts(row)[0] for row in settings.rows} == {f"{CORPUS}.{key}" for key in keys}
    assert any("Most improved" in str(part) for part in compare("as-tiny", "as-small", CORPUS))
    with pytest.raises(UserError, match="as-tiny: the report contains no results on talks-en-fr"):
        list(compare("tiny", "as-tiny", "talks-en-fr"))


def test_another_file_differs_from_the_stage_translate_on():
    pair = [
        made_by_hand(
            record("tiny", CORPUS, "first", 30.0),
            record("a", CORPUS, "first", bleu, about="A", hypotheses_sha256=sha, **AGAINST),
        )
        for bleu, sha in ((33.0, "1" * 64), (33.1, "2" * 64))
    ]
    (tiny, row), _ = compare_records(*pair)
    assert (tiny.is_same, row.is_same) == (True, False)
    assert (row.first_differing_stage, row.score_stage) == ("translate", f"score@a-{CORPUS}-1")
    assert tiny.score_stage == f"score@tiny-{CORPUS}-1"
