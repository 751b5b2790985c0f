"""Texts by name: of sacreBLEU, OPUS and Hugging Face. They become texts with addresses."""

import dataclasses

import pytest
from sacrebleu.dataset import DATASETS

from bleuprint.config.citation import entries
from bleuprint.config.corpus_files import File, Text
from bleuprint.config.experiment import load_settings
from bleuprint.config.sacrebleu_sets import find_test_set
from params import PARAMS, params_error, replace_once
from root import ROOT

# Test sets with several references.
SETS_WITH_REFERENCES = {
    "wmt16/tworefs",
    "wmt17/ms",
    "wmt17/tworefs",
    "wmt20/tworefs",
    "wmt21/AB",
    "wmt21/AC",
}


def params_with_text(text, languages=("de", "no")):
    """Return a params.yaml whose corpus `own` trains on a text.

    Args:
        text: The settings of the text, in YAML.
        languages: The languages of the corpus.
    """
    source, target = languages
    files = "{license_and_citation: own, source: {path: inputs/a.de}, target: {path: inputs/a.no}}"
    params = replace_once(PARAMS, files, text)
    params = replace_once(params, 'source: "de"', f'source: "{source}"')
    return replace_once(params, 'target: "no"', f'target: "{target}"')


def read_text(folder, text, languages=("de", "no")):
    """Return the corpus `own` and its only text, given by its settings in YAML."""
    path = folder / "params.yaml"
    path.write_text(params_with_text(text, languages))
    corpus = load_settings(path, ROOT).corpus("own")
    return corpus, corpus.files.train["a"]


def text_error(folder, text, languages=("de", "no")):
    """Return the message, one line, with which a text is refused."""
    message = params_error(folder, params_with_text(text, languages))
    assert "\n" not in message
    return message


def test_a_test_set_of_sacrebleu_has_the_addresses_of_its_table(tmp_path):
    """The address, MD5 and file names are those in sacreBLEU's source, typed from there."""
    corpus, text = read_text(tmp_path, "{sacrebleu: wmt14/full}", ("en", "de"))

    url = "https://statmt.org/wmt14/test-full.tgz"
    md5 = "a8cd784e006feb32ac6f3d9ec7eb389a"
    folder = "test-full/newstest2014-deen-"
    assert text == Text(
        "sacrebleu-wmt14-full",
        "sgml",
        source=File(url=url, md5=md5, archive_member=(f"{folder}src.en.sgm",)),
        target=File(url=url, md5=md5, archive_member=(f"{folder}ref.de.sgm",)),
    )
    entry = corpus.license_and_citation["sacrebleu-wmt14-full"]
    assert entry.license == f"as stated at {url}"
    assert "bojar-EtAl:2014:W14-33" in entry.bibtex


@pytest.mark.parametrize("languages", [("en-GB", "zh-Hant"), ("eng_Latn", "zho_Hans")])
def test_a_test_set_is_found_by_the_languages_of_tags(tmp_path, languages):
    _, text = read_text(tmp_path, "{sacrebleu: wmt19}", languages)

    assert text.source.archive_member == ("sgm/newstest2019-enzh-src.en.sgm",)


@pytest.mark.parametrize("name", sorted(DATASETS.keys() - SETS_WITH_REFERENCES))
def test_every_test_set_of_sacrebleu_is_a_text_in_each_language_pair(name):
    """All addresses and MD5s of a text are among those that sacreBLEU downloads."""
    dataset = DATASETS[name]
    for pair in dataset.langpairs:
        found = find_test_set(name, pair.split("-"), None)
        for side in ("source", "target", "both"):
            if side in found.settings:
                file = found.settings[side]
                assert (file["url"], file["md5"]) in zip(dataset.data, dataset.md5, strict=True)
        if found.bibtex is not None:
            assert list(entries(found.bibtex))


@pytest.mark.parametrize(
    ("name", "reference", "file"),
    [
        ("wmt17/tworefs", 1, "test/newstest2017-enfi-ref.fi.sgm"),
        ("wmt17/tworefs", 2, "test/newstestB2017-enfi-ref.fi.sgm"),
    ],
)
def test_one_of_several_references_is_chosen_by_its_number(tmp_path, name, reference, file):
    text = f"{{sacrebleu: {name}, reference: {reference}}}"

    _, text = read_text(tmp_path, text, ("en", "fi"))

    assert text.target.archive_member == (file,)


@pytest.mark.parametrize(
    ("reference", "archive", "member"),
    [
        (1, "test-update-1.tgz", "newstest2017-zhen-ref.en.sgm"),
        (
            2,
            "master.zip",
            "Translator-HumanParityData-master/Translator-HumanParityData/References/"
            "Translator-HumanParityData-Reference-HT.txt",
        ),
    ],
)
def test_files_of_one_test_set_are_found_in_their_archives(tmp_path, reference, archive, member):
    """The zip of GitHub contains one folder; the other archive is WMT's, with the source."""
    text = f"{{sacrebleu: wmt17/ms, reference: {reference}}}"

    _, text = read_text(tmp_path, text, ("zh", "en"))

    assert text.source.url.endswith("/test-update-1.tgz")
    assert text.target.url.endswith(f"/{archive}")
    assert text.target.archive_member == (member,)


def test_one_of_several_translators_is_chosen_by_the_name(tmp_path):
    _, default_text = read_text(tmp_path, "{sacrebleu: wmt21}", ("en", "de"))
    _, text = read_text(tmp_path, "{sacrebleu: wmt21/AC, reference: C}", ("en", "de"))

    assert default_text.reference == "A"
    assert text.reference == "C"
    license_name = text.license_and_citation
    assert (
        dataclasses.replace(default_text, reference="C", license_and_citation=license_name) == text
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "{sacrebleu: wmt14/ful}",
            "yaml:9: corpora.own.files.train.a.sacrebleu: sacreBLEU has no test set 'wmt14/ful'. "
            "Similar names: wmt14/full",
        ),
        ("{sacrebleu: wmt14}", "wmt14 does not translate from de to no. Its language pairs: cs-en"),
        ("{sacrebleu: 14}", "14 is not a name. Quote it"),
        ("{sacrebleu: wmt14, opus: Books/v1}", "sacrebleu names the text, so it needs no other"),
        ("{opus: Books/v1, both: {path: inputs/a}}", "opus names the text, so it needs no other"),
        ("{sacrebleu: wmt14, format: plain}", "a.format: sacrebleu does not use this setting"),
        ("{opus: Books/v1, reference: 2}", "a.reference: opus does not use this setting. Remove"),
        ("{opus: Books}", "'Books' is not a corpus of OPUS. Write NAME/VERSION"),
        ("{opus: Books/v1, languages: de}", "languages is 'de'. Write OPUS's codes of source and"),
        ("{huggingface: 'x y', revision: main, file: a.csv}", "'x y' is not a data set. Write"),
        ("{huggingface: x/y, file: a.tsv}", "the revision is missing. Name it: revision: a commit"),
        ("{huggingface: x/y, revision: main}", "the file is missing. Name it: file: data/train"),
        ("{huggingface: x/y, revision: main, file: a.bin}", "the format of a.bin is unclear. Name"),
    ],
)
def test_a_wrong_name_is_one_error_with_its_line(tmp_path, text, message):
    assert message in text_error(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{sacrebleu: wmt17/tworefs}", "has 2 references, but a test set here has one. Name one"),
        ("{sacrebleu: wmt17/tworefs, reference: 3}", "reference is 3, but sacreBLEU's wmt17/two"),
    ],
)
def test_an_unclear_reference_is_one_error(tmp_path, text, message):
    assert message in text_error(tmp_path, text, ("en", "fi"))


def test_several_translators_need_a_choice(tmp_path):
    message = text_error(tmp_path, "{sacrebleu: wmt21/AB}", ("cs", "en"))

    assert "references of A and B, but a test set here has one. Name one: reference: A" in message


@pytest.mark.parametrize(
    ("languages", "keys", "pair", "codes"),
    [
        (("en", "de"), "", "de-en", ("en", "de")),
        (("de", "en"), "", "de-en", ("de", "en")),
        (("deu", "eng"), "", "de-en", ("de", "en")),
        (("pt-BR", "en"), ", languages: [pt_br, en]", "en-pt_br", ("pt_br", "en")),
    ],
)
def test_a_corpus_of_opus_has_a_fixed_address(tmp_path, languages, keys, pair, codes):
    """OPUS sorts the languages of a pair; the zip contains a file for each."""
    corpus, text = read_text(tmp_path, f"{{opus: NewsCommentary/v16{keys}}}", languages)

    url = f"https://object.pouta.csc.fi/OPUS-NewsCommentary/v16/moses/{pair}.txt.zip"
    source, target = codes
    assert text == Text(
        "opus-NewsCommentary-v16",
        source=File(url=url, archive_member=(f"NewsCommentary.{pair}.{source}",)),
        target=File(url=url, archive_member=(f"NewsCommentary.{pair}.{target}",)),
    )
    entry = corpus.license_and_citation["opus-NewsCommentary-v16"]
    assert entry.license == "as stated at https://opus.nlpl.eu/NewsCommentary"
    assert "tiedemann-2012" in entry.bibtex


def test_variants_of_a_language_need_the_codes_of_opus(tmp_path):
    message = text_error(tmp_path, "{opus: OpenSubtitles/v2018}", ("en", "pt-BR"))

    assert "OPUS has codes of its own for variants such as pt-BR. Name the codes" in message


def test_a_file_of_hugging_face_has_its_address(tmp_path):
    """Slashes of a revision, such as refs/convert/parquet, are escaped, those of a file are not."""
    address = "huggingface: org/set, revision: refs/convert/parquet, file: a b/train.tsv"

    corpus, text = read_text(tmp_path, f"{{{address}, columns: [1, 2]}}")

    url = "https://huggingface.co/datasets/org/set/resolve/refs%2Fconvert%2Fparquet/a%20b/train.tsv"
    assert text == Text("huggingface-org-set", "tsv", both=File(url=url), columns=(1, 2))
    entry = corpus.license_and_citation["huggingface-org-set"]
    assert "revision refs/convert/parquet" in entry.bibtex


@pytest.mark.parametrize(
    ("file", "text_format"),
    [("de-en/train-0.parquet", "parquet"), ("train.jsonl.zst", "jsonl"), ("a.csv.gz", "csv")],
)
def test_the_format_of_a_file_of_hugging_face_is_that_of_its_ending(tmp_path, file, text_format):
    """Without columns, those that are named after the languages are read."""
    _, text = read_text(tmp_path, f"{{huggingface: wmt/wmt14, revision: main, file: {file}}}")

    assert text.format == text_format
    assert text.columns is None


def test_a_license_of_the_user_is_kept(tmp_path):
    corpus, text = read_text(tmp_path, "{opus: Books/v1, license_and_citation: own, pairs: 5}")

    assert text.license_and_citation == "own"
    assert text.pairs == 5
    assert list(corpus.license_and_citation) == ["own"]
