"""A plugin of pytest: with BLEUPRINT_REQUIRE=all, tests that may not be skipped fail instead."""

import pytest

import requirements


def pytest_configure():
    requirements.check_variable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport():
    report = yield
    requirements.fail_if_required(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report():
    report = yield
    requirements.fail_if_required(report)
    return report
