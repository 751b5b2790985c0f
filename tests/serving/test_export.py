"""The README of an exported system: its scores, the licenses of its texts, its provenance."""

from pathlib import Path

import pytest

from bleuprint.config.paths import Cell
from bleuprint.runtime.files import read_json
from bleuprint.serving.export import readme
from mlservers import write_project


def test_a_readme_has_scores_licenses_and_provenance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    settings, cell = write_project(tmp_path, seeds=(1,)), Cell("tiny", "news-en-de", 1)
    text = readme(settings, cell, "int8")
    bleu = read_json(cell.results / "scores.json")["first"]["bleu"]
    assert f"| {bleu['score']:.2f} |" in text and bleu["signature"] in text
    for name, about in settings.corpus(cell.corpus).license_and_citation.items():
        assert f"- {name}: {about.license}\n" in text
    assert read_json(cell.results / "training.json")["fingerprint"] in text
    hypotheses = tmp_path / cell.results / "hypotheses" / "test.first.de"
    hypotheses.write_text("other\n")
    assert "had not been scored" in readme(settings, cell, "int8")
