"""A plugin of pytest: with BLEUPRINT_REQUIRE=all, tests that may not be skipped fail instead."""

import pytest

import requirements


def pytest_configure():
    """Check the value of the variable before tests are collected; pytest calls this function."""
    requirements.check_variable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport():
    """Turn the report of a skipped test into a failure; pytest calls this after each test."""
    report = yield
    requirements.fail_if_required(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report():
    """Turn the report of a skipped module into a failure; pytest calls this for each module."""
    report = yield
    requirements.fail_if_required(report)
    return report
