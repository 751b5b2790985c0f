"""What `check`, `inspect` and `new-corpus` say of text that does not look like sentences."""

import json

import pytest

from bleuprint.config import paths
from bleuprint.config.experiment import load_settings
from bleuprint.corpus import phrasebook
from bleuprint.corpus.download.download import Sample
from bleuprint.corpus.download.fetch import Downloads
from bleuprint.corpus.inspect import inspect_corpus
from bleuprint.corpus.new_corpus import NewCorpus
from bleuprint.corpus.text_notes import notes_on_local_texts
from bleuprint.text.parallel import TextFolder
from corpora import write_set
from params import PARAMS

GERMAN, ENGLISH = (list(phrasebook.sentences("train", side))[:200] for side in ("de", "en"))
SUBWORDS = [line.replace("e", "e@@ ", 1) for line in GERMAN]
JSON_LINES = [json.dumps({"text": line}) for line in ENGLISH]
FILES = "source: {path: inputs/a.de}, target: {path: inputs/a.no}"
VALID = f"{{a: {{license_and_citation: own, {FILES}}}}}".replace("a.", "valid.")
TEST = f"{{news: {{a: {{license_and_citation: own, {FILES}}}}}}}".replace("a.", "news.")
ALL_SETS = PARAMS.replace("valid: {}", f"valid: {VALID}").replace("tests: {}", f"tests: {TEST}")
JOIN = "join the subwords first: sed -E 's/@@( |$)//g'"
ALONE = "write the sentences alone, one per line"


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DVC_ROOT", raising=False)
    for name in ("a", "valid", "news"):
        write_set(
            TextFolder(tmp_path / "inputs", "de", "no"), name, zip(GERMAN, ENGLISH, strict=True)
        )
    (tmp_path / "params.yaml").write_text(ALL_SETS)
    return tmp_path


def write(project, name, lines):
    (project / "inputs" / name).write_text("".join(f"{line}\n" for line in lines), "utf-8")


@pytest.mark.usefixtures("project")
def test_sentences_get_no_note():
    assert list(notes_on_local_texts(load_settings())) == []


def test_each_side_of_each_set_is_named(project):
    write(project, "a.de", [*GERMAN[:3], *SUBWORDS[3:]])
    write(project, "valid.no", JSON_LINES)
    write(project, "news.no", JSON_LINES[:100] + ENGLISH[100:])
    share = sum("e@@ " in line for line in SUBWORDS[3:]) / 200
    first = next(n for n, line in enumerate(SUBWORDS, 1) if n > 3 and "e@@ " in line)
    assert 0.9 < share < 0.995
    place = "corpora.own.files.train.a.source: inputs/a.de: "
    look = f"{share:.0%} of the lines look like BPE subwords (@@), such as line {first}: {JOIN}"
    assert list(notes_on_local_texts(load_settings())) == [
        f"{place}{look}",
        "corpora.own.files.valid.a.target: inputs/valid.no: "
        f"100% of the lines look like JSON, such as line 1: {ALONE}",
        "corpora.own.files.tests.news.a.target: inputs/news.no: "
        f"50% of the lines look like JSON, such as line 1: {ALONE}",
    ]


def test_a_file_that_is_not_here_or_damaged_is_left_to_others(project):
    (project / "inputs/a.no").unlink()
    (project / "inputs/valid.no").write_bytes(b"\xff\n" * 200)
    assert list(notes_on_local_texts(load_settings())) == []


def test_a_text_that_was_downloaded_before(project):
    url = "file: {url: 'https://example.org/a.de'}"
    text = ALL_SETS.replace("{path: inputs/a.de}", url.removeprefix("file: "))
    (project / "params.yaml").write_text(text)
    settings = load_settings()
    assert list(notes_on_local_texts(settings)) == []
    folder = TextFolder(paths.download_folder("own"), "de", "no")
    folder.path.mkdir(parents=True)
    write_set(folder, "train", zip(SUBWORDS, ENGLISH, strict=True))
    (note,) = notes_on_local_texts(settings)
    assert note.startswith(f"corpora.own.files.train.source: {folder.files('train')[0]}: ")


TOKENS = [line.replace("?", " ?").replace(".", " .").replace(",", " ,").lower() for line in GERMAN]


def test_a_corpus_in_tokens_by_its_settings_gets_no_note(project):
    write(project, "a.de", TOKENS)
    write(project, "a.no", ["&quot; " + line.lower() for line in ENGLISH])
    assert [note.split()[0] for note in notes_on_local_texts(load_settings())] == [
        "corpora.own.files.train.a.source:",
        "corpora.own.files.train.a.target:",
    ]
    none = ALL_SETS.replace("tokenize: {name: moses", "tokenize: {name: none")
    (project / "params.yaml").write_text(none)
    assert list(notes_on_local_texts(load_settings())) == []
    # SentencePiece reads sentences, and subwords are no tokens
    units = "vocabulary: {sentencepiece: {vocab_size: 300}}"
    bpe = "vocabulary: {bpe: {num_merges: 10, joint: true, threshold: 0}}"
    (project / "params.yaml").write_text(none.replace(bpe, units))
    assert len(list(notes_on_local_texts(load_settings()))) == 2
    (project / "params.yaml").write_text(none)
    write(project, "a.de", SUBWORDS)
    assert "BPE" in "".join(notes_on_local_texts(load_settings()))


def test_inspect_says_it_of_all_lines_though_it_draws_some(project):
    write(project, "a.de", SUBWORDS)
    write(project, "news.de", SUBWORDS)
    source = Downloads(None, project / "store", None)
    found = inspect_corpus("own", load_settings(), Sample(20, 1), source, project / "work", 1)
    places = [note.split(": ")[:2] for note in found.notes]
    assert places == [
        ["corpora.own.files.train.a.source", "inputs/a.de"],
        ["corpora.own.files.tests.news.a.source", "inputs/news.de"],
    ]


def test_new_corpus_says_it_of_its_files(project, capsys):
    write(project, "mine.de", SUBWORDS)
    write(project, "mine.en", JSON_LINES)
    NewCorpus.from_files([paths.Path("inputs/mine.de"), paths.Path("inputs/mine.en")], None)
    said = capsys.readouterr().err
    assert "note: inputs/mine.de: " in said
    assert f"look like BPE subwords (@@), such as line 1: {JOIN}" in said
    assert (
        f"note: inputs/mine.en: 100% of the lines look like JSON, such as line 1: {ALONE}" in said
    )
    table = [f"{source}\t{target}" for source, target in zip(SUBWORDS, ENGLISH, strict=True)]
    write(project, "mine.de-en.tsv", table)
    NewCorpus.from_files([paths.Path("inputs/mine.de-en.tsv")], None)
    assert "note: inputs/mine.de-en.tsv: source: " in capsys.readouterr().err
