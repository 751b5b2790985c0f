"""docs/code.md quotes the code as it was in 1.0.0, and as it is."""

import re
import subprocess
from dataclasses import dataclass

import pytest

from root import ROOT

COMMIT_OF_1_0 = "d97fdb56"
RULES = 10
_QUOTE = re.compile(r"(Before|Now), in `([^`]+)`:\n\n```python\n(.*?)\n```", re.DOTALL)


@dataclass(frozen=True)
class Quote:
    """A function that the page quotes.

    Attributes:
        is_old: Whether it is quoted from version 1.0.0.
        path: The file that contains it.
        code: The quoted lines.
    """

    is_old: bool
    path: str
    code: str


def quotes():
    """Return the functions that the page quotes, in its order."""
    page = (ROOT / "docs" / "code.md").read_text(encoding="utf-8")
    found = []
    for when, path, code in _QUOTE.findall(page):
        found.append(Quote(when == "Before", path, code))
    return found


def stripped_lines(text):
    """Return a text with each line stripped, since the page shows methods without indentation."""
    return "\n".join(line.strip() for line in text.split("\n"))


def test_each_rule_has_a_function_before_and_after():
    assert [quote.is_old for quote in quotes()] == [True, False] * RULES


@pytest.mark.parametrize("quote", quotes(), ids=lambda quote: f"{quote.path}-{quote.is_old}")
def test_quoted_functions_are_in_the_code(quote):
    """After a change of a quoted function, change docs/code.md, too."""
    if quote.is_old:
        command = ["git", "show", f"{COMMIT_OF_1_0}:{quote.path}"]
        code = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    else:
        code = (ROOT / quote.path).read_text(encoding="utf-8")
    assert stripped_lines(quote.code) in stripped_lines(code)
