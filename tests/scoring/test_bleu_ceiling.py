"""The BLEU ceiling, against sacreBLEU's command line.

The printed form of the references is written by hand. Also what is said of test sets before
anything has run.
"""

import gzip
import unicodedata
from dataclasses import replace
from pathlib import Path

import pytest

from bleuprint.config.corpus import SentencePiece, Units, Words
from bleuprint.config.experiment import load_settings
from bleuprint.config.paths import corpus_folder, download_folder
from bleuprint.rules import EDITS
from bleuprint.rules.rule import Edit
from bleuprint.runtime.files import read_json, write_json
from bleuprint.scoring import bleu_ceiling
from bleuprint.scoring.bleu_ceiling import BLEU_CEILING, write_bleu_ceiling
from bleuprint.text.parallel import TextFolder
from corpora import EDITS as NFC
from corpora import PAIRS, TOKENIZE, UNITS, write_set
from params import PARAMS
from prepared import prepare
from scoring import sacrebleu

REFERENCES = [
    "The Cat is sleeping on the “old” Stove.",
    "",
    "When does the café at the Rathaus open its doors today?",
    "It is said to rain in Zürich tomorrow and on Friday.",
]
DECOMPOSED = [unicodedata.normalize("NFD", line) for line in REFERENCES]
STRAIGHT = [line.replace("“", '"').replace("”", '"') for line in REFERENCES]
# Moses prints both without the spaces.
SPACED = [f"The {word} 'left'…" for word in ("cat", "dog", "bird", "cow")]
SPACED += [line.replace("'left'", "' left ' ") for line in SPACED]

NONE = replace(TOKENIZE, name="none")
LOWER = replace(NONE, lowercase=True)
PUNCTUATION: tuple[Edit, ...] = (EDITS["punctuation"](),)
WORDS = Units(words=Words(joint=True, max_size=1000, min_count=1))
PIECES = Units(sentencepiece=SentencePiece("unigram", 330, joint=True, byte_fallback=True))

# What a message says that raises the score, by the step that lowers it.
RAISED_BY = {
    "line length": "lines of four tokens or more; compare systems by chrF2.",
    "clean": "To raise it: leave the edit out, or edit the files of the test set, too.",
    "tokenize": "tokenize.lowercase false",
    "vocabulary": "To raise it: vocabulary.sentencepiece with byte_fallback true",
    None: "",
}

FILES = "source: {path: inputs/a.de}, target: {path: inputs/a.no}"
TEST = f"tests: {{news: {{a: {{license_and_citation: own, {FILES}}}}}}}".replace("a.", "news.")


@pytest.fixture
def corpus(tmp_path):
    """German to English, with a test set, `news`."""
    path = tmp_path / "params.yaml"
    path.write_text(PARAMS.replace('target: "no"', 'target: "en"').replace("tests: {}", TEST))
    return load_settings(path).corpus("own")


def of_sacrebleu(folder, references, printed):
    paths = [folder / "references", folder / "printed"]
    for path, lines in zip(paths, (references, printed), strict=True):
        path.write_text("".join(f"{line}\n" for line in lines))
    return float(sacrebleu(paths[0], "-l", "de-en", "-i", paths[1])["score"])


@pytest.mark.parametrize(
    ("references", "printed", "edits", "tokenize", "units", "step"),
    [
        (REFERENCES, [line.lower() for line in REFERENCES], NFC, LOWER, UNITS, "tokenize"),
        (DECOMPOSED, REFERENCES, NFC, NONE, UNITS, "clean"),
        (REFERENCES, STRAIGHT, PUNCTUATION, NONE, UNITS, "clean"),
        (
            REFERENCES,
            [line.replace("Cat", "<unk>").replace("Friday.", "<unk>") for line in REFERENCES],
            NFC,
            NONE,
            WORDS,
            "vocabulary",
        ),
        (["Yes.", "No."], ["Yes.", "No."], NFC, NONE, UNITS, "line length"),
        (REFERENCES, REFERENCES, NFC, NONE, PIECES, None),
        (DECOMPOSED, DECOMPOSED, (), NONE, PIECES, None),
    ],
)
def test_what_a_perfect_system_prints_is_scored(
    tmp_path, corpus, references, printed, edits, tokenize, units, step
):
    # twice in a line: a line of the test set would be dropped
    text = [(f"a{n}", f"{line} {line}".replace("<unk>", "")) for n, line in enumerate(printed)]
    news = [(f"b{n}", line) for n, line in enumerate(references)]
    sets = {"train": [*PAIRS, *text], "valid": [("c", "d")], "test.news": news}
    made = prepare(tmp_path, sets, edits, (), tokenize, units)
    corpus = replace(corpus, clean=edits, tokenize=tokenize)
    write_bleu_ceiling(corpus, made.binary, tmp_path / "split", tmp_path / BLEU_CEILING)
    scores = read_json(tmp_path / BLEU_CEILING)["news"]
    expected = of_sacrebleu(tmp_path, references, printed)
    assert scores["vocabulary"] == pytest.approx(expected, abs=0.006)
    assert (expected < 99.5) == (step is not None)
    assert [*bleu_ceiling.lost_points(scores)] == ([step] if step else [])
    found = list(bleu_ceiling.ceiling_notes(tmp_path, "own", ["news"]))
    start = f"BLEU ceiling of news on own: {expected:.1f} ({step} {expected - 100:.1f}). "
    assert [note.startswith(start) for note in found] == [True] * (step is not None)
    assert [RAISED_BY[step] in note for note in found] == [True] * (step is not None)


def test_a_step_that_loses_a_tenth_is_named():
    assert [*bleu_ceiling.lost_points({"clean": 99.9, "vocabulary": 90.0})] == [
        "clean",
        "vocabulary",
    ]


def test_a_test_set_that_is_drawn_is_what_clean_left(tmp_path, corpus):
    """Cleaned twice, it would be `Der né ...`."""
    entities: tuple[Edit, ...] = (EDITS["entities"](),)
    text = [(f"a{n}", f"Der n&amp;eacute; {n} lag.") for n in range(40)]
    made = prepare(tmp_path, {"train": text}, entities, (), NONE)
    files = replace(corpus.files, tests={})
    corpus = replace(corpus, files=files, clean=entities, tokenize=NONE)
    write_bleu_ceiling(corpus, made.binary, tmp_path / "split", tmp_path / BLEU_CEILING)
    (scores,) = read_json(tmp_path / BLEU_CEILING).values()
    assert scores["clean"] == scores["tokenize"] == 100


def test_no_notes_without_statistics(tmp_path):
    assert not list(bleu_ceiling.ceiling_notes(tmp_path, "own", ["news"]))
    write_json(tmp_path / BLEU_CEILING, {"other": {"clean": 9.0}})
    assert not list(bleu_ceiling.ceiling_notes(tmp_path, "own", ["news"]))


class TestSample:
    """Notes on files that are here, in a project with one test set."""

    @pytest.fixture(autouse=True)
    def project(self, tmp_path, monkeypatch, corpus):
        assert corpus.files.tests
        monkeypatch.chdir(tmp_path)
        self.write(REFERENCES)

    def write(self, lines, name="news"):
        Path("inputs").mkdir(exist_ok=True)
        for side in ("de", "no"):
            text = "".join(f"{line}\n" for line in lines)
            Path("inputs", f"{name}.{side}").write_text(text, encoding="utf-8")

    def noted(self, *changes):
        path = Path("params.yaml")
        text = path.read_text()
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        path.write_text(text)
        return list(bleu_ceiling.ceiling_notes_before_run(load_settings()))

    def test_a_file_that_comes_back_is_not_noted(self):
        assert self.noted(("name: moses", "name: none")) == []

    def test_case(self, tmp_path):
        bleu = of_sacrebleu(tmp_path, REFERENCES, [line.lower() for line in REFERENCES])
        (note,) = self.noted(("moses, lowercase: false", "none, lowercase: true"))
        assert note == (
            f"corpora.own: BLEU ceiling of news is {bleu:.1f} (tokenize {bleu - 100:.1f}): "
            "BLEU is cased: tokenize.lowercase false keeps the case"
        )

    def test_forms_of_unicode(self, tmp_path):
        self.write(DECOMPOSED)
        bleu = of_sacrebleu(tmp_path, DECOMPOSED, REFERENCES)
        (note,) = self.noted(("name: moses", "name: none"))
        start = f"corpora.own: BLEU ceiling of news is {bleu:.1f} (clean {bleu - 100:.1f}): "
        assert note.startswith(f"{start}leave the edit out, or ")

    def test_a_tokenizer(self):
        self.write(SPACED)
        (note,) = self.noted()
        assert note.endswith("tokenize.name none with vocabulary.sentencepiece restores all text")
        assert self.noted(("name: moses", "name: none")) == []

    def test_a_test_set_that_will_be_drawn(self):
        self.write(DECOMPOSED, "a")
        assert self.noted((TEST, "tests: {}"), ("name: moses", "name: none")) == []
        (note,) = self.noted(("lowercase: false", "lowercase: true"))
        assert note.startswith("corpora.own: BLEU ceiling of held-out is ")

    def test_text_that_was_downloaded(self):
        url = "{url: 'https://h.invalid/a.xz'}"
        assert self.noted(("{path: inputs/news.no}", url)) == []
        text = TextFolder(download_folder("own"), "de", "en")
        write_set(text, "test.news", [("x", line) for line in REFERENCES])
        (note,) = self.noted(("lowercase: false", "lowercase: true"))
        assert "BLEU ceiling of news is " in note
        drawn = TextFolder(corpus_folder("own", "split"), "de", "en")
        write_set(drawn, "test.held-out", [("x", line) for line in REFERENCES])
        test = TEST.replace("{path: inputs/news.no}", url)
        (note,) = self.noted((test, "tests: {}"), ("{path: inputs/a.no}", url))
        assert "BLEU ceiling of held-out is " in note

    def test_files_that_cannot_be_read(self):
        packed = self.noted(("news.no", "news.no.gz"))
        assert packed == []  # noted as missing by other notes
        Path("inputs/news.no.gz").write_bytes(gzip.compress(b"a\n" * 4)[:-9])
        (note,) = self.noted()
        assert note.startswith("corpora.own: inputs/news.no.gz: ") and "\n" not in note
        Path("inputs/news.no.gz").write_bytes(gzip.compress("ä\n".encode("latin-1") * 4))
        (note,) = self.noted()
        assert note.startswith("corpora.own: inputs/news.no.gz:1: byte 1 ")
        Path("inputs/news.no.gz").write_bytes(gzip.compress(b"a\n" * 3))
        (note,) = self.noted()
        assert "not parallel" in note

    def test_lines_without_text(self):
        self.write(["", " ", "\u200b"])
        (note,) = self.noted()
        expected = " is 0.0 (line length -100.0): BLEU needs lines of four tokens or more; "
        assert expected in note

    def test_only_the_first_lines_are_read(self, monkeypatch):
        self.write(["one two three four five"] * 4 + ["One Two Three Four Five"] * 4)
        assert len(self.noted(("lowercase: false", "lowercase: true"))) == 1
        monkeypatch.setattr(bleu_ceiling, "_SAMPLED_LINES", 4)
        assert self.noted() == []
