"""new-corpus with tables, archives and compressed files, as people have them."""

import csv
import gzip
import json
import re
from pathlib import Path

import pandas
import pytest

from archives import pack, zip_archive, zstd_compress
from bleuprint.config.experiment import load_settings
from bleuprint.corpus.download.download import read_text_pairs
from bleuprint.corpus.new_corpus import NewCorpus
from bleuprint.runtime.errors import UserError
from new_corpus import (
    ENGLISH_SENTENCES,
    FIVE_HUNDRED_PAIRS,
    GERMAN_SENTENCES,
    run_command,
    tmx_text,
)


def as_lines(sentences, line_end="\n"):
    """Return sentences as the content of a text file."""
    return "".join(f"{sentence}{line_end}" for sentence in sentences).encode()


ENGLISH = as_lines(ENGLISH_SENTENCES)
GERMAN = as_lines(GERMAN_SENTENCES)
OPUS_FILES = [
    ("README", b"From OPUS.\n"),
    ("LICENSE", b"None.\n"),
    ("Phrases.en-nso.en", ENGLISH),
    ("Phrases.en-nso.nso", GERMAN),
    ("Phrases.en-nso.ids", b"1\t1\n"),
]


def write_csv(path):
    """Write the pairs as a table of the German Excel: with semicolons and a byte order mark."""
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.writer(file, delimiter=";")
        writer.writerow(["Nr.", "English", "Deutsch"])
        for number, pair in enumerate(FIVE_HUNDRED_PAIRS):
            writer.writerow([number, *pair])


def write_csv_without_header(path):
    """Write the pairs as a table without names of columns."""
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(FIVE_HUNDRED_PAIRS)


def write_jsonl(path):
    """Write the pairs as lines of JSON in the form of Hugging Face's translation data sets."""
    lines = []
    for number, (english, german) in enumerate(FIVE_HUNDRED_PAIRS):
        lines.append(json.dumps({"id": number, "translation": {"en": english, "de": german}}))
    path.write_bytes(as_lines(lines))


def write_compressed_jsonl(path):
    """Write the pairs as lines of JSON, compressed by zstd."""
    lines = []
    for english, german in FIVE_HUNDRED_PAIRS:
        lines.append(json.dumps({"source_text": english, "target_text": german, "score": 0.9}))
    path.write_bytes(zstd_compress(as_lines(lines)))


def write_parquet(path):
    """Write the pairs as one column in the form of Hugging Face's translation data sets."""
    rows = [{"en": english, "de": german} for english, german in FIVE_HUNDRED_PAIRS]
    pandas.DataFrame({"id": range(500), "translation": rows}).to_parquet(path)


def write_zip_of_table(path):
    """Write an archive with a table and a file about it."""
    write_csv(path.with_name("unpacked.csv"))
    table = path.with_name("unpacked.csv").read_bytes()
    path.write_bytes(zip_archive([("data/README.md", b"x\n"), ("data/pairs.csv", table)]))


def write_zip_of_table_from_mac(path):
    """Write an archive as macOS does: with a file that describes each file."""
    write_csv_without_header(path.with_name("unpacked.csv"))
    table = path.with_name("unpacked.csv").read_bytes()
    files = [("__MACOSX/._pairs.de-en.csv", b"x\n"), ("pairs.en-de.csv", table)]
    path.write_bytes(zip_archive(files))


def write_zip_of_memory(path):
    """Write an archive with a compressed translation memory."""
    units = [[("en", english), ("de", german)] for english, german in FIVE_HUNDRED_PAIRS]
    memory = gzip.compress(tmx_text(units).encode())
    path.write_bytes(zip_archive([("memory.tmx.gz", memory)]))


@pytest.mark.parametrize(
    ("name", "write", "settings"),
    [
        pytest.param(
            "mine.csv",
            write_csv,
            'format: csv columns: ["English", "Deutsch"] both: {path: "inputs/mine.csv"}',
            id="csv",
        ),
        pytest.param(
            "mine.en-de.csv",
            write_csv_without_header,
            'format: csv columns: [1, 2] both: {path: "inputs/mine.en-de.csv"}',
            id="csv without header",
        ),
        pytest.param(
            "mine.jsonl",
            write_jsonl,
            'format: jsonl columns: ["translation.en", "translation.de"] '
            'both: {path: "inputs/mine.jsonl"}',
            id="jsonl",
        ),
        pytest.param(
            "mine.json",
            write_jsonl,
            'format: jsonl columns: ["translation.en", "translation.de"] '
            'both: {path: "inputs/mine.json"}',
            id="jsonl called json, as scripts of Hugging Face read it",
        ),
        pytest.param(
            "mine.en-de.jsonl.zst",
            write_compressed_jsonl,
            'format: jsonl columns: ["source_text", "target_text"] '
            'both: {path: "inputs/mine.en-de.jsonl.zst"}',
            id="jsonl.zst",
        ),
        pytest.param(
            "mine.parquet",
            write_parquet,
            'format: parquet columns: ["translation.en", "translation.de"] '
            'both: {path: "inputs/mine.parquet"}',
            id="parquet",
        ),
        pytest.param(
            "mine.zip",
            write_zip_of_table,
            'format: csv columns: ["English", "Deutsch"] '
            'both: {path: "inputs/mine.zip", archive_member: ["data/pairs.csv"]}',
            id="csv in a zip",
        ),
        pytest.param(
            "mine.zip",
            write_zip_of_table_from_mac,
            "format: csv columns: [1, 2] "
            'both: {path: "inputs/mine.zip", archive_member: ["pairs.en-de.csv"]}',
            id="csv in a zip of macOS, with its languages in its name",
        ),
        pytest.param(
            "mine.zip",
            write_zip_of_memory,
            'format: tmx both: {path: "inputs/mine.zip", archive_member: ["memory.tmx.gz"]}',
            id="tmx in a zip",
        ),
    ],
)
def test_one_file_with_both_sides_becomes_an_entry(project, name, write, settings):
    """The entry is read again, and has the same pairs."""
    write(project / "inputs" / name)

    run_command(f"bleuprint new-corpus inputs/{name}")

    entry = " ".join((project / "params.yaml").read_text(encoding="utf-8").split())
    assert settings in entry
    corpus = load_settings().corpora["mine-en-de"]
    (part,) = corpus.files.train.values()
    assert sorted(read_text_pairs(part, corpus.languages)) == sorted(FIVE_HUNDRED_PAIRS)


def test_the_languages_of_a_zip_of_opus_are_those_of_its_files(project):
    """nso, Northern Sotho, is not in the table of languages, but in the name Phrases.en-nso."""
    (project / "inputs" / "en-nso.txt.zip").write_bytes(zip_archive(OPUS_FILES))

    new = NewCorpus.from_files([project.joinpath("inputs/en-nso.txt.zip").relative_to(project)])

    assert new.languages == ("en", "nso")
    assert new.about == [
        "inputs/en-nso.txt.zip: source is Phrases.en-nso.en, target is Phrases.en-nso.nso"
    ]
    (part,) = new.corpus.files.train.values()
    assert part.format == "moses"
    assert list(read_text_pairs(part, new.languages)) == FIVE_HUNDRED_PAIRS


@pytest.mark.parametrize(
    ("name", "first", "corpus_name"),
    [
        pytest.param("de-en.txt.zip", "a.de-en", "mine-de-en", id="OPUS"),
        pytest.param("laws.zip", "laws.de_en", "laws-de-en", id="underscore in the files' names"),
        pytest.param("de_en.zip", "text", "mine-de-en", id="underscore in the archive's name"),
        pytest.param("laws.zip", "text", "laws-en-de", id="order of the files"),
    ],
)
def test_the_order_of_languages_and_the_name_are_those_of_the_archive(
    project, name, first, corpus_name
):
    """FIRST is the beginning of the names of the two files, English before German."""
    path = project / "inputs" / name
    path.write_bytes(zip_archive([(f"{first}.en", ENGLISH), (f"{first}.de", GERMAN)]))

    new = NewCorpus.from_files([path.relative_to(project)])

    assert new.name == corpus_name


@pytest.mark.parametrize("extension", ["tar", "tgz", "tar.gz", "tar.xz"])
def test_the_extension_of_a_tar_file_is_not_part_of_its_name(project, extension):
    path = project / "inputs" / f"laws.{extension}"
    files = [("a.en", ENGLISH), ("a.de", GERMAN)]
    path.write_bytes(pack(f"a.{extension}", files))

    new = NewCorpus.from_files([path.relative_to(project)])

    assert new.name == "laws-en-de"


def test_the_user_may_choose_the_languages_of_a_zip(project):
    files = [("a.en", ENGLISH), ("a.de", GERMAN), ("a.fr", as_lines(["Oui."] * 500))]
    path = project / "inputs" / "three.zip"
    path.write_bytes(zip_archive(files))

    new = NewCorpus.from_files([path.relative_to(project)], ["de", "en"])

    assert new.about == ["inputs/three.zip: source is a.de, target is a.en"]


@pytest.mark.parametrize("compress", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_files_of_old_macs_get_their_setting(project, compress):
    suffix = ".gz" if compress is gzip.compress else ""
    paths = []
    for language, sentences in (("en", ENGLISH_SENTENCES), ("de", GERMAN_SENTENCES)):
        path = project / "inputs" / f"mac.{language}{suffix}"
        path.write_bytes(compress(as_lines(sentences, "\r")))
        paths.append(path.relative_to(project))

    new = NewCorpus.from_files(paths)

    (part,) = new.corpus.files.train.values()
    assert [file.line_ends for file in part.files] == ["cr", "cr"]
    assert list(read_text_pairs(part, new.languages)) == FIVE_HUNDRED_PAIRS
    assert new.about[0] == (
        rf"{paths[0]}: its lines end in \r alone, as on old Macs (line_ends: cr)"
    )


def test_an_archive_with_files_of_old_macs_gets_their_setting(project):
    r"""In one file, lines end in \r, in the other in \n; the setting stands for both."""
    files = [("a.en", ENGLISH), ("a.de", as_lines(GERMAN_SENTENCES, "\r"))]
    path = project / "inputs" / "mac.zip"
    path.write_bytes(zip_archive(files))

    new = NewCorpus.from_files([path.relative_to(project)])

    (part,) = new.corpus.files.train.values()
    assert part.both.line_ends == "cr"
    assert list(read_text_pairs(part, new.languages)) == FIVE_HUNDRED_PAIRS


@pytest.mark.parametrize(
    ("name", "files", "message"),
    [
        pytest.param(
            "three.zip",
            ["a.en", "a.de", "a.fr"],
            "texts in en, de, fr. Name two languages, such as: --languages en de",
            id="zip with three languages",
        ),
        pytest.param(
            "two.zip",
            ["1.csv", "2.csv"],
            "contains 2 tables or translation memories: 1.csv, 2.csv. Unpack it, and name one of "
            "them: python -m zipfile -e inputs/two.zip inputs",
            id="zip with two tables",
        ),
        pytest.param(
            "my texts.tar.xz",
            ["1.csv", "2.csv"],
            "Unpack it, and name one of them: python -m tarfile -e 'inputs/my texts.tar.xz' inputs",
            id="tar with two tables",
        ),
        pytest.param(
            "chinese.zip",
            ["a.zh_CN", "a.zh_TW"],
            "by their names, all texts in the archive are in zh. Name two of its variants, such "
            "as: --languages zh_CN zh_TW",
            id="zip with two variants of one language",
        ),
        pytest.param(
            "none.zip",
            ["README", "text.txt"],
            "no two files are named alike and end in a language each, such as x.de and x.en. The "
            "archive contains README, text.txt. Unpack it, and name its text files: "
            "python -m zipfile -e inputs/none.zip inputs",
            id="zip without texts",
        ),
    ],
)
def test_an_archive_without_one_parallel_text_is_refused(project, name, files, message):
    content = pack("a" + "".join(Path(name).suffixes), [(file, b"x\n") for file in files])
    (project / "inputs" / name).write_bytes(content)

    with pytest.raises(UserError, match=re.escape(message)):
        NewCorpus.from_files([Path("inputs", name)])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        pytest.param("a.csv", b"", r"inputs/a\.csv: the file is empty", id="empty"),
        pytest.param(
            "a.csv",
            b"one column\nof text\n",
            r"inputs/a\.csv:1: the line has no comma, semicolon or tab\. A \.csv file",
            id="table with one column",
        ),
        pytest.param(
            "a.jsonl",
            b'{"de": "Ja"}\n',
            r"inputs/a\.jsonl:1: the columns are \['de'\], but source and target are ne",
            id="JSON with one column",
        ),
        pytest.param(
            "a.jsonl", b"[1]\n", r"inputs/a\.jsonl:1: the line is \[1\], not a JSON ", id="list"
        ),
        pytest.param(
            "a.parquet", b"PAR1", r"inputs/a\.parquet: not a valid Parquet file: ", id="Parquet"
        ),
        pytest.param(
            "a.jsonl.zst",
            zstd_compress(b'{"de": "Ja", "en": "Yes"}\n' * 500)[:-9],
            r"inputs/a\.jsonl\.zst: cannot be unpacked: ",
            id="truncated zst",
        ),
    ],
)
def test_a_table_that_cannot_be_read_is_refused(project, name, content, message):
    (project / "inputs" / name).write_bytes(content)

    with pytest.raises(UserError, match=message):
        run_command(f"bleuprint new-corpus inputs/{name}")


def test_parquet_without_text_is_refused(project):
    table = pandas.DataFrame({"id": range(500), "score": [0.5] * 500})
    table.to_parquet(project / "inputs" / "numbers.en-de.parquet")

    with pytest.raises(UserError) as error:
        run_command("bleuprint new-corpus inputs/numbers.en-de.parquet")

    assert str(error.value) == (
        "inputs/numbers.en-de.parquet: two columns of sentences are needed, but column 1 has "
        "hardly any words; column 2 has hardly any words"
    )


def test_a_column_that_does_not_exist_is_refused(project):
    write_parquet(project / "inputs" / "a.parquet")

    with pytest.raises(UserError) as error:
        run_command("bleuprint new-corpus inputs/a.parquet --columns de translation.en")

    assert str(error.value) == (
        "inputs/a.parquet:1: no column 'de'. Columns: 1 ('id'), 2 ('translation.en'), "
        "3 ('translation.de')"
    )


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv.gz", "a.parquet", "a.tmx", "a.zip", "a.tsv"])
def test_a_file_with_both_sides_beside_another_one_is_refused(project, name):
    """A table that is taken for plain text would be trained on with its markup."""
    (project / "inputs" / name).write_bytes(b"x\n")
    (project / "inputs" / "a.de").write_bytes(GERMAN)

    with pytest.raises(UserError, match=rf"inputs/{name}: by its name, .* both sides\. Name it al"):
        run_command(f"bleuprint new-corpus inputs/{name} inputs/a.de")
