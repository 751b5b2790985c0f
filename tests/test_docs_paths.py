"""The files of this repository that README.md and docs/ name exist."""

import re

import pytest

from root import ROOT

# The paths in this page are files of other toolkits, such as docs/source/FAQ.md of OpenNMT-py.
PAGE_ABOUT_OTHER_TOOLKITS = ROOT / "docs" / "comparison.md"
PAGES = [ROOT / "README.md"]
PAGES += sorted((ROOT / "docs").glob("*.md"))
PAGES.remove(PAGE_ABOUT_OTHER_TOOLKITS)

# A path from the root of the repository: no other folder and no host stands before it.
PATH = re.compile(r"(?<![\w./-])(?:tests|src|tools|benchmarks|docs)/[\w./-]+")
# A path with a code block below it: the reader of the page writes this file.
NEW_FILE = re.compile(r"`([\w./-]+)`:\n\n```")
# docs/code.md quotes version 1.0.0, some of whose files may have gone since.
OLD_FILE = re.compile(r"^Before, in `[^`]+`:$", re.MULTILINE)


def named_paths(text):
    """Return the paths from the root of the repository that a page names, in its order.

    Files that the page tells its reader to write, and files of version 1.0.0, are omitted.
    """
    new_files = NEW_FILE.findall(text)
    paths = []
    for path in PATH.findall(OLD_FILE.sub("", text)):
        path_without_punctuation = path.rstrip(".")  # A full stop may follow it.
        if path_without_punctuation not in new_files:
            paths.append(path_without_punctuation)
    return paths


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_file_of_the_repository_that_a_page_names_exists(page):
    missing_paths = []
    for path in named_paths(page.read_text(encoding="utf-8")):
        if not (ROOT / path).exists():
            missing_paths.append(path)

    assert missing_paths == []


def test_paths_are_found_in_commands_tables_and_sentences():
    text = """\
| `pytest tests/scoring/test_a.py` | see [a page](https://example.org/docs/b.md) |
The script is `tools/c.py`. The folder is src/bleuprint/d/. It is not work/docs/e.

Write `src/bleuprint/f.py`:

```python
```

Before, in `src/bleuprint/g.py`:
"""

    assert named_paths(text) == ["tests/scoring/test_a.py", "tools/c.py", "src/bleuprint/d/"]
