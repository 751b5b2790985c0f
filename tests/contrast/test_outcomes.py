"""Which pairs are told apart: by sums of forced decoding, whatever batches hold them."""

import dataclasses
import hashlib
from pathlib import Path
from typing import Any

import pytest
import torch

import systems
from bleuprint.config.corpus_files import File, Text
from bleuprint.contrast import outcomes as module
from bleuprint.contrast.outcomes import TokenPair, is_phrasebook, outcomes
from bleuprint.contrast.record import CONTRAST, read_outcomes
from bleuprint.dataset.subwords.vocabulary import EOS
from bleuprint.decoding.forced_decoding import token_log_probs
from bleuprint.model.transformer import Transformer
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import write_json
from contrasts import Data

PAIRS = [
    TokenPair("5 6 7", "8 9", "9 8"),
    TokenPair("7", "4 4", "4"),
    TokenPair("9 9", "5", "6 7 8"),
]


def model(**changes: Any) -> Transformer:
    torch.manual_seed(6)
    return Transformer(systems.model(**changes), 16, 16).eval()


def test_a_pair_is_told_apart_if_the_sum_of_its_log_probabilities_is_larger() -> None:
    made = model()
    found = outcomes(made, Data(), {"a": PAIRS, "b": PAIRS[1:]})  # type: ignore[arg-type]
    ids = [[[*map(int, side.split()), EOS] for side in pair] for pair in PAIRS]
    sums = [
        [sum(token_log_probs(made, [source], [side])[0]) for side in sides]
        for source, *sides in ids
    ]
    failed = [n for n, (right, wrong) in enumerate(sums, 1) if right <= wrong]
    assert 0 < len(failed) < 3
    assert [each["failed"] for each in found["phenomena"]] == [
        failed,
        [n - 1 for n in failed if n > 1],
    ]
    text = "".join("\n".join(pair) + "\n" for pair in (*PAIRS, *PAIRS[1:]))
    assert found["sha256"] == hashlib.sha256(text.encode()).hexdigest()


def test_pairs_of_equal_ids_are_left_out_and_what_cannot_be_read_has_failed() -> None:
    equal = TokenPair("5", "6 7", "6 7")
    found = outcomes(model(), Data(), {"a": [equal, *PAIRS], "b": [equal]})  # type: ignore[arg-type]
    (only,) = found["phenomena"]
    assert only["pairs"] == 3
    short = outcomes(model(max_positions=3), Data(), {"a": PAIRS})  # type: ignore[arg-type]
    assert {1, 3} <= {*short["phenomena"][0]["failed"]} and short["sha256"] == found["sha256"]
    broken = model()
    broken.projection.weight.data.fill_(torch.nan)
    (diverged,) = outcomes(broken, Data(), {"a": PAIRS})["phenomena"]  # type: ignore[arg-type]
    assert diverged["failed"] == [1, 2, 3]


def test_the_grammar_makes_the_pairs_of_its_own_test_sets_only() -> None:
    def text(*urls: str) -> Text:
        return Text("l", source=File(urls[0]), target=File(urls[1]))

    own = text("phrasebook:test.en", "phrasebook:test.de")
    other = text("toy:sentence.en", "toy:sentence.de")
    assert is_phrasebook({"a": own}) and not is_phrasebook({"a": own, "b": other})
    assert not is_phrasebook({}) and not is_phrasebook({"a": other})
    local = dataclasses.replace(own, target=File(path="inputs/a.de"))
    assert not is_phrasebook({"a": local})
    assert module.PAIRS == 100


def test_what_is_read_is_of_this_training_and_whole(tmp_path: Path) -> None:
    path = tmp_path / CONTRAST
    assert read_outcomes(path, "f1") is None
    tests = {"t": outcomes(model(), Data(), {"a": PAIRS})}  # type: ignore[arg-type]
    write_json(path, {"model": "f1", "tests": tests})
    assert read_outcomes(path, "f1") == tests
    with pytest.raises(UserError, match=r"contrast\.json: of another training"):
        read_outcomes(path, "f2")
    tests["t"]["phenomena"][0]["failed"] = [4]
    write_json(path, {"model": "f1", "tests": tests})
    with pytest.raises(UserError, match=r"contrast\.json: damaged: failed pairs of a that are not"):
        read_outcomes(path, "f1")
    path.write_text('{"model": "f1", "tests": {"t": {}}}')
    with pytest.raises(UserError, match=r"contrast\.json: damaged: no 'phenomena'"):
        read_outcomes(path, "f1")
