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


def example_texts(language, lines=60):
    """Make references, good translations and worse ones, in which tokenizers meet difficulties.

    The sentences contain quotation marks, numbers, an entity and marks without spaces.

    Args:
        language: "zh" for Chinese; anything else for German.
        lines: The number of lines.

    Returns:
        The lines of the references, of the good translations, and of the worse ones.
    """
    references = []
    good = []
    for number in range(lines):
        other_number = number * 7 % 13
        if language == "zh":
            reference = f"我们在{number}月学习机器翻译,这是第{other_number}句话。"
            good.append(reference.replace("第1", "一"))
        else:
            reference = f'Der "Ärger"-Faktor von Haus {number}: {other_number},5 &amp; mehr.'
            good.append(reference.replace("Haus 1", "haus 1").replace("mehr", ""))
        references.append(reference)
    if language == "zh":
        worse = references[::-1]
    else:
        worse = [line.replace("Faktor von", "Faktoren aus") for line in good]
    return references, good, worse
