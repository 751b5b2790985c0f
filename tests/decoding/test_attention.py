"""Attention as numbers and pages: they show the weights that the model uses."""

import base64
import os
import re
import sys
from html.parser import HTMLParser

import numpy as np
import pytest
import torch

import processes
import systems
from bleuprint.dataset.subwords.vocabulary import BOS, EOS, SPECIALS
from bleuprint.decoding.attention import (
    KINDS,
    AttentionMap,
    SentenceAttention,
    attention_maps,
    read_attention,
    select_sentences,
    write_attention,
)
from bleuprint.model.transformer import Transformer
from bleuprint.runtime.errors import UserError
from bleuprint.serving.attention_html import AttentionFile, SentenceMaps
from prepared import prepare
from trainings import environment, toy_pairs

COMMAND = (
    sys.executable,
    "-m",
    "bleuprint.cli.main",
    "translate",
    "--system=micro",
    "--corpus=toy",
)
# Characters missing in fonts, right-to-left text, combining characters, markup.
ODD = ["中文", "مرحبا", "👍🏽", "$\\x$", "e@@", "\u0301a", "\x01", "\u202eabc", "<b>&", '"', "</s>"]


class Tables(HTMLParser):
    """The tables of a page: rows of cells, each with its attributes; and all tags there are."""

    def __init__(self, page):
        super().__init__()
        self.tables: list[list[list[dict[str, str]]]] = []
        self.tags: list[str] = []
        self.captions: list[str] = []
        self._open = ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self._open = tag if tag in ("th", "td", "caption") else self._open
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("th", "td"):
            self.tables[-1][-1].append({"tag": tag, "text": "", **dict(attrs)})

    def handle_endtag(self, tag):
        self._open = "" if tag == self._open else self._open

    def handle_data(self, data):
        if self._open == "caption":
            self.captions.append(data)
        elif self._open:
            self.tables[-1][-1][-1]["text"] += data


def random_map(rows, columns, layers=2, heads=3):
    drawn = np.random.default_rng(1).dirichlet([0.3] * len(columns), (layers, heads, len(rows)))
    return AttentionMap(rows, columns, drawn.astype(np.float32))


def page_of(attention, path):
    file = AttentionFile(path, ("ar", "ja"))
    file.add("a:1", SentenceMaps("x", "a", [{"cross": attention}]))
    file.write()
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    pairs = toy_pairs(100, 1)
    sets = {"train": pairs, "valid": pairs[:5], "test.x": pairs[5:10]}
    return prepare(tmp_path_factory.mktemp("maps"), sets)


def test_maps_are_what_is_read_to_write_each_token(prepared):
    torch.manual_seed(3)
    corpus = prepared.binary
    source, target = (corpus.segmentation(side).vocabulary for side in ("de", "en"))
    shape = systems.model(encoder_layers=2, decoder_layers=3, tie_embeddings="none")
    model = Transformer(shape, len(source), len(target)).eval()
    ids, words = [7, 5, 6, 9, EOS], [8, 4, 10]
    maps = attention_maps(model, corpus, ids, words)
    assert list(maps) == list(KINDS)
    cross, encoder, decoder = (maps[kind] for kind in ("cross", "encoder", "decoder"))
    assert cross.rows == decoder.rows == [*target.decode(words), SPECIALS[EOS]]
    assert cross.columns == encoder.rows == encoder.columns == [*source.decode(ids), SPECIALS[EOS]]
    assert decoder.columns == [SPECIALS[BOS], *decoder.rows[:-1]]
    shapes = [maps[kind].weights.shape for kind in ("cross", "encoder", "decoder")]
    assert shapes == [(3, 4, 4, 5), (2, 4, 5, 5), (3, 4, 4, 4)]
    for one in maps.values():
        assert one.weights.sum(-1) == pytest.approx(np.ones(one.weights.shape[:3]), abs=1e-5)
    assert not np.triu(decoder.weights, 1).any() and encoder.weights.all()
    # a token is written before it is known: its own row does not depend on it, the next one does
    other = attention_maps(model, corpus, ids, [8, 11, 10])["cross"].weights
    assert other[:, :, :2] == pytest.approx(cross.weights[:, :, :2], abs=1e-6)
    assert not np.allclose(other[:, :, 2], cross.weights[:, :, 2], atol=1e-6)


def test_kept_maps_are_a_byte_a_weight(tmp_path):
    made = random_map(ODD, ["a", "b", "c"])
    entry = made.as_json()
    assert len(base64.b64decode(entry["weights"])) == 2 * 3 * len(ODD) * 3
    weights = np.array([[[[0, 1, 0.5]]]], np.float32)
    # 127.5 is rounded to the even one
    exact = AttentionMap(["r"], ["x", "y", "z"], weights).as_json()
    assert (exact["layers"], exact["heads"]) == (1, 1)
    assert base64.b64decode(exact["weights"]) == bytes([0, 255, 128])
    path = tmp_path / "attention.json"
    sentence = SentenceAttention(3, dict.fromkeys(KINDS, made))
    write_attention(path, {"one": [sentence], "two": []})
    (read,) = read_attention(path, "one")
    assert read.line == 3 and list(read.maps) == list(KINDS)
    for one in read.maps.values():
        assert (one.rows, one.columns) == (ODD, ["a", "b", "c"])
        assert one.weights == pytest.approx(made.weights, abs=1 / 510 + 1e-6)
    assert read_attention(path, "two") == []


@pytest.mark.parametrize(
    ("units", "kept"),
    [
        ([5, 6, 20, 14, 7], [1, 3]),  # the first two of 6 to 14
        ([5, 15, 10, 3], [0, 2]),  # one, and the nearest: 5 is as far as 15, and comes first
        ([0, 41, 40, 0], [2]),  # neither an empty one nor one that fills a page
        ([0, 0], []),
        ([], []),
    ],
)
def test_all_systems_keep_the_same_sentences(units, kept):
    assert select_sentences(np.array(units, np.int64) + 1) == kept


def test_a_page_holds_every_weight(tmp_path):
    attention = random_map(["a", "b@@", "</s>"], ["x", "y", "z", "</s>"])
    page = Tables(page_of(attention, tmp_path / "a.html"))
    means = attention.weights.mean(1)
    expected = [means[1]]
    for layer, mean in zip(attention.weights, means, strict=True):
        expected += [mean, *layer]
    assert len(page.tables) == len(expected) == len(page.captions)
    assert page.captions[:3] == ["Layer 2, mean of 3 heads", "Mean of 3 heads", "Head 1"]
    for table, weights in zip(page.tables, expected, strict=True):
        above, *rows = table
        assert [cell["text"] for cell in above] == ["", "x", "y", "z", "</s>"]
        assert [row[0]["text"] for row in rows] == ["a", "b@@", "</s>"]
        titles = np.array([[float(cell["title"]) for cell in row[1:]] for row in rows])
        assert titles == pytest.approx(weights, abs=6e-5)
        assert titles.sum(1) == pytest.approx(np.ones(3), abs=3e-4)
        for cell, weight in zip([c for row in rows for c in row[1:]], weights.flat, strict=True):
            step = round(100 * float(weight))
            assert (cell["text"], cell["class"]) == (str(step), f"s{step}")


def test_a_page_escapes_and_isolates_and_asks_for_nothing(tmp_path):
    text = page_of(random_map(ODD, ODD[::-1]), tmp_path / "a.html")
    page = Tables(text)
    shown = [row[0]["text"] for row in page.tables[0][1:]]
    assert shown == [{"\x01": "\ufffd", "\u0301a": "◌\u0301a"}.get(unit, unit) for unit in ODD]
    assert page.tables[0][1][0]["lang"] == "ja" and page.tables[0][0][1]["lang"] == "ar"
    assert page.tags.count("bdi") == page.tags.count("th")
    assert not {"b", "script", "link", "img", "iframe"} & set(page.tags)
    assert not any(word in text for word in ("http:", "https:", "url(", "@import", "src="))


def run(root, *arguments, text="", status=0):
    """The lines that `translate` printed, and its stderr."""
    env = {**environment(), "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    done = processes.run([*COMMAND, *arguments], root, env, text.encode())
    assert done.returncode == status, done.stderr.decode()
    return done.stdout.decode().split("\n")[:-1], done.stderr.decode()


def test_translations_come_with_a_page(toy, tmp_path):
    file, text = tmp_path / "new" / "a.html", "be ba <i>\n\nbe\n"
    found, said = run(toy, f"--attention={file}", text=text)
    assert (found, said) == run(toy, text=text)
    content = file.read_text(encoding="utf-8")
    page = Tables(content)
    assert page.tags.count("section") == 3 and "&lt;i&gt;" in content
    assert "An empty line" in content
    assert len(page.tables) == 2 * 3 * (1 + 1 * (4 + 1))  # three kinds, one layer, four heads
    for table in page.tables:
        for row in table[1:]:
            assert sum(float(cell["title"]) for cell in row[1:]) == pytest.approx(1, abs=2e-3)
    cross, encoder, decoder = page.tables[3 * 6 :: 6]
    written = "".join(row[0]["text"] + " " for row in cross[1:-1]).replace("@@ ", "")
    assert written.strip() == found[2]
    assert [cell["text"] for cell in cross[0][1:]] == [row[0]["text"] for row in encoder[1:]]
    assert [row[0]["lang"] for row in (encoder[1], decoder[1])] == ["de", "en"]
    assert decoder[0][1]["text"] == "<s>" and len(decoder) == len(cross)
    assert [path.name for path in file.parent.iterdir()] == ["a.html"]


def test_a_sentence_in_pieces_has_a_map_of_each(toy, tmp_path):
    run(toy, f"--attention={tmp_path / 'a.html'}", text="be " * 300 + "\n")
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert "<h3>Piece 1 of 2</h3>" in page and "<h3>Piece 2 of 2</h3>" in page
    every_map = re.findall("<table.*?</table>", page, re.DOTALL)
    firsts = [Tables(table).tables[0] for table in every_map[::18]]
    assert [len(table[0]) for table in firsts] == [1 + 256, 1 + 46]


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("--attention=a.txt", "'a.txt' does not end in .html"),
        ("--attention=params.yaml/a.html", "is no folder that can be written to"),
    ],
)
def test_what_no_file_holds_is_refused(toy, argument, message):
    found, said = run(toy, argument, text="be\n", status=2)
    assert message in said and "Traceback" not in said
    assert not found and not [*toy.glob("a.*")]


def test_a_page_does_not_grow_beyond_what_can_be_opened(tmp_path):
    file = AttentionFile(tmp_path / "a.html", ("de", "en"))
    attention = random_map(["x"] * 400, ["y"] * 400, layers=1, heads=1)
    sentence = SentenceMaps("y", "x", [{"cross": attention}])  # 3 x 400 x 400 cells
    for number in range(2):
        file.add(f"a:{number}", sentence)
    with pytest.raises(
        UserError, match=r"^a:3: .*a.html has no room for more than 1,000,000 cells"
    ):
        file.add("a:3", sentence)
