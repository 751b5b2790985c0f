"""Texts by name are downloaded as other texts: from hosts and mirrors, checked by MD5 or lock."""

import hashlib

import pyarrow
import pyarrow.parquet
import pytest
from sacrebleu.dataset import DATASETS

from archives import tgz, zip_archive
from bleuprint.config.corpus_files import File, Files, Text
from bleuprint.config.sacrebleu_sets import find_test_set
from bleuprint.corpus.download.download import download_corpus
from bleuprint.corpus.download.fetch import Downloads
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.schema import validate_document
from bleuprint.text.parallel import TextFolder, read_lines
from parallel_formats import PAIRS, published_files

pytestmark = pytest.mark.usefixtures("no_proxies")

OPUS_URL = "https://object.pouta.csc.fi/OPUS-Books/v1/moses/de-en.txt.zip"
OPUS_TEXT = Text(
    "x",
    source=File(url=OPUS_URL, archive_member=("Books.de-en.de",)),
    target=File(url=OPUS_URL, archive_member=("Books.de-en.en",)),
)
# Two documents and one of a test suite; a segment lacks a reference by A, another has none.
XML = """<?xml version='1.0' encoding='utf-8'?>
<dataset id="newstest2021.en-de">
<doc origlang="en" id="one">
<src lang="en"><p><seg id="1">A  first
line &amp; more.</seg><seg id="2">Second.</seg></p><p><seg id="3">Third.</seg></p></src>
<ref lang="de" translator="A"><p><seg id="1">Erste Zeile.</seg></p></ref>
<ref lang="de" translator="B"><p><seg id="1">Zeile 1.</seg><seg id="2">Zweite.</seg></p></ref>
<hyp system="x" language="de"><p><seg id="1">h</seg><seg id="2">h</seg><seg id="3">h</seg></p></hyp>
</doc>
<doc origlang="en" id="suite" testsuite="y">
<src lang="en"><seg id="1">No.</seg></src><ref lang="de" translator="A"><seg id="1">N.</seg></ref>
<hyp system="x" language="de"><p><seg id="1">h</seg></p></hyp>
</doc>
<doc origlang="en" id="two">
<src lang="en"><seg id="10">Ten.</seg><seg id="9">Nine.</seg></src>
<ref lang="de" translator="B"><seg id="9">Neun.</seg><seg id="10">Zehn.</seg></ref>
<ref lang="de" translator="A"><seg id="9">9</seg><seg id="10">10</seg></ref>
<hyp system="x" language="de"><p><seg id="9">h</seg><seg id="10">h</seg></p></hyp>
</doc>
</dataset>
"""


def download(folder, text, languages, mirror=None):
    """Download a text as the test set `t`.

    Args:
        folder: The folder for all outputs.
        text: The settings of the text.
        languages: Its languages.
        mirror: The mirror that replaces all hosts, if any.

    Returns:
        The source lines, the target lines and the ids of documents, if any.
    """
    raw = TextFolder(folder / "raw", *languages)
    files = Files({"a": Text("x", source=File(url="copy:train.src"))}, {}, {"t": {"all": text}})
    downloads = Downloads(mirror, folder / "store", folder / "downloads.lock")
    download_corpus("c", files, raw, folder / "filter_stats.json", downloads)
    source, target = raw.files("test.t")
    ids = raw.path / "test.t.documents"
    documents = list(read_lines(ids)) if ids.exists() else []
    return list(read_lines(source)), list(read_lines(target)), documents


def sgml_files(*names):
    """Return files of a test set of WMT by these names: the source, then references."""
    source, target = published_files("sgml")
    contents = [source, *[target] * (len(names) - 1)]
    return dict(zip(names, contents, strict=True))


def plain_files(source_name, target_name):
    """Return the two files of a test set in plain text by these names."""
    source, target = published_files("plain")
    return {source_name: source, target_name: target}


def table(columns, name):
    """Return a table by this name, with the sentences in the last two of its columns."""
    lines = []
    for number, (source, target) in enumerate(PAIRS):
        keys = [str(number)] * (columns - 2)
        lines.append("\t".join([*keys, source, target]) + "\n")
    return {name: "".join(lines).encode()}


IWSLT_FILES = {
    "de-en/IWSLT17.TED.tst2017.de-en.de.xml": published_files("ted-xml")[0],
    "en-de/IWSLT17.TED.tst2017.en-de.en.xml": published_files("ted-xml")[1],
}
# A source of WMT in SGML, and a reference of Google in plain text, which is not in an archive.
MIXED_FILES = {
    "sgm/newstest2019-ende-src.en.sgm": published_files("sgml")[0],
    "wmt19-ende-ar.ref": published_files("plain")[1],
}
# By test set and language pair: the files in its archives.
PUBLISHED = {
    ("wmt14/full", "de-en"): sgml_files(
        "test-full/newstest2014-deen-src.de.sgm", "test-full/newstest2014-deen-ref.en.sgm"
    ),
    ("wmt21", "en-de"): {"test/newstest2021.en-de.xml": XML.encode()},
    ("multi30k/2016", "en-de"): plain_files("test_2016_flickr.en", "test_2016_flickr.de"),
    ("mtnt2019", "en-fr"): table(4, "MTNT2019/en-fr.final.tsv"),
    ("iwslt17", "de-en"): IWSLT_FILES,
    ("wmt19/google/ar", "en-de"): MIXED_FILES,
}


def archive_of_download(name, files, download_count):
    """Return one archive of a test set.

    Args:
        name: The name of the archive.
        files: All files of the test set by path.
        download_count: How many downloads the test set has. Each of several archives contains the
            folder with its name, or WMT's `sgm`; a single one contains all files.
    """
    folders = (f"{name.partition('.')[0]}/", "sgm/")
    own_files = [entry for entry in files.items() if entry[0].startswith(folders)]
    return tgz(files.items() if download_count == 1 else own_files)


@pytest.fixture(params=PUBLISHED, ids=lambda key: key[0])
def published(request, monkeypatch, host, tmp_path):
    """A test set of sacreBLEU and its language pair; a local host has its archives.

    Each of several archives contains the folder with its name; a single one contains all files that
    are not downloaded alone.
    """
    name, pair = request.param
    files = PUBLISHED[request.param]
    dataset = DATASETS[name]
    addresses = []
    sums = []
    for number, url in enumerate(dataset.data):
        file_name = url.rpartition("/")[2]
        content = files.get(file_name) or archive_of_download(file_name, files, len(dataset.data))
        addresses.append(host.put(f"/{number}/{file_name}", content))
        sums.append(hashlib.md5(content).hexdigest())
    monkeypatch.setattr(dataset, "data", addresses)
    monkeypatch.setattr(dataset, "md5", sums)
    monkeypatch.setattr(dataset, "_outdir", str(tmp_path / "sacrebleu"))
    monkeypatch.setattr(dataset, "_rawdir", str(tmp_path / "sacrebleu" / "raw"))
    return dataset, pair


def test_the_lines_of_a_test_set_are_those_of_sacrebleu(published, tmp_path):
    """SacreBLEU downloads and unpacks the same archives itself, by its own code."""
    dataset, pair = published
    languages = tuple(pair.split("-"))
    settings = find_test_set(dataset.name, languages, None).settings
    text = validate_document(Text, {"license_and_citation": "x", **settings}, tmp_path)

    sources, references, _ = download(tmp_path, text, languages)

    assert sources == list(dataset.source(pair))
    assert references == [line.strip() for (line,) in dataset.references(pair)]
    assert len(sources) == len(PAIRS)


def test_documents_of_a_test_set_of_wmt_are_kept(tmp_path):
    (tmp_path / "wmt.xml").write_text(XML)
    content = XML.encode()
    file = File(url=f"file://{tmp_path}/wmt.xml", sha256=hashlib.sha256(content).hexdigest())
    text = Text("x", "wmt-xml", both=file, reference="B")

    sources, references, documents = download(tmp_path, text, ("en", "de"))

    assert sources == ["A first line & more.", "Second.", "Nine.", "Ten."]
    assert references == ["Zeile 1.", "Zweite.", "Neun.", "Zehn."]
    assert documents == ["one", "one", "two", "two"]


def test_a_test_set_with_another_md5_is_refused(host, tmp_path):
    url = host.put("/test.tgz", tgz(sgml_files("a.de", "a.en").items()))
    md5 = "0" * 32
    text = Text(
        "x",
        "sgml",
        source=File(url=url, md5=md5, archive_member=("a.de",)),
        target=File(url=url, md5=md5, archive_member=("a.en",)),
    )

    with pytest.raises(UserError, match=f"test.tgz: expected MD5 {md5}, found .* was removed$"):
        download(tmp_path, text, ("de", "en"))


def test_the_zip_of_opus_is_read_from_a_mirror_and_recorded(tmp_path):
    """The mirror is a folder; the zip has further files, as OPUS's have."""
    sources = [source for source, _ in PAIRS]
    targets = [target for _, target in PAIRS]
    path = tmp_path / "mirror/object.pouta.csc.fi/OPUS-Books/v1/moses/de-en.txt.zip"
    path.parent.mkdir(parents=True)
    files = {
        "README": b"x",
        "LICENSE": b"x",
        "Books.de-en.de": published_files("plain")[0],
        "Books.de-en.en": published_files("plain")[1],
        "Books.de-en.xml": b"<x/>",
    }
    path.write_bytes(zip_archive(files.items()))

    lines = download(tmp_path, OPUS_TEXT, ("de", "en"), mirror=str(tmp_path / "mirror"))

    assert lines == (sources, targets, [])
    assert OPUS_URL in (tmp_path / "downloads.lock").read_text()


def test_a_name_that_opus_does_not_have_is_one_line(host, tmp_path):
    """The host, here a mirror, answers 404 Not Found."""
    with pytest.raises(UserError) as error:
        download(tmp_path, OPUS_TEXT, ("de", "en"), mirror=host.prefix)

    message = str(error.value)
    assert "/OPUS-Books/v1/moses/de-en.txt.zip: cannot be downloaded: HTTP 404 Not Found" in message
    assert "Look up the name, the version and the languages at https://opus.nlpl.eu" in message
    assert "\n" not in message


def test_a_data_set_of_hugging_face_is_read_by_its_column_of_translations(tmp_path):
    """Its Parquet files have a column `translation`, an object with a text for each language."""
    path = tmp_path / "mirror/huggingface.co/datasets/wmt/wmt14/resolve/main/de-en/x.parquet"
    path.parent.mkdir(parents=True)
    rows = [{"de": source, "en": target} for source, target in PAIRS]
    pyarrow.parquet.write_table(pyarrow.table({"translation": rows}), path)
    url = "https://huggingface.co/datasets/wmt/wmt14/resolve/main/de-en/x.parquet"
    text = Text("x", "parquet", both=File(url=url))

    lines = download(tmp_path, text, ("de", "en"), mirror=str(tmp_path / "mirror"))

    assert lines == ([source for source, _ in PAIRS], [target for _, target in PAIRS], [])


def test_a_file_that_hugging_face_does_not_have_is_one_line(host, tmp_path):
    url = "https://huggingface.co/datasets/x/y/resolve/main/train.tsv"
    text = Text("x", "tsv", both=File(url=url), columns=(1, 2))

    with pytest.raises(UserError) as error:
        download(tmp_path, text, ("de", "en"), mirror=host.prefix)

    assert "HTTP 404 Not Found" in str(error.value)
    assert "Look up the name, the revision and the file at https://huggi" in str(error.value)
