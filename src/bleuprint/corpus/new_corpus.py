"""The command new-corpus: an entry of `corpora` for parallel text in inputs/."""

import json
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ruamel.yaml import YAML

from bleuprint.config.corpus import Corpus
from bleuprint.config.corpus_files import Text
from bleuprint.config.experiment import load_settings
from bleuprint.corpus.download.download import Sample, draw_sample, read_text_pairs
from bleuprint.corpus.line_lengths import describe_parting
from bleuprint.corpus.misalignment import PairClues, describe_misfits
from bleuprint.corpus.own_files import check_languages, own_text
from bleuprint.corpus.steps.filter_stats import SetCounts
from bleuprint.corpus.text_notes import PairForms
from bleuprint.rules.language_id import LanguageId
from bleuprint.runtime.errors import UserError, print_message
from bleuprint.runtime.files import atomic_file, path_on_disk
from bleuprint.runtime.schema import MAX_NAME, validate_document
from bleuprint.runtime.wording import counted, is_or_are, join_with_and
from bleuprint.runtime.yaml_tree import load_yaml
from bleuprint.text.language_codes import is_listed, language_of
from bleuprint.text.parallel import Pair
from bleuprint.text.segmenter import has_segmenter

# Pairs by which the languages and the lengths of sentences are judged.
_LINES = 2000
# Below it word translations cannot be learned, so that good pairs score low.
_ALIGNED_PAIRS = 1000
# The most pairs drawn for the validation and the test set. Texts of up to _TENTH pairs give a tenth
# of their pairs to each, larger ones a twentieth; texts below MIN_PAIRS are refused.
_VALID, _TEST = 1000, 2000
_TENTH, MIN_PAIRS = 5000, 100
# Subwords by the number of pairs, up to and including the key, as in published set-ups, which use
# 32,000 for millions; and the 256 bytes and four special tokens that are added to them.
_SUBWORDS = {5_000: 2000, 20_000: 4000, 100_000: 6000, 500_000: 10_000, 2_000_000: 16_000}
_MOST_SUBWORDS = 32_000
_SPELLING = 260
# Languages without spaces between words for which there is no segmenter: in the rule
# `length_ratio`, a sentence would be one word.
_UNSPACED = {"bo", "dz", "km", "lo", "my", "wuu", "yue"}
# Names of formats, which are not part of the name of a text.
_ENDS = {"txt", "tsv", "tmx", "csv", "json", "jsonl", "parquet", "gz", "bz2", "xz"}


@dataclass(frozen=True)
class NewCorpus:
    """An entry of `corpora` for a text of `pairs` pairs.

    `files`: source and target, or one file with both. `sample`: some of the pairs. `text`: the
    settings of the files. `about`: lines for the user on columns and language codes. `vocab_size`:
    the size of the vocabulary, once it is known how many pieces the text has evidence for.
    `language_note`: a note if most pairs seem to be in other languages. `has_given_languages`:
    whether the user named the languages. `has_language_id`: whether the filter may contain the rule
    language_id.
    """

    files: Sequence[Path]
    languages: Sequence[str]
    pairs: int
    sample: Sequence[Pair]
    text: Text | None = None
    about: Sequence[str] = ()
    vocab_size: int | None = None
    language_note: str = ""
    has_given_languages: bool = False
    has_language_id: bool = True

    @classmethod
    def from_files(
        cls,
        files: Sequence[Path],
        languages: Sequence[str] | None = None,
        columns: Sequence[str] | None = None,
    ) -> "NewCorpus":
        """Read the files, and return their entry.

        Args:
            files: source and target, or one file with both.
            languages: the codes of source and target; by default those that the files say.
            columns: the columns of a table; by default those with text.

        Raises:
            UserError: the files are not below inputs/, not UTF-8, not parallel, of less than a
                hundred pairs, or not in these languages.
        """
        own = own_text(files, languages, columns)
        counts = SetCounts()
        clues = PairClues()
        forms = PairForms()
        try:
            pairs_of = clues.collect(read_text_pairs(own.text, own.languages, counts=counts))
            sample = draw_sample(forms.collect(pairs_of), Sample(_LINES, 1), counts)
        except UserError as error:
            place = describe_parting(files) if "not parallel" in str(error) else ""
            raise UserError(f"{error}{place}") from None
        names = join_with_and(files)
        pairs = len(sample) + counts.dropped.get("sample", 0)
        if pairs < MIN_PAIRS:
            few = f"{counted(pairs, 'pair')} {is_or_are(pairs)} too few"
            raise UserError(
                f"{names}: {few} to train, validate and test on: at least "
                f"{MIN_PAIRS}, and thousands to translate sentences that are not among them"
            )
        language_note = check_languages(files, own, sample, are_given=bool(languages))
        if misfits := clues.misfits():
            print_message(
                f"{names}: the two sides do not fit line by line: {describe_misfits(misfits)}. "
                "Compare these lines: each should be the translation of the line with its number",
                "note",
            )
        for note in forms.notes(files):
            print_message(note, "note")
        about = list(own.about)
        if lost := counts.dropped.get("one_language", 0):
            about.append(f"{names}: {lost:,} of {lost + pairs:,} units lack one of the languages")
        return cls(
            files,
            own.languages,
            pairs,
            sample,
            own.text,
            about,
            language_note=language_note,
            has_given_languages=bool(languages),
        )

    @property
    def part(self) -> str:
        """What the names of the files have in common, as a name; letters lose their accents."""
        parts = []
        for path in self.files:
            name = unicodedata.normalize("NFKD", path.name)
            parts.append(re.findall("[A-Za-z0-9]+", re.sub(r"[^\0-\x7f]", "", name)))
        first, *others = parts
        common = []
        for part in first:
            is_language = is_listed(part) and language_of(part) in self.languages
            if part in _ENDS or part in self.languages or is_language:
                continue
            if all(part in other for other in others):
                common.append(part)
        return "-".join(common)[: MAX_NAME // 2].strip("-") or "mine"

    @property
    def name(self) -> str:
        return "-".join([self.part, *self.languages])

    @property
    def max_vocab_size(self) -> int:
        """The largest size of a vocabulary for so many pairs, bytes and special tokens included."""
        for most, words in _SUBWORDS.items():
            if self.pairs <= most:
                return words + _SPELLING
        return _MOST_SUBWORDS + _SPELLING

    @property
    def held_out(self) -> tuple[float, float]:
        """The shares of the pairs that are drawn for the validation and the test set."""
        share = 0.1 if self.pairs <= _TENTH else 0.05
        valid, test = (round(min(share, most / self.pairs), 7) for most in (_VALID, _TEST))
        return valid, test

    @property
    def rules(self) -> list[str]:
        """The checks of the filter, as YAML."""
        rules = ["identical: {}", "length: {min: 1, max: 100}"]
        if not {*self.languages} & _UNSPACED:
            rules.append("length_ratio: {max: 4.0}")
        if self.has_language_id and set(self.languages) <= set(LanguageId.known_languages):
            rules.append("language_id: {min_odds: 10.0}")
        if self.pairs >= _ALIGNED_PAIRS:
            rules.append("word_alignment: {min: 0.5}")
        return rules

    @property
    def entry(self) -> str:
        """The entry as YAML, indented by two spaces."""
        valid, test = (f"{share:.7f}".rstrip("0") for share in self.held_out)
        part, (source, target) = self.part, self.languages
        if YAML(typ="safe").load(part) != part:  # 2020, null, true
            part = json.dumps(part)
        files = "\n".join(f"          {line}" for line in self._file_lines())
        # without spaces between words, which rules count
        tokenizer = "segmenter" if any(map(has_segmenter, self.languages)) else "moses"
        vocab_size = self.vocab_size or self.max_vocab_size
        return f"""\
  {self.name}:
    source: "{source}"
    target: "{target}"
    license_and_citation:
      {part}: {{license: not stated, bibtex: "@misc{{{self.part}, title = {{{{{self.part}}}}}}}"}}
    files:
      train:
        {part}:
          license_and_citation: {part}
{files}
    clean: {{entities: {{}}, html_tags: {{}}, mojibake: {{}}, unicode: {{}}, non_printing: {{}}}}
    filter: {{{", ".join(self.rules)}}}
    # validation and test set are drawn from the pairs that the filter keeps
    split: {{valid: {valid}, test: {test}}}
    tokenize: {{name: {tokenizer}}}
    # rare characters are spelled in bytes, so that none of a test set is unknown
    vocabulary: {{sentencepiece: {{vocab_size: {vocab_size}, byte_fallback: true}}}}
"""

    def _file_lines(self) -> Iterator[str]:
        """The lines of the entry that name the files, and say what is in them."""
        if self.text is not None and self.text.format != "plain":
            yield f"format: {self.text.format}"
            if self.text.columns:
                yield f"columns: {_flow_list(self.text.columns)}"
            if self.text.languages:
                yield f"languages: {_flow_list(self.text.languages)}"
        sides = ("both",) if len(self.files) == 1 else ("source", "target")
        for side, path in zip(sides, self.files, strict=True):
            name = path_on_disk(path).as_posix()
            yield f"{side}: {{path: {json.dumps(name, ensure_ascii=False)}}}"

    @property
    def corpus(self) -> Corpus:
        """The settings of the entry; raises UserError if they are not valid."""
        return validate_document(
            Corpus, YAML(typ="rt").load(self.entry)[self.name], Path("params.yaml")
        )


def _flow_list(values: Sequence[int | str]) -> str:
    """A list as YAML in one line; text is quoted."""
    return json.dumps(list(values), ensure_ascii=False)


@dataclass(frozen=True)
class Example:
    """The example that the text of a recipe has for a user's own: its entries and its systems."""

    corpora: str
    systems: str

    @classmethod
    def from_recipe(cls, recipe: Path) -> "Example":
        text = recipe.read_text(encoding="utf-8")
        _, head, systems = text.partition("\nsystems:")
        return cls(_entries(text, recipe), head[1:] + systems)


def insert_corpus(
    path: Path, new: NewCorpus, example: Example | None, systems: str
) -> tuple[bool, bool]:
    """Add the entry at the end of `corpora` of a params.yaml, whose other lines stay.

    Comments, anchors and line breaks would not survive a round trip through a YAML library. What
    `path` has of `example`, word for word, stands for the user's: the entry and `systems` take its
    place, and True is returned for each. Raises UserError, and leaves the file, if it has an entry
    of that name or would not be valid.
    """
    load_settings(path)
    corpora, text = load_yaml(path)["corpora"], path.read_bytes().decode()
    end = "\r\n" if "\r\n" in text else "\n"
    block = _entries(text, path)
    replaces = example is not None and block == example.corpora.replace("\n", end)
    if new.name in corpora and not replaces:
        line = corpora.lc.data[new.name][0] + 1
        raise UserError(
            f"{path}:{line}: corpora has an entry {new.name} already: remove or rename it first"
        )
    indent = " " * (len(block) - len(block.lstrip(" ")) - 2)
    lines = [f"{indent}{line}" for line in new.entry.splitlines()]
    entry = end.join(lines if replaces else [block, "", *lines])
    text = text.replace(block, entry, 1)
    rows = example.systems.replace("\n", end) if example else ""
    fitted = bool(rows) and text.endswith(rows)
    if fitted:
        text = text.removesuffix(rows) + systems.replace("\n", end)
    with atomic_file(path) as partial:
        partial.write_bytes(text.encode())
        try:
            load_settings(partial)
        except UserError as error:
            message = str(error).replace(str(partial), str(path))
            raise UserError(f"{message}; {path} is left as it was") from None
    return replaces, fitted


def _entries(text: str, path: Path) -> str:
    """The text of the entries of `corpora`, without blank lines and comments after the last one."""
    found = re.search(r"(?m)^corpora:[ \t]*(?:#.*)?\r?\n((?:(?: .*|#.*|\r?)\n)* .*[^\s])", text)
    if found is None:
        raise UserError(f"{path}: corpora is not written line by line: add the entry by hand")
    return found[1]
