"""Texts by name, downloaded from a host that has OPUS's files as <host>/<path>."""

import json

import pytest

from archives import zipped
from bleuprint.config.corpus_files import Files, Text
from bleuprint.config.corpus_names import Opus
from bleuprint.corpus.download.download import download_corpus
from bleuprint.corpus.download.fetch import Source
from bleuprint.runtime.errors import UserError
from bleuprint.text.parallel import TextFolder
from corpora import TORTURE

OPUS = "/object.pouta.csc.fi/OPUS-Books/v1"
LINES = [*(f"a{character}b" for character in TORTURE), "Grüße.", ""]
GERMAN = "\n".join(LINES).encode()  # the last line, which is empty, has no end: as if it were not
ENGLISH = "".join(f"{number}\n" for number in range(len(LINES) - 1)).encode()
BOOKS = Text("x", opus=Opus("Books", "v1"))

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


def test_a_zip_with_other_members_is_refused_with_their_names(host, refused):
    put_moses(host, ("other.xx", b"x\n"), ("more.xx", b"x\n"))
    message = refused(BOOKS)
    assert message.startswith(
        "https://object.pouta.csc.fi/OPUS-Books/v1/moses/de-en.txt.zip: no Books.de-en.de in it; "
        "it holds README, other.xx, more.xx; downloaded without a SHA-256"
    )
