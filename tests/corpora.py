"""Small texts for the tests of the data stages, and one call that sends them through all."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bleuprint.binarize import binarize_folder
from bleuprint.binary import BinaryCorpus
from bleuprint.bpe import learn_codes
from bleuprint.clean import clean_folder
from bleuprint.dedup import dedup_folder
from bleuprint.filter import filter_folder
from bleuprint.pairs import Pair, TextFolder
from bleuprint.settings import Clean, Filter, Split, Tokenize
from bleuprint.split import split_folder
from bleuprint.tokenizer import tokenize_folder

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

CLEAN = Clean("NFC")
LENGTHS = Filter(min_words=1, max_words=100, max_ratio=100.0)
TOKENIZE = Tokenize(punctuation=False, lowercase=False)


def write_set(folder: TextFolder, name: str, pairs: Iterable[Sequence[str]]) -> None:
    """Write one set, whatever its sentences hold, but for \\n."""
    folder.path.mkdir(parents=True, exist_ok=True)
    lines = [(f"{source}\n".encode(), f"{target}\n".encode()) for source, target in pairs]
    for side, path in enumerate(folder.files(name)):
        path.write_bytes(b"".join(pair[side] for pair in lines))


@dataclass(frozen=True)
class Prepared:
    """The folders that the stages left."""

    root: Path

    def text(self, stage: str) -> TextFolder:
        return TextFolder(self.root / stage, "de", "en")

    def ledger(self, stage: str) -> Path:
        return self.root / "ledgers" / f"{stage}.json"

    @property
    def codes(self) -> Path:
        return self.root / "bpe" / "codes"

    @property
    def binary(self) -> BinaryCorpus:
        return BinaryCorpus(self.root / "binary")


def prepare(
    root: Path,
    sets: dict[str, Sequence[Sequence[str]]],
    clean: Clean = CLEAN,
    lengths: Filter = LENGTHS,
    tokenize: Tokenize = TOKENIZE,
    merges: int = 20,
    workers: int = 1,
) -> Prepared:
    """Send raw sets (train.a, valid.a, test.x, ...) through every stage from clean to binarize."""
    made = Prepared(root)
    for name, pairs in sets.items():
        write_set(made.text("raw"), name, pairs)
    parts = [
        [name.partition(".")[2] for name in sets if name.startswith(kind)]
        for kind in ("train.", "valid.")
    ]
    text, ledger = made.text, made.ledger
    clean_folder("c", clean, parts[0], parts[1], text("raw"), root / "clean", ledger("clean"))
    dedup_folder("c", text("clean"), root / "dedup", ledger("dedup"))
    filter_folder("c", lengths, text("dedup"), root / "filter", ledger("filter"))
    split_folder("c", Split(0.2, 0.2, 1), text("filter"), root / "split", ledger("split"))
    forms = (tokenize, clean.unicode)
    tokenize_folder("c", *forms, text("split"), root / "tokens", ledger("tokenize"), workers)
    learn_codes("c", merges, text("tokens"), made.codes)
    binarize_folder("c", text("tokens"), made.codes, root / "binary", ledger("binarize"), workers)
    return made
