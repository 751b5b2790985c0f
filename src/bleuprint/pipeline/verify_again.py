"""What `bleuprint verify` computes again, since a forger may have made all sums fit."""

from collections.abc import Iterator
from pathlib import Path

from bleuprint.config.experiment import Settings
from bleuprint.config.paths import folder
from bleuprint.corpus.heldout import HeldOutSentences
from bleuprint.report.frame import REPORTS, load
from bleuprint.report.report import PAGE
from bleuprint.text.parallel import TextFolder
from bleuprint.tracking.cell_results import cells_of

# The largest share of sentences whose other translation may be due to another machine.
_MOST_OTHERS = 0.2


def held_out_in_training(settings: Settings, root: Path) -> Iterator[str]:
    """The corpora with sentences of a validation or test set in the training text."""
    for name, corpus in settings.corpora.items():
        texts = TextFolder(folder(name, "split", root), corpus.source, corpus.target)
        if not texts.path.exists() or (how := corpus.dedup.decontaminate) == "none":
            continue
        held_out = HeldOutSentences(how)
        for each in texts.held_out():
            held_out.add(texts.pairs(each))
        if found := sum(held_out.side(pair) > 0 for pair in texts.pairs("train")):
            yield (
                f"{texts.files('train')[0]}: {found:,} pairs have a sentence of a validation or "
                f"test set, which dedup and split remove; run: dvc repro --force --single-item "
                f"dedup@{name}"
            )


def translations(settings: Settings, root: Path) -> tuple[list[str], str]:
    """The cells whose model gives other translations; how many sentences were translated again.

    Cells without their model or binary corpus here are left out.
    """
    from bleuprint.pipeline.spot_check import spot_check  # torch takes a second

    problems = list[str]()
    same = drawn = 0
    for cell in cells_of(settings):
        binary, model = folder(cell.corpus, "binary", root), root / cell.models / "averaged"
        if not binary.exists() or not model.exists():
            continue
        decode = settings.system_on(cell.system, cell.corpus).decode
        found = spot_check(binary, model, decode, root / cell.results / "hypotheses")
        same, drawn = same + found.same, drawn + found.drawn
        if found.drawn - found.same > _MOST_OTHERS * found.drawn:
            problems.append(
                f"{root / cell.results / 'hypotheses'}: of {found.drawn} sentences drawn at "
                f"random, {model} translates {found.drawn - found.same} otherwise; run: "
                f"dvc repro --force --single-item translate@{'-'.join(map(str, cell))}"
            )
    if not drawn:
        return problems, "but no sentence was translated again, since no model is here"
    return problems, f"{same} of {drawn} sentences drawn at random translated again as before"


def page_differs(settings: Settings, root: Path) -> bool:
    """Whether there is a page, and the report would write another: DVC does not track it."""
    from bleuprint.report.page.context import ReportContext
    from bleuprint.report.page.document import document

    if not (path := root / REPORTS / PAGE).exists():
        return False
    page = document(ReportContext(settings, load(root), root))
    return page.encode() != path.read_bytes()
