"""What one clone has computed, pushed to an S3 server, and pulled by another."""

import boto3
import pytest
from moto.server import ThreadedMotoServer

import micro

pytestmark = pytest.mark.cluster

UP_TO_DATE = "Data and pipelines are up to date."
KEYS = {
    **{"AWS_ACCESS_KEY_ID": "anyone", "AWS_SECRET_ACCESS_KEY": "anything"},
    **{"AWS_DEFAULT_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true"},
    **{"AWS_CONFIG_FILE": "/nonexistent", "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent"},
}


@pytest.fixture(scope="module")
def server():
    """The address of an S3 server on the loopback."""
    server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    yield "http://{}:{}".format(*server.get_host_and_port())
    server.stop()


@pytest.fixture(scope="module")
def first(server, tmp_path_factory):
    """The clone that has computed everything, committed and pushed. Not to be changed."""
    folder = tmp_path_factory.mktemp("first")
    project = micro.make(folder / "project")
    project.environment |= {**KEYS, "DVC_SITE_CACHE_DIR": str(folder / "site")}
    names = ("aws_access_key_id", "aws_secret_access_key", "region_name")
    given = dict(zip(names, KEYS.values(), strict=False))
    boto3.client("s3", endpoint_url=server, **given).create_bucket(Bucket="lab")
    project.run("dvc", "add", "inputs/a.en", "inputs/a.de")
    project.run("dvc", "remote", "add", "--default", "store", "s3://lab/micro")
    project.run("dvc", "remote", "modify", "store", "endpointurl", server)
    project.repro()
    project.commit()
    project.run("dvc", "push")
    return project


@pytest.fixture
def clone(first, tmp_path):
    """Another machine's clone: what is in git, and nothing else."""
    return cloned(first, tmp_path)


def cloned(project, folder):
    project.run("git", "clone", "--quiet", str(project.root), str(folder / "clone"))
    clone = micro.Project(folder / "clone")
    clone.environment |= {**KEYS, "DVC_SITE_CACHE_DIR": str(folder / "site")}
    assert not (clone.root / "data").exists()
    return clone


def table(project):
    return project.run("bleuprint", "table")


def translations(project):
    project.write("work.txt", "ba deo fi\nnu min\n")
    found = project.run("bleuprint", "translate", "--system", "wide", "--corpus", "own", "work.txt")
    (project.root / "work.txt").unlink()
    return found


def test_the_second_clone_shows_translates_and_runs_a_new_row_alone(first, clone):
    assert "Baseline: tiny" in table(clone)  # from git alone
    clone.run("dvc", "pull")
    assert clone.run("dvc", "status").strip() == UP_TO_DATE
    assert table(clone) == table(first)
    assert translations(clone) == translations(first) != ""
    # its times are those of reports/costs.csv, and `bleuprint table` has written the page
    assert "</html>" in clone.read("reports/index.html")
    assert clone.run("git", "status", "--porcelain") == ""

    clone.write("params.yaml", clone.read("params.yaml") + micro.THIRD_SYSTEM)
    row = [f"{stage}@deep-own-1" for stage in ("train", "average", "translate", "score")]
    assert sorted(clone.repro()) == sorted([*row, "fresh@deep-1", "resolve", "report"])
    assert clone.rows() == ["tiny", "wide", "deep"]
    clone.run("dvc", "push")
    clone.commit()
    third = cloned(clone, clone.root.parent / "third")
    third.run("dvc", "pull")
    assert third.run("dvc", "status").strip() == UP_TO_DATE
    assert table(third) == table(clone)
