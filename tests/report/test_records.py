"""Records: every number comes from the cell, corpus and test set that its name says."""

import json
from pathlib import Path

import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

import result_trees as trees
from bleuprint.config.experiment import Settings
from bleuprint.config.paths import Cell
from bleuprint.report.frame import RESULTS, load, save
from bleuprint.report.records import collect
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import read_json, sha256_of, write_json
from bleuprint.scoring.significance import paired_tests


def test_one_record_for_each_in_the_order_of_the_settings(collected: pd.DataFrame) -> None:
    of_corpora = [("news-en-de", "first"), ("news-en-de", "second"), ("talks-en-fr", "only")]
    expected = [
        (system, corpus, seed, test)
        for system in ("tiny", "small")
        for corpus in ("news-en-de", "talks-en-fr")
        for seed in (3, 1)
        for of, test in of_corpora
        if of == corpus
    ]
    found = [(r.system, r.corpus, r.seed, r.test) for r in collected.itertuples()]
    assert found == expected


def test_every_figure_comes_from_its_own_cell(
    made: tuple[Path, Settings], collected: pd.DataFrame
) -> None:
    root, settings = made
    records = collected
    for record in records.to_dict("records"):
        system, corpus, seed, test = (record[n] for n in ("system", "corpus", "seed", "test"))
        folder = root / "results" / system / corpus / str(seed)
        scores = read_json(folder / "scores.json")[test]
        for column, metric in (
            ("bleu", "bleu"),
            ("chrf2", "chrf"),
            ("chrf2pp", "chrfpp"),
            ("ter", "ter"),
        ):
            assert record[column] == scores[metric]["score"]
            for name in ("low", "high", "signature"):
                assert record[f"{column}_{name}"] == scores[metric][name]
        for name in ("hypothesis_length", "reference_length", "length_ratio"):
            assert record[name] == scores["bleu"][name]
        assert record["test_loss"] == scores["loss"]["loss"] == 1.25
        assert record["test_perplexity"] == scores["loss"]["perplexity"] == 3.490343
        assert record["word_perplexity"] == scores["loss"]["word_perplexity"] > 1
        for name, stored in (
            ("variants", "bleu_variants"),
            ("by_length", "by_length"),
            ("by_count", "by_count"),
        ):
            assert record[name] == scores[stored] != []
        assert record["lines"] == 40
        training = read_json(folder / "training.json")
        assert record["parameters"] == training["parameters"]
        assert record["training_flops"] == training["flops"]
        assert record["source_tokens"] == 700_000 + seed
        assert record["target_tokens"] == 800_000 + seed
        assert record["updates"] == 500
        assert record["training_sha256"] == training["fingerprint"]
        decode = settings.system(system).decode
        assert (record["engine"], record["beam"]) == (decode.engine, decode.beam)
        assert record["length_penalty.alpha"] == decode.length_penalty.alpha
        source, target = record["source"], record["target"]
        assert f"{source}-{target}" == corpus[-5:]
        split = root / "data" / "split" / corpus
        assert record["binary_sha256"] == "b1" * 32
        assert record["sources_sha256"] == sha256_of(split / f"test.{test}.{source}")
        assert record["references_sha256"] == sha256_of(split / f"test.{test}.{target}")
        hypotheses = folder / "hypotheses" / f"test.{test}.{target}"
        assert record["hypotheses_sha256"] == sha256_of(hypotheses)
        measured = trees.timing_of(Cell(system, corpus, seed))
        assert record["train_seconds"] == measured["seconds"]
        assert record["translate_seconds"] == 2.5
    # the two systems are the same but for their names
    assert records.groupby(["corpus", "seed"]).settings_sha256.nunique().tolist() == [1] * 4
    assert records.settings_sha256.nunique() == 4
    assert records.bleu.nunique() == len(records)


def test_paired_tests_are_against_the_first_system(
    made: tuple[Path, Settings], collected: pd.DataFrame
) -> None:
    root, _ = made
    for record in collected.itertuples():
        if record.system == "tiny":
            assert pd.isna(record.baseline) and pd.isna(record.p_bootstrap)
            continue
        name = f"test.{record.test}.{record.target}"
        lines = {}
        for system in ("tiny", "small"):
            cell = root / Cell(system, record.corpus, record.seed).results
            lines[system] = (cell / "hypotheses" / name).read_text("utf-8").splitlines()
        references = (root / "data" / "split" / record.corpus / name).read_text("utf-8")
        p = paired_tests(lines, references.splitlines(), record.target)["small"]
        assert record.baseline == "tiny"
        for (key, of), prefix in zip(p.items(), ("", "chrf2_", "chrf2pp_", "ter_"), strict=True):
            columns = ("p_bootstrap", "p_randomization", "standard_error")
            found = [getattr(record, prefix + column) for column in columns]
            assert found == [of.bootstrap, of.randomization, of.standard_error], key


def test_one_system_alone_has_no_paired_test(made: tuple[Path, Settings], tmp_path: Path) -> None:
    alone = trees.settings_in(tmp_path, systems=("small",), seeds=(1,))
    records = collect(alone, made[0])
    assert list(records.system) == ["small"] * 3
    assert records[["baseline", "difference", "p", "p_bootstrap"]].isna().all(axis=None)


def test_cells_that_are_not_in_the_settings_are_passed_over(
    copy: tuple[Path, Settings], collected: pd.DataFrame
) -> None:
    root, settings = copy
    (root / "results" / "gone" / "news-en-de" / "1").mkdir(parents=True)
    (root / "results" / "tiny" / "news-en-de" / "9").mkdir()
    (root / "results" / "tiny" / "old-en-de").mkdir()
    assert_frame_equal(collect(settings, root), collected)


def test_saved_records_come_back_and_repeat_exactly(
    saved: tuple[Path, Settings], collected: pd.DataFrame, tmp_path: Path
) -> None:
    root, settings = saved
    text = (root / RESULTS).read_bytes()
    assert_frame_equal(load(root), collected, check_like=True)
    save(collect(settings, root), root / RESULTS)
    assert (root / RESULTS).read_bytes() == text
    (tmp_path / "reports").mkdir()
    (tmp_path / RESULTS).write_bytes(text)
    assert load(tmp_path).train_seconds.isna().all()
    entry = json.loads(text)[-1]
    assert list(entry)[:6] == ["system", "corpus", "source", "target", "seed", "test"]
    assert (entry["baseline"], json.loads(text)[0]["baseline"]) == ("tiny", None)
    measured = set(trees.timing_of(Cell("tiny", "news-en-de", 1)))
    assert not any(f'"{name}"' in text.decode() for name in (*measured, "train_seconds"))


def test_nothing_to_load(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"results\.json: no such file; run: dvc repro"):
        load(tmp_path)


def test_what_an_older_version_wrote(copy: tuple[Path, Settings]) -> None:
    root, settings = copy
    path = root / Cell("tiny", "news-en-de", 1).results / "scores.json"
    scores = read_json(path)
    del scores["second"]["by_count"]
    write_json(path, scores)
    with pytest.raises(UserError, match=r"scores\.json: was not written by this version; run: dvc"):
        collect(settings, root)
    (root / "reports").mkdir(exist_ok=True)
    for old in ('[{"system": "tiny"}]', "[3]", "{"):
        (root / RESULTS).write_text(old)
        with pytest.raises(UserError, match=r"results\.json: .*was not written by this version"):
            load(root)
