"""A project with a multilingual corpus, `many`, for tests: its sentences and its settings."""

import runpy
import sys
from contextlib import chdir

import pytest

from params import PARAMS
from root import ROOT

# 24 sentences in each language, of which those with the same number translate each other.
BINARY_NUMBERS = [f"{number:05b}" for number in range(24)]
SENTENCES = {
    "en": list(map("It's {} o'clock, isn't it?".format, BINARY_NUMBERS)),
    "de": list(map("Es ist {} Uhr, nicht wahr?".format, BINARY_NUMBERS)),
    "fr": list(map("C'est l'heure {}, n'est-ce pas ?".format, BINARY_NUMBERS)),
}
# The number of training pairs of each direction that is trained; de-fr is zero-shot.
TRAINING_PAIRS = {"en-de": 14, "de-en": 14, "en-fr": 4}
DIRECTIONS = ["en-de", "de-en", "en-fr", "de-fr"]
# The numbers of the sentences in each file. The zero-shot direction has a test set of its own.
RANGES = {
    "train": range(14),
    "valid": range(14, 16),
    "test": range(16, 20),
    "zero_shot_test": range(20, 24),
}


def is_zero_shot(direction):
    """Whether the model is not trained on a direction."""
    return direction not in TRAINING_PAIRS


def languages_of(direction):
    """Return the source and the target language of a direction."""
    return tuple(direction.split("-"))


def sentences_of(name, language):
    """Return the sentences of a file of inputs/."""
    return [SENTENCES[language][number] for number in RANGES[name]]


def sentences_of_test_set(direction, language):
    """Return the sentences of the test set of a direction."""
    return sentences_of("zero_shot_test" if is_zero_shot(direction) else "test", language)


def text_of_params(name, direction, pairs=None):
    """Return the settings of a text of a direction in params.yaml, in YAML.

    Args:
        name: The name of the files in inputs/.
        direction: The direction.
        pairs: The setting `pairs`: how many pairs to take; all if None.
    """
    source, target = languages_of(direction)
    amount = f", pairs: {pairs}" if pairs else ""
    return (
        f"{{a: {{license_and_citation: own, source: {{path: inputs/{name}.{source}}}, "
        f"target: {{path: inputs/{name}.{target}}}{amount}}}}}"
    )


def direction_of_params(direction):
    """Return the entry of a direction in params.yaml, in YAML."""
    train = text_of_params("train", direction, TRAINING_PAIRS.get(direction, 14))
    valid = text_of_params("valid", direction)
    test_name = "zero_shot_test" if is_zero_shot(direction) else "test"
    tests = text_of_params(test_name, direction)
    zero_shot = "zero_shot: true, " if is_zero_shot(direction) else ""
    files = f"{{train: {train}, valid: {valid}, tests: {{news: {tests}}}}}"
    return f"      {direction}: {{{zero_shot}files: {files}}}\n"


def params_with_directions():
    """Return a params.yaml with the corpus `many`, whose directions are sampled with T = 2."""
    directions = "".join(direction_of_params(direction) for direction in DIRECTIONS)
    corpus = (
        f"  many:\n    directions:\n{directions}"
        "    split: {temperature: 2}\n"
        "    vocabulary: {bpe: {num_merges: 10}}\n"
        '    license_and_citation: {own: {license: none, bibtex: "@misc{own,}"}}\n'
    )
    return PARAMS.replace("systems:\n", f"{corpus}systems:\n")


def run_stage(script, root):
    """Run the script of a stage on the corpus `many`, in this process."""
    with chdir(root), pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [f"{script}.py", "many"])
        runpy.run_path(str(ROOT / "stages" / f"{script}.py"), run_name="stage")["main"]()
