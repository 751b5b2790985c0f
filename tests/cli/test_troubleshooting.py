"""docs/troubleshooting.md quotes messages as the code prints them."""

import ast
import re

from root import ROOT

PAGE = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")


def test_messages_quoted_in_the_troubleshooting_page_are_texts_of_the_code():
    """The page quotes a message as **`...`**: with … in place of what differs between cases.

    Each part between these must be in a text of the code. If not, a user who searches the page
    for a message does not find it.
    """
    code_texts = []
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                code_texts.append(node.value)
    all_code_texts = "\0".join(code_texts)

    messages = re.findall(r"^\*\*`(.*?)`\*\*: ", PAGE, re.MULTILINE)

    assert len(messages) >= 20
    for message in messages:
        for part in re.split("…|; ", message):
            assert part.strip(" ,:;()") in all_code_texts, message
