"""Files in other encodings: every reader says what they are, with a command that converts them.

The commands are run by a shell, and the result compared with the text.
"""

import gzip
import os
import re
import subprocess
import threading
from io import BytesIO

import pytest

from bleuprint.corpus.download.formats import lines
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.guess_encoding import guess_encoding
from bleuprint.runtime.line_stream import read_lines_together
from bleuprint.runtime.yaml_tree import load_yaml
from bleuprint.text import parallel

GERMAN = "x: eins\ny: so „schön“, süß\n"
READERS = {
    "download": lambda path: list(lines.read_lines(path.open("rb"), str(path))),
    "text": lambda path: list(parallel.read_lines(path)),
    "stream": lambda path: list(read_lines_together(path.open("rb"), str(path), 9)),
    "settings": load_yaml,
}
# Sentences of a phrase book, and the encodings that others write them in.
TEXTS = {
    "fr": (
        "Où est l’hôtel ? Ça coûte cher, n’est-ce pas ?\nL’été, il fait très chaud.\n",
        "cp1252",
    ),
    "pl": ("Gdzie jest łazienka? Proszę o rachunek.\nDziękuję, było bardzo miło.\n", "iso8859-2"),
    "cs": ("Příliš žluťoučký kůň úpěl ďábelské ódy.\nDěkuji, dobrý večer.\n", "cp1250"),
    "tr": ("Şimdi nereye gidiyoruz? Çok güzel bir ağaç, değil mi?\nIşığı açın.\n", "cp1254"),
    "ru": ("Где находится гостиница? Мы приехали вчера вечером.\nСпасибо большое.\n", "koi8-r"),
    "uk": ("Де знаходиться готель? Ми приїхали вчора ввечері.\nДуже дякую.\n", "cp1251"),
    "el": ("Πού είναι το ξενοδοχείο; Φτάσαμε χθες το βράδυ.\nΕυχαριστώ πολύ.\n", "cp1253"),
    "ja": (
        "ホテルはどこにありますか。昨日の夜に着きました。\n朝ご飯は何時からですか。\n",
        "shift_jis",
    ),
    "zh": (
        "请问，酒店在哪里？我们是昨天晚上到的，今天要去看朋友。\n早饭几点开始？谢谢您。\n",
        "gb18030",
    ),
    "ko": ("호텔은 어디에 있습니까? 우리는 어제 저녁에 왔습니다.\n정말 고맙습니다.\n", "euc-kr"),
}


def message_of(reader, path):
    with pytest.raises(UserError) as error:
        READERS[reader](path)
    assert "\n" not in str(error.value)
    return str(error.value)


def converted(message, path):
    """The bytes that the command of the message makes of a file."""
    command = re.search("(iconv|python3 -c|gzip) .* OLD > NEW", message)[0]
    new = path.with_name("new")
    command = command.replace("OLD", str(path)).replace("NEW", str(new))
    subprocess.run(command, shell=True, check=True)
    return new.read_bytes()


@pytest.mark.parametrize(
    ("encoding", "place"),
    [
        *[(name, ": ") for name in ("utf-16", "utf-16-le", "utf-16-be", "utf-32")],
        ("cp1252", ":2: byte "),
    ],
)
@pytest.mark.parametrize("reader", READERS)
def test_the_command_of_the_message_converts_the_whole_file(reader, encoding, place, tmp_path):
    path = tmp_path / "text"
    path.write_bytes(GERMAN.encode(encoding))
    if reader in ("text", "settings") and re.fullmatch("utf-16-.e", encoding):
        pytest.skip("of files that bleuprint writes, or NULs that YAML refuses")
    message = message_of(reader, path)
    assert message.startswith(f"{path}{place}")
    assert converted(message, path).decode() == GERMAN
    READERS[reader](tmp_path / "new")


@pytest.mark.parametrize("language", TEXTS)
def test_a_file_wholly_in_another_encoding(language, tmp_path):
    text, encoding = TEXTS[language]
    path = tmp_path / "text"
    path.write_bytes(b"one\n" + text.encode(encoding))
    message = message_of("download", path)
    assert "; the file looks like " in message
    assert converted(message, path).decode() == f"one\n{text}"


@pytest.mark.parametrize("language", TEXTS)
@pytest.mark.parametrize("reader", ["download", "text", "stream"])
def test_lines_in_another_encoding_among_lines_in_utf_8(reader, language, tmp_path):
    text, encoding = TEXTS[language]
    path = tmp_path / "text"
    good = [b"ASCII alone.\r\n", *f"{text}\ufeff„日本語“\u2028ß\n".encode().splitlines(True)] * 9
    bad = text.encode(encoding).splitlines(True)
    path.write_bytes(b"".join([*good, *bad, *good, *bad, good[2].removesuffix(b"\n")]))
    message = message_of(reader, path)
    assert message.startswith(f"{path}:{len(good) + 1}: byte ")
    assert f"; {2 * len(bad)} lines look like " in message
    assert re.search(r" \('(.+)'\) among lines in UTF-8", message)[1] in text  # the words there
    assert converted(message, path) == path.read_bytes().replace(b"".join(bad), text.encode())


def test_a_byte_in_a_line_of_utf_8_and_a_column_of_a_table(tmp_path):
    path = tmp_path / "text"
    path.write_bytes("süß\tsuße Straße: ".encode() + b"Stra\xdfe\n" + "ö\t".encode() + b"\xf6\n")
    message = message_of("download", path)
    assert "; 2 lines look like CP1252 ('suße Straße: Straße') among lines in UTF-8" in message
    assert converted(message, path).decode() == "süß\tsuße Straße: Straße\nö\tö\n"
    russian, encoding = TEXTS["ru"]
    rows = [f"{number} gefällt mir sehr\t".encode() for number in range(2)]
    cells = russian.encode(encoding).splitlines(True)
    path.write_bytes(b"".join(row + cell for row, cell in zip(rows, cells, strict=True)))
    message = message_of("download", path)
    assert converted(message, path) == b"".join(
        row + cell.encode() for row, cell in zip(rows, russian.splitlines(True), strict=True)
    )


def test_a_file_that_ends_within_a_character(tmp_path):
    path = tmp_path / "text"
    path.write_bytes("eins\nzwö\nfünf".encode()[:-3])
    for reader in ("download", "text", "stream"):
        message = message_of(reader, path)
        assert message == (
            f"{path}:3: byte 2 of the line is 0xc3: not UTF-8; the file ends within a character: "
            "is it cut short?"
        )


@pytest.mark.parametrize(
    "content", [b"\xed\xa0\xbd\xed\xb8\x80 x\n", b"\xc0\x80\n", b"a\xff\xfe\n"]
)
def test_bytes_of_no_encoding_get_no_advice(content, tmp_path):
    path = tmp_path / "text"
    path.write_bytes(b"x\n" + content * 3)
    assert message_of("download", path).endswith("not UTF-8, as 2 other lines are not")


@pytest.mark.parametrize("reader", ["download", "text", "stream"])
def test_a_packed_file_is_to_be_unpacked(reader, tmp_path):
    path = tmp_path / "text"
    path.write_bytes(gzip.compress(GERMAN.encode()))
    message = message_of(reader, path)
    assert message.startswith(f"{path}: not UTF-8: the file is packed: gzip -dc < OLD > NEW")
    assert converted(message, path).decode() == GERMAN


@pytest.mark.parametrize("start", [b"BZh91AY&SY", b"\xfd7zXZ\0\0", b"PK\3\4\x14\0", b"(\xb5/\xfd"])
def test_other_packed_files_are_named(start):
    with pytest.raises(UserError, match="the file is packed"):
        list(lines.read_lines(BytesIO(start + bytes(range(128, 256))), "x"))


@pytest.mark.parametrize("content", [bytes(4096) + b"text\n", b"a.de" + bytes(96) + b"0644\0\n"])
def test_nuls_in_a_row_are_no_encoding(content):
    with pytest.raises(UserError, match=r"^x: not UTF-8: the file has NULs in a row"):
        list(lines.read_lines(BytesIO(content), "x"))


def test_of_a_pipe_only_what_was_written_is_read():
    """Its writer may wait for the message before it goes on."""
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as stream, os.fdopen(writing, "wb", buffering=0) as out:
        out.write("süß\n".encode() + b"s\xfc\xdf\nnext\n")
        refused = []

        def read():
            with pytest.raises(UserError) as error:
                list(read_lines_together(stream, "standard input", 9))
            refused.append(str(error.value))

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        reader.join(10)
        assert "; 1 line looks like CP1252 ('süß') among lines in UTF-8" in refused[0]


def test_the_encoding_that_suits_one_language_is_guessed():
    for text, encoding in TEXTS.values():
        raw = text.encode(encoding).splitlines()
        found = guess_encoding(raw)
        assert [line.decode(found) for line in raw] == text.splitlines()
    assert guess_encoding([b"\xcf\xf0\xe8"]) is None  # three letters of many scripts
