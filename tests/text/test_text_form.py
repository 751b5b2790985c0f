"""Lines of other toolkits are told from sentences; the toolkits themselves write them here."""

import csv
import io
import json

import pytest
import sentencepiece
from sacremoses import MosesTokenizer
from subword_nmt.apply_bpe import BPE
from subword_nmt.learn_bpe import learn_bpe

from bleuprint.corpus import phrasebook
from bleuprint.text.form_counter import FormCounter
from bleuprint.text.text_form import ENTITIES, LOWER_CASE, TOKENS

ENGLISH_SENTENCES = list(phrasebook.sentences("train", "en"))[:600]
GERMAN_SENTENCES = list(phrasebook.sentences("train", "de"))[:600]
FRENCH_SENTENCES = list(phrasebook.sentences("train", "fr"))[:600]


def format_lines(template, lines=ENGLISH_SENTENCES):
    """Return a line for each line, by a template with {line} and its number {n} from 0."""
    return [template.format(n=number, line=line) for number, line in enumerate(lines)]


QUOTATIONS = format_lines('He said "{line}" — isn\'t it?')


def bpe(lines):
    """Return lines in the subwords of subword-nmt."""
    codes = io.StringIO()
    learn_bpe(io.StringIO("\n".join(lines)), codes, 60)
    segmenter = BPE(io.StringIO(codes.getvalue()))
    return [segmenter.process_line(line) for line in lines]


def sentencepiece_pieces(lines):
    """Return lines in the pieces of SentencePiece."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=model, vocab_size=150, minloglevel=2
    )
    processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    return [" ".join(pieces) for pieces in processor.encode(lines, out_type=str)]


def moses(lines, language="en", **options):
    """Return lines in the tokens of Moses."""
    tokenizer = MosesTokenizer(lang=language)
    return [tokenizer.tokenize(line, return_str=True, **options) for line in lines]


def csv_lines(rows):
    """Return the lines of a CSV file in which all texts are quoted."""
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    writer.writerows(rows)
    return text.getvalue().splitlines()


def lowercased(lines):
    """Return lines in lower case."""
    return [line.lower() for line in lines]


def replaced(lines, old, new, count=-1):
    """Return lines in which a text is replaced, at most `count` times."""
    return [line.replace(old, new, count) for line in lines]


def in_characters(lines):
    """Return lines in which spaces separate all characters, and _ stands for a space."""
    return [" ".join(line.replace(" ", "_")) for line in lines]


def json_escaped(lines):
    """Return lines with the escapes of JSON, without its quotation marks."""
    return [json.dumps(line)[1:-1] for line in lines]


# Sentences that resemble a form, but are none.
SENTENCES = {
    "English": ENGLISH_SENTENCES,
    "German": GERMAN_SENTENCES,
    "French, with spaces before ? and :": FRENCH_SENTENCES
    + ["Il a dit : « Où est-il ? » ; puis rien !"] * 50,
    "quotations": QUOTATIONS,
    "dialogues": format_lines('"{line}" she said. "And then?"'),
    "an ellipsis": ["Well . . .", "I do not know . . . Perhaps."] * 20,
    "Japanese": ["私は学生です。", "「はい」と、彼は言った。", "東京へ行きます。"] * 20,
    "Chinese": ["他是一名学生。", "你好，世界！", "我使用 Python 编程。"] * 20,
    "Thai": ["เขา เป็น นักเรียนที่โรงเรียน", "สวัสดีชาวโลก วันนี้อากาศดี"] * 20,
    "Georgian, which has no capital letters": ["გამარჯობა მსოფლიო, როგორ ხარ დღეს"] * 20,
    "Hindi": ["वह एक छात्र है ।", "आप कैसे हैं ?"] * 20,
    "Maltese": ["Ġesù u Ġuda marru Ġerusalemm illum ma' ħuthom kollha.", "Il-Ġimgħa ġej."] * 20,
    "Maltese with several capital Ġ": ["Ġurnata sabiħa Ġorġ mar", "Ġesù u Ġuda", "Ġurnata"] * 20,
    "hashtags": ENGLISH_SENTENCES[:90] + ["Good morning ##coffee lovers"] * 10,
    "bars": ["Open | Close", "Press a||b, or x|y.", "a |b| c is an absolute value"] * 20,
    "times": ["The train leaves at 12:00:00.", "From 9:30 --> 10:30", "00:01:02"] * 20,
    "paths and LaTeX": [r"C:\users\xavier", r"\underline{a} and \usepackage", r"a\nb"] * 20,
    "slashes": ["AC/DC and TCP/IP and I/O", "and/or", "he/she MY_NAME", "yes|no"] * 20,
    "placeholders": ["{0} of {name}: {count}", "See [1] and [Music], @user, #1, 50%."] * 20,
    "code": ["snake_case and __init__ and _x", "a << b; <b>bold</b> is HTML"] * 20,
    "names with an underscore at one end": [
        "Call print_",
        "class_ is a name with an underscore",
        "_x is private",
        "Never write _x or _y",
    ]
    * 20,
    "numbers": ["1,000 people came.", "3;4 is a pair", "2, then 3"] * 20,
    "a list": ["1. Open the file, and save it.", "a) Close it."] * 20,
}


@pytest.mark.parametrize("name", SENTENCES)
def test_ordinary_sentences_have_no_frequent_form(name):
    """They resemble the lines of some toolkit: quotations, times, paths, hashtags and more."""
    assert FormCounter(SENTENCES[name]).frequent_form() is None


FORMS = {
    "BPE subwords (@@)": bpe(ENGLISH_SENTENCES),
    "SentencePiece pieces (▁)": sentencepiece_pieces(ENGLISH_SENTENCES),
    "tokens set apart by spaces": moses(QUOTATIONS),
    "JSON": [json.dumps({"id": n, "text": line}) for n, line in enumerate(ENGLISH_SENTENCES)],
    "quoted strings with a comma at the end": [
        f"{json.dumps(line)}," for line in ENGLISH_SENTENCES
    ],
    "quoted or numbered fields (CSV)": csv_lines(enumerate(ENGLISH_SENTENCES)),
    "quoted strings": csv_lines([line] for line in QUOTATIONS),
}
BARS = "fields with ||| between them (n-best list, fast_align)"
SUBTITLES = "subtitles with their times (-->)"
FACTORED = "factored tokens (the|DT)"
ESCAPED = "text with escaped characters (\\u00f6)"


def subtitles(template):
    """Return the lines of subtitles, by a template with {line} and its number {n} from 10."""
    entries = []
    for number, line in enumerate(ENGLISH_SENTENCES[:50], 10):
        entries.append(template.format(n=number, line=line))
    return "\n".join(entries).split("\n")


def byte_level_bpe(lines):
    """Return what GPT-2's byte-level BPE writes for the bytes of lines, by its published table."""
    lines_in_bytes = []
    for line in lines:
        characters = []
        for character in line.encode().decode("latin-1").replace(" ", " Ġ"):
            if "\x7f" <= character <= "\xa0":
                character = chr(ord(character) + 0xA2)
            characters.append(character)
        lines_in_bytes.append("".join(characters))
    return lines_in_bytes


# Lines that other toolkits write, with the name of their form.
LINES_OF_FORMS = [
    ("JSON", format_lines('  "{n}": "{line}",', json_escaped(ENGLISH_SENTENCES))),
    ("JSON", [json.dumps([line, "x"]) for line in ENGLISH_SENTENCES]),
    ("JSON", [repr({"en": line, "de": "x"}) for line in ENGLISH_SENTENCES]),
    ("quoted strings with a comma at the end", format_lines("    '{line}',")),
    ("quoted or numbered fields (CSV)", format_lines("{n};{line}")),
    ("columns of a table (tabs)", format_lines("{n}\t{line}")),
    ("sentences in tags (XML, SGML)", format_lines('<seg id="{n}">{line}</seg>')),
    ("BPE subwords (@@)", replaced(bpe(ENGLISH_SENTENCES), " a", " a￭ ￭b ")),
    ("SentencePiece pieces (▁)", replaced(sentencepiece_pieces(ENGLISH_SENTENCES), "▁", "_")),
    ("SentencePiece pieces (▁)", format_lines("{line} ._", replaced(ENGLISH_SENTENCES, " ", "_ "))),
    ("WordPiece subwords (##)", replaced(ENGLISH_SENTENCES, "e", " ##e", 2)),
    ("BPE subwords (</w>)", format_lines("{line}</w>", replaced(ENGLISH_SENTENCES, " ", "</w> "))),
    ("byte-level BPE (Ġ)", replaced(ENGLISH_SENTENCES, " ", " Ġ")),
    ("byte-level BPE (Ġ)", replaced(ENGLISH_SENTENCES, " ", "Ġ")),
    ("sentences with special symbols (<s>, </s>)", format_lines("<s> {line} </s>")),
    ("tokens set apart by spaces", moses(ENGLISH_SENTENCES)),
    ("tokens set apart by spaces", moses(GERMAN_SENTENCES, "de", escape=False)),
    ("tokens set apart by spaces", moses(FRENCH_SENTENCES, "fr")),
    ("tokens set apart by spaces", moses(["a well-known fact"] * 9, aggressive_dash_splits=True)),
    ("tokens set apart by spaces", ["I do n't know", "it 's John 's"] * 9),
    ("tokens set apart by spaces", ["私 は 学生 です 。", "東京 へ 行き ます"] * 9),
    ("tokens set apart by spaces", ["他 是 一 名 学生", "今天 天气 很 好"] * 9),
    ("tokens set apart by spaces", ["เขา เป็น นักเรียน ที่ ดี มาก"] * 9),
    ("characters set apart by spaces", in_characters(ENGLISH_SENTENCES)),
    ("numbers of tokens", format_lines("{n} 17 4 1{n}")),
    (BARS, format_lines("{n} ||| {line} ||| LM0= -9.1 ||| -{n}.5")),
    (BARS, format_lines("{n} ||| {line} ||| -1.2", lowercased(moses(QUOTATIONS)))),
    (
        BARS,
        format_lines(
            "{line[0]} ||| {line[1]}", zip(ENGLISH_SENTENCES, GERMAN_SENTENCES, strict=True)
        ),
    ),
    (BARS, ["0 |||  ||| -3.5", "1 ||| Hallo ||| -1.2"] * 9),
    (SUBTITLES, subtitles("{n}\n00:01:{n:02},000 --> 00:01:{n:02},900\n{line}\nand more\n")),
    (SUBTITLES, subtitles("01:{n:02}.000 --> 02:{n:02}.900 align:start\n{line}\n")),
    (SUBTITLES, subtitles("0:00:{n:02}.599,0:01:{n:02}.160\n{line}\n")),
    (SUBTITLES, subtitles("[00:{n:02}.50]{line}")),
    (SUBTITLES, subtitles("{{{n}}}{{7{n}}}{line}")),
    (SUBTITLES, subtitles("Dialogue: 0,0:00:{n:02}.00,0:01:{n:02}.00,Default,,0,0,0,,{line}")),
    (FACTORED, ["the|DT cat|NN sleeps|VBZ .|.", "a|DT dog|NN"] * 9),
    (FACTORED, ["die|d|ART katze|katze|NN", "hund|hund|NN schläft|schlafen|VVFIN"] * 9),
    (FACTORED, ["the\uffe8C cat\uffe8L", "a\uffe8L dog\uffe8L"] * 9),
    (FACTORED, ["The_DT cat_NN sleeps_VBZ ._.", "A/DT dog/NN barks/VBZ ./."] * 9),
    (ESCAPED, json_escaped(GERMAN_SENTENCES)),
    (ESCAPED, json_escaped(FRENCH_SENTENCES)),
    (ESCAPED, json_escaped(["Привет, мир!", "Как дела?"] * 9)),
    (ESCAPED, [line.encode("unicode_escape").decode() for line in GERMAN_SENTENCES]),
    ("byte-level BPE (Ġ)", byte_level_bpe(GERMAN_SENTENCES)),
    ("byte-level BPE (Ġ)", byte_level_bpe(["Как дела сегодня?"] * 9)),
    ("text with HTML entities (&amp;)", replaced(ENGLISH_SENTENCES, "e", "&eacute;")),
    ("lower-cased text", lowercased(ENGLISH_SENTENCES)),
    ("lower-cased text", ["я не знаю, что это такое"] * 9),
]


@pytest.mark.parametrize("name", FORMS)
def test_a_form_is_named_with_its_share_and_its_first_line(name):
    """Other toolkits write such lines: subwords, tokens, JSON and more.

    Nearly all lines have the form, so it is found in the first three lines.
    """
    frequent_form = FormCounter(FORMS[name]).frequent_form()

    assert frequent_form.form.name == name
    assert frequent_form.share > 0.9
    assert frequent_form.line in (1, 2, 3)


@pytest.mark.parametrize(
    ("name", "lines"),
    LINES_OF_FORMS,
    ids=[f"{number} {name}" for number, (name, _) in enumerate(LINES_OF_FORMS)],
)
def test_variants_of_a_form_are_recognized(name, lines):
    """A user who trains on text in such a form gets useless translations, so it is reported."""
    assert FormCounter(lines).frequent_form().form.name == name


def test_the_share_of_a_form_is_that_of_the_lines_that_are_not_empty():
    """Of 11 lines, 2 are empty and 2 are in subwords, in which @@ marks the end of a part."""
    lines_in_subwords = ["a lo@@ w lamp", "the n@@ ew one"]
    lines = ["", *ENGLISH_SENTENCES[:7], *lines_in_subwords, "  "]  # An empty line, then 7.

    frequent_form = FormCounter(lines).frequent_form()

    assert frequent_form.form.name == "BPE subwords (@@)"
    assert frequent_form.share == 2 / 9
    # The first line in this form, counted with the empty one.
    assert frequent_form.line == 9


def test_a_form_is_described_with_its_share_and_its_first_line():
    """Two of nine lines (22%) are in subwords, the first of which is line 8."""
    lines = [*ENGLISH_SENTENCES[:7], "a lo@@ w lamp", "the n@@ ew one"]

    frequent_form = FormCounter(lines).frequent_form()

    assert frequent_form.describe() == (
        "22% of the lines look like BPE subwords (@@), such as line 8"
    )
    assert frequent_form.describe("pair").endswith(
        "of the pairs look like BPE subwords (@@), such as pair 8"
    )


def test_a_form_of_a_single_line_is_ignored():
    """It may be chance, or a sentence about subwords."""
    lines = ["", *ENGLISH_SENTENCES[:7], "a lo@@ w lamp"]

    assert FormCounter(lines).frequent_form() is None


def test_a_form_of_a_tenth_of_the_lines_is_ignored():
    """Ordinary text contains some sentences that look like tokens set apart by spaces."""
    lines = ENGLISH_SENTENCES[:90] + moses(QUOTATIONS)[:10]

    assert FormCounter(lines).frequent_form() is None


def test_a_form_of_a_quarter_of_the_lines_is_reported():
    """75 sentences, and 25 lines in tokens, the first of which is line 76."""
    lines = ENGLISH_SENTENCES[:75] + moses(QUOTATIONS)[:25]

    frequent_form = FormCounter(lines).frequent_form()

    assert frequent_form.form.name == "tokens set apart by spaces"
    assert frequent_form.share == 0.25
    assert frequent_form.line == 76


@pytest.mark.parametrize(
    ("ignored_forms", "name"),
    [
        pytest.param(TOKENS, ENTITIES.name, id="tokens are ignored"),
        pytest.param([*TOKENS, ENTITIES], LOWER_CASE.name, id="tokens and entities are ignored"),
    ],
)
def test_a_form_that_the_settings_expect_is_ignored(ignored_forms, name):
    """These lines are in tokens of Moses with entities, and in lower case."""
    lines = moses(lowercased(QUOTATIONS))

    frequent_form = FormCounter(lines).frequent_form(ignored=ignored_forms)

    assert frequent_form.form.name == name


def test_nothing_is_reported_if_the_settings_expect_all_forms_of_a_text():
    """These lines are in tokens of Moses with entities, and in lower case."""
    lines = moses(lowercased(QUOTATIONS))

    assert FormCounter(lines).frequent_form(ignored=[*TOKENS, ENTITIES, LOWER_CASE]) is None


def test_a_form_of_translations_is_reported_if_the_references_do_not_have_it():
    """Both are in the tokens of Moses, but only the translations are in lower case."""
    lowercased_tokens = moses(lowercased(QUOTATIONS))
    references = FormCounter(moses(QUOTATIONS))

    frequent_form = FormCounter(lowercased_tokens).frequent_form(references=references)

    assert frequent_form.form.name == LOWER_CASE.name


def test_subwords_of_translations_are_reported_if_the_references_are_in_tokens():
    """The references are the same tokens before they were split into subwords."""
    lowercased_tokens = moses(lowercased(QUOTATIONS))
    references = FormCounter(lowercased_tokens)

    frequent_form = FormCounter(bpe(lowercased_tokens)).frequent_form(references=references)

    assert frequent_form.form.name == "BPE subwords (@@)"


def test_nothing_is_reported_about_translations_in_the_form_of_the_references():
    """Then both can be compared, although they are in lower-cased tokens."""
    lines = moses(lowercased(QUOTATIONS))

    assert FormCounter(lines).frequent_form(references=FormCounter(lines)) is None


def test_of_a_long_text_all_first_lines_and_every_hundredth_line_are_counted():
    """Of 20,000 lines, only the second half is in subwords, in which @@ marks the end of a part."""
    counter = FormCounter()
    for number in range(1, 10_001):
        counter.add(number, "low")
    for number in range(10_001, 20_001):
        counter.add(number, "lo@@ w")

    # All of the first 10,000 lines, and 100 of the others, which are all in subwords.
    assert counter.shares() == {"BPE subwords (@@)": 100 / 10_100}
    # Such a small share may be chance.
    assert counter.frequent_form() is None
