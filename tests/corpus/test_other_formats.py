"""Formats that are not read: the commands that messages name give two text files."""

import csv
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pandas
import pytest

from bleuprint.corpus.new_corpus import NewCorpus
from bleuprint.corpus.own_files import format_of
from bleuprint.runtime.errors import UserError

# A comma, quotes, a tab, a line break, a dollar sign and letters beyond ASCII.
PAIRS = [
    (f'The "{word}", no. {n}, costs $5', f"Das\t„{wort}“, Nr. {n},\nkostet 5 $")
    for n in range(60)
    for word, wort in (("apple", "Äpfelchen"), ("bread", "Brötchen"))
]
WANTED = [(a, " ".join(b.split())) for a, b in PAIRS]


@pytest.fixture(autouse=True)
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "inputs").mkdir()
    return tmp_path


def way_on(*names):
    with pytest.raises(UserError) as error:
        format_of([Path("inputs", name) for name in names])
    message = str(error.value)
    assert "\n" not in message and message.startswith(f"inputs/{names[0]}")
    return message


def run(message, start):
    """Run the command at the end of a message in a shell, as a user does."""
    command = message[message.index(start) :]
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    subprocess.run(["bash", "-c", command], check=True, env={**os.environ, "PATH": path})


def jsonl(path):
    rows = [{"id": n, "translation": {"en": a, "de": b}} for n, (a, b) in enumerate(PAIRS)]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def records(path):
    rows = [{"en": a, "de": b, "score": 1} for a, b in PAIRS]
    path.write_text(json.dumps({"version": 1, "data": rows}, ensure_ascii=False), "utf-8")


def table(path):
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file).writerows([("en", "de"), *PAIRS])


def parquet(path):
    frame = pandas.DataFrame({"translation": [{"en": a, "de": b} for a, b in PAIRS]})
    frame.to_parquet(path)


@pytest.mark.parametrize(
    ("name", "write"),
    [("a.jsonl", jsonl), ("my data.json", records), ("a.csv", table), ("a.parquet", parquet)],
)
def test_the_command_gives_two_text_files(project, name, write):
    write(project / "inputs" / name)
    message = way_on(name)
    run(message, "python -c")
    files = [Path("inputs", f"{name}.{language}") for language in ("en", "de")]
    assert sorted(NewCorpus.from_files(files).sample) == sorted(WANTED)


def test_two_files_of_keys(project):
    texts = [{f"k{n}": {"text": pair[side]} for n, pair in enumerate(PAIRS)} for side in (0, 1)]
    texts[0]["only here"] = {"text": "One sentence."}
    for name, content in zip(("en.json", "de.json"), texts, strict=True):
        (project / "inputs" / name).write_text(json.dumps(content))
    run(way_on("en.json", "de.json"), "python -c")
    files = [Path("inputs", f"{name}.json.txt") for name in ("en", "de")]
    assert sorted(NewCorpus.from_files(files, ["en", "de"]).sample) == sorted(WANTED)


def test_an_archive_is_unpacked(project):
    with zipfile.ZipFile(project / "inputs" / "a.zip", "w") as archive:
        for side, name in enumerate(("x/a.en", "x/a.de")):
            archive.writestr(name, "".join(f"{pair[side]}\n" for pair in WANTED))
    message = way_on("a.zip")
    assert "contains x/a.en, x/a.de. " in message
    run(message, "python -m zipfile")
    files = [Path("inputs/x/a.en"), Path("inputs/x/a.de")]
    assert sorted(NewCorpus.from_files(files).sample) == sorted(WANTED)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.json", b"{", r"a\.json: not a sound \.json file: "),
        ("a.jsonl", b"\xff", r"a\.jsonl: not a sound \.jsonl file: "),
        ("a.json", b'{"a": {"b": "c"}}', r"a\.json: \.json files are not read, and no two columns"),
        ("a.csv", b"one column\n", r"a\.csv: \.csv files are not read, and no two columns"),
        ("a.parquet", b"PAR1", r"a\.parquet: not a sound \.parquet file: "),
        ("a.zip", b"no archive", r"a\.zip: damaged, or not a \.zip archive: "),
        ("a.de.zst", b"", r"a\.de\.zst: \.zst files are not read\. Run: zstd -d inputs/a\.de\.zst"),
        ("a.tar.gz", b"", r"\.tar\.gz files are not read\. Run: tar xf inputs/a\.tar\.gz -C inpu"),
        ("a.po", b"", r"po2tmx -l CODE inputs/a\.po inputs/a\.tmx"),
        ("a.xlsx", b"", r"a\.xlsx: \.xlsx files are not read\. Save it as text"),
    ],
)
def test_other_files_are_refused_with_what_to_do(project, name, content, message):
    (project / "inputs" / name).write_bytes(content)
    with pytest.raises(UserError, match=message):
        format_of([Path("inputs", name)])
