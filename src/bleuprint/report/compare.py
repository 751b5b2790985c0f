"""The command `bleuprint compare`: two rows of a report, or of those of two revisions."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from bleuprint.cells.results import Results
from bleuprint.config.experiment import Settings, load, load_resolved
from bleuprint.config.paths import RESOLVED, Cell
from bleuprint.report import frame
from bleuprint.report.paired import PairedDifference, p_text, paired_differences, paired_t
from bleuprint.report.records import check_settings
from bleuprint.report.revision import files_of, is_revision
from bleuprint.report.score_frame import (
    PLACE,
    agreement,
    agreement_scale,
    floor_between,
    of_measure,
    score_frame,
    signed,
)
from bleuprint.report.table import NONE, Table, table_of
from bleuprint.report.terminal import wrapped
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.flatten import dotted
from bleuprint.scoring.human_agreement import AGREE, AGREEMENT, agreement_text
from bleuprint.scoring.measures import MEASURES
from bleuprint.scoring.sacrebleu_measures import sentence_bleu
from bleuprint.scoring.significance import SIGNIFICANT
from bleuprint.text.unicode import blank_unprinted

_OF_TEXTS = ("sources_sha256", "references_sha256")
# Facts of a cell that are compared; fingerprints by their first digits.
_FACTS = (
    *("outside", "parameters", "updates", "source_tokens", "target_tokens", "models", "engine"),
    *("precision", "binary_sha256", *_OF_TEXTS),
)
_SHORT = 12


@dataclass(frozen=True, eq=False)
class _Result:
    """A row of a report on a test set.

    Attributes:
        row: Its BLEU, a row of the score frame, with the facts of the row.
        scores: By measure the row of the score frame on all lines.
        cells: Its cells, one for each seed.
        measures: What was measured on all lines, by seed.
    """

    row: Any
    scores: Mapping[str, Any]
    cells: pd.DataFrame
    measures: pd.DataFrame

    def values(self, measure: str) -> list[float]:
        """Return the values in a measure by seed."""
        return list(of_measure(self.measures, measure).value)

    @property
    def facts(self) -> "pd.Series[Any]":
        """The facts of the cell of the first seed."""
        return self.cells.iloc[0]


@dataclass(frozen=True, eq=False)
class _Side:
    """A row of a report, on one corpus or on all; `revision` is empty for the working tree.

    `apart`: the other side is on another corpus.
    """

    row: str
    corpus: str | None
    revision: str
    settings: Settings
    records: frame.Records
    apart: bool

    def __str__(self) -> str:
        row = f"{self.row}, {self.corpus}" if self.apart else self.row
        return f"{row}@{self.revision}" if self.revision else row

    def results(self, seeds: Sequence[int]) -> dict[tuple[str, str], _Result]:
        """By corpus, empty where sides are `apart`, and test set; UserError if there are none."""
        cells, corpus = self.records.cells, self.corpus
        of_row = (cells.system == self.row) & cells.seed.isin(seeds)
        if not of_row.any():
            self.settings.system(self.row)  # which says how others are called
        if corpus and self.settings.corpus(corpus):
            of_row &= cells.corpus == corpus
        if not of_row.any():
            raise UserError(f"{self}: no results on {corpus} with the seeds {seeds}")
        kept = self.records.where(of_row)
        cells = _sorted_by_seed(kept.cells, seeds)
        measures = _sorted_by_seed(kept.measures, seeds)
        scores = score_frame(frame.Records(cells, measures))
        cells_of = dict(list(cells.groupby(PLACE, sort=False)))
        measures_of = dict(list(measures.groupby(PLACE, sort=False)))
        found = {}
        for place, of_place in scores[scores.group == ""].groupby(PLACE, sort=False):
            by_measure = {row.measure: row for row in of_place.itertuples(index=False)}
            result = _Result(by_measure["bleu"], by_measure, cells_of[place], measures_of[place])
            _, corpus, test = place
            found["" if self.apart else corpus, test] = result
        return found

    def opened(self, result: _Result) -> list[Results]:
        """The files behind a result of the working tree, by seed."""
        opened = []
        for seed in result.cells.seed:
            cell = Cell(result.row.system, result.row.corpus, int(seed))
            opened.append(Results.open(self.settings, cell).check())
        return opened


def _sorted_by_seed(table: pd.DataFrame, seeds: Sequence[int]) -> pd.DataFrame:
    """Return the rows of a table in the order of the seeds."""
    return table.sort_values("seed", key=lambda column: column.map(seeds.index), kind="stable")


def compare(
    first: str, second: str, corpus: str | None = None, sentences: int = 10
) -> Iterator[str | Table]:
    """Lines and tables on A and B, each SYSTEM, SYSTEM@REVISION, @REVISION or REVISION.

    SYSTEM may be `SYSTEM, CORPUS`, as tables name rows. Without a system or a corpus, that of the
    other side; without one on both sides, every one that both have. No revision, or an empty one,
    is the working tree. A name without an @ is a revision if params.yaml has no system or row of
    that name. With a `corpus`, here or in A or B, it alone is compared, and its translations, too.
    Raises UserError for what does not exist.
    """
    (a, on_a, at_a), (b, on_b, at_b) = map(_parse, (first, second))
    on_a, on_b = on_a or corpus or on_b, on_b or corpus or on_a
    if first == second == "@":
        raise UserError("both sides are the working tree: is a variable not set?")
    opened = {name: _open(name) for name in dict.fromkeys((at_a, at_b))}
    named = [(a or b, b or a)]
    if not a and not b:
        rows = [opened[name][0].systems for name in (at_a, at_b)]
        named = [(name, name) for name in rows[0] if name in rows[1]]
    if not named:
        raise UserError(f"{first} and {second}: no system of the same name")
    for row_a, row_b in named:
        yield from _compared(
            _Side(row_a, on_a, at_a, *opened[at_a], on_a != on_b),
            _Side(row_b, on_b, at_b, *opened[at_b], on_a != on_b),
            sentences,
        )


def _open(name: str) -> tuple[Settings, frame.Records]:
    """The settings and records of a revision."""
    if not name:
        settings, records = load(), frame.load()
        check_settings(records, settings, frame.RESULTS)
        return settings, records
    with files_of(name, (RESOLVED, frame.RESULTS)) as root:
        settings, records = load_resolved(root), frame.load(root)
        otherwise = f"name a revision whose results are of its {RESOLVED}"
        check_settings(records, settings, root / frame.RESULTS, otherwise)
        return settings, records


def _parse(text: str) -> tuple[str, str | None, str]:
    """The system, the corpus, if any, and the revision of an argument."""
    at_sign = re.search(r"@(?!\{)", text)  # HEAD@{1} is a revision
    row, revision = (text[: at_sign.start()], text[at_sign.end() :]) if at_sign else (text, "")
    system, _, corpus = row.partition(",")
    if at_sign and row and not revision.strip():
        raise UserError(f"{text!r}: no revision after the @: is a variable not set?")
    if not system and not at_sign:
        raise UserError(f"{text!r}: not SYSTEM, SYSTEM@REVISION or REVISION")
    if not at_sign and not corpus:
        settings = load()
        if text not in {*settings.systems, *settings.external} and is_revision(text):
            return "", None, text
    return system, corpus.strip() or None, revision


def _compared(first: _Side, second: _Side, sentences: int) -> Iterator[str | Table]:
    sides, heads = (first, second), (str(first), str(second))
    names = " and ".join(heads)
    if heads[0] == heads[1]:
        raise UserError(f"{first}: compared with itself")
    seeds = [seed for seed in first.settings.seeds if seed in second.settings.seeds]
    if not seeds:
        raise UserError(f"{names}: no seed in common")
    before, after = (side.results(seeds) for side in sides)
    places = [place for place in before if place in after]
    if not places:
        raise UserError(f"{names}: no test set in common")
    pairs = [(before[place], after[place]) for place in places]
    rows = [
        _score(key, *pair, p) for pair in pairs for key, p in _tests(first, second, *pair).items()
    ]
    corpora = dict.fromkeys(corpus for corpus, _ in places)
    trained = not any(each.row.is_external for pair in pairs for each in pair)
    parts = {
        "Settings": [_settings(side, corpora, trained) for side in sides],
        "Facts": [_facts(results, first.apart) for results in zip(*pairs, strict=True)],
    }
    outputs = [[[*each.cells.hypotheses_sha256] for each in pair] for pair in pairs]
    if all(a == b for a, b in parts.values()) and all(a == b for a, b in outputs):
        yield f"{names}: nothing differs: settings, facts, scores"
        return
    yield names
    for title, (one, other) in parts.items():
        keys = [key for key in dict.fromkeys((*one, *other)) if one.get(key) != other.get(key)]
        yield f"\n{title}" if keys else f"the same: {title.lower()}"
        if keys:
            lines = [(key, one.get(key, NONE), other.get(key, NONE)) for key in keys]
            yield table_of([title.lower()], heads, lines)
    yield "\nScores"
    yield table_of(["corpus", "test set", "score"], [*heads, "difference", "p", AGREE], rows)
    yield wrapped(
        f"Seeds: {', '.join(map(str, seeds))}. p: paired t-test over several seeds, of one "
        "paired bootstrap over lines (faults: randomization), of a row not trained here the "
        f"largest against each seed, each alone, not corrected; {NONE}: other test sets, or one "
        "seed of another revision. Faults: lines that have one that their reference lacks."
    )
    for one_result, other_result in pairs:
        below = floor_between(one_result.row, other_result.row)
        if below:
            row = other_result.row
            yield wrapped(f"{row.corpus}, {row.test}: {below}, so without p.")
    if any(row[-1] != NONE for row in rows):
        yield wrapped(AGREEMENT)
    yield ""
    here = first.corpus and not first.revision and not second.revision
    for pair in (pair for pair in pairs if here and _same_lines(*pair)):
        runs = [side.opened(each)[0] for side, each in zip(sides, pair, strict=True)]
        yield from _translations(heads, runs, pair[0], sentences)


def _settings(side: _Side, corpora: Iterable[str], trained: bool) -> dict[str, str]:
    """The settings by dotted key: the row's, the corpora's and the seeds.

    Unless both rows were `trained` here, they have no settings in common: those of files alone.
    """
    settings = side.settings
    if side.apart and side.corpus:
        row = settings.systems_on(side.corpus).get(side.row) if trained else None
        corpus = settings.corpus(side.corpus).deciding()
        return dotted(row or {}) | dotted({"corpus": corpus, "seeds": settings.seeds})
    rows = {name: settings.external_on(name).get(side.row) for name in corpora}
    texts = {name: settings.corpus(name).deciding() for name in corpora}
    own = settings.dotted(side.row) if trained else dotted(rows)
    return {**own, **dotted({"corpora": texts, "seeds": settings.seeds})}


def _facts(results: Iterable[_Result], apart: bool) -> dict[str, str]:
    """Facts of the first seed by corpus, of its texts by test set."""
    facts = dict[str, str]()
    for result in results:
        known = result.facts.dropna()
        corpus = [] if apart else [result.row.corpus]
        place = ", ".join((*corpus, result.row.test))
        for name in (name for name in _FACTS if name in known):
            where = [place] if name in _OF_TEXTS else corpus
            most = _SHORT if name.endswith("_sha256") else None
            facts[", ".join((name, *where))] = str(known[name])[:most]
        facts[f"signature of BLEU, {place}"] = result.row.signature
    return facts


def _tests(first: _Side, second: _Side, before: _Result, after: _Result) -> dict[str, float | None]:
    """The p of every score, and of every fault that occurs; None where it is not tested."""
    trained = not before.row.is_external and not after.row.is_external
    same_lines = _same_lines(before, after)
    is_below_floor = bool(floor_between(before.row, after.row))
    of_lines = dict[tuple[str, str], PairedDifference]()
    if same_lines and not first.revision and not second.revision:
        runs = first.opened(before), second.opened(after)
        one, other = ([run.measures(before.row.test) for run in side] for side in runs)
        of_lines = paired_differences(one, other, trained)
    found = dict[str, float | None]()
    for key in before.scores:
        if key not in after.scores or key not in MEASURES:
            continue
        values = before.values(key), after.values(key)
        kind = MEASURES[key].kind
        is_shown = kind == "score" or (kind == "fault" and any((*values[0], *values[1])))
        if not is_shown:
            continue
        found[key] = of_lines[key, ""].p if (key, "") in of_lines else None
        is_comparable = before.scores[key].signature == after.scores[key].signature
        deltas = [b - a for a, b in zip(*values, strict=True)]
        if not of_lines and same_lines and is_comparable and trained and len(deltas) > 1:
            found[key] = paired_t(deltas)
        if is_below_floor:
            found[key] = None
    return found


def _same_lines(before: _Result, after: _Result) -> bool:
    """Whether both have one test set, by the SHA-256 of its texts."""
    texts = pd.concat([each.cells[[*_OF_TEXTS]] for each in (before, after)])
    return len(texts.drop_duplicates()) == 1


def _score(key: str, before: _Result, after: _Result, p: float | None) -> tuple[str, ...]:
    """Return the row of a measure of both sides."""
    first = before.scores[key]
    second = after.scores[key]
    difference = second.value - first.value
    is_significant = p is not None and p < SIGNIFICANT
    people = NONE
    if is_significant:
        per_cent = agreement(key, second.signature, difference, second.target)
        if per_cent is not None:
            people = agreement_text(agreement_scale(key, second.signature), per_cent)
    p_shown = NONE
    if p is not None:
        p_shown = p_text(p).lstrip("p=")
        if not is_significant:
            p_shown = f"{p_shown} n.s."
    return (
        " and ".join(dict.fromkeys((first.corpus, second.corpus))),
        first.test,
        MEASURES[key].label,
        _shown_score(first),
        _shown_score(second),
        signed(difference, is_significant),
        p_shown,
        people,
    )


def _shown_score(row: Any) -> str:
    """Return a score, with its deviation if there are several seeds."""
    return str(row.number if pd.isna(row.deviation) else row.score)


def _translations(
    names: Sequence[str], runs: Sequence[Results], result: _Result, sentences: int
) -> Iterator[str]:
    """The sentences of the first seed that improved and that worsened most."""
    cell, test = runs[0].cell, result.row.test
    corpora = " and ".join(dict.fromkeys(run.cell.corpus for run in runs))
    yield f"{' and '.join(names)} on {corpora}, seed {cell.seed}, test set {test}"
    (references, first), (_, second) = (run.lines(test) for run in runs)
    changed = changes(first, second, references, result.row.target)
    # pairs: a system may be called source or reference
    lines = (runs[0].sources(test), references, first, second)
    texts = list(zip(("source", "reference", *names), lines, strict=True))
    for name, sign in (("improved", 1), ("worsened", -1)):
        yield f"\nMost {name}, by BLEU of the sentence:"
        yield from _sentences(changed[sign * changed.delta > 0], sentences, texts)


def changes(
    first: Sequence[str], second: Sequence[str], references: Sequence[str], language: str
) -> pd.DataFrame:
    """The sentence-level BLEU of each line, counted from 1: first, second and delta."""
    sides = {"first": first, "second": second}
    bleu = {side: sentence_bleu(lines, references, language) for side, lines in sides.items()}
    table = pd.DataFrame(bleu, index=range(1, len(references) + 1))
    return table.assign(delta=table.second - table.first)


def _sentences(
    changed: pd.DataFrame, most: int, texts: Sequence[tuple[str, Sequence[str]]]
) -> Iterator[str]:
    """The largest changes first; ties in the order of lines."""
    width = max(len(label) for label, _ in texts)
    largest = changed.sort_values("delta", key=abs, ascending=False, kind="stable").head(most)
    for change in largest.itertuples():
        scores = f"from {change.first:.1f} to {change.second:.1f}"
        yield f"\nline {change.Index}: {change.delta:+z.1f}, {scores}"
        for label, lines in texts:
            yield f"  {label:{width}}  {blank_unprinted(lines[change.Index - 1])}"
    if changed.empty:
        yield "no sentence"
