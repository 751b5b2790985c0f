"""A section of the HTML report: its data, and the template that shows them."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from markupsafe import Markup

from bleuprint.serving.attention_html import attention_environment

TEMPLATES = attention_environment(Path(__file__).with_name("templates"))


def paragraphs(name: str) -> list[str]:
    """Return the paragraphs of an explanation, such as what each output error means.

    The explanations are files, since both table.md and the HTML report show them.

    Args:
        name: The name of the file in report/templates/, such as `errors.md`.
    """
    report_folder = Path(__file__).parents[1]  # The folder above page/, which contains this file.
    path = report_folder / "templates" / name
    text = path.read_text(encoding="utf-8")
    return text.rstrip("\n").split("\n\n")  # Empty lines separate paragraphs.


@dataclass(frozen=True)
class Section:
    """A section of the HTML report.

    Attributes:
        anchor: The id of the section, such as `cost`, and the name of its template without
            `.html.j2`.
        title: The heading.
        data: The variables of the template.
    """

    anchor: str
    title: str
    data: Mapping[str, Any]

    @cached_property
    def body(self) -> Markup:
        """The HTML below the heading."""
        template = TEMPLATES.get_template(f"{self.anchor}.html.j2")
        return Markup(template.render(self.data))
