"""BLEU ceiling: the BLEU that a perfect system reaches after cleaning, tokens and vocabulary.

The printed form of the references is written by hand and scored by sacreBLEU's command line.
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
from bleuprint.runtime.json_files import read_json, write_json
from bleuprint.scoring import bleu_ceiling
from bleuprint.scoring.bleu_ceiling import BLEU_CEILING, write_bleu_ceiling
from bleuprint.text.parallel import TextFolder
from corpora import EDITS as NFC_EDITS
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
LOWERCASED_REFERENCES = [line.lower() for line in REFERENCES]
# Accents as characters of their own, in which unicode normalization (NFC) puts them together.
DECOMPOSED_REFERENCES = [unicodedata.normalize("NFD", line) for line in REFERENCES]
STRAIGHT_QUOTES = [line.replace("“", '"').replace("”", '"') for line in REFERENCES]
UNKNOWN_WORDS = [line.replace("Cat", "<unk>").replace("Friday.", "<unk>") for line in REFERENCES]

NO_TOKENIZER = replace(TOKENIZE, name="none")
LOWERCASING_TOKENIZER = replace(NO_TOKENIZER, lowercase=True)
PUNCTUATION_EDITS: tuple[Edit, ...] = (EDITS["punctuation"](),)
NO_EDITS: tuple[Edit, ...] = ()
WORD_VOCABULARY = Units(words=Words(joint=True, max_size=1000, min_count=1))
BYTE_VOCABULARY = Units(sentencepiece=SentencePiece("unigram", 330, joint=True, byte_fallback=True))

# What params.yaml says of a test set, `news`.
TEST_SET = (
    "tests: {news: {news: {license_and_citation: own, "
    "source: {path: inputs/news.de}, target: {path: inputs/news.no}}}}"
)


@pytest.fixture
def corpus(tmp_path):
    """Return a corpus from German to English with a test set, `news`."""
    path = tmp_path / "params.yaml"
    params = PARAMS.replace('target: "no"', 'target: "en"').replace("tests: {}", TEST_SET)
    path.write_text(params)
    return load_settings(path).corpus("own")


def sacrebleu_score(folder, references, printed):
    """Return the BLEU of sacreBLEU's command line.

    Args:
        folder: Where the files are written.
        references: The references.
        printed: What a system prints.
    """
    (folder / "references").write_text("".join(f"{line}\n" for line in references))
    (folder / "printed").write_text("".join(f"{line}\n" for line in printed))
    result = sacrebleu(folder / "references", "-l", "de-en", "-i", folder / "printed")
    return float(result["score"])


def write_ceiling(root, corpus, references, printed, edits, tokenize, units):
    """Send a test set through the data stages and compute its BLEU ceiling.

    Args:
        root: The folder for the outputs.
        corpus: The settings of the corpus.
        references: The references of the test set `news`.
        printed: What a perfect system prints; the training text consists of these words.
        edits: The edits of cleaning.
        tokenize: The tokenizer.
        units: The units of the vocabulary.

    Returns:
        BLEU after each step.
    """
    training_pairs = list(PAIRS)
    for number, line in enumerate(printed):
        words = line.replace("<unk>", "")
        # Twice in a line, since decontamination drops lines that are equal to the test set's.
        training_pairs.append((f"a{number}", f"{words} {words}"))
    test_pairs = [(f"b{number}", line) for number, line in enumerate(references)]
    sets = {"train": training_pairs, "valid": [("c", "d")], "test.news": test_pairs}
    data = prepare(root, sets, edits, (), tokenize, units)
    corpus = replace(corpus, clean=edits, tokenize=tokenize)
    write_bleu_ceiling(corpus, data.binary, root / "split", root / BLEU_CEILING)
    return read_json(root / BLEU_CEILING)["news"]


@pytest.mark.parametrize(
    ("references", "printed", "edits", "tokenize", "units", "lossy_step", "help_text"),
    [
        pytest.param(
            REFERENCES,
            LOWERCASED_REFERENCES,
            NFC_EDITS,
            LOWERCASING_TOKENIZER,
            UNITS,
            "tokenize",
            "tokenize.lowercase false",
            id="lowercased",
        ),
        pytest.param(
            DECOMPOSED_REFERENCES,
            REFERENCES,
            NFC_EDITS,
            NO_TOKENIZER,
            UNITS,
            "clean",
            "To raise it: leave the edit out, or edit the files of the test set, too.",
            id="accents composed by cleaning",
        ),
        pytest.param(
            REFERENCES,
            STRAIGHT_QUOTES,
            PUNCTUATION_EDITS,
            NO_TOKENIZER,
            UNITS,
            "clean",
            "To raise it: leave the edit out, or edit the files of the test set, too.",
            id="quotes straightened by cleaning",
        ),
        pytest.param(
            REFERENCES,
            UNKNOWN_WORDS,
            NFC_EDITS,
            NO_TOKENIZER,
            WORD_VOCABULARY,
            "vocabulary",
            "To raise it: vocabulary.sentencepiece with byte_fallback true",
            id="unknown words",
        ),
        pytest.param(
            ["Yes.", "No."],
            ["Yes.", "No."],
            NFC_EDITS,
            NO_TOKENIZER,
            UNITS,
            "line length",
            "lines of four tokens or more; compare systems by chrF2.",
            id="lines without 4-grams",
        ),
    ],
)
def test_the_ceiling_is_the_bleu_of_what_a_perfect_system_prints(
    tmp_path, corpus, references, printed, edits, tokenize, units, lossy_step, help_text
):
    """The BLEU ceiling: what a system gets that translates perfectly.

    It learns from prepared text, so it prints the references as preparation changes them.
    SacreBLEU's score of `printed` is the expected ceiling. A note names the step that loses points
    and how to raise the ceiling.
    """
    scores = write_ceiling(tmp_path, corpus, references, printed, edits, tokenize, units)

    expected = sacrebleu_score(tmp_path, references, printed)
    assert scores["vocabulary"] == pytest.approx(expected, abs=0.006)
    assert expected < 99.5
    assert list(bleu_ceiling.lost_points(scores)) == [lossy_step]
    (note,) = bleu_ceiling.ceiling_notes(tmp_path, "own", ["news"])
    assert note.startswith(
        f"BLEU ceiling of news on own: {expected:.1f} ({lossy_step} {expected - 100:.1f}). "
    )
    assert help_text in note


@pytest.mark.parametrize(
    ("references", "edits"),
    [
        pytest.param(REFERENCES, NFC_EDITS, id="cleaned"),
        pytest.param(DECOMPOSED_REFERENCES, NO_EDITS, id="not cleaned"),
    ],
)
def test_a_vocabulary_with_bytes_has_a_ceiling_of_100_and_no_note(
    tmp_path, corpus, references, edits
):
    """The BLEU ceiling: what a system gets that translates perfectly.

    A vocabulary with bytes can write every character. Nothing changes the references, so a perfect
    system prints exactly them.
    """
    scores = write_ceiling(
        tmp_path,
        corpus,
        references,
        printed=references,
        edits=edits,
        tokenize=NO_TOKENIZER,
        units=BYTE_VOCABULARY,
    )

    expected = sacrebleu_score(tmp_path, references, references)
    assert scores["vocabulary"] == pytest.approx(expected, abs=0.006)
    assert expected >= 99.5
    assert list(bleu_ceiling.lost_points(scores)) == []
    assert list(bleu_ceiling.ceiling_notes(tmp_path, "own", ["news"])) == []


def test_a_step_that_loses_a_tenth_of_a_point_is_named():
    scores = {"clean": 99.9, "vocabulary": 90.0}
    assert list(bleu_ceiling.lost_points(scores)) == ["clean", "vocabulary"]


def test_a_test_set_drawn_from_the_cleaned_text_is_not_cleaned_again(tmp_path, corpus):
    """Without a test set of its own, a corpus draws one from its cleaned training text.

    Cleaning makes `&eacute;` of `&amp;eacute;`. Doing it again would make `é`, and the ceiling
    would be below 100 although no stage changes these references.
    """
    entities: tuple[Edit, ...] = (EDITS["entities"](),)
    pairs = [(f"a{number}", f"Der n&amp;eacute; {number} lag.") for number in range(40)]
    data = prepare(tmp_path, {"train": pairs}, entities, (), NO_TOKENIZER)
    without_test_sets = replace(corpus.files, tests={})
    corpus = replace(corpus, files=without_test_sets, clean=entities, tokenize=NO_TOKENIZER)

    write_bleu_ceiling(corpus, data.binary, tmp_path / "split", tmp_path / BLEU_CEILING)

    (scores,) = read_json(tmp_path / BLEU_CEILING).values()
    assert scores["clean"] == 100
    assert scores["tokenize"] == 100


def test_there_are_no_notes_if_the_statistics_are_missing(tmp_path):
    assert list(bleu_ceiling.ceiling_notes(tmp_path, "own", ["news"])) == []


def test_there_are_no_notes_on_a_test_set_that_the_statistics_lack(tmp_path):
    write_json(tmp_path / BLEU_CEILING, {"other": {"clean": 9.0}})

    assert list(bleu_ceiling.ceiling_notes(tmp_path, "own", ["news"])) == []


class TestNotesBeforeRun:
    """`bleuprint check` estimates the ceiling from the files of a test set, before any stage."""

    @pytest.fixture(autouse=True)
    def project(self, tmp_path, monkeypatch, corpus):
        """Write a project whose params.yaml has one test set, `news`."""
        assert corpus.files.tests
        monkeypatch.chdir(tmp_path)
        self.write_inputs(REFERENCES)

    def write_inputs(self, lines, name="news"):
        """Write both sides of a text, with the same lines, to the folder inputs."""
        Path("inputs").mkdir(exist_ok=True)
        for side in ("de", "no"):
            text = "".join(f"{line}\n" for line in lines)
            Path("inputs", f"{name}.{side}").write_text(text, encoding="utf-8")

    def replace_in_params(self, old, new):
        """Replace a text of params.yaml."""
        path = Path("params.yaml")
        params = path.read_text()
        assert old in params
        path.write_text(params.replace(old, new))

    def notes(self):
        """Return the notes on the project as it stands."""
        return list(bleu_ceiling.ceiling_notes_before_run(load_settings()))

    def test_references_that_a_system_can_print_are_not_noted(self):
        self.replace_in_params("name: moses", "name: none")

        assert self.notes() == []

    def test_lowercasing_is_noted_with_the_ceiling(self, tmp_path):
        """The tokenizer is set to lowercase the text; sacreBLEU gives the expected ceiling."""
        self.replace_in_params("moses, lowercase: false", "none, lowercase: true")

        (note,) = self.notes()

        bleu = sacrebleu_score(tmp_path, REFERENCES, printed=LOWERCASED_REFERENCES)
        assert note == (
            f"corpora.own: BLEU ceiling of news is {bleu:.1f} (tokenize {bleu - 100:.1f}): "
            "BLEU is cased: tokenize.lowercase false keeps the case"
        )

    def test_composed_accents_are_noted_as_an_effect_of_cleaning(self, tmp_path):
        """The references write é as e and a combining accent; cleaning composes both to é."""
        self.write_inputs(DECOMPOSED_REFERENCES)
        self.replace_in_params("name: moses", "name: none")

        (note,) = self.notes()

        composed_references = REFERENCES
        bleu = sacrebleu_score(tmp_path, DECOMPOSED_REFERENCES, printed=composed_references)
        start = f"corpora.own: BLEU ceiling of news is {bleu:.1f} (clean {bleu - 100:.1f}): "
        assert note.startswith(f"{start}leave the edit out, or ")

    @pytest.fixture
    def spaced_quotes(self):
        """Write lines with and without spaces around quotes; Moses prints both without spaces."""
        nouns = ("cat", "dog", "bird", "cow")
        lines = [f"The {noun} 'left'…" for noun in nouns]
        lines += [f"The {noun} ' left ' …" for noun in nouns]
        self.write_inputs(lines)

    @pytest.mark.usefixtures("spaced_quotes")
    def test_spaces_that_moses_does_not_restore_are_noted(self):
        (note,) = self.notes()

        assert note.endswith("tokenize.name none with vocabulary.sentencepiece restores all text")

    @pytest.mark.usefixtures("spaced_quotes")
    def test_spaces_are_not_noted_if_text_is_not_tokenized(self):
        self.replace_in_params("name: moses", "name: none")

        assert self.notes() == []

    def test_a_test_set_that_will_be_drawn_is_noted_as_held_out(self):
        """Without `tests`, a test set `held-out` will be drawn from the cleaned training text.

        Cleaning composes accents; only lowercasing changes the drawn lines.
        """
        self.write_inputs(DECOMPOSED_REFERENCES, name="a")  # the training text
        self.replace_in_params(TEST_SET, "tests: {}")
        self.replace_in_params("name: moses", "name: none")

        assert self.notes() == []

        self.replace_in_params("lowercase: false", "lowercase: true")

        (note,) = self.notes()
        assert note.startswith("corpora.own: BLEU ceiling of held-out is ")

    def test_a_test_set_from_the_internet_is_noted_once_it_is_downloaded(self):
        """`bleuprint check` downloads nothing, so before a download it can say nothing."""
        url = "{url: 'https://h.invalid/a.xz'}"
        self.replace_in_params("{path: inputs/news.no}", url)
        self.replace_in_params("lowercase: false", "lowercase: true")

        assert self.notes() == []

        download = TextFolder(download_folder("own"), "de", "en")
        write_set(download, "test.news", [("x", line) for line in REFERENCES])

        (note,) = self.notes()
        assert "BLEU ceiling of news is " in note

    def test_a_test_set_drawn_from_downloaded_text_is_noted_once_it_is_drawn(self):
        """The training text is on the internet; the stage split has drawn `held-out` from it."""
        url = "{url: 'https://h.invalid/a.xz'}"
        self.replace_in_params(TEST_SET, "tests: {}")
        self.replace_in_params("{path: inputs/a.no}", url)
        self.replace_in_params("lowercase: false", "lowercase: true")
        split = TextFolder(corpus_folder("own", "split"), "de", "en")
        write_set(split, "test.held-out", [("x", line) for line in REFERENCES])

        (note,) = self.notes()

        assert "BLEU ceiling of held-out is " in note

    def test_a_missing_file_is_left_to_other_notes(self):
        self.replace_in_params("news.no", "news.no.gz")

        assert self.notes() == []

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            pytest.param(
                gzip.compress(b"a\n" * 4)[:-9],
                "corpora.own: inputs/news.no.gz: ",
                id="the end of the file is missing",
            ),
            pytest.param(
                gzip.compress("ä\n".encode("latin-1") * 4),
                "corpora.own: inputs/news.no.gz:1: byte 1 ",
                id="Latin-1 instead of UTF-8",
            ),
        ],
    )
    def test_a_file_that_cannot_be_read_is_noted_in_one_line(self, content, message):
        """`bleuprint check` should report a damaged file, and not end with a traceback."""
        self.replace_in_params("news.no", "news.no.gz")
        Path("inputs/news.no.gz").write_bytes(content)

        (note,) = self.notes()

        assert note.startswith(message)
        assert "\n" not in note

    def test_files_with_different_numbers_of_lines_are_noted(self):
        """The source of the test set has four lines, as REFERENCES have."""
        self.replace_in_params("news.no", "news.no.gz")
        three_lines = gzip.compress(b"a\n" * 3)
        Path("inputs/news.no.gz").write_bytes(three_lines)

        (note,) = self.notes()

        assert "not parallel" in note

    def test_lines_without_text_have_a_ceiling_of_0(self):
        """BLEU counts sequences of four tokens, and these lines have no token at all."""
        zero_width_space = "\u200b"
        self.write_inputs(["", " ", zero_width_space])

        (note,) = self.notes()

        assert " is 0.0 (line length -100.0): BLEU needs lines of four tokens or more; " in note

    def test_only_the_first_lines_are_read(self, monkeypatch):
        """`bleuprint check` must be quick, so it estimates the ceiling from a part of the lines.

        Lowercasing changes the last four lines alone: with a limit of four, there is nothing to
        note.
        """
        self.write_inputs(["one two three four five"] * 4 + ["One Two Three Four Five"] * 4)
        self.replace_in_params("lowercase: false", "lowercase: true")

        notes_on_eight_lines = self.notes()
        monkeypatch.setattr(bleu_ceiling, "_SAMPLED_LINES", 4)
        notes_on_four_lines = self.notes()

        assert len(notes_on_eight_lines) == 1
        assert notes_on_four_lines == []
