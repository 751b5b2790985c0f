"""The recipes of the paper's Table 3: its rows, at the paper's size and at a laptop's."""

import pytest
import torch

from bleuprint.config.experiment import load
from bleuprint.config.system import Average, LengthPenalty
from bleuprint.model.transformer import Transformer, count_parameters
from root import ROOT
from setting_changes import changes

RECIPES = ROOT / "recipes"
PAPER, PHRASEBOOK = (load(RECIPES / f"{n}.yaml") for n in ("table3", "table3-phrasebook"))

SIZES = {"model.heads", "model.d_k", "model.d_v"}
LAYERS = {"model.encoder_layers", "model.decoder_layers"}
DROPOUT = {"model.dropout.embedding", "model.dropout.residual"}

# The rows of Table 3 as printed: BLEU on newstest2013, parameters in millions where it gives them;
# and the settings in which a row differs from base.
TABLE_3: dict[str, tuple[float, int | None, set[str]]] = {
    "base": (25.8, 65, set()),
    "A-1-head": (24.9, None, SIZES),
    "A-4-heads": (25.5, None, SIZES),
    "A-16-heads": (25.8, None, SIZES),
    "A-32-heads": (25.4, None, SIZES),
    "B-quarter-d_k": (25.1, 58, {"model.d_k"}),
    "B-half-d_k": (25.4, 60, {"model.d_k"}),
    "C-third-layers": (23.7, 36, LAYERS),
    "C-two-thirds-layers": (25.3, 50, LAYERS),
    "C-four-thirds-layers": (25.5, 80, LAYERS),
    "C-half-d_model": (24.5, 28, {"model.d_model", "model.d_k", "model.d_v"}),
    "C-double-d_model": (26.0, 168, {"model.d_model", "model.d_k", "model.d_v"}),
    "C-half-d_ff": (25.4, 53, {"model.d_ff"}),
    "C-double-d_ff": (26.2, 90, {"model.d_ff"}),
    "D-no-dropout": (24.6, None, DROPOUT),
    "D-double-dropout": (25.5, None, DROPOUT),
    "D-no-smoothing": (25.3, None, {"train.label_smoothing"}),
    "D-double-smoothing": (25.7, None, {"train.label_smoothing"}),
    "E-learned-positions": (25.7, None, {"model.positional_encoding"}),
    "big": (
        26.4,
        213,
        {"model.d_model", "model.d_ff", "model.heads", "train.max_updates", *DROPOUT},
    ),
}
# Its perplexities per word piece, in this order.
PERPLEXITIES = [
    *(4.92, 5.29, 5.00, 4.91, 5.01, 5.16, 5.01, 6.11, 5.19, 4.88),
    *(5.75, 4.66, 5.12, 4.75, 5.77, 4.95, 4.67, 5.47, 4.92, 4.33),
]
# At a laptop's size, stacks of two layers have no third of them.
CHANGES = {row: changed for row, (_, _, changed) in TABLE_3.items()} | {"C-half-layers": LAYERS}


def test_the_recipes_have_the_rows_of_the_paper():
    """All of them, and on the phrasebook some of each letter."""
    assert list(PAPER.systems) == list(TABLE_3)
    assert set(PHRASEBOOK.systems) < set(CHANGES)
    assert {row[0] for row in PHRASEBOOK.systems} == set("bABCDE")


@pytest.mark.parametrize("row", CHANGES)
def test_a_row_differs_from_base_in_just_what_its_letter_says(row):
    for settings in (PAPER, PHRASEBOOK):
        if row in settings.systems:
            assert changes(settings.system("base"), settings.system(row)) == CHANGES[row]


@pytest.mark.parametrize("row", [row for row in PHRASEBOOK.systems if row in TABLE_3])
def test_the_phrasebook_has_the_papers_rows_in_small(row):
    paper, small = PAPER.system(row).model, PHRASEBOOK.system(row).model
    for size in ("d_model", "d_ff", "d_k", "d_v"):
        assert getattr(paper, size) * 3 == 16 * getattr(small, size)
    assert paper.heads == small.heads
    assert (paper.encoder_layers, paper.decoder_layers) == (
        3 * small.encoder_layers,
        3 * small.decoder_layers,
    )
    assert paper.dropout == small.dropout
    smoothing = PAPER.system(row).train.label_smoothing
    assert smoothing == PHRASEBOOK.system(row).train.label_smoothing


# The vocabularies with which the paper's numbers agree: see test_parameters.
@pytest.mark.parametrize("row", [name for name, (_, millions, _) in TABLE_3.items() if millions])
def test_rows_have_as_many_parameters_as_the_paper_says(row):
    vocabulary = 36_000 if row == "big" else 41_000
    with torch.device("meta"):
        model = Transformer(PAPER.system(row).model, vocabulary, vocabulary)
    assert round(count_parameters(model) / 1e6) == TABLE_3[row][1]


def test_each_row_is_held_against_the_number_of_the_paper():
    printed = {name: bleu for name, (bleu, _, _) in TABLE_3.items()}
    assert {number.system: number.bleu for number in PAPER.published} == printed
    assert [number.perplexity for number in PAPER.published] == PERPLEXITIES
    for number in PAPER.published:
        assert number.system is not None
        system = PAPER.system(number.system)
        # "beam search as described in the previous section, but no checkpoint averaging"
        assert (system.decode.beam, system.average) == (4, Average(last=1))
        assert system.decode.length_penalty == LengthPenalty("gnmt", 0.6)


def test_table_3_is_scored_on_the_development_set():
    files = PAPER.corpora["wmt14-en-de"].files
    development, test = files.valid["newstest2013"], files.tests["newstest2013"]["newstest2013"]
    assert (development.source, development.target) == (test.source, test.target)
