"""The section of provenance: the code, settings and data behind the scores; how to repeat them."""

from typing import NamedTuple

import pandas as pd

from bleuprint.config.experiment import Settings
from bleuprint.config.paths import Run
from bleuprint.report import notes
from bleuprint.report.page.differences import (  # _system_settings
    collect_system_settings,
    setting_changes,
)
from bleuprint.report.page.report_data import ReportData
from bleuprint.report.page.section import Section
from bleuprint.report.table import NONE
from bleuprint.report.training_costs import one_row_per_training
from bleuprint.runs.results import Results
from bleuprint.runtime.flatten import flatten_settings


class Machine(NamedTuple):
    """Where training runs took place; the fields are columns of the records."""

    device: str
    processes: str
    threads: str
    versions: str
    commit: str


class TextFile(NamedTuple):
    """A file of a corpus.

    Attributes:
        text: The name of the text, with the number of times that it is repeated.
        side: Whether it is the source, the target, or both.
        origin: The address or path of the file, or what made it.
        sha256: The SHA-256 of the file; may be empty.
        license: The license of the text.
    """

    text: str
    side: str
    origin: str
    sha256: str
    license: str


def provenance_section(report: ReportData) -> Section:
    """Return the section of provenance.

    Args:
        report: The experiment and its results.
    """
    settings = report.settings
    systems = collect_system_settings(settings)
    corpora = {}
    for name, corpus in settings.corpora.items():
        settings_without_files = corpus.deciding_settings() | {"files": None}
        corpora[name] = {
            "files": _text_files(name, settings),
            "settings": flatten_settings(settings_without_files),
        }
    data = {
        "trainings": _systems_by_machine(report.records.runs),
        "systems": systems,
        "baseline": settings.trained_systems[0],
        "changes": list(setting_changes(systems)),
        "corpora": corpora,
        "signatures": list(notes.signature_notes(report.records)),
    }
    data |= _scoring_command(report)
    return Section("provenance", "Provenance", data)


def _scoring_command(report: ReportData) -> dict[str, str]:
    """Return the arguments of the sacreBLEU command that repeats the first score of the report.

    Returns:
        The files `sources`, `references` and `hypotheses`, and the `tokenizer`.
    """
    row = report.bleu_rows[0]
    run = Run(row.system, row.corpus, int(row.first_seed))
    arguments = {}
    for name, path in Results(report.settings, run).files(row.test).items():
        arguments[name] = path.as_posix()
    # A signature is a list of fields such as nrefs:1|case:mixed|tok:13a|version:2.6.0.
    _, _, after_tokenizer_key = row.signature.partition("|tok:")
    arguments["tokenizer"], _, _ = after_tokenizer_key.partition("|")
    return arguments


def _systems_by_machine(runs: pd.DataFrame) -> dict[Machine, str]:
    """Return which systems were trained on which machine, with which versions and commit.

    Args:
        runs: The table of runs of the records.

    Returns:
        The systems with their corpora as text; `all` if there is only one machine.
    """
    trainings = one_row_per_training(runs).astype(object).fillna(NONE)
    runs_by_machine = trainings.groupby(list(Machine._fields), sort=False)
    systems = {}
    for key, runs_on_machine in runs_by_machine:
        systems_on_corpora = runs_on_machine.system + " on " + runs_on_machine.corpus
        is_only_machine = len(runs_by_machine) == 1
        systems[Machine(*key)] = "all" if is_only_machine else ", ".join(systems_on_corpora)
    return systems


def _text_files(corpus_name: str, settings: Settings) -> list[TextFile]:
    """Return the files of a corpus, with their licenses."""
    corpus = settings.corpora[corpus_name]
    texts = corpus.files.texts()
    files = []
    for side in settings.text_sides(corpus_name):
        text = texts[side.text]
        text_license = corpus.license_and_citation[text.license_and_citation].license
        repetition = f", {text.repeat} times" if text.repeat else ""
        files.append(
            TextFile(
                text=f"{side.text}{repetition}",
                side=side.side,
                origin=side.origin,
                sha256=side.sha256,
                license=text_license,
            )
        )
    return files
