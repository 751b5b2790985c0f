"""The environment of HTML templates: what it escapes and refuses, and that its files are packed."""

from pathlib import Path

import pytest
from jinja2 import UndefinedError

import bleuprint
from bleuprint.runtime.html import counted, environment
from root import ROOT


def test_values_are_escaped_and_undefined_names_raise(tmp_path: Path) -> None:
    (tmp_path / "a.html.j2").write_text("<b>{{ value }}</b>")
    template = environment(tmp_path).get_template("a.html.j2")
    assert template.render(value="<i>\"'&") == "<b>&lt;i&gt;&#34;&#39;&amp;</b>"
    with pytest.raises(UndefinedError, match="'value' is undefined"):
        template.render()


def test_counted_nouns() -> None:
    assert [counted(n, "pair") for n in (0, 1, 1000)] == ["0 pairs", "1 pair", "1,000 pairs"]


def test_templates_are_package_data() -> None:
    """pyproject.toml's patterns cover every file that templates are made of."""
    import tomllib

    package = Path(bleuprint.__file__).parent
    content = tomllib.loads((ROOT / "pyproject.toml").read_text())
    patterns = content["tool"]["setuptools"]["package-data"]["bleuprint"]
    packed = {path for pattern in patterns for path in package.glob(pattern)}
    files = {p for p in package.rglob("*") if p.suffix in (".css", ".js", ".j2", ".html")}
    assert len(files) > 20 and files <= packed
