"""Small texts and settings for the tests of the data stages."""

from itertools import islice

from bleuprint.config.corpus import Bpe, Dedup, Units
from bleuprint.corpus import phrasebook
from bleuprint.rules import CHECKS
from bleuprint.rules import EDITS as KNOWN_EDITS
from bleuprint.rules.rule import Check, Edit
from bleuprint.text.parallel import Pair
from bleuprint.text.tokenizers import Tokenize

# Python's text mode or splitlines() end a line at each of these.
LINE_ENDS_ELSEWHERE = ["\r", "\x85", "\u2028", "\u2029", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e"]
TORTURE = [*LINE_ENDS_ELSEWHERE, "\x00", "\ufeff", "\u200b", "\u00ad", "\u00a0", "\u3000", "\t"]

PAIRS = [
    Pair("Die Katze schläft auf dem Ofen.", "The cat is sleeping on the stove."),
    Pair("Wann fährt der nächste Zug?", "When does the next train leave?"),
    Pair("Er hat drei Äpfel gekauft.", "He has bought three apples."),
    Pair("Morgen soll es regnen.", "It is said to rain tomorrow."),
    Pair("Wir warten vor dem Rathaus.", "We are waiting in front of the town hall."),
    Pair("Sie liest gern alte Briefe.", "She likes to read old letters."),
]

EDITS: tuple[Edit, ...] = (KNOWN_EDITS["unicode"](form="NFC"), KNOWN_EDITS["non_printing"]())
CHECKED: tuple[Check, ...] = (CHECKS["length"](min=1, max=100), CHECKS["length_ratio"](max=100.0))
DEDUP = Dedup(pairs=True, sources=False, targets=False, decontaminate="normalized")
TOKENIZE = Tokenize(name="moses", lowercase=False, hyphens=False, escape=False)
UNITS = Units(bpe=Bpe(num_merges=20, joint=True, threshold=0))


def write_set(folder, name, pairs):
    """Write one set of a text: one file per language, one sentence per line.

    Args:
        folder: The text, a TextFolder.
        name: The name of the set, such as train.
        pairs: The sentence pairs. They may contain any character except newlines.
    """
    folder.path.mkdir(parents=True, exist_ok=True)
    source_path, target_path = folder.files(name)
    # In binary mode, since text mode would translate some of these characters.
    with source_path.open("wb") as source_file, target_path.open("wb") as target_file:
        for source, target in pairs:
            source_file.write(f"{source}\n".encode())
            target_file.write(f"{target}\n".encode())


def numbered_pairs(source, target, count):
    """Return pairs that differ in a number.

    Args:
        source: The source sentence, with {} in place of the number, which counts from 0.
        target: The target sentence, likewise.
        count: The number of pairs.
    """
    return [Pair(source.format(number), target.format(number)) for number in range(count)]


def sources_of(pairs):
    """Return the source sentences of pairs."""
    return [source for source, _ in pairs]


def targets_of(pairs):
    """Return the target sentences of pairs."""
    return [target for _, target in pairs]


def lines_to_text(lines):
    """Return a text in which a newline ends each line."""
    return "".join(f"{line}\n" for line in lines)


def file_names(folder):
    """Return the names of the files and folders in a folder, in alphabetical order."""
    return sorted(path.name for path in folder.iterdir())


def file_contents(folder):
    """Return the content of each file in a folder and its subfolders, by its path from there."""
    content_by_path = {}
    for path in folder.rglob("*"):
        if path.is_file():
            content_by_path[path.relative_to(folder).as_posix()] = path.read_bytes()
    return content_by_path


def phrasebook_sentences(language, count):
    """Return training sentences of the phrasebook, the German-English text of the package.

    Args:
        language: The language, de or en. The nth sentences of both translate each other.
        count: The number of sentences.
    """
    return list(islice(phrasebook.sentences("train", language), count))
