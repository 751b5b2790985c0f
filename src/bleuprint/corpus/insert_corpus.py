"""Insert the entry of a new corpus into params.yaml, as text, so that all other lines stay.

`insert_corpus` is the entry point of the command new-corpus.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from bleuprint.config.experiment import load_settings
from bleuprint.corpus.new_corpus import NewCorpus
from bleuprint.runtime.atomic_files import atomic_file
from bleuprint.runtime.errors import UserError
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
        """Cut the example corpora and systems out of the text of a recipe.

        Args:
            recipe: The file of the recipe, a ready-made params.yaml. Systems are its last part.
        """
        text = recipe.read_text(encoding="utf-8")
        # If the recipe contains no systems, the heading and the entries are empty strings.
        _, systems_heading, systems_entries = text.partition("\nsystems:")
        return cls(
            corpora=_find_entries(text, recipe),
            systems=systems_heading.removeprefix("\n") + systems_entries,
        )


class Insertion(NamedTuple):
    """What the new entry has replaced.

    Attributes:
        has_replaced_example: Whether the entry stands in place of the example's entries.
        has_replaced_systems: Whether the fitted systems stand in place of the example's systems.
    """

    has_replaced_example: bool
    has_replaced_systems: bool


def insert_corpus(
    path: Path, new_corpus: NewCorpus, example: Example | None, systems: str
) -> Insertion:
    """Add a new corpus to the user's params.yaml, below its section `corpora`.

    A params.yaml begins as a copy of a recipe, with an example corpus and example systems. If the
    user has not edited the example corpus, the new corpus replaces it; otherwise the new corpus is
    added after the last one. In the same way, unedited example systems are replaced.

    The file is edited as text: comments, anchors and line breaks would not survive a YAML library.

    Args:
        path: The params.yaml.
        new_corpus: The new corpus; `new_corpus.entry` is its text in params.yaml.
        example: The example corpus and systems of the recipe; None if params.yaml is not a copy of
            a recipe.
        systems: The text of systems whose size fits the new corpus, for params.yaml.

    Returns:
        What was replaced.

    Raises:
        UserError: The file contains a corpus with this name, or would not be valid. It is left as
            it was.
    """
    load_settings(path)  # Only to report errors in the file before it is edited.
    # Read as bytes, since reading as text would turn Windows line ends into \n.
    text = path.read_bytes().decode()
    line_end = "\r\n" if "\r\n" in text else "\n"
    # The text below `corpora:`, up to the last entry.
    entries = _find_entries(text, path)
    has_example = example is not None and entries == _with_line_end(example.corpora, line_end)
    new_entry = _indent_like(new_corpus.entry, entries, line_end)
    if has_example:
        new_entries = new_entry
    else:
        _check_name_is_new(path, new_corpus.name)
        blank_line = line_end + line_end
        new_entries = entries + blank_line + new_entry
    text = text.replace(entries, new_entries, 1)

    has_example_systems = False
    if example is not None and example.systems:
        example_systems = _with_line_end(example.systems, line_end)
        has_example_systems = text.endswith(example_systems)
        if has_example_systems:
            text = text.removesuffix(example_systems) + _with_line_end(systems, line_end)
    _write_if_valid(path, text)
    return Insertion(
        has_replaced_example=has_example,
        has_replaced_systems=has_example_systems,
    )


def _indent_like(new_entry: str, entries: str, line_end: str) -> str:
    """Indent the new entry of a YAML file as far as the entries that the file already contains.

    Args:
        new_entry: The entry, indented by two spaces.
        entries: The other entries of the same section, whose first line shows the indent.
        line_end: The characters between two lines of the file.
    """
    indent_of_file = len(entries) - len(entries.lstrip(" "))
    missing_indent = " " * (indent_of_file - _ENTRY_INDENT)
    indented_lines = [f"{missing_indent}{line}" for line in new_entry.splitlines()]
    return line_end.join(indented_lines)


def _find_entries(text: str, path: Path) -> str:
    """Return the text of all entries below `corpora:` in a params.yaml.

    Blank lines and comments after the last entry do not belong to the text.

    Args:
        text: The content of the file.
        path: The file, which an error message names.

    Raises:
        UserError: The entries are not in lines of their own.
    """
    match = _ENTRIES.search(text)
    if match is None:
        raise UserError(f"{path}: corpora is not written line by line. Add the entry by hand")
    return match[1]


def _check_name_is_new(path: Path, name: str) -> None:
    """Check that params.yaml does not contain a corpus with the name of a new one.

    Raises:
        UserError: It does. The message names the line.
    """
    corpora = load_yaml(path)["corpora"]
    if name in corpora:
        # ruamel.yaml stores the position of each key. The first number is its line, from 0.
        key_line = corpora.lc.data[name][0]
        raise UserError(
            f"{path}:{key_line + 1}: corpus {name} is already defined. Remove or rename it"
        )


def _with_line_end(text: str, line_end: str) -> str:
    r"""Return a text whose lines end in `line_end`, in place of \n."""
    return text.replace("\n", line_end)


def _write_if_valid(path: Path, text: str) -> None:
    """Replace the content of params.yaml, unless the new content contains an error.

    The text is first written to a temporary file and checked there. The temporary file replaces
    params.yaml only if the `with` block ends without an exception.

    Raises:
        UserError: The new content contains an error. The file is left as it was.
    """
    with atomic_file(path) as temporary_file:
        temporary_file.write_bytes(text.encode())
        try:
            load_settings(temporary_file)
        except UserError as error:
            # The message must name the file of the user, not the temporary one.
            message = str(error).replace(str(temporary_file), str(path))
            raise UserError(f"{message}. {path} has not changed") from None
