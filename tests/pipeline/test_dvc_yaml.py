"""The entries of a dvc.yaml that was written by hand."""

import pytest

from bleuprint.pipeline.dvc_yaml import entry_running, fill_variables, load_entries
from bleuprint.runtime.errors import UserError

GRAPH = """\
stages:
  prepare:
    foreach: ${corpora}
    do:
      cmd: env PYTHONPATH=src python stages/prepare_text.py ${key}
      params:
        - other.yaml: [size]
        - reports/resolved.json: [code.prepare_text, "corpora.${key}.source"]
      outs:
        - data/${key}
  learn: &learn
    matrix: {system: "${systems}", corpus: "${corpora}", seed: "${seeds}"}
    cmd:
      - mkdir -p models
      - python stages/learn.py ${item.system} ${item.corpus} ${item.seed}
    outs:
      - models/${item.system}/${item.corpus}/${item.seed}
    meta: {memory_gb: 32}
  learn_again:
    <<: *learn
    deps: [more]
  tables:
    cmd: python stages/tables.py
    outs:
      - table.md: {cache: false}
    metrics:
      - metrics.json: {cache: false}
"""


@pytest.fixture
def found(tmp_path):
    (tmp_path / "dvc.yaml").write_text(GRAPH)
    return load_entries(tmp_path)


def test_the_kinds_of_stages_are_the_entries_in_order(found):
    assert list(found) == ["prepare", "learn", "learn_again", "tables"]


def test_a_foreach_is_an_entry_of_corpora(found):
    entry = found["prepare"]
    assert entry.loops == {"key": "corpora"}
    assert entry.is_of_corpora()
    assert not entry.is_of_runs()


def test_a_matrix_with_seeds_is_an_entry_of_runs(found):
    entry = found["learn"]
    assert entry.loops == {"system": "systems", "corpus": "corpora", "seed": "seeds"}
    assert entry.is_of_runs()
    assert not entry.is_of_corpora()


def test_an_entry_has_what_it_merges(found):
    assert found["learn_again"].outputs == found["learn"].outputs
    assert found["learn_again"].memory_gb == 32


def test_outputs_include_metrics_without_their_options(found):
    assert found["tables"].outputs == ("table.md", "metrics.json")


def test_parameters_are_those_of_the_resolved_settings(found):
    assert found["prepare"].parameters == ("code.prepare_text", "corpora.${key}.source")
    assert found["tables"].parameters == ()


def test_dependencies_include_the_files_of_parameters(found):
    assert found["prepare"].dependencies == ("other.yaml", "reports/resolved.json")
    assert found["learn_again"].dependencies == ("more",)


def test_the_script_is_that_of_the_command(found):
    assert [entry.script for entry in found.values()] == [
        "prepare_text",
        "learn",
        "learn",
        "tables",
    ]


def test_the_command_names_its_arguments(found):
    names = found["learn"].argument_names("learn.py")
    assert names == ["item.system", "item.corpus", "item.seed"]


def test_an_entry_is_found_by_its_whole_script(tmp_path, found):
    assert entry_running("prepare_text.py", tmp_path) == found["prepare"]
    assert entry_running("text.py", tmp_path) is None


def test_known_loop_variables_are_filled_in():
    text = "data/${item.part}/${item.corpus}.x"
    assert fill_variables(text, {"item.corpus": "own"}) == "data/${item.part}/own.x"


def test_without_a_dvc_yaml_there_is_no_entry(tmp_path):
    assert load_entries(tmp_path) == {}


@pytest.mark.parametrize("graph", ["", "stages:\n", "stages: [a]\n", "stages: {a: 1, b: {}}\n"])
def test_what_is_no_entry_is_left_to_dvc(tmp_path, graph):
    (tmp_path / "dvc.yaml").write_text(graph)
    assert load_entries(tmp_path) == {}


def test_a_file_that_is_not_yaml_is_named_with_the_line(tmp_path):
    (tmp_path / "dvc.yaml").write_text("stages:\n  a: {\n")
    with pytest.raises(UserError, match=r"dvc\.yaml:\d+: not valid YAML"):
        load_entries(tmp_path)
