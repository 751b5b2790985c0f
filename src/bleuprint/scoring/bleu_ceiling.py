"""BLEU ceiling: the score of the references after all that happens to a system's output.

A system prints tokens of its vocabulary, detokenized. If `clean`, `tokenize` or the vocabulary
change a reference for good, even a perfect translation scores less than 100.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

from bleuprint.config import paths
from bleuprint.config.corpus import Corpus
from bleuprint.config.corpus_files import Text
from bleuprint.config.experiment import Settings
from bleuprint.corpus.download.download import read_text_pairs
from bleuprint.dataset.binarized import BinaryCorpus
from bleuprint.rules.rule import apply_edits
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.json_files import write_json
from bleuprint.runtime.schema import read_record
from bleuprint.runtime.unicode_paths import path_on_disk
from bleuprint.scoring.bleu import bleu_metric
from bleuprint.scoring.unspaced import lacks_spaces_for_bleu
from bleuprint.text.parallel import Pair, TextFolder, read_lines
from bleuprint.text.tokenizers import tokenizer_for

# The file in the folder of a corpus's statistics.
BLEU_CEILING = "bleu_ceiling.json"
# The steps that lower the score, in this order. Against themselves, references that are too short
# for 4-grams score less than 100.
LENGTH = "line length"
CLEAN = "clean"
TOKENIZE = "tokenize"
VOCABULARY = "vocabulary"
# A ceiling below it is reported.
_MIN_UNREPORTED = 99.5
# A step that loses fewer points is not named.
_MIN_LOST_POINTS = 0.1
# Lines of each test set that are read before anything has run.
_SAMPLED_LINES = 1000

# The settings that restore what each step loses.
_HELP = {
    LENGTH: "BLEU needs lines of four tokens or more; compare systems by chrF2",
    CLEAN: "leave the edit out, or edit the files of the test set, too",
    TOKENIZE: "tokenize.name none with vocabulary.sentencepiece restores all text",
    VOCABULARY: (
        "vocabulary.sentencepiece with byte_fallback true spells every character; with "
        "vocabulary.bpe, threshold 1 splits what the training text lacks"
    ),
}
_HELP_CASE = "BLEU is cased: tokenize.lowercase false keeps the case"
_HELP_SEGMENTED = (
    "; but filter.length and filter.length_ratio then count text without spaces as one word"
)

# BLEU after each step, 0 to 100, by the names of the steps.
Scores = Mapping[str, float]


def write_bleu_ceiling(corpus: Corpus, binary: BinaryCorpus, split: Path, path: Path) -> None:
    """Measure the BLEU ceiling of each test set of a corpus, and write it as JSON.

    The ceiling is the highest score that a system can reach. A system learns from cleaned text, and
    prints tokens of its vocabulary, joined to sentences. So the references are cleaned, tokenized,
    encoded by the vocabulary and joined again, and then scored against themselves. The score is
    below 100 if one of these steps changes a reference for good.

    Args:
        corpus: The settings of the corpus.
        binary: The binarized corpus.
        split: The folder of the test sets' text.
        path: The file to write.
    """
    texts = TextFolder(split, *corpus.languages)
    content = {}
    for set_name in binary.sets:
        if not set_name.startswith("test."):
            continue
        test = set_name.removeprefix("test.")
        pair = corpus.language_pair_of_test(test)
        _, reference_file = texts.files(set_name)
        references = list(read_lines(reference_file))
        has_test_files = set_name in corpus.files.set_names()
        texts_by_step = _texts_after_steps(references, pair, has_test_files)
        texts_by_step[VOCABULARY] = _decoded_references(binary, set_name, corpus.languages)
        content[test] = _score_steps(texts_by_step, pair.target)
    write_json(path, content)


def ceiling_notes(statistics: Path, corpus: str, tests: Iterable[str]) -> Iterator[str]:
    """Yield a note for each test set on which even a perfect translation scores less than 100 BLEU.

    The references themselves were scored after the steps that also change the output of a system,
    such as tokenizing and joining again.

    Args:
        statistics: The folder of the corpus's statistics, which contains the scores. Before they
            were computed, there are no notes.
        corpus: The name of the corpus.
        tests: The names of the test sets.
    """
    path = statistics / BLEU_CEILING
    if not path.exists():
        return
    scores_by_test = read_record(dict[str, Scores], path)
    for test in tests:
        scores = scores_by_test.get(test, {})
        if scores and lost_points(scores):
            yield (
                f"BLEU ceiling of {test} on {corpus}: {_describe_scores(scores)}. "
                "The references themselves score no more after all that happens to the output of "
                "a system trained here, so that a perfect translation does not reach 100. "
                f"To raise it: {_advice(scores)}."
            )


def ceiling_notes_before_run(settings: Settings) -> Iterator[str]:
    """Yield notes, before anything has run, on test sets on which no system can score 100 BLEU.

    To find them, the references are cleaned, tokenized and joined again, like the output of a
    system, and scored against themselves. Text without spaces, which BLEU cannot split into words,
    is noted, too. Only the first lines are read, of text that is on this machine. If params.yaml
    has no test sets, one will be drawn from the training text, which is read instead.
    """
    for name, corpus in settings.language_pairs().items():
        tests = corpus.files.tests
        if not tests:
            tests = {"held-out": corpus.files.parallel_sets()["train"]}
        for test, texts in tests.items():
            try:
                yield from _notes_on_test(name, corpus, test, texts.values())
            except UserError as error:
                # A file that cannot be read: the stage download will refuse it.
                yield f"corpora.{name}: {error}"


def _notes_on_test(name: str, corpus: Corpus, test: str, texts: Collection[Text]) -> Iterator[str]:
    """Yield a note if the references of a test set score low, and one if they lack spaces.

    Args:
        name: The name of the corpus.
        corpus: Its settings.
        test: The name of the test set.
        texts: The settings of its texts.

    Raises:
        UserError: A file cannot be read.
    """
    references = _sampled_references(name, corpus, test, texts)
    if references:
        ceiling = describe_low_ceiling(references, corpus, has_test_files=bool(corpus.files.tests))
        if ceiling is not None:
            yield f"corpora.{name}: BLEU ceiling of {test} is {ceiling}"
    if lacks_spaces_for_bleu(references, corpus.target):
        yield (
            f"corpora.{name}: {test} has hardly any spaces in {corpus.target!r}, at "
            "which BLEU (13a) splits words, so it will be near 0. Compare systems by chrF2"
        )


def describe_low_ceiling(
    references: Sequence[str], corpus: Corpus, has_test_files: bool
) -> str | None:
    """Describe what a perfect translation scores in BLEU, and which setting raises the score.

    For this, the references are cleaned, tokenized and joined again, like the output of a system,
    and scored against themselves.

    Args:
        references: The reference lines.
        corpus: The settings of the corpus.
        has_test_files: Whether the references come from a published test set, and not from the
            training text.

    Returns:
        The end of a message, `52.0 (tokenize -48.0): ...`; None if a perfect translation scores
        nearly 100.
    """
    texts_by_step = _texts_after_steps(references, corpus, has_test_files)
    scores = _score_steps(texts_by_step, corpus.target)
    points_by_step = lost_points(scores)
    if not points_by_step:
        return None
    step = _costliest_step(points_by_step)
    help_text = _HELP[step]
    if step == TOKENIZE and corpus.tokenize.lowercase:
        help_text = _HELP_CASE
    elif step == TOKENIZE and corpus.tokenize.name == "segmenter":
        help_text += _HELP_SEGMENTED
    return f"{_describe_scores(scores)}: {help_text}"


def lost_points(scores: Scores) -> dict[str, float]:
    """Return how many BLEU points each preparation step takes from the references.

    Unchanged references have 100 BLEU. A step that changes words for good, such as `clean` or the
    vocabulary, lowers the score that even a perfect translation can reach.

    Args:
        scores: BLEU of the references after each step, in the order of the steps.

    Returns:
        The lost points of each step that loses 0.1 or more; empty if the score after the last step
        is 99.5 or more.
    """
    previous_score = 100.0
    points_by_step = {}
    for step, score in scores.items():
        points = previous_score - score
        # Rounded: 100.0 - 99.9 is slightly less than 0.1.
        if round(points, 9) >= _MIN_LOST_POINTS:
            points_by_step[step] = points
        previous_score = score
    last_score = previous_score
    if last_score >= _MIN_UNREPORTED:
        return {}
    return points_by_step


def _texts_after_steps(
    references: Sequence[str], corpus: Corpus, has_test_files: bool
) -> dict[str, Sequence[str]]:
    """Return the references as they are, after cleaning, and after tokenizing and joining again.

    Systems learn from cleaned text, but published test sets are not cleaned. So a system loses
    points where cleaning changes the references. References drawn from the training text are clean
    already.

    Args:
        references: The reference lines.
        corpus: The settings of the corpus.
        has_test_files: Whether the references come from a published test set.

    Returns:
        The lines after each step: `line length`, which changes nothing, `clean` and `tokenize`.
    """
    edits = corpus.clean if has_test_files else ()
    tokenizer = tokenizer_for(corpus.target, corpus.tokenize)
    cleaned = list(references)
    if edits:
        cleaned = [apply_edits(line, corpus.target, edits) for line in references]
    detokenized = [tokenizer.detokenize(tokenizer.tokenize(line)) for line in cleaned]
    return {LENGTH: references, CLEAN: cleaned, TOKENIZE: detokenized}


def _decoded_references(
    binary: BinaryCorpus, set_name: str, languages: tuple[str, str]
) -> list[str]:
    """Return the references of a set as a system would print them, joined from their token ids.

    They differ from the original references where a character is not in the vocabulary.

    Args:
        binary: The binarized corpus.
        set_name: The name of the set, such as `test.flickr2016`.
        languages: The source and the target language.
    """
    source_language, target_language = languages
    source = binary.side(set_name, source_language)
    target = binary.side(set_name, target_language)
    decoded = []
    for row in range(len(target)):
        source_ids = source[row].tolist()
        target_ids = target[row].tolist()
        decoded.append(binary.translation(source_ids, target_ids))
    return decoded


def _score_steps(texts_by_step: Mapping[str, Sequence[str]], language: str) -> Scores:
    """Score the references after each step against the unchanged references.

    Args:
        texts_by_step: The lines after each step. The first step changes nothing, so its lines are
            the references themselves.
        language: The target language.

    Returns:
        BLEU after each step, 0 to 100.
    """
    references = next(iter(texts_by_step.values()))
    metric = bleu_metric(references, language)
    # Most steps change nothing. So that equal texts are scored once, scores are found by the text.
    score_of_text: dict[tuple[str, ...], float] = {}
    scores = {}
    for step, lines in texts_by_step.items():
        text = tuple(lines)
        if text not in score_of_text:
            score_of_text[text] = round(metric.corpus_score(lines, None).score, 2)
        scores[step] = score_of_text[text]
    return scores


def _sampled_references(name: str, corpus: Corpus, test: str, texts: Collection[Text]) -> list[str]:
    """Return the first references of a test set, if they are on this machine.

    Files of the user are read as they are now. Otherwise the references are read from the folder
    into which the pipeline has downloaded them or drawn them from the training text.

    Args:
        name: The name of the corpus.
        corpus: Its settings.
        test: The name of the test set.
        texts: The settings of its texts.

    Returns:
        Up to 1,000 lines; empty if the text is not on this machine.
    """
    has_tests = bool(corpus.files.tests)
    has_local_files = bool(texts) and all(map(_is_local, texts))
    if has_local_files:
        # Without test sets, one will be drawn from the training text after this is cleaned.
        edits = () if has_tests else corpus.clean
        references = []
        for pair in islice(_local_pairs(texts, corpus), _SAMPLED_LINES):
            references.append(apply_edits(pair.target, corpus.target, edits))
        return references
    folder = paths.download_folder(name) if has_tests else paths.corpus_folder(name, "split")
    _, path = TextFolder(folder, corpus.source, corpus.target).files(f"test.{test}")
    if not path.exists():
        return []
    return list(islice(read_lines(path), _SAMPLED_LINES))


def _local_pairs(texts: Collection[Text], corpus: Corpus) -> Iterator[Pair]:
    """Yield the pairs of texts whose files are in inputs/."""
    for text in texts:
        yield from read_text_pairs(text, corpus.languages)


def _is_local(text: Text) -> bool:
    """Return whether a text has only local files, whose first lines are quick to read.

    Only files of the user have a path; other files are downloaded.
    """
    # Documents must be read as a whole before their lines are known, which takes long.
    if text.format == "documents":
        return False
    for file in text.files:
        if not file.path or not path_on_disk(Path(file.path)).is_file():
            return False
    return True


def _costliest_step(points_by_step: Mapping[str, float]) -> str:
    """Return the step that loses most points; of several such steps, the first."""
    return max(points_by_step, key=points_by_step.__getitem__)


def _advice(scores: Scores) -> str:
    """Return advice on the step that loses most points: which settings restore them."""
    step = _costliest_step(lost_points(scores))
    if step == TOKENIZE:
        return f"{_HELP[step]}. If text is in lower case, {_HELP_CASE}"
    return _HELP[step]


def _describe_scores(scores: Scores) -> str:
    """Format the last score, and the points that each step loses: 52.0 (tokenize -48.0)."""
    # The score after the last step, which is the ceiling.
    *_, last_score = scores.values()
    descriptions = []
    for step, points in lost_points(scores).items():
        descriptions.append(f"{step} {-points:.1f}")
    return f"{last_score:.1f} ({', '.join(descriptions)})"
