"""`bleuprint inspect` shows what the stages of data do to a sample of a corpus."""

from dataclasses import replace

import pytest

from bleuprint.config import experiment
from bleuprint.config.corpus_files import File, Text
from bleuprint.config.directions import Direction
from bleuprint.corpus.download.download import Sample
from bleuprint.corpus.download.fetch import Downloads
from bleuprint.corpus.inspect import inspect_corpus, inspection_lines
from bleuprint.runtime.errors import UserError
from bleuprint.text.parallel import TextFolder
from corpora import PAIRS, file_contents, file_names, numbered_pairs, write_set
from params import PARAMS

# More than 100 tokens, the limit of the filter.
LONG_PAIR = ("ein sehr " * 60 + "langer", "a very " * 60 + "long one")


@pytest.fixture
def settings(tmp_path, monkeypatch):
    """The settings of a project whose corpus `own` has 10 training pairs.

    Six pairs pass all rules. Of the others, one repeats a pair before it, one is too long, one is
    changed by cleaning (an accent, a control character), and one has an invisible source.
    """
    monkeypatch.chdir(tmp_path)
    changed_pair = ("e\u0301in\x00s", "one")
    invisible_source = ("\u200b", "lost")
    pairs = [*PAIRS, PAIRS[0], LONG_PAIR, changed_pair, invisible_source]
    write_set(TextFolder(tmp_path / "inputs", "de", "no"), "a", pairs)
    (tmp_path / "params.yaml").write_text(PARAMS)
    return experiment.load_settings()


def inspect(settings, tmp_path, pairs, seed=1):
    """Inspect the corpus `own`.

    Args:
        settings: The settings of the project.
        tmp_path: The folder of the project.
        pairs: The number of pairs to draw; if the text has fewer, all are used.
        seed: The sampling seed.
    """
    source = Downloads(None, tmp_path / "store", None)
    sample = Sample(pairs=pairs, seed=seed)
    return inspect_corpus("own", settings, sample, source, tmp_path / "work" / "x", 1)


def test_an_inspection_counts_what_each_rule_changed_and_dropped(settings, tmp_path):
    """`bleuprint inspect` shows the effect of the rules before the stages run.

    Of the ten pairs, one is repeated, one too long, one is changed (an accent, a control
    character), and one has an invisible source.
    """
    inspection = inspect(settings, tmp_path, pairs=1000)  # At most: all ten pairs.

    counts = inspection.stages
    assert list(counts) == ["clean", "dedup", "filter", "split"]
    # The control character and the invisible source are both changed by non_printing.
    assert counts["clean"].changed == {"unicode": 1, "non_printing": 2}
    assert counts["clean"].dropped == {"empty_side": 1}
    assert counts["dedup"].dropped["duplicate_pair"] == 1
    assert counts["filter"].dropped == {"length": 1, "length_ratio": 0}


def test_the_output_of_an_inspection_shows_counts_by_rule_and_the_sizes_of_the_sets(
    settings, tmp_path, monkeypatch
):
    """Of ten pairs, one is repeated, one too long, one is changed, and one has an empty side.

    `samples` is the number of example pairs per rule.
    """
    monkeypatch.setenv("COLUMNS", "60")  # The width of the terminal.
    inspection = inspect(settings, tmp_path, pairs=1000)

    lines = list(inspection_lines(inspection, samples=1))

    assert lines[0] == "clean: 10 pairs in, 9 out"
    assert "  length_ratio: 0 dropped, 0.00%" in lines
    # 7 of 10 pairs pass the filter; a twentieth of them, at least 1, goes to each held-out set.
    assert lines[-1] == "pairs that remain: train 5, valid 1, test.held-out 1"
    longest_line = max(map(len, lines))
    assert longest_line <= 60


def test_the_output_of_an_inspection_shows_a_pair_before_and_after_an_edit(
    settings, tmp_path, monkeypatch
):
    """The edit `unicode` composes the accent of one pair: e and \u0301 become \u00e9."""
    monkeypatch.setenv("COLUMNS", "60")  # The width of the terminal.
    inspection = inspect(settings, tmp_path, pairs=1000)

    lines = list(inspection_lines(inspection, samples=1))

    rule_index = lines.index("  unicode: 1 changed, 10.00%")
    line_before_edit = lines[rule_index + 1]
    line_after_edit = lines[rule_index + 2]
    # The control character \x00 is shown as an escape.
    assert line_before_edit.split() == ["-", "e\u0301in\\x00s", "one"]
    assert line_after_edit.split() == [">", "\u00e9in\\x00s", "one"]
    # The target begins in the middle of the terminal.
    assert 30 < line_before_edit.index("one") < 40


def test_more_samples_per_rule_give_more_lines(settings, tmp_path):
    """The option --samples sets how many example pairs are shown for each rule."""
    inspection = inspect(settings, tmp_path, pairs=1000)

    lines_with_one_sample = list(inspection_lines(inspection, samples=1))
    lines_with_three_samples = list(inspection_lines(inspection, samples=3))

    assert len(lines_with_three_samples) > len(lines_with_one_sample)


def test_an_inspection_ends_at_the_stage_that_drops_all_pairs_and_shows_them(settings, tmp_path):
    """The text is one pair, twice, with more than 100 tokens: the limit of the stage filter."""
    write_set(TextFolder(tmp_path / "inputs", "de", "no"), "a", [LONG_PAIR, LONG_PAIR])

    inspection = inspect(settings, tmp_path, pairs=1000)

    assert inspection.stages["filter"].dropped["length"] == 1  # The stage dedup dropped the other.
    assert inspection.stages["filter"].pairs_out == 0
    lines = list(inspection_lines(inspection, samples=1))
    assert "  length: 1 dropped, 100.00%" in lines
    start_of_long_pair = "ein sehr"
    assert start_of_long_pair in "".join(lines)


def test_the_seed_decides_which_pairs_are_drawn(settings, tmp_path):
    """The text has ten pairs, of which an inspection draws four.

    Only one of the ten pairs is changed by the edit `unicode`: some seeds draw it, others do not.
    """
    inspections = [inspect(settings, tmp_path, pairs=4, seed=seed) for seed in range(20)]

    for inspection in inspections:
        assert inspection.pairs == 10
        assert inspection.stages["clean"].pairs_in == 4
    changed_counts = [inspection.stages["clean"].changed["unicode"] for inspection in inspections]
    assert set(changed_counts) == {0, 1}
    # The same seed draws the same pairs again.
    seed = changed_counts.index(1)
    assert inspect(settings, tmp_path, pairs=4, seed=seed) == inspections[seed]


def test_shares_of_a_sample_have_95_percent_intervals(settings, tmp_path):
    """The expected interval is that of Wilson (1927) for 1 of 4 pairs, with z = 1.96.

    (p + z^2 / 2n -+ z (p (1 - p) / n + z^2 / 4n^2)^0.5) / (1 + z^2 / n)
    """
    # Draw 4 of 10 pairs until the sample contains the only one that the edit unicode changes.
    for seed in range(20):
        inspection = inspect(settings, tmp_path, pairs=4, seed=seed)
        if inspection.stages["clean"].changed["unicode"] == 1:
            break

    lines = list(inspection_lines(inspection, samples=1))

    assert lines[0].startswith(f"4 of 10 pairs, sampled with seed {seed}. ")
    assert "  unicode: 1 changed, 25.00% [4.56%, 69.94%]" in lines[1:]


def test_an_inspection_leaves_no_files(settings, tmp_path):
    """The stages write temporary files to the folder work/, which stays and is empty afterwards."""
    names_before = file_names(tmp_path)

    inspect(settings, tmp_path, pairs=100)

    assert file_names(tmp_path) == sorted([*names_before, "work"])
    assert file_contents(tmp_path / "work") == {}


@pytest.mark.parametrize(
    "sampled_pairs",
    [
        # Of 100 drawn pairs, 5 become a test set; of all 200 pairs, it would be 10.
        pytest.param(100, id="estimated from half of the pairs"),
        pytest.param(200, id="counted in all pairs"),
    ],
)
def test_an_inspection_of_a_sample_shows_the_sizes_of_the_sets_of_the_whole_text(
    tmp_path, monkeypatch, sampled_pairs
):
    """The text has 200 pairs; a twentieth of them becomes the test set.

    Scaling the numbers of the sample up is wrong for the validation set: it has a file of its own,
    with 6 pairs, which is not sampled.
    """
    monkeypatch.chdir(tmp_path)
    inputs = TextFolder(tmp_path / "inputs", "de", "no")
    write_set(inputs, "a", numbered_pairs("Satz {}", "one {}", 200))
    write_set(inputs, "v", numbered_pairs("neu {}", "new {}", 6))
    text = "{license_and_citation: own, source: {path: inputs/v.de}, target: {path: inputs/v.no}}"
    assert PARAMS.count("valid: {}") == 1
    (tmp_path / "params.yaml").write_text(PARAMS.replace("valid: {}", f"valid: {{v: {text}}}"))

    inspection = inspect(experiment.load_settings(), tmp_path, sampled_pairs)

    assert inspection.stages["filter"].pairs_out == sampled_pairs
    assert inspection.sets == {"train": 200 - 10, "valid": 6, "test.held-out": 200 // 20}


def replace_unchecked(settings, **values):
    """Return settings with other values of some fields, without checking them."""
    changed = replace(settings)
    for name, value in values.items():
        object.__setattr__(changed, name, value)
    return changed


def test_a_corpus_with_several_directions_is_refused(settings, tmp_path):
    """An inspection shows one language pair; the message names those of the corpus."""
    directions = {"de-no": Direction(), "no-de": Direction()}
    corpus = settings.corpora["own"]
    text = corpus.files.train["a"]
    # The name of each text begins with its direction.
    files = replace_unchecked(corpus.files, train={"de-no-a": text, "no-de-a": text}, tests={})
    corpus = replace_unchecked(corpus, directions=directions, files=files)
    settings = replace_unchecked(settings, corpora={"own": corpus})

    message = (
        r"^corpora\.own has 2 directions: own/de-no, own/no-de\. Name one: "
        "bleuprint inspect own/de-no$"
    )
    with pytest.raises(UserError, match=message):
        inspect(settings, tmp_path, pairs=10)


@pytest.mark.parametrize(
    ("training_texts", "message"),
    [
        pytest.param(
            {},
            r"corpora\.own is zero-shot, so there is no training text to inspect",
            id="no training text",
        ),
        pytest.param(
            {"a": Text("own", source=File(path="inputs/a.de"))},
            r"corpora\.own: systems translate .* training texts, so there is no text to inspect",
            id="text with one side, which a system translates",
        ),
    ],
)
def test_a_corpus_without_a_text_to_inspect_is_refused(settings, tmp_path, training_texts, message):
    """A text with one file is for back-translation: a system has yet to translate it."""
    corpus = settings.corpora["own"]
    files = replace(corpus.files, train=training_texts)
    corpus = replace_unchecked(corpus, files=files)
    settings = replace_unchecked(settings, corpora={"own": corpus})

    with pytest.raises(UserError, match=f"^{message}$"):
        inspect(settings, tmp_path, pairs=10)
