"""Records: every number comes from the cell, corpus and test set that its name says."""

import dataclasses
import json
import math
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

import result_trees as trees
from bleuprint.config.experiment import Settings
from bleuprint.config.paths import Cell
from bleuprint.report.frame import COSTS, LISTS, RESULTS, costs_csv, load, save
from bleuprint.report.records import collect
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import read_json, sha256_of, write_json
from bleuprint.scoring.score import score_cell
from bleuprint.scoring.significance import paired_tests
from bleuprint.tracking.cell_results import CellResults


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Settings]:
    root = tmp_path_factory.mktemp("made")
    settings = trees.settings_in(root, seeds=(3, 1))
    trees.write_all(root, settings)
    return root, settings


@pytest.fixture
def copy(made: tuple[Path, Settings], tmp_path: Path) -> tuple[Path, Settings]:
    shutil.copytree(made[0], tmp_path / "copy")
    return tmp_path / "copy", made[1]


def test_one_record_for_each_in_the_order_of_the_settings(made: tuple[Path, Settings]) -> None:
    root, settings = made
    records = collect(settings, root)
    of_corpora = [("news-en-de", "first"), ("news-en-de", "second"), ("talks-en-fr", "only")]
    expected = [
        (system, corpus, seed, test)
        for system in ("tiny", "small")
        for corpus in ("news-en-de", "talks-en-fr")
        for seed in (3, 1)
        for of, test in of_corpora
        if of == corpus
    ]
    assert [(r.system, r.corpus, r.seed, r.test) for r in records.itertuples()] == expected


def test_every_figure_comes_from_its_own_cell(made: tuple[Path, Settings]) -> None:
    root, settings = made
    records = collect(settings, root)
    for record in records.to_dict("records"):
        system, corpus, seed, test = (record[n] for n in ("system", "corpus", "seed", "test"))
        folder = root / "results" / system / corpus / str(seed)
        scores = read_json(folder / "scores.json")[test]
        for column, metric in (("bleu", "bleu"), ("chrf2", "chrf"), ("ter", "ter")):
            assert record[column] == scores[metric]["score"]
            for name in ("low", "high", "signature"):
                assert record[f"{column}_{name}"] == scores[metric][name]
        for name in ("hypothesis_length", "reference_length", "length_ratio"):
            assert record[name] == scores["bleu"][name]
        for name, stored in (("variants", "reconciliation"), *((n, n) for n in LISTS[1:])):
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


def test_paired_tests_are_against_the_first_system(made: tuple[Path, Settings]) -> None:
    root, settings = made
    for record in collect(settings, root).itertuples():
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
        tested = record.baseline, record.p_bootstrap, record.p_randomization
        assert tested == ("tiny", p.bootstrap, p.randomization)


def test_one_system_alone_has_no_paired_test(made: tuple[Path, Settings], tmp_path: Path) -> None:
    alone = trees.settings_in(tmp_path, systems=("small",), seeds=(1,))
    records = collect(alone, made[0])
    assert list(records.system) == ["small"] * 3
    assert records[["baseline", "difference", "p", "p_bootstrap"]].isna().all(axis=None)


def test_cells_that_are_not_in_the_settings_are_passed_over(
    copy: tuple[Path, Settings],
) -> None:
    root, settings = copy
    before = collect(settings, root)
    (root / "results" / "gone" / "news-en-de" / "1").mkdir(parents=True)
    (root / "results" / "tiny" / "news-en-de" / "9").mkdir()
    (root / "results" / "tiny" / "old-en-de").mkdir()
    assert_frame_equal(collect(settings, root), before)


def test_translations_of_another_training(copy: tuple[Path, Settings]) -> None:
    root, settings = copy
    folder = root / Cell("small", "news-en-de", 3).results
    path = folder / "translation.json"
    write_json(path, {**read_json(path), "model": "ab" * 32})
    own = read_json(folder / "training.json")["fingerprint"][:12]
    with pytest.raises(UserError) as caught:
        collect(settings, root)
    assert str(caught.value) == (
        f"{path}: translated by another training (abababababab...) than that of "
        f"{folder / 'training.json'} ({own}...); run: dvc repro"
    )


def test_settings_edited_since_translating(copy: tuple[Path, Settings]) -> None:
    root, settings = copy
    small = settings.system("small")
    changed = replace(small, decode=replace(small.decode, engine="ctranslate2", precision="int8"))
    edited = replace(settings, systems={**settings.systems, "small": changed})
    with pytest.raises(
        UserError, match=r"small/news-en-de/3/translation\.json: translated with decode\.engine pyt"
    ):
        collect(edited, root)


def test_translations_and_scores_put_in_place_of_others(copy: tuple[Path, Settings]) -> None:
    root, settings = copy
    good, bad = (root / Cell(name, "news-en-de", 1).results for name in ("small", "tiny"))
    shutil.copytree(good / "hypotheses", bad / "hypotheses", dirs_exist_ok=True)
    shutil.copy(good / "scores.json", bad)
    with pytest.raises(UserError, match=r"tiny/.*first\.de: has changed since it was translated"):
        collect(settings, root)


def test_one_training_is_not_two_seeds(copy: tuple[Path, Settings]) -> None:
    root, settings = copy
    one, other = (root / Cell("small", "talks-en-fr", seed).results for seed in (3, 1))
    for name in ("training.json", "translation.json", "scores.json", "hypotheses/test.only.fr"):
        shutil.copy(one / name, other / name)
    with pytest.raises(
        UserError,
        match=r"small/talks-en-fr/1/training\.json: not run with these settings; run: dvc",
    ):
        collect(settings, root)


def test_scores_that_the_translations_do_not_have(copy: tuple[Path, Settings]) -> None:
    root, settings = copy
    path = root / Cell("small", "news-en-de", 3).results / "scores.json"
    scores = read_json(path)
    own = scores["second"]["bleu"]["score"]
    scores["second"]["bleu"]["score"] = 99.0
    write_json(path, scores)
    with pytest.raises(UserError) as caught:
        collect(settings, root)
    assert str(caught.value) == (
        f"{path}: BLEU 99.0 on second, but the translations have {own}; run: dvc repro"
    )


@pytest.mark.parametrize(
    ("name", "edited"),
    [("low", 1.0), ("high", 99.0), ("signature", "nrefs:1")],
)
def test_an_interval_or_signature_that_the_translations_do_not_have(
    copy: tuple[Path, Settings], name: str, edited: float | str
) -> None:
    root, settings = copy
    path = root / Cell("small", "news-en-de", 3).results / "scores.json"
    scores = read_json(path)
    scores["second"]["bleu"][name] = edited
    write_json(path, scores)
    with pytest.raises(UserError, match=f"BLEU with {name} {edited} on second, but the transl"):
        collect(settings, root)


def test_translations_replaced_in_all_records_but_one(
    copy: tuple[Path, Settings], capsys: pytest.CaptureFixture[str]
) -> None:
    """attention.json holds the SHA-256 of the translations, too."""
    root, settings = copy
    cell = Cell("small", "news-en-de", 3)
    texts = root / "data" / "split" / cell.corpus
    hypotheses = root / cell.results / "hypotheses" / "test.second.de"
    shutil.copy(texts / "test.second.de", hypotheses)
    path = root / cell.results / "translation.json"
    record = read_json(path)
    record["hypotheses"][hypotheses.name] = sha256_of(hypotheses)
    write_json(path, record)
    score_cell(settings, *cell, root)
    assert f"note: {hypotheses}: every translation is the reference" in capsys.readouterr().err
    with pytest.raises(UserError, match=r"attention\.json: is of other translations of second; r"):
        collect(settings, root)


def test_curves_of_another_training(copy: tuple[Path, Settings]) -> None:
    root, settings = copy
    one, other = (root / Cell(name, "news-en-de", 3).results for name in ("tiny", "small"))
    shutil.copy(other / "curves.json", one)
    with pytest.raises(UserError) as caught:
        collect(settings, root)
    assert str(caught.value) == (
        f"{one / 'curves.json'}: ends at update 500 with loss 0.75, but training.json at 500 "
        "with 1.25; run: dvc repro"
    )


def test_curves_need_not_be_there(copy: tuple[Path, Settings]) -> None:
    root, settings = copy
    before = collect(settings, root)
    (root / Cell("tiny", "news-en-de", 3).results / "curves.json").unlink()
    assert_frame_equal(collect(settings, root), before)


def test_results_of_other_settings_are_refused(copy: tuple[Path, Settings]) -> None:
    root, settings = copy
    cell = Cell("tiny", "news-en-de", 1)
    assert CellResults.open(settings, cell, root).check().training.updates == 500
    tiny = settings.system("tiny")
    smoothed = dataclasses.replace(tiny, train=dataclasses.replace(tiny.train, label_smoothing=0.3))
    changed = dataclasses.replace(settings, systems={**settings.systems, "tiny": smoothed})
    with pytest.raises(UserError, match=r"1/training\.json: not run with these settings; run: dvc"):
        CellResults.open(changed, cell, root)


@pytest.mark.parametrize("name", ["hypotheses", "references"])
def test_scores_of_other_translations_are_refused(copy: tuple[Path, Settings], name: str) -> None:
    root, settings = copy
    cell = Cell("tiny", "news-en-de", 1)
    scores = read_json(path := root / cell.results / "scores.json")
    scores["second"][name] = "0" * 64
    write_json(path, scores)
    with pytest.raises(UserError, match="has changed since system tiny, corpus news-en-de"):
        CellResults.open(settings, cell, root).check()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("scores.json", "{", "damaged: Expecting"),
        ("scores.json", "[]", "damaged: no JSON object"),
        ("scores.json", "{}", "no test set 'only' for system tiny"),
        ("scores.json", '{"only": {}}', "was not written by this version"),
        ("curves.json", '{"training": [], "validation": []}', "damaged, or of another version"),
        ("training.json", "{", "damaged: Expecting"),
        ("training.json", "{}", "holds no 'parameters'"),
        ("translation.json", "{", "damaged: Expecting"),
        ("translation.json", "{}", "holds no 'model'"),
    ],
)
def test_a_damaged_result_names_the_file(
    copy: tuple[Path, Settings], name: str, content: str, message: str
) -> None:
    root, settings = copy
    (root / Cell("tiny", "talks-en-fr", 1).results / name).write_text(content)
    with pytest.raises(UserError, match=rf"tiny/talks-en-fr/1/{re.escape(name)}: {message}"):
        collect(settings, root)


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize(
    ("content", "message"), [("{", "damaged: Expecting"), ("{}", "holds no 'seconds'")]
)
def test_a_damaged_timing_names_the_file(
    copy: tuple[Path, Settings], number: int, content: str, message: str
) -> None:
    root, settings = copy
    path = trees.timing_files(root, settings, Cell("tiny", "news-en-de", 1))[number]
    path.write_text(content)
    with pytest.raises(UserError, match=rf"/{re.escape(path.name)}: {message}"):
        collect(settings, root)


@pytest.mark.parametrize("name", ["scores.json", "training.json"])
def test_a_missing_result_names_the_cell_and_the_file(
    copy: tuple[Path, Settings], name: str
) -> None:
    root, settings = copy
    path = (root / Cell("small", "talks-en-fr", 1).results) / name
    path.unlink()
    with pytest.raises(UserError) as caught:
        collect(settings, root)
    cell = "system small, corpus talks-en-fr, seed 1"
    assert str(caught.value) == f"{path}: no such file: no result yet for {cell}; run: dvc repro"


def test_a_missing_test_set_names_the_cell_and_the_file(copy: tuple[Path, Settings]) -> None:
    root, settings = copy
    path = (root / Cell("small", "news-en-de", 3).results) / "scores.json"
    write_json(path, {"first": read_json(path)["first"]})
    with pytest.raises(UserError, match=r"scores\.json: no test set 'second' for system small"):
        collect(settings, root)


@pytest.mark.parametrize(
    "file",
    [
        "data/split/talks-en-fr/test.only.en",
        "data/split/talks-en-fr/test.only.fr",
        "results/tiny/talks-en-fr/3/hypotheses/test.only.fr",
    ],
)
def test_texts_changed_since_scoring(copy: tuple[Path, Settings], file: str) -> None:
    root, settings = copy
    path = root / file
    path.write_bytes(path.read_bytes().replace(trees.WORD.encode(), b"other", 1))
    with pytest.raises(
        UserError,
        match=r"has changed since (system tiny, corpus talks-en-fr, seed 3|it was translated)",
    ):
        collect(settings, root)


def test_saved_records_come_back_and_repeat_exactly(
    made: tuple[Path, Settings], tmp_path: Path
) -> None:
    root, settings = made
    records = collect(settings, root)
    save(records, root / RESULTS)
    text = (root / RESULTS).read_bytes()
    assert_frame_equal(load(root), records, check_like=True)
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
        with pytest.raises(UserError, match=r"results\.json: was not written by this version"):
            load(root)


def test_measured_columns_are_of_the_same_training_and_settings(
    copy: tuple[Path, Settings],
) -> None:
    root, settings = copy
    cell = Cell("tiny", "news-en-de", 3)
    training, translation = trees.timing_files(root, settings, cell)

    def measured() -> list[Any]:
        row = collect(settings, root).iloc[0]
        assert (row.system, row.corpus, row.seed) == cell
        return row[["train_seconds", "device", "peak_memory", "translate_seconds"]].tolist()

    assert measured() == [3725.0, "Test CPU", 1_500_000_000, 2.5]
    translation.rename(translation.with_name("translate-of-other-settings.json"))
    assert measured()[:3] == [3725.0, "Test CPU", 1_500_000_000] and math.isnan(measured()[3])
    training.rename(training.with_name("train-of-other-code.json"))
    assert all(pd.isna(value) for value in measured())


def test_what_a_colleague_measured_is_shown_until_it_is_measured_here(
    copy: tuple[Path, Settings],
) -> None:
    root, settings = copy
    there = collect(settings, root)
    write_text(root / COSTS, costs_csv(there))
    shutil.rmtree(root / "timings")
    pulled = collect(settings, root)
    columns = [name for name in there.columns if name != "rates"]
    assert_frame_equal(pulled[columns], there[columns])
    cell = Cell("tiny", "news-en-de", 3)
    training, _ = trees.timing_files(root, settings, cell)
    write_json(training, {**trees.timing_of(cell), "seconds": 1.0, "device": "Here"})
    here = collect(settings, root)
    assert list(here.train_seconds[:2]) == [1.0, 1.0] and here.device[0] == "Here"
    assert list(here.train_seconds[2:]) == list(there.train_seconds[2:])
    assert list(here.translate_seconds) == list(there.translate_seconds)
    # of another training, or other settings, there is nothing to show
    text = (root / COSTS).read_text()
    write_text(root / COSTS, text.replace(there.training_sha256.iloc[-1], "0" * 64))
    assert pd.isna(collect(settings, root).train_seconds.iloc[-1])
    write_text(root / COSTS, text.replace(there.settings_sha256.iloc[-1], "0" * 64))
    last = collect(settings, root).iloc[-1]
    assert last.train_seconds > 0 and pd.isna(last.translate_seconds)


def write_text(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
