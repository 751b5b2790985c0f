import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pytest

import bleuprint
from bleuprint.rules import CHECKS, EDITS
from bleuprint.rules.rule import Check, Edit, apply_edits
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.schema import NamedEntries, validate_document
from bleuprint.runtime.yaml_tree import load_located_yaml
from root import ROOT

PARAMS = (ROOT / "params.yaml").read_text()
# The rules of the first corpus.
FILTER = re.search(r"^    filter:\n( {6}.*\n)+", PARAMS, re.MULTILINE)

NO_QUESTIONS = """
from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge
from bleuprint.rules.lengths import Length
from bleuprint.rules.rule import Candidate, Check


@dataclass(frozen=True)
class NoQuestions(Check):
    marks: Annotated[int, Ge(1)]

    def keeps(self, candidate: Candidate) -> bool:
        return all(side.count("?") < self.marks for side in candidate.pair)
"""

JUDGE = """
from pathlib import Path

from bleuprint.text.parallel import Pair
from bleuprint.rules.rule import Candidate
from bleuprint.config.experiment import load_settings

corpus = load_settings(Path("params.yaml")).corpora["phrasebook-en-de"]
print([check.name() for check in corpus.filter], corpus.filter[-1])
for pair in (Pair("Why?", "Warum?"), Pair("Why??", "Warum?"), Pair("So.", "So.")):
    print(corpus.filter[-1].keeps(Candidate(pair, ("en", "de"), (str.split, str.split))))
"""


@dataclass(frozen=True)
class Chosen:
    clean: Annotated[tuple[Edit, ...], NamedEntries(EDITS)]
    filter: Annotated[tuple[Check, ...], NamedEntries(CHECKS)]


def chosen(tmp_path, clean="{}", filter="{}"):
    path = tmp_path / "rules.yaml"
    path.write_text(f"clean: {clean}\nfilter: {filter}\n")
    return validate_document(Chosen, load_located_yaml(path), path)


def test_rules_by_name_in_the_order_in_which_they_run():
    assert list(EDITS) == [
        "entities",
        "html_tags",
        "mojibake",
        "unicode",
        "non_printing",
        "punctuation",
    ]
    assert list(CHECKS) == [
        "identical",
        "length",
        "length_ratio",
        "long_word",
        "alphabet_ratio",
        "character_score",
        "numerals",
        "terminal_punctuation",
        "language_id",
        "word_alignment",
    ]


def test_the_order_in_the_settings_does_not_matter(tmp_path):
    rules = chosen(
        tmp_path, "{punctuation: {}, entities: {}}", "{numerals: {}, length_ratio: {max: 2}}"
    )
    assert [rule.name() for rule in rules.clean] == ["entities", "punctuation"]
    assert rules.filter == (CHECKS["length_ratio"](max=2.0), CHECKS["numerals"]())


def test_lengths_that_no_pair_has_are_named_with_their_place(tmp_path):
    message = f"^{tmp_path}/rules.yaml:2: filter.length: min 9 is above max 8"
    with pytest.raises(UserError, match=message):
        chosen(tmp_path, filter="{length: {min: 9, max: 8}}")


@pytest.mark.parametrize("name", ["character_score", "language_id"])
def test_a_language_that_a_rule_does_not_know_is_named(name):
    with pytest.raises(
        ValueError, match=rf"^rule {name} does not support language 'tlh'; it supports: "
    ):
        CHECKS[name].check_language("tlh")
    CHECKS[name].check_language("de")


@pytest.fixture
def copied(tmp_path):
    """A copy of the package, a params.yaml, and a way to run Python on them."""
    package = tmp_path / "bleuprint"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(bleuprint.__file__).parent, package, ignore=ignored)
    (tmp_path / "corpora").symlink_to(ROOT / "corpora")

    def run(rule, filter, *arguments):
        (package / "rules" / "mine.py").write_text(rule)
        params = PARAMS.replace(FILTER[0], f"    filter: {filter}\n")
        (tmp_path / "params.yaml").write_text(params)
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(tmp_path)},
            capture_output=True,
            text=True,
        )

    return run


def test_the_rule_in_the_documentation_does_what_it_says(copied):
    text = (ROOT / "docs" / "preparation.md").read_text()
    rule = re.search(r"```python\n(.*?)```", text, re.DOTALL)[1]
    done = copied(rule, "{questions: {apart: 0}, length_ratio: {max: 3}}", "-c", JUDGE)
    assert done.stdout.splitlines() == [
        "['length_ratio', 'questions'] Questions(apart=0)",
        "True",
        "False",
        "True",
    ], done.stderr


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("(Check):", "(Check)", "11: expected ':'"),
        ("(Check):", "(Chek):", "11: NameError: name 'Chek' is not defined"),
        ("@dataclass(frozen=True)\n", "", "10: NoQuestions needs @dataclass(frozen=True) above it"),
        ("(frozen=True)", "", "10: TypeError: cannot inherit non-frozen dataclass from a frozen"),
        ("keeps(", "keep(", "10: NoQuestions has no method keeps; the name of a base class begins"),
        ("from typing", "from typin", "3: ModuleNotFoundError: No module named 'typin'"),
    ],
)
def test_a_rule_that_is_not_finished_is_named_with_its_place(copied, old, new, message):
    assert NO_QUESTIONS.count(old) == 1
    rule = NO_QUESTIONS.replace(old, new)
    done = copied(rule, "{no_questions: {marks: 2}}", "-m", "bleuprint", "check")
    (line,) = done.stderr.splitlines()
    assert line.startswith("bleuprint: error: /") and f"/rules/mine.py:{message}" in line
    assert done.returncode == 1


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("candidate.pair", "candidate.pair[5]", r"/rules/mine\.py:15: IndexError: tuple index"),
        ("self, candidate: Candidate", "self", r"/corpus/filter\.py:\d+: TypeError: NoQ"),
    ],
)
def test_a_rule_that_fails_at_a_pair_is_one_line(copied, old, new, message):
    rule = NO_QUESTIONS.replace(old, new)
    assert rule != NO_QUESTIONS
    command = ("-m", "bleuprint", "inspect", "phrasebook-en-de")
    done = copied(rule, "{no_questions: {marks: 2}}", *command)
    *_, line = done.stderr.splitlines()
    assert line.startswith("bleuprint: error: /") and "Traceback" not in done.stderr
    assert re.search(rf"{message}.*, at '\w", line)
    assert done.returncode == 1


def test_what_rules_are_built_upon_is_no_rule(copied):
    above, _, keeps = NO_QUESTIONS.replace("NoQuestions", "_Marks").partition("    def ")
    rule = f"{above}@dataclass(frozen=True)\nclass NoQuestions(_Marks):\n    def {keeps}"
    done = copied(rule, "{no_questions: {marks: 2}, length_ratio: {max: 3}}", "-c", JUDGE)
    assert done.stdout.startswith("['length_ratio', 'no_questions'] NoQuestions(marks=2)"), (
        done.stderr
    )


def test_two_rules_of_one_name(copied):
    twice = NO_QUESTIONS.replace("NoQuestions", "LongWord")
    done = copied(twice, "{length_ratio: {max: 3}}", "-m", "bleuprint", "check")
    assert done.stderr == (
        "bleuprint: error: two rules are called 'long_word': LongWord in "
        "bleuprint.rules.lengths and LongWord in bleuprint.rules.mine\n"
    )
    assert done.returncode == 1


def test_an_edit_that_returns_nothing_is_named():
    class Forgetful(Edit):
        def edit(self, sentence, language):  # noqa: ARG002
            sentence.strip()

    with pytest.raises(UserError, match="rule forgetful: its edit of ' a ' returns None"):
        apply_edits(" a ", "en", (Forgetful(),))


@pytest.mark.parametrize(
    ("chosen_filter", "problem"),
    [
        ("{length: {min: 0, max: 9}}", "length.min: 0 is out of range: at least 1"),
        ("{length: {max: 0}}", "length.max: 0 is out of range: at least 1"),
        ("{length: {min: 1}}", "length: the key 'max' is missing"),
        ("{length_ratio: {max: 0.9}}", "length_ratio.max: 0.9 is out of range: at least 1"),
        ("{long_word: {max: 0}}", "long_word.max: 0 is out of range: at least 1"),
        ("{long_word: {max: 40.5}}", "long_word.max: 40.5 is not a whole number"),
        ("{alphabet_ratio: {min: 1.5}}", "alphabet_ratio.min: 1.5 is out of range: at most 1"),
        ("{character_score: {min: -0.1}}", "character_score.min: -0.1 is out of range: at least 0"),
        ("{language_id: {min_odds: 2}}", "language_id.min_odds: 2 is out of range: above 2"),
        ("{word_alignment: {min: 11}}", "word_alignment.min: 11 is out of range: at most 10"),
        ("{word_alignment: {min: -4}}", "word_alignment.min: -4 is out of range: at least -3"),
        ("{numerals: {max: 3}}", "numerals.max: unknown key"),
        ("{numerals: }", "numerals: an empty value is not a mapping"),
        ("{lenght: {max: 9}}", "lenght: unknown key; did you mean 'length'?"),
    ],
)
def test_a_mistake_in_the_settings_of_a_rule_is_named_with_its_place(
    tmp_path, chosen_filter, problem
):
    with pytest.raises(UserError) as error:
        chosen(tmp_path, filter=chosen_filter)
    assert str(error.value).startswith(f"{tmp_path}/rules.yaml:2: filter.{problem}")


def test_settings_at_the_ends_of_their_ranges_are_accepted(tmp_path):
    rules = chosen(
        tmp_path,
        filter="{length: {min: 1, max: 1}, length_ratio: {max: 1}, long_word: {max: 1}, "
        "alphabet_ratio: {min: 0}, character_score: {min: 1}, language_id: {min_odds: 2.01}, "
        "word_alignment: {min: 10}}",
    )
    assert len(rules.filter) == 7


def test_a_form_that_unicode_does_not_have_is_named(tmp_path):
    with pytest.raises(UserError) as error:
        chosen(tmp_path, clean="{unicode: {form: nfc}}")
    expected = f"{tmp_path}/rules.yaml:1: clean.unicode.form: 'nfc' is not one of NFC, NFKC"
    assert str(error.value) == expected


def test_most_rules_are_for_any_language():
    for kind in {**EDITS, **CHECKS}.values():
        if kind.name() not in ("character_score", "language_id"):
            kind.check_language("tlh")
