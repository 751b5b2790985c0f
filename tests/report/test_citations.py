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

NEEDED = {
    "inproceedings": {"author", "title", "booktitle", "year"},
    "misc": {"title"},
    "article": {"author", "title", "year"},
}

each_recipe = pytest.mark.parametrize("name", SETTINGS)


def parse(bibtex):
    """The entries of a .bib file by key, read letter by letter; fails at anything odd."""
    text = "\n".join(line for line in bibtex.split("\n") if not line.startswith("%")).strip()
    found = {}
    while text:
        kind, key, text = re.match(r"@(\w+)\{([\w.+:-]+),\s*(.*)", text, re.DOTALL).groups()
        fields = {}
        while not text.startswith("}"):
            field, text = re.match(r"(\w+)\s*=\s*\{(.*)", text, re.DOTALL).groups()
            depth, place = 1, 0
            while depth:
                depth += {"{": 1, "}": -1}.get(text[place], 0)
                place += 1
            assert field not in fields
            fields[field] = " ".join(text[: place - 1].split())
            text = re.match(r",?\s*(.*)", text[place:], re.DOTALL)[1]
        assert NEEDED[kind.lower()] <= fields.keys(), key
        assert key not in found
        found[key] = fields
        text = text[1:].lstrip()
    return found


@each_recipe
def test_citations_are_bibtex_with_each_entry_once(name):
    written = citations(SETTINGS[name])
    cited = parse(written)
    for corpus in SETTINGS[name].corpora.values():
        for about in corpus.license_and_citation.values():
            for key, fields in parse(about.bibtex).items():
                assert cited[key] == fields
            assert about.license in written
    assert "post-2018-call" in cited
    assert written.endswith("}\n")


def test_methods_are_cited_by_experiments_that_use_them():
    methods = {"koehn-etal-2007-moses", "sennrich-etal-2016-neural", "provilkov-etal-2020-bpe"}
    tanaka, phrasebook = SETTINGS["slides-tanaka"], SETTINGS["phrasebook"]
    assert not methods & parse(citations(tanaka)).keys()
    assert methods - parse(citations(phrasebook)).keys() == {"provilkov-etal-2020-bpe"}
    small = phrasebook.system_settings("small")
    dropout = replace(small, train=replace(small.train, bpe_dropout=0.1))
    assert methods <= parse(citations(only_systems(phrasebook, {"small": dropout}))).keys()
    english = phrasebook.corpora["phrasebook-en-de"]
    tokens = replace(english, tokenize=replace(english.tokenize, name="spacy"))
    cited = parse(citations(replace(phrasebook, corpora={"phrasebook-en-de": tokens}))).keys()
    assert "honnibal-etal-2020-spacy" in cited and "koehn-etal-2007-moses" not in cited
    assert "honnibal-etal-2020-spacy" not in parse(citations(phrasebook))


@pytest.mark.parametrize("model", ["unigram", "bpe"])
def test_sentencepiece_and_segmenters_are_cited(model, monkeypatch):
    monkeypatch.setattr(segmenter, "find_spec", lambda name: name)  # installed or not
    phrasebook = SETTINGS["phrasebook"]
    english = phrasebook.corpora["phrasebook-en-de"]
    units = Units(sentencepiece=SentencePiece(model, 99, joint=True, byte_fallback=False))
    tokenize = replace(english.tokenize, name="segmenter")
    thai = replace(english, target="th", tokenize=tokenize, vocabulary=units, clean=(), filter=())
    cited = parse(citations(replace(phrasebook, corpora={"phrasebook-en-de": thai}))).keys()
    found = {"koehn-etal-2007-moses", "kudo-richardson-2018-sentencepiece", "kudo-2018-subword"}
    assert (found <= cited) is (model == "unigram")
    assert "phatthiyaphaibun-etal-2023" in cited and "mccann-2020-fugashi" not in cited
    assert "sennrich-etal-2016-neural" not in cited


def test_entries_stand_in_the_order_of_use_below_what_they_are_used_for():
    blocks = citations(SETTINGS["table2"]).split("\n\n")
    assert [block.split("\n", 1)[0] for block in blocks[:3]] == [
        "% wmt14-en-de, train.europarl: its compiler knows of no copyright restrictions",
        "% wmt14-en-de, train.commoncrawl: free for research, as WMT releases it; "
        "for other uses ask the owners",
        "% wmt14-en-de, train.news-commentary test.newstest2014.newstest2014: "
        "free for research, as WMT releases it; for other uses ask the owners",
    ]
    assert blocks[-2].startswith("% scores: sacreBLEU\n@inproceedings{post-2018-call,")
    assert blocks[-1].startswith("% software: this pipeline\n@misc{bleuprint,")


def cited(**changes):
    """The keys of the default's citations with one system, changed."""
    small = SETTINGS["phrasebook"].system_settings("small")
    train = replace(small.train, **{"label_smoothing": 0.0, **changes.pop("train", {})})
    changed = replace(small, train=train, **changes)
    return {*parse(citations(only_systems(SETTINGS["phrasebook"], {"a": changed})))}


def test_what_every_experiment_rests_on_is_cited_and_what_one_does_not_use_is_not():
    small = SETTINGS["phrasebook"].system_settings("small")
    adam, adamw = (replace(small.train.optimizer, name=name) for name in ("adam", "adamw"))
    plain = cited(train={"optimizer": adamw})
    assert plain >= {"vaswani-etal-2017-attention", "papineni-etal-2002-bleu", "bleuprint"}
    assert "loshchilov-hutter-2019-decoupled" in plain
    for key, used in {
        "kingma-ba-2015-adam": cited(train={"optimizer": adam}),
        "szegedy-etal-2016-rethinking": cited(train={"label_smoothing": 0.1}),
        "riezler-maxwell-2005-pitfalls": {*parse(citations(SETTINGS["phrasebook"]))},
    }.items():
        assert key in used and key not in plain


def with_abouts(*bibtex):
    """The phrasebook with one corpus for each BibTeX."""
    base = SETTINGS["phrasebook"]
    corpus = base.corpora["phrasebook-en-de"]
    corpora = {
        f"c{number}": replace(
            corpus, license_and_citation={"phrasebook": LicenseAndCitation("none", text)}
        )
        for number, text in enumerate(bibtex)
    }
    runs = {"small": dict.fromkeys(corpora, base.system_settings("small"))}
    return replace(base, corpora=corpora, runs=runs)


def test_an_entry_of_two_corpora_names_both():
    written = citations(with_abouts("@misc{a, title = {A B}}", "@misc{a,\n  title = {A\n B}}"))
    uses = "train.phrasebook valid.phrasebook test.phrasebook.phrasebook: none"
    assert written.startswith(f"% c0, {uses}\n% c1, {uses}\n@misc{{a, title = {{A B}}}}\n\n")


def test_two_entries_of_one_key_are_named():
    message = (
        r"corpora\.c1\.license_and_citation\.phrasebook\.bibtex: the key a names another entry in "
        r"corpora\.c0\.license_and_citation\.phrasebook\.bibtex. Rename one"
    )
    settings = with_abouts("@misc{a, title = {A}}", "@misc{a, title = {B}}")
    with pytest.raises(UserError, match=message):
        citations(settings)


def test_published_numbers_are_cited():
    cited = citations(SETTINGS["table2"])
    for name in ("fairseq (big)", "ParaGen (base)", "OpenNMT-py (base)"):
        assert f"% published: {name}\n@" in cited
    for key in ("kalchbrenner-etal-2016", "zhou-etal-2016", "wu-etal-2016", "gehring-etal-2017"):
        assert f"{{{key}" in cited
    assert "published:" not in citations(SETTINGS["phrasebook"])
