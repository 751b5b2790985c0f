"""The stage contrast: which pairs of translations a model tells apart, by forced decoding."""

import hashlib
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import torch

from bleuprint.config.corpus import Corpus
from bleuprint.config.corpus_files import Parts
from bleuprint.contrast.minimal_pairs import PAIRS, TARGETS, minimal_pairs
from bleuprint.contrast.perturbations import perturbations
from bleuprint.contrast.record import CONTRAST, Contents, Outcome, TestOutcomes
from bleuprint.dataset.binarized import BinaryCorpus
from bleuprint.decoding.ensemble import Decoder, load_decoder
from bleuprint.decoding.forced_decoding import token_log_probs
from bleuprint.model.weights import training_fingerprint
from bleuprint.rules.rule import edited
from bleuprint.runtime.files import write_json
from bleuprint.text.parallel import TextFolder


class TokenPair(NamedTuple):
    """A source, its right translation and a wrong one, in words separated by spaces."""

    source: str
    right: str
    wrong: str


def contrast_tests(corpus: Corpus, binary: Path, tokens: Path, model: Path, results: Path) -> None:
    """Test the model in `model` on the contrasts of each test set; writes contrast.json."""
    data = BinaryCorpus(binary)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    decoder = load_decoder(model, data).to(device)
    texts = TextFolder(tokens, corpus.source, corpus.target)
    tests = {}
    for name in (name for name in data.sets if name.startswith("test.")):
        pairs = contrasts(corpus, name.removeprefix("test."), data, texts)
        tests[name.removeprefix("test.")] = outcomes(decoder, data, pairs)
    write_json(results / CONTRAST, Contents(model=training_fingerprint(model), tests=tests))


def contrasts(
    corpus: Corpus, test: str, data: BinaryCorpus, texts: TextFolder
) -> dict[str, list[TokenPair]]:
    """The contrasts of a test set: of the grammar for one of the phrasebook, else of references."""
    if is_phrasebook(corpus.files.tests.get(test, {})) and corpus.target in TARGETS:

        def words(language: str, sentence: str) -> str:
            """As the stage tokenize writes them."""
            clean = edited(sentence, language, corpus.clean)
            return " ".join(data.tokenizer(language).tokenize(clean))

        return {
            name: [
                TokenPair(*map(words, (corpus.source, corpus.target, corpus.target), pair))
                for pair in pairs
            ]
            for name, pairs in minimal_pairs(corpus.source, corpus.target).items()
        }
    lines = list(texts.pairs(f"test.{test}"))
    references = [line.target.split(" ") for line in lines]
    return {
        name: [TokenPair(*lines[line], " ".join(tokens)) for line, tokens in wrong]
        for name, wrong in perturbations(references, corpus.target, PAIRS).items()
    }


def is_phrasebook(parts: Parts) -> bool:
    """Whether all files of a set are made by the grammar."""
    sides = [side for text in parts.values() for side in (text.source, text.target)]
    names = [f"phrasebook:{split}" for split in ("train", "valid", "test", "noisy")]
    return bool(sides) and all(
        side is not None and (side.url or "").rpartition(".")[0] in names for side in sides
    )


def outcomes(
    model: Decoder, data: BinaryCorpus, contrasts: Mapping[str, Sequence[TokenPair]]
) -> TestOutcomes:
    """Test a model on pairs; those whose right and wrong translation have equal ids are left out.

    A translation is as probable as the product of its tokens' probabilities, EOS included. A pair
    that is longer than the model's `max_positions` has failed.
    """
    languages, most = (data.source, data.target, data.target), model.settings.max_positions
    found, text = list[Outcome](), ""
    for name, pairs in contrasts.items():
        ids = [
            tuple(list(data.segmentation(language).encode([words])) for language, words in sides)
            for pair in pairs
            if (sides := list(zip(languages, pair, strict=True)))
        ]
        kept = [place for place, (_, right, wrong) in enumerate(ids) if right != wrong]
        text += "".join("\n".join(pairs[place]) + "\n" for place in kept)
        fit = [place for place in kept if max(map(len, ids[place])) <= most]
        sources = [ids[place][0] for place in fit]
        right, wrong = (
            [math.fsum(logs) for logs in token_log_probs(model, sources, side)]
            for side in ([ids[place][1] for place in fit], [ids[place][2] for place in fit])
        )
        passed = {
            place for place, *logs in zip(fit, right, wrong, strict=True) if logs[0] > logs[1]
        }
        failed = [number for number, place in enumerate(kept, 1) if place not in passed]
        if kept:
            found.append(Outcome(name=name, pairs=len(kept), failed=failed))
    return TestOutcomes(sha256=hashlib.sha256(text.encode()).hexdigest(), phenomena=found)
