"""Notes about params.yaml: settings that are valid, but that may be unintended or fail later."""

from dataclasses import replace

import pytest

from bleuprint.config.experiment import load_settings
from bleuprint.config.notes import check_tokenizers, params_notes, precision_notes
from bleuprint.runtime import processor
from bleuprint.runtime.errors import UserError
from params import PARAMS, replace_once
from processors import INTEL


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Return a project with PARAMS and the files that it names; it is the working folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DVC_ROOT", raising=False)
    (tmp_path / "params.yaml").write_text(PARAMS)
    (tmp_path / "inputs").mkdir()
    for name in ("a.de", "a.no"):
        (tmp_path / "inputs" / name).touch()
    return tmp_path


@pytest.mark.usefixtures("project")
def test_settings_without_a_problem_have_no_notes():
    assert list(params_notes(load_settings())) == []


def test_a_note_names_a_missing_file_of_a_corpus(project):
    """`bleuprint check` prints such notes; the settings themselves are valid."""
    (project / "inputs/a.no").unlink()

    assert list(params_notes(load_settings())) == [
        "params.yaml:9: corpora.own.files.train.a.target: inputs/a.no: no such file"
    ]


def set_processor_flags(monkeypatch, flags):
    """Let this machine have a processor with these instructions, as /proc/cpuinfo lists them."""
    this_processor = replace(INTEL, flags=frozenset(flags.split()))
    monkeypatch.setattr(processor, "THIS", this_processor)


@pytest.mark.parametrize(
    ("flags", "has_bfloat16"),
    [
        pytest.param("avx2 avx512f", False, id="neither"),
        pytest.param("avx512_bf16", True, id="bfloat16 by AVX-512"),
        pytest.param("amx_tile", True, id="bfloat16 by AMX"),
    ],
)
def test_notes_name_the_precisions_that_the_processor_lacks(
    project, monkeypatch, flags, has_bfloat16
):
    """No CPU has tf32."""
    set_processor_flags(monkeypatch, flags)
    text = replace_once(PARAMS, "precision: float32\n", "precision: tf32\n")
    text = replace_once(text, "precision: float32}", "precision: bfloat16}")
    (project / "params.yaml").write_text(text)

    notes = list(precision_notes("base", load_settings().system_settings("base")))

    expected_notes = [
        "systems.base.train.precision is tf32, which this machine's CPU does not have",
    ]
    if not has_bfloat16:
        expected_notes.append(
            "systems.base.decode.precision is bfloat16, which this machine's CPU does not have"
        )
    assert notes == expected_notes


def set_tokenizer_and_target(project, tokenizer, target):
    """Write a params.yaml with another tokenizer and another target language."""
    text = replace_once(PARAMS, "name: moses", f"name: {tokenizer}")
    text = replace_once(text, 'target: "no"', f'target: "{target}"')
    (project / "params.yaml").write_text(text)


def test_spacy_tokenizes_english(project):
    set_tokenizer_and_target(project, "spacy", "en")

    check_tokenizers(load_settings())


@pytest.mark.parametrize(
    ("language", "reason"),
    [
        pytest.param("qaa", "Can't import language qaa", id="unknown language"),
        pytest.param("vi", "Pyvi not installed", id="missing package"),
    ],
)
def test_a_language_that_spacy_cannot_tokenize_is_an_error(project, language, reason):
    """There is no language `qaa` in spaCy; for Vietnamese (vi), spaCy needs the package Pyvi."""
    set_tokenizer_and_target(project, "spacy", language)

    message = f"corpora.own.tokenize: tokenize.name spacy, language .{language}.: .*{reason}"
    with pytest.raises(UserError, match=message) as error:
        check_tokenizers(load_settings())

    assert "\n" not in str(error.value)
