"""docs/troubleshooting.md quotes messages as the code prints them."""

import ast
import re

from root import ROOT

PAGE = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")


def test_each_quoted_message_is_in_the_code():
    """Its parts between what differs from case to case, each in one text of the code."""
    trees = (ast.parse(path.read_text("utf-8")) for path in (ROOT / "src").rglob("*.py"))
    constants = (
        node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Constant)
    )
    texts = "\0".join(node.value for node in constants if isinstance(node.value, str))
    messages = re.findall(r"^\*\*`(.*?)`\*\*: ", PAGE, re.MULTILINE)
    assert len(messages) >= 20
    for message in messages:
        for part in re.split("…|; ", message):
            assert part.strip(" ,:;()") in texts, message
