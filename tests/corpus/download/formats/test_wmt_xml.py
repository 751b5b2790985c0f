"""WMT's test sets since 2021, against sacreBLEU's own reader, and their documents."""

import io

import pytest
from sacrebleu.dataset.wmt_xml import WMTXMLDataset

from bleuprint.config.corpus_files import File, Text
from bleuprint.corpus.download.formats import read_text
from bleuprint.corpus.steps.ledger import SetCounts
from bleuprint.runtime.errors import UserError

FILE = """<?xml version='1.0' encoding='utf-8'?>
<dataset id="wmttest2022">
<collection id="general">
<doc origlang="de" id="spiegel.1&amp;2" domain="news">
<src lang="de"><p>
<seg id="1"> Eins &amp; &lt;b&gt;
  zwei\u2028drei</seg>
</p><p><seg id="2">Vier</seg></p></src>
<ref lang="en" translator="B"><p><seg id="1">1B</seg></p><p><seg id="2">2B</seg></p></ref>
<ref lang="en" translator="A"><p><seg id="1">One &amp; two</seg>
<seg id="2">Four</seg></p></ref>
<hyp system="S" lang="en"><p><seg id="1">x</seg><seg id="2">y</seg></p></hyp>
</doc>
<doc origlang="de" id="suite.1" testsuite="gender"><src lang="de"><seg id="1">Sie</seg></src>
<ref lang="en" translator="A"><seg id="1">She</seg></ref></doc>
<doc origlang="de" id="zeit.3"><src lang="de"><seg id="1">Fünf</seg></src>
<ref lang="en" translator="A"><seg id="1">Five</seg></ref>
<ref lang="en" translator="B"><seg id="1">5B</seg></ref>
<hyp system="S" lang="en"><seg id="1">z</seg></hyp></doc>
</collection></dataset>
"""


def read(content, translator=None):
    text = Text("x", "wmt-xml", both=File(path="inputs/t.xml"), translator=translator)
    counts, documents = SetCounts(), []
    stream = io.BytesIO(content.encode())
    pairs = list(read_text(text, [stream], ("de", "en"), counts, documents))
    return pairs, documents, counts.dropped


def fault(content, translator=None):
    with pytest.raises(UserError) as error:
        read(content, translator)
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize("translator", ["A", "B"])
def test_it_is_read_as_by_sacrebleu(translator):
    fields = WMTXMLDataset._unwrap_wmt21_or_later(io.BytesIO(FILE.encode()))
    folded = [[" ".join(s.split()) for s in fields[f]] for f in ("src", f"ref:{translator}")]
    pairs, documents, dropped = read(FILE, translator)
    assert pairs == list(zip(*folded, strict=True)) and len(pairs) == 3
    assert documents == fields["docid"] == ["spiegel.1&2", "spiegel.1&2", "zeit.3"]
    assert dropped == {"testsuite": 1}


def test_what_the_translator_has_not_translated_is_left_out():
    file = FILE.replace('translator="A"><p>', 'translator="C"><p>')
    pairs, documents, dropped = read(file, "A")
    assert pairs == [("Fünf", "Five")] and documents == ["zeit.3"]
    assert dropped == {"testsuite": 1, "no_reference": 2}
    assert "no pairs of de and en (dropped: 3 by no_reference, 1 by testsuite)" in fault(FILE, "D")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            '<seg id="2">Four</seg>',
            '<seg id="3">Four</seg>',
            ":8: seg '2' in <src>, but inputs/t.xml:11: seg '3' in <ref> (doc 'spiegel.1&2'): "
            "not parallel",
        ),
        (
            '\n<seg id="2">Four</seg>',
            "",
            ":8: seg '2' in <src>, but <ref> has ended (doc 'spiegel.1&2'): not parallel",
        ),
        (
            '<ref lang="en" translator="A"><seg id="1">Five',
            '<ref lang="cs" translator="A"><seg id="1">Five',
            ":17: <ref> of doc 'zeit.3' is in 'cs', not in 'en'",
        ),
        ('<src lang="de"><seg id="1">Fünf</seg></src>', "", ":16: doc 'zeit.3' has no <src>"),
        ("</collection>", "", ": not sound XML: mismatched tag: line 20, column 2"),
    ],
)
def test_documents_that_do_not_add_up_are_named(old, new, message):
    assert old in FILE
    assert f"inputs/t.xml{message}" in fault(FILE.replace(old, new), "A")


@pytest.mark.parametrize(
    "dtd",
    [
        '<!DOCTYPE d [<!ENTITY x SYSTEM "/etc/passwd">]>',
        '<!DOCTYPE d SYSTEM "wmt.dtd">',
        '<!DOCTYPE d PUBLIC "-//x" "x.dtd" [<!ENTITY y "z">]>',
    ],
    ids=["external", "of a DTD", "of a DTD, beside others"],
)
def test_an_entity_that_is_not_in_the_file_is_named(dtd):
    content = FILE.replace("Fünf", "a &x; b")
    head, _, rest = content.partition("?>\n") if content.startswith("<?") else ("", "", content)
    content = f"{head}?>\n{dtd}{rest}" if head else f"{dtd}{rest}"
    line = content[: content.index("&x;")].count("\n") + 1
    message = f"inputs/t.xml: not sound XML: entity &x; is not defined in the file: line {line}"
    assert fault(content, "A") == message


def test_of_several_translators_one_has_to_be_named():
    assert fault(FILE) == (
        "inputs/t.xml:10: a reference by 'A', and those before are by 'B': the key translator says "
        "which are taken"
    )
    with pytest.raises(ValueError, match="translator 'A' is for format wmt-xml"):
        Text("x", "tmx", both=File(path="inputs/t.tmx"), translator="A")
