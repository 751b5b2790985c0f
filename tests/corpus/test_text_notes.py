"""`check`, `inspect` and `new-corpus` write a note on text that does not look like sentences."""

import json
from pathlib import Path

import pytest

from bleuprint.config import paths
from bleuprint.config.experiment import load_settings
from bleuprint.corpus.download.download import Sample
from bleuprint.corpus.download.fetch import Downloads
from bleuprint.corpus.inspect import inspect_corpus
from bleuprint.corpus.new_corpus import NewCorpus
from bleuprint.corpus.text_notes import notes_on_local_texts
from bleuprint.text.parallel import TextFolder
from corpora import lines_to_text, phrasebook_sentences, write_set
from params import PARAMS

# 200 sentences each, and the same sentences in forms that are not sentences.
GERMAN_SENTENCES = phrasebook_sentences("de", 200)
ENGLISH_SENTENCES = phrasebook_sentences("en", 200)
GERMAN_SUBWORDS = [f"{line[:-2]}@@ {line[-2:]}" for line in GERMAN_SENTENCES]
ENGLISH_JSON = [json.dumps({"text": line}) for line in ENGLISH_SENTENCES]
GERMAN_TOKENS = [
    line.replace("?", " ?").replace(".", " .").replace(",", " ,").lower()
    for line in GERMAN_SENTENCES
]
# What moses writes with `escape`: entities for quotation marks.
ENGLISH_TOKENS = [f"&quot; {line.lower()}" for line in ENGLISH_SENTENCES]


def params_with_all_sets():
    """Return a params.yaml with a text a for training, valid for validation and news for testing.

    Their files are in inputs/, such as inputs/a.de and inputs/a.no.
    """
    text = (
        "{{a: {{license_and_citation: own, source: {{path: inputs/{name}.de}}, "
        "target: {{path: inputs/{name}.no}}}}}}"
    )
    valid = text.format(name="valid")
    news = text.format(name="news")
    params = PARAMS.replace("valid: {}", f"valid: {valid}")
    return params.replace("tests: {}", f"tests: {{news: {news}}}")


@pytest.fixture
def project(tmp_path, monkeypatch):
    """The folder of a project with three sets of sentences in inputs/; the current folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DVC_ROOT", raising=False)
    pairs = list(zip(GERMAN_SENTENCES, ENGLISH_SENTENCES, strict=True))
    for name in ("a", "valid", "news"):
        write_set(TextFolder(tmp_path / "inputs", "de", "no"), name, pairs)
    (tmp_path / "params.yaml").write_text(params_with_all_sets())
    return tmp_path


def write_input(project, name, lines):
    """Write a file of inputs/."""
    path = project / "inputs" / name
    path.write_text(lines_to_text(lines), encoding="utf-8")


@pytest.mark.usefixtures("project")
def test_sentences_get_no_note():
    assert list(notes_on_local_texts(load_settings())) == []


def test_a_note_names_the_text_the_file_the_share_of_lines_and_what_to_do(project):
    """Each file has 200 lines: 20 are sentences in a.de, none in valid.no, and 100 in news.no.

    The other lines are BPE subwords or JSON objects, on which a model should not be trained.
    """
    write_input(project, "a.de", GERMAN_SENTENCES[:20] + GERMAN_SUBWORDS[20:])
    write_input(project, "valid.no", ENGLISH_JSON)
    write_input(project, "news.no", ENGLISH_JSON[:100] + ENGLISH_SENTENCES[100:])

    notes = list(notes_on_local_texts(load_settings()))

    assert notes == [
        "corpora.own.files.train.a.source: inputs/a.de: 90% of the lines look like BPE subwords "
        "(@@), such as line 21. Join the subwords first: sed -E 's/@@( |$)//g'",
        "corpora.own.files.valid.a.target: inputs/valid.no: 100% of the lines look like JSON, such "
        "as line 1. Write the sentences alone, one per line",
        "corpora.own.files.tests.news.a.target: inputs/news.no: 50% of the lines look like JSON, "
        "such as line 1. Write the sentences alone, one per line",
    ]


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param("columns: [de, no]", id="named columns"),
        pytest.param("columns: [1, 2], score: {column: s, min: 0.5}", id="scores"),
    ],
)
def test_a_note_on_a_table_counts_pairs_if_the_table_has_other_lines(project, settings):
    """The first line of the table is a header, so pair 21 is line 22."""
    sources = GERMAN_SENTENCES[:20] + GERMAN_SUBWORDS[20:]
    rows = ["de\tno\ts"]
    rows += [f"{row[0]}\t{row[1]}\t1" for row in zip(sources, ENGLISH_SENTENCES, strict=True)]
    write_input(project, "a.tsv", rows)
    params = params_with_all_sets().replace(
        "source: {path: inputs/a.de}, target: {path: inputs/a.no}",
        f"format: tsv, both: {{path: inputs/a.tsv}}, {settings}",
    )
    (project / "params.yaml").write_text(params)

    (note,) = notes_on_local_texts(load_settings())

    assert "90% of the pairs look like BPE subwords (@@), such as pair 21. " in note


def test_missing_and_damaged_files_get_no_note(project):
    """Other checks report them; these notes are on what files contain."""
    (project / "inputs" / "a.no").unlink()
    (project / "inputs" / "valid.no").write_bytes(b"\xff\n" * 200)  # Not UTF-8.

    assert list(notes_on_local_texts(load_settings())) == []


def test_a_text_with_a_url_gets_a_note_once_it_was_downloaded(project):
    """The German text consists of BPE subwords, which is seen only after the download."""
    params = params_with_all_sets()
    params = params.replace("{path: inputs/a.de}", "{url: 'https://example.org/a.de'}")
    (project / "params.yaml").write_text(params)
    settings = load_settings()

    notes_before_download = list(notes_on_local_texts(settings))
    # Write what the stage download would have written.
    downloaded = TextFolder(paths.download_folder("own"), "de", "no")
    pairs = zip(GERMAN_SUBWORDS, ENGLISH_SENTENCES, strict=True)
    write_set(downloaded, "train", pairs)
    notes = list(notes_on_local_texts(settings))

    assert notes_before_download == []
    german_path, _ = downloaded.files("train")
    assert len(notes) == 1
    assert notes[0].startswith(f"corpora.own.files.train.source: {german_path}: ")


@pytest.mark.parametrize(
    ("tokenizer", "vocabulary"),
    [
        pytest.param("moses", "bpe: {num_merges: 10}", id="moses would tokenize tokens"),
        pytest.param(
            "none", "sentencepiece: {vocab_size: 300}", id="SentencePiece reads sentences"
        ),
    ],
)
def test_text_in_tokens_gets_a_note_if_the_settings_expect_sentences(
    project, tokenizer, vocabulary
):
    """GERMAN_TOKENS and ENGLISH_TOKENS are lowercase lines with spaces before punctuation."""
    write_input(project, "a.de", GERMAN_TOKENS)
    write_input(project, "a.no", ENGLISH_TOKENS)
    write_tokenizer_and_vocabulary(project, tokenizer, vocabulary)

    notes = list(notes_on_local_texts(load_settings()))

    places = [note.split()[0] for note in notes]
    assert places == ["corpora.own.files.train.a.source:", "corpora.own.files.train.a.target:"]


def test_text_in_tokens_gets_no_note_if_the_settings_expect_tokens(project):
    """With the tokenizer `none`, lines with spaces before punctuation are what is expected."""
    write_input(project, "a.de", GERMAN_TOKENS)
    write_input(project, "a.no", ENGLISH_TOKENS)
    write_tokenizer_and_vocabulary(project, "none", "bpe: {num_merges: 10}")

    assert list(notes_on_local_texts(load_settings())) == []


def test_text_with_entities_gets_no_note_if_its_own_rules_decode_them(project):
    """The training text a is a part with the rule `entities`, which its corpus does not have."""
    write_input(project, "a.no", [f"&quot;{line}&quot;" for line in ENGLISH_SENTENCES])
    (note,) = notes_on_local_texts(load_settings())
    assert "HTML entities" in note

    params = (project / "params.yaml").read_text()
    part = "parts: {a: {clean: {entities: {}}}}\n"
    (project / "params.yaml").write_text(part + params)

    assert list(notes_on_local_texts(load_settings())) == []


def test_text_in_subwords_gets_a_note_even_if_the_settings_expect_tokens(project):
    """The German text has BPE subwords, such as "Kat@@ ze", which are not whole tokens."""
    write_input(project, "a.de", GERMAN_SUBWORDS)
    write_input(project, "a.no", ENGLISH_TOKENS)
    write_tokenizer_and_vocabulary(project, "none", "bpe: {num_merges: 10}")

    assert "BPE" in "".join(notes_on_local_texts(load_settings()))


def write_tokenizer_and_vocabulary(project, tokenizer, vocabulary):
    """Replace tokenizer and vocabulary in the project's params.yaml.

    Args:
        project: The folder of the project.
        tokenizer: The name of the tokenizer.
        vocabulary: The setting `vocabulary`, without its braces.
    """
    params = params_with_all_sets()
    params = params.replace("name: moses", f"name: {tokenizer}")
    params = params.replace("bpe: {num_merges: 10, joint: true, threshold: 0}", vocabulary)
    (project / "params.yaml").write_text(params)


def test_inspect_notes_every_text_although_it_draws_only_a_sample(project):
    """A training and a test file consist of BPE subwords; `bleuprint inspect` draws 20 pairs."""
    write_input(project, "a.de", GERMAN_SUBWORDS)
    write_input(project, "news.de", GERMAN_SUBWORDS)
    source = Downloads(None, project / "store", None)
    sample = Sample(pairs=20, seed=1)

    inspection = inspect_corpus("own", load_settings(), sample, source, project / "work", 1)

    # A note begins with the setting and the file.
    places = [note.split(": ")[:2] for note in inspection.notes]
    assert places == [
        ["corpora.own.files.train.a.source", "inputs/a.de"],
        ["corpora.own.files.tests.news.a.source", "inputs/news.de"],
    ]


def test_new_corpus_writes_notes_on_two_files(project, capsys):
    """The German file consists of BPE subwords, the English file of JSON objects."""
    write_input(project, "mine.de", GERMAN_SUBWORDS)
    write_input(project, "mine.en", ENGLISH_JSON)

    NewCorpus.from_files([Path("inputs/mine.de"), Path("inputs/mine.en")], None)

    errors = capsys.readouterr().err
    assert "note: inputs/mine.de: " in errors
    assert (
        "look like BPE subwords (@@), such as line 1. Join the subwords first: "
        "sed -E 's/@@( |$)//g'"
    ) in errors
    assert (
        "note: inputs/mine.en: 100% of the lines look like JSON, such as line 1. "
        "Write the sentences alone, one per line"
    ) in errors


def test_new_corpus_writes_a_note_on_a_column_of_a_table(project, capsys):
    """The first column of the table consists of BPE subwords."""
    pairs = zip(GERMAN_SUBWORDS, ENGLISH_SENTENCES, strict=True)
    write_input(project, "mine.de-en.tsv", [f"{german}\t{english}" for german, english in pairs])

    NewCorpus.from_files([Path("inputs/mine.de-en.tsv")], None)

    assert "note: inputs/mine.de-en.tsv: source: " in capsys.readouterr().err
