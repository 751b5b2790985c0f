"""Follow the sections of docs/contributing.md, each of which adds something to bleuprint."""

import json
import re
import subprocess
from dataclasses import dataclass

import micro
from root import ROOT


def sections():
    """Return the sections of docs/contributing.md by their headings."""
    page = (ROOT / "docs" / "contributing.md").read_text("utf-8")
    pattern = r"^## (.*?)\n(.*?)(?=^## |\Z)"
    return dict(re.findall(pattern, page, re.MULTILINE | re.DOTALL))


def code_blocks(text, language):
    """Return the code blocks of a language in a Markdown text."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def follow_section(project, heading):
    """Write the files that a section of docs/contributing.md shows, and apply its differences.

    Args:
        project: The project, a micro.Project.
        heading: The heading of the section, such as "A metric".
    """
    section = sections()[heading]
    # The path of a file stands before the block with its content.
    pattern = r"`([\w/]+\.py)`:\n\n```python\n(.*?)^```$"
    files = re.findall(pattern, section, re.MULTILINE | re.DOTALL)
    assert len(files) == len(code_blocks(section, "python"))
    for path, content in files:
        project.write(path, content)
    for difference in code_blocks(section, "diff"):
        command = ["git", "apply", "-"]
        subprocess.run(command, cwd=project.root, input=difference, text=True, check=True)


@dataclass(frozen=True)
class Example:
    """A project in which a section was followed and DVC has run. Not to be changed.

    Attributes:
        project: The project, a micro.Project.
        stages: The stages that DVC ran, in order.
    """

    project: micro.Project
    stages: list[str]


def metric_rows(project, **values):
    """Return the rows of the metrics in reports/results.json that have these values."""
    rows = []
    for row in json.loads(project.read("reports/results.json"))["metrics"]:
        if all(row[key] == value for key, value in values.items()):
            rows.append(row)
    return rows
