"""Parts of a corpus: the top-level key `parts`, and rules that a training text has itself."""

import pytest

from bleuprint.config.parts import resolved_parts
from bleuprint.rules import CHECKS, EDITS
from bleuprint.runtime.errors import UserError
from own_code import write_module
from params import PARAMS, read

TEXT = "license_and_citation: own, source: {path: inputs/a.de}, target: {path: inputs/a.no}"
TRAIN = f"      train: {{a: {{{TEXT}}}}}\n"


def params(parts, texts, **changes):
    """Return a params.yaml with parts.

    Args:
        parts: The value of the key `parts`; empty for none.
        texts: The settings of each training text, in addition to its files, by name.
        **changes: The new line of a setting of the corpus, or an empty one, by the setting's name.
    """
    lines = []
    for name, settings in texts.items():
        lines.append(f"        {name}: {{{TEXT}{settings}}}\n")
    assert TRAIN in PARAMS
    text = PARAMS.replace(TRAIN, "      train:\n" + "".join(lines))
    for key, new_line in changes.items():
        (old_line,) = [line for line in text.splitlines(True) if line.startswith(f"    {key}: ")]
        text = text.replace(old_line, new_line)
    return f"parts: {parts}\n{text}" if parts else text


def rules_of(tmp_path, params_text, part="a"):
    """Return the edits and the checks of a part of the corpus own."""
    corpus = read(tmp_path, params_text).corpora["own"]
    part_settings = corpus.only_text(part)
    return part_settings.clean, part_settings.filter


def test_the_rules_of_a_part_are_merged_into_those_of_its_corpus(tmp_path):
    """The corpus has `clean: {non_printing, unicode: NFC}`, length 1 to 100 and a ratio of 3."""
    text = params(
        "{a: {}}",
        {
            "a": ", clean: {unicode: {form: NFKC}, non_printing: null}, "
            "filter: {length: {max: 7}, identical: {}, length_ratio: null}",
            "b": "",
        },
    )

    edits, checks = rules_of(tmp_path, text)

    assert edits == (EDITS["unicode"](form="NFKC"),)
    assert checks == (CHECKS["identical"](), CHECKS["length"](min=1, max=7))


def test_the_rules_of_a_text_in_one_corpus_are_merged_into_those_of_the_part(tmp_path):
    """`parts` sets a length of 7 and no ratio for each corpus; this corpus a length of 9."""
    text = params(
        "{a: {filter: {length: {max: 7}, length_ratio: null}}}",
        {"a": ", filter: {length: {max: 9}}", "b": ""},
    )

    _, checks = rules_of(tmp_path, text)

    assert checks == (CHECKS["length"](min=1, max=9),)


def test_null_under_a_part_leaves_the_rules_of_the_corpus(tmp_path):
    """The corpus has a length of 1 to 100 and a ratio of 3; the text has another length in it."""
    text = params("{a: {filter: null}}", {"a": ", filter: {length: {max: 9}}", "b": ""})

    _, checks = rules_of(tmp_path, text)

    assert checks == (CHECKS["length"](min=1, max=9), CHECKS["length_ratio"](max=3.0))


def test_the_rules_of_a_part_are_for_all_corpora(tmp_path):
    """Each corpus merges them into its own rules: own has a ratio of 3, second none."""
    second = "  second: {like: own, filter: {length_ratio: null}}\n"
    text = params("{a: {filter: {length: {max: 7}}}}", {"a": ""}).replace(
        "systems:\n", f"{second}systems:\n"
    )

    corpora = read(tmp_path, text).corpora

    length = CHECKS["length"](min=1, max=7)
    ratio = CHECKS["length_ratio"](max=3.0)
    assert set(corpora["own"].only_text("a").filter) == {length, ratio}
    assert corpora["second"].only_text("a").filter == (length,)


def test_a_part_without_rules_has_those_of_its_corpus(tmp_path):
    corpus = read(tmp_path, params("{a: {}}", {"a": "", "b": ""})).corpora["own"]

    assert list(corpus.files.parts()) == ["a"]
    assert corpus.only_text("a").clean == corpus.clean
    assert corpus.only_text("a").filter == corpus.filter


def test_the_rules_of_a_part_are_merged_into_the_default_ones(tmp_path):
    """A corpus without `filter` has `length: {max: 250}`."""
    text = params("{a: {}}", {"a": ", filter: {identical: {}}", "b": ""}, filter="")

    _, checks = rules_of(tmp_path, text)

    assert checks == (CHECKS["identical"](), CHECKS["length"](min=1, max=250))


def test_a_corpus_inherits_the_rules_of_a_part(tmp_path):
    """The corpus second is `like` the corpus own, except for one rule of its part."""
    like = (
        "  second: {like: own, files: {train: {a: {filter: {length: {max: 9}}}}}}\n"
        "  third: {like: own, files: {train: {a: {filter: null}}}}\n"
    )
    text = params("{a: {}}", {"a": ", filter: {length: {max: 7}}"}).replace(
        "systems:\n", f"{like}systems:\n"
    )

    corpora = read(tmp_path, text).corpora

    limits = {}
    for name, corpus in corpora.items():
        _, length = corpus.only_text("a").filter[::-1]
        limits[name] = length.max
    assert limits == {"own": 7, "second": 9, "third": 100}


def test_dvc_compares_for_each_corpus_and_part_its_text_and_rules(tmp_path):
    """The corpus other has no text b; its stages of the part b depend on the value false."""
    other = "  other: {like: own, files: {train: {b: null}}}\n"
    text = params("{b: {}, a: {}}", {"a": ", filter: {length: {max: 7}}", "b": ""}).replace(
        "systems:\n", f"{other}systems:\n"
    )

    resolved = resolved_parts(read(tmp_path, text).corpora)

    assert resolved["part"]["other/b"] == {"text": False, "clean": False, "filter": False}
    assert resolved["part"]["own/a"]["filter"]["length"] == {"min": 1, "max": 7}
    assert resolved["part"]["own/a"]["text"]["source"]["path"] == "inputs/a.de"
    assert [entry["part"] for entry in resolved["part_order"]["own"]] == ["a", "b"]
    assert [entry["part"] for entry in resolved["part_order"]["other"]] == ["a"]


OWN_RULE = """
from dataclasses import dataclass

from bleuprint.rules.rule import Check


@dataclass(frozen=True)
class Shorter(Check):
    limit: int = 9

    def keeps(self, candidate):
        return len(candidate.source) < self.limit
"""


def test_an_edit_of_an_own_rule_changes_the_settings_of_the_part_that_names_it(
    tmp_path, monkeypatch
):
    """The name of the rule ends with the fingerprint of its code. The part b has no such rule."""
    monkeypatch.chdir(tmp_path)
    text = params("{a: {filter: {own.shorter: {}}}, b: {}}", {"a": "", "b": ""})
    resolved = []
    for rule in (OWN_RULE, OWN_RULE.replace("<", "<=")):
        write_module(tmp_path, "shorter", rule)
        resolved.append(resolved_parts(read(tmp_path, text).corpora)["part"])

    before, after = resolved
    (name_before,) = set(before["own/a"]["filter"]) - set(after["own/a"]["filter"])
    assert name_before.startswith("own.shorter@")
    assert before["own/a"]["clean"] == after["own/a"]["clean"]
    assert before["own/b"] == after["own/b"]


@pytest.mark.parametrize(
    ("parts", "texts", "message"),
    [
        pytest.param(
            "{c: {}}",
            {"a": ""},
            "params.yaml:1: parts.c: no corpus has a training text of this name; there are: a",
            id="unknown name",
        ),
        pytest.param(
            "[a]",
            {"a": ""},
            "params.yaml:1: parts: ['a'] is not a mapping of names",
            id="list",
        ),
        pytest.param(
            "{a: null}",
            {"a": ""},
            "params.yaml:1: parts.a: is not a mapping. Write {} for no rules of its own",
            id="no rules",
        ),
        pytest.param(
            "{a: {filters: {}}}",
            {"a": ""},
            "params.yaml:1: parts.a.filters: unknown key. Did you mean 'filter'?",
            id="unknown key",
        ),
        pytest.param(
            "{a: {filter: [length]}}",
            {"a": ""},
            "params.yaml:1: parts.a.filter: ['length'] is not a mapping of names",
            id="rules that are no mapping",
        ),
        pytest.param(
            "{a: {filter: {length: {max: many}}}}",
            {"a": ""},
            "params.yaml:1: parts.a.filter.length.max: 'many' is not a whole number",
            id="value of a rule",
        ),
        pytest.param(
            "",
            {"a": ", filter: {length: {max: 7}}"},
            "params.yaml:10: corpora.own.files.train.a.filter: only a part has rules of its own. "
            "Add the text at the top level: parts: {a: {}}",
            id="rules of a text that is no part",
        ),
        pytest.param(
            "{a: {}}",
            {"a": ", separate: true"},
            "params.yaml:11: corpora.own.files.train.a.separate: this is not set here. "
            "Write at the top level: parts: {a: {}}",
            id="set below",
        ),
        pytest.param(
            "{a: {}}",
            {"a": ", filter: {lenght: {max: 7}}"},
            "params.yaml:11: corpora.own.files.train.a.filter.lenght: unknown key. "
            "Did you mean 'length'?",
            id="misspelled rule",
        ),
        pytest.param(
            "{a: {}}",
            {"a": ", filter: {identical: null}"},
            "params.yaml:11: corpora.own.files.train.a.filter.identical: null removes a setting, "
            "but this one is not set. Known keys: length_ratio, length",
            id="removed rule that is not there",
        ),
    ],
)
def test_a_mistake_in_parts_is_named_with_its_line(tmp_path, parts, texts, message):
    with pytest.raises(UserError) as error:
        read(tmp_path, params(parts, texts))

    assert str(error.value).replace(f"{tmp_path}/", "") == message


def test_an_empty_key_parts_is_refused(tmp_path):
    """DVC fails at a key without a value."""
    with pytest.raises(UserError, match=r"parts: is empty\. Remove the key, or add entries"):
        read(tmp_path, "parts:\n" + PARAMS)


def test_a_text_that_a_system_translates_cannot_be_a_part(tmp_path):
    text = params("{b: {}}", {"a": "", "b": ""}).replace(
        f"b: {{{TEXT}", "b: {license_and_citation: own, source: {path: inputs/a.de}"
    )

    with pytest.raises(UserError, match=r"cannot be a part\. Remove its name from parts"):
        read(tmp_path, text)


def test_a_test_set_cannot_be_a_part(tmp_path):
    test = f"      tests: {{news: {{x: {{{TEXT}}}}}}}\n"
    text = "parts: {a: {}, news: {}}\n" + PARAMS.replace("      tests: {}\n", test)

    with pytest.raises(UserError, match=r"parts\.news: this is a validation or test set"):
        read(tmp_path, text)


def test_a_test_set_cannot_have_rules(tmp_path):
    test = f"      tests: {{news: {{x: {{{TEXT}, filter: {{identical: {{}}}}}}}}}}\n"
    text = PARAMS.replace("      tests: {}\n", test)

    with pytest.raises(UserError, match=r"test\.news\.x: filter is only for training texts"):
        read(tmp_path, text)
