"""The command new-corpus: an entry of `corpora` for two parallel files in inputs/."""

import json
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ruamel.yaml import YAML

from bleuprint.config.corpus import Corpus
from bleuprint.config.corpus_files import File, Text
from bleuprint.config.experiment import load
from bleuprint.corpus.download.download import Sample, draw, local_pairs
from bleuprint.corpus.steps.ledger import SetCounts
from bleuprint.rules.language_id import LanguageId
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import whole_file
from bleuprint.runtime.schema import MAX_NAME, build
from bleuprint.runtime.yaml_tree import load_yaml
from bleuprint.text.parallel import Pair
from bleuprint.text.segmenter import has_segmenter

_LINES = 2000
# Below it word translations cannot be learned, so that good pairs score low.
_ALIGNED_PAIRS = 1000
# Pairs drawn for each of validation and test set, at most.
_HELD_OUT = 2000
# Merges of BPE for corpora of up to so many pairs; the sizes of published set-ups, which use
# 32,000 for millions.
_MERGES = {5_000: 2000, 20_000: 4000, 100_000: 6000, 500_000: 10_000, 2_000_000: 16_000}
_MOST_MERGES = 32_000


@dataclass(frozen=True)
class NewCorpus:
    """An entry of `corpora` for a source and a target text of `pairs` pairs.

    `sample`: some of the pairs. `pieces`: the size of a vocabulary of SentencePiece, of text that
    is not tokenized; None: words of a tokenizer, split by BPE.
    """

    files: Sequence[Path]
    languages: Sequence[str]
    pairs: int
    sample: Sequence[Pair]
    pieces: int | None = None

    @classmethod
    def of(cls, files: Sequence[Path], languages: Sequence[str] | None) -> "NewCorpus":
        """The entry of two files, whose names end in their languages if none are given.

        Raises UserError if they are not below inputs/, not UTF-8, not parallel or without a line.
        """
        languages = languages or [_language(path) for path in files]
        try:
            source, target = (File(path=str(path)) for path in files)
        except ValueError as error:
            raise UserError(str(error)) from None
        text, counts = Text("", source=source, target=target), SetCounts()
        sample = draw(local_pairs(text, ("", "")), Sample(_LINES, 1), counts)
        return cls(files, languages, len(sample) + sum(counts.dropped.values()), sample)

    @property
    def part(self) -> str:
        """What the names of the files have in common, as a name; letters lose their accents."""
        names = (unicodedata.normalize("NFKD", path.name) for path in self.files)
        first, second = (re.findall("[A-Za-z0-9]+", re.sub(r"[^\0-\x7f]", "", n)) for n in names)
        others = {"txt", "gz", "bz2", "xz", *self.languages}
        common = [part for part in first if part in second and part not in others]
        return "-".join(common)[: MAX_NAME // 2].strip("-") or "mine"

    @property
    def name(self) -> str:
        return "-".join([self.part, *self.languages])

    @property
    def segmented(self) -> bool:
        """Whether a language has no spaces between words, which rules count."""
        return any(map(has_segmenter, self.languages))

    @property
    def merges(self) -> int:
        """The number of merges of BPE."""
        return next((m for pairs, m in _MERGES.items() if self.pairs <= pairs), _MOST_MERGES)

    @property
    def entry(self) -> str:
        """The entry as YAML, indented by two spaces."""
        checks = ["identical: {}", "length: {min: 1, max: 100}", "ratio: {max: 4.0}"]
        if set(self.languages) <= set(LanguageId.known_languages):
            checks.append("language_id: {likelier: 10.0}")
        share = 0.1
        if self.pairs >= _ALIGNED_PAIRS:
            checks.append("alignment_score: {min: 0.5}")
            share = max(0.0001, round(min(0.05, _HELD_OUT / self.pairs), 4))
        tokenizer = "segmenter" if self.segmented else "moses"
        vocabulary = f"bpe: {{num_merges: {self.merges}}}"
        if self.pieces is not None:
            tokenizer = "none"
            vocabulary = f"sentencepiece: {{size: {self.pieces}, byte_fallback: true}}"
        part, (source, target) = self.part, self.languages
        quoted = [json.dumps(path.as_posix(), ensure_ascii=False) for path in self.files]
        return f"""\
  {self.name}:
    source: "{source}"
    target: "{target}"
    license_and_citation:
      {part}: {{license: not stated, bibtex: "@misc{{{part}, title = {{{{{part}}}}}}}"}}
    files:
      train:
        {part}:
          license_and_citation: {part}
          source: {{path: {quoted[0]}}}
          target: {{path: {quoted[1]}}}
    clean: {{entities: {{}}, tags: {{}}, mojibake: {{}}, unicode: {{}}, non_printing: {{}}}}
    filter: {{{", ".join(checks)}}}
    # validation and test set are drawn from the {self.pairs:,} pairs
    split: {{valid: {share}, test: {share}}}
    tokenize: {{name: {tokenizer}}}
    vocabulary: {{{vocabulary}}}
"""

    @property
    def corpus(self) -> Corpus:
        """The settings of the entry; raises UserError if they are not valid."""
        document = YAML(typ="rt").load(self.entry)
        return build(Corpus, document[self.name], Path("params.yaml"))


def insert(path: Path, new: NewCorpus, example: str | None) -> bool:
    """Add the entry at the end of `corpora` of a params.yaml, whose other lines stay.

    Comments, anchors and line breaks would not survive a round trip through a YAML library.
    `example`: the text of another params.yaml. If its entries are those of `path`, word for word,
    they stand for the user's: the new one takes their place, and True is returned. Raises
    UserError, and leaves the file, if it has an entry of that name or would not be valid.
    """
    load(path)
    corpora, text = load_yaml(path)["corpora"], path.read_bytes().decode()
    block, end = _entries(text, path), "\r\n" if "\r\n" in text else "\n"
    replaces = example is not None and block == _entries(example.replace("\n", end), path)
    if new.name in corpora and not replaces:
        line = corpora.lc.data[new.name][0] + 1
        raise UserError(f"{path}:{line}: corpora has an entry {new.name} already: rename it first")
    indent = " " * (len(block) - len(block.lstrip(" ")) - 2)
    lines = [f"{indent}{line}" for line in new.entry.splitlines()]
    entry = end.join(lines if replaces else [block, "", *lines])
    with whole_file(path) as partial:
        partial.write_bytes(text.replace(block, entry, 1).encode())
        try:
            load(partial)
        except UserError as error:
            message = str(error).replace(str(partial), str(path))
            raise UserError(f"{message}; {path} is left as it was") from None
    return replaces


def _entries(text: str, path: Path) -> str:
    """The text of the entries of `corpora`, without blank lines and comments after the last one."""
    found = re.search(r"(?m)^corpora:[ \t]*(?:#.*)?\r?\n((?:(?: .*|#.*|\r?)\n)* .*[^\s])", text)
    if found is None:
        raise UserError(f"{path}: corpora is not written line by line: add the entry by hand")
    return found[1]


def _language(path: Path) -> str:
    """The last part of a file's name that is a language: de of a.en-de.de or a-de.txt."""
    parts = re.split(r"[^A-Za-z]+", path.name)[1:]
    if not (known := [part for part in parts if part in LanguageId.known_languages]):
        raise UserError(f"{path}: unknown language: name both, such as: --languages de en")
    return known[-1]
