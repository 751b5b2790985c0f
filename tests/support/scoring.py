"""What the tests of scores share: sacreBLEU's command line, and text with odd characters."""

import json
import sys
from pathlib import Path

import processes

# Line separators to Python or Unicode, none of them a line end here.
SEPARATORS = ["\r", "\x85", "\u2028", "\u2029", "\x1c", "\x1d", "\x1e", "\x0b", "\x0c"]


def sacrebleu(*arguments):
    """Run sacreBLEU's command line and return the JSON that it prints."""
    command = [sys.executable, "-m", "sacrebleu", *map(str, arguments), "-f", "json", "-w", "6"]
    done = processes.run(command, Path())
    done.check_returncode()
    return json.loads(done.stdout)


def text(kind, lines=60):
    """Make references, good translations and worse ones, in which tokenizers meet difficulties.

    Args:
        kind: "zh" for Chinese; else German.
        lines: The number of lines.
    """
    if kind == "zh":
        references = [f"我们在{i}月学习机器翻译,这是第{i * 7 % 13}句话。" for i in range(lines)]
        return references, [r.replace("第1", "一") for r in references], references[::-1]
    references = [
        f'Der "Ärger"-Faktor von Haus {i}: {i * 7 % 13},5 &amp; mehr.' for i in range(lines)
    ]
    good = [r.replace("Haus 1", "haus 1").replace("mehr", "") for r in references]
    return references, good, [r.replace("Faktor von", "Faktoren aus") for r in good]
