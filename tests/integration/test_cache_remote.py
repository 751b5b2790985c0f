"""What one clone has computed, pushed to an S3 server, and pulled by another."""

import json
import time

import pytest
import yaml

import micro

pytest.importorskip("dvc_s3", reason="needs dvc-s3: pip install -e '.[s3]'")
pytest.importorskip("moto", reason="needs moto: pip install 'moto[server]'")

from s3server import S3Server

pytestmark = pytest.mark.cluster

UP_TO_DATE = "Data and pipelines are up to date."
SECONDS = 90  # no failure may take longer, on however busy a machine


@pytest.fixture(scope="module")
def server():
    server = S3Server()
    try:
        server.start()
        yield server
    finally:
        server.kill()


@pytest.fixture(scope="module")
def first(server, tmp_path_factory):
    """The clone that has computed everything, committed and pushed. Not to be changed."""
    folder = tmp_path_factory.mktemp("first")
    project = micro.make(folder / "project")
    project.environment |= {**server.environment, "DVC_SITE_CACHE_DIR": str(folder / "site")}
    project.run("dvc", "add", "inputs/a.en", "inputs/a.de")
    project.run("dvc", "remote", "add", "--default", "store", f"s3://{server.bucket}/micro")
    project.run("dvc", "remote", "modify", "store", "endpointurl", server.uri)
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
    clone.environment |= {
        key: value for key, value in project.environment.items() if key.startswith("AWS_")
    }
    clone.environment["DVC_SITE_CACHE_DIR"] = str(folder / "site")
    assert not (clone.root / "data").exists()
    return clone


def cached(project):
    """The files of a clone's cache, whole ones alone, with their sizes."""
    files = (project.root / ".dvc" / "cache" / "files" / "md5").rglob("*")
    return {
        path.parent.name + path.name: path.stat().st_size
        for path in files
        if path.is_file() and len(path.name.removesuffix(".dir")) == 30
    }


def output_files(project, *stages):
    """The cached files of these stages' outputs, by dvc.lock and DVC's lists of folders."""
    lock = yaml.safe_load(project.read("dvc.lock"))["stages"]
    names = {out["md5"] for stage in stages for out in lock[stage]["outs"]}
    folders = [name for name in names if name.endswith(".dir")]
    lists = [project.read(f".dvc/cache/files/md5/{name[:2]}/{name[2:]}") for name in folders]
    return names | {entry["md5"] for text in lists for entry in json.loads(text)}


def stored(server):
    """The same for the server: the files that were pushed."""
    return {"".join(key.split("/")[-2:]): size for key, size in server.objects().items()}


def table(project):
    return project.run("bleuprint", "table")


def translations(project):
    project.write("work.txt", "ba deo fi\nnu min\n")
    found = project.run("bleuprint", "translate", "--system", "wide", "--corpus", "own", "work.txt")
    (project.root / "work.txt").unlink()
    return found


def test_the_second_clone_shows_translates_and_runs_a_new_row_alone(first, clone):
    assert "tiny (baseline)" in table(clone)  # from git alone
    clone.run("dvc", "pull")
    assert clone.run("dvc", "status").strip() == UP_TO_DATE
    assert table(clone) == table(first)
    assert translations(clone) == translations(first) != ""
    # its times are those of reports/costs.csv, and `bleuprint table` has written the page
    assert "</html>" in clone.read("reports/index.html")
    assert clone.run("git", "status", "--porcelain") == ""

    clone.write("params.yaml", clone.read("params.yaml") + micro.THIRD_SYSTEM)
    row = [f"{stage}@deep-own-1" for stage in ("train", "average", "translate", "score")]
    assert sorted(clone.repro()) == sorted([*row, "resolve", "report"])
    assert clone.rows() == ["tiny", "wide", "deep"]
    clone.run("dvc", "push")
    clone.commit()
    third = cloned(clone, clone.root.parent / "third")
    third.run("dvc", "pull")
    assert third.run("dvc", "status").strip() == UP_TO_DATE
    assert table(third) == table(clone)


def test_a_part_is_pulled_by_the_names_of_its_stages(first, clone):
    output = clone.run("bleuprint", "translate", "--system", "wide", "--corpus", "own", status=1)
    assert "Traceback" not in output
    parts = ("average@wide-own-1", "binarize@own")
    clone.run("dvc", "pull", *parts)
    assert cached(clone).keys() == output_files(clone, *parts)
    assert translations(clone) == translations(first)


def failed(project, command, meanwhile=None):
    """What a DVC command prints that fails within SECONDS."""
    process = project.start("dvc", command, "--jobs", "1")
    try:
        if meanwhile:
            meanwhile(process)
        output, _ = process.communicate(timeout=SECONDS)
    finally:
        micro.kill(process)
    assert process.returncode > 0 and "Traceback" not in output, output
    return output


def killed_while(server, project, command, so_far):
    """The same with a server that is killed as soon as `so_far` counts a few files."""

    def meanwhile(process):
        while so_far() < 5:
            assert process.poll() is None, process.communicate()[0]
            time.sleep(0.02)
        server.kill()

    return failed(project, command, meanwhile)


def test_a_server_that_goes_away_fails_push_and_pull_and_nothing_is_lost(first, server, tmp_path):
    """The restarted server has lost its objects: the harder case."""
    clone, before = cloned(first, tmp_path), cached(first)
    try:
        server.kill()
        server.start()
        output = killed_while(server, first, "push", lambda: len(server.objects()))
        assert no_connection(server) in output
        assert no_connection(server) in failed(first, "push")
        assert cached(first) == before

        server.start()
        first.run("dvc", "push")
        pushed = stored(server)
        output = killed_while(server, clone, "pull", lambda: len(cached(clone)))
        assert no_connection(server) in output
        assert 5 <= len(cached(clone)) < len(pushed)
        assert cached(clone).items() <= pushed.items()
    finally:
        server.start()
        first.run("dvc", "push")
    clone.run("dvc", "pull")
    assert clone.run("dvc", "status").strip() == UP_TO_DATE
    assert cached(clone) == stored(server) == pushed
    assert cached(first) == before


def no_connection(server):
    return f'Could not connect to the endpoint URL: "{server.uri}/'


def test_wrong_credentials_are_named_and_nothing_is_lost(first, clone, server):
    before, pushed = cached(first), stored(server)
    good = server.lock()
    try:
        assert "Forbidden" in failed(clone, "pull")
        clone.environment |= {**good, "AWS_SECRET_ACCESS_KEY": "misspelt"}
        assert "Forbidden" in failed(clone, "pull")
        assert cached(clone) == {}
        assert "Forbidden" in failed(first, "push")
        clone.environment |= good
        clone.run("dvc", "pull")
        assert clone.run("dvc", "status").strip() == UP_TO_DATE
    finally:
        server.unlock()
    assert stored(server) == pushed and cached(first) == before


def test_a_bucket_that_is_not_there_is_an_error(first, clone):
    for project, command in ((clone, "pull"), (first, "push")):
        project.run("dvc", "remote", "modify", "--local", "store", "url", "s3://nowhere/micro")
        assert "The specified bucket does not exist" in failed(project, command)
    first.run("dvc", "remote", "modify", "--local", "--unset", "store", "url")
    assert cached(clone) == {}
