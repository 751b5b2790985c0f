"""For formats that are not read, a message names the command that turns them into text files."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bleuprint.corpus.new_corpus import NewCorpus
from bleuprint.corpus.own_files import format_of
from bleuprint.runtime.errors import UserError


def pairs_with_separators():
    """Return 120 pairs with characters that separate fields or lines, quote, or expand in shells.

    They contain a comma, quotes, a tab, a line break, a dollar sign and letters beyond ASCII.
    """
    pairs = []
    for number in range(60):
        for english_word, german_word in (("apple", "Äpfelchen"), ("bread", "Brötchen")):
            english = f'The "{english_word}", no. {number}, costs $5'
            german = f"Das\t„{german_word}“, Nr. {number},\nkostet 5 $"
            pairs.append((english, german))
    return pairs


PAIRS_WITH_SEPARATORS = pairs_with_separators()
# Text files contain a sentence per line: tabs and line breaks become spaces.
PAIRS_AS_LINES = [(english, " ".join(german.split())) for english, german in PAIRS_WITH_SEPARATORS]


@pytest.fixture(autouse=True)
def inputs(tmp_path, monkeypatch):
    """The folder inputs/ of the current folder."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "inputs"
    folder.mkdir()
    return folder


def error_message_for(*names):
    """Return the message that refuses files of inputs/, which begins with the name of the first."""
    with pytest.raises(UserError) as error:
        format_of([Path("inputs", name) for name in names])
    message = str(error.value)
    assert "\n" not in message
    assert message.startswith(f"inputs/{names[0]}")
    return message


def run_command_of_message(message, start):
    """Run the command at the end of a message in a shell, as a user does.

    Args:
        message: The message.
        start: The first words of the command.
    """
    command = message[message.index(start) :]
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    subprocess.run(["bash", "-c", command], check=True, env={**os.environ, "PATH": path})


def write_json(path):
    """Write the pairs as a list of records below the key data."""
    records = []
    for english, german in PAIRS_WITH_SEPARATORS:
        records.append({"en": english, "de": german, "score": 1})
    content = json.dumps({"version": 1, "data": records}, ensure_ascii=False)
    path.write_text(content, encoding="utf-8")


def test_the_command_for_a_json_file_writes_a_text_file_per_language(inputs):
    """A .json file is refused, but the message ends in a command that converts it to text files.

    Each record is an English and a German sentence, with commas, quotes, tabs and line breaks in
    them.
    """
    name = "my data.json"
    write_json(inputs / name)

    run_command_of_message(error_message_for(name), "python -c")

    text_files = [Path("inputs", f"{name}.en"), Path("inputs", f"{name}.de")]
    assert sorted(NewCorpus.from_files(text_files).sample) == sorted(PAIRS_AS_LINES)


def test_the_command_for_two_json_files_pairs_texts_with_the_same_key(inputs):
    """Programs keep their messages in one such file per language, as {"k0": {"text": "…"}}.

    Texts without a translation are left out. The sentences contain commas, quotes, tabs and line
    breaks.
    """
    english_texts = {}
    german_texts = {}
    for number, (english, german) in enumerate(PAIRS_WITH_SEPARATORS):
        english_texts[f"k{number}"] = {"text": english}
        german_texts[f"k{number}"] = {"text": german}
    english_texts["key without German text"] = {"text": "One sentence."}
    (inputs / "en.json").write_text(json.dumps(english_texts))
    (inputs / "de.json").write_text(json.dumps(german_texts))

    run_command_of_message(error_message_for("en.json", "de.json"), "python -c")

    text_files = [Path("inputs/en.json.txt"), Path("inputs/de.json.txt")]
    corpus = NewCorpus.from_files(text_files, ["en", "de"])
    assert sorted(corpus.sample) == sorted(PAIRS_AS_LINES)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        pytest.param(
            "a.json",
            b"{",
            r"a\.json: not a valid \.json file: ",
            id="damaged JSON",
        ),
        pytest.param(
            "a.json",
            b'{"a": {"b": "c"}}',
            r"a\.json: \.json files are not read, and no two columns",
            id="JSON without texts in two languages",
        ),
        pytest.param(
            "a.po",
            b"",
            r"po2tmx -l CODE inputs/a\.po inputs/a\.tmx",
            id="messages of gettext",
        ),
        pytest.param(
            "a_de.properties",
            b"",
            r"prop2po -t ENGLISH\.properties inputs/a_de\.properties inputs/a_de\.po and po2tmx -l",
            id="messages of Java",
        ),
        pytest.param(
            "film.srt",
            b"",
            r"film\.srt: \.srt files are not read\. Subtitles of two languages rarely fit line by",
            id="subtitles",
        ),
        pytest.param(
            "a.xlsx",
            b"",
            r"a\.xlsx: \.xlsx files are not read\. Save it as text",
            id="Excel workbook",
        ),
    ],
)
def test_a_file_in_another_format_is_refused_with_what_to_do(inputs, name, content, message):
    (inputs / name).write_bytes(content)

    with pytest.raises(UserError, match=message):
        format_of([Path("inputs", name)])
