"""Texts by name, downloaded from a host that has OPUS's and WMT's files as <host>/<path>."""

import gzip
import io
import json
import zipfile

import pytest

from archives import tgz, zipped
from bleuprint.config.corpus_files import Files, Text
from bleuprint.config.corpus_names import Opus
from bleuprint.corpus.download.download import download_corpus
from bleuprint.corpus.download.fetch import Source
from bleuprint.runtime.errors import UserError
from bleuprint.text.parallel import TextFolder
from corpora import TORTURE
from servers import status

OPUS = "/object.pouta.csc.fi/OPUS-Books/v1"
LINES = [*(f"a{character}b" for character in TORTURE), "Grüße.", ""]
GERMAN = "\n".join(LINES).encode()  # the last line, which is empty, has no end: as if it were not
ENGLISH = "".join(f"{number}\n" for number in range(len(LINES) - 1)).encode()
BOOKS, XCES = Text("x", opus=Opus("Books", "v1")), Text("x", "xces", opus=Opus("Books", "v1"))

pytestmark = pytest.mark.usefixtures("no_proxies")


@pytest.fixture
def download(tmp_path, host):
    """Downloads a text by name from the host, in German and English unless given; its ledger."""

    def downloaded(text, source="de", target="en"):
        raw = TextFolder(tmp_path / "raw", source, target)
        place = Source(host.prefix, tmp_path / "store", tmp_path / "downloads.lock")
        files = Files({"a": text}, {}, {}).of_languages(source, target)
        download_corpus("c", files, raw, tmp_path / "ledger.json", place)
        return raw, json.loads((tmp_path / "ledger.json").read_text())["sets"]["train.a"]

    return downloaded


@pytest.fixture
def refused(tmp_path, download):
    def message(*arguments):
        with pytest.raises(UserError) as error:
            download(*arguments)
        assert not (tmp_path / "raw").exists() and not (tmp_path / "ledger.json").exists()
        assert "\n" not in str(error.value)
        return str(error.value)

    return message


def put_moses(host, *members):
    host.put(f"{OPUS}/moses/de-en.txt.zip", zipped([("README", b"Books"), *members]))


def put_documents(host, links, german=b"<s id='1'>Eins</s>", english=b"<s id='1'>One</s>"):
    for language, sentences in (("de", german), ("en", english)):
        document = b"<text>" + sentences + b"</text>"
        archive = zipped([(f"Books/raw/{language}/a.xml", document)])
        host.put(f"{OPUS}/raw/{language}.zip", archive)
    group = f'<linkGrp fromDoc="de/a.xml.gz" toDoc="en/a.xml.gz">{links}</linkGrp>'
    alignment = f"<cesAlign>{group}</cesAlign>".encode()
    host.put(f"{OPUS}/xml/de-en.xml.gz", gzip.compress(alignment))


@pytest.mark.parametrize("languages", [("de", "en"), ("en", "de")])
def test_lines_of_opus_stay_as_they_are(tmp_path, host, download, languages):
    put_moses(host, ("Books.de-en.en", ENGLISH), ("Books.de-en.de", GERMAN))
    raw, counts = download(BOOKS, *languages)
    texts = {file.name.rpartition(".")[2]: file.read_bytes() for file in raw.files("train")}
    assert texts == {"de": GERMAN, "en": ENGLISH}
    assert counts["pairs_in"] == counts["pairs_out"] == len(LINES) - 1
    assert len(host.seen) == 1
    lock = json.loads((tmp_path / "downloads.lock").read_text())
    assert [*lock] == ["https://object.pouta.csc.fi/OPUS-Books/v1/moses/de-en.txt.zip"]


def test_opus_without_the_pair_is_named_with_its_url(host, refused):
    message = refused(BOOKS, "de", "fr")
    assert (
        f"{host.prefix}{OPUS}/moses/de-fr.txt.zip: cannot be fetched: HTTP 404 Not Found" in message
    )
    assert "OPUS seems to have no Books v1 of de-fr: https://opus.nlpl.eu lists" in message
    host.script[f"{OPUS}/moses/de-fr.txt.zip"] = [status(403)]
    assert "OPUS seems" not in refused(BOOKS, "de", "fr")


def test_a_zip_with_other_members_is_refused_with_their_names(host, refused):
    put_moses(host, ("other.xx", b"x\n"), ("more.xx", b"x\n"))
    message = refused(BOOKS)
    assert message.endswith("no Books.de-en.de in it; it holds README, other.xx, more.xx")
    assert message.startswith("https://object.pouta.csc.fi/OPUS-Books/v1/moses/de-en.txt.zip: ")


def test_texts_of_wmt_are_downloaded(host, download):
    rows = b"Eins\tOne\tdocument 7\n\t\t\nZwei\tTwo\n"
    path = "/www.statmt.org/europarl/v10/training/europarl-v10.de-en.tsv.gz"
    host.put(path, gzip.compress(rows))
    raw, _ = download(Text("x", mtdata="Statmt-europarl-10"), "en", "de")
    assert list(raw.pairs("train")) == [("One", "Eins"), ("", ""), ("Two", "Zwei")]
    texts = [("europarl-v7.de-en.en", b"One\n"), ("europarl-v7.de-en.de", b"Eins\n")]
    host.put("/www.statmt.org/europarl/v7/de-en.tgz", tgz(texts))
    raw, _ = download(Text("x", mtdata="Statmt-europarl-7"))
    assert list(raw.pairs("train")) == [("Eins", "One")]


@pytest.mark.parametrize("languages", [("de", "en"), ("en", "de")])
def test_linked_documents_of_opus(tmp_path, host, download, languages):
    kept = [each for each in TORTURE if each >= " "]
    german = "".join(f"<s id='{i}'>a{each}b</s>" for i, each in enumerate(kept))
    links = "".join(f'<link id="SL{i}" xtargets="{i};1" />' for i in range(len(kept)))
    put_documents(host, f'<link id="x" xtargets="0;" />{links}', german.encode())
    raw, counts = download(XCES, *languages)
    pairs = [(f"a{each}b", "One") for each in kept]
    assert list(raw.pairs("train")) == [
        pair if languages[0] == "de" else pair[::-1] for pair in pairs
    ]
    assert counts["dropped"] == {"one_sided": 1}
    assert (counts["pairs_in"], counts["pairs_out"]) == (len(kept) + 1, len(kept))
    assert len(json.loads((tmp_path / "downloads.lock").read_text())) == len(host.seen) == 3


def test_a_sentence_that_is_not_there_is_named(host, refused):
    put_documents(host, '<link id="SL7" xtargets="1;9" />')
    url = "https://object.pouta.csc.fi/OPUS-Books/v1"
    document = f"{url}/raw/en.zip!Books/raw/en/a.xml"
    wanted = f"{url}/xml/de-en.xml.gz: link 'SL7': {document} has no sentence '9'"
    assert refused(XCES).startswith(f"{wanted}; downloaded without a SHA-256: ")


@pytest.mark.parametrize("path", ["xml/de-en.xml.gz", "raw/en.zip", "moses/de-en.txt.zip"])
def test_only_a_damaged_download_is_removed(host, download, refused, path):
    text = BOOKS if "moses" in path else XCES
    put_documents(host, '<link id="SL7" xtargets="1;1" />')
    put_moses(host, ("Books.de-en.de", b"Eins\n"), ("Books.de-en.en", b"One\n"))
    sound = host.pages[f"{OPUS}/{path}"].body
    host.put(f"{OPUS}/{path}", sound[:-9])
    message = refused(text)
    assert message.startswith(
        f"https://object.pouta.csc.fi/OPUS-Books/v1/{path}: truncated or damaged"
    )
    host.put(f"{OPUS}/{path}", sound)
    host.seen.clear()
    raw, _ = download(text)
    assert list(raw.pairs("train")) == [("Eins", "One")]
    assert len(host.seen) == (1 if text is BOOKS else 3)  # the sound ones for their size alone


def test_a_changed_byte_in_an_archive_of_documents_is_found(host, refused):
    put_documents(host, '<link id="SL7" xtargets="1;1" />', b"<s id='1'>" + b"abcdef" * 9 + b"</s>")
    body = bytearray(host.pages[f"{OPUS}/raw/de.zip"].body)
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(body)) as packed, zipfile.ZipFile(out, "w") as stored:
        for name in packed.namelist():
            stored.writestr(name, packed.read(name))  # not compressed: nothing but a sum finds it
    host.put(f"{OPUS}/raw/de.zip", out.getvalue().replace(b"abcdef", b"abcdeg", 1))
    assert "raw/de.zip!Books/raw/de/a.xml: truncated or damaged" in refused(XCES)
