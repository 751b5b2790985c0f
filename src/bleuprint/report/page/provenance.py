"""The section of provenance: code, settings and data of the numbers; how to repeat them."""

from collections.abc import Iterator

from bleuprint.config.experiment import Settings
from bleuprint.config.paths import Run
from bleuprint.report import notes
from bleuprint.report.frame import one_row_per_training
from bleuprint.report.page.context import ReportContext
from bleuprint.report.page.differences import changes
from bleuprint.report.page.section import Section
from bleuprint.report.table import NONE
from bleuprint.runs.results import Results
from bleuprint.runtime.flatten import flatten_settings


def provenance(context: ReportContext) -> Section:
    settings = context.settings
    systems = {name: settings.dotted_settings(name) for name in settings.trained_systems}
    data = {
        **_first(context),
        "trainings": _trainings(context),
        "systems": systems,
        "baseline": next(iter(systems)),
        "changes": list(changes(systems)),
        "corpora": {
            name: {
                "files": list(_files(name, settings)),
                "settings": flatten_settings({**corpus.deciding_settings(), "files": None}),
            }
            for name, corpus in settings.corpora.items()
        },
        "signatures": list(notes.signatures(context.records)),
    }
    return Section("provenance", "Provenance", data)


def _first(context: ReportContext) -> dict[str, str]:
    """The files of the first score, and sacreBLEU's tokenizer of it."""
    row = context.rows[0]
    run = Run(row.system, row.corpus, int(row.first_seed))
    files = Results(context.settings, run).files(row.test)
    return {
        **{name: file.as_posix() for name, file in files.items()},
        "tokenizer": row.signature.partition("|tok:")[2].partition("|")[0],
    }


def _trainings(context: ReportContext) -> dict[tuple[str, ...], str]:
    """Return which trainings ran on which machine.

    Returns:
        The names of the trainings, by device, processes, threads, versions and commit.
    """
    columns = ["device", "processes", "threads", "versions", "commit"]
    runs = one_row_per_training(context.records.runs).astype(object).fillna(NONE)
    machines = runs.groupby(columns, sort=False)
    names = {}
    for machine, on_machine in machines:
        is_only_machine = len(machines) == 1
        rows = on_machine.system + " on " + on_machine.corpus
        names[machine] = "all" if is_only_machine else ", ".join(rows)
    return names


def _files(corpus_name: str, settings: Settings) -> Iterator[tuple[str, ...]]:
    """Text, side, file or what made it, SHA-256 (may be empty) and license."""
    corpus = settings.corpora[corpus_name]
    texts = corpus.files.texts()
    for side in settings.text_sides(corpus_name):
        text = texts[side.text]
        license_ = corpus.license_and_citation[text.license_and_citation].license
        times = f", {text.repeat} times" if text.repeat else ""
        yield f"{side.text}{times}", side.side, side.origin, side.sha256, license_
