"""The section of provenance: code, settings and data of the numbers; how to repeat them."""

from collections.abc import Iterator, Mapping

from bleuprint.config.corpus import Corpus
from bleuprint.config.corpus_files import SIDES
from bleuprint.config.experiment import Settings
from bleuprint.config.made_texts import MadeText
from bleuprint.report import tables
from bleuprint.report.citations import citations
from bleuprint.report.grid import NONE
from bleuprint.report.page.context import ReportContext
from bleuprint.report.page.differences import changes
from bleuprint.report.page.section import Section
from bleuprint.runtime.flatten import dotted


def provenance(context: ReportContext) -> Section:
    settings = context.settings
    cells = context.records.cells
    systems = {name: settings.dotted(name) for name in settings.systems}
    known = cells.astype(object).where(cells.notna(), None)
    commits = list(context.trainings.commit.dropna().unique())
    data = {
        "first": cells.iloc[0],
        "hypotheses": context.cells[0].results / "hypotheses",
        "commits": commits,
        "uncommitted": any(commit.endswith("+") for commit in commits),
        "trainings": _trainings(context),
        "systems": systems,
        "baseline": next(iter(systems)),
        "changes": list(changes(systems)),
        "corpora": {
            name: {
                "files": list(_files(corpus, settings.made_texts or {})),
                "settings": dotted({**corpus.deciding(), "files": None}),
            }
            for name, corpus in settings.corpora.items()
        },
        "citations": citations(settings),
        "outside": list(_outside(settings)),
        "signatures": list(tables.signatures(context.records)),
        "records": list(known.itertuples()),
    }
    return Section("provenance", "Provenance", data)


def _outside(settings: Settings) -> Iterator[tuple[str, ...]]:
    """Row, corpus, test set, file, SHA-256 and what made the file, of the rows from outside."""
    for corpus, rows in (settings.outside or {}).items():
        for name, row in rows.items():
            for test, file in row.tests.items():
                yield name, corpus, test, file.path, file.sha256, row.about


def _trainings(context: ReportContext) -> dict[tuple[str, ...], str]:
    """Device, processes, versions and commit; and the names of the trainings that share them."""
    shared: dict[tuple[str, ...], list[str]] = {}
    for training in context.trainings.astype(object).fillna(NONE).itertuples():
        shape = f"{training.processes} x {training.threads} threads"
        machine = training.device, shape, training.versions, training.commit
        seed = f" (seed {training.seed})" if len(context.settings.seeds) > 1 else ""
        name = f"{training.system} on {training.corpus}{seed}"
        shared.setdefault((NONE,) * 4 if training.device == NONE else machine, []).append(name)
    if len(shared) == 1:
        return dict.fromkeys(shared, "all")
    return {machine: ", ".join(names) for machine, names in shared.items()}


def _files(corpus: Corpus, made_texts: Mapping[str, MadeText]) -> Iterator[tuple[str, ...]]:
    """Text, side, file or what made it, SHA-256 (may be empty) and license."""
    for name, text in corpus.files.texts().items():
        license_ = corpus.license_and_citation[text.license_and_citation].license
        times = f", {text.repeat} times" if text.repeat else ""
        for side in SIDES:
            if file := getattr(text, side):
                yield f"{name}{times}", side, file.name, file.sha256 or "", license_
        if text.made:
            made = made_texts[name.removeprefix("train.")]
            tag = f"; sources begin with {text.tag}" if text.tag else ""
            translated = f"translated by {made.system}, trained on {made.corpus}{tag}"
            yield f"{name}{times}", text.made, translated, "", license_
