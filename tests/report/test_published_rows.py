"""Published results stand above ours if they are of the same test set, and only then.

The report knows the numbers of Table 2 in Vaswani et al. (2017) for WMT14; params.yaml may name
others.
"""

import pytest

from bleuprint.config.published import Published
from bleuprint.report import notes
from bleuprint.report.frame import csv_text
from bleuprint.report.published import literature
from bleuprint.report.published.literature import with_published_numbers
from bleuprint.report.render import latex
from bleuprint.report.score_frame import score_frame
from bleuprint.report.score_tables import tables_by_test_set, wide_bleu_table
from result_rows import record, records_from_rows, rows_of


def bleu_table(records):
    """Return the table of BLEU on all test sets."""
    return wide_bleu_table(score_frame(records))


@pytest.fixture(scope="module")
def wmt14():
    """Return the records of base on two WMT14 test sets and another one, with Table 2."""
    records = records_from_rows(
        record("base", "wmt14-en-de", "newstest2013", bleu=25.1),
        record("base", "wmt14-en-de", "newstest2014", bleu=26.1),
        record("base", "other-en-de", "newstest2014", bleu=27.1),
    )
    return with_published_numbers(records, ())


def test_the_eight_systems_of_table_2_stand_above_ours(wmt14):
    row_kinds = [row.kind for row in bleu_table(wmt14).rows]

    assert row_kinds == ["published"] * 8 + [""]


def test_a_published_number_is_in_the_columns_of_its_test_set_and_bleu_variant(wmt14):
    """Vaswani et al. (2017) report 28.4 BLEU on newstest2014, counted after splitting compounds.

    The experiment has three test sets; only one of them is theirs, although another one has the
    same name.
    """
    rows = rows_of(bleu_table(wmt14))

    assert rows["Transformer (big) (published)"] == {
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


def test_a_note_says_with_what_published_numbers_can_be_compared(wmt14):
    last_note = notes.all_notes(wmt14)[-1]

    assert "compound" in last_note
    assert "comparable only with ours in the same column" in last_note


def test_latex_separates_published_rows_from_ours_by_a_rule(wmt14):
    *_, published, ours = latex(bleu_table(wmt14), "").split("\\midrule\n")

    assert published.count("(published) &") == 8
    assert ours.startswith("base &")


def test_table_csv_begins_with_published_numbers(wmt14):
    _, first_row, *_ = csv_text(wmt14).split("\n")

    assert first_row.startswith("ByteNet,wmt14-en-de,,newstest2014,tokenized,")


@pytest.mark.parametrize(
    "corpus",
    [
        pytest.param("wmt14-de-en", id="other direction"),
        pytest.param("my-wmt14-en-de", id="other name"),
    ],
)
def test_table_2_is_not_shown_for_other_corpora(corpus):
    """Table 2 of Vaswani et al. (2017) is about WMT 2014 from English to German and French.

    A test set of another corpus has only our own row, even if it is named newstest2014.
    """
    ours = records_from_rows(record("base", corpus, "newstest2014", bleu=26.1))

    (row,) = bleu_table(with_published_numbers(ours, ())).rows

    assert row.kind != "published"


@pytest.fixture(scope="module")
def two_numbers_of_a_paper():
    """Return records with numbers of one paper on two test sets.

    A number on a test set that the experiment lacks is left out.
    """
    records = records_from_rows(
        record("base", "news-en-de", "first", bleu=26.1),
        record("base", "news-en-de", "second", bleu=27.1),
        record("base", "talks-en-fr", "only", bleu=36.1),
    )
    numbers = [
        Published("Paper", "Doe 2020, Table 3", "news-en-de", "second", 28.4, "tokenized"),
        Published("Paper", "Doe 2020, Table 3", "talks-en-fr", "only", 36.0, "sacrebleu"),
        Published("Elsewhere", "Roe 2021", "talks-en-fr", "gone", 1.0, "unknown"),
    ]
    return with_published_numbers(records, numbers)


def test_numbers_of_one_paper_share_a_row(two_numbers_of_a_paper):
    """Paper reports tokenized BLEU on `news-en-de, second`, and sacreBLEU's on `talks-en-fr`."""
    rows = rows_of(bleu_table(two_numbers_of_a_paper))

    cells_with_a_value = {}
    for head, text in rows["Paper (published)"].items():
        if text != "–":
            cells_with_a_value[head] = text
    assert list(rows) == ["Paper (published)", "base"]
    assert cells_with_a_value == {
        "System": "Paper (published)",
        "news-en-de, second BLEU tokenized": "28.4",
        "talks-en-fr, only BLEU": "36.0",
    }


def test_a_note_names_the_source_and_the_bleu_variants_of_a_paper(two_numbers_of_a_paper):
    """Readers can look up the numbers, and see which BLEU of ours they can be compared with."""
    *_, last_note = notes.all_notes(two_numbers_of_a_paper)

    assert last_note == (
        "Paper (published): Doe 2020, Table 3; "
        "tokenized BLEU on news-en-de second, "
        "sacreBLEU's default BLEU on talks-en-fr only."
    )


def test_published_bleu_is_not_a_row_of_the_chrf_table(two_numbers_of_a_paper):
    """Paper reports BLEU alone, so in a table of chrF2 its row would be empty."""
    scores = score_frame(two_numbers_of_a_paper)

    table = tables_by_test_set(scores, ["chrf2"], costs=())["talks-en-fr, only"]

    our_row = ""  # Published rows are of the kind "published".
    assert [row.kind for row in table.rows] == [our_row]


def published_on_talks(name, bleu, variant, system=""):
    """Return a published number on talks-en-fr, test set only.

    Args:
        name: The name of the published system.
        bleu: Its BLEU.
        variant: How the paper computed BLEU.
        system: Our system that the number is compared with; empty for none.
    """
    return Published(name, "Doe 2020", "talks-en-fr", "only", bleu, variant, system)


@pytest.fixture(scope="module")
def two_seeds_on_talks():
    """Return the records of base, with BLEU 36 and 37, and of big, with BLEU 35 twice.

    In these records, BLEU with the tokenizer intl is 0.5 below BLEU.
    """
    return records_from_rows(
        record("base", "talks-en-fr", "only", bleu=36.0, seed=1),
        record("base", "talks-en-fr", "only", bleu=37.0, seed=2),
        record("big", "talks-en-fr", "only", bleu=35.0, seed=1),
        record("big", "talks-en-fr", "only", bleu=35.0, seed=2),
    )


@pytest.fixture(scope="module")
def three_bleu_variants(two_seeds_on_talks):
    """Return the records with published numbers in three variants of BLEU."""
    numbers = [
        published_on_talks("Paper", 38.0, "unknown"),
        published_on_talks("Other", 37.5, "intl"),
        published_on_talks("Third", 35.5, "sacrebleu"),
    ]
    return with_published_numbers(two_seeds_on_talks, numbers)


def test_our_systems_are_scored_in_the_bleu_variants_of_published_numbers(three_bleu_variants):
    """Base has BLEU 36 and 37 with two seeds, big twice 35; with the tokenizer intl, 0.5 less.

    How Paper computed its 38.0 BLEU is unknown, so ours cannot be computed in the same way.
    """
    (table,) = tables_by_test_set(score_frame(three_bleu_variants)).values()

    rows = {}
    for name, cells in rows_of(table).items():
        rows[name] = list(cells.values())[1:4]
    labels = [str(column.label) for column in table.columns]
    assert labels[1:4] == ["BLEU (other variants)", "BLEU intl", "BLEU"]
    assert rows == {
        "Paper (published)": ["38.0", "–", "–"],
        "Other (published)": ["–", "37.5", "–"],
        "Third (published)": ["–", "–", "35.5"],
        "base": ["–", "36.0", "36.5 ± 0.7"],
        "big": ["–", "34.5", "35.0 ± 0.0"],
    }


def test_the_best_of_our_systems_is_marked_in_each_bleu_variant(three_bleu_variants):
    """Base is better than big. No system of ours has a score in the first column."""
    (table,) = tables_by_test_set(score_frame(three_bleu_variants)).values()
    (base,) = [row for row in table.rows if table.texts(row)[0] == "base"]

    is_bold = {}
    for column in table.columns[1:4]:
        is_bold[column.label] = base.cell(column).is_bold
    assert is_bold == {"BLEU (other variants)": False, "BLEU intl": True, "BLEU": True}


def test_a_note_explains_variants_that_are_not_computed(three_bleu_variants):
    text = " ".join(notes.all_notes(three_bleu_variants))

    assert "BLEU (other variants): in ways not computed here" in text


def test_no_note_explains_other_variants_if_no_number_has_one(two_seeds_on_talks):
    """The only published number is sacreBLEU's default BLEU, which we compute, too."""
    number = published_on_talks("Third", 35.5, "sacrebleu")

    text = " ".join(notes.all_notes(with_published_numbers(two_seeds_on_talks, [number])))

    assert "other variants" not in text


@pytest.fixture(scope="module")
def numbers_to_compare(two_seeds_on_talks):
    """Return records with published numbers, of which five are to be compared with base."""
    numbers = [
        published_on_talks("Third", 35.0, "sacrebleu", "base"),
        published_on_talks("Other", 37.5, "intl", "base"),
        published_on_talks("Paper", 38.0, "unknown", "base"),
        published_on_talks("Words", 38.0, "compound-split", "base"),
        Published("Paper", "Doe 2020", "talks-en-fr", "gone", 38.0, "intl", "base"),
        published_on_talks("Not compared", 38.0, "intl"),
    ]
    return with_published_numbers(two_seeds_on_talks, numbers)


def test_a_difference_from_a_published_number_is_that_of_the_same_bleu_variant(
    numbers_to_compare,
):
    """Base has 36.5 BLEU on average over two seeds, and 36.0 with the tokenizer intl.

    Third reports 35.0 BLEU, and Other 37.5 with the tokenizer intl. Numbers in BLEU variants that
    we do not compute, or on a test set that we lack, have no difference.
    """
    assert list(literature.difference_notes(numbers_to_compare)) == [
        "base minus Third (published), talks-en-fr only: +1.5 BLEU, sacreBLEU's default.",
        "base minus Other (published), talks-en-fr only: -1.5 BLEU, intl.",
    ]


def test_notes_contain_differences_from_published_numbers(numbers_to_compare):
    assert "base minus Other (published)" in "".join(notes.all_notes(numbers_to_compare))


def test_published_systems_of_the_same_name_are_told_apart_by_their_source():
    """A blog claims 99.9 BLEU for `Transformer (base)`, which is also a system of Table 2.

    The number of the paper, 27.3, must stay, with the paper's costs.
    """
    records = records_from_rows(record("base", "wmt14-en-de", "newstest2014", bleu=26.1))
    blog = Published(
        "Transformer (base)", "A blog", "wmt14-en-de", "newstest2014", 99.9, "compound-split"
    )

    rows = rows_of(bleu_table(with_published_numbers(records, [blog])))

    bleu_and_flops = {}
    for name, cells in rows.items():
        if name.startswith("Transformer (base)"):
            bleu_and_flops[name] = (
                cells["wmt14-en-de, newstest2014 BLEU compound-split"],
                cells["wmt14-en-de, newstest2014 FLOPs, by time"],
            )
    assert bleu_and_flops == {
        "Transformer (base), Vaswani et al. 2017, Table 2 (published)": ("27.3", "3.3e18"),
        "Transformer (base), A blog (published)": ("99.9", "–"),
    }


def test_a_number_of_table_2_that_params_yaml_names_is_shown_once():
    """The program knows the eight rows of Table 2; a user has typed one of them in params.yaml."""
    records = records_from_rows(record("base", "wmt14-en-de", "newstest2014", bleu=26.1))
    number = Published(
        "Transformer (base)",
        literature.TABLE_2_SOURCE,
        "wmt14-en-de",
        "newstest2014",
        27.3,
        "compound-split",
    )

    rows = rows_of(bleu_table(with_published_numbers(records, [number])))

    rows_of_table_2 = 8
    our_rows = 1
    assert len(rows) == rows_of_table_2 + our_rows


def test_a_note_names_a_system_that_is_an_ensemble():
    """System `four` translates with four checkpoints, which costs four times the computing."""
    records = records_from_rows(
        record("one", "news-en-de", "first", bleu=20.0, models=1),
        record("four", "news-en-de", "first", bleu=21.0, models=4),
    )

    text = " ".join(notes.all_notes(records))

    assert "four: an ensemble of 4 checkpoints of one training." in text
    assert "one:" not in text


def test_french_numbers_of_table_2_are_shown_with_the_printed_digits():
    """Each number stands in the column of its BLEU variant, as in Vaswani et al. 2017, EN-FR."""
    records = records_from_rows(record("base", "wmt14-en-fr", "newstest2014", bleu=36.1))

    rows = rows_of(bleu_table(with_published_numbers(records, ())))

    tokenized_and_split = {}
    for name, cells in rows.items():
        tokenized_and_split[name.removesuffix(" (published)")] = (
            cells["wmt14-en-fr, newstest2014 BLEU tokenized"],
            cells["wmt14-en-fr, newstest2014 BLEU compound-split"],
        )
    assert tokenized_and_split == {
        "Deep-Att + PosUnk": ("39.2", "–"),
        "GNMT + RL": ("39.92", "–"),
        "ConvS2S": ("40.46", "–"),
        "MoE": ("40.56", "–"),
        "Deep-Att + PosUnk Ensemble": ("40.4", "–"),
        "GNMT + RL Ensemble": ("41.16", "–"),
        "ConvS2S Ensemble": ("41.29", "–"),
        "Transformer (base)": ("–", "38.1"),
        "Transformer (big)": ("–", "41.8"),
        "base": ("–", "–"),
    }
    assert rows["base"]["wmt14-en-fr, newstest2014 BLEU"] == "36.1 [35.1, 38.1]"


def test_german_numbers_of_table_2_keep_the_printed_digits():
    """The EN-DE column of Table 2 in Vaswani et al. (2017), from top to bottom.

    As a floating-point number, 26.30 would become 26.3.
    """
    records = records_from_rows(record("base", "wmt14-en-de", "newstest2014", bleu=26.1))

    published = with_published_numbers(records, ()).published

    assert list(published.printed) == [
        "23.75",
        "24.6",
        "25.16",
        "26.03",
        "26.30",
        "26.36",
        "27.3",
        "28.4",
    ]
