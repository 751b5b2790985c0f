"""docs/code.md quotes the code as it was in 1.0.0, and as it is."""

import re
import subprocess
from dataclasses import dataclass

import pytest

from root import ROOT

COMMIT_OF_1_0 = "d97fdb56"


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
    pattern = r"(Before|Now), in `([^`]+)`:\n\n```python\n(.*?)\n```"
    quoted_functions = []
    for heading, path, code in re.findall(pattern, page, re.DOTALL):
        quoted_functions.append(Quote(heading == "Before", path, code))
    return quoted_functions


def strip_lines(text):
    """Return a text with each line stripped, since the page shows methods without indentation."""
    return "\n".join(line.strip() for line in text.split("\n"))


def test_each_of_the_ten_rules_has_a_function_before_and_after():
    assert [quote.is_old for quote in quotes()] == [True, False] * 10


OLD_QUOTES = [quote for quote in quotes() if quote.is_old]
NEW_QUOTES = [quote for quote in quotes() if not quote.is_old]


@pytest.mark.parametrize("quote", OLD_QUOTES, ids=lambda quote: quote.path)
def test_a_function_that_docs_code_quotes_as_before_is_in_version_1_0(quote):
    command = ["git", "show", f"{COMMIT_OF_1_0}:{quote.path}"]
    process = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)

    assert strip_lines(quote.code) in strip_lines(process.stdout)


@pytest.mark.parametrize("quote", NEW_QUOTES, ids=lambda quote: quote.path)
def test_a_function_that_docs_code_quotes_as_of_now_is_in_the_code(quote):
    """After a change of a quoted function, change docs/code.md, too."""
    code = (ROOT / quote.path).read_text(encoding="utf-8")

    assert strip_lines(quote.code) in strip_lines(code)
