"""The gap to a published number: steps worked by hand, that add up to it."""

import dataclasses
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import result_rows
import result_trees as trees
from bleuprint.config.experiment import Settings
from bleuprint.config.paths import Cell
from bleuprint.config.published import Published
from bleuprint.config.system import Average, Keep, LengthPenalty
from bleuprint.report.page.context import ReportContext
from bleuprint.report.page.scores import gap_section
from bleuprint.report.published import gap_tables
from bleuprint.report.published.gap import Gap, cells_of, gaps, measured
from bleuprint.report.published.variants import Variant, Variants, Varied, path_of
from bleuprint.runtime.files import write_json
from systems import only_systems

CORPUS, TEST = "news-en-de", "first"
MISSING = ": too few checkpoints kept, or published has changed: bleuprint gap"
NUMBER = Published(
    name="A paper",
    source="the paper, Table 1",
    corpus=CORPUS,
    test=TEST,
    bleu=30.0,
    scored="compound-split",
    system="tiny",
    average=Average(last=5),
    beam=4,
    length_penalty=LengthPenalty("length", 1.0),
)
# The system as it is: the last checkpoint alone, beam 2, alpha 0.6 (gnmt).
OWN = Variant(Average(last=1), 2, LengthPenalty("gnmt", 0.6))
LAST_5 = dataclasses.replace(OWN, average=Average(last=5))
SEARCHED = Variant(Average(last=5), 4, LengthPenalty("length", 1.0))
SEARCHED_ALONE = dataclasses.replace(SEARCHED, average=Average(last=1))


def varied(variant: Variant, bleu: float, split: float) -> Varied:
    translations = ("47" if variant == OWN else "00") * 32
    scores = {"sacrebleu": bleu, "compound-split": split}
    return Varied(TEST, variant, scores, translations)


# What each variant scored: by sacreBLEU, and compound-split.
SCORES = (
    varied(OWN, 25.004, 25.9),
    varied(LAST_5, 26.0, 27.006),
    varied(SEARCHED, 26.4, 27.3),
    varied(SEARCHED_ALONE, 25.2, 26.1),
)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return trees.settings_in(tmp_path)


def rows(settings: Settings, **scores: float) -> list[dict[str, Any]]:
    """A record of each system and seed, as it is; the compound-split score is that of `scores`."""
    return [
        result_rows.record(
            *(system, CORPUS, TEST, 25.004),
            seed=seed,
            variants=[{"name": "compound-split", "score": scores.get(system, 25.9)}],
        )
        for system in settings.systems
        for seed in settings.seeds
    ]


def records(settings: Settings, **scores: float) -> pd.DataFrame:
    return result_rows.frame(*rows(settings, **scores))


def without_variants(varied: Varied, more: float = 0) -> Varied:
    return dataclasses.replace(varied, scores={"sacrebleu": varied.scores["sacrebleu"] + more})


def variants(*scores: Varied) -> Variants:
    return Variants("f1" * 32, scores or SCORES)


def gap(
    settings: Settings, number: Published, found: Variants, of: pd.DataFrame | None = None
) -> Gap:
    settings = dataclasses.replace(settings, published=(number,))
    by_cell = dict.fromkeys(cells_of(settings), found)
    (one,) = gaps(settings, records(settings) if of is None else of, by_cell)
    # what is shown adds up
    total = one.ours + sum(step.bleu or 0 for step in one.steps) + one.unexplained
    assert round(total, 6) == number.bleu
    assert round(one.steps[-1].score + one.unexplained, 6) == number.bleu
    return one


def sizes(found: Gap) -> list[float | None]:
    return [step.bleu for step in found.steps]


def test_each_step_starts_where_the_one_before_ends(settings: Settings) -> None:
    found = gap(settings, NUMBER, variants())
    assert [step.what for step in found.steps] == [
        *("scoring", "averaging", "beam and length penalty")
    ]
    # 25.00 -> 25.90 -> 27.01 -> 27.30
    assert (found.ours, sizes(found)) == (25.0, [0.9, 1.11, 0.29])
    assert (found.whole, found.unexplained) == (5.0, 2.7)


def test_what_is_the_same_changes_nothing(settings: Settings) -> None:
    same = dataclasses.replace(
        NUMBER,
        **{
            "scored": "sacrebleu",
            "average": Average(last=1),
            "beam": 2,
            "length_penalty": LengthPenalty("gnmt", 0.6),
        },
    )
    found = gap(settings, same, variants())
    assert (sizes(found), found.unexplained) == ([0.0] * 3, 5.0)


def test_what_is_not_known_or_not_there_is_not_measured(settings: Settings) -> None:
    bare = Published("A paper", "there", CORPUS, TEST, 30.0, "otherwise", "tiny")
    found = gap(settings, bare, variants())
    assert (sizes(found), found.unexplained) == ([None] * 3, 5.0)
    # ten checkpoints are not there: the search is compared with the average that is
    ten = dataclasses.replace(NUMBER, average=Average(last=10))
    found = gap(settings, ten, variants())
    assert sizes(found) == [0.9, None, 0.2]
    assert found.steps[1].note == ("ours average last 1; theirs average last 10" + MISSING)


# ours are beam 2 and alpha 0.6 (gnmt); of theirs only `known` is known
@pytest.mark.parametrize(
    ("known", "note"),
    [
        (
            {"beam": 5, "length_penalty": LengthPenalty("length", 1.0)},
            "ours beam 2, gnmt alpha 0.6; theirs beam 5, length alpha 1.0" + MISSING,
        ),
        (
            {"beam": 5},
            "ours beam 2, gnmt alpha 0.6; theirs beam 5" + MISSING,
        ),
        ({"beam": 2}, "both beam 2"),
        (
            {"length_penalty": LengthPenalty("gnmt", 1.0)},
            "ours beam 2, gnmt alpha 0.6; theirs gnmt alpha 1.0" + MISSING,
        ),
        (
            {"beam": 2, "length_penalty": LengthPenalty("gnmt", 0.6)},
            "both beam 2, gnmt alpha 0.6",
        ),
        ({}, "not known of theirs"),
    ],
)
def test_of_their_search_only_what_is_known_is_said(
    settings: Settings, known: dict[str, Any], note: str
) -> None:
    names = ("beam", "length_penalty")
    number = dataclasses.replace(NUMBER, **{**dict.fromkeys(names), **known})
    assert gap(settings, number, variants()).steps[2].note == note


def test_their_best_checkpoint_may_be_ours(tmp_path: Path) -> None:
    """As in the course's recipe, where both take the best: nothing was changed."""
    best = Average(best=1)
    settings = trees.settings_in(tmp_path)
    tiny = settings.system("tiny")
    keep = Keep(last=1, best=1, every=0)
    train = dataclasses.replace(tiny.train, keep=keep, validate_every=10)
    tiny = dataclasses.replace(tiny, average=best, train=train)
    settings = only_systems(settings, {"tiny": tiny})
    own = dataclasses.replace(SCORES[0], variant=dataclasses.replace(OWN, average=best))
    own = dataclasses.replace(own, hypotheses="47" * 32)
    number = dataclasses.replace(NUMBER, average=best)
    step = gap(settings, number, variants(own)).steps[1]
    assert (step.bleu, step.note) == (0.0, "both average best 1")
    two = gap(settings, dataclasses.replace(number, average=Average(best=2)), variants(own))
    note = "ours average best 1; theirs average best 2" + MISSING
    assert (two.steps[1].bleu, two.steps[1].note) == (None, note)


def test_what_was_measured_and_what_is_left_have_each_their_sign(settings: Settings) -> None:
    number = dataclasses.replace(NUMBER, bleu=26.0)
    # 27.30 with all that was measured, which is more than theirs
    assert gap_tables.sentence(gap(settings, number, variants())).endswith(
        "a gap of +1.00. The measured steps add +2.30; −1.30 is unexplained."
    )
    bare = Published("A paper", "there", CORPUS, TEST, 30.0, "otherwise", "tiny")
    assert gap_tables.sentence(gap(settings, bare, variants())).endswith(
        "a gap of +5.00. Nothing of it was measured."
    )


def test_a_language_without_words_has_no_such_score(settings: Settings) -> None:
    scores = [without_variants(varied) for varied in SCORES]
    bare = result_rows.frame(*({**row, "variants": []} for row in rows(settings)))
    found = gap(settings, NUMBER, variants(*scores), bare)
    # 25.00 -> 26.00 -> 26.40, all by sacreBLEU
    assert sizes(found) == [None, 1.0, 0.4]


def test_seeds_are_averaged(settings: Settings) -> None:
    two = dataclasses.replace(settings, seeds=(1, 2), published=(NUMBER,))
    more = [without_variants(varied, more=2) for varied in SCORES]
    by_cell = {
        Cell("tiny", CORPUS, 1): variants(),
        Cell("tiny", CORPUS, 2): variants(*more),
    }
    second = {"bleu": 27.004, "variants": []}
    of = result_rows.frame(*({**row, **(second if row["seed"] == 2 else {})} for row in rows(two)))
    (found,) = gaps(two, of, by_cell)
    assert (found.ours, found.seeds) == (26.0, 2)
    assert sizes(found)[0] is None  # scored so with one seed only
    assert "mean of 2 seeds" in gap_tables.sentence(found)


def test_numbers_without_a_system_have_no_gap(settings: Settings) -> None:
    number = dataclasses.replace(NUMBER, system=None)
    alone = dataclasses.replace(settings, published=(number,))
    assert gaps(alone, records(alone), {}) == []
    assert gap_section(ReportContext(alone, records(alone))) is None


@pytest.mark.parametrize(
    ("training", "changes"),
    [
        ("f2", {}),
        ("f1", {"hypotheses": "48" * 32}),
        ("f1", {"scores": {"sacrebleu": 20.0, "compound-split": 25.9}}),
        ("f1", {"scores": {"sacrebleu": 25.004, "compound-split": 82.5}}),
    ],
)
def test_variants_of_other_trainings_translations_and_scores_do_not_count(
    settings: Settings, training: str, changes: dict[str, Any]
) -> None:
    one = dataclasses.replace(settings, published=(NUMBER,))
    edited = dataclasses.replace(SCORES[0], **changes)
    found = Variants(training * 32, (edited, *SCORES[1:]))
    shown = gaps(one, records(one), dict.fromkeys(cells_of(one), found))
    assert len(shown) == (training == "f1" and not changes)
    complete = dict.fromkeys(cells_of(one), variants())
    assert len(gaps(one, records(one), complete)) == 1


def stored(tmp_path: Path, settings: Settings, **changes: Any) -> ReportContext:
    """Variants on disk, and what the page is made of."""
    one = dataclasses.replace(settings, published=(dataclasses.replace(NUMBER, **changes),))
    for cell in cells_of(one):
        content = dataclasses.asdict(variants())
        write_json(path_of(cell, tmp_path), content)
    return ReportContext(one, records(one), tmp_path)


def test_the_page_shows_the_sum(tmp_path: Path, settings: Settings) -> None:
    context = stored(tmp_path, settings, name="A <paper>")
    section = gap_section(context)
    assert section is not None
    assert "A &lt;paper&gt;" in section.body and "<paper>" not in section.body
    for text in ("+0.90", "+1.11", "+0.29", "+2.70", "30.00"):
        assert f">{text}<" in section.body
    assert section == gap_section(context)


def test_the_report_shows_it_as_a_table(tmp_path: Path, settings: Settings) -> None:
    context = stored(tmp_path, settings)
    parts = gap_tables.markdown_of(
        context.settings, measured(context.settings, context.records, tmp_path)
    )
    assert parts[0] == "## The gap to published numbers"
    assert "a gap of +5.00. The measured steps add +2.30; +2.70 is unexplained." in parts[3]
    steps = [line.split("|")[2].strip() for line in parts[4].split("\n")[2:-1]]
    assert steps == ["", "+0.90", "+1.11", "+0.29", "+2.70", ""]


@pytest.mark.parametrize("known", [{"average": Average(last=1), "beam": 2}, {}])
def test_a_number_of_the_same_settings_needs_no_variants(
    tmp_path: Path, settings: Settings, known: dict[str, Any]
) -> None:
    """Its gap is in the records: only the scoring differs."""
    unknown = dict.fromkeys(("average", "beam", "length_penalty"))
    one = dataclasses.replace(
        settings, published=(dataclasses.replace(NUMBER, **{**unknown, **known}),)
    )
    (found,) = measured(one, records(one), tmp_path)
    assert (found.ours, found.unexplained) == (25.0, 4.1)
    assert sizes(found) == [0.9, 0.0 if known else None, 0.0 if known else None]
    assert not gap_tables.hints(one, [found])


def test_the_command_that_measures_a_gap_is_named(tmp_path: Path, settings: Settings) -> None:
    one = dataclasses.replace(settings, published=(NUMBER,))
    found = measured(one, records(one), tmp_path)
    assert found == []
    hint = (
        "tiny against A paper: news-en-de, first: not measured. To measure it: bleuprint gap "
        "--system tiny --corpus news-en-de; then: dvc repro --single-item --force report"
    )
    assert gap_tables.markdown_of(one, found) == ["## The gap to published numbers", hint]
    section = gap_section(ReportContext(one, records(one), tmp_path))
    assert section is not None and hint in section.body
