"""The examples of docs/contributing.md, followed in a copy of a small project.

Each section of this page adds something to bleuprint: a rule, a format, a stage. The tests do what
a section says, and use what it has added. test_contributing_metric.py has the metric.
"""

import json
import re
from types import SimpleNamespace

import pytest
import sacrebleu
from safetensors.numpy import load_file

import micro
from contributing import Example, code_blocks, follow_section, metric_rows, sections
from root import ROOT

pytestmark = pytest.mark.slow


def write_questions_rule(project):
    """Write the file of the rule `questions`, which docs/preparation.md shows."""
    page = (ROOT / "docs" / "preparation.md").read_text("utf-8")
    (content,) = [block for block in code_blocks(page, "python") if "class Questions" in block]
    project.write("src/bleuprint/rules/questions.py", content)


def append_to_params(project, lines):
    """Append lines to params.yaml, such as those of a system, which stand at its end."""
    project.write("params.yaml", project.read("params.yaml") + lines)


@pytest.mark.parametrize(
    ("heading", "addition"),
    [
        ("A cleaning rule", '"questions"'),
        ("A file format", "fast-align"),
        ("A setting of a system", "clip_value"),
        ("A model variation", "squared_relu"),
        ("A kind of system", '"command"'),
    ],
)
def test_the_commands_of_a_section_write_its_addition_to_the_schema(
    clean, tmp_path, heading, addition
):
    """Each section of docs/contributing.md adds something to bleuprint, such as a cleaning rule.

    `follow_section` does what it says. Its commands then write the JSON Schema of params.yaml, by
    which editors complete and check the file.
    """
    project = clean.copy(tmp_path / "project")
    follow_section(project, heading)
    if heading == "A cleaning rule":
        write_questions_rule(project)
    (project.root / "docs").mkdir()

    commands = code_blocks(sections()[heading], "bash")
    assert commands
    for command in commands:
        project.run("bash", "-ec", command)

    assert addition in project.read("docs/params.schema.json")


def test_the_section_about_rules_names_the_file_of_its_example():
    assert "`questions.py`" in sections()["A cleaning rule"]


def test_inspect_counts_what_a_new_rule_drops_before_any_stage_is_run(clean, tmp_path):
    """The rule `questions` drops a pair if one side has more question marks than the other.

    Here the first three source sentences get a question mark; no other sentence has one.
    """
    project = clean.copy(tmp_path / "project")
    write_questions_rule(project)
    project.edit("params.yaml", "filter: {length", "filter: {questions: {apart: 0}, length")
    lines = project.read("inputs/a.en").splitlines()
    for number in (0, 1, 2):
        lines[number] += " ?"
    project.write("inputs/a.en", "\n".join(lines) + "\n")

    output = project.run("bleuprint", "inspect", "own")

    assert "questions: 3 dropped" in output


# The input of the aligner fast_align has both sides of a pair in a line: source ||| target.


def read_cleaned_text(project):
    """Return both sides of the training text that the stage clean has written."""
    return [project.read(f"data/clean/own/together/train.{language}") for language in ("en", "de")]


@pytest.fixture(scope="module")
def fast_align_example(clean, tmp_path_factory):
    """Return a project whose text was cleaned as two plain files, then as one of fast-align.

    Attributes of the result: `project`, `stages` that DVC ran the second time, and `plain_text`,
    which is the text that the first time has written.
    """
    project = clean.copy(tmp_path_factory.mktemp("format") / "project")
    project.run("dvc", "repro", "clean@own")
    plain_text = read_cleaned_text(project)

    follow_section(project, "A file format")
    sources = project.read("inputs/a.en").splitlines()
    targets = project.read("inputs/a.de").splitlines()
    lines = []
    for source, target in zip(sources, targets, strict=True):
        lines.append(f"{source} ||| {target}\n")
    project.write("inputs/a.txt", "".join(lines))
    two_files = "source: {path: inputs/a.en}, target: {path: inputs/a.de}"
    project.edit("params.yaml", two_files, "format: fast-align, both: {path: inputs/a.txt}")
    stages = micro.stages_in_output(project.run("dvc", "repro", "clean@own"))
    return SimpleNamespace(project=project, stages=stages, plain_text=plain_text)


def test_a_text_that_changes_its_format_is_downloaded_and_cleaned_again(fast_align_example):
    assert fast_align_example.stages == ["resolve", "download@own", "clean@own"]


def test_a_text_in_a_new_format_gives_the_same_pairs_as_two_plain_files(fast_align_example):
    """The new format, fast-align, has both sides of a pair in a line: `source ||| target`.

    The same 300 pairs were first read from two plain files (plain_text), then in this format.
    """
    text_from_new_format = read_cleaned_text(fast_align_example.project)

    assert text_from_new_format == fast_align_example.plain_text
    for side in text_from_new_format:
        assert side.count("\n") == 300


def test_the_error_for_a_line_that_breaks_a_new_format_names_file_and_line(
    fast_align_example, tmp_path
):
    """The new format, fast-align, has both sides of a pair in a line: `source ||| target`."""
    project = fast_align_example.project.copy(tmp_path / "project")
    lines = project.read("inputs/a.txt").splitlines(keepends=True)
    lines[7] = "ba deo\n"  # line 8, without " ||| "
    project.write("inputs/a.txt", "".join(lines))

    output = project.run("dvc", "repro", "clean@own", status=None)

    assert "inputs/a.txt:8: not of the form source ||| target" in output


# The stage `longest` writes the ten longest lines of a training text.


@pytest.fixture(scope="module")
def longest_example(by_dvc, tmp_path_factory):
    """Return the Example in which DVC has run the stage `longest`."""
    project = by_dvc.copy(tmp_path_factory.mktemp("stage") / "project")
    follow_section(project, "A stage")
    stages = micro.stages_in_output(project.run("dvc", "repro", "longest@own"))
    return Example(project, stages)


def test_dvc_runs_a_new_stage_and_none_of_the_others(longest_example):
    """The stage `longest` was added to a project that is up to date."""
    assert longest_example.stages == ["resolve", "longest@own"]


def test_a_new_stage_writes_its_output(longest_example):
    """The stage `longest`, an example of docs/contributing.md, writes the ten longest lines."""
    project = longest_example.project
    training_lines = project.read("data/split/own/train.en").splitlines()
    expected_lines = sorted(training_lines, key=len, reverse=True)[:10]

    lines = project.read("data/longest/own.txt").splitlines()

    assert lines == expected_lines


def test_snakemake_has_a_rule_for_a_new_stage(longest_example):
    rules = longest_example.project.run("snakemake", "--list-rules").split()

    assert "longest" in rules


def test_snakemake_does_not_repeat_a_new_stage_that_dvc_has_run(longest_example):
    """DVC has run the new stage longest@own, so a dry run of Snakemake must not list it."""
    dry_run = longest_example.project.run("snakemake", "-n", "data/longest/own.txt")

    assert "longest@own" not in dry_run


# The setting `clip_value` limits each component of a gradient.


def train_wide(project):
    """Train the system wide as DVC does, and return the record of its training."""
    project.run("dvc", "repro", "train@wide-own-1")
    return json.loads(project.read("results/wide/own/1/training.json"))


def set_clip_value(project, value):
    """Set the training setting `clip_value` of the system wide."""
    project.edit("params.yaml", "{lr_schedule: {inv", f"{{clip_value: {value}, lr_schedule: {{inv")


def test_adding_a_setting_does_not_change_a_training_that_does_not_use_it(reproduced):
    """The new setting is clip_value. By default, it is not recorded among the settings.

    Otherwise, adding a setting to bleuprint would make all earlier results incomparable.
    """
    record_before = json.loads(reproduced.read("results/wide/own/1/training.json"))
    follow_section(reproduced, "A setting of a system")

    record = train_wide(reproduced)

    assert record["valid_loss"] == record_before["valid_loss"]
    assert record["settings"] == record_before["settings"]


def test_a_new_setting_changes_the_training_of_a_system_that_sets_it(reproduced):
    """The new setting, clip_value, limits each component of a gradient, here to 0.001."""
    record_before = json.loads(reproduced.read("results/wide/own/1/training.json"))
    follow_section(reproduced, "A setting of a system")
    set_clip_value(reproduced, 0.001)

    record = train_wide(reproduced)

    assert record["valid_loss"] != record_before["valid_loss"]


def test_check_names_the_line_of_a_new_setting_outside_its_range(clean, tmp_path):
    """The new setting, clip_value, limits the size of a gradient, so -1 makes no sense."""
    project = clean.copy(tmp_path / "project")
    follow_section(project, "A setting of a system")
    set_clip_value(project, -1)

    output = project.run("bleuprint", "check", status=1)

    assert re.search(r"params.yaml:\d+: systems\.wide\.train\.clip_value: -1 ", output)


# A new activation of the model, squared_relu.


@pytest.fixture(scope="module")
def squared_relu_example(by_dvc, tmp_path_factory):
    """Return the Example in which a system `squared` with the activation squared_relu was trained.

    The systems tiny and wide were there before.
    """
    project = by_dvc.copy(tmp_path_factory.mktemp("variation") / "project")
    follow_section(project, "A model variation")
    row = "  squared:\n    like: tiny\n    model: {activation: squared_relu}\n"
    append_to_params(project, row)
    return Example(project, project.repro())


def averaged_weights(project, system):
    """Return the bytes of a system's averaged weights, by the names of the parameters."""
    tensors = load_file(project.root / f"models/{system}/own/1/averaged/model.safetensors")
    return {name: tensor.tobytes() for name, tensor in tensors.items()}


def test_adding_an_activation_trains_all_systems(squared_relu_example):
    """The system squared uses the new activation, squared_relu; tiny does not.

    The code of the model has changed, so DVC repeats every training that runs it.
    """
    expected_stages = {"train@tiny-own-1", "train@squared-own-1", "score@squared-own-1", "report"}

    assert expected_stages <= set(squared_relu_example.stages)


@pytest.mark.parametrize("system", ["tiny", "wide"])
def test_adding_an_activation_does_not_change_the_weights_of_systems_that_do_not_use_it(
    squared_relu_example, by_dvc, system
):
    """`by_dvc` is the project before the activation squared_relu was added to its code."""
    weights_before = averaged_weights(by_dvc, system)

    weights_after = averaged_weights(squared_relu_example.project, system)

    assert weights_after == weights_before


@pytest.mark.parametrize("system", ["tiny", "wide"])
def test_a_system_with_a_new_activation_has_other_weights(squared_relu_example, system):
    """The system squared uses the new activation, squared_relu; tiny and wide use ReLU."""
    weights_of_squared = averaged_weights(squared_relu_example.project, "squared")
    weights_of_relu_system = averaged_weights(squared_relu_example.project, system)

    assert weights_of_squared != weights_of_relu_system


def test_the_description_of_a_model_names_a_new_activation(squared_relu_example):
    path = "models/squared/own/1/averaged/model.json"
    description = json.loads(squared_relu_example.project.read(path))

    assert description["model"]["activation"] == "squared_relu"


def test_a_system_with_a_new_activation_is_the_last_row_of_the_results(squared_relu_example):
    assert squared_relu_example.project.rows() == ["tiny", "wide", "squared"]
    assert "squared" in squared_relu_example.project.read("reports/table.md")


def test_check_names_the_line_of_an_activation_that_does_not_exist(clean, tmp_path):
    """The activation is called squared_relu; params.yaml says `squared`."""
    project = clean.copy(tmp_path / "project")
    follow_section(project, "A model variation")
    append_to_params(project, "  squared:\n    like: tiny\n    model: {activation: squared}\n")

    output = project.run("bleuprint", "check", status=1)

    assert re.search(r"params.yaml:\d+: systems.squared.model.activation: 'squared' ", output)


# A new kind of system, whose translations a program writes: in the system `capitals` it is
# `tr a-z A-Z`.


@pytest.fixture(scope="module")
def capitals_example(by_dvc, tmp_path_factory):
    """Return the Example with the system `capitals`, which writes the source in capitals."""
    project = by_dvc.copy(tmp_path_factory.mktemp("kind") / "project")
    follow_section(project, "A kind of system")
    (row,) = code_blocks(sections()["A kind of system"], "yaml")
    append_to_params(project, row)
    return Example(project, project.repro())


def test_adding_a_system_that_translates_with_a_program_repeats_no_other_training(
    capitals_example,
):
    """The system `capitals` translates with the program `tr a-z A-Z`.

    dvc.yaml has a stage train for each system. The one of `capitals` runs, but writes empty
    outputs.
    """
    training_stages = [name for name in capitals_example.stages if name.startswith("train@")]

    assert training_stages == ["train@capitals-own-1"]


def test_the_translations_by_a_program_are_what_it_prints(capitals_example):
    """The system `capitals` translates with `tr a-z A-Z`, so its output is the source in capitals.

    The translations are from English to German.
    """
    project = capitals_example.project
    sources = project.read("data/split/own/test.held-out.en").splitlines()
    translations = project.read("results/capitals/own/1/hypotheses/test.held-out.de").splitlines()

    assert translations == [source.upper() for source in sources]


def test_translations_by_a_program_get_the_bleu_of_sacrebleu_and_an_interval(capitals_example):
    """The program of the system `capitals` is `tr a-z A-Z`."""
    project = capitals_example.project
    sources = project.read("data/split/own/test.held-out.en").splitlines()
    references = project.read("data/split/own/test.held-out.de").splitlines()
    translations = [source.upper() for source in sources]
    expected_bleu = sacrebleu.corpus_bleu(translations, [references]).score

    (row,) = metric_rows(project, system="capitals", metric="bleu", group="")

    assert row["value"] == pytest.approx(expected_bleu)
    assert 0 < row["ci_low"] < row["value"] < row["ci_high"]


def test_the_table_describes_a_system_that_translates_with_a_program(capitals_example):
    table = capitals_example.project.read("reports/table.md")

    assert "capitals" in table
    assert "tr: each letter as a capital" in table


def test_dvc_repeats_no_stage_of_a_system_that_translates_with_a_program(capitals_example):
    assert capitals_example.project.repro() == []


def test_the_error_for_a_program_that_prints_too_few_translations_names_it(
    capitals_example, tmp_path
):
    """The program `head -1` prints one line, but the test set has more."""
    project = capitals_example.project.copy(tmp_path / "project")
    project.edit("params.yaml", "tr a-z A-Z", "head -1")

    output = project.run("dvc", "repro", status=None)

    message = r"params.yaml:\d+: .*head -1 has 1 line, but the test set held-out"
    assert re.search(message, output)


def test_check_refuses_a_program_and_a_file_for_the_same_translations(capitals_example, tmp_path):
    """The translations of a system are the output of `command` or the file at `path`, not both."""
    project = capitals_example.project.copy(tmp_path / "project")
    project.edit("params.yaml", "{command: ", "{path: inputs/external/a.de, command: ")

    output = project.run("bleuprint", "check", status=1)

    assert re.search(r"params.yaml:\d+: .*held-out: needs path and sha256, or a command", output)


# The column "Source tokens" shows the millions of source tokens of a training text.


@pytest.fixture(scope="module")
def source_tokens_example(by_dvc, tmp_path_factory):
    """Return the Example whose tables have the column "Source tokens"."""
    project = by_dvc.copy(tmp_path_factory.mktemp("column") / "project")
    follow_section(project, "A column of the table")
    stages = micro.stages_in_output(project.run("dvc", "repro"))
    return Example(project, stages)


def test_a_new_column_runs_only_the_report_again(source_tokens_example):
    assert set(source_tokens_example.stages) <= {"resolve", "report"}


@pytest.mark.parametrize("file_name", ["table.md", "table.tex", "index.html"])
def test_each_form_of_the_table_has_a_new_column(source_tokens_example, file_name):
    """The new column, "Source tokens", shows the millions of source tokens of a training text."""
    project = source_tokens_example.project
    runs = json.loads(project.read("reports/results.json"))["runs"]
    millions = runs[0]["source_tokens"] / 1e6

    text = project.read(f"reports/{file_name}")

    assert "Source tokens" in text
    assert f"{millions:,.2f}M" in text
