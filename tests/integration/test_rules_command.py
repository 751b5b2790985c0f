"""The command rules from start to end, on a corpus with one rule, and again."""

import re

import pytest

import micro

TEXT = "{t: {license_and_citation: own, source: {path: inputs/t.en}, target: {path: inputs/t.de}}}"
EDITS = {
    "valid: {}": f"valid: {TEXT}",
    "tests: {}": f"tests: {{t: {TEXT}}}",
    "clean: {unicode: {form: NFC}, non_printing: {}}": "clean: {}",
    "pairs: true": "pairs: false",
    "decontaminate: normalized": "decontaminate: none",
    "length: {min: 1, max: 100}, ratio: {max: 3.0}": "length: {min: 1, max: 5}",
}


@pytest.mark.slow
def test_rules_trains_without_each_rule_and_then_runs_nothing(tmp_path):
    project = micro.make(tmp_path)
    for old, new in EDITS.items():
        project.edit("params.yaml", old, new)
    for side in ("en", "de"):
        lines = project.read(f"inputs/a.{side}").splitlines(keepends=True)
        project.write(f"inputs/t.{side}", "".join(lines[:20]))
    command = ("bleuprint", "rules", "own", "--seeds", "2")
    printed = project.run(*command, timeout=900)
    assert "work/rules/own: 3 corpora, 2 seeds: 6 trainings of tiny, " in printed
    table = re.findall(r"^ (nothing|all rules|no-length) +(?:[0-9]+ +)?([0-9].*)", printed, re.M)
    assert [name for name, _ in table] == ["nothing", "all rules", "no-length"]
    scores = dict(table)
    # to leave out the only rule is to leave out all
    assert scores["all rules"] == scores["no-length"]
    again = project.run(*command)
    assert again.splitlines()[-6:] == printed.splitlines()[-6:]
    assert "work/rules/own: 3 corpora, 2 seeds\n" in again
    assert "Nothing to be done" in again
