"""Small texts and settings for the tests of the data stages."""

from bleuprint.config.corpus import Bpe, Dedup, Units
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
    r"""Write one set, whatever its sentences hold, but for \n."""
    folder.path.mkdir(parents=True, exist_ok=True)
    lines = [(f"{source}\n".encode(), f"{target}\n".encode()) for source, target in pairs]
    for side, path in enumerate(folder.files(name)):
        path.write_bytes(b"".join(pair[side] for pair in lines))
