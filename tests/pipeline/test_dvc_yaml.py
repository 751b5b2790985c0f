"""The entries of a dvc.yaml that was written by hand."""

import pytest

from bleuprint.pipeline.dvc_yaml import entry_running, fill_variables, load_entries
from bleuprint.runtime.errors import UserError

DVC_YAML = """\
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


def write_dvc_yaml(folder, text):
    """Write a dvc.yaml."""
    (folder / "dvc.yaml").write_text(text)


@pytest.fixture
def dvc_entries(tmp_path):
    """Return the entries of DVC_YAML by name."""
    write_dvc_yaml(tmp_path, DVC_YAML)
    return load_entries(tmp_path)


def test_entries_have_the_names_and_the_order_of_dvc_yaml(dvc_entries):
    assert list(dvc_entries) == ["prepare", "learn", "learn_again", "tables"]


def test_an_entry_with_foreach_over_corpora_has_a_stage_for_each_corpus(dvc_entries):
    """One entry of dvc.yaml defines several stages, here `prepare@CORPUS`."""
    entry = dvc_entries["prepare"]  # foreach: ${corpora}

    # DVC calls the loop variable of foreach ${key}.
    assert entry.loops == {"key": "corpora"}
    assert entry.is_per_corpus()
    assert not entry.is_per_run()


def test_an_entry_with_a_matrix_of_systems_corpora_and_seeds_has_a_stage_for_each_run(dvc_entries):
    """The entry `learn` has matrix: {system: ${systems}, corpus: ${corpora}, seed: ${seeds}}.

    A run is one training: of a system, on a corpus, with a seed.
    """
    entry = dvc_entries["learn"]

    assert entry.loops == {"system": "systems", "corpus": "corpora", "seed": "seeds"}
    assert entry.is_per_run()
    assert not entry.is_per_corpus()


def test_an_entry_includes_the_keys_of_the_yaml_anchor_that_it_merges(tmp_path):
    """In YAML, `&learn` names a mapping, and `<<: *learn` copies its keys into another one."""
    write_dvc_yaml(
        tmp_path,
        """\
stages:
  learn: &learn
    cmd: python stages/learn.py
    outs: [models]
    meta: {memory_gb: 32}
  learn_again:
    <<: *learn
    deps: [more]
""",
    )

    entry = load_entries(tmp_path)["learn_again"]

    assert entry.outputs == ("models",)
    assert entry.memory_gb == 32


def test_a_merged_entry_has_the_outputs_and_the_memory_of_the_original(dvc_entries):
    merged_entry = dvc_entries["learn_again"]  # <<: *learn

    assert merged_entry.outputs == dvc_entries["learn"].outputs
    assert merged_entry.memory_gb == 32


def test_the_outputs_of_an_entry_include_its_metrics(tmp_path):
    """In dvc.yaml, an output or metric may have options, such as `cache: false`."""
    write_dvc_yaml(
        tmp_path,
        """\
stages:
  tables:
    cmd: python stages/tables.py
    outs:
      - table.md: {cache: false}
    metrics:
      - metrics.json: {cache: false}
""",
    )

    entry = load_entries(tmp_path)["tables"]

    assert entry.outputs == ("table.md", "metrics.json")


def test_the_parameters_of_an_entry_are_its_keys_of_the_resolved_settings(dvc_entries):
    """The entry also depends on the key `size` of other.yaml, which is no resolved setting."""
    assert dvc_entries["prepare"].parameters == ("code.prepare_text", "corpora.${key}.source")


def test_an_entry_without_params_has_no_parameters(dvc_entries):
    assert dvc_entries["tables"].parameters == ()


def test_the_dependencies_of_an_entry_include_the_files_of_its_params(dvc_entries):
    assert dvc_entries["prepare"].dependencies == ("other.yaml", "reports/resolved.json")


def test_the_dependencies_of_an_entry_are_its_deps(dvc_entries):
    assert dvc_entries["learn_again"].dependencies == ("more",)


@pytest.mark.parametrize(
    ("kind", "script"),
    [
        pytest.param("prepare", "prepare_text", id="after environment variables"),
        pytest.param("learn", "learn", id="in a list of commands"),
        pytest.param("learn_again", "learn", id="in a merged entry"),
        pytest.param("tables", "tables", id="in a plain command"),
    ],
)
def test_the_script_of_an_entry_is_the_file_of_stages_that_its_command_runs(
    dvc_entries, kind, script
):
    assert dvc_entries[kind].script == script


def test_the_argument_names_of_an_entry_are_the_loop_variables_in_its_command(dvc_entries):
    argument_names = dvc_entries["learn"].argument_names("learn.py")

    # python stages/learn.py ${item.system} ${item.corpus} ${item.seed}
    assert argument_names == ["item.system", "item.corpus", "item.seed"]


def test_an_entry_is_found_by_the_script_that_it_runs(tmp_path, dvc_entries):
    assert entry_running("prepare_text.py", tmp_path) == dvc_entries["prepare"]


def test_no_entry_is_found_by_the_end_of_its_script_name(tmp_path):
    write_dvc_yaml(tmp_path, "stages: {prepare: {cmd: python stages/prepare_text.py}}\n")

    assert entry_running("text.py", tmp_path) is None


def test_known_loop_variables_are_filled_in_and_unknown_ones_stay():
    text = "data/${item.part}/${item.corpus}.x"

    assert fill_variables(text, {"item.corpus": "own"}) == "data/${item.part}/own.x"


def test_a_project_without_dvc_yaml_has_no_entries(tmp_path):
    assert load_entries(tmp_path) == {}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty file"),
        pytest.param("stages:\n", id="no stages"),
        pytest.param("stages: [a]\n", id="list of stages"),
        pytest.param("stages: {a: 1, b: {}}\n", id="stages without a command"),
    ],
)
def test_invalid_entries_are_omitted(tmp_path, text):
    """DVC itself prints an error for them."""
    write_dvc_yaml(tmp_path, text)

    assert load_entries(tmp_path) == {}


def test_the_error_for_invalid_yaml_names_file_and_line(tmp_path):
    write_dvc_yaml(tmp_path, "stages:\n  a: {\n")

    with pytest.raises(UserError, match=r"dvc\.yaml:\d+: not valid YAML"):
        load_entries(tmp_path)
