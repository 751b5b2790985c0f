"""Published results are listed above ours if they are of the same test set, and only then."""

import pytest

from bleuprint.config.published import Published
from bleuprint.report import notes
from bleuprint.report.frame import csv_text
from bleuprint.report.published import literature
from bleuprint.report.published.literature import with_published_numbers
from bleuprint.report.render import latex
from bleuprint.report.score_frame import score_frame
from bleuprint.report.score_tables import tables_by_test_set, wide_bleu_table
from result_rows import frame, record, rows_of


def test_literature_stands_above_ours_for_wmt14_only():
    wmt = frame(
        record("base", "wmt14-en-de", "newstest2013", 25.1),
        record("base", "wmt14-en-de", "newstest2014", 26.1),
        record("base", "other-en-de", "newstest2014", 27.1),
    )
    grid = wide_bleu_table(score_frame(with_published_numbers(wmt, ())))
    assert [row.kind for row in grid.rows] == ["published"] * 8 + [""]
    rows = rows_of(grid)
    big = rows["Transformer (big) (published)"]
    assert big == {
        "System": "Transformer (big) (published)",
        "wmt14-en-de, newstest2013 BLEU": "–",
        "wmt14-en-de, newstest2013 FLOPs": "–",
        "wmt14-en-de, newstest2014 BLEU tokenized": "–",
        "wmt14-en-de, newstest2014 BLEU compound-split": "28.4",
        "wmt14-en-de, newstest2014 BLEU": "–",
        "wmt14-en-de, newstest2014 FLOPs": "–",
        "wmt14-en-de, newstest2014 FLOPs, by time": "2.3e19",
        "other-en-de, newstest2014 BLEU": "–",
        "other-en-de, newstest2014 FLOPs": "–",
    }
    assert rows["base"]["wmt14-en-de, newstest2014 BLEU"] == "26.1 [25.1, 28.1]"
    note = notes.all_notes(with_published_numbers(wmt, ()))[-1]
    assert "compound" in note and "comparable only with ours in the same column" in note
    *_, published, ours = latex(grid, "").split("\\midrule\n")
    assert published.count("(published) &") == 8 and ours.startswith("base &")
    assert (
        csv_text(with_published_numbers(wmt, ()))
        .split("\n")[1]
        .startswith("ByteNet,wmt14-en-de,,newstest2014,tokenized,")
    )


@pytest.mark.parametrize("corpus", ["wmt14-de-en", "my-wmt14-en-de"])
def test_no_literature_elsewhere(corpus):
    ours = frame(record("base", corpus, "newstest2014", 26.1))
    (row,) = wide_bleu_table(score_frame(with_published_numbers(ours, ()))).rows
    assert row.kind != "published"


def test_numbers_that_the_experiment_names():
    ours = frame(
        record("base", "news-en-de", "first", 26.1),
        record("base", "news-en-de", "second", 27.1),
        record("base", "talks-en-fr", "only", 36.1),
    )
    numbers = [
        Published("Paper", "Doe 2020, Table 3", "news-en-de", "second", 28.4, "tokenized"),
        Published("Paper", "Doe 2020, Table 3", "talks-en-fr", "only", 36.0, "sacrebleu"),
        Published("Elsewhere", "Roe 2021", "talks-en-fr", "gone", 1.0, "unknown"),
    ]
    rows = rows_of(wide_bleu_table(score_frame(with_published_numbers(ours, numbers))))
    assert list(rows) == ["Paper (published)", "base"]
    paper = {name: cell for name, cell in rows["Paper (published)"].items() if cell != "–"}
    assert paper == {
        "System": "Paper (published)",
        "news-en-de, second BLEU tokenized": "28.4",
        "talks-en-fr, only BLEU": "36.0",
    }
    expected = (
        "Paper (published): Doe 2020, Table 3; "
        "tokenized BLEU on news-en-de second, "
        "sacreBLEU's default BLEU on talks-en-fr only."
    )
    assert notes.all_notes(with_published_numbers(ours, numbers))[-1] == expected
    scores = score_frame(with_published_numbers(ours, numbers))
    of_chrf = tables_by_test_set(scores, ["chrf2"], costs=())["talks-en-fr, only"]
    assert [row.kind for row in of_chrf.rows] == [""]


def test_ours_are_scored_as_the_published_numbers_are():
    ours = frame(
        *(
            record("base", "talks-en-fr", "only", bleu, seed=seed)
            for seed, bleu in ((1, 36.0), (2, 37.0))
        ),
        *(record("big", "talks-en-fr", "only", 35.0, seed=seed) for seed in (1, 2)),
    )
    where = ("talks-en-fr", "only")
    numbers = [
        Published("Paper", "Doe 2020", *where, 38.0, "unknown"),
        Published("Other", "Roe 2021", *where, 37.5, "intl"),
        Published("Third", "Poe 2022", *where, 35.5, "sacrebleu"),
    ]
    (table,) = tables_by_test_set(score_frame(with_published_numbers(ours, numbers))).values()
    labels = [str(column.label) for column in table.columns]
    assert labels[1:4] == ["BLEU (other variants)", "BLEU intl", "BLEU"]
    found = {name: list(row.values())[1:4] for name, row in rows_of(table).items()}
    assert found == {
        "Paper (published)": ["38.0", "–", "–"],
        "Other (published)": ["–", "37.5", "–"],
        "Third (published)": ["–", "–", "35.5"],
        # of two seeds, intl is 0.5 below BLEU
        "base": ["–", "36.0", "36.5 ± 0.7"],
        "big": ["–", "34.5", "35.0 ± 0.0"],
    }
    (base,) = (row for row in table.rows if table.texts(row)[0] == "base")
    assert [base.cell(column).is_best for column in table.columns[1:4]] == [False, True, True]
    assert "BLEU (other variants): in ways not computed here" in " ".join(
        notes.all_notes(with_published_numbers(ours, numbers))
    )
    assert "other variants" not in " ".join(
        notes.all_notes(with_published_numbers(ours, numbers[2:]))
    )


def test_differences_are_from_scores_that_are_counted_alike():
    ours = frame(
        *(
            record("base", "talks-en-fr", "only", bleu, seed=seed)
            for seed, bleu in ((1, 36.0), (2, 37.0))
        )
    )
    where = ("talks-en-fr", "only")
    numbers = [
        Published("Third", "Poe 2022", *where, 35.0, "sacrebleu", "base"),
        Published("Other", "Roe 2021", *where, 37.5, "intl", "base"),
        Published("Paper", "Doe 2020", *where, 38.0, "unknown", "base"),
        Published("Words", "Doe 2020", *where, 38.0, "compound-split", "base"),
        Published("Paper", "Doe 2020", "talks-en-fr", "gone", 38.0, "intl", "base"),
        Published("Nobody's", "Doe 2020", *where, 38.0, "intl"),
    ]
    # means of two seeds: 36.5, and by intl 0.5 less; no score is compound-split here
    assert list(literature.difference_notes(with_published_numbers(ours, numbers))) == [
        "base minus Third (published), talks-en-fr only: +1.5 BLEU, sacreBLEU's default.",
        "base minus Other (published), talks-en-fr only: -1.5 BLEU, intl.",
    ]
    assert "base minus Other (published)" in "".join(
        notes.all_notes(with_published_numbers(ours, numbers))
    )


def test_a_name_of_two_sources_is_qualified_by_them():
    """A number cannot take the place of Table 2's, nor of another source's."""
    wmt = frame(record("base", "wmt14-en-de", "newstest2014", 26.1))
    where = ("wmt14-en-de", "newstest2014")
    blog = Published("Transformer (base)", "A blog", *where, 99.9, "compound-split")
    rows = rows_of(wide_bleu_table(score_frame(with_published_numbers(wmt, [blog]))))
    place = ", ".join(where)
    found = {
        name: (row[f"{place} BLEU compound-split"], row[f"{place} FLOPs, by time"])
        for name, row in rows.items()
        if name.startswith("Transformer (base)")
    }
    assert found == {
        "Transformer (base), Vaswani et al. 2017, Table 2 (published)": ("27.3", "3.3e18"),
        "Transformer (base), A blog (published)": ("99.9", "–"),
    }


def test_a_number_of_table_2_that_the_experiment_names_stands_once():
    wmt = frame(record("base", "wmt14-en-de", "newstest2014", 26.1))
    where = (literature.SOURCE, "wmt14-en-de", "newstest2014")
    named = Published("Transformer (base)", *where, 27.3, "compound-split")
    assert len(rows_of(wide_bleu_table(score_frame(with_published_numbers(wmt, [named]))))) == 9


def test_an_ensemble_is_named():
    ours = frame(
        record("one", "news-en-de", "first", 20.0, models=1),
        record("four", "news-en-de", "first", 21.0, models=4),
    )
    said = " ".join(notes.all_notes(ours))
    assert "four: an ensemble of 4 checkpoints of one training." in said and "one:" not in said


def test_literature_by_language_pair():
    """Each published number stands in the column of its own variant, with the digits printed."""
    ours = frame(record("base", "wmt14-en-fr", "newstest2014", 36.1))
    rows = rows_of(wide_bleu_table(score_frame(with_published_numbers(ours, ()))))
    place = "wmt14-en-fr, newstest2014"
    shown = {
        name.removesuffix(" (published)"): (
            row[f"{place} BLEU tokenized"],
            row[f"{place} BLEU compound-split"],
        )
        for name, row in rows.items()
    }
    # Vaswani et al. 2017, Table 2, EN-FR
    assert shown == {
        "Deep-Att + PosUnk": ("39.2", "–"),
        "GNMT + RL": ("39.92", "–"),
        "ConvS2S": ("40.46", "–"),
        "MoE": ("40.56", "–"),
        "Deep-Att + PosUnk Ensemble": ("40.4", "–"),
        "GNMT + RL Ensemble": ("41.16", "–"),
        "ConvS2S Ensemble": ("41.29", "–"),
        "Transformer (base)": ("–", "38.1"),
        "Transformer (big)": ("–", "41.8"),
        # its records have neither variant
        "base": ("–", "–"),
    }
    assert rows["base"][f"{place} BLEU"] == "36.1 [35.1, 38.1]"
    german = with_published_numbers(frame(record("base", "wmt14-en-de", "newstest2014", 26.1)), ())
    assert list(german.published.printed) == [
        *("23.75", "24.6", "25.16", "26.03", "26.30", "26.36", "27.3", "28.4")
    ]
