"""The command `bleuprint compare`: two rows, or the same ones at two revisions."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from itertools import chain

import pandas as pd

from bleuprint.config.experiment import load
from bleuprint.report import compare_tables
from bleuprint.report.compare_tables import OnTest, Pair, Side
from bleuprint.report.grid import Grid
from bleuprint.report.paired import p_text
from bleuprint.report.revision import at, commit_of
from bleuprint.runtime.errors import UserError
from bleuprint.scoring.sacrebleu_measures import sentence_bleu
from bleuprint.text.unicode import blank_unprinted


def compare(
    first: str, second: str, corpus: str | None = None, sentences: int = 10
) -> Iterator[str | Grid]:
    """Lines and tables on A and B, each SYSTEM, SYSTEM@REVISION, @REVISION or REVISION.

    Without a system, that of the other side; without one on both sides, every system that both
    have. No revision, or an empty one, is the working tree. A name without an @ is a revision if
    params.yaml has no system or row of that name. With a `corpus`, it alone is compared,
    and its translations, too. Raises UserError for what does not exist.
    """
    (a, at_a), (b, at_b) = map(_parse, (first, second))
    with ExitStack() as stack:
        opened = {name: stack.enter_context(at(name)) for name in dict.fromkeys((at_a, at_b))}
        before, after = opened[at_a], opened[at_b]
        named = [(a or b, b or a)]
        if not a and not b:
            common = (name for name in before.settings.systems if name in after.settings.systems)
            named = [(name, name) for name in common]
        if not named:
            raise UserError(f"{first} and {second}: no system of the same name")
        for names in named:
            pair = Pair(Side(names[0], before), Side(names[1], after), corpus)
            yield from _overview(pair)
            if corpus:
                for runs in pair.tests():
                    yield from _translations(pair, runs, sentences)


def _parse(text: str) -> tuple[str, str]:
    """The system and the revision of an argument."""
    system, at_sign, revision = text.partition("@")
    if not system and not at_sign:
        raise UserError(f"{text!r}: not SYSTEM, SYSTEM@REVISION or REVISION")
    if not at_sign:
        settings = load()
        if text not in {*settings.systems, *chain.from_iterable((settings.outside or {}).values())}:
            with suppress(UserError):  # which says of a misspelled system that it is no revision
                commit_of(text)
                return "", text
    return system, revision


def _overview(pair: Pair) -> Iterator[str | Grid]:
    """Settings, data, training and scores, as far as they differ."""
    grids = {part: compare_tables.differing(pair, part) for part in compare_tables.PARTS}
    same = ", ".join(title.lower() for title, grid in grids.items() if grid is None)
    if not any(grids.values()) and pair.same_scores:
        yield f"{pair}: nothing differs: {same}, scores"
        return
    yield str(pair)
    for title, grid in grids.items():
        if grid is not None:
            yield f"\n{title}"
            yield grid
    yield "\nScores"
    yield from compare_tables.scores(pair)
    if same:
        yield f"the same: {same}"
    yield ""


def _translations(pair: Pair, runs: OnTest, sentences: int) -> Iterator[str]:
    """The paired tests and the most changed sentences of the first seed.

    `sentences` is the number of improved, and of worsened ones.
    """
    before, after = runs.first[0], runs.second[0]
    yield f"{pair} on {before.cell.corpus}, seed {before.cell.seed}, test set {runs.test}"
    if reason := runs.not_comparable:
        yield f"not compared: {reason}"
        return
    for (_, group), of in runs.compared().items():
        if of.measure.kind == "score" and not group and of.tests:
            yield (
                f"difference in {of.measure.label}: {p_text(of.tests[0].bootstrap)} (paired "
                f"bootstrap), {p_text(of.tests[0].randomization)} (approximate randomization)"
            )
    (references, first), (_, second) = before.lines(runs.test), after.lines(runs.test)
    changed = changes(first, second, references, before.texts.target)
    labels = ("source", "reference", *map(str, pair.sides))
    # pairs: a system may be called source or reference
    lines = (before.sources(runs.test), references, first, second)
    texts = list(zip(labels, lines, strict=True))
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
