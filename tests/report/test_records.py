"""Records: every number comes from the run, corpus and test set that its name says."""

import json

import pytest
from pandas.testing import assert_frame_equal

import result_trees as trees
from bleuprint.config.paths import Run
from bleuprint.report.frame import RESULTS, load
from bleuprint.report.records import collect
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import read_json, sha256_of
from bleuprint.scoring.metrics import METRICS
from measuring import paired_tests
from result_rows import values


def test_one_record_for_each_in_the_order_of_the_settings(collected):
    of_corpora = [("news-en-de", "first"), ("news-en-de", "second"), ("talks-en-fr", "only")]
    expected = [
        (system, corpus, seed, test)
        for system in ("tiny", "small")
        for corpus in ("news-en-de", "talks-en-fr")
        for seed in (3, 1)
        for of, test in of_corpora
        if of == corpus
    ]
    found = [(r.system, r.corpus, r.seed, r.test) for r in collected.runs.itertuples()]
    assert found == expected


def test_every_figure_comes_from_its_own_run(made, collected):
    root, settings = made
    records = collected.runs
    metrics = collected.metrics.astype(object).where(collected.metrics.notna(), None)
    for record in records.to_dict("records"):
        system, corpus, seed, test = (record[n] for n in ("system", "corpus", "seed", "test"))
        folder = root / "results" / system / corpus / str(seed)
        scores = read_json(folder / "scores.json")[test]
        place = {name: record[name] for name in ("system", "corpus", "seed", "test")}
        of_run = (metrics[[*place]] == [*place.values()]).all(axis=1)
        found = metrics[of_run].to_dict("records")
        for row, stored in zip(found, scores["metrics"], strict=True):
            for name in ("metric", "group", "units", "value", "ci_low", "ci_high", "signature"):
                assert row[name] == stored[name], row["metric"]
        by_key = {(row["metric"], row["group"]): row["value"] for row in found}
        assert by_key["loss", ""] == 1.25 and by_key["perplexity", ""] == 3.490343
        assert {metric for metric, _ in by_key} >= {*METRICS} - {"comet", "dbleu", "cut off"}
        assert record["lines"] == 100
        training = read_json(folder / "training.json")
        assert record["parameters"] == training["parameters"]
        assert record["training_flops"] == training["flops"]
        assert record["source_tokens"] == 700_000 + seed
        assert record["target_tokens"] == 800_000 + seed
        assert record["updates"] == 500
        assert record["training_sha256"] == training["fingerprint"]
        decode = settings.system_settings(system).decode
        assert (record["engine"], record["precision"]) == ("pytorch", decode.precision)
        source, target = record["source"], record["target"]
        assert f"{source}-{target}" == corpus[-5:]
        split = root / "data" / "split" / corpus
        assert record["binary_sha256"] == "b1" * 32
        assert record["sources_sha256"] == sha256_of(split / f"test.{test}.{source}")
        assert record["references_sha256"] == sha256_of(split / f"test.{test}.{target}")
        hypotheses = folder / "hypotheses" / f"test.{test}.{target}"
        assert record["hypotheses_sha256"] == sha256_of(hypotheses)
        measured = trees.timing_of(Run(system, corpus, seed))
        assert record["train_seconds"] == measured["seconds"]
    # the two systems are the same but for their names
    assert records.groupby(["corpus", "seed"]).settings_sha256.nunique().tolist() == [1] * 4
    assert records.settings_sha256.nunique() == 4
    assert len({*values(collected)}) == len(records)


def test_paired_tests_are_against_the_first_system(made, collected):
    root, _ = made
    for record in collected.runs.itertuples():
        rows = collected.metrics
        for name in ("system", "corpus", "seed", "test"):
            rows = rows[rows[name] == getattr(record, name)]
        if record.system == "tiny":
            assert rows[["baseline", "difference", "p", "standard_error"]].isna().all(axis=None)
            continue
        name = f"test.{record.test}.{record.target}"
        lines = {}
        for system in ("tiny", "small"):
            run = root / Run(system, record.corpus, record.seed).results_folder
            lines[system] = (run / "hypotheses" / name).read_text("utf-8").splitlines()
        references = (root / "data" / "split" / record.corpus / name).read_text("utf-8")
        expected = paired_tests(lines, references.splitlines(), record.target)["small"]
        for key, of in expected.items():
            (row,) = rows[(rows.metric == key) & (rows.group == "")].itertuples()
            assert row.baseline == "tiny"
            assert (row.p_randomization, row.standard_error) == (
                of.randomization,
                of.standard_error,
            )


def test_a_system_alone_is_compared_with_nothing(made, tmp_path):
    alone = trees.settings_in(tmp_path, systems=("small",), seeds=(1,))
    records = collect(alone, made[0])
    assert list(records.runs.system) == ["small"] * 3
    tested = records.metrics[["baseline", "difference", "p", "p_holm", "standard_error"]]
    assert tested.isna().all(axis=None)


def test_results_that_the_settings_do_not_name_are_passed_over(copy, collected):
    """As of a system that was renamed, a seed that was removed, or a corpus."""
    root, settings = copy
    (root / "results" / "gone" / "news-en-de" / "1").mkdir(parents=True)
    (root / "results" / "tiny" / "news-en-de" / "9").mkdir()
    (root / "results" / "tiny" / "old-en-de").mkdir()
    found = collect(settings, root)
    assert_frame_equal(found.runs, collected.runs)
    assert_frame_equal(found.metrics, collected.metrics)


def test_saved_records_come_back_and_repeat_exactly(saved, collected, tmp_path):
    root, settings = saved
    text = (root / RESULTS).read_bytes()
    assert_frame_equal(load(root).runs, collected.runs, check_like=True)
    assert_frame_equal(load(root).metrics, collected.metrics)
    collect(settings, root).save(root / RESULTS)
    assert (root / RESULTS).read_bytes() == text
    (tmp_path / "reports").mkdir()
    (tmp_path / RESULTS).write_bytes(text)
    assert load(tmp_path).runs.train_seconds.isna().all()
    content = json.loads(text)
    assert list(content["metrics"][0])[:6] == [
        *("system", "corpus", "seed", "test", "metric", "group")
    ]
    assert {row["baseline"] for row in content["metrics"]} == {"tiny", None}
    measured = set(trees.timing_of(Run("tiny", "news-en-de", 1)))
    assert not any(f'"{name}"' in text.decode() for name in (*measured, "train_seconds"))


def test_what_an_older_version_wrote(tmp_path):
    (tmp_path / "reports").mkdir()
    for old, problem in (
        ('{"runs": [{"system": "tiny"}], "metrics": []}', "runs.0.corpus is missing, as in"),
        ("[3]", "it contains no JSON object"),
        ("{", "line 1 is not JSON"),
    ):
        (tmp_path / RESULTS).write_text(old)
        with pytest.raises(UserError, match=rf"results\.json is damaged: .*{problem}"):
            load(tmp_path)


def test_a_report_that_is_not_there_says_what_to_run(tmp_path):
    with pytest.raises(UserError, match=r"reports/results\.json: no such file; run: make rep"):
        load(tmp_path)
