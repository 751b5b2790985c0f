"""Insert the entry of a new corpus into params.yaml, as text, so that all other lines stay.

`insert_corpus` is the entry point of the command new-corpus.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from bleuprint.config.experiment import load_settings
from bleuprint.corpus.new_corpus import NewCorpus
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import atomic_file
from bleuprint.runtime.yaml_tree import load_yaml

# The lines below `corpora:` that are indented, comments or blank, up to the last one with an entry.
_ENTRIES = re.compile(r"(?m)^corpora:[ \t]*(?:#.*)?\r?\n((?:(?: .*|#.*|\r?)\n)* .*[^\s])")
# The entry of a new corpus is indented by two spaces.
_ENTRY_INDENT = 2


@dataclass(frozen=True)
class Example:
    """The example in a recipe that a user's own corpus and systems replace.

    Attributes:
        corpora: The text of the entries below `corpora`.
        systems: The text from `systems` to the end of the recipe; empty if it has no systems.
    """

    corpora: str
    systems: str

    @classmethod
    def from_recipe(cls, recipe: Path) -> "Example":
        """Read the example of a recipe.

        Args:
            recipe: The file of the recipe.
        """
        text = recipe.read_text(encoding="utf-8")
        _, heading, systems = text.partition("\nsystems:")
        return cls(
            corpora=_find_entries(text, recipe),
            systems=heading.removeprefix("\n") + systems,
        )


class Insertion(NamedTuple):
    """What the new entry has replaced.

    Attributes:
        has_replaced_example: Whether the entry stands in place of the example's entries.
        has_replaced_systems: Whether the fitted systems stand in place of the example's systems.
    """

    has_replaced_example: bool
    has_replaced_systems: bool


def insert_corpus(path: Path, new: NewCorpus, example: Example | None, systems: str) -> Insertion:
    """Add the entry of a new corpus at the end of `corpora` in params.yaml.

    The file is edited as text: comments, anchors and line breaks would not survive a YAML library.
    Where the file still contains the example word for word, the entry replaces the example's
    entries, and the fitted systems replace the example's systems.

    Args:
        path: The file.
        new: The new corpus.
        example: The example of the recipe from which the file was made, or None.
        systems: The text of systems that are fitted to the new corpus.

    Raises:
        UserError: The file contains a corpus with this name, or would not be valid. It is left as
            it was.
    """
    # Report errors in the file before it is edited.
    load_settings(path)
    text = path.read_bytes().decode()
    line_end = "\r\n" if "\r\n" in text else "\n"
    entries = _find_entries(text, path)
    has_example = example is not None and entries == _with_line_end(example.corpora, line_end)
    if not has_example:
        _check_name_is_new(path, new.name)

    indent = " " * (_indent_of(entries) - _ENTRY_INDENT)
    new_lines = [f"{indent}{line}" for line in new.entry.splitlines()]
    new_entry = line_end.join(new_lines)
    new_entries = new_entry if has_example else f"{entries}{line_end}{line_end}{new_entry}"
    text = text.replace(entries, new_entries, 1)

    example_systems = "" if example is None else _with_line_end(example.systems, line_end)
    has_example_systems = example_systems != "" and text.endswith(example_systems)
    if has_example_systems:
        text = text.removesuffix(example_systems) + _with_line_end(systems, line_end)
    _write_valid(path, text)
    return Insertion(has_example, has_example_systems)


def _find_entries(text: str, path: Path) -> str:
    """Return the entries of `corpora`, without blank lines and comments after the last one.

    Args:
        text: The content of a file such as params.yaml.
        path: The file, for the message.

    Raises:
        UserError: The entries are not in lines of their own.
    """
    match = _ENTRIES.search(text)
    if match is None:
        raise UserError(f"{path}: corpora is not written line by line: add the entry by hand")
    return match[1]


def _check_name_is_new(path: Path, name: str) -> None:
    """Raise UserError if params.yaml already contains a corpus with this name."""
    corpora = load_yaml(path)["corpora"]
    if name in corpora:
        # ruamel.yaml keeps the position of each key: first its line, counted from 0.
        key_line = corpora.lc.data[name][0]
        raise UserError(
            f"{path}:{key_line + 1}: corpus {name} is already defined: remove or rename it"
        )


def _indent_of(entries: str) -> int:
    """Return the number of spaces at the beginning of the first line."""
    return len(entries) - len(entries.lstrip(" "))


def _with_line_end(text: str, line_end: str) -> str:
    r"""Return a text whose lines end in `line_end`, in place of \n."""
    return text.replace("\n", line_end)


def _write_valid(path: Path, text: str) -> None:
    """Replace the content of params.yaml if the new content is valid.

    Raises:
        UserError: It is not valid. The file is left as it was.
    """
    with atomic_file(path) as unfinished:
        unfinished.write_bytes(text.encode())
        try:
            load_settings(unfinished)
        except UserError as error:
            # The message must name the file of the user, not the temporary one.
            message = str(error).replace(str(unfinished), str(path))
            raise UserError(f"{message}; {path} is left as it was") from None
