"""Texts by name: their URLs, which are those in the tools cited, and mistakes in them."""

import pytest

from bleuprint.config.corpus_files import File
from bleuprint.runtime import fingerprint
from bleuprint.runtime.errors import UserError
from params import PARAMS, read

FILES = "source: {path: inputs/a.de}, target: {path: inputs/a.no}"
HOST = "https://object.pouta.csc.fi/OPUS-"


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
        ("opus: {corpus: X, version: v1}, format: tmx", ": format tmx with opus, which says"),
    ],
)  # fmt: skip
def test_mistakes_are_refused_with_line_and_key(tmp_path, text, message):
    assert refused(tmp_path, text).startswith(f"9: corpora.own.files.train.a{message}")
