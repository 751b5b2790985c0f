"""A project with resolved settings, in which nothing has run, and its stages."""

import pytest

import micro
from bleuprint.pipeline import graph
from bleuprint.pipeline.resolve import write_resolved
from shared_folders import left_unchanged


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """Make a micro project whose settings are resolved. Not to be changed."""
    project = micro.make(tmp_path_factory.mktemp("resolved") / "project")
    write_resolved(project.root)
    with left_unchanged(project.root):
        yield project


@pytest.fixture(scope="module")
def stages(project):
    """Return the stages of the project's dvc.yaml, by names such as `train@tiny-own-1`."""
    return {stage.name: stage for stage in graph.load_stages(project.root)}


@pytest.fixture
def own_project(stand_in, tmp_path):
    """Return a project in which all stages have run, for one test to change."""
    return stand_in.copy(tmp_path / "project")
