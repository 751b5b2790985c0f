"""The pipeline as users run it with DVC, on a small project (see also tests/pipeline).

The project has the corpus own and the systems tiny and wide (tests/support/micro.py).
"""

import shutil
from types import SimpleNamespace

import pytest

import micro
from bleuprint.pipeline import graph
from bleuprint.pipeline.rules import make_rules
from micro import read_results

# What `dvc repro` writes.


def test_repro_writes_a_record_of_each_system(by_dvc):
    assert by_dvc.rows() == ["tiny", "wide"]


def test_the_record_of_a_run_has_the_number_of_translated_lines(by_dvc):
    """A test set is drawn with 15 of the 300 pairs."""
    line_counts = [record["lines"] for record in read_results(by_dvc)["runs"]]

    assert line_counts == [15, 15]


def test_every_trained_system_has_a_bleu_above_zero(by_dvc):
    """A BLEU of 0 would mean that the models have learned nothing, or that lines are shifted."""
    bleu_values = []
    for row in read_results(by_dvc)["metrics"]:
        if row["metric"] == "bleu":
            bleu_values.append(row["value"])

    assert bleu_values != []
    assert min(bleu_values) > 0


@pytest.mark.parametrize("file_name", ["table.md", "table.csv", "table.tex"])
def test_each_form_of_the_table_names_all_systems(by_dvc, file_name):
    table = by_dvc.read(f"reports/{file_name}")

    assert "tiny" in table
    assert "wide" in table


@pytest.mark.parametrize("file_name", ["results.json", "metrics.json", "table.csv"])
def test_reports_do_not_contain_the_path_of_the_project(by_dvc, file_name):
    """They are committed, and equal wherever they were computed."""
    assert str(by_dvc.root) not in by_dvc.read(f"reports/{file_name}")


@pytest.fixture(scope="module")
def snakemake_rules(by_dvc):
    """Return the rules that Snakemake gets for the stages of the project."""
    return list(make_rules(graph.load_stages(by_dvc.root), shards=1, root=by_dvc.root))


def test_every_rule_of_snakemake_is_for_some_stages(snakemake_rules):
    assert snakemake_rules
    for rule in snakemake_rules:
        assert rule.stages


def test_dvc_has_written_every_output_that_a_rule_of_snakemake_names(by_dvc, snakemake_rules):
    """The rules of Snakemake are made from dvc.yaml. `by_dvc` is a project after `dvc repro`."""
    for rule in snakemake_rules:
        for stage in rule.stages.values():
            for path in stage.outputs:
                assert (by_dvc.root / path).exists()


def test_a_rule_declares_exactly_those_outputs_as_folders_that_are_folders(by_dvc, snakemake_rules):
    """Snakemake has to know which outputs are folders before it runs a rule.

    `by_dvc` is a project after `dvc repro`, so all outputs exist as files or folders.
    """
    for rule in snakemake_rules:
        for stage in rule.stages.values():
            folders = []
            for output, path in zip(rule.outputs, stage.outputs, strict=True):
                if (by_dvc.root / path).is_dir():
                    folders.append(output)
            assert rule.folders == folders


# What a clone of a finished project can do.


def clone_without_data(project, folder):
    """Return a Git clone of a project: it has the reports and no data."""
    project.run("git", "clone", "--quiet", str(project.root), str(folder))
    return micro.Project(folder)


def translate_two_sentences(project, status=0):
    """Translate two sentences with the system wide, and return what was printed."""
    project.write("text.txt", "ba deo fi\nnu min\n")
    system = ("--system", "wide", "--corpus", "own")
    return project.run("bleuprint", "translate", *system, "text.txt", status=status)


@pytest.fixture
def clone_with_cache(by_dvc, tmp_path):
    """Return a clone that has DVC's cache, from which `dvc checkout` takes outputs."""
    clone = clone_without_data(by_dvc, tmp_path / "clone")
    shutil.copytree(by_dvc.root / ".dvc" / "cache", clone.root / ".dvc" / "cache")
    return clone


def test_translate_without_a_model_ends_in_a_message(clone_with_cache):
    output = translate_two_sentences(clone_with_cache, status=1)

    assert "Traceback" not in output


def test_a_clone_translates_with_the_outputs_of_two_stages(clone_with_cache, reproduced):
    """`translate` needs only the averaged weights and the vocabulary.

    So a user can download less: docs/cache.md names these two stages for `dvc pull`. Here, their
    outputs come from a copy of DVC's cache.
    """
    expected_translations = translate_two_sentences(reproduced)
    assert expected_translations != ""

    clone_with_cache.run("dvc", "checkout", "average@wide-own-1", "binarize@own")

    assert not (clone_with_cache.root / "results" / "wide").exists()
    assert translate_two_sentences(clone_with_cache) == expected_translations


def test_dvc_finds_a_clone_without_data_up_to_date(by_dvc, tmp_path):
    """Git contains dvc.lock and the reports. The user adds the texts in inputs/.

    With --allow-missing, DVC accepts that the outputs of finished stages are not here.
    """
    clone = clone_without_data(by_dvc, tmp_path / "clone")
    assert not (clone.root / "data").exists()
    shutil.copytree(by_dvc.root / "inputs", clone.root / "inputs", dirs_exist_ok=True)

    output = clone.run("dvc", "repro", "--allow-missing", "--dry")

    assert output.rstrip().endswith("Data and pipelines are up to date.")


# What runs again after a change of params.yaml.


@pytest.fixture(scope="module")
def project_with_greedy_search(by_dvc, tmp_path_factory):
    """Return a project whose beam was changed from 2 to 1, after which DVC has run.

    Attributes of the result: `project` and the `stages` that DVC ran.
    """
    project = by_dvc.copy(tmp_path_factory.mktemp("greedy") / "project")
    project.edit("params.yaml", "{beam: 2,", "{beam: 1,")
    return SimpleNamespace(project=project, stages=project.repro())


def test_a_decoding_setting_repeats_only_translations_and_scores(project_with_greedy_search):
    """The beam of the system tiny was changed from 2 to 1; wide inherits it. DVC has run since."""
    assert set(project_with_greedy_search.stages) == {
        "resolve",
        "translate@tiny-own-1",
        "translate@wide-own-1",
        "score@tiny-own-1",
        "score@wide-own-1",
        "report",
    }


def test_a_decoding_setting_changes_the_results(project_with_greedy_search, by_dvc):
    results = project_with_greedy_search.project.read("reports/results.json")

    assert results != by_dvc.read("reports/results.json")


def test_results_of_earlier_settings_come_from_the_cache(
    project_with_greedy_search, by_dvc, tmp_path
):
    """The user changed the beam from 2 to 1, ran DVC, and now restores params.yaml by Git.

    `by_dvc` is the project before these changes.
    """
    project = project_with_greedy_search.project.copy(tmp_path / "project")
    project.run("git", "checkout", "--quiet", "params.yaml")

    output = project.run("dvc", "repro")

    assert "translate@tiny-own-1' is cached - skipping run" in output
    assert project.read("reports/results.json") == by_dvc.read("reports/results.json")
    stages_out_of_date = project.changed_stages()
    assert stages_out_of_date == set()


# What `bleuprint reproduce` prints.


@pytest.fixture(scope="module")
def reproduce_output(by_dvc, tmp_path_factory):
    """Return the output of `bleuprint reproduce` after the experiment was renamed.

    Only the first and the last stage run.

    Attributes of the result: the lines `before` the first stage, the lines of the two `stages`, and
    the lines `after` them: the table, then five lines.
    """
    project = by_dvc.copy(tmp_path_factory.mktemp("reproduce") / "project")
    project.edit("params.yaml", "experiment: micro", "experiment: renamed")
    output = project.run("env", "COLUMNS=100", "bleuprint", "reproduce")
    before, first_stage, rest = output.partition("[1/2] resolve")
    first_line, second_line, *after = (first_stage + rest).splitlines()
    return SimpleNamespace(
        before=before.splitlines(),
        stages=[first_line, second_line],
        after=after,
    )


def test_reproduce_begins_with_the_name_of_the_valid_experiment(reproduce_output):
    assert reproduce_output.before[0] == "renamed: params.yaml is valid"


def test_reproduce_numbers_the_stages_that_it_runs(reproduce_output):
    first_stage, last_stage = reproduce_output.stages

    assert first_stage.startswith("[1/2] resolve")
    assert last_stage.startswith("[2/2] report")


def test_reproduce_prints_a_short_table_of_all_systems(reproduce_output):
    """After the stages, `bleuprint reproduce` prints the table and five lines of advice."""
    table = reproduce_output.after[:-5]

    systems_in_table = set()
    for line in table:
        if line.startswith(("tiny", "wide")):
            systems_in_table.add(line.split()[0])
    assert systems_in_table == {"tiny", "wide"}
    assert len(table) <= 40


def test_reproduce_says_what_to_commit_and_where_the_report_is(reproduce_output):
    """These are the first three of the five lines after the table of results."""
    comparison, changes, page, *_ = reproduce_output.after[-5:]

    assert comparison.startswith("Nothing to compare with: no results")
    assert changes.startswith("Changed: ")
    assert "To keep it: git add params.yaml" in changes
    assert page.startswith("Next: open reports/index.html")
