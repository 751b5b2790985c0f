"""A user's texts in inputs/ and the command new-corpus, for the tests of that command."""

import shlex
from xml.sax.saxutils import escape

from bleuprint.cli.main import command_parser
from bleuprint.corpus import phrasebook
from bleuprint.corpus.new_corpus import NewCorpus

ENGLISH_SENTENCES = list(phrasebook.sentences("valid", "en"))
GERMAN_SENTENCES = list(phrasebook.sentences("valid", "de"))
# Tuples of an English and a German sentence.
FIVE_HUNDRED_PAIRS = list(zip(ENGLISH_SENTENCES, GERMAN_SENTENCES, strict=True))


def run_command(line):
    """Run a line such as `bleuprint check` in this process."""
    _, commands = command_parser()
    _, name, *arguments = shlex.split(line)
    options = commands.choices[name].parse_args(arguments)
    options.command(options)


def write_pairs(project, pairs, names=("mine.en", "mine.de")):
    """Write sentence pairs to two files in inputs/.

    Args:
        project: The folder of the project.
        pairs: The sentences, source and target.
        names: The names of the two files.

    Returns:
        The paths of the two files, such as inputs/mine.en.
    """
    paths = []
    for side, name in enumerate(names):
        path = project / "inputs" / name
        path.write_bytes("".join(f"{pair[side]}\n" for pair in pairs).encode())
        paths.append(path.relative_to(project))
    return paths


def analyze_pairs(project, pairs, names=("mine.en", "mine.de"), languages=None):
    """Write sentence pairs to two files in inputs/; return the entry that new-corpus makes of them.

    Args:
        project: The folder of the project.
        pairs: The sentences, source and target.
        names: The names of the two files.
        languages: The languages of source and target; None reads them from the names.
    """
    return NewCorpus.from_files(write_pairs(project, pairs, names), languages)


def swap_sides(pairs):
    """Return the pairs with source and target exchanged."""
    return [(target, source) for source, target in pairs]


def tmx_text(units):
    """Return the content of a translation memory in TMX.

    Args:
        units: The translation units, each a list of language codes and sentences.
    """
    body = ""
    for unit in units:
        variants = ""
        for code, sentence in unit:
            variants += f'<tuv xml:lang="{code}"><seg>{escape(sentence)}</seg></tuv>'
        body += f"<tu>{variants}</tu>"
    return f'<tmx version="1.4"><header/><body>{body}</body></tmx>'
