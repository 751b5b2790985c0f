"""The page's provenance: the machines, versions and commits of the trainings."""

import dataclasses

import pytest

import result_trees as trees
from bleuprint.report.page.provenance import provenance_section
from bleuprint.report.page.report_data import ReportData
from bleuprint.report.records import collect


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Return the data of a page with the systems tiny and small, trained in this order."""
    root = tmp_path_factory.mktemp("provenance")
    settings = trees.settings_in(root, corpora={"news-en-de": ("first", "second")})
    trees.write_all(root, settings)
    return ReportData(settings, collect(settings, root), root)


def provenance_on(data, **device_by_system):
    """Return the HTML of the provenance if the systems are trained on these devices."""
    runs = data.records.runs
    runs = runs.assign(device=runs.system.map(device_by_system))
    records = dataclasses.replace(data.records, runs=runs)
    return provenance_section(ReportData(data.settings, records, data.root)).body


def test_machines_are_in_the_order_of_the_trainings(data):
    body = provenance_on(data, tiny="Zebra 2", small="Apple 1")

    assert body.index("Trained on Zebra 2") < body.index("Trained on Apple 1")


def test_each_of_several_machines_names_its_trainings(data):
    body = provenance_on(data, tiny="Zebra 2", small="Apple 1")

    assert ": tiny on news-en-de</li>" in body
    assert ": small on news-en-de</li>" in body


def test_the_only_machine_names_no_trainings(data):
    body = provenance_on(data, tiny="Zebra 2", small="Zebra 2")

    assert body.count("Trained on") == 1
    assert "tiny on news-en-de" not in body
