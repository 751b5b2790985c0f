"""Known faults: each line is followed through clean, dedup and filter."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from bleuprint.config.corpus import Corpus
from bleuprint.config.experiment import load_settings
from bleuprint.config.paths import download_folder
from bleuprint.corpus.clean import Cleaning
from bleuprint.corpus.dedup import Deduplication
from bleuprint.corpus.filter import Filtering
from bleuprint.corpus.steps.filter_stats import SetCounts
from bleuprint.corpus.steps.shard import Shard, WholeText
from bleuprint.corpus.steps.sharded import run_step
from bleuprint.rules import CHECKS
from bleuprint.text.parallel import Pair, TextFolder
from corpora import write_set
from root import ROOT
from tools.phrasebook import FAULTS, Line, generate, noisy_lines

pytestmark = pytest.mark.slow  # the whole training text is cleaned and filtered

CORPUS = load_settings(ROOT / "params.yaml").corpora["phrasebook-en-de"]


@dataclass
class Followed:
    """A line after the cleaning rules.

    Attributes:
        fault: The fault of the line, or empty.
        right: The line without its fault; None if the text without faults has no such line.
        pair: The line after clean.
        dropped_by: The rule that drops it, or empty.
    """

    fault: str
    right: Pair | None
    pair: Pair
    dropped_by: str = ""

    @property
    def is_changed(self) -> bool:
        """Return whether a faulty line was dropped or repaired, or a good line dropped."""
        return bool(self.dropped_by or (self.fault and self.pair == self.right))


def english_german(triple: tuple[str, str, str]) -> Pair:
    """Return the English and German of a line."""
    english, german, _ = triple
    return Pair(english, german)


def not_dropped(followed: Sequence[Followed]) -> list[Followed]:
    """Return the lines that no rule has dropped so far."""
    return [line for line in followed if not line.dropped_by]


def follow(root: Path, lines: Sequence[Line], corpus: Corpus = CORPUS) -> list[Followed]:
    """Apply the rules of a corpus to the English and German of lines.

    Args:
        root: An empty folder.
        lines: The training text.
        corpus: The corpus whose rules are applied.
    """
    raw = TextFolder(download_folder("c", root), "en", "de")
    pairs = [english_german(line.text) for line in lines]
    write_set(raw, "train", pairs)
    test_pairs = [Pair("We ask.", "Wir fragen.")]
    for triple in generate("test"):
        test_pairs.append(english_german(triple))
    write_set(raw, "test.a", test_pairs)
    cleaning = Cleaning.for_corpus("c", corpus, root)
    dedup = Deduplication.for_corpus("c", corpus, root)
    filtering = Filtering.for_corpus("c", corpus, root)
    run_step(cleaning, root / "shards", WholeText(), 1)
    followed = []
    for line, pair in zip(lines, pairs, strict=True):
        counts = SetCounts()
        new = cleaning.clean(1, pair, counts)
        right = english_german(line.right) if line.right else None
        followed.append(Followed(line.fault, right, new or pair, "".join(counts.dropped)))
    remaining = not_dropped(followed)
    part = root / "part"
    part.mkdir()
    dedup.process_shard(Shard(), part, 1)
    # The number of the rule that drops each line, from 1; 0 if none does.
    rule_numbers = dedup.find_rules_of_pairs([part], root).tolist()
    for line, rule_number in zip(remaining, rule_numbers, strict=True):
        line.dropped_by = ("", *dedup.rules)[rule_number]
    remaining = not_dropped(followed)
    remaining_pairs = [line.pair for line in remaining]
    write_set(filtering.input_text, "train", remaining_pairs)
    rules = filtering.first_failed_checks(remaining_pairs)
    for line, rule in zip(remaining, rules, strict=True):
        line.dropped_by = rule or ""
    return followed


def share(followed: Sequence[Followed], fault: str) -> float:
    """Return the share of the lines with a fault that were dropped or repaired."""
    changes = [line.is_changed for line in followed if line.fault == fault]
    return sum(changes) / len(changes)


def follow_one_line_per_fault(folder: Path, lines: Sequence[Line]) -> list[Followed]:
    """Apply the rules of the phrasebook corpus, except those that learn translations from it."""
    checks = tuple(check for check in CORPUS.filter if not check.needs_translations)
    return follow(folder, lines, replace(CORPUS, filter=checks))


def test_each_line_with_a_fault_is_dropped_by_the_rule_for_this_fault(tmp_path: Path) -> None:
    correct = ("I sleep in 2019.", "Ich schlafe 2019.", "")
    expected_rules = [
        (Line(correct, "", correct), ""),
        (Line(correct, "duplicate"), "duplicate_pair"),
        (Line(("He sees.", "", ""), "empty_side", ("He sees.", "Er sieht.", "")), "empty_side"),
        # `follow` adds this pair to the test set.
        (Line(("We ask.", "Wir fragen.", ""), "test_sentence"), "source_held_out"),
        (Line(("He is 7.", "Er ist acht.", ""), "", ("He is 7.", "Er ist acht.", "")), "numerals"),
        # Without learned translations, no rule notices the wrong translation.
        (Line(("You run.", "Er schläft.", ""), "misaligned", ("You run.", "Du läufst.", "")), ""),
    ]

    followed = follow_one_line_per_fault(tmp_path, [line for line, _ in expected_rules])

    rules = [line.dropped_by for line in followed]
    assert rules == [rule for _, rule in expected_rules]


def test_a_fault_counts_as_found_if_its_line_was_dropped(tmp_path: Path) -> None:
    correct = ("I sleep in 2019.", "Ich schlafe 2019.", "")
    without_fault = Line(correct, "", correct)
    dropped_duplicate = Line(correct, "duplicate")
    dropped_although_correct = Line(
        ("He is 7.", "Er ist acht.", ""), "", ("He is 7.", "Er ist acht.", "")
    )
    overlooked = Line(("You run.", "Er schläft.", ""), "misaligned", ("You run.", "Du läufst.", ""))
    lines = [without_fault, dropped_duplicate, dropped_although_correct, overlooked]

    followed = follow_one_line_per_fault(tmp_path, lines)

    assert [line.is_changed for line in followed] == [False, True, True, False]


def test_a_fault_counts_as_found_if_cleaning_repaired_its_line(tmp_path: Path) -> None:
    """Cleaning repairs mojibake, but not a letter of which only half is left (Ã)."""
    repairable = Line(
        ("You must.", "Du mÃ¼sstest.", ""), "mojibake", ("You must.", "Du müsstest.", "")
    )
    damaged = Line(("I see.", "Ich kÃ¼sse Ã.", ""), "mojibake", ("I see.", "Ich küsse.", ""))

    followed = follow_one_line_per_fault(tmp_path, [repairable, damaged])

    assert [line.dropped_by for line in followed] == ["", ""]
    assert [line.is_changed for line in followed] == [True, False]
    assert share(followed, "mojibake") == 0.5  # one of two lines


def test_word_alignment_drops_nine_in_ten_misaligned_lines_and_no_correct_line(
    tmp_path: Path,
) -> None:
    """Two quick rules come first: they drop what does not need the alignment of words."""
    word_alignment = CHECKS["word_alignment"](min=1.0)  # type: ignore[call-arg]
    quick_checks = tuple(
        check for check in CORPUS.filter if check.name() in ("numerals", "terminal_punctuation")
    )
    corpus = replace(CORPUS, filter=(*quick_checks, word_alignment))

    followed = follow(tmp_path, noisy_lines(), corpus)

    faults_of_dropped_lines = [
        line.fault for line in followed if line.dropped_by == word_alignment.name()
    ]
    assert share(followed, "misaligned") >= 0.9
    assert faults_of_dropped_lines.count("misaligned") > 100
    assert "" not in faults_of_dropped_lines  # the fault of a correct line is ""


def test_the_table_in_preparation_md_has_the_share_of_each_fault_that_the_rules_find(
    tmp_path: Path,
) -> None:
    docs = (ROOT / "docs" / "preparation.md").read_text("utf-8")
    # A row of the table: | `fault` | lines | ... percent % |
    rows = re.findall(r"^\| `(\w+)` \| (\d+) \|.* (\d+) % \|$", docs, re.MULTILINE)
    documented = {fault: (int(lines), int(percent)) for fault, lines, percent in rows}

    followed = follow(tmp_path, noisy_lines())

    faults = [line.fault for line in followed]
    measured = dict[str, tuple[int, int]]()
    for fault in FAULTS:
        measured[fault] = (faults.count(fault), round(100 * share(followed, fault)))
    assert documented == measured

    dropped_correct_lines = sum(line.is_changed for line in followed if not line.fault)
    correct_lines = faults.count("")
    assert f"{dropped_correct_lines} of {correct_lines:,} lines without a fault" in docs
