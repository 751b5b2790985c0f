"""What one clone has computed, pushed to an S3 server, and pulled by another.

The project is a micro project with the systems tiny and wide (tests/support/micro.py).
"""

from types import SimpleNamespace

import boto3
import pytest
from moto.server import ThreadedMotoServer

import micro

pytestmark = pytest.mark.cluster

ACCESS_KEY_ID = "anyone"
SECRET_ACCESS_KEY = "anything"
REGION = "us-east-1"
# The variables by which DVC finds the keys, and no others of the user.
S3_VARIABLES = {
    "AWS_ACCESS_KEY_ID": ACCESS_KEY_ID,
    "AWS_SECRET_ACCESS_KEY": SECRET_ACCESS_KEY,
    "AWS_DEFAULT_REGION": REGION,
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_CONFIG_FILE": "/nonexistent",
    "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent",
}


@pytest.fixture(scope="module")
def server_address():
    """Return the address of an S3 server on this machine, which has the bucket `lab`."""
    server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    address = f"http://{host}:{port}"
    client = boto3.client(
        "s3",
        endpoint_url=address,
        aws_access_key_id=ACCESS_KEY_ID,
        aws_secret_access_key=SECRET_ACCESS_KEY,
        region_name=REGION,
    )
    client.create_bucket(Bucket="lab")
    yield address
    server.stop()


def use_s3_server(project, folder):
    """Set the variables with which DVC uses the S3 server, and `folder` for its lock files."""
    project.environment |= S3_VARIABLES
    project.environment["DVC_SITE_CACHE_DIR"] = str(folder / "site")


def clone_project(project, folder):
    """Return a clone as on another machine: it has what Git has, and nothing else."""
    project.run("git", "clone", "--quiet", str(project.root), str(folder / "clone"))
    clone = micro.Project(folder / "clone")
    use_s3_server(clone, folder)
    assert not (clone.root / "data").exists()
    return clone


def print_table(project):
    """Return the table that `bleuprint table` prints, which writes the HTML report as well."""
    return project.run("bleuprint", "table")


def translate_two_sentences(project):
    """Return the translations of two sentences by the system wide."""
    file = project.root / "work.txt"
    file.write_text("ba deo fi\nnu min\n")
    system = ("--system", "wide", "--corpus", "own")
    output = project.run("bleuprint", "translate", *system, file.name)
    file.unlink()
    return output


@pytest.fixture(scope="module")
def first_clone(server_address, tmp_path_factory):
    """Return the project that has computed everything, committed and pushed. Not to be changed."""
    folder = tmp_path_factory.mktemp("first")
    project = micro.make(folder / "project")
    use_s3_server(project, folder)
    project.run("dvc", "add", "inputs/a.en", "inputs/a.de")
    project.run("dvc", "remote", "add", "--default", "store", "s3://lab/micro")
    project.run("dvc", "remote", "modify", "store", "endpointurl", server_address)
    project.repro()
    project.commit()
    project.run("dvc", "push")
    return project


@pytest.fixture(scope="module")
def second_clone(first_clone, tmp_path_factory):
    """Return a clone of the first one after `dvc pull`. Not to be changed."""
    clone = clone_project(first_clone, tmp_path_factory.mktemp("second"))
    clone.run("dvc", "pull")
    return clone


def test_a_clone_prints_the_table_before_it_has_pulled_anything(first_clone, tmp_path):
    clone = clone_project(first_clone, tmp_path)

    assert "Baseline: tiny" in print_table(clone)


def test_a_clone_that_has_pulled_is_up_to_date(second_clone):
    assert second_clone.run("dvc", "status").strip() == "Data and pipelines are up to date."


def test_a_clone_that_has_pulled_prints_the_same_table(first_clone, second_clone):
    assert print_table(second_clone) == print_table(first_clone)


def test_a_clone_that_has_pulled_translates_in_the_same_way(first_clone, second_clone):
    expected_translations = translate_two_sentences(first_clone)
    assert expected_translations

    assert translate_two_sentences(second_clone) == expected_translations


def test_printing_the_table_in_a_clone_writes_the_html_report_and_keeps_committed_files(
    second_clone,
):
    """The training times in the report come from reports/costs.csv, which is committed.

    A new costs.csv with times of this machine would be a change for Git.
    """
    print_table(second_clone)

    assert "</html>" in second_clone.read("reports/index.html")
    changes = second_clone.run("git", "status", "--porcelain")
    assert changes == ""


@pytest.fixture(scope="module")
def clone_with_new_system(first_clone, tmp_path_factory):
    """Return a clone that has pulled, run a new system, deep, pushed its results and committed.

    Attributes of the result: `project`, and the `stages` that DVC ran.
    """
    clone = clone_project(first_clone, tmp_path_factory.mktemp("new"))
    clone.run("dvc", "pull")
    clone.write("params.yaml", clone.read("params.yaml") + micro.THIRD_SYSTEM)
    stages = clone.repro()
    clone.run("dvc", "push")
    clone.commit()
    return SimpleNamespace(project=clone, stages=stages)


def test_after_a_pull_dvc_runs_only_the_stages_of_a_new_system(clone_with_new_system):
    """The clone pulled the results of tiny and wide; then params.yaml got the system deep."""
    assert sorted(clone_with_new_system.stages) == [
        "average@deep-own-1",
        "fresh@deep-1",
        "report",
        "resolve",
        "score@deep-own-1",
        "train@deep-own-1",
        "translate@deep-own-1",
    ]
    assert clone_with_new_system.project.rows() == ["tiny", "wide", "deep"]


def test_a_third_clone_pulls_the_results_that_the_second_has_pushed(
    clone_with_new_system, tmp_path
):
    """The second clone has run a new system, deep, and pushed its results to the S3 server."""
    second_clone = clone_with_new_system.project
    third_clone = clone_project(second_clone, tmp_path)

    third_clone.run("dvc", "pull")

    assert third_clone.run("dvc", "status").strip() == "Data and pipelines are up to date."
    assert print_table(third_clone) == print_table(second_clone)
