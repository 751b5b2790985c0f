"""Reachable BLEU: the score of the references after all that happens to a system's output.

A system prints tokens of its vocabulary, detokenized. What `clean`, `tokenize` and the vocabulary
change of a reference does not come back, so that a perfect translation scores less than 100.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from bleuprint.config.corpus import Corpus
from bleuprint.dataset.binarized import BinaryCorpus
from bleuprint.rules.rule import edited
from bleuprint.runtime.files import read_object, reading, write_json
from bleuprint.scoring.bleu import bleu_metric
from bleuprint.text.parallel import TextFolder, read_lines
from bleuprint.text.tokenizers import tokenizer_for

# In the folder of a corpus's statistics.
REACHABLE = "reachable.json"
# What lowers the score, in this order. Against themselves, references that are too short for
# 4-grams score less than 100.
LENGTH, CLEAN, TOKENIZE, VOCABULARY = "line length", "clean", "tokenize", "vocabulary"
# Below it, reports say so.
_NOTED = 99.5

# BLEU, 0 to 100, by the names above: after each step.
Scores = Mapping[str, float]
Texts = dict[str, Sequence[str]]


def texts_after(references: Sequence[str], corpus: Corpus, given: bool) -> Texts:
    """The references, and what `clean` and `tokenize` leave of them, detokenized.

    Test sets that are `given` with the corpus keep their references as published, of which systems
    learn the cleaned form; those drawn from the training text are clean.
    """
    language, tokenizer = corpus.target, tokenizer_for(corpus.target, corpus.tokenize)
    edits = corpus.clean if given else ()
    cleaned = [edited(line, language, edits) if edits else line for line in references]
    tokenized = [tokenizer.detokenize(tokenizer.tokenize(line)) for line in cleaned]
    return {LENGTH: references, CLEAN: cleaned, TOKENIZE: tokenized}


def scores_of(texts: Texts, language: str) -> Scores:
    """BLEU, computed as the headline's, of each of the texts against the first one."""
    first, *_ = texts.values()
    metric, known = bleu_metric(first, language, force=True), dict[tuple[str, ...], float]()
    scores = {}
    for name, lines in texts.items():
        if (key := tuple(lines)) not in known:  # most texts come back as they were
            known[key] = round(metric.corpus_score(lines, None).score, 2)
        scores[name] = known[key]
    return scores


def reachable(scores: Scores) -> float:
    """The score after the last step."""
    return [*scores.values()][-1]


def losses(scores: Scores) -> dict[str, float]:
    """The points that each step loses, those below 0.1 left out; empty if so few are lost that it
    does not matter.
    """
    if reachable(scores) >= _NOTED:
        return {}
    lost = zip(scores, pairwise([100.0, *scores.values()]), strict=True)
    return {name: before - after for name, (before, after) in lost if before - after >= 0.1}


def write_reachable(corpus: Corpus, binary: BinaryCorpus, split: Path, path: Path) -> None:
    """Write the scores of all test sets of a binarized corpus as JSON, by test set."""
    texts, target = TextFolder(split, corpus.source, corpus.target), corpus.target
    content = {}
    for name in (name for name in binary.sets if name.startswith("test.")):
        references, ids = list(read_lines(texts.files(name)[1])), binary.side(name, target)
        after = texts_after(references, corpus, given=name in corpus.files.given())
        after[VOCABULARY] = [binary.text(target, ids[i].tolist()) for i in range(len(ids))]
        content[name.removeprefix("test.")] = scores_of(after, target)
    write_json(path, content)


def notes(statistics: Path, corpus: str, tests: Iterable[str]) -> Iterator[str]:
    """A note for each test set whose reachable BLEU is low; none if the statistics are not here."""
    path = statistics / REACHABLE
    if not path.exists():
        return
    known = read_object(path)
    for test in tests:
        with reading(path):
            scores = {name: float(score) for name, score in known.get(test, {}).items()}
            lost = losses(scores) if scores else {}
        if lost:
            yield (
                f"Reachable BLEU of {test} on {corpus}: {reachable(scores):.1f} ({listed(lost)}). "
                "The references themselves score no more after all that happens to the output of "
                "a system trained here, so that a perfect translation does not reach 100."
            )


def listed(lost: Mapping[str, float]) -> str:
    """Losses in one line."""
    return ", ".join(f"{name} {-points:.1f}" for name, points in lost.items())
