"""Read the name of a text that a user gives to new-corpus in place of files, such as opus:Books/v1.

`TextName.parse` is the entry point. config/named_texts.py knows the addresses behind the names.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bleuprint.config.corpus_files import NAMES_OF_TEXTS, File, Text
from bleuprint.config.named_texts import with_named_texts
from bleuprint.config.text_formats import format_of_name
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.schema import validate_document
from bleuprint.runtime.yaml_tree import LocatedMapping, Location

# KIND:NAME, such as opus:Books/v1. A file in inputs/ has no colon before its first slash.
_NAME = re.compile(rf"(?P<kind>{'|'.join(NAMES_OF_TEXTS)}):(?P<name>.*)")
# OWNER/NAME@REVISION/FILE, as in addresses hf://datasets/... of Hugging Face. A revision contains a
# slash only if it is one of the references that Hugging Face makes.
_HUGGING_FACE = re.compile(
    r"(?P<huggingface>[^@]+)@(?P<revision>refs/convert/[^/]+|refs/pr/\d+|[^/]+)/(?P<file>.+)"
)


@dataclass(frozen=True)
class TextName:
    """The name of a training text, as the user types it and as params.yaml contains it.

    Attributes:
        typed: The name as the user typed it, such as `opus:Books/v1`.
        settings: The settings that name the text in params.yaml, such as `{"opus": "Books/v1"}`.
            The first key is the kind of the name.
        label: A name for the text in params.yaml, such as `Books-v1`.
    """

    typed: str
    settings: Mapping[str, Any]
    label: str

    @classmethod
    def parse(cls, argument: str) -> "TextName | None":
        """Read an argument of the command line.

        Args:
            argument: The name of a text, or the path of a file.

        Returns:
            The name; None for the path of a file.

        Raises:
            UserError: The name is incomplete, or it is the name of a test set.
        """
        match = _NAME.fullmatch(argument)
        if match is None:
            return None
        name = match["name"]
        if match["kind"] == "sacrebleu":
            raise UserError(
                f"{argument}: sacreBLEU has test sets, but new-corpus adds training text. Add the "
                "test set to files.tests of a corpus in params.yaml: "
                f"{_as_label(name)}: {{all: {{sacrebleu: {name}}}}}"
            )
        if match["kind"] == "opus":
            return cls(typed=argument, settings={"opus": name}, label=_as_label(name))
        return cls._parse_hugging_face(argument, name)

    @classmethod
    def _parse_hugging_face(cls, argument: str, name: str) -> "TextName":
        """Read the name of a file at Hugging Face.

        Args:
            argument: The argument of the command line, for messages.
            name: The argument without `huggingface:`.

        Raises:
            UserError: The revision or the file is missing, or the file has an unknown format.
        """
        match = _HUGGING_FACE.fullmatch(name)
        if match is None:
            raise UserError(
                f"{argument}: the data set, its revision or its file is missing. Write "
                "huggingface:OWNER/NAME@REVISION/FILE, such as "
                "huggingface:wmt/wmt14@main/de-en/test-00000-of-00001.parquet"
            )
        if format_of_name(match["file"]) is None:
            raise UserError(
                f"{argument}: the format of the file is unknown. Name a .parquet, .jsonl, .csv, "
                ".tsv or .tmx file"
            )
        data_set = match["huggingface"].rpartition("/")[2]
        return cls(typed=argument, settings=match.groupdict(), label=_as_label(data_set))

    @property
    def kind(self) -> str:
        """The kind of the name, which is the text's publisher: `opus` or `huggingface`."""
        return next(iter(self.settings))

    def text(self, languages: Sequence[str]) -> Text:
        """Return the text with the addresses of its files.

        Args:
            languages: The languages of source and target.

        Raises:
            UserError: No text has this name in these languages.
        """
        return validate_document(Text, self._with_addresses(languages), Path(self.typed))

    def file(self) -> File:
        """Return the file with both sides of a text at Hugging Face.

        Raises:
            UserError: The name of the data set is not possible.
        """
        # The languages of the text do not decide its address.
        text = self._with_addresses(("", ""))
        return validate_document(File, text["both"], Path(self.typed))

    def _with_addresses(self, languages: Sequence[str]) -> Any:
        """Return the settings of the text, with the addresses of its files in place of its name.

        Args:
            languages: The languages of source and target.

        Raises:
            UserError: No text has this name in these languages.
        """
        location = Location(Path(self.typed))

        def located(entries: Mapping[str, Any]) -> LocatedMapping:
            """Return a mapping whose entries were all written on the command line."""
            return LocatedMapping(entries, dict.fromkeys(entries, location))

        # `with_named_texts` changes whole corpora, so the text becomes the only one of a corpus.
        source, target = languages
        text = located(self.settings)
        train = located({"text": text})
        files = located({"train": train})
        corpus = located({"source": source, "target": target, "files": files})
        corpus_with_addresses = with_named_texts(corpus)
        return corpus_with_addresses["files"]["train"]["text"]


def _as_label(name: str) -> str:
    """Return a name as a key for params.yaml: `Books-v1` for `Books/v1`."""
    return "-".join(re.findall("[A-Za-z0-9]+", name))
