"""The page's provenance: the machines, versions and commits of the trainings."""

import dataclasses

import pytest

import result_trees as trees
from bleuprint.report.page.provenance import provenance_section
from bleuprint.report.page.report_data import ReportData
from bleuprint.report.records import collect


@pytest.fixture(scope="module")
def context(tmp_path_factory):
    root = tmp_path_factory.mktemp("made")
    settings = trees.settings_in(root, corpora={"news-en-de": ("first", "second")})
    trees.write_all(root, settings)
    return ReportData(settings, collect(settings, root), root)


def trained_on(context, device_by_system):
    """What the section says of trainings on these devices."""
    runs = context.records.runs
    runs = runs.assign(device=runs.system.map(device_by_system))
    records = dataclasses.replace(context.records, runs=runs)
    return provenance_section(ReportData(context.settings, records, context.root)).body


def test_machines_are_in_the_order_of_the_trainings(context):
    body = trained_on(context, {"tiny": "Zebra 2", "small": "Apple 1"})
    assert body.index("Trained on Zebra 2") < body.index("Trained on Apple 1")
    assert ": tiny on news-en-de</li>" in body
    assert ": small on news-en-de</li>" in body


def test_one_machine_of_all_trainings_names_none_of_them(context):
    body = trained_on(context, {"tiny": "Zebra 2", "small": "Zebra 2"})
    assert body.count("Trained on") == 1
    assert "tiny on news-en-de" not in body
