"""BLEU ceiling: the score of the references after all that happens to a system's output.

A system prints tokens of its vocabulary, detokenized. What `clean`, `tokenize` and the vocabulary
change of a reference does not come back, so that a perfect translation scores less than 100.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice, pairwise
from pathlib import Path

from bleuprint.config import paths
from bleuprint.config.corpus import Corpus
from bleuprint.config.corpus_files import Text
from bleuprint.config.experiment import Settings
from bleuprint.corpus.download.download import read_text_pairs
from bleuprint.dataset.binarized import BinaryCorpus
from bleuprint.rules.rule import apply_edits
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import path_on_disk, write_json
from bleuprint.runtime.schema import read_record
from bleuprint.scoring.bleu import bleu_metric
from bleuprint.scoring.unsplit import lacks_words
from bleuprint.text.parallel import TextFolder, read_lines
from bleuprint.text.tokenizers import tokenizer_for

# In the folder of a corpus's statistics.
BLEU_CEILING = "bleu_ceiling.json"
# What lowers the score, in this order. Against themselves, references that are too short for
# 4-grams score less than 100.
LENGTH, CLEAN, TOKENIZE, VOCABULARY = "line length", "clean", "tokenize", "vocabulary"
# Below it, reports say so.
_NOTED = 99.5
# Lines of each test set that are read before anything has run.
_LINES = 1000

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

# BLEU, 0 to 100, by the names above: after each step.
Scores = Mapping[str, float]


def texts_after(references: Sequence[str], corpus: Corpus, given: bool) -> dict[str, Sequence[str]]:
    """The references, and what `clean` and `tokenize` leave of them, detokenized.

    Test sets that are `given` with the corpus keep their references as published, of which systems
    learn the cleaned form; those drawn from the training text are clean.
    """
    language, tokenizer = corpus.target, tokenizer_for(corpus.target, corpus.tokenize)
    edits = corpus.clean if given else ()
    cleaned = [apply_edits(line, language, edits) if edits else line for line in references]
    tokenized = [tokenizer.detokenize(tokenizer.tokenize(line)) for line in cleaned]
    return {LENGTH: references, CLEAN: cleaned, TOKENIZE: tokenized}


def scores_of(texts: Mapping[str, Sequence[str]], language: str) -> Scores:
    """BLEU, computed as the headline's, of each of the texts against the first one."""
    first, *_ = texts.values()
    metric, known = bleu_metric(first, language), dict[tuple[str, ...], float]()
    scores = {}
    for name, lines in texts.items():
        if (key := tuple(lines)) not in known:  # most texts come back as they were
            known[key] = round(metric.corpus_score(lines, None).score, 2)
        scores[name] = known[key]
    return scores


def lost_points(scores: Scores) -> dict[str, float]:
    """The points that each step loses, those below 0.1 left out; empty if so few are lost that it
    does not matter.
    """
    if [*scores.values()][-1] >= _NOTED:
        return {}
    lost = zip(scores, pairwise([100.0, *scores.values()]), strict=True)
    return {
        name: before - after for name, (before, after) in lost if round(before - after, 9) >= 0.1
    }


def describe_low_ceiling(references: Sequence[str], corpus: Corpus, given: bool) -> str | None:
    """What a perfect translation of references, taken as by `texts_after`, scores, and what helps.

    None if it loses so little that it does not matter.
    """
    scores = scores_of(texts_after(references, corpus, given), corpus.target)
    if not (lost := lost_points(scores)):
        return None
    step = _costliest(lost)
    help_ = _HELP[step]
    if step == TOKENIZE and corpus.tokenize.lowercase:
        help_ = _HELP_CASE
    elif step == TOKENIZE and corpus.tokenize.name == "segmenter":
        help_ += _HELP_SEGMENTED
    return f"{_listed(scores)}: {help_}"


def write_bleu_ceiling(corpus: Corpus, binary: BinaryCorpus, split: Path, path: Path) -> None:
    """Write the scores of all test sets of a binarized corpus as JSON, by test set."""
    texts, content = TextFolder(split, *corpus.languages), {}
    for name in (name for name in binary.sets if name.startswith("test.")):
        pair = corpus.language_pair_of_test(name.removeprefix("test."))
        references, given = list(read_lines(texts.files(name)[1])), name in corpus.files.set_names()
        after = texts_after(references, pair, given=given)
        source, target = (binary.side(name, each) for each in corpus.languages)
        after[VOCABULARY] = [
            binary.translation(source[i].tolist(), target[i].tolist()) for i in range(len(target))
        ]
        content[name.removeprefix("test.")] = scores_of(after, pair.target)
    write_json(path, content)


def ceiling_notes(statistics: Path, corpus: str, tests: Iterable[str]) -> Iterator[str]:
    """A note for each test set whose BLEU ceiling is low; none if the statistics are not here."""
    path = statistics / BLEU_CEILING
    known = read_record(dict[str, Scores], path) if path.exists() else {}
    for test in tests:
        if test in known and lost_points(known[test]):
            yield (
                f"BLEU ceiling of {test} on {corpus}: {_listed(known[test])}. "
                "The references themselves score no more after all that happens to the output of "
                "a system trained here, so that a perfect translation does not reach 100. "
                f"To raise it: {_help(known[test])}."
            )


def ceiling_notes_before_run(settings: Settings) -> Iterator[str]:
    """A note for each test set here whose BLEU ceiling is low, or that has no words for BLEU.

    Here are files in inputs/, and text that was downloaded; of a corpus without test sets, its
    training text, of which they will be drawn. Read are the first lines.
    """
    for name, corpus in settings.language_pairs().items():
        given = bool(corpus.files.tests)
        tests = corpus.files.tests or {"held-out": corpus.files.parallel_sets()["train"]}
        for test, texts in tests.items():
            try:
                lines = _lines_here(name, corpus, test, texts.values())
                if lines and (found := describe_low_ceiling(lines, corpus, given)):
                    yield f"corpora.{name}: BLEU ceiling of {test} is {found}"
                if lacks_words(lines, corpus.target):
                    yield (
                        f"corpora.{name}: {test} has hardly any spaces in {corpus.target!r}, at "
                        "which BLEU (13a) splits words: it will be near 0; compare systems by chrF2"
                    )
            except UserError as error:  # the stage download refuses the file
                yield f"corpora.{name}: {error}"


def _lines_here(name: str, corpus: Corpus, test: str, texts: Collection[Text]) -> list[str]:
    """The first references of a test set; none if nothing is here."""
    if texts and all(map(_is_local, texts)):
        pairs = (pair for text in texts for pair in read_text_pairs(text, corpus.languages))
        edits = () if corpus.files.tests else corpus.clean
        return [apply_edits(pair.target, corpus.target, edits) for pair in islice(pairs, _LINES)]
    place = (
        paths.download_folder(name) if corpus.files.tests else paths.corpus_folder(name, "split")
    )
    path = TextFolder(place, corpus.source, corpus.target).files(f"test.{test}")[1]
    return list(islice(read_lines(path), _LINES)) if path.exists() else []


def _is_local(text: Text) -> bool:
    """Whether a text's first lines can be read at once from files in inputs/."""
    return text.format != "documents" and all(
        file.path and path_on_disk(Path(file.path)).is_file() for file in text.files
    )


def _costliest(lost: Mapping[str, float]) -> str:
    """The step that loses most."""
    return max(lost, key=lost.__getitem__)


def _help(scores: Scores) -> str:
    """The settings that restore what the costliest step loses."""
    step = _costliest(lost_points(scores))
    if step == TOKENIZE:
        return f"{_HELP[step]}. If text is in lower case, {_HELP_CASE}"
    return _HELP[step]


def _listed(scores: Scores) -> str:
    """The last score, and what each step loses."""
    steps = ", ".join(f"{name} {-points:.1f}" for name, points in lost_points(scores).items())
    return f"{[*scores.values()][-1]:.1f} ({steps})"
