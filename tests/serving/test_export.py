"""The README of an exported system: its scores, the licenses of its texts, its provenance."""

from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from bleuprint.config.paths import Cell
from bleuprint.config.system import Average
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import read_json
from bleuprint.runtime.html import markdown_text
from bleuprint.scoring.metrics import METRICS
from bleuprint.serving import standalone
from bleuprint.serving.export import export, readme
from bleuprint.text.unicode import blank_white, lowercased
from mlservers import write_project


def test_a_readme_has_scores_licenses_and_provenance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    settings, cell = write_project(tmp_path, seeds=(1,)), Cell("tiny", "news-en-de", 1)
    text = readme(settings, cell, "int8")
    scores = read_json(cell.results / "scores.json")
    for test, (key, name) in product(scores, METRICS.items()):
        score = scores[test][key]
        interval = f"[{score['low']:.2f}, {score['high']:.2f}]"
        assert f"| {name} | {score['score']:.2f} | {interval} |\n" in text
        assert text.count(f"\n- {name}: `{score['signature']}`\n") == 1
    for name, about in settings.corpus(cell.corpus).license_and_citation.items():
        assert f"- {name}: {markdown_text(about.license)}\n" in text
    assert read_json(cell.results / "training.json")["fingerprint"] in text
    hypotheses = tmp_path / cell.results / "hypotheses" / "test.first.de"
    hypotheses.write_text("other\n")
    assert "had not been scored" in readme(settings, cell, "int8")


def test_an_ensemble_is_refused(tmp_path: Path) -> None:
    settings, cell = write_project(tmp_path, seeds=(1,)), Cell("tiny", "news-en-de", 1)
    tiny = settings.system("tiny")
    several = replace(tiny, average=Average(updates=(1, 1000), ensemble=True))
    settings = replace(settings, systems={**settings.systems, "tiny": several})
    with pytest.raises(UserError, match=r"^average.ensemble: an exported folder has one model"):
        export(settings, cell, tmp_path / "out", "float32")
    assert not (tmp_path / "out").exists()


def test_a_tokenizer_that_the_exported_script_lacks_is_refused(tmp_path: Path) -> None:
    settings, cell = write_project(tmp_path, seeds=(1,)), Cell("tiny", "news-en-de", 1)
    corpus = settings.corpus(cell.corpus)
    spacy = replace(corpus, tokenize=replace(corpus.tokenize, name="spacy"))
    settings = replace(settings, corpora={**settings.corpora, cell.corpus: spacy})
    with pytest.raises(UserError, match=r"^tokenize.name spacy: the exported script has no such"):
        export(settings, cell, tmp_path / "out", "float32")
    assert not (tmp_path / "out").exists()


def test_the_exported_script_reads_characters_as_the_package_does() -> None:
    for code in (*range(0xD800), *range(0xE000, 0x110000)):
        text = f"a{chr(code)}b"
        assert standalone.blank_white(text) == blank_white(text), hex(code)
    for language in ("tr", "aze", "de", "el"):
        text = "İZMİR I\u0307 ISPARTA Straße ΟΔΟΣ\u00ad"
        assert standalone.lowercased(text, language) == lowercased(text, language)
