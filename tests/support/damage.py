"""Damage files in many ways, and run commands that read them.

A damage is drawn from a seed, so that a failure can be repeated.
"""

import json
import random
import re
import runpy
import sys

# Values that take the place of one in JSON or YAML: other types, and numbers at their limits.
VALUES = (
    None,
    True,
    False,
    0,
    -1,
    1.5,
    10**30,
    -(10**30),
    2**63,
    1e308,
    -1e308,
    "",
    "x",
    "-1",
    "nan",
    "../../etc",
    "a\nb",
    "\x00",
    "\u2028",
    "ü" * 300,
    [],
    {},
    [[]],
    [{}],
    {"": {}},
    {"x": None},
    ["x"],
    [0],
    [None],
    {"a": {"b": {"c": []}}},
)
# Text that is no JSON, or that Python reads as something else.
TOKENS = ("NaN", "Infinity", "-Infinity", "1e999", "9" * 5000, '"\\ud800"', "1e", "'x'")
# Text of a document that is replaced by text which json.dumps cannot write.
_PLACEHOLDER = "HERE"


def damaged(content, name, draw):
    """Return the content of a file after one damage.

    Args:
        content: The bytes of the file.
        name: The name of the file, whose ending says how it can be damaged.
        draw: The generator of random numbers, made by `seeded`.
    """
    if name.endswith(".json"):
        by_format = _damage_json
    elif name.endswith((".yaml", ".csv", ".lock")):
        by_format = _replace_word
    else:
        by_format = None
    is_binary = not content.isascii() and b"\0" in content
    if by_format is None or is_binary:
        damages = [_damage_bytes]
    else:
        # Most damage of bytes is seen at once, since the format is broken.
        damages = [_damage_bytes, by_format, by_format, by_format]
    return draw.choice(damages)(content, draw)


def seeded(*parts):
    """Return a generator of random numbers whose seed is the text of some values."""
    return random.Random(" ".join(map(str, parts)))


def _damage_json(content, draw):
    """Replace, remove, repeat, rename or nest one value of a JSON document."""
    document = json.loads(content)
    path = draw.choice([*_paths(document)])
    if not path:
        return json.dumps(draw.choice(VALUES)).encode()
    parent = _value_at(document, path[:-1])
    key = path[-1]
    kind = draw.choice(("value", "value", "value", "token", "remove", "repeat", "rename", "nest"))
    if kind == "nest":
        parent[key] = _PLACEHOLDER
        return _with_text(document, _nested_text(draw))
    if kind == "token":
        parent[key] = _PLACEHOLDER
        return _with_text(document, draw.choice(TOKENS))
    if kind == "repeat" and isinstance(parent, dict):
        name = json.dumps(key)
        text = json.dumps(document)
        return text.replace(f"{name}:", f"{name}: 0, {name}:", 1).encode()
    if kind == "remove":
        del parent[key]
    elif kind == "repeat":
        parent.append(parent[key])
    elif kind == "rename" and isinstance(parent, dict):
        parent[f"{key}x"] = parent.pop(key)
    else:
        parent[key] = draw.choice(VALUES)
    return json.dumps(document).encode()


def _paths(value, path=()):
    """Yield the path of each value in a document: the keys and positions that lead to it."""
    yield path
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _paths(inner, (*path, name))
    elif isinstance(value, list):
        for position, inner in enumerate(value):
            yield from _paths(inner, (*path, position))


def _value_at(document, path):
    """Return the value of a document to which keys and positions lead."""
    value = document
    for key in path:
        value = value[key]
    return value


def _with_text(document, text):
    """Return a document as JSON, with a text in the place of the placeholder."""
    return json.dumps(document).replace(f'"{_PLACEHOLDER}"', text).encode()


def _nested_text(draw):
    """Return JSON of lists or objects inside each other, up to 100,000."""
    depth = draw.choice((90, 500, 5000, 100_000))
    opened, closed = draw.choice((("[", "]"), ('{"a":', "}")))
    innermost = "" if opened == "[" else "0"
    return opened * depth + innermost + closed * depth


def _damage_bytes(content, draw):
    """Cut bytes off, or replace, insert or repeat some."""
    kind = draw.choice(("empty", "half", "cut", "byte", "utf8", "line", "twice", "merge", "nul"))
    position = draw.randrange(len(content)) if content else 0
    lines = content.splitlines(keepends=True) or [b""]
    line = draw.randrange(len(lines))
    match kind:
        case "empty":
            return b""
        case "half":
            return content[: len(content) // 2]
        case "cut":
            return content[:position]
        case "byte":
            other = bytes([draw.randrange(256)])
            return content[:position] + other + content[position + 1 :]
        case "utf8":
            return content[:position] + b"\xff\xfe" + content[position:]
        case "line":
            return b"".join(lines[:line] + lines[line + 1 :])
        case "twice":
            return content + content
        case "merge":
            return b"<<<<<<< HEAD\n" + content + b"=======\n" + content + b">>>>>>> other\n"
    return b"\0" * len(content)


def _replace_word(content, draw):
    """Replace one word of a text by another value."""
    words = [*re.finditer(rb"[^\s:,\[\]{}]+", content)]
    if not words:
        return b"x"
    word = draw.choice(words)
    values = [str(value).encode() for value in VALUES] + [text.encode() for text in TOKENS]
    return content[: word.start()] + draw.choice(values) + content[word.end() :]


def run_command(arguments):
    """Run `bleuprint ARGUMENTS` in this process, as cli.main does, and raise its errors."""
    from bleuprint.cli.main import command_parser

    parser, _ = command_parser()
    sys.argv = ["bleuprint", *arguments]
    parsed = parser.parse_args(arguments)
    parsed.command(parsed)


def run_stage(script, *arguments):
    """Run stages/SCRIPT.py in this process, and the calls that follow its success."""
    from bleuprint.runtime import errors

    sys.argv = [f"stages/{script}.py", *arguments]
    errors.AT_SUCCESS.clear()
    runpy.run_path(sys.argv[0], run_name="stage")["main"]()
    for call in errors.AT_SUCCESS:
        call()
