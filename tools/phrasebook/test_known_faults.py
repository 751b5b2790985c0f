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
        """Whether a line with a fault was dropped or repaired, or one without a fault dropped."""
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


def test_a_fault_is_found_if_its_line_is_dropped_or_becomes_the_right_one(tmp_path: Path) -> None:
    good = ("I sleep in 2019.", "Ich schlafe 2019.", "")
    lines = [
        Line(good, "", good),
        Line(good, "duplicate"),
        Line(("He sees.", "", ""), "empty_side", ("He sees.", "Er sieht.", "")),
        Line(("We ask.", "Wir fragen.", ""), "test_sentence"),
        Line(("You must.", "Du mÃ¼sstest.", ""), "mojibake", ("You must.", "Du müsstest.", "")),
        Line(("I see.", "Ich kÃ¼sse Ã.", ""), "mojibake", ("I see.", "Ich küsse.", "")),
        Line(("He is 7.", "Er ist acht.", ""), "", ("He is 7.", "Er ist acht.", "")),
        Line(("You run.", "Er schläft.", ""), "misaligned", ("You run.", "Du läufst.", "")),
    ]  # fmt: skip
    # Translations cannot be learned from eight lines.
    checks = tuple(check for check in CORPUS.filter if not check.needs_translations)
    followed = follow(tmp_path, lines, replace(CORPUS, filter=checks))
    dropped = ["", "duplicate_pair", "empty_side", "source_held_out", "", "", "numerals", ""]
    assert [line.dropped_by for line in followed] == dropped
    assert [line.is_changed for line in followed] == [False, *[True] * 4, False, True, False]
    assert share(followed, "mojibake") == 0.5


def test_alignment_score_finds_misaligned_lines_and_drops_no_good_one(tmp_path: Path) -> None:
    check = CHECKS["word_alignment"](min=1.0)  # type: ignore[call-arg]
    quick = tuple(
        rule for rule in CORPUS.filter if rule.name() in ("numerals", "terminal_punctuation")
    )
    followed = follow(tmp_path, noisy_lines(), replace(CORPUS, filter=(*quick, check)))
    assert share(followed, "misaligned") >= 0.9
    by_score = [line.fault for line in followed if line.dropped_by == check.name()]
    assert by_score.count("misaligned") > 100
    assert "" not in by_score


def test_the_default_rules_find_what_the_documentation_says(tmp_path: Path) -> None:
    followed = follow(tmp_path, noisy_lines())
    docs = (ROOT / "docs" / "preparation.md").read_text("utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (\d+) \|.* (\d+) % \|$", docs, re.MULTILINE)
    documented = {fault: (int(lines), int(percent)) for fault, lines, percent in rows}
    faults = [line.fault for line in followed]
    measured = dict[str, tuple[int, int]]()
    for fault in FAULTS:
        measured[fault] = (faults.count(fault), round(100 * share(followed, fault)))
    assert documented == measured
    wrong = sum(line.is_changed for line in followed if not line.fault)
    assert f"{wrong} of {faults.count(''):,} lines without a fault" in docs
