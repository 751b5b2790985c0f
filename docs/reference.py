"""The pages of every setting and every command, as Markdown; conf.py puts them into the site."""

import argparse
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from bleuprint.cli.main import command_parser
from bleuprint.config.params_schema import params_schema

Schema = Mapping[str, Any]


def settings() -> str:
    """A section for each mapping of params.yaml, by the keys that lead to it."""
    schema = params_schema()
    places: dict[str, tuple[str, Schema]] = {}
    todo: list[tuple[str, Schema]] = [("", schema)]
    while todo:  # in order of depth: a kind is described where it stands highest
        keys, node = todo.pop(0)
        for key, kind, inner in _inner(keys, node, schema["$defs"]):
            if kind not in places:
                places[kind] = key, inner
                todo.append((key, inner))
    text = _table(schema, places)
    for keys, node in sorted(places.values(), key=lambda place: place[0]):
        text += f"\n## `{keys}`\n\n{node.get('description', '')}\n\n{_table(node, places)}"
    return text


def commands() -> str:
    """A section for each command."""
    _, parsers = command_parser()
    text = ""
    for name, command in parsers.choices.items():
        example = (command.epilog or "").removeprefix("example: ")
        text += f"\n## `bleuprint {name}`\n\n{command.description}\n\n```\n{example}\n```\n"
        if rows := "".join(_argument(each) for each in command._actions):
            text += f"\n| argument | meaning |\n|---|---|\n{rows}"
    return text


def _argument(action: argparse.Action) -> str:
    if argparse.SUPPRESS in (action.help, action.default):  # --help too
        return ""
    name = ", ".join(action.option_strings)
    value = "" if action.nargs == 0 else str(action.metavar or (name and action.dest.upper()))
    choices = f"{', '.join(map(str, action.choices))} " if action.choices else ""
    help_text = (action.help or "") % {"default": action.default}
    return f"| `{f'{name} {value}'.strip()}` | {_cell(choices + help_text)} |\n"


def _inner(keys: str, node: Schema, kinds: Schema) -> Iterator[tuple[str, str, Schema]]:
    """The mappings below one: their keys, their name in the schema, themselves."""
    for key, entry in node.get("properties", {}).items():
        for suffix, kind in _references(entry):
            yield f"{keys}.{key}{suffix}".lstrip("."), kind, kinds[kind]


def _references(node: Schema) -> Iterator[tuple[str, str]]:
    if "$ref" in node:
        yield "", node["$ref"].rpartition("/")[2]
    for each in node.get("anyOf", ()):
        yield from _references(each)
    for key, each in node.get("properties", {}).items():
        yield from ((f".{key}{suffix}", kind) for suffix, kind in _references(each))
    named = [*node.get("patternProperties", {}).values(), node.get("additionalProperties")]
    for each in filter(None, (*named, node.get("items"))):
        suffix = "[]" if each is node.get("items") else ".NAME"
        yield from ((f"{suffix}{more}", kind) for more, kind in _references(each))


def _table(node: Schema, places: Mapping[str, tuple[str, Schema]]) -> str:
    rows = [
        f"| `{key}` | {_cell(_values(entry, places))} | {_default(entry)} |\n"
        for key, entry in node.get("properties", {}).items()
    ]
    return f"| setting | values | default |\n|---|---|---|\n{''.join(rows)}" if rows else ""


def _default(node: Schema) -> str:
    """The default in a schema, or in what it says besides null; nothing if there is none."""
    default = node.get("default")
    if default is None:
        return next(filter(None, map(_default, node.get("anyOf", ()))), "")
    return "" if isinstance(default, dict | list) else f"`{_plain(default)}`"


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _values(node: Schema, places: Mapping[str, tuple[str, Schema]]) -> str:  # noqa: C901
    """What a setting may be, in words."""
    if "$ref" in node:
        keys = places[node["$ref"].rpartition("/")[2]][0]
        name = keys.removesuffix("[]").removesuffix(".NAME").rpartition(".")[2]
        return f"[{name}](#{re.sub('[^a-z0-9_-]', '', keys.lower())})"
    if "anyOf" in node:
        return " or ".join(filter(None, (_values(each, places) for each in node["anyOf"])))
    if "enum" in node or "const" in node:
        return ", ".join(f"`{_plain(value)}`" for value in node.get("enum") or [node["const"]])
    match node.get("type"):
        case "null":
            return ""
        case "array" if "prefixItems" in node:
            return " and ".join(_values(each, places) for each in node["prefixItems"])
        case "array":
            return f"list: {_values(node['items'], places)}"
        case "object" if "properties" in node:
            return ", ".join(_values(each, places) for each in node["properties"].values())
        case "object":
            named = [*node.get("patternProperties", {}).values(), node.get("additionalProperties")]
            return "by name: " + _values(next(filter(None, named)), places)
        case "boolean":
            return "`true`, `false`"
        case "string":
            return "text"
    kind = "whole number" if node["type"] == "integer" else "number"
    bounds = {
        "minimum": "from",
        "exclusiveMinimum": "above",
        "maximum": "to",
        "exclusiveMaximum": "below",
    }
    return " ".join((kind, *(f"{word} {node[key]}" for key, word in bounds.items() if key in node)))


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
