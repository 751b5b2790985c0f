"""Text of other toolkits is told from sentences, by what these toolkits themselves write."""

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

ENGLISH, GERMAN, FRENCH = (
    list(phrasebook.sentences("train", language))[:600] for language in ("en", "de", "fr")
)
QUOTED = [f'He said "{line}" — isn\'t it?' for line in ENGLISH]


def found(lines, **given):
    form = FormCounter(lines).frequent_form(**given)
    return form and (form.form.name, form.share, form.line)


def bpe(lines):
    codes = io.StringIO()
    learn_bpe(io.StringIO("\n".join(lines)), codes, 60)
    segmenter = BPE(io.StringIO(codes.getvalue()))
    return [segmenter.process_line(line) for line in lines]


def pieces(lines):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=model, vocab_size=150, minloglevel=2
    )
    processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    return [" ".join(processor.encode(line, out_type=str)) for line in lines]


def moses(lines, language="en", **given):
    tokenizer = MosesTokenizer(lang=language)
    return [tokenizer.tokenize(line, return_str=True, **given) for line in lines]


def rows(lines, number):
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    writer.writerows([n, line][-number:] for n, line in enumerate(lines))
    return text.getvalue().splitlines()


SENTENCES = {
    "English": ENGLISH,
    "German": GERMAN,
    "French, with spaces before ? and :": [
        *FRENCH,
        *["Il a dit : « Où est-il ? » ; puis rien !"] * 50,
    ],
    "quotations": QUOTED,
    "dialogues": [f'"{line}" she said. "And then?"' for line in ENGLISH],
    "an ellipsis": ["Well . . .", "I do not know . . . Perhaps."] * 20,
    "Japanese": ["私は学生です。", "「はい」と、彼は言った。", "東京へ行きます。"] * 20,
    "Chinese": ["他是一名学生。", "你好，世界！", "我使用 Python 编程。"] * 20,
    "Thai": ["เขา เป็น นักเรียนที่โรงเรียน", "สวัสดีชาวโลก วันนี้อากาศดี"] * 20,
    "Georgian, which has no capital letters": ["გამარჯობა მსოფლიო, როგორ ხარ დღეს"] * 20,
    "Hindi": ["वह एक छात्र है ।", "आप कैसे हैं ?"] * 20,
    "Maltese": ["Ġesù u Ġuda marru Ġerusalemm illum ma' ħuthom kollha.", "Il-Ġimgħa ġej."] * 20,
    "Maltese with several capital Ġ": ["Ġurnata sabiħa Ġorġ mar", "Ġesù u Ġuda", "Ġurnata"] * 20,
    "hashtags": [*ENGLISH[:90], *["Good morning ##coffee lovers"] * 10],
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
def test_sentences_are_sentences(name):
    assert found(SENTENCES[name]) is None


FORMS = {
    "BPE subwords (@@)": bpe(ENGLISH),
    "SentencePiece pieces (▁)": pieces(ENGLISH),
    "tokens set apart by spaces": moses(QUOTED),
    "JSON": [json.dumps({"id": n, "text": line}) for n, line in enumerate(ENGLISH)],
    "quoted strings with a comma at the end": [f"{json.dumps(line)}," for line in ENGLISH],
    "quoted or numbered fields (CSV)": rows(ENGLISH, 2),
    "quoted strings": rows(QUOTED, 1),
}
BARS = "fields with ||| between them (n-best list, fast_align)"
SUBTITLES = "subtitles with their times (-->)"
FACTORED = "factored tokens (the|DT)"
ESCAPED = "text with escaped characters (\\u00f6)"


def subtitles(form):
    text = "\n".join(form.format(n=n, line=line) for n, line in enumerate(ENGLISH[:50], 10))
    return text.split("\n")


def byte_level(line):
    # What GPT-2's byte-level BPE writes for these bytes, by its published table.
    text = line.encode().decode("latin-1").replace(" ", " Ġ")
    return "".join(chr(ord(c) + 0xA2) if "\x7f" <= c <= "\xa0" else c for c in text)


OTHERS = [
    ("JSON", [f"  {json.dumps(str(n))}: {json.dumps(line)}," for n, line in enumerate(ENGLISH)]),
    ("JSON", [json.dumps([line, "x"]) for line in ENGLISH]),
    ("JSON", [repr({"en": line, "de": "x"}) for line in ENGLISH]),
    ("quoted strings with a comma at the end", [f"    '{line}'," for line in ENGLISH]),
    ("quoted or numbered fields (CSV)", [f"{n};{line}" for n, line in enumerate(ENGLISH)]),
    ("columns of a table (tabs)", [f"{n}\t{line}" for n, line in enumerate(ENGLISH)]),
    ("sentences in tags (XML, SGML)", [f'<seg id="{n}">{a}</seg>' for n, a in enumerate(ENGLISH)]),
    ("BPE subwords (@@)", [line.replace(" a", " a￭ ￭b ") for line in bpe(ENGLISH)]),
    ("SentencePiece pieces (▁)", [line.replace("▁", "_") for line in pieces(ENGLISH)]),
    ("SentencePiece pieces (▁)", [line.replace(" ", "_ ") + " ._" for line in ENGLISH]),
    ("WordPiece subwords (##)", [line.replace("e", " ##e", 2) for line in ENGLISH]),
    ("BPE subwords (</w>)", [line.replace(" ", "</w> ") + "</w>" for line in ENGLISH]),
    ("byte-level BPE (Ġ)", [line.replace(" ", " Ġ") for line in ENGLISH]),
    ("byte-level BPE (Ġ)", [line.replace(" ", "Ġ") for line in ENGLISH]),
    ("sentences with special symbols (<s>, </s>)", [f"<s> {line} </s>" for line in ENGLISH]),
    ("tokens set apart by spaces", moses(ENGLISH)),
    ("tokens set apart by spaces", moses(GERMAN, "de", escape=False)),
    ("tokens set apart by spaces", moses(FRENCH, "fr")),
    ("tokens set apart by spaces", moses(["a well-known fact"] * 9, aggressive_dash_splits=True)),
    ("tokens set apart by spaces", ["I do n't know", "it 's John 's"] * 9),
    ("tokens set apart by spaces", ["私 は 学生 です 。", "東京 へ 行き ます"] * 9),
    ("tokens set apart by spaces", ["他 是 一 名 学生", "今天 天气 很 好"] * 9),
    ("tokens set apart by spaces", ["เขา เป็น นักเรียน ที่ ดี มาก"] * 9),
    ("characters set apart by spaces", [" ".join(line.replace(" ", "_")) for line in ENGLISH]),
    ("numbers of tokens", [f"{n} 17 4 {n + 3}" for n in range(99)]),
    (BARS, [f"{n} ||| {line} ||| LM0= -9.1 ||| -{n}.5" for n, line in enumerate(ENGLISH)]),
    (BARS, [f"{n} ||| {line.lower()} ||| -1.2" for n, line in enumerate(moses(QUOTED))]),
    (BARS, [f"{source} ||| {target}" for source, target in zip(ENGLISH, GERMAN, strict=True)]),
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
    (ESCAPED, [json.dumps(line)[1:-1] for line in GERMAN]),
    (ESCAPED, [json.dumps(line)[1:-1] for line in FRENCH]),
    (ESCAPED, [json.dumps(line)[1:-1] for line in ["Привет, мир!", "Как дела?"] * 9]),
    (ESCAPED, [line.encode("unicode_escape").decode() for line in GERMAN]),
    ("byte-level BPE (Ġ)", [byte_level(line) for line in GERMAN]),
    ("byte-level BPE (Ġ)", [byte_level(line) for line in ["Как дела сегодня?"] * 9]),
    ("text with HTML entities (&amp;)", [line.replace("e", "&eacute;") for line in ENGLISH]),
    ("lower-cased text", [line.lower() for line in ENGLISH]),
    ("lower-cased text", ["я не знаю, что это такое"] * 9),
]


@pytest.mark.parametrize("name", FORMS)
def test_forms_that_toolkits_write(name):
    form, share, line = found(FORMS[name])
    assert form == name
    assert share > 0.9
    assert line in (1, 2, 3)


@pytest.mark.parametrize("place", range(len(OTHERS)))
def test_their_neighbors(place):
    name, lines = OTHERS[place]
    assert found(lines)[0] == name


def test_the_share_and_the_first_line():
    lines = ["", *ENGLISH[:7], "a lo@@ w lamp", "the n@@ ew one", "  "]
    # two of the nine lines that are not empty
    assert found(lines) == ("BPE subwords (@@)", 2 / 9, 9)
    form = FormCounter(lines).frequent_form()
    assert form.describe() == "22% of the lines look like BPE subwords (@@), such as line 9"
    assert form.describe("pair").endswith(
        "of the pairs look like BPE subwords (@@), such as pair 9"
    )
    assert FormCounter(lines[:-2]).frequent_form() is None  # one line may be chance


def test_few_of_many_lines_are_chance():
    tokens = moses(QUOTED)
    assert found([*ENGLISH[:90], *tokens[:10]]) is None
    assert found([*ENGLISH[:75], *tokens[:25]]) == ("tokens set apart by spaces", 0.25, 76)


def test_what_is_right_is_not_reported():
    tokens = moses([line.lower() for line in QUOTED])
    assert found(tokens, ignored=TOKENS)[0] == ENTITIES.name
    assert found(tokens, ignored=[*TOKENS, ENTITIES])[0] == LOWER_CASE.name
    assert found(tokens, ignored=[*TOKENS, ENTITIES, LOWER_CASE]) is None
    # of references in tokens, translations in tokens
    assert found(tokens, references=FormCounter(moses(QUOTED)))[0] == LOWER_CASE.name
    assert found(bpe(tokens), references=FormCounter(tokens))[0] == "BPE subwords (@@)"
    assert found(tokens, references=FormCounter(tokens)) is None


def test_of_a_long_text_every_hundredth_line_is_looked_at():
    counter = FormCounter()
    for number in range(1, 20_001):
        counter.add(number, "lo@@ w" if number > 10_000 else "low")
    form = counter.frequent_form()
    # 100 of 10,100 lines: below the least share
    assert form is None
    assert counter.shares() == {"BPE subwords (@@)": 100 / 10_100}
