"""A cell that published numbers name is translated as their authors did."""

import dataclasses
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

import processes
from bleuprint.config.experiment import load
from bleuprint.config.paths import Cell, folder
from bleuprint.config.system import Average, Keep, LengthPenalty
from bleuprint.corpus.test_sets import describe_test_sets
from bleuprint.report.published.variants import Variant, Variants, Varied, own, path_of
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import sha256_of
from bleuprint.scoring import metrics
from bleuprint.scoring.bleu_variants import VARIANTS
from trainings import STAGES, environment, project, train

CELL = Cell("micro", "toy", 1)
NUMBER = {
    "name": "A paper",
    "source": "its Table 1",
    "corpus": "toy",
    "test": "x",
    "bleu": 60.0,
    "scored": "tokenized",
    "system": "micro",
    "average": {"last": 2},
    "beam": 3,
    "length_penalty": {"kind": "length", "alpha": 1.0},
}


def publish(root: Path, **number: Any) -> None:
    """Name one published number in params.yaml, or none."""
    yaml = YAML()
    params = yaml.load(root / "params.yaml")
    params["published"] = [number] if number else []
    yaml.dump(params, root / "params.yaml")


def stage(root: Path, name: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, str(STAGES / f"{name}.py"), *map(str, CELL)]
    return processes.run_text(command, root, environment())


def measured(root: Path) -> "subprocess.CompletedProcess[str]":
    """`measure` in a process of its own, in the project's folder."""
    code = (
        "from bleuprint.config.experiment import load\n"
        "from bleuprint.config.paths import Cell\n"
        "from bleuprint.report.published.variants import measure\n"
        "from bleuprint.runtime.errors import run\n"
        f"run(lambda: measure(load(), {CELL!r}))"
    )
    (root / "measure.py").write_text(code)
    return processes.run_text([sys.executable, "measure.py"], root, environment())


def varied(root: Path) -> Variants:
    done = measured(root)
    assert done.returncode == 0, done.stderr
    return Variants.read(path_of(CELL, root))


def of(found: Variants, variant: Variant) -> Varied | None:
    return next((each for each in found.varied if each.variant == variant), None)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A toy project with three checkpoints, averaged and translated. Not to be changed but by
    `publish`.
    """
    root = tmp_path_factory.mktemp("variants")
    train(project(root, keep=Keep(last=3, best=0, every=0), max_updates=200))
    corpus = load(root / "params.yaml").corpus("toy")
    places = (folder("toy", name, root) for name in ("raw", "split", "tokens", "tests"))
    describe_test_sets("toy", corpus, *places)
    for name in ("average", "translate"):
        assert stage(root, name).returncode == 0
    return root


@pytest.fixture(scope="module")
def found(trained: Path) -> Variants:
    publish(trained, **NUMBER)
    return varied(trained)


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").removesuffix("\n").split("\n")


def test_the_cell_as_it_is_scores_what_its_translations_score(
    trained: Path, found: Variants
) -> None:
    one = of(found, own(load(trained / "params.yaml").system("micro")))
    hypotheses = trained / CELL.results / "hypotheses" / "test.x.en"
    references = trained / "data" / "split" / "toy" / "test.x.en"
    assert one is not None
    assert one.hypotheses == sha256_of(hypotheses)
    bleu = metrics.bleu(lines(hypotheses), lines(references), "en")["score"]
    assert one.scores["sacrebleu"] == bleu > 1
    assert one.scores.keys() == {"sacrebleu", *VARIANTS}


def test_each_step_and_all_of_them_together_are_translated(trained: Path, found: Variants) -> None:
    base = own(load(trained / "params.yaml").system("micro"))
    tried = {one.variant for one in found.varied}
    theirs = [
        dataclasses.replace(base, average=Average(last=2)),
        dataclasses.replace(base, beam=3, length_penalty=LengthPenalty("length", 1.0)),
        Variant(Average(last=2), 3, LengthPenalty("length", 1.0)),
    ]
    assert tried == {base, *theirs}
    assert len({one.hypotheses for one in found.varied}) > 2


def test_a_variant_is_what_a_system_with_its_settings_translates(
    trained: Path, found: Variants, tmp_path: Path
) -> None:
    """The system itself set to theirs, by the stages average and translate."""
    for name in ("data", "models"):
        (tmp_path / name).symlink_to(trained / name)
    (tmp_path / "models").unlink()
    checkpoints = tmp_path / CELL.models / "checkpoints"
    checkpoints.parent.mkdir(parents=True)
    checkpoints.symlink_to(trained / CELL.models / "checkpoints")
    yaml = YAML()
    params = yaml.load(trained / "params.yaml")
    micro = params["systems"]["micro"]
    micro["average"] = {"last": 2}
    micro["decode"].update({"beam": 3, "length_penalty": {"kind": "length", "alpha": 1.0}})
    yaml.dump(params, tmp_path / "params.yaml")
    for name in ("average", "translate"):
        assert stage(tmp_path, name).returncode == 0
    one = of(found, Variant(Average(last=2), 3, LengthPenalty("length", 1.0)))
    assert one is not None
    assert one.hypotheses == sha256_of(tmp_path / CELL.results / "hypotheses" / "test.x.en")


def test_it_repeats_and_leaves_nothing_behind(trained: Path, found: Variants) -> None:
    publish(trained, **NUMBER)
    before = sha256_of(path_of(CELL, trained))
    assert varied(trained) == found
    assert sha256_of(path_of(CELL, trained)) == before
    assert not list((trained / "work").glob("variants-*"))


def test_their_best_checkpoints_are_averaged_if_there_are_so_many(trained: Path) -> None:
    """There are three, of which the last was validated; the last is the best then."""
    for best, there in ((1, True), (2, False)):
        publish(trained, **{**NUMBER, "average": {"best": best}})
        one = of(varied(trained), Variant(Average(best=best), 3, LengthPenalty("length", 1.0)))
        assert (one is not None) == there


def test_a_cell_without_checkpoints_is_refused(trained: Path, tmp_path: Path) -> None:
    (tmp_path / "params.yaml").write_bytes((trained / "params.yaml").read_bytes())
    publish(tmp_path, **NUMBER)
    done = measured(tmp_path)
    assert done.returncode == 1
    expected = "models/micro/toy/1/checkpoints: no such folder; run: dvc repro, or dvc pull"
    assert done.stderr == f"bleuprint: error: {expected}\n"


@pytest.mark.parametrize(
    ("key", "message"), [("system", "no system 'big' on toy"), ("test", "no test set 'big'")]
)
def test_numbers_of_what_is_not_there_are_refused(trained: Path, key: str, message: str) -> None:
    publish(trained, **{**NUMBER, key: "big"})
    done = measured(trained)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert f"published.0.{key}: {message}; there are: " in done.stderr


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "1.json"
    path.write_text('{"training": "f1", "varied": [{}]}')
    with pytest.raises(UserError, match=r"/1\.json: was not written by this version"):
        Variants.read(path)
