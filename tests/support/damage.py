"""Files damaged in many ways, and commands that meet them.

A damage is drawn from a seed, so that a failure can be repeated: `damaged(content, name, draw)`.
"""

import json
import random
import re
import runpy
import sys

# What stands in place of a value of JSON or YAML: other types, and numbers at their limits.
VALUES = (
    *(None, True, False, 0, -1, 1.5, 10**30, -(10**30), 2**63, 1e308, -1e308),
    *("", "x", "-1", "nan", "../../etc", "a\nb", "\x00", "\u2028", "ü" * 300),
    *([], {}, [[]], [{}], {"": {}}, {"x": None}, ["x"], [0], [None], {"a": {"b": {"c": []}}}),
)
# Text that JSON does not have, or that Python reads as something else.
TOKENS = ("NaN", "Infinity", "-Infinity", "1e999", "9" * 5000, '"\\ud800"', "1e", "'x'")


def places(value, path=()):
    """The path of each value in a document."""
    yield path
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from places(inner, (*path, name))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from places(inner, (*path, number))


def at(value, path):
    for key in path:
        value = value[key]
    return value


def _json(content, draw):
    """JSON with one value replaced, removed, repeated, renamed or nested."""
    document = json.loads(content)
    path = draw.choice([*places(document)])
    if not path:
        return json.dumps(draw.choice(VALUES)).encode()
    parent, key = at(document, path[:-1]), path[-1]
    kind = draw.choice(("value", "value", "value", "token", "remove", "repeat", "rename", "nest"))
    if kind == "remove":
        del parent[key]
    elif kind == "nest":
        parent[key] = "HERE"
        depth = draw.choice((90, 500, 5000, 100_000))
        opened, closed = draw.choice((("[", "]"), ('{"a":', "}")))
        inner = opened * depth + ("0" if opened != "[" else "") + closed * depth
        return json.dumps(document).replace('"HERE"', inner).encode()
    elif kind == "token":
        parent[key] = "HERE"
        return json.dumps(document).replace('"HERE"', draw.choice(TOKENS)).encode()
    elif kind == "rename" and isinstance(parent, dict):
        parent[f"{key}x"] = parent.pop(key)
    elif kind == "repeat":
        if isinstance(parent, list):
            parent.append(parent[key])
        else:
            name = json.dumps(key)
            return json.dumps(document).replace(f"{name}:", f"{name}: 0, {name}:", 1).encode()
    else:
        parent[key] = draw.choice(VALUES)
    return json.dumps(document).encode()


def _bytes(content, draw):
    """Bytes that are cut, or of which some are others."""
    kind = draw.choice(("empty", "half", "cut", "byte", "utf8", "line", "twice", "merge", "nul"))
    size = draw.randrange(len(content)) if content else 0
    lines = content.splitlines(keepends=True) or [b""]
    number = draw.randrange(len(lines))
    match kind:
        case "empty":
            return b""
        case "half":
            return content[: len(content) // 2]
        case "cut":
            return content[:size]
        case "byte":
            return content[:size] + bytes([draw.randrange(256)]) + content[size + 1 :]
        case "utf8":
            return content[:size] + b"\xff\xfe" + content[size:]
        case "line":
            return b"".join(lines[:number] + lines[number + 1 :])
        case "twice":
            return content + content
        case "merge":
            return b"<<<<<<< HEAD\n" + content + b"=======\n" + content + b">>>>>>> other\n"
    return b"\0" * len(content)


def _words(content, draw):
    """Text with one word replaced by another value."""
    words = [*re.finditer(rb"[^\s:,\[\]{}]+", content)]
    if not words:
        return b"x"
    found = draw.choice(words)
    values = [str(value).encode() for value in VALUES] + [text.encode() for text in TOKENS]
    return content[: found.start()] + draw.choice(values) + content[found.end() :]


def damaged(content, name, draw):
    """The content of a file after one damage."""
    structured = {".json": _json, ".yaml": _words, ".csv": _words, ".lock": _words}
    kinds = [_bytes]
    for suffix, kind in structured.items():
        if name.endswith(suffix):
            kinds = [_bytes, kind, kind, kind]
    if not content.isascii() and b"\0" in content:
        kinds = [_bytes]
    return draw.choice(kinds)(content, draw)


def run_command(arguments):
    """Run `bleuprint ARGUMENTS` in this process, as cli.main does; raises what it raises."""
    from bleuprint.cli.main import command_parser

    parser, _ = command_parser()
    sys.argv = ["bleuprint", *arguments]
    given = parser.parse_args(arguments)
    given.command(given)


def run_stage(script, *arguments):
    """Run stages/SCRIPT.py in this process, up to its end."""
    from bleuprint.runtime import errors

    sys.argv = [f"stages/{script}.py", *arguments]
    errors.AT_SUCCESS.clear()
    runpy.run_path(sys.argv[0], run_name="stage")["main"]()
    for call in errors.AT_SUCCESS:
        call()


def seeded(*parts):
    return random.Random(" ".join(map(str, parts)))
