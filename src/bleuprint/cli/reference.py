"""The pages of docs/ that are generated: every setting and every command."""

import argparse
import html
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bleuprint.cli.help import EXAMPLES
from bleuprint.cli.options import Commands
from bleuprint.config.experiment import Settings
from bleuprint.runtime.json_schema import Schema, json_schema
from bleuprint.runtime.schema import Range, load_yaml

# The recipes whose values the page of settings shows: the default one, and the paper's.
RECIPES = ("phrasebook", "table2")
# Where the manual explains a section further.
EXPLAINED = {
    "corpora.NAME": "corpora.md",
    "corpora.NAME.files": "corpora.md#files-the-sources-of-the-text",
    "corpora.NAME.clean": "preparation.md#rules",
    "corpora.NAME.dedup": "preparation.md#rules",
    "corpora.NAME.filter": "preparation.md#rules",
    "corpora.NAME.tokenize": "preparation.md#tokens-and-subwords",
    "corpora.NAME.vocabulary": "preparation.md#tokens-and-subwords",
    "systems.NAME": "experiments.md#rows-and-columns",
    "systems.NAME.model": "training.md#model",
    "systems.NAME.train": "training.md#train",
    "systems.NAME.average": "training.md#train",
    "systems.NAME.decode": "decoding.md#decode",
    "systems.NAME.corpora.NAME": "training.md#settings-by-corpus",
    "published[]": "scoring.md#the-gap-to-a-published-number",
}
# A dataclass of at most this many settings is shown in the table of the one that contains it.
INLINE = 3
# The longest value of a recipe that is shown, in characters.
LONGEST_VALUE = 60
_PLURALS = {"integer": "whole numbers", "number": "numbers", "string": "texts"}
_TYPES = {"integer": "whole number", "number": "number", "boolean": "`true`, `false`"}

_SETTINGS = """\
# Every setting

All keys of `params.yaml`, with types and ranges; this page is generated from the dataclasses that
read the file (`bleuprint reference settings`). A setting must be given unless it is optional. NAME
is a name that you choose. The last two columns show the first corpus and the first system of two
recipes: `phrasebook`, the default experiment, and `table2`, the Transformer base of "Attention Is
All You Need"; – is: left out. "By name" is a mapping whose keys are names. `bleuprint check` also
refuses settings that do not go together, such as an odd `d_model` with sinusoidal positions.
"""
_COMMANDS = """\
# Every command

All commands of `bleuprint`, by what one wants to do; this page is generated from the parser of the
command line (`bleuprint reference commands`). Commands read `params.yaml` in the current folder,
the project's root. `bleuprint COMMAND --help` prints a command's options, `bleuprint --version` the
version.
"""


def settings_page(recipes: Path) -> str:
    """Markdown: a table for each dataclass of settings; `recipes`: the folder of recipes."""
    documents = [load_yaml(recipes / f"{name}.yaml") for name in RECIPES]
    return "\n".join([_SETTINGS, *_Sections().lines("", json_schema(Settings), documents)])


class _Setting(NamedTuple):
    """A setting without what is around it: the null of an optional one, a list, names."""

    words: str  # its type
    path: str  # its dotted key
    record: Schema | None  # the dataclass that it is, if any
    values: list[Any]  # what each recipe has there, or None


class _Sections:
    """Tables of settings; a dataclass that occurs in several places has one table."""

    def __init__(self) -> None:
        self._paths: dict[str, str] = {}

    def lines(self, path: str, schema: Schema, values: Sequence[Any]) -> Iterator[str]:
        """The section of a dataclass, then those of the dataclasses in it, as lines of Markdown."""
        if path:
            yield f"{'###' if path.removesuffix('.NAME').count('.') else '##'} `{path}`\n"
        if "description" in schema:
            yield f"{_description(schema)}\n"
        if path in EXPLAINED:
            yield f"More: [{EXPLAINED[path].partition('#')[0]}]({EXPLAINED[path]})\n"
        yield from _row("setting", "values", *RECIPES)
        yield from _row(*["---"] * (2 + len(RECIPES)))
        below = []
        for name, field in schema["properties"].items():
            inner = [value.get(name) if isinstance(value, Mapping) else None for value in values]
            setting = _unwrapped(f"{path}.{name}".lstrip("."), field, inner)
            cell, is_new = self._cell(
                setting, "" if name in schema.get("required", ()) else _optional(field)
            )
            yield from _row(f"`{name}`", cell, *map(_value, inner))
            below += [setting] if is_new else []
        yield ""
        for setting in below:
            assert setting.record is not None
            yield from self.lines(setting.path, setting.record, setting.values)

    def _cell(self, setting: _Setting, optional: str) -> tuple[str, bool]:
        """The cell of a setting's values, and whether it needs a section of its own."""
        if setting.record is None:
            return setting.words + optional, False
        if _is_inline(setting.record):
            about = " ".join(_description(setting.record).split())
            return setting.words + _inline(setting.record) + optional + (
                about and f". {about}"
            ), False
        known = self._paths.setdefault(json.dumps(setting.record), setting.path)
        return f"{setting.words}[`{known}`](#{_slug(known)}){optional}", known == setting.path


def _unwrapped(path: str, schema: Schema, values: list[Any]) -> _Setting:
    if "anyOf" in schema:
        return _unwrapped(path, schema["anyOf"][0], values)
    if schema.get("additionalProperties"):
        firsts = [next(iter(value.values()), None) if value else None for value in values]
        inner = _unwrapped(f"{path}.NAME", schema["additionalProperties"], firsts)
        # the path of what it maps to shows a mapping in it
        return inner._replace(words=f"by name: {inner.words.removeprefix('by name: ')}")
    if schema.get("type") == "array" and "properties" in schema["items"]:
        firsts = [value[0] if value else None for value in values]
        return _Setting("list of ", f"{path}[]", schema["items"], firsts)
    if "properties" in schema:
        return _Setting("", path, schema, values)
    return _Setting(_type(schema), path, None, [])


def _type(schema: Schema) -> str:
    """The type of a setting that is no mapping, in words."""
    if "anyOf" in schema:
        return _type(schema["anyOf"][0])
    if "enum" in schema:
        return ", ".join(f"`{_flow(value)}`" for value in schema["enum"])
    if schema["type"] == "array":
        items = schema["items"]
        one, many = (items[0], f"{len(items)} ") if isinstance(items, list) else (items, "list of ")
        return f"{many}{_PLURALS[one['type']]}{_range(one)}"
    if schema["type"] == "string":
        return "a name" if "pattern" in schema else "text"
    return _TYPES[schema["type"]] + _range(schema)


def _range(schema: Schema) -> str:
    low = "exclusiveMinimum" if "exclusiveMinimum" in schema else "minimum"
    high = "exclusiveMaximum" if "exclusiveMaximum" in schema else "maximum"
    bounds = Range(
        schema.get(low, -math.inf),
        schema.get(high, math.inf),
        open_low=low != "minimum",
        open_high=high != "maximum",
    )
    return f" {bounds}" if bounds != Range() else ""


def _optional(field: Schema) -> str:
    return f"; optional, `{_flow(field['default'])}`" if "default" in field else "; optional"


def _is_inline(record: Schema) -> bool:
    fields = [each.get("anyOf", [each])[0] for each in record["properties"].values()]
    return len(fields) <= INLINE and all(each.get("type") != "object" for each in fields)


def _inline(record: Schema) -> str:
    fields = (f"`{name}`: {_type(field)}" for name, field in record["properties"].items())
    return f"{{{'; '.join(fields)}}}"


def _description(schema: Schema) -> str:
    """A dataclass's docstring; characters of HTML are escaped but for those in code."""
    parts = schema.get("description", "").split("`")
    return "`".join(
        part if number % 2 else html.escape(part, quote=False) for number, part in enumerate(parts)
    )


def _value(value: Any) -> str:
    """The cell of a recipe's value: empty if it is long, or a mapping with a section."""
    if value is None:
        return "–"
    shown = _flow(value)
    return "" if "\n" in shown or len(shown) > LONGEST_VALUE else f"`{shown}`"


def _flow(value: Any) -> str:
    """A value in YAML's flow style."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name}: {_flow(each)}" for name, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _row(*cells: str) -> Iterator[str]:
    yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _slug(heading: str) -> str:
    """The anchor of a heading, as GitHub makes it."""
    return "".join(each for each in heading.lower() if each.isalnum() or each in "-_")


def commands_page(commands: Commands) -> str:
    """Markdown: each command, its arguments and an example."""
    texts = {action.dest: action.help or "" for action in commands._choices_actions}
    lines = [_COMMANDS]
    for purpose, examples in EXAMPLES.items():
        lines.append(f"## {purpose}\n")
        for name, example in examples.items():
            lines += [f"### `bleuprint {name}`\n", f"{_sentence(texts[name])}\n"]
            usage = _usage(name, commands.choices[name])
            lines += ["```", usage, "```\n"]
            lines += _arguments(commands.choices[name])
            lines += [f"Example: `{example}`\n"] if example != usage else []
    return "\n".join(lines)


def _sentence(text: str) -> str:
    return f"{text}." if text.startswith("dvc ") else f"{text[0].upper()}{text[1:]}."


def _usage(name: str, parser: argparse.ArgumentParser) -> str:
    parts = []
    for action in _shown(parser):
        text = _argument(action)
        parts.append(text if action.required and action.nargs != "*" else f"[{text}]")
    if name == "exp":
        parts.append("...")
    return " ".join(["bleuprint", name, *parts])


def _arguments(parser: argparse.ArgumentParser) -> Iterator[str]:
    actions = _shown(parser)
    if actions:
        yield from _row("argument", "meaning")
        yield from _row("---", "---")
    for action in actions:
        text = (action.help or "") % {"default": action.default}
        choices = ", ".join(f"`{choice}`" for choice in action.choices or ())
        yield from _row(f"`{_argument(action)}`", f"{choices} {text}".strip())
    if actions:
        yield ""


def _shown(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """The arguments, without --help and those for the program itself; options last."""
    hidden = ("help", argparse.SUPPRESS)
    shown = [each for each in parser._actions if each.dest != "help" and each.help not in hidden]
    return sorted(shown, key=lambda action: (bool(action.option_strings), not action.required))


def _argument(action: argparse.Action) -> str:
    value = str(action.metavar or action.dest.upper())
    if not action.option_strings:
        return f"{value} ..." if action.nargs == "*" else value
    return action.option_strings[0] + (f" {value}" if action.nargs != 0 else "")
