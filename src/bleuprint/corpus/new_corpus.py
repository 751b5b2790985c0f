"""Describe a new corpus: parallel text of the user, and its entry in params.yaml.

`NewCorpus.from_files` is the entry point of the command new-corpus; insert_corpus.py writes the
entry into params.yaml.
"""

import json
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ruamel.yaml import YAML

from bleuprint.config.corpus import Corpus
from bleuprint.config.corpus_files import SIDES, File, Text
from bleuprint.config.named_texts import with_named_texts
from bleuprint.corpus.download.download import Sample, draw_sample, read_text_pairs
from bleuprint.corpus.download.fetch import downloads_of_environment
from bleuprint.corpus.file_languages import NAME_EXTENSIONS
from bleuprint.corpus.language_check import check_languages
from bleuprint.corpus.line_lengths import describe_parting
from bleuprint.corpus.misalignment import PairClues, describe_misfits
from bleuprint.corpus.own_files import OwnText, own_text
from bleuprint.corpus.steps.filter_stats import SetCounts
from bleuprint.corpus.text_name import TextName
from bleuprint.corpus.text_notes import PairForms
from bleuprint.rules.language_id import LanguageId
from bleuprint.runtime.errors import UserError, print_message
from bleuprint.runtime.schema import MAX_NAME, validate_document
from bleuprint.runtime.unicode_paths import path_on_disk
from bleuprint.runtime.wording import counted, is_or_are, join_with_and
from bleuprint.runtime.yaml_tree import parse_yaml, with_locations
from bleuprint.text.language_codes import is_listed, language_code
from bleuprint.text.parallel import Pair
from bleuprint.text.segmenter import has_segmenter

# The pairs that are drawn to identify the languages of a text.
_SAMPLE = Sample(2000, 1)
# Texts with fewer pairs are refused.
MIN_PAIRS = 100
# From fewer pairs, word translations cannot be learned, so that good pairs would score low.
_MIN_ALIGNED_PAIRS = 1000
# The most pairs that are drawn for the validation set and for the test set.
_MAX_VALID_PAIRS = 1000
_MAX_TEST_PAIRS = 2000
# Up to this number of pairs, a tenth of them is drawn for each set; a twentieth of a larger text.
_MAX_SMALL_TEXT_PAIRS = 5000
# The number of subwords for texts of up to so many pairs, as in published set-ups. These use 32,000
# for millions of pairs.
_SUBWORDS_BY_MAX_PAIRS = {
    5_000: 2000,
    20_000: 4000,
    100_000: 6000,
    500_000: 10_000,
    2_000_000: 16_000,
}
_MAX_SUBWORDS = 32_000
# The 256 bytes by which rare characters are spelled, and four special tokens, are in a vocabulary
# besides the subwords.
_BYTES_AND_SPECIAL_TOKENS = 260
# Languages without spaces between words and without a segmenter. A sentence would be one word for
# the rule `length_ratio`.
_UNSPACED_LANGUAGES = {"bo", "dz", "km", "lo", "my", "wuu", "yue"}
# The name of a text whose files have nothing else in common.
_DEFAULT_TEXT_NAME = "mine"


@dataclass(frozen=True)
class NewCorpus:
    """A new corpus, and its entry in params.yaml.

    Attributes:
        files: The source file and the target file; one file with both sides; or the name of a text
            in place of a path.
        languages: The codes of source and target.
        pairs: The number of pairs.
        sample: Some of the pairs.
        text: The settings of the files; None for two files of plain text.
        text_by_name: The name of the text; None for files in inputs/.
        about: Lines for the user about columns and language codes.
        vocab_size: The size of the vocabulary; None before it is known for how many subwords the
            text has evidence.
        language_note: A note if most pairs seem to be in other languages; otherwise empty.
        has_given_languages: Whether the user named the languages.
        has_language_id: Whether the filter may contain the rule language_id.
    """

    files: Sequence[Path]
    languages: Sequence[str]
    pairs: int
    sample: Sequence[Pair]
    text: Text | None = None
    text_by_name: TextName | None = None
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
        """Read a user's parallel text, check it, and print notes on what looks wrong.

        Args:
            files: The source file and the target file; one file with both sides; or the name of a
                text, such as opus:Books/v1, in place of a path.
            languages: The codes of source and target, such as `de` and `en`; None to find them in
                the names of the files or in the files.
            columns: The source and the target column of a table; None to choose those with text.

        Raises:
            UserError: The files are not below inputs/, not UTF-8, not parallel, shorter than a
                hundred pairs, or not in these languages.
        """
        user_text = own_text(files, languages, columns)
        counts = SetCounts()
        clues = PairClues()
        forms = PairForms()
        sample = _read_sample(files, user_text, counts, clues, forms)
        # The statistics count the pairs that were not drawn as dropped by a rule named `sample`.
        pairs = len(sample) + counts.dropped.get("sample", 0)
        _check_size(files, pairs)
        language_note = check_languages(
            files, user_text, sample, has_given_languages=bool(languages)
        )
        _print_notes(files, clues, forms)
        about = list(user_text.about)
        # By this rule, the reader drops units of a translation memory, and rows of a table, that
        # lack one language.
        unit = "units" if user_text.text.format == "tmx" else "rows"
        incomplete_units = counts.dropped.get("one_language", 0)
        if incomplete_units:
            about.append(
                f"{join_with_and(files)}: {incomplete_units:,} of {incomplete_units + pairs:,} "
                f"{unit} lack one of the languages"
            )
        return cls(
            files=files,
            languages=user_text.languages,
            pairs=pairs,
            sample=sample,
            text=user_text.text,
            text_by_name=user_text.name,
            about=about,
            language_note=language_note,
            has_given_languages=bool(languages),
        )

    @property
    def language_codes(self) -> list[str]:
        """The codes by which rules and tokenizers know the languages: `zh` for `zh-Hant`."""
        return [language_code(language) for language in self.languages]

    @property
    def text_name(self) -> str:
        """A name for the user's text: the words that its file names have in common.

        For example, `europarl-v7` for europarl-v7.de.txt and europarl-v7.en.txt. Languages and
        suffixes are dropped, and letters lose their accents. A text by name is called by its name.
        """
        # The name of the corpus is this name and the languages. Leave room for the languages.
        max_length = MAX_NAME // 2
        if self.text_by_name is not None:
            return self.text_by_name.label[:max_length].strip("-")
        first_words, *words_of_others = [_words_of_name(path.name) for path in self.files]
        common_words = []
        for word in first_words:
            is_language = is_listed(word) and language_code(word) in self.language_codes
            if is_language or word in self.languages or word in NAME_EXTENSIONS:
                continue
            if all(word in other_words for other_words in words_of_others):
                common_words.append(word)
        text_name = "-".join(common_words)[:max_length].strip("-")
        return text_name or _DEFAULT_TEXT_NAME

    @property
    def name(self) -> str:
        """The name of the corpus: the name of the text and the languages, as in europarl-de-en."""
        return "-".join([self.text_name, *self.languages])

    @property
    def max_vocab_size(self) -> int:
        """The largest subword vocabulary that is sensible for the size of this corpus.

        It includes the 256 bytes, by which rare characters are spelled, and four special tokens.
        """
        for max_pairs, subwords in _SUBWORDS_BY_MAX_PAIRS.items():
            if self.pairs <= max_pairs:
                return subwords + _BYTES_AND_SPECIAL_TOKENS
        return _MAX_SUBWORDS + _BYTES_AND_SPECIAL_TOKENS

    @property
    def held_out_shares(self) -> tuple[float, float]:
        """Which share of the corpus to draw for the validation set, and which for the test set.

        Each is a tenth of a small corpus, or a twentieth of a larger one. The numbers of pairs are
        limited, so the shares of a very large corpus are smaller.
        """
        share = 0.1 if self.pairs <= _MAX_SMALL_TEXT_PAIRS else 0.05
        valid_share = min(share, _MAX_VALID_PAIRS / self.pairs)
        test_share = min(share, _MAX_TEST_PAIRS / self.pairs)
        # So many digits are written to params.yaml.
        return round(valid_share, 7), round(test_share, 7)

    @property
    def filter_rules(self) -> list[str]:
        """The checks that will filter this corpus, each as YAML, such as `identical: {}`.

        Checks that do not work for its languages or for its size are omitted.
        """
        rules = ["identical: {}", "length: {min: 1, max: 100}"]
        # A ratio of lengths in words is useless if a sentence without spaces counts as one word.
        has_unspaced_language = not _UNSPACED_LANGUAGES.isdisjoint(self.language_codes)
        if not has_unspaced_language:
            rules.append("length_ratio: {max: 4.0}")
        is_known = set(self.language_codes) <= set(LanguageId.known_languages)
        if self.has_language_id and is_known:
            rules.append("language_id: {min_odds: 10.0}")
        if self.pairs >= _MIN_ALIGNED_PAIRS:
            rules.append("word_alignment: {min: 0.5}")
        return rules

    @property
    def entry(self) -> str:
        """The settings of this corpus as they are written to params.yaml.

        This is YAML, indented by two spaces: it goes below the key `corpora`.
        """
        source, target = self.languages
        text_key = _yaml_key(self.text_name)
        # Indented to the level of a text, and without a line end after the last one.
        text_lines = "\n".join(f"          {line}" for line in self._text_lines())
        valid_share, test_share = self.held_out_shares
        # Decimals such as 0.0000125 are easier to read than 1.25e-05.
        valid = f"{valid_share:.7f}".rstrip("0")
        test = f"{test_share:.7f}".rstrip("0")
        # A segmenter finds the words of languages that are written without spaces between words.
        has_unspaced_language = any(has_segmenter(language) for language in self.languages)
        tokenizer = "segmenter" if has_unspaced_language else "moses"
        vocab_size = self.vocab_size or self.max_vocab_size
        return f"""\
  {self.name}:
    source: "{source}"
    target: "{target}"
{self._license_lines()}    files:
      train:
        {text_key}:
{text_lines}
    clean: {{entities: {{}}, html_tags: {{}}, mojibake: {{}}, unicode: {{}}, non_printing: {{}}}}
    filter: {{{", ".join(self.filter_rules)}}}
    # validation and test set are drawn from the pairs that the filter keeps
    split: {{valid: {valid}, test: {test}}}
    tokenize: {{name: {tokenizer}}}
    # rare characters are spelled in bytes, so that none of a test set is unknown
    vocabulary: {{sentencepiece: {{vocab_size: {vocab_size}, byte_fallback: true}}}}
"""

    def _license_lines(self) -> str:
        """Return the lines of the entry with the terms of use, which the user has to state.

        Returns:
            YAML; empty for a text by name, whose license is known.
        """
        if self.text_by_name is not None:
            return ""
        # For example @misc{mine, title = {{mine}}}. In an f-string, each brace is written twice.
        bibtex = f"@misc{{{self.text_name}, title = {{{{{self.text_name}}}}}}}"
        return f"""\
    license_and_citation:
      {_yaml_key(self.text_name)}: {{license: not stated, bibtex: "{bibtex}"}}
"""

    def _text_lines(self) -> Iterator[str]:
        """Yield the settings of the corpus's text, as lines of YAML without indentation.

        These are the name of its license and its files, or its name; and of one file with both
        sides the format, and the columns or languages. A file may be in an archive, or its lines
        may end in CR.
        """
        if self.text_by_name is not None:
            for key, value in self.text_by_name.settings.items():
                yield f"{key}: {_yaml_text(value)}"
            yield from self._choice_lines()
            return
        yield f"license_and_citation: {_yaml_key(self.text_name)}"
        if self.text is None:
            for side, path in zip(("source", "target"), self.files, strict=True):
                yield f"{side}: {{path: {_yaml_text(path_on_disk(path).as_posix())}}}"
            return
        if self.text.format != "plain":
            yield f"format: {self.text.format}"
        yield from self._choice_lines()
        for side in SIDES:
            file = getattr(self.text, side)
            if file is not None:
                yield f"{side}: {_yaml_file(file)}"

    def _choice_lines(self) -> Iterator[str]:
        """Yield which columns or languages of one file with both sides are used, as YAML."""
        if self.text is None:
            return
        if self.text.columns:
            yield f"columns: {_yaml_text(self.text.columns)}"
        if self.text.languages:
            yield f"languages: {_yaml_text(self.text.languages)}"

    @property
    def corpus(self) -> Corpus:
        """The settings of this corpus, read from its text for params.yaml as an experiment does.

        Raises:
            UserError: The text is not valid.
        """
        path = Path("params.yaml")
        document = with_locations(parse_yaml(self.entry, str(path)), path)
        return validate_document(Corpus, with_named_texts(document[self.name]), path)


def _read_sample(
    files: Sequence[Path],
    user_text: OwnText,
    counts: SetCounts,
    clues: PairClues,
    forms: PairForms,
) -> list[Pair]:
    """Read a user's text once, draw a random sample, and look for problems on the way.

    Args:
        files: The files of the text, for messages.
        user_text: The settings of the text and its two languages.
        counts: Statistics to which the pairs outside of the sample are added, as dropped.
        clues: Looks for lines that are not translations of each other.
        forms: Looks for text that is not sentences, such as subwords or JSON.

    Raises:
        UserError: The files cannot be read, or are not parallel. In the second case, the message
            says where they stop being parallel.
    """
    downloads = downloads_of_environment()
    pairs = read_text_pairs(user_text.text, user_text.languages, downloads, counts)
    # Each `collect` looks at the pairs and passes them on, so that the files are read only once.
    observed_pairs = forms.collect(clues.collect(pairs))
    try:
        return draw_sample(observed_pairs, _SAMPLE, counts)
    except UserError as error:
        message = str(error)
        # The files have different numbers of lines: say where they stop being translations.
        if "not parallel" in message:
            message += describe_parting(files)
            message += (
                ". Give each line its translation in the line of the same number. For texts that "
                "were never aligned, see docs/corpora.md, Documents"
            )
        raise UserError(message) from None


def _check_size(files: Sequence[Path], pairs: int) -> None:
    """Refuse a text that is too small for a training, a validation and a test set.

    Args:
        files: The files of the text, for the message.
        pairs: The number of its sentence pairs.

    Raises:
        UserError: The text has fewer than a hundred pairs.
    """
    if pairs < MIN_PAIRS:
        raise UserError(
            f"{join_with_and(files)}: {counted(pairs, 'pair')} {is_or_are(pairs)} too few to "
            f"train, validate and test on. Collect at least {MIN_PAIRS}; to translate new "
            "sentences, a system needs thousands"
        )


def _print_notes(files: Sequence[Path], clues: PairClues, forms: PairForms) -> None:
    """Print notes on what looks wrong in a user's text.

    Args:
        files: The files of the text.
        clues: Has looked for lines that are not translations of each other.
        forms: Has looked for text that is not sentences, such as subwords or JSON.
    """
    misfits = clues.misfits()
    if misfits:
        print_message(
            f"{join_with_and(files)}: the two sides do not fit line by line: "
            f"{describe_misfits(misfits)}. Compare these lines: each must be the translation of "
            "the line with its number",
            "note",
        )
    for note in forms.notes(files):
        print_message(note, "note")


def _words_of_name(file_name: str) -> list[str]:
    """Split a file name into words of ASCII letters and digits: ete, 1 and txt of `été_1.txt`."""
    # In the normal form NFKD, an accent is a character of its own. It is removed with all other
    # characters beyond ASCII.
    decomposed = unicodedata.normalize("NFKD", file_name)
    ascii_name = re.sub(r"[^\0-\x7f]", "", decomposed)
    return re.findall("[A-Za-z0-9]+", ascii_name)


def _yaml_key(name: str) -> str:
    """Write a name as a key in YAML, in quotes if YAML would not read it as text: 2020, null."""
    if YAML(typ="safe").load(name) == name:
        return name
    return json.dumps(name)


def _yaml_text(value: str | Sequence[int | str]) -> str:
    """Return a text in quotes, as YAML reads it, or a list of texts or numbers in one line."""
    return json.dumps(value, ensure_ascii=False)


def _yaml_file(file: File) -> str:
    """Return a user's file as YAML in one line."""
    settings = f"path: {_yaml_text(Path(file.path or '').as_posix())}"
    if file.archive_member:
        settings += f", archive_member: {_yaml_text(file.archive_member)}"
    if file.line_ends is not None:
        settings += f", line_ends: {file.line_ends}"
    return f"{{{settings}}}"
