"""The environment of HTML templates: what it escapes and refuses, and that its files are packed."""

import html
import re
import tomllib
from pathlib import Path

import pytest
from jinja2 import UndefinedError
from markdown_it import MarkdownIt

import bleuprint
from bleuprint.runtime.html import escape_markdown, template_environment
from root import ROOT


@pytest.fixture
def template(tmp_path):
    """A template that shows one value in bold."""
    (tmp_path / "a.html.j2").write_text("<b>{{ value }}</b>")
    return template_environment(tmp_path).get_template("a.html.j2")


def test_a_template_escapes_characters_with_a_meaning_in_html(template):
    """Translations may contain tags, which the browser must show and not interpret."""
    page = template.render(value="<i>\"'&")

    assert page == "<b>&lt;i&gt;&#34;&#39;&amp;</b>"


def test_a_value_that_a_template_lacks_is_an_error(template):
    """Jinja's default would leave an empty place in the report."""
    with pytest.raises(UndefinedError, match="'value' is undefined"):
        template.render()


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            "CC BY-NC-SA 4.0 (https://creativecommons.org/licenses/by-nc-sa/4.0/), a_b_c & co.",
            id="address and underscores",
        ),
        pytest.param("# <script>alert(1)</script> <!-- a\n\n# b", id="heading and HTML"),
        pytest.param(
            "[free](javascript:alert(1)) ![x](http://host/x.png) [a]: b", id="link and image"
        ),
        pytest.param(
            "*all* **rights** _reserved_ __x__ ~~no~~ `code` ``` \\ \\* &lt;b&gt; &#60; &amp; AT&T",
            id="emphasis, code and entities",
        ),
        pytest.param("a\n===\n- b\n> c\n| d | e |\n|---|---|\n    f", id="blocks and table"),
        pytest.param(
            "a_ _b <https://host> <me@host>", id="underscores and addresses in angle brackets"
        ),
    ],
)
def test_escaped_text_in_markdown_is_shown_unchanged_as_plain_text(text):
    """An independent Markdown reader, markdown-it, shows no link, image, heading or table.

    Line breaks and repeated spaces become single spaces, since the text stands in a list item.
    """
    reader = MarkdownIt("commonmark").enable(["table", "strikethrough"])

    page = reader.render(f"- name: {escape_markdown(text)}\n")

    # No < or > in the item: it contains no element of HTML.
    item = re.fullmatch(r"<ul>\n<li>name: ([^<>]*)</li>\n</ul>\n", page)
    assert item, page
    assert html.unescape(item[1]) == " ".join(text.split())


def test_all_template_files_are_installed_with_the_package():
    """Setuptools installs only files that match the patterns in pyproject.toml."""
    package = Path(bleuprint.__file__).parent
    content = tomllib.loads((ROOT / "pyproject.toml").read_text())
    patterns = content["tool"]["setuptools"]["package-data"]["bleuprint"]

    installed_files = set()
    for pattern in patterns:
        installed_files.update(package.glob(pattern))

    template_files = set()
    for suffix in (".css", ".js", ".j2", ".html"):
        template_files.update(package.rglob(f"*{suffix}"))
    assert len(template_files) > 20  # Otherwise they are searched for in the wrong folder.
    assert template_files <= installed_files
