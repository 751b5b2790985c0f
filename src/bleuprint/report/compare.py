"""The command `bleuprint compare`: two systems, or the same ones at two revisions."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from itertools import chain

import pandas as pd

from bleuprint.config.experiment import Settings, load
from bleuprint.report import compare_tables
from bleuprint.report.grid import Grid
from bleuprint.report.pair import Pair, PairedTests, Side
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
    sides = [_parse(text) for text in (first, second)]
    with ExitStack() as stack:
        revisions = {
            name: stack.enter_context(at(name)) for name in dict.fromkeys(name for _, name in sides)
        }
        before, after = (revisions[name] for _, name in sides)
        systems = [system for system, _ in sides]
        if any(systems):
            named = [(systems[0] or systems[1], systems[1] or systems[0])]
        else:
            common = [name for name in before.settings.systems if name in after.settings.systems]
            if not common:
                raise UserError(f"{first} and {second}: no system of the same name")
            named = [(name, name) for name in common]
        for a, b in named:
            pair = Pair(Side(a, before), Side(b, after), corpus)
            for side in pair.sides:
                side.revision.fetch(pair.cells(side))
            yield from _overview(pair)
            if corpus:
                yield from _translations(pair, sentences)


def _parse(text: str) -> tuple[str, str]:
    """The system and the revision of an argument."""
    system, at_sign, revision = text.partition("@")
    if not system and not at_sign:
        raise UserError(f"{text!r}: not SYSTEM, SYSTEM@REVISION or REVISION")
    if not at_sign and text not in _rows(load()):
        with suppress(UserError):  # which says of a misspelled system that it is no revision
            commit_of(text)
            return "", text
    return system, revision


def _rows(settings: Settings) -> set[str]:
    return {*settings.systems, *chain.from_iterable((settings.outside or {}).values())}


def _overview(pair: Pair) -> Iterator[str | Grid]:
    """Settings, fingerprints, data, training and scores, as far as they differ."""
    grids = {part: compare_tables.differing(pair, part) for part in compare_tables.parts(pair)}
    same = [title.lower() for title, grid in grids.items() if grid is None]
    if len(same) == len(grids) and compare_tables.same_scores(pair):
        yield f"{pair.first} and {pair.second}: nothing differs: {', '.join(same)}, scores"
        return
    yield f"{pair.first} and {pair.second}"
    for title, grid in grids.items():
        if grid is not None:
            yield f"\n{title}"
            yield grid
    yield "\nScores"
    yield from compare_tables.scores(pair)
    yield "each p is of one test alone, not corrected for the number of tests"
    if same:
        yield f"the same: {', '.join(same)}"
    yield ""


def _translations(pair: Pair, sentences: int) -> Iterator[str]:
    """On each test set: paired tests and the most changed sentences.

    They are of the first corpus and seed of the pair; `sentences` is the number of improved, and of
    worsened ones.
    """
    first, second = ([side.results(pair.corpora[0], pair.seeds[0])] for side in pair.sides)
    for runs in pair.tests([first, second]):
        yield from _on_test(pair, runs, sentences)


def _on_test(pair: Pair, runs: PairedTests, sentences: int) -> Iterator[str]:
    (corpus, test), seed = runs.place, pair.seeds[0]
    yield f"{pair.first} and {pair.second} on {corpus}, seed {seed}, test set {test}"
    if reason := runs.not_comparable:
        yield f"not compared: {reason}"
        return
    for (_, group), of in runs.compared().items():
        if of.measure.kind == "score" and not group and of.tests:
            yield (
                f"difference in {of.measure.label}: {p_text(of.tests[0].bootstrap)} (paired "
                f"bootstrap), {p_text(of.tests[0].randomization)} (approximate randomization)"
            )
    (before,), (after,) = runs.first, runs.second
    (references, first), (_, second) = before.lines(test), after.lines(test)
    changed = changes(first, second, references, runs.target)
    labels = ("source", "reference", *map(str, pair.sides))
    # pairs: a system may be called source or reference
    texts = list(zip(labels, (before.sources(test), references, first, second), strict=True))
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
