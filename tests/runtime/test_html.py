"""The environment of HTML templates: what it escapes and refuses, and that its files are packed."""

import html
import re
from pathlib import Path

import pytest
from jinja2 import UndefinedError
from markdown_it import MarkdownIt

import bleuprint
from bleuprint.runtime.html import escape_markdown, template_environment
from root import ROOT


def test_values_are_escaped_and_undefined_names_raise(tmp_path):
    (tmp_path / "a.html.j2").write_text("<b>{{ value }}</b>")
    template = template_environment(tmp_path).get_template("a.html.j2")
    assert template.render(value="<i>\"'&") == "<b>&lt;i&gt;&#34;&#39;&amp;</b>"
    with pytest.raises(UndefinedError, match="'value' is undefined"):
        template.render()


@pytest.mark.parametrize(
    "text",
    [
        "CC BY-NC-SA 4.0 (https://creativecommons.org/licenses/by-nc-sa/4.0/), a_b_c & co.",
        "# <script>alert(1)</script> <!-- a\n\n# b",
        "[free](javascript:alert(1)) ![x](http://host/x.png) [a]: b",
        "*all* **rights** _reserved_ __x__ ~~no~~ `code` ``` \\ \\* &lt;b&gt; &#60; &amp; AT&T",
        "a\n===\n- b\n> c\n| d | e |\n|---|---|\n    f",
        "a_ _b <https://host> <me@host>",
    ],
)
def test_text_in_markdown_is_shown_as_it_is(text):
    """By an independent reader of CommonMark, with GFM's tables and strikethrough."""
    reader = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    page = reader.render(f"- name: {escape_markdown(text)}\n")
    shown = re.fullmatch(r"<ul>\n<li>name: ([^<>]*)</li>\n</ul>\n", page)
    assert shown and html.unescape(shown[1]) == " ".join(text.split()), page


def test_templates_are_package_data():
    """pyproject.toml's patterns cover every file that templates are made of."""
    import tomllib

    package = Path(bleuprint.__file__).parent
    content = tomllib.loads((ROOT / "pyproject.toml").read_text())
    patterns = content["tool"]["setuptools"]["package-data"]["bleuprint"]
    packed = {path for pattern in patterns for path in package.glob(pattern)}
    files = {p for p in package.rglob("*") if p.suffix in (".css", ".js", ".j2", ".html")}
    assert len(files) > 20 and files <= packed
