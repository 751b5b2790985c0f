"""What an experiment should cite: BibTeX of its texts, its methods and its published numbers."""

import re
from dataclasses import replace

import pytest

from bleuprint.config.citation import LicenseAndCitation
from bleuprint.config.corpus import SentencePiece, Units
from bleuprint.report.citations import citations
from bleuprint.runtime.errors import UserError
from bleuprint.text import segmenter
from recipes import SETTINGS
from systems import only_systems

# The fields that each kind of BibTeX entry needs.
NEEDED_FIELDS = {
    "inproceedings": {"author", "title", "booktitle", "year"},
    "misc": {"title"},
    "article": {"author", "title", "year"},
}


def read_field(text):
    """Read `name = {value}` at the beginning of a text; values may contain pairs of braces.

    Returns:
        The name, the value with single spaces, and the rest of the text.
    """
    name, text = re.match(r"(\w+)\s*=\s*\{(.*)", text, re.DOTALL).groups()
    open_braces = 1
    end = 0
    while open_braces:
        if text[end] == "{":
            open_braces += 1
        elif text[end] == "}":
            open_braces -= 1
        end += 1
    value = text[: end - 1]
    rest = re.match(r",?\s*(.*)", text[end:], re.DOTALL)[1]
    return name, " ".join(value.split()), rest


def parse_bibtex(bibtex):
    """Parse a .bib file strictly: no entry or field may occur twice or be incomplete.

    Returns:
        The fields of the entries by the key of the entry.
    """
    text = "\n".join(line for line in bibtex.split("\n") if not line.startswith("%")).strip()
    entries = {}
    while text:
        kind, key, text = re.match(r"@(\w+)\{([\w.+:-]+),\s*(.*)", text, re.DOTALL).groups()
        fields = {}
        while not text.startswith("}"):
            name, value, text = read_field(text)
            assert name not in fields
            fields[name] = value
        assert NEEDED_FIELDS[kind.lower()] <= fields.keys(), key
        assert key not in entries
        entries[key] = fields
        text = text[1:].lstrip()
    return entries


def cited_keys(settings):
    """Return the keys of the entries that an experiment should cite."""
    return set(parse_bibtex(citations(settings)))


@pytest.mark.parametrize("name", SETTINGS)
def test_each_recipe_cites_its_corpora_with_their_licenses(name):
    """A recipe gives each source of text a license and one or more BibTeX entries."""
    settings = SETTINGS[name]

    text = citations(settings)

    cited_entries = parse_bibtex(text)
    for corpus in settings.corpora.values():
        for source in corpus.license_and_citation.values():
            assert source.license in text
            entries_of_source = parse_bibtex(source.bibtex)
            for key, fields in entries_of_source.items():
                assert cited_entries[key] == fields


@pytest.mark.parametrize("name", SETTINGS)
def test_each_recipe_cites_sacrebleu(name):
    text = citations(SETTINGS[name])

    assert "post-2018-call" in parse_bibtex(text)
    assert text.endswith("}\n")


MOSES = "koehn-etal-2007-moses"
SUBWORD_NMT = "sennrich-etal-2016-neural"
BPE_DROPOUT = "provilkov-etal-2020-bpe"
SPACY = "honnibal-etal-2020-spacy"


def test_methods_that_an_experiment_does_not_use_are_not_cited():
    """The corpus of slides-tanaka is tokenized already and has a vocabulary of words."""
    assert not {MOSES, SUBWORD_NMT, BPE_DROPOUT} & cited_keys(SETTINGS["slides-tanaka"])


def test_tokenizer_and_subwords_are_cited():
    """The recipe `phrasebook` tokenizes with Moses and splits words with BPE of subword-nmt.

    It uses neither BPE dropout nor spaCy, so citing their papers would be wrong.
    """
    keys = cited_keys(SETTINGS["phrasebook"])

    assert {MOSES, SUBWORD_NMT} <= keys
    assert BPE_DROPOUT not in keys
    assert SPACY not in keys


def test_bpe_dropout_is_cited_if_a_system_uses_it():
    """The recipe `phrasebook` does not; here, its system `small` trains with a dropout of 0.1."""
    phrasebook = SETTINGS["phrasebook"]
    small = phrasebook.system_settings("small")
    dropout = replace(small, train=replace(small.train, bpe_dropout=0.1))

    keys = cited_keys(only_systems(phrasebook, {"small": dropout}))

    assert {MOSES, SUBWORD_NMT, BPE_DROPOUT} <= keys


def test_spacy_is_cited_instead_of_moses_if_it_is_the_tokenizer():
    """The recipe `phrasebook` tokenizes with Moses; here, its corpus is changed to spaCy."""
    phrasebook = SETTINGS["phrasebook"]
    corpus = phrasebook.corpora["phrasebook-en-de"]
    corpus = replace(corpus, tokenize=replace(corpus.tokenize, name="spacy"))

    keys = cited_keys(replace(phrasebook, corpora={"phrasebook-en-de": corpus}))

    assert SPACY in keys
    assert MOSES not in keys


def thai_keys(model, monkeypatch):
    """Return what an experiment cites that splits Thai with a segmenter and SentencePiece.

    Args:
        model: SentencePiece's model: unigram or bpe.
        monkeypatch: The fixture, by which all segmenters count as installed.
    """
    monkeypatch.setattr(segmenter, "find_spec", lambda name: name)
    phrasebook = SETTINGS["phrasebook"]
    corpus = phrasebook.corpora["phrasebook-en-de"]
    thai = replace(
        corpus,
        target="th",
        tokenize=replace(corpus.tokenize, name="segmenter"),
        vocabulary=Units(sentencepiece=SentencePiece(model, 99, joint=True, byte_fallback=False)),
        clean=(),
        filter=(),
    )
    return cited_keys(replace(phrasebook, corpora={"phrasebook-en-de": thai}))


@pytest.mark.parametrize(
    ("model", "is_unigram_cited"),
    [pytest.param("unigram", True, id="unigram"), pytest.param("bpe", False, id="bpe")],
)
def test_the_model_of_sentencepiece_is_cited(model, is_unigram_cited, monkeypatch):
    """SentencePiece implements two models: its paper is cited for both.

    The unigram model has a second paper (Kudo 2018), which must not be cited for BPE.
    """
    keys = thai_keys(model, monkeypatch)

    assert {MOSES, "kudo-richardson-2018-sentencepiece"} <= keys
    assert ("kudo-2018-subword" in keys) == is_unigram_cited
    assert SUBWORD_NMT not in keys  # another program for BPE


@pytest.mark.parametrize("model", ["unigram", "bpe"])
def test_the_segmenter_of_the_language_is_cited(model, monkeypatch):
    """Thai is written without spaces; the program PyThaiNLP finds the words.

    The text is Thai, so fugashi, which does the same for Japanese, must not be cited.
    """
    keys = thai_keys(model, monkeypatch)

    pythainlp = "phatthiyaphaibun-etal-2023"
    fugashi = "mccann-2020-fugashi"
    assert pythainlp in keys
    assert fugashi not in keys


def test_entries_are_in_the_order_of_use_with_comments_on_their_use():
    """A comment above each BibTeX entry says what cites it: first texts, last this program."""
    entries_with_comments = citations(SETTINGS["table2"]).split("\n\n")

    first_comments = []
    for entry in entries_with_comments[:3]:
        comment, _ = entry.split("\n", 1)
        first_comments.append(comment)
    assert first_comments == [
        "% wmt14-en-de, train.europarl: its compiler knows of no copyright restrictions",
        "% wmt14-en-de, train.commoncrawl: free for research, as WMT releases it; "
        "for other uses ask the owners",
        "% wmt14-en-de, train.news-commentary test.newstest2014.newstest2014: "
        "free for research, as WMT releases it; for other uses ask the owners",
    ]
    scores_entry, software_entry = entries_with_comments[-2:]
    assert scores_entry.startswith("% scores: sacreBLEU\n@inproceedings{post-2018-call,")
    assert software_entry.startswith("% software: this pipeline\n@misc{bleuprint,")


ADAM = "kingma-ba-2015-adam"
ADAMW = "loshchilov-hutter-2019-decoupled"
LABEL_SMOOTHING = "szegedy-etal-2016-rethinking"
SIGNIFICANCE_TEST = "riezler-maxwell-2005-pitfalls"


def keys_of_one_system(optimizer="adamw", label_smoothing=0.0):
    """Return what the phrasebook recipe cites with the system small alone, changed."""
    phrasebook = SETTINGS["phrasebook"]
    small = phrasebook.system_settings("small")
    train = replace(
        small.train,
        optimizer=replace(small.train.optimizer, name=optimizer),
        label_smoothing=label_smoothing,
    )
    return cited_keys(only_systems(phrasebook, {"a": replace(small, train=train)}))


def test_every_experiment_cites_the_transformer_bleu_and_this_pipeline():
    """Even an experiment with one system uses these three."""
    assert keys_of_one_system() >= {
        "vaswani-etal-2017-attention",
        "papineni-etal-2002-bleu",
        "bleuprint",
    }


def test_the_optimizer_is_cited():
    assert ADAM in keys_of_one_system(optimizer="adam")
    assert ADAMW in keys_of_one_system(optimizer="adamw")
    assert ADAM not in keys_of_one_system(optimizer="adamw")


def test_label_smoothing_is_cited_if_it_is_used():
    assert LABEL_SMOOTHING in keys_of_one_system(label_smoothing=0.1)
    assert LABEL_SMOOTHING not in keys_of_one_system(label_smoothing=0.0)


def test_the_significance_test_is_cited_if_there_are_systems_to_compare():
    assert SIGNIFICANCE_TEST in cited_keys(SETTINGS["phrasebook"])
    assert SIGNIFICANCE_TEST not in keys_of_one_system()


def settings_with_bibtex(*bibtex_of_corpora):
    """Return the settings of an experiment with a corpus, c0, c1 and so on, for each BibTeX."""
    phrasebook = SETTINGS["phrasebook"]
    corpus = phrasebook.corpora["phrasebook-en-de"]
    corpora = {}
    for number, bibtex in enumerate(bibtex_of_corpora):
        sources = {"phrasebook": LicenseAndCitation("none", bibtex)}
        corpora[f"c{number}"] = replace(corpus, license_and_citation=sources)
    runs = {"small": dict.fromkeys(corpora, phrasebook.system_settings("small"))}
    return replace(phrasebook, corpora=corpora, runs=runs)


def test_an_entry_that_two_corpora_share_is_written_once_and_names_both():
    """BibTeX refuses a file with the same key twice.

    Two corpora, c0 and c1, give the same entry; only line breaks differ.
    """
    settings = settings_with_bibtex("@misc{a, title = {A B}}", "@misc{a,\n  title = {A\n B}}")

    text = citations(settings)

    uses = "train.phrasebook valid.phrasebook test.phrasebook.phrasebook: none"
    assert text.startswith(f"% c0, {uses}\n% c1, {uses}\n@misc{{a, title = {{A B}}}}\n\n")


def test_two_different_entries_with_the_same_key_are_refused():
    """Citing the key `a` in a paper would be ambiguous. The corpora are named c0 and c1."""
    settings = settings_with_bibtex("@misc{a, title = {A}}", "@misc{a, title = {B}}")

    message = (
        r"corpora\.c1\.license_and_citation\.phrasebook\.bibtex: the key a names another entry in "
        r"corpora\.c0\.license_and_citation\.phrasebook\.bibtex. Rename one"
    )
    with pytest.raises(UserError, match=message):
        citations(settings)


@pytest.mark.parametrize("name", ["fairseq (big)", "ParaGen (base)", "OpenNMT-py (base)"])
def test_published_numbers_of_params_yaml_are_cited(name):
    assert f"% published: {name}\n@" in citations(SETTINGS["table2"])


@pytest.mark.parametrize(
    "key", ["kalchbrenner-etal-2016", "zhou-etal-2016", "wu-etal-2016", "gehring-etal-2017"]
)
def test_published_numbers_of_known_papers_are_cited(key):
    """The report shows the numbers of Table 2 in Vaswani et al. (2017) for WMT14."""
    assert f"{{{key}" in citations(SETTINGS["table2"])


def test_an_experiment_without_published_numbers_cites_none():
    assert "published:" not in citations(SETTINGS["phrasebook"])
