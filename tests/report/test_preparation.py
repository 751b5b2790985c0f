"""Corpora that were prepared with other settings than those of params.yaml."""

import pytest

from bleuprint.config.experiment import load
from bleuprint.report.preparation import check_preparation
from bleuprint.runtime.errors import UserError


@pytest.mark.parametrize(
    ("stage", "old", "new"),
    [
        ("clean", "    vocab", "    clean: {unicode: {form: NFKC}}\n    vocab"),
        ("dedup", "    vocab", "    dedup: {sources: true}\n    vocab"),
        ("filter", "max: 100", "max: 7"),
        ("split", "    vocab", "    split: {valid: 0.1}\n    vocab"),
        ("filter", "    vocab", "    tokenize: {hyphens: true}\n    vocab"),  # it counts tokens
        ("binarize", "num_merges: 40,", "num_merges: 41,"),
        ("download", "source: {path: inputs/a.en}", "source: {path: inputs/b.en}"),
    ],
)
def test_every_setting_of_preparation_is_compared(by_dvc, tmp_path, stage, old, new):
    text = by_dvc.read("params.yaml")
    same, other = tmp_path / "same.yaml", tmp_path / "other.yaml"
    same.write_text(text)
    check_preparation(load(same), by_dvc.root)
    assert text.count(old) == 1
    other.write_text(text.replace(old, new))
    with pytest.raises(UserError, match=rf"{stage}\.json: {stage} of own ran with other settings"):
        check_preparation(load(other), by_dvc.root)


def test_settings_that_were_committed_without_a_run_are_refused(reproduced):
    """dvc commit --force takes the outputs on disk for those of the new settings."""
    reproduced.edit("params.yaml", "max: 100", "max: 7")
    reproduced.run("dvc", "repro", "resolve")
    reproduced.run("dvc", "commit", "--force", "--quiet", "filter@own")
    output = reproduced.run("dvc", "repro", status=255)
    line = "filter.json: filter of own ran with other settings than those of params.yaml; run: "
    assert f"{line}dvc repro --force --single-item filter@own, then dvc repro" in output
    reproduced.run("dvc", "repro", "--force", "--single-item", "filter@own")
    check_preparation(load(reproduced.root / "params.yaml"), reproduced.root)
