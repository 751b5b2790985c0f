"""A section of the page: its data, and the template of its name that shows them."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from markupsafe import Markup

from bleuprint.report.paired import p_text
from bleuprint.serving.attention_html import attention_environment

TEMPLATES = attention_environment(Path(__file__).with_name("templates"))
TEMPLATES.filters["p_text"] = p_text


def paragraphs(name: str) -> list[str]:
    """The paragraphs of a text of table.md that the page shows, too."""
    text = Path(__file__).parents[1].joinpath("templates", name).read_text(encoding="utf-8")
    return text.rstrip("\n").split("\n\n")


@dataclass(frozen=True)
class Section:
    """`anchor` is the id that links point to, and the name of the template of `data`."""

    anchor: str
    title: str
    data: Mapping[str, Any]

    @cached_property
    def body(self) -> Markup:
        """The HTML below the heading."""
        return Markup(TEMPLATES.get_template(f"{self.anchor}.html.j2").render(self.data))
