"""The registry: one version for each choice, linked to its weights."""

from pathlib import Path

import pytest

import result_trees
from bleuprint.config.experiment import load
from bleuprint.config.paths import Cell
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import read_json, sha256_of, write_json
from bleuprint.tracking.registry import register
from mlruns import bleu, dump, named


def test_the_chosen_system_is_registered_once(root: Path) -> None:
    settings, cell = load(), Cell("small", "news-en-de", 1)
    said = register(settings, cell)
    weights = "models/small/news-en-de/1/averaged/model.safetensors"
    assert said == f"news-en-de version 1 is best: {cell}, {weights}"
    before = dump(root)
    assert register(settings, cell) == said
    assert dump(root) == before
    measured, _ = result_trees.timing_files(Path(), settings, cell)
    write_json(measured, {**read_json(measured), "seconds": 1.0, "device": "Another CPU"})
    assert register(settings, cell) == said
    assert "version 2 is best" in register(settings, cell._replace(system="tiny"))
    assert "version 1 is best" in register(settings, cell)  # chosen again
    client, runs = named(root)
    best = client.get_model_version_by_alias("news-en-de", "best")
    assert best.tags["weights"] == weights
    assert best.tags["weights.sha256"] == sha256_of(root / weights)
    assert set(best.tags) == {
        *("system", "corpus", "seed", "weights", "weights.sha256"),
        *("bleu/first", "chrf/first", "ter/first"),
    }
    assert float(best.tags["bleu/first"]) == pytest.approx(bleu(cell), abs=0.005)
    assert best.run_id == runs["small news-en-de 1"].info.run_id
    assert best.source == f"runs:/{best.run_id}/files.json"


@pytest.mark.parametrize(
    ("lost", "said"),
    [
        ("models/small/news-en-de/1/averaged/model.safetensors", "model.safetensors: no such file"),
        ("results/small/news-en-de/1/scores.json", "scores.json: no scores"),
        ("results/small/news-en-de/1/training.json", "no training with these settings"),
    ],
)
def test_what_is_not_there_is_not_registered(root: Path, lost: str, said: str) -> None:
    (root / lost).unlink()
    with pytest.raises(UserError, match=said):
        register(load(), Cell("small", "news-en-de", 1))
