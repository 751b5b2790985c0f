"""Rules in the folder own/: named in params.yaml, with the fingerprint of their code."""

import pickle
import subprocess
import sys
from dataclasses import replace

import pytest

from bleuprint.config.corpus import Corpus
from bleuprint.config.experiment import load_settings
from bleuprint.rules.rule import Candidate, apply_edit
from bleuprint.runtime import fingerprint
from bleuprint.runtime.errors import UserError, UserErrors
from bleuprint.runtime.flatten import flatten_settings
from bleuprint.runtime.own_code import pinned_name
from bleuprint.runtime.schema import to_json_value, validate_document
from bleuprint.text.parallel import Pair
from contributing import code_blocks
from own_code import write_module
from root import ROOT

PARAMS = """\
experiment: own-code
seeds: [1]
corpora:
  plain:
    source: en
    target: de
    license_and_citation: {own: {license: none, bibtex: "@misc{own,}"}}
    files:
      train:
        a: {license_and_citation: own, source: {path: inputs/a.en}, target: {path: inputs/a.de}}
    vocabulary: {bpe: {num_merges: 40}}
  ruled:
    like: plain
    RULES
systems:
  tiny:
    train: {tokens_per_update: 300, max_tokens: 300, max_updates: 60}
    average: {last: 1}
"""
DASHES = """\
from dataclasses import dataclass

from bleuprint.rules.rule import Edit


@dataclass(frozen=True)
class Dashes(Edit):
    by: str = "-"

    def edit(self, sentence, language):
        return sentence.replace("—", self.by)
"""


def questions_rule():
    """Return the module own/questions.py of docs/preparation.md."""
    page = (ROOT / "docs" / "preparation.md").read_text("utf-8")
    (module,) = [block for block in code_blocks(page, "python") if "class Questions" in block]
    return module


@pytest.fixture(autouse=True)
def project(tmp_path, monkeypatch):
    """Work in a project with two own rules."""
    monkeypatch.chdir(tmp_path)
    write_module(tmp_path, "questions", questions_rule())
    write_module(tmp_path, "dashes", DASHES)
    return tmp_path


def load(project, rules):
    """Load a params.yaml in which the second corpus has the given rules, in line 14."""
    path = project / "params.yaml"
    path.write_text(PARAMS.replace("RULES", rules), encoding="utf-8")
    return load_settings(path)


def candidate(source, target):
    """Return a pair for checks that read no tokens."""
    return Candidate(Pair(source, target), ("en", "de"), (str.split, str.split))


def test_an_own_check_drops_the_pairs_that_its_code_refuses(project):
    corpus = load(project, "filter: {length: {max: 9}, own.questions: {apart: 0}}").corpus("ruled")

    length, questions = corpus.filter

    assert length.max == 9
    assert questions.apart == 0
    assert questions.name() == "own.questions"
    assert questions.keeps(candidate("who ?", "wer ?"))
    assert not questions.keeps(candidate("who ?", "wer"))


def test_an_own_edit_changes_sentences(project):
    corpus = load(project, 'clean: {own.dashes: {by: "~"}}').corpus("ruled")

    (dashes,) = corpus.clean

    assert apply_edit(dashes, "a — b", "en") == "a ~ b"


def test_the_fingerprint_of_a_rule_is_in_the_settings_of_its_corpus_only(project):
    """DVC compares these settings, so an edit of the rule prepares this corpus again."""
    rules = "filter: {own.questions: {apart: 0}}"
    before = load(project, rules).resolved()["corpora"]
    pinned = pinned_name("own.questions", project)
    assert before["ruled"]["filter"] == {pinned: {"apart": 0}}

    write_module(project, "questions", questions_rule().replace("<=", "<"))
    after = load(project, rules).resolved()["corpora"]

    assert after["ruled"]["filter"] != before["ruled"]["filter"]
    assert after["plain"] == before["plain"]


def test_resolved_settings_are_read_again_unless_the_code_has_changed(project):
    corpus = load(project, 'clean: {own.dashes: {by: "~"}}').corpus("ruled")
    document = to_json_value(corpus)

    assert validate_document(Corpus, document, project / "resolved.json") == corpus

    write_module(project, "dashes", DASHES.replace("replace", "removeprefix"))
    with pytest.raises(UserError, match=r"own/dashes.py has changed: own.dashes@"):
        validate_document(Corpus, document, project / "resolved.json")


def test_a_rule_counts_with_its_code_in_fingerprints_and_comparisons(project):
    """Shards of a stage that were prepared by an earlier version are not used."""
    rules = "filter: {own.questions: {apart: 0}}"
    (before,) = load(project, rules).corpus("ruled").filter
    sha256 = fingerprint.of_settings([before])
    flat = flatten_settings({"filter": (before,)})

    write_module(project, "questions", questions_rule().replace("<=", "<"))
    (after,) = load(project, rules).corpus("ruled").filter

    assert fingerprint.of_settings([after]) != sha256
    assert flatten_settings({"filter": (after,)}) != flat


def test_a_rule_reaches_a_process_that_has_not_imported_it(project):
    """Worker processes receive rules pickled; with `forkserver` they have imported nothing."""
    (dashes,) = load(project, 'clean: {own.dashes: {by: "~"}}').corpus("ruled").clean
    (project / "rule.pickle").write_bytes(pickle.dumps(dashes))
    program = (
        "import pickle; from pathlib import Path; "
        "rule = pickle.loads(Path('rule.pickle').read_bytes()); "
        "print(rule.edit('a — b', 'en'), rule.key())"
    )

    output = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout

    assert output == f"a ~ b {dashes.key()}\n"
    assert pickle.loads(pickle.dumps(dashes)) == dashes
    assert replace(dashes, by="-").by == "-"


def test_an_error_in_a_rule_names_its_file_line_and_sentence(project):
    write_module(project, "dashes", DASHES.replace("self.by", "self.buy"))
    (dashes,) = load(project, "clean: {own.dashes: {}}").corpus("ruled").clean

    message = r"^own/dashes.py:11: AttributeError: 'Dashes' object has .*, at 'a — b'$"
    with pytest.raises(UserError, match=message):
        apply_edit(dashes, "a — b", "en")


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        pytest.param(
            "filter: {own.question: {}}",
            "params.yaml:14: corpora.ruled.filter.own.question: own/question.py: no such file; "
            "there are: own.broken, own.dashes, own.questions, own.short, own.sides, own.two. "
            "Did you mean",
            id="missing module",
        ),
        pytest.param(
            "filter: {own.questions: {apart: -1}}",
            "-1 is out of range: it must be at least 0",
            id="range",
        ),
        pytest.param("filter: {own.questions: {apar: 1}}", "apar", id="unknown setting"),
        pytest.param("filter: {own.questions: {}}", "missing", id="missing setting"),
        pytest.param("filter: {own.questions: 3}", "3 is not a mapping", id="number"),
        pytest.param(
            "filter: {own.dashes: {}}",
            "own.dashes must define one class that inherits from Check; it has: none",
            id="edit as a filter",
        ),
        pytest.param(
            "clean: {own.two: {}}",
            "own.two must define one class that inherits from Edit; it has: Dashes, Again",
            id="two rules",
        ),
        pytest.param("clean: {own.broken: {}}", "own/broken.py:1: ", id="import"),
        pytest.param("clean: {owl.dashes: {}}", "unknown key", id="another name"),
        pytest.param(
            "clean: {own.short: {}}",
            "own/short.py:10: Dashes.edit must take the arguments self, sentence, language",
            id="edit without the language",
        ),
        pytest.param(
            "filter: {own.sides: {apart: 0}}",
            "Questions.keeps must take the arguments self, candidate",
            id="check with both sides",
        ),
    ],
)
def test_a_mistake_is_one_line(project, rules, message):
    write_module(project, "broken", "import missing_module\n")
    write_module(project, "short", DASHES.replace("sentence, language", "sentence"))
    with_sides = questions_rule().replace("candidate: Candidate", "source, target")
    write_module(project, "sides", with_sides)
    write_module(
        project, "two", DASHES + "\n\n@dataclass(frozen=True)\nclass Again(Dashes):\n    pass\n"
    )

    with pytest.raises(UserError) as error:
        load(project, rules)

    lines = error.value.lines if isinstance(error.value, UserErrors) else [str(error.value)]
    assert len(lines) == 1
    assert message in lines[0]
