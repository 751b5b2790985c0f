"""The command `bleuprint compare`: two rows of a report, or of those of two revisions."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from bleuprint.config.experiment import Settings, load_resolved_settings, load_settings
from bleuprint.config.paths import RESOLVED, Run
from bleuprint.report import frame
from bleuprint.report.paired import PairedDifference, p_text, paired_differences, paired_t
from bleuprint.report.records import check_settings
from bleuprint.report.revision import revision_files
from bleuprint.report.score_frame import (
    SYSTEM_AND_TEST,
    agreement,
    floor_between,
    format_difference,
    score_frame,
    select_metric,
)
from bleuprint.report.table import NONE, Table, table_of
from bleuprint.report.terminal import wrapped
from bleuprint.runs.results import Results
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.flatten import flatten_settings
from bleuprint.runtime.wording import join_with_and
from bleuprint.scoring.human_agreement import (
    AGREEMENT_COLUMN,
    AGREEMENT_NOTE,
    agreement_text,
    human_agreement,
)
from bleuprint.scoring.metrics import METRICS
from bleuprint.scoring.sacrebleu_metrics import sentence_bleu
from bleuprint.scoring.significance import SIGNIFICANCE_LEVEL
from bleuprint.text.unicode import replace_unprintable

_OF_TEXTS = ("sources_sha256", "references_sha256")


@dataclass(frozen=True, eq=False)
class _Result:
    """A row of a report on a test set.

    Attributes:
        bleu: Its BLEU, a row of the score frame.
        scores: By metric the row of the score frame on all lines.
        runs: Its runs, one for each seed.
        metrics: What was measured on all lines, by seed.
    """

    bleu: Any
    scores: Mapping[str, Any]
    runs: pd.DataFrame
    metrics: pd.DataFrame

    def values(self, metric: str) -> list[float]:
        """Return the values in a metric by seed."""
        return list(select_metric(self.metrics, metric).value)


@dataclass(frozen=True, eq=False)
class _Pair:
    """The results of both sides on a test set."""

    before: _Result
    after: _Result

    @property
    def are_trained(self) -> bool:
        """Whether both rows were trained here."""
        return bool(self.before.bleu.is_trained and self.after.bleu.is_trained)

    @property
    def have_same_lines(self) -> bool:
        """Whether both have one test set, by the SHA-256 of its texts."""
        texts = pd.concat([self.before.runs, self.after.runs])[list(_OF_TEXTS)]
        return len(texts.drop_duplicates()) == 1

    @property
    def have_same_outputs(self) -> bool:
        """Whether all translations are the same, by their SHA-256."""
        before = list(self.before.runs.hypotheses_sha256)
        return before == list(self.after.runs.hypotheses_sha256)

    @property
    def why_untested(self) -> str:
        """Why their difference is not tested; empty if it is."""
        return floor_between(self.before.bleu, self.after.bleu)


@dataclass(frozen=True, eq=False)
class _Side:
    """A row of a report, on one corpus or on all; `revision` is empty for the working tree.

    `apart`: the other side is on another corpus.
    """

    row_name: str
    corpus: str | None
    revision: str
    settings: Settings
    records: frame.Records
    apart: bool

    def __str__(self) -> str:
        row = f"{self.row_name}, {self.corpus}" if self.apart else self.row_name
        return f"{row}@{self.revision}" if self.revision else row

    def results(self, seeds: Sequence[int]) -> dict[tuple[str, str], _Result]:
        """By corpus, empty where sides are `apart`, and test set; UserError if there are none."""
        runs, corpus = self.records.runs, self.corpus
        of_row = (runs.system == self.row_name) & runs.seed.isin(seeds)
        if not of_row.any():
            self.settings.system_settings(self.row_name)  # which says how others are called
        if corpus and self.settings.corpus(corpus):
            of_row &= runs.corpus == corpus
        if not of_row.any():
            raise UserError(f"{self}: no results on {corpus} with the seeds {seeds}")
        kept = self.records.select_runs(of_row)
        runs = _sorted_by_seed(kept.runs, seeds)
        metrics = _sorted_by_seed(kept.metrics, seeds)
        scores = score_frame(frame.Records(runs, metrics))
        runs_of = dict(list(runs.groupby(SYSTEM_AND_TEST, sort=False)))
        metrics_of = dict(list(metrics.groupby(SYSTEM_AND_TEST, sort=False)))
        found = {}
        for place, of_place in scores[scores.group == ""].groupby(SYSTEM_AND_TEST, sort=False):
            by_metric = {row.metric: row for row in of_place.itertuples(index=False)}
            result = _Result(by_metric["bleu"], by_metric, runs_of[place], metrics_of[place])
            _, corpus, test = place
            found["" if self.apart else corpus, test] = result
        return found

    def opened(self, result: _Result) -> list[Results]:
        """The files behind a result of the working tree, by seed."""
        opened = []
        for seed in result.runs.seed:
            run = Run(result.bleu.system, result.bleu.corpus, int(seed))
            opened.append(Results.open(self.settings, run).check())
        return opened


def _sorted_by_seed(table: pd.DataFrame, seeds: Sequence[int]) -> pd.DataFrame:
    """Return the rows of a table in the order of the seeds."""
    return table.sort_values("seed", key=lambda column: column.map(seeds.index), kind="stable")


def compare(
    first: str, second: str, corpus: str | None = None, sentences: int = 10
) -> Iterator[str | Table]:
    """Yield lines and tables on two rows of reports.

    Args:
        first: A: SYSTEM, SYSTEM@REVISION or @REVISION. SYSTEM may be `SYSTEM, CORPUS`, as tables
            name rows. Without a system or a corpus, it is that of the other side; without a system
            on both sides, every one that both have is compared. No revision, or an empty one, is
            the working tree.
        second: B, in the same form.
        corpus: The only corpus that is compared, if neither side names one. With a corpus, the
            translations are compared, too.
        sentences: How many better and how many worse sentences are shown.

    Raises:
        UserError: If one of them does not exist.
    """
    if first == second == "@":
        raise UserError("both sides are the working tree: is a variable not set?")
    a = _parse(first)
    b = _parse(second)
    corpus_a = a.corpus or corpus or b.corpus
    corpus_b = b.corpus or corpus or a.corpus
    is_apart = corpus_a != corpus_b
    opened = {revision: _open(revision) for revision in dict.fromkeys((a.revision, b.revision))}
    settings_a, records_a = opened[a.revision]
    settings_b, records_b = opened[b.revision]
    rows = [(a.system or b.system, b.system or a.system)]
    if not a.system and not b.system:
        rows = [
            (name, name)
            for name in settings_a.trained_systems
            if name in settings_b.trained_systems
        ]
    if not rows:
        raise UserError(f"{first} and {second}: no system of the same name")
    for row_a, row_b in rows:
        side_a = _Side(row_a, corpus_a, a.revision, settings_a, records_a, is_apart)
        side_b = _Side(row_b, corpus_b, b.revision, settings_b, records_b, is_apart)
        yield from _compared(side_a, side_b, sentences)


def _open(name: str) -> tuple[Settings, frame.Records]:
    """The settings and records of a revision."""
    if not name:
        settings, records = load_settings(), frame.load()
        check_settings(records, settings, frame.RESULTS)
        return settings, records
    with revision_files(name, (RESOLVED, frame.RESULTS)) as root:
        settings, records = load_resolved_settings(root), frame.load(root)
        otherwise = f"name a revision whose results are of its {RESOLVED}"
        check_settings(records, settings, root / frame.RESULTS, otherwise)
        return settings, records


@dataclass(frozen=True)
class _Argument:
    """What an argument of the command names; what it leaves out is empty."""

    system: str
    corpus: str
    revision: str


def _parse(text: str) -> _Argument:
    """Return what an argument of the command names."""
    row, at_sign, revision = text.partition("@")
    system, _, corpus = row.partition(",")
    if not system and not at_sign:
        raise UserError(f"{text!r}: write SYSTEM, SYSTEM@REVISION or @REVISION")
    if row and at_sign and not revision.strip():
        raise UserError(f"{text!r}: no revision after the @: is a variable not set?")
    return _Argument(system, corpus.strip(), revision)


def _compared(first: _Side, second: _Side, sentences: int) -> Iterator[str | Table]:
    """Yield what differs between two sides, their scores, and the sentences that changed most."""
    names = f"{first} and {second}"
    if str(first) == str(second):
        raise UserError(f"{first}: compared with itself")
    seeds = [seed for seed in first.settings.seeds if seed in second.settings.seeds]
    if not seeds:
        raise UserError(f"{names}: no seed in common")
    pairs = _pairs(first.results(seeds), second.results(seeds))
    if not pairs:
        raise UserError(f"{names}: no test set in common")
    corpora = [] if first.apart else [pair.before.bleu.corpus for pair in pairs]
    are_trained = all(pair.are_trained for pair in pairs)
    settings_a = _settings(first, dict.fromkeys(corpora), are_trained)
    settings_b = _settings(second, dict.fromkeys(corpora), are_trained)
    have_same_results = all(pair.have_same_lines and pair.have_same_outputs for pair in pairs)
    if settings_a == settings_b and have_same_results:
        yield f"{names}: nothing differs: settings, translations, scores"
        return
    yield names
    yield from _differing_settings(settings_a, settings_b, [str(first), str(second)])
    yield from _scores(first, second, pairs, seeds)
    yield ""
    if first.corpus and not first.revision and not second.revision:
        for pair in pairs:
            if pair.have_same_lines:
                yield from _translations(first, second, pair, sentences)


def _pairs(
    before: Mapping[tuple[str, str], _Result], after: Mapping[tuple[str, str], _Result]
) -> list[_Pair]:
    """Return the results of both sides on each test set that both have."""
    return [_Pair(result, after[place]) for place, result in before.items() if place in after]


def _differing_settings(
    one: Mapping[str, str], other: Mapping[str, str], heads: Sequence[str]
) -> Iterator[str | Table]:
    """Yield a table of the settings that differ, or a line if none does."""
    rows = []
    for key in dict.fromkeys((*one, *other)):
        if one.get(key) != other.get(key):
            rows.append((key, one.get(key, NONE), other.get(key, NONE)))
    if not rows:
        yield "the same: settings"
        return
    yield "\nSettings"
    yield table_of(["settings"], heads, rows)


def _scores(
    first: _Side, second: _Side, pairs: Sequence[_Pair], seeds: Sequence[int]
) -> Iterator[str | Table]:
    """Yield the table of scores and how to read it."""
    rows = []
    for pair in pairs:
        for metric, p in _tests(first, second, pair).items():
            rows.append(_score(metric, pair, p))
    yield "\nScores"
    heads = [str(first), str(second), "Δ", "p", AGREEMENT_COLUMN]
    yield table_of(["corpus", "test set", "score"], heads, rows)
    yield wrapped(
        f"Seeds: {', '.join(map(str, seeds))}. p: paired t-test over several seeds, of one "
        "paired bootstrap over lines (output errors: randomization), of an external system the "
        f"largest against each seed, each alone, not corrected; {NONE}: other test sets, or one "
        "seed of another revision. Output errors: lines with an error that their reference lacks."
    )
    for pair in pairs:
        if pair.why_untested:
            row = pair.after.bleu
            yield wrapped(f"{row.corpus}, {row.test}: {pair.why_untested}, so without p.")
    if any(row[-1] != NONE for row in rows):
        yield wrapped(AGREEMENT_NOTE)


def _settings(side: _Side, corpora: Iterable[str], trained: bool) -> dict[str, str]:
    """The settings by dotted key: the row's, the corpora's and the seeds.

    Unless both rows were `trained` here, they have no settings in common: those of files alone.
    """
    settings = side.settings
    if side.apart and side.corpus:
        row = settings.trained_systems_on(side.corpus).get(side.row_name) if trained else None
        corpus = settings.corpus(side.corpus).deciding_settings()
        return flatten_settings(row or {}) | flatten_settings(
            {"corpus": corpus, "seeds": settings.seeds}
        )
    files = {}
    by_corpus = settings.all_systems.get(side.row_name, {})
    for name in corpora:
        files[name] = None if settings.is_trained(side.row_name) else by_corpus.get(name)
    texts = {name: settings.corpus(name).deciding_settings() for name in corpora}
    own = settings.dotted_settings(side.row_name) if trained else flatten_settings(files)
    return {**own, **flatten_settings({"corpora": texts, "seeds": settings.seeds})}


def _tests(first: _Side, second: _Side, pair: _Pair) -> dict[str, float | None]:
    """Return p of every score, and of every error that occurs; None where it is not tested."""
    over_lines: dict[tuple[str, str], PairedDifference] = {}
    if pair.have_same_lines and not first.revision and not second.revision:
        test = pair.before.bleu.test
        one = [run.metrics(test) for run in first.opened(pair.before)]
        other = [run.metrics(test) for run in second.opened(pair.after)]
        over_lines = paired_differences(one, other, pair.are_trained)
    found: dict[str, float | None] = {}
    for metric in pair.before.scores:
        if not _is_shown(metric, pair):
            continue
        if pair.why_untested:
            found[metric] = None
        elif over_lines:
            tested = over_lines.get((metric, ""))
            found[metric] = tested.p if tested else None
        else:
            found[metric] = _p_over_seeds(metric, pair)
    return found


def _is_shown(metric: str, pair: _Pair) -> bool:
    """Return whether both sides have a score in a metric, or an error that occurs."""
    if metric not in pair.after.scores or metric not in METRICS:
        return False
    if METRICS[metric].kind == "error":
        return any((*pair.before.values(metric), *pair.after.values(metric)))
    return METRICS[metric].kind == "score"


def _p_over_seeds(metric: str, pair: _Pair) -> float | None:
    """Return p of the paired t-test over several seeds; None where it cannot be tested."""
    signatures = {pair.before.scores[metric].signature, pair.after.scores[metric].signature}
    if len(signatures) > 1 or not pair.have_same_lines or not pair.are_trained:
        return None
    values = zip(pair.before.values(metric), pair.after.values(metric), strict=True)
    differences = [after - before for before, after in values]
    return paired_t(differences) if len(differences) > 1 else None


def _score(metric: str, pair: _Pair, p: float | None) -> tuple[str, ...]:
    """Return the row of a metric of both sides."""
    first = pair.before.scores[metric]
    second = pair.after.scores[metric]
    difference = second.value - first.value
    is_significant = p is not None and p < SIGNIFICANCE_LEVEL
    people = NONE
    if is_significant:
        fitted = agreement(metric, second.signature, second.target)
        if fitted is not None:
            people = agreement_text(fitted, human_agreement(fitted, difference))
    p_shown = NONE
    if p is not None:
        p_shown = p_text(p).lstrip("p=")
        if not is_significant:
            p_shown = f"{p_shown} n.s."
    return (
        join_with_and(dict.fromkeys((first.corpus, second.corpus))),
        first.test,
        METRICS[metric].label,
        _shown_score(first),
        _shown_score(second),
        format_difference(difference, is_significant),
        p_shown,
        people,
    )


def _shown_score(row: Any) -> str:
    """Return a score, with its deviation if there are several seeds."""
    return str(row.value_text if pd.isna(row.deviation) else row.score_text)


def _translations(first: _Side, second: _Side, pair: _Pair, sentences: int) -> Iterator[str]:
    """Yield the sentences of the first seed that improved and that worsened most."""
    test = pair.before.bleu.test
    run_a = first.opened(pair.before)[0]
    run_b = second.opened(pair.after)[0]
    corpora = join_with_and(dict.fromkeys((run_a.run.corpus, run_b.run.corpus)))
    yield f"{first} and {second} on {corpora}, seed {run_a.run.seed}, test set {test}"
    references, translations_a = run_a.references_and_translations(test)
    _, translations_b = run_b.references_and_translations(test)
    changed = changes(translations_a, translations_b, references, pair.before.bleu.target)
    # a list of pairs, since a system may be called source or reference
    texts = [
        ("source", run_a.source_lines(test)),
        ("reference", references),
        (str(first), translations_a),
        (str(second), translations_b),
    ]
    yield "\nMost improved, by BLEU of the sentence:"
    yield from _sentences(changed[changed.delta > 0], sentences, texts)
    yield "\nMost worsened, by BLEU of the sentence:"
    yield from _sentences(changed[changed.delta < 0], sentences, texts)


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
            yield f"  {label:{width}}  {replace_unprintable(lines[change.Index - 1])}"
    if changed.empty:
        yield "no sentence"
