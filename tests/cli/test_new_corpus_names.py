"""new-corpus with a text by name: of OPUS or Hugging Face, downloaded from a server of the test."""

import json
from pathlib import Path

import pandas
import pytest

from archives import zip_archive
from bleuprint.config.experiment import load_settings
from bleuprint.corpus.download.download import read_text_pairs
from bleuprint.corpus.download.fetch import downloads_of_environment
from bleuprint.runtime.errors import UserError
from new_corpus import (
    ENGLISH_SENTENCES,
    FIVE_HUNDRED_PAIRS,
    GERMAN_SENTENCES,
    run_command,
    tmx_text,
)

pytestmark = pytest.mark.usefixtures("project", "no_proxies")

OPUS_PATH = "/object.pouta.csc.fi/OPUS-Books/v1/moses"
DATA_SET_PATH = "/huggingface.co/datasets/me/pairs/resolve"


@pytest.fixture
def mirror(host, monkeypatch):
    """Return a server that has the files of all hosts, and that the current project asks."""
    monkeypatch.setenv("BLEUPRINT_MIRROR", host.prefix)
    return host


def opus_zip(name, source_code, target_code):
    """Return the zip of OPUS with the English and the German sentences.

    Args:
        name: The beginning of the files' names, such as `Books.de-en`.
        source_code: The end of the name of the English file.
        target_code: The end of the name of the German file.
    """
    members = []
    for code, sentences in ((source_code, ENGLISH_SENTENCES), (target_code, GERMAN_SENTENCES)):
        text = "".join(f"{sentence}\n" for sentence in sentences)
        members.append((f"{name}.{code}", text.encode()))
    return zip_archive([*members, ("README", b"From OPUS.\n")])


def parquet_bytes():
    """Return the pairs as a Parquet file in the form of Hugging Face's translation data sets."""
    rows = [{"en": english, "de": german} for english, german in FIVE_HUNDRED_PAIRS]
    return pandas.DataFrame({"id": range(500), "translation": rows}).to_parquet()


def json_lines():
    """Return the pairs as JSON objects, whose names do not tell their languages."""
    lines = []
    for english, german in FIVE_HUNDRED_PAIRS:
        lines.append(json.dumps({"before": english, "after": german}) + "\n")
    return "".join(lines).encode()


def entry_lines(name):
    """Return the lines of a training text in params.yaml, joined by spaces.

    Args:
        name: The name of the text.
    """
    params = Path("params.yaml").read_text(encoding="utf-8")
    _, found, rest = params.partition(f"\n        {name}:\n")
    assert found
    text, _, _ = rest.partition("\n    clean:")
    return " ".join(text.split())


def read_pairs(corpus_name):
    """Return the pairs of a corpus's only training text, as the stage download reads them."""
    corpus = load_settings().corpus(corpus_name)
    (text,) = corpus.files.train.values()
    languages = (corpus.source, corpus.target)
    return list(read_text_pairs(text, languages, downloads_of_environment()))


def test_a_corpus_of_opus_is_added_by_its_name(mirror, capsys):
    """OPUS's name of the pair is de-en, in alphabetical order, also for a corpus from en to de."""
    mirror.put(f"{OPUS_PATH}/de-en.txt.zip", opus_zip("Books.de-en", "en", "de"))

    run_command("bleuprint new-corpus opus:Books/v1 --languages en de")

    assert entry_lines("Books-v1") == 'opus: "Books/v1"'
    assert read_pairs("Books-v1-en-de") == FIVE_HUNDRED_PAIRS
    printed = capsys.readouterr().out
    assert (
        "Next: read the license of the text, as stated at https://opus.nlpl.eu/Books\n" in printed
    )
    assert "state the license" not in printed


def test_the_zip_of_a_text_by_name_is_downloaded_once_and_recorded(mirror, project):
    path = f"{OPUS_PATH}/de-en.txt.zip"
    mirror.put(path, opus_zip("Books.de-en", "en", "de"))

    run_command("bleuprint new-corpus opus:Books/v1 --languages en de")

    assert len(mirror.requests_for(path)) == 1
    recorded = json.loads((project / "downloads.lock").read_text(encoding="utf-8"))
    assert list(recorded) == [f"https:/{path}"]


@pytest.mark.parametrize("english", ["en", "eng"])
def test_codes_of_variants_are_those_of_opus(mirror, english):
    """The files of OPUS end in `de_at`; the language of the corpus is de_AT.

    English has one code at OPUS, `en`, also if the user types `eng`.
    """
    path = f"{OPUS_PATH}/de_at-en.txt.zip"
    mirror.put(path, opus_zip("Books.de_at-en", "en", "de_at"))

    run_command(f"bleuprint new-corpus opus:Books/v1 --languages {english} de_at")

    assert entry_lines("Books-v1") == 'opus: "Books/v1" languages: ["en", "de_at"]'
    assert read_pairs("Books-v1-en-de_AT") == FIVE_HUNDRED_PAIRS


@pytest.mark.parametrize(
    ("revision", "file", "content", "options", "settings"),
    [
        pytest.param(
            "main",
            "data/train.parquet",
            parquet_bytes,
            "",
            'columns: ["translation.en", "translation.de"]',
            id="parquet",
        ),
        pytest.param(
            "0123abc",
            "train.jsonl",
            json_lines,
            " --languages en de --columns before after",
            'columns: ["before", "after"]',
            id="jsonl with columns",
        ),
        pytest.param(
            "refs/convert/parquet",
            "default/train.parquet",
            parquet_bytes,
            " --languages en de",
            'columns: ["translation.en", "translation.de"]',
            id="reference with slashes",
        ),
    ],
)
def test_a_file_of_hugging_face_is_added_by_its_name(
    mirror, revision, file, content, options, settings
):
    quoted_revision = revision.replace("/", "%2F")
    mirror.put(f"{DATA_SET_PATH}/{quoted_revision}/{file}", content())

    run_command(f"bleuprint new-corpus huggingface:me/pairs@{revision}/{file}{options}")

    assert entry_lines("pairs") == (
        f'huggingface: "me/pairs" revision: "{revision}" file: "{file}" {settings}'
    )
    assert read_pairs("pairs-en-de") == FIVE_HUNDRED_PAIRS


def test_a_translation_memory_of_hugging_face_keeps_the_variants_that_the_user_names(mirror):
    units = [[("en-GB", english), ("de", german)] for english, german in FIVE_HUNDRED_PAIRS]
    mirror.put(f"{DATA_SET_PATH}/main/all.tmx", tmx_text(units).encode())

    run_command("bleuprint new-corpus huggingface:me/pairs@main/all.tmx --languages en-GB de")

    assert entry_lines("pairs").endswith('file: "all.tmx" languages: ["en-GB", "de"]')
    assert read_pairs("pairs-en-de") == FIVE_HUNDRED_PAIRS


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("opus:Books/v1", "opus:Books/v1: OPUS has its texts in many languages. Name two, such as"),
        ("opus:Books --languages en de", "opus:Books: 'Books' is not a corpus of OPUS. Write NAME"),
        (
            "opus:Books/v1 --languages en de",
            "HTTP 404 Not Found. Look up the name, the version and the languages at https://opus.",
        ),
        ("opus:Books/v1 --languages en en", "opus:Books/v1: source and target are both en"),
        (
            "opus:Books/v1 --languages en de --columns 1 2",
            "opus:Books/v1: --columns is only for a .tsv, .csv, .jsonl or .parquet file. Remove it",
        ),
        ("opus:Books/v1 inputs/mine.de", "opus:Books/v1: the name stands for both sides. Give it"),
        ("inputs/mine.de opus:Books/v1", "opus:Books/v1: the name stands for both sides. Give it"),
        (
            "sacrebleu:wmt14/full --languages en de",
            "sacrebleu:wmt14/full: sacreBLEU has test sets, but new-corpus adds training text. Add "
            "the test set to files.tests of a corpus in params.yaml: "
            "wmt14-full: {all: {sacrebleu: wmt14/full}}",
        ),
        (
            "huggingface:me/pairs --languages en de",
            "huggingface:me/pairs: the data set, its revision or its file is missing. Write "
            "huggingface:OWNER/NAME@REVISION/FILE, such as",
        ),
        (
            "huggingface:me/pairs@main/train.bin --languages en de",
            "pairs@main/train.bin: the format of the file is unknown. Name a .parquet, .jsonl",
        ),
        (
            "huggingface:a/b/c@main/train.csv --languages en de",
            "'a/b/c' is not a data set. Write OWNER/NAME as in its address at https://huggingface",
        ),
        (
            "huggingface:me/pairs@main/all.tmx --languages en de --columns a b",
            "all.tmx: --columns is only for a .tsv, .csv, .jsonl or .parquet file. Remove it",
        ),
    ],
)
@pytest.mark.usefixtures("mirror")
def test_a_wrong_name_is_one_error_and_params_yaml_stays(project, arguments, message):
    params = (project / "params.yaml").read_bytes()

    with pytest.raises(UserError) as error:
        run_command(f"bleuprint new-corpus {arguments}")

    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert (project / "params.yaml").read_bytes() == params
