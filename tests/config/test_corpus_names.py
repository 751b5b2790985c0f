"""Texts by name: their URLs, which are those in the tools cited, and mistakes in them."""

import pytest

from bleuprint.config.corpus_files import File
from bleuprint.config.corpus_names import opus_name
from bleuprint.runtime import fingerprint
from bleuprint.runtime.errors import UserError
from params import PARAMS, read

FILES = "source: {path: inputs/a.de}, target: {path: inputs/a.no}"
HOST = "https://object.pouta.csc.fi/OPUS-"
NEWS = "http://data.statmt.org/news-commentary"
NAME = "news-commentary-v"
EUROPARL = "http://www.statmt.org/europarl"


def corpus_of(tmp_path, text, target="en", source="de"):
    params = PARAMS.replace(FILES, text).replace('"no"', f'"{target}"')
    params = params.replace('source: "de"', f'source: "{source}"')
    return read(tmp_path, params).corpora["own"]


def text_of(*arguments):
    return corpus_of(*arguments).files.train["a"]


def refused(*arguments):
    with pytest.raises(UserError) as error:
        corpus_of(*arguments)
    assert "\n" not in str(error.value)
    return str(error.value).partition("params.yaml:")[2]


def member(url, *names):
    return [File(url, archive_member=(name,)) for name in names]


@pytest.mark.parametrize(("source", "target"), [("de", "en"), ("en", "de")])
def test_opus_is_a_zip_of_both_languages_in_alphabetical_order(tmp_path, source, target):
    text = text_of(tmp_path, "opus: {corpus: NewsCommentary, version: v16}", target, source)
    url = f"{HOST}NewsCommentary/v16/moses/de-en.txt.zip"
    names = [f"NewsCommentary.de-en.{side}" for side in (source, target)]
    assert (text.format, [*text.files]) == ("plain", member(url, *names))


def test_opus_in_xces_is_two_archives_and_an_alignment(tmp_path):
    opus = "opus: {corpus: Books, version: v1}, format: xces, pairs: 10"
    text = text_of(tmp_path, opus, "de", "en")
    assert [file.url for file in text.files] == [
        f"{HOST}Books/v1/raw/en.zip",
        f"{HOST}Books/v1/raw/de.zip",
        f"{HOST}Books/v1/xml/de-en.xml.gz",
    ]
    assert (text.format, text.pairs) == ("xces", 10)


@pytest.mark.parametrize(
    ("name", "source", "target", "url", "columns"),
    [
        ("news_commentary-14", "de", "en", f"{NEWS}/v14/training/{NAME}14.de-en", (1, 2)),
        ("news_commentary-18.1", "en", "de", f"{NEWS}/v18.1/training/{NAME}18.de-en", (2, 1)),
        ("news_commentary-18", "zh", "ar", f"{NEWS}/v18/training/{NAME}18.ar-zh", (2, 1)),
        ("europarl-9", "en", "de", f"{EUROPARL}/v9/training/europarl-v9.de-en", (2, 1)),
        ("europarl-10", "fi", "en", f"{EUROPARL}/v10/training/europarl-v10.fi-en", (1, 2)),
        ("europarl-10", "fr", "de", f"{EUROPARL}/v10/training/europarl-v10.de-fr", (2, 1)),
    ],
)  # fmt: skip
def test_texts_of_wmt_are_tsv_files(tmp_path, name, source, target, url, columns):
    text = text_of(tmp_path, f"mtdata: Statmt-{name}", target, source)
    assert (text.format, text.columns, *text.files) == ("tsv", columns, File(f"{url}.tsv.gz"))


def test_europarl_7_is_an_archive_of_two_files(tmp_path):
    text = text_of(tmp_path, "mtdata: Statmt-europarl-7", "sv", "en")
    names = "europarl-v7.sv-en.en", "europarl-v7.sv-en.sv"
    assert [*text.files] == member(f"{EUROPARL}/v7/sv-en.tgz", *names)


def test_a_text_by_name_is_the_same_setting_as_its_files(tmp_path):
    named = corpus_of(tmp_path, "opus: {corpus: X, version: v1}")
    files = ", ".join(
        f'{side}: {{url: "{HOST}X/v1/moses/de-en.txt.zip", archive_member: [X.de-en.{language}]}}'
        for side, language in (("source", "de"), ("target", "en"))
    )
    written = corpus_of(tmp_path, files)
    assert fingerprint.of_settings(named) == fingerprint.of_settings(written)
    assert named == written
    assert named.files.of_languages("de", "en") == named.files


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("opus: {corpus: X, version: '16'}", ".opus.version: '16': did you mean 'v16'?"),
        ("opus: {corpus: X, version: 16}", ".opus.version: 16 is not text (quote it: '...')"),
        ("opus: {corpus: a/b, version: v1}", ".opus.corpus: 'a/b' is no name of OPUS"),
        ("opus: {corpus: X}", ".opus: the key 'version' is missing"),
        ("opus: NewsCommentary", ".opus: 'NewsCommentary' is not a mapping"),
        (f"opus: {{corpus: X, version: v1}}, {FILES}",
         ": has opus and source and target: opus stands for all files"),
        ("opus: {corpus: X, version: v1}, mtdata: Statmt-europarl-7", ": has opus and mtdata: o"),
        ("opus: {corpus: X, version: v1}, format: tmx", ": format tmx with opus, which says"),
        ("mtdata: Statmt-europarl-9, format: xces", ": format xces with mtdata, which says"),
        ("mtdata: Statmt-europarl-9-deu-eng", ".mtdata: 'Statmt-europarl-9-deu-eng' is not one of"),
        ("mtdata: 5", ".mtdata: 5 is not one of Statmt-europarl-7, "),
        (f"{FILES}, format: xces", ": format xces needs alignment, and no other format has it"),
        (f"{FILES}, alignment: {{path: inputs/b}}", ": format xces needs alignment, and no other"),
        (f"{FILES.replace('a.de', 'a.zip, archive_member: [x]')}, format: xces, "
         "alignment: {path: inputs/b}", ": format xces reads documents of whole archives"),
        ("format: xces, alignment: {path: inputs/b}", ": format xces needs two files: source and"),
        ("format: xces, target: {path: inputs/a}, alignment: {path: inputs/b}",
         ": format xces needs two files: source and"),
    ],
)  # fmt: skip
def test_mistakes_are_refused_with_line_and_key(tmp_path, text, message):
    assert refused(tmp_path, text).startswith(f"9: corpora.own.files.train.a{message}")


def test_a_pair_that_a_text_of_wmt_lacks_is_refused(tmp_path):
    message = refused(tmp_path, "mtdata: Statmt-europarl-9", "fr")
    assert message == ("9: corpora.own.files.train.a: Statmt-europarl-9 has no de-fr; it has de-en")
    message = refused(tmp_path, "mtdata: Statmt-europarl-9", "tr", "ha")
    assert message.endswith("has no ha-tr; it has de-en, cs-en, cs-pl, es-pt, fi-en, lt-en")


def test_urls_of_opus_are_recognized():
    assert opus_name(f"{HOST}Books/v1.2/xml/de-en.xml.gz") == "Books v1.2 of de-en"
    assert opus_name(f"{HOST}Books/v1/raw/de.zip") == "Books v1 of de"
    assert opus_name("https://example.org/OPUS-Books/v1/raw/de.zip") is None
