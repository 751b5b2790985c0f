"""params.yaml as a document: YAML 1.2, and what is no YAML or has no end."""

import pytest

from bleuprint.config.experiment import load_settings
from bleuprint.runtime.errors import UserError
from params import PARAMS, read


def test_values_are_those_of_yaml_1_2(tmp_path):
    settings = read(tmp_path)
    assert settings.system_settings("base").train.lr_schedule.inverse_sqrt.lr == 0.001
    assert settings.corpus("own").target == "no"
    assert settings.system_settings("base").model.dropout.residual == 0.0


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("experiment: trial", "experiment: a\x00", ":1: not valid YAML"),
        ("    clean:", "   clean:", ":12: not valid YAML: expected <block end>, but found '<block"),
        ("    clean:", "   clean:", "(is it indented like its neighbors, with a space after each"),
        ("heads: 2", "heads:2", "a space after each colon?)"),
        ("    clean:", "  \tclean:", ":12: not valid YAML: the line is indented with a tab: use"),
        ("corpora:\n", "corpora: &all\n  <<: *all\n", "not valid YAML"),
        ("experiment: trial", f"experiment: {'[' * 1000}", "not valid YAML: maximum recursion"),
        ("clip_norm: 1.0", f"clip_norm: 1{'0' * 5000}", "not valid YAML: Exceeds the limit"),
        ("seed: 1}", "seed: 2020-99-99}", "not valid YAML: month must be in 1..12"),
        ("heads: 2", "heads: 2\n      heads: 4", 'found duplicate key "heads"'),
    ],
)
def test_what_is_no_document_is_one_line_with_its_place(tmp_path, old, new, message):
    assert PARAMS.count(old) == 1
    with pytest.raises(UserError) as error:
        read(tmp_path, PARAMS.replace(old, new))
    assert str(error.value).startswith(f"{tmp_path / 'params.yaml'}:")
    assert message in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("text", ["&a [*a]", "&a {x: *a}"])
def test_a_document_that_contains_itself_is_one_line(tmp_path, text):
    with pytest.raises(UserError) as error:
        read(tmp_path, text)
    assert str(error.value) == (
        f"{tmp_path / 'params.yaml'}: not valid YAML: "
        "an entry contains itself by an alias (*): write it in full"
    )


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(UserError, match=r"params\.yaml: no such file"):
        load_settings(tmp_path / "params.yaml")
