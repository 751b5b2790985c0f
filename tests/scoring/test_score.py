"""The score stage: scores.json holds the scores of each file, and bad files are refused."""

import dataclasses
import sys

import pytest

import processes
import result_trees as trees
from bleuprint.config.paths import Run, corpus_folder
from bleuprint.corpus.test_sets import SetDescription
from bleuprint.decoding.translation_record import ReferenceLoss
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import read_json, sha256_of
from bleuprint.scoring import score
from bleuprint.scoring.bleu_variants import TOKENS
from bleuprint.scoring.metric import Texts
from bleuprint.scoring.metrics import METRICS
from measuring import SACREBLEU, measure, of_documents, texts_of, value_of
from root import ROOT
from scoring import SEPARATORS, sacrebleu, text

STAGE = ROOT / "stages" / "score.py"


def score_lines(root, references, hypotheses, corpus, loss=None):
    """Scores of files that hold these lines; the references are their own sources."""
    for name, lines in (("references", references), ("hypotheses", hypotheses)):
        trees.write_lines(root / name, lines)
    lengths = [5 + i % 2 * 20 for i in range(len(references))]
    tokens = [" ".join(line.split()) for line in references]
    counts = {word: len(word) for line in tokens for word in line.split()}
    described = SetDescription(lengths, tokens, counts, None)
    files = root / "references", root / "references", root / "hypotheses"
    return score.score_files(*files, corpus, described, loss)


@pytest.fixture
def corpus(tmp_path):
    """A corpus into German; its tokens are separated by spaces."""
    corpus = trees.settings_in(tmp_path).corpus("news-en-de")
    return dataclasses.replace(corpus, tokenize=dataclasses.replace(corpus.tokenize, name="none"))


def by_key(scores):
    return {(each["metric"], each["group"]): each for each in scores["metrics"]}


def groups(scores, key):
    """Units and value of a metric by bucket."""
    return {
        group: (each["units"], each["value"])
        for (name, group), each in by_key(scores).items()
        if name == key and group
    }


def test_all_scores_of_a_file(tmp_path, corpus):
    references, good, _ = text("de")
    found = score_lines(tmp_path, references, good, corpus)
    assert found["lines"] == 60
    texts = texts_of(good, references, "de", corpus=corpus)
    for key in SACREBLEU:
        assert by_key(found)[key, ""] == measure(key, texts)
    left_out = {"comet", "dbleu", "loss", "perplexity", "word_perplexity", "cut off"}
    assert {key for key, group in by_key(found) if not group} == {*METRICS} - left_out
    assert {*groups(found, "bleu")} == {"length 1-10", "length 21-30"}
    assert found["references"] == found["sources"] == sha256_of(tmp_path / "references")
    assert found["hypotheses"] == sha256_of(tmp_path / "hypotheses")


def test_words_are_those_of_the_corpuss_tokenizer(tmp_path, corpus):
    # the words are counted as often as they have letters, by `score_lines`
    references, hypotheses = ["Ein Haus, a Hund"], ["ein Haus, a Hund."]
    assert groups(score_lines(tmp_path, references, hypotheses, corpus), "word_accuracy") == {
        "count 1": (1, 100.0),
        "count 2-4": (2, 0.0),
        "count 5-9": (1, 100.0),
    }
    lowered = dataclasses.replace(corpus.tokenize, lowercase=True)
    lower = dataclasses.replace(corpus, tokenize=lowered)
    found = score_lines(tmp_path, ["ein haus"], ["Ein Haus"], lower)
    assert groups(found, "word_accuracy") == {"count 2-4": (2, 100.0)}


def test_all_is_scored_in_the_target_language(corpus):
    """From Thai, of which characters would be scored, to French, whose elisions are tokens."""
    moses = dataclasses.replace(corpus.tokenize, name="moses")
    french = dataclasses.replace(corpus, source="th", target="fr", tokenize=moses)
    lines, references = ["l'eau d'un lac est froide"] * 2, ["l'eau d'un puits est froide"] * 2
    tokens = [line.replace("'", "' ") for line in references]
    described = SetDescription([5, 15], tokens, None, ["a", "b"])
    found = {
        (each["metric"], each["group"]): each
        for each in score.score_texts(Texts(lines, references, lines, french, described))
    }
    texts = texts_of(lines, references, "fr", ["a", "b"])
    assert found["bleu", ""] == measure("bleu", texts)
    assert found["bleu", "document"] == of_documents("bleu", texts)
    assert found["dbleu", "document"] == measure("dbleu", texts)
    own = texts_of([line.replace("'", "' ") for line in lines], tokens, "fr")
    assert found[TOKENS, ""]["value"] == measure(TOKENS, own)["value"]


def test_tokens_are_the_corpuss_own(tmp_path, corpus):
    """The file of tokens, and the translation by the tokenizer: equal to sacreBLEU's on both."""
    characters = dataclasses.replace(
        corpus, tokenize=dataclasses.replace(corpus.tokenize, name="characters", lowercase=True)
    )
    references, good, _ = text("de")
    tokens = [" ".join(line.lower().replace(" ", "▁")) for line in references]
    for name, lines in (("references", references), ("hypotheses", good), ("tokens", tokens)):
        trees.write_lines(tmp_path / name, lines)
    described = SetDescription([3] * 60, tokens, None, None)
    files = tmp_path / "references", tmp_path / "references", tmp_path / "hypotheses"
    ours = by_key(score.score_files(*files, characters, described, None))[TOKENS, ""]
    trees.write_lines(tmp_path / "own", [" ".join(g.lower().replace(" ", "▁")) for g in good])
    theirs = sacrebleu(tmp_path / "tokens", "--tokenize", "none", "-i", tmp_path / "own")
    assert (ours["value"], ours["signature"]) == (theirs["score"], theirs["signature"])
    assert 0 < ours["value"] < 100


def test_loss_per_token_and_per_word(tmp_path, corpus):
    # 7 words and 2 ends of sentence
    lines, loss = ["Ein Haus, das brennt.", "Zwei  Hunde laufen"], ReferenceLoss(nats=9.0, tokens=6)
    found = score_lines(tmp_path, lines, lines, corpus, loss)
    assert value_of(found, "loss") == 1.5
    assert value_of(found, "perplexity") == 4.481689
    assert value_of(found, "word_perplexity") == 2.718282
    assert value_of(score_lines(tmp_path, lines, lines, corpus), "loss") is None
    diverged = score_lines(tmp_path, lines, lines, corpus, ReferenceLoss(nats=9e9, tokens=6))
    assert value_of(diverged, "loss") == 1.5e9
    assert (value_of(diverged, "perplexity") or 0) > 1e300


@pytest.mark.parametrize("separator", SEPARATORS)
def test_a_line_ends_at_newline_only(tmp_path, corpus, separator):
    references = [f"the sentence {separator} number {i} is short" for i in range(20)]
    # sacreBLEU takes every one of the separators for a space between words.
    spaced = [line.replace(separator, " ") for line in references]
    ours = score_lines(tmp_path, references, spaced, corpus)
    assert ours["lines"] == 20
    assert value_of(ours, "bleu") == value_of(ours, "chrf2") == 100
    # The same shifted by a line is wrong: the lines are held in order.
    shifted = score_lines(tmp_path, references, [*references[1:], references[0]], corpus)
    assert (value_of(shifted, "bleu") or 0) < 90


RUN = Run("tiny", "news-en-de", 1)


@pytest.fixture
def run(tmp_path):
    """The results of a run, without its scores."""
    settings = trees.settings_in(tmp_path)
    trees.write_texts(tmp_path, settings, 40)
    trees.write_run(tmp_path, settings, RUN, 0.3)
    (tmp_path / RUN.results_folder / "scores.json").rename(tmp_path / "expected.json")
    return tmp_path / RUN.results_folder


def fails(root, message, run=RUN):
    with pytest.raises((UserError, FileNotFoundError), match=message):
        score.score_run(trees.settings_in(root), *run, root)
    assert not (root / run.results_folder / "scores.json").exists()


def test_the_stage_writes_the_scores_of_all_test_sets(run, tmp_path):
    done = processes.run_text([sys.executable, str(STAGE), "tiny", "news-en-de", "1"], tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert (run / "scores.json").read_bytes() == (tmp_path / "expected.json").read_bytes()
    assert list(read_json(run / "scores.json")) == ["first", "second"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"one\n" * 39, "first.de has 40 lines and .* has 39: not parallel"),
        (b"one\n" * 7 + b"ab\xff\n" + b"one\n" * 32, "test.first.de:8: byte 3 of the line is 0xff"),
        (None, "test.first.de"),
    ],
)
def test_bad_translations(run, tmp_path, content, message):
    (file := run / "hypotheses" / "test.first.de").unlink()
    if content is not None:
        file.write_bytes(content)
    fails(tmp_path, message)


@pytest.mark.usefixtures("run")
def test_an_unknown_run(tmp_path):
    fails(tmp_path, "no systems entry 'tny'", RUN._replace(system="tny"))
    fails(tmp_path, "no seed 2; there are: 1", RUN._replace(seed=2))


def test_a_corpus_without_frequencies_has_no_word_accuracy(tmp_path, corpus):
    """Of tokens that are characters, the training text has no counts of words."""
    trees.write_lines(tmp_path / "text", ["a b"])
    described = SetDescription([3], ["a ▁ b"], None, None)
    found = score.score_files(*[tmp_path / "text"] * 3, corpus, described, None)
    assert groups(found, "word_accuracy") == {}
    assert value_of(found, "chrf2") == 100


@pytest.mark.usefixtures("run")
def test_a_test_set_that_is_not_described_is_named(tmp_path):
    path = corpus_folder("news-en-de", "test_stats", tmp_path) / "first.json"
    path.unlink()
    fails(tmp_path, f"{path}")
