"""Notes on params.yaml: one line for each setting that is valid but may be unintended."""

from dataclasses import replace

import pytest

from bleuprint.config.experiment import load_settings
from bleuprint.config.notes import check_tokenizers, params_notes, precision_notes
from bleuprint.runtime import processor
from bleuprint.runtime.errors import UserError
from params import PARAMS
from processors import INTEL


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A folder with the files of PARAMS."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DVC_ROOT", raising=False)
    (tmp_path / "inputs").mkdir()
    for name in ("a.de", "a.no"):
        (tmp_path / "inputs" / name).touch()
    return tmp_path


def of_flags(monkeypatch, flags):
    """Let this machine's processor have these flags."""
    monkeypatch.setattr(processor, "THIS", replace(INTEL, flags=frozenset(flags.split())))


def noted(project, old="", new=""):
    (project / "params.yaml").write_text(PARAMS.replace(old, new))
    return list(params_notes(load_settings()))


def test_nothing_is_noted_of_sound_settings(project):
    assert noted(project) == []


def test_a_file_that_is_missing(project):
    (project / "inputs/a.no").unlink()
    assert noted(project) == [
        "params.yaml:9: corpora.own.files.train.a.target: inputs/a.no: no such file"
    ]


@pytest.mark.parametrize(
    ("flags", "lacking"), [("avx2 avx512f", True), ("avx512_bf16", False), ("amx_tile", False)]
)
def test_a_precision_that_the_cpu_lacks(project, monkeypatch, flags, lacking):
    of_flags(monkeypatch, flags)
    text = PARAMS.replace("precision: float32}", "precision: bfloat16}")
    (project / "params.yaml").write_text(text.replace("precision: float32", "precision: tf32"))
    found = list(precision_notes("base", load_settings().system_settings("base")))
    said = "systems.base.{}: this machine's CPU does not have it"
    expected = [said.format("train.precision tf32"), said.format("decode.precision bfloat16")]
    assert found == expected[: 1 + lacking]


@pytest.mark.parametrize(
    ("language", "reason"), [("qq", "Can't import language qq"), ("vi", "Pyvi not installed")]
)
def test_a_language_that_spacy_cannot_tokenize(project, language, reason):
    text = PARAMS.replace("name: moses", "name: spacy")
    (project / "params.yaml").write_text(text.replace('target: "no"', 'target: "en"'))
    check_tokenizers(load_settings())
    (project / "params.yaml").write_text(text.replace('target: "no"', f'target: "{language}"'))
    message = f"corpora.own.tokenize: tokenize.name spacy, language .{language}.: .*{reason}"
    with pytest.raises(UserError, match=message) as refused:
        check_tokenizers(load_settings())
    assert "\n" not in str(refused.value)
