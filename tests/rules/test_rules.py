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
from bleuprint.runtime.named_entries import NamedEntries
from bleuprint.runtime.schema import validate_document
from bleuprint.runtime.yaml_tree import load_located_yaml
from root import ROOT

PARAMS = (ROOT / "params.yaml").read_text()
# The rules of the first corpus.
FIRST_FILTER = re.search(r"^    filter:\n( {6}.*\n)+", PARAMS, re.MULTILINE)

NO_QUESTIONS_RULE = """
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

PRINT_DECISIONS = """
from pathlib import Path

from bleuprint.text.parallel import Pair
from bleuprint.rules.rule import Candidate
from bleuprint.config.experiment import load_settings

corpus = load_settings(Path("params.yaml")).corpora["phrasebook-en-de"]
print([check.name() for check in corpus.filter], corpus.filter[-1])
for pair in (Pair("Why?", "Warum?"), Pair("Why??", "Warum?"), Pair("So.", "So.")):
    is_kept = corpus.filter[-1].keeps(Candidate(pair, ("en", "de"), (str.split, str.split)))
    print(pair, "kept" if is_kept else "dropped")
"""


@dataclass(frozen=True)
class Rules:
    """The cleaning and filtering rules of a corpus, by their names in params.yaml."""

    clean: Annotated[tuple[Edit, ...], NamedEntries(EDITS)]
    filter: Annotated[tuple[Check, ...], NamedEntries(CHECKS)]


def load_rules(tmp_path, clean="{}", filter="{}"):
    """Write rules to line 1 (clean) and line 2 (filter) of rules.yaml, and load them."""
    path = tmp_path / "rules.yaml"
    path.write_text(f"clean: {clean}\nfilter: {filter}\n")
    return validate_document(Rules, load_located_yaml(path), path)


def test_edits_run_in_this_order():
    """Another order would change the text: each edit gets what the edits before it have written.

    Entities, for example, may contain tags: &lt;b&gt; is <b>.
    """
    assert list(EDITS) == [
        "entities",
        "html_tags",
        "mojibake",
        "unicode",
        "non_printing",
        "punctuation",
    ]


def test_checks_run_in_this_order():
    """A rule is counted only for pairs that the rules before it have kept.

    Another order would change the counts in the report, and slow checks would get more pairs.
    """
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


def test_rules_run_in_a_fixed_order_whatever_their_order_in_the_settings(tmp_path):
    """The settings name punctuation before entities, and numerals before length_ratio."""
    rules = load_rules(
        tmp_path,
        clean="{punctuation: {}, entities: {}}",
        filter="{numerals: {}, length_ratio: {max: 2}}",
    )

    assert [edit.name() for edit in rules.clean] == ["entities", "punctuation"]
    assert rules.filter == (CHECKS["length_ratio"](max=2.0), CHECKS["numerals"]())


def test_a_minimum_length_above_the_maximum_is_refused_with_its_line(tmp_path):
    message = f"^{tmp_path}/rules.yaml:2: filter.length: min 9 is above max 8"
    with pytest.raises(UserError, match=message):
        load_rules(tmp_path, filter="{length: {min: 9, max: 8}}")


@pytest.mark.parametrize("rule_name", ["character_score", "language_id"])
def test_a_rule_refuses_a_language_that_it_does_not_support(rule_name):
    """Klingon (tlh) is unknown to the rules that depend on the language; German (de) is known."""
    CHECKS[rule_name].check_language("de")

    with pytest.raises(
        ValueError, match=rf"^rule {rule_name} does not support language 'tlh'\. It supports: "
    ):
        CHECKS[rule_name].check_language("tlh")


@pytest.fixture
def run_with_rule(tmp_path):
    """Return a function that runs Python on a copy of the package with one more rule.

    Args of that function: the code of the rule, the settings `filter` of the corpus, and the
    arguments of Python. It returns the process that has ended.
    """
    package = tmp_path / "bleuprint"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(bleuprint.__file__).parent, package, ignore=ignored)
    (tmp_path / "corpora").symlink_to(ROOT / "corpora")

    def run(rule, filter_settings, *arguments):
        (package / "rules" / "mine.py").write_text(rule)
        params = PARAMS.replace(FIRST_FILTER[0], f"    filter: {filter_settings}\n")
        (tmp_path / "params.yaml").write_text(params)
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(tmp_path)},
            capture_output=True,
            text=True,
        )

    return run


def test_the_rule_in_the_documentation_drops_pairs_with_unequal_question_marks(run_with_rule):
    """A user writes the rule of the documentation into a file, and filters by it.

    PRINT_DECISIONS prints the names of the corpus's rules and the last rule, which is the new one.
    Then it prints which of three pairs the last rule keeps.
    """
    documentation = (ROOT / "docs" / "preparation.md").read_text()
    rule = re.search(r"```python\n(.*?)```", documentation, re.DOTALL)[1]
    filter_settings = "{questions: {apart: 0}, length_ratio: {max: 3}}"

    process = run_with_rule(rule, filter_settings, "-c", PRINT_DECISIONS)

    assert process.stdout.splitlines() == [
        "['length_ratio', 'questions'] Questions(apart=0)",
        "Pair(source='Why?', target='Warum?') kept",
        "Pair(source='Why??', target='Warum?') dropped",
        "Pair(source='So.', target='So.') kept",
    ], process.stderr


@pytest.mark.parametrize(
    ("old_code", "new_code", "message"),
    [
        pytest.param("(Check):", "(Check)", "11: expected ':'", id="syntax"),
        pytest.param(
            "(Check):", "(Chek):", "11: NameError: name 'Chek' is not defined", id="base class"
        ),
        pytest.param(
            "@dataclass(frozen=True)\n",
            "",
            "10: NoQuestions needs @dataclass(frozen=True) above it",
            id="no dataclass",
        ),
        pytest.param(
            "(frozen=True)",
            "",
            "10: TypeError: cannot inherit non-frozen dataclass from a frozen",
            id="not frozen",
        ),
        pytest.param(
            "keeps(",
            "keep(",
            "10: NoQuestions has no method keeps. Add it; or if",
            id="no method",
        ),
        pytest.param(
            "self, candidate: Candidate",
            "self",
            "14: NoQuestions.keeps must take the arguments self, candidate",
            id="parameters",
        ),
        pytest.param(
            "from typing",
            "from typin",
            "3: ModuleNotFoundError: No module named 'typin'",
            id="import",
        ),
    ],
)
def test_a_mistake_in_the_code_of_a_rule_is_reported_in_one_line_with_its_place(
    run_with_rule, old_code, new_code, message
):
    """A user may write rules in rules/mine.py. Each case damages the code of a good one."""
    assert NO_QUESTIONS_RULE.count(old_code) == 1
    rule = NO_QUESTIONS_RULE.replace(old_code, new_code)

    process = run_with_rule(rule, "{no_questions: {marks: 2}}", "-m", "bleuprint", "check")

    (error_line,) = process.stderr.splitlines()
    assert error_line.startswith("bleuprint: error: ")
    assert f"bleuprint/rules/mine.py:{message}" in error_line
    assert process.returncode == 1


@pytest.mark.parametrize(
    ("old_code", "new_code", "message"),
    [
        pytest.param(
            "candidate.pair",
            "candidate.pair[5]",
            r"/rules/mine\.py:15: IndexError: tuple index",
            id="error in the rule",
        ),
    ],
)
def test_a_rule_that_fails_for_a_pair_is_reported_in_one_line_with_the_pair(
    run_with_rule, old_code, new_code, message
):
    """A user may write rules in rules/mine.py. Each case damages the code of a good one."""
    rule = NO_QUESTIONS_RULE.replace(old_code, new_code)
    assert rule != NO_QUESTIONS_RULE
    command = ("-m", "bleuprint", "inspect", "phrasebook-en-de")

    process = run_with_rule(rule, "{no_questions: {marks: 2}}", *command)

    last_line = process.stderr.splitlines()[-1]
    assert last_line.startswith("bleuprint: error: /")
    assert re.search(rf"{message}.*, at '\w", last_line)
    assert "Traceback" not in process.stderr
    assert process.returncode == 1


def test_a_class_whose_name_begins_with_an_underscore_is_a_base_class_of_rules(run_with_rule):
    """In rules/mine.py, _Marks defines a field, and NoQuestions, the rule, inherits from it."""
    code = NO_QUESTIONS_RULE.replace("NoQuestions", "_Marks")
    base_class, _, method = code.partition("    def ")
    rule = f"{base_class}@dataclass(frozen=True)\nclass NoQuestions(_Marks):\n    def {method}"
    filter_settings = "{no_questions: {marks: 2}, length_ratio: {max: 3}}"

    process = run_with_rule(rule, filter_settings, "-c", PRINT_DECISIONS)

    expected = "['length_ratio', 'no_questions'] NoQuestions(marks=2)"
    assert process.stdout.startswith(expected), process.stderr


def test_two_rules_with_the_same_name_are_refused(run_with_rule):
    """There is a rule LongWord in bleuprint.rules.lengths already."""
    rule = NO_QUESTIONS_RULE.replace("NoQuestions", "LongWord")

    process = run_with_rule(rule, "{length_ratio: {max: 3}}", "-m", "bleuprint", "check")

    assert process.stderr == (
        "bleuprint: error: two rules are called 'long_word': LongWord in "
        "bleuprint.rules.lengths and LongWord in bleuprint.rules.mine. Rename one\n"
    )
    assert process.returncode == 1


def test_an_edit_that_forgets_to_return_the_sentence_is_refused():
    """A Python function without `return` returns None."""

    class Forgetful(Edit):
        def edit(self, sentence, language):  # noqa: ARG002
            sentence.strip()

    with pytest.raises(UserError, match="rule forgetful: its edit of ' a ' returns None"):
        apply_edits(" a ", "en", (Forgetful(),))


@pytest.mark.parametrize(
    ("filter_settings", "problem"),
    [
        pytest.param(
            "{length: {min: 0, max: 9}}",
            "length.min: 0 is out of range: it must be at least 1",
            id="minimum length of 0",
        ),
        pytest.param(
            "{length: {max: 0}}",
            "length.max: 0 is out of range: it must be at least 1",
            id="maximum length of 0",
        ),
        pytest.param(
            "{length: {min: 1}}", "length: the key 'max' is missing", id="length without maximum"
        ),
        pytest.param(
            "{length_ratio: {max: 0.9}}",
            "length_ratio.max: 0.9 is out of range: it must be at least 1",
            id="length ratio below 1",
        ),
        pytest.param(
            "{long_word: {max: 0}}",
            "long_word.max: 0 is out of range: it must be at least 1",
            id="word length of 0",
        ),
        pytest.param(
            "{long_word: {max: 40.5}}",
            "long_word.max: 40.5 is not a whole number",
            id="fractional word length",
        ),
        pytest.param(
            "{alphabet_ratio: {min: 1.5}}",
            "alphabet_ratio.min: 1.5 is out of range: it must be at most 1",
            id="alphabet ratio above 1",
        ),
        pytest.param(
            "{character_score: {min: -0.1}}",
            "character_score.min: -0.1 is out of range: it must be at least 0",
            id="negative character score",
        ),
        pytest.param(
            "{language_id: {min_odds: 2}}",
            "language_id.min_odds: 2 is out of range: it must be above 2",
            id="odds of 2",
        ),
        pytest.param(
            "{word_alignment: {min: 11}}",
            "word_alignment.min: 11 is out of range: it must be at most 10",
            id="alignment score above 10",
        ),
        pytest.param(
            "{word_alignment: {min: -4}}",
            "word_alignment.min: -4 is out of range: it must be at least -3",
            id="alignment score below -3",
        ),
        pytest.param("{numerals: {max: 3}}", "numerals.max: unknown key", id="unknown key"),
        pytest.param("{numerals: }", "numerals: an empty value is not a mapping", id="empty value"),
        pytest.param(
            "{lenght: {max: 9}}",
            "lenght: unknown key. Did you mean 'length'?",
            id="misspelled rule",
        ),
    ],
)
def test_a_mistake_in_the_settings_of_a_rule_is_refused_with_its_line(
    tmp_path, filter_settings, problem
):
    """`filter` is in line 2 of the file; each case has one mistake."""
    with pytest.raises(UserError) as error:
        load_rules(tmp_path, filter=filter_settings)
    assert str(error.value).startswith(f"{tmp_path}/rules.yaml:2: filter.{problem}")


@pytest.mark.parametrize(
    "rule_settings",
    [
        "length: {min: 1, max: 1}",
        "length_ratio: {max: 1}",
        "long_word: {max: 1}",
        "alphabet_ratio: {min: 0}",
        "character_score: {min: 1}",
        "language_id: {min_odds: 2.01}",
        "word_alignment: {min: 10}",
    ],
)
def test_a_setting_at_the_end_of_its_range_is_accepted(tmp_path, rule_settings):
    rules = load_rules(tmp_path, filter=f"{{{rule_settings}}}")

    assert len(rules.filter) == 1


def test_an_unknown_unicode_form_is_refused(tmp_path):
    """The names of the forms, NFC and NFKC, are in capitals."""
    with pytest.raises(UserError) as error:
        load_rules(tmp_path, clean="{unicode: {form: nfc}}")

    expected = f"{tmp_path}/rules.yaml:1: clean.unicode.form: 'nfc' is not one of NFC, NFKC"
    assert str(error.value) == expected


def test_all_rules_but_two_support_any_language():
    """Klingon (tlh) stands for a language that no list contains."""
    for rule in [*EDITS.values(), *CHECKS.values()]:
        if rule.name() not in ("character_score", "language_id"):
            rule.check_language("tlh")
