"""The score stage: scores.json holds the scores of each file, and bad files are refused."""

import dataclasses
import math
import sys

import pytest

import processes
import result_trees as trees
from bleuprint.config.paths import Run, corpus_folder
from bleuprint.corpus.test_sets import SetDescription
from bleuprint.decoding.translation_record import ReferenceLoss
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.json_files import read_json
from bleuprint.runtime.regular_files import sha256_of
from bleuprint.scoring import score
from bleuprint.scoring.bleu_variants import TOKENS
from bleuprint.scoring.metric import TranslatedSet
from bleuprint.scoring.metrics import METRICS
from measuring import SACREBLEU, measure, measure_documents, translated_set, value_of
from root import ROOT
from scoring import SEPARATORS, example_texts, sacrebleu

STAGE = ROOT / "stages" / "score.py"


def score_lines(root, references, hypotheses, corpus, loss=None):
    """Score files that hold these lines.

    The references are their own sources. Their lengths are 5 and 25 tokens in turn, and the
    training text contains each word as often as the word has letters.

    Args:
        root: The folder for the files.
        references: The references.
        hypotheses: The translations.
        corpus: The settings of the corpus.
        loss: The loss of the references, if the translation measured it.
    """
    trees.write_lines(root / "references", references)
    trees.write_lines(root / "hypotheses", hypotheses)
    lengths = [5 + 20 * (line % 2) for line in range(len(references))]
    tokens = [" ".join(line.split()) for line in references]
    word_counts = {}
    for line in tokens:
        for word in line.split():
            word_counts[word] = len(word)
    description = SetDescription(lengths, tokens, word_counts, None)
    files = (root / "references", root / "references", root / "hypotheses")
    return score.score_files(*files, corpus, description, loss)


@pytest.fixture
def corpus(tmp_path):
    """Return a corpus into German whose tokens are separated by spaces."""
    corpus = trees.settings_in(tmp_path).corpus("news-en-de")
    return dataclasses.replace(corpus, tokenize=dataclasses.replace(corpus.tokenize, name="none"))


def by_metric_and_group(entries):
    """Return the entries of metrics by the names of metric and group; "" groups all lines."""
    return {(entry["metric"], entry["group"]): entry for entry in entries}


def groups_of(scores, metric):
    """Return the units and the value of each group of lines or words in a metric."""
    groups = {}
    for (name, group), entry in by_metric_and_group(scores["metrics"]).items():
        if name == metric and group:
            groups[group] = (entry["units"], entry["value"])
    return groups


class TestScoresOfAFile:
    """A German file of 60 lines."""

    @pytest.fixture(autouse=True)
    def scores(self, tmp_path, corpus):
        """Score the file."""
        self.root = tmp_path
        self.references, self.translations, _ = example_texts("de")
        self.scores = score_lines(tmp_path, self.references, self.translations, corpus)
        self.entries = by_metric_and_group(self.scores["metrics"])

    @pytest.mark.parametrize("metric", SACREBLEU)
    def test_a_score_of_the_file_equals_that_of_its_texts(self, corpus, metric):
        texts = translated_set(self.translations, self.references, "de", corpus=corpus)
        assert self.entries[metric, ""] == measure(metric, texts)

    def test_every_metric_that_needs_nothing_but_the_texts_is_computed(self):
        """The test set has no documents, and its translations neither a loss nor cut-off lines."""
        by_another_stage = {"comet"}
        need_documents = {"dbleu"}
        need_a_loss = {"loss", "perplexity", "word_perplexity"}
        need_cut_off_lines = {"cut off"}
        not_computed = by_another_stage | need_documents | need_a_loss | need_cut_off_lines

        computed = {metric for metric, group in self.entries if not group}

        assert computed == set(METRICS) - not_computed

    def test_bleu_is_scored_by_length(self):
        """The lines have 5 and 25 tokens in turn."""
        assert set(groups_of(self.scores, "bleu")) == {"length 1-10", "length 21-30"}

    def test_the_scores_name_their_files_by_hash_and_count_the_lines(self):
        assert self.scores["lines"] == 60
        assert self.scores["sources"] == sha256_of(self.root / "references")
        assert self.scores["references"] == sha256_of(self.root / "references")
        assert self.scores["hypotheses"] == sha256_of(self.root / "hypotheses")


def test_word_accuracy_groups_words_by_their_count_in_the_training_text(tmp_path, corpus):
    """The helper counts each word as often as it has letters: "a" once, "Hund" four times.

    A group has the number of its words in the references, and the percentage that is translated.
    """
    references = ["Ein Haus, a Hund"]
    translations = ["ein Haus, a Hund."]

    scores = score_lines(tmp_path, references, translations, corpus)

    assert groups_of(scores, "word_accuracy") == {
        "count 1": (1, 100.0),  # "a" is translated
        "count 2-4": (2, 0.0),  # "Ein" and "Hund" are not: the tokens are "ein" and "Hund."
        "count 5-9": (1, 100.0),  # "Haus," is translated
    }


def test_word_accuracy_ignores_case_if_the_tokens_are_lowercased(tmp_path, corpus):
    """A system with lower-cased text cannot learn when a word is written with a capital letter.

    Both words of the reference have two to four letters, and the helper counts a word as often as
    it has letters.
    """
    lowercased_tokens = dataclasses.replace(corpus.tokenize, lowercase=True)
    corpus = dataclasses.replace(corpus, tokenize=lowercased_tokens)

    scores = score_lines(tmp_path, ["ein haus"], ["Ein Haus"], corpus)

    assert groups_of(scores, "word_accuracy") == {"count 2-4": (2, 100.0)}


class TestTargetLanguage:
    """Thai, whose characters would be the units of BLEU, to French, whose elisions are tokens."""

    @pytest.fixture(autouse=True)
    def french_scores(self, corpus):
        """Score French lines; the sources do not matter and are the translations."""
        moses = dataclasses.replace(corpus.tokenize, name="moses")
        french = dataclasses.replace(corpus, source="th", target="fr", tokenize=moses)
        self.translations = ["l'eau d'un lac est froide"] * 2
        self.references = ["l'eau d'un puits est froide"] * 2
        # The tokens of Moses: an elision is a token.
        self.reference_tokens = ["l' eau d' un puits est froide"] * 2
        self.translation_tokens = ["l' eau d' un lac est froide"] * 2
        self.texts = translated_set(self.translations, self.references, "fr", ["a", "b"])
        description = SetDescription([5, 15], self.reference_tokens, None, ["a", "b"])
        scored_texts = TranslatedSet(
            self.translations, self.references, self.translations, french, description
        )
        self.entries = by_metric_and_group(score.score_test_set(scored_texts))

    def test_bleu_is_computed_in_the_target_language(self):
        assert self.entries["bleu", ""] == measure("bleu", self.texts)

    def test_bleu_of_documents_is_computed_in_the_target_language(self):
        assert self.entries["bleu", "document"] == measure_documents("bleu", self.texts)

    def test_dbleu_is_computed_in_the_target_language(self):
        assert self.entries["dbleu", "document"] == measure("dbleu", self.texts)

    def test_bleu_of_tokens_uses_the_tokenizer_of_the_target_language(self):
        tokens = translated_set(self.translation_tokens, self.reference_tokens, "fr")
        assert self.entries[TOKENS, ""]["value"] == measure(TOKENS, tokens)["value"]


def test_bleu_of_tokens_equals_sacrebleus_score_of_the_corpuss_tokens(tmp_path, corpus):
    """Some papers compute BLEU on the tokens of their system: here lower-cased characters.

    SacreBLEU gets files in which spaces separate these tokens, and ▁ stands for a space.
    """
    characters = dataclasses.replace(corpus.tokenize, name="characters", lowercase=True)
    corpus = dataclasses.replace(corpus, tokenize=characters)
    references, translations, _ = example_texts("de", lines=60)
    reference_tokens = [" ".join(line.lower().replace(" ", "▁")) for line in references]
    translation_tokens = [" ".join(line.lower().replace(" ", "▁")) for line in translations]
    trees.write_lines(tmp_path / "references", references)
    trees.write_lines(tmp_path / "hypotheses", translations)
    trees.write_lines(tmp_path / "reference_tokens", reference_tokens)
    trees.write_lines(tmp_path / "translation_tokens", translation_tokens)

    description = SetDescription([3] * 60, reference_tokens, None, None)
    files = (tmp_path / "references", tmp_path / "references", tmp_path / "hypotheses")
    scores = score.score_files(*files, corpus, description, None)
    ours = by_metric_and_group(scores["metrics"])[TOKENS, ""]

    options = ("--tokenize", "none", "-i", tmp_path / "translation_tokens")
    expected = sacrebleu(tmp_path / "reference_tokens", *options)
    assert ours["value"] == expected["score"]
    assert ours["signature"] == expected["signature"]
    assert 0 < ours["value"] < 100


class TestReferenceLoss:
    """Two lines of seven words in six tokens; ends of lines count as words and as tokens."""

    lines = ("Ein Haus, das brennt.", "Zwei  Hunde laufen")

    def test_the_loss_of_a_token_is_the_mean_over_tokens(self, tmp_path, corpus):
        """The loss of the references is summed over their six tokens: 9 nats."""
        loss = ReferenceLoss(nats=9.0, tokens=6)

        scores = score_lines(tmp_path, self.lines, self.lines, corpus, loss)

        assert value_of(scores, "loss") == 9.0 / 6

    def test_perplexities_are_exponentials_of_the_loss_of_a_token_and_of_a_word(
        self, tmp_path, corpus
    ):
        """The loss of the references is 9 nats: 1.5 for each of six tokens, 1.0 for each word.

        They are two lines of seven words together; the end of a line counts as a word.
        """
        words = 7 + 2
        loss = ReferenceLoss(nats=9.0, tokens=6)

        scores = score_lines(tmp_path, self.lines, self.lines, corpus, loss)

        assert value_of(scores, "perplexity") == round(math.exp(9.0 / 6), 6)
        assert value_of(scores, "word_perplexity") == round(math.exp(9.0 / words), 6)

    def test_there_is_no_loss_if_the_translation_measured_none(self, tmp_path, corpus):
        scores = score_lines(tmp_path, self.lines, self.lines, corpus, loss=None)

        assert value_of(scores, "loss") is None

    def test_a_diverged_model_has_a_finite_perplexity(self, tmp_path, corpus):
        """exp(1.5e9) is greater than any floating-point number; a large number replaces it."""
        loss = ReferenceLoss(nats=9e9, tokens=6)

        scores = score_lines(tmp_path, self.lines, self.lines, corpus, loss)

        assert value_of(scores, "loss") == 9e9 / 6
        perplexity = value_of(scores, "perplexity")
        assert perplexity is not None
        assert 1e300 < perplexity < math.inf


@pytest.mark.parametrize("separator", SEPARATORS)
def test_unicode_separators_do_not_end_a_line(tmp_path, corpus, separator):
    """Python's `splitlines` ends lines at these characters; scores end them at newlines only.

    The translations have a space in place of the separator, which is the same for sacreBLEU. So the
    score is 100 if each line is compared with its own reference.
    """
    references = [f"the sentence {separator} number {line} is short" for line in range(20)]
    translations = [line.replace(separator, " ") for line in references]

    scores = score_lines(tmp_path, references, translations, corpus)

    assert scores["lines"] == 20
    assert value_of(scores, "bleu") == 100
    assert value_of(scores, "chrf2") == 100


@pytest.mark.parametrize("separator", SEPARATORS)
def test_translations_shifted_by_a_line_score_less(tmp_path, corpus, separator):
    """Neighboring lines differ in their number only, so a file that is shifted looks correct.

    Each translation is compared with the reference of the line before, and must not score 100.
    """
    references = [f"the sentence {separator} number {line} is short" for line in range(20)]
    shifted = [*references[1:], references[0]]

    scores = score_lines(tmp_path, references, shifted, corpus)

    assert (value_of(scores, "bleu") or 0) < 90


RUN = Run("tiny", "news-en-de", 1)


@pytest.fixture
def unscored_run(tmp_path):
    """Write a run of 40 lines a test set; its scores are in expected.json, not in scores.json."""
    settings = trees.settings_in(tmp_path)
    trees.write_texts(tmp_path, settings, 40)
    trees.write_run(tmp_path, settings, RUN, 0.3)
    (tmp_path / RUN.results_folder / "scores.json").rename(tmp_path / "expected.json")
    return tmp_path / RUN.results_folder


def check_refused(root, message, run=RUN):
    """Check that a run is not scored and that the error matches a regular expression."""
    with pytest.raises((UserError, FileNotFoundError), match=message):
        score.score_run(trees.settings_in(root), *run, root)
    assert not (root / run.results_folder / "scores.json").exists()


def test_the_stage_writes_the_scores_of_all_test_sets(unscored_run, tmp_path):
    """The stage runs as DVC runs it: as a program with the system, the corpus and the seed.

    The scores that it should write are in expected.json; they were computed within the test.
    """
    command = [sys.executable, str(STAGE), "tiny", "news-en-de", "1"]

    finished = processes.run_text(command, tmp_path)

    assert finished.stderr == ""
    assert finished.returncode == 0
    expected = (tmp_path / "expected.json").read_bytes()
    assert (unscored_run / "scores.json").read_bytes() == expected
    assert list(read_json(unscored_run / "scores.json")) == ["first", "second"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(
            b"one\n" * 39,
            "first.de has 40 lines and .* has 39: not parallel",
            id="a line too few",
        ),
        pytest.param(
            b"one\n" * 7 + b"ab\xff\n" + b"one\n" * 32,
            "test.first.de:8: byte 3 of the line is 0xff",
            id="a line that is not UTF-8",
        ),
    ],
)
def test_a_damaged_file_of_translations_is_refused(unscored_run, tmp_path, content, message):
    (unscored_run / "hypotheses" / "test.first.de").write_bytes(content)

    check_refused(tmp_path, message)


def test_a_missing_file_of_translations_is_refused(unscored_run, tmp_path):
    (unscored_run / "hypotheses" / "test.first.de").unlink()

    check_refused(tmp_path, "test.first.de")


@pytest.mark.usefixtures("unscored_run")
def test_an_unknown_system_is_refused(tmp_path):
    check_refused(tmp_path, "no systems entry 'tny'", RUN._replace(system="tny"))


@pytest.mark.usefixtures("unscored_run")
def test_an_unknown_seed_is_refused(tmp_path):
    check_refused(tmp_path, "no seed 2; there are: 1", RUN._replace(seed=2))


def test_a_corpus_without_word_counts_has_no_word_accuracy(tmp_path, corpus):
    """If tokens are characters, the words of the training text are not counted."""
    trees.write_lines(tmp_path / "text", ["a b"])
    word_counts = None
    description = SetDescription([3], ["a ▁ b"], word_counts, None)
    files = [tmp_path / "text"] * 3  # sources, references and translations

    scores = score.score_files(*files, corpus, description, None)

    assert groups_of(scores, "word_accuracy") == {}
    assert value_of(scores, "chrf2") == 100


@pytest.mark.usefixtures("unscored_run")
def test_a_missing_description_of_a_test_set_is_named(tmp_path):
    path = corpus_folder("news-en-de", "test_stats", tmp_path) / "first.json"
    path.unlink()

    check_refused(tmp_path, f"{path}")
