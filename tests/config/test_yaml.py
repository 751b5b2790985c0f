"""params.yaml as a document: YAML 1.2, and what is no YAML or has no end."""

import pytest

from bleuprint.config.experiment import load
from bleuprint.runtime.errors import UserError
from params import PARAMS, read

# Nine times nine ... of one value, in a few lines of aliases.
BOMB = (
    "[&a0 [1], " + ", ".join(f"&a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 12)) + "]"
)


def test_values_are_those_of_yaml_1_2(tmp_path):
    settings = read(tmp_path)
    assert settings.system("base").train.lr_schedule.inverse_sqrt.lr == 0.001
    assert settings.corpus("own").target == "no"
    assert settings.system("base").model.dropout.residual == 0.0


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("experiment: trial", "experiment: [", "not valid YAML"),
        ("experiment: trial", "experiment: a\x00", "not valid YAML"),
        (
            "    clean:",
            "   clean:",
            ":12: not valid YAML: expected <block end>, but found '<block ",
        ),
        ("    clean:", "   clean:", "(is it indented like its neighbors?)"),
        (
            "    clean:",
            "\tclean:",
            ":12: not valid YAML: the line is indented with a tab: use spaces",
        ),
        ("    clean:", "  \tclean:", ":12: not valid YAML: the line is indented with a tab: use "),
        ("  own:", "\town:", ":4: not valid YAML: the line is indented with a tab: use spaces"),
        ("corpora:\n", "corpora: &all\n  <<: *all\n", "an entry is merged (<<) into itself"),
        ("license: none", r'license: "\ud800"', "license: '\\ud800' holds NUL or half of a surrog"),
        ("path: inputs/a.de", r'path: "inputs/\0"', "path: 'inputs/\\x00' holds NUL or half of"),
        ("experiment: trial", f"experiment: {'[' * 1000}", "not valid YAML: nested too deeply"),
        ("experiment: trial", f"experiment: {BOMB}", "there are more than 1,000,000"),
        ("clip_norm: 1.0", f"clip_norm: 1{'0' * 5000}", "not valid YAML: Exceeds the limit"),
        ("seed: 1}", "seed: 2020-99-99}", "not valid YAML: month must be in 1..12"),
    ],
)
def test_what_is_no_document_is_one_line_with_its_place(tmp_path, old, new, message):
    assert PARAMS.count(old) == 1
    with pytest.raises(UserError) as error:
        read(tmp_path, PARAMS.replace(old, new))
    assert str(error.value).startswith(f"{tmp_path / 'params.yaml'}:")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("text", ["&a [*a]", "&a {x: *a}"])
def test_a_document_that_contains_itself_is_one_line(tmp_path, text):
    with pytest.raises(
        UserError, match=r"^\S+: not valid YAML: an entry contains itself by an ali"
    ):
        read(tmp_path, text)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(UserError, match=r"params\.yaml: no such file"):
        load(tmp_path / "params.yaml")
