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
from bleuprint.report.table import DASH
from bleuprint.report.training_costs import one_row_per_training
from bleuprint.runs.results import Results
from bleuprint.runtime.flatten import flatten_settings


class Machine(NamedTuple):
    """The machine of training runs, with the versions of libraries and the Git commit.

    The fields have the names of the columns in reports/costs.csv.
    """

    device: str
    processes: str
    threads: str
    versions: str
    commit: str


class TextFile(NamedTuple):
    """A file that the text of a corpus comes from, as the report shows it.

    Attributes:
        text: The name of the text in params.yaml, and how often it is repeated, if at all.
        side: Whether it is the source, the target, or both.
        origin: The address or path of the file, or what generated it.
        sha256: The SHA-256 of the file; empty if params.yaml does not name one.
        license: The license of the text.
    """

    text: str
    side: str
    origin: str
    sha256: str
    license: str


def provenance_section(report: ReportData) -> Section:
    """Return the report's section on how its results were made, and how to repeat them.

    It shows the machines of the training runs, all settings, the files of the corpora with their
    licenses, the signatures of the metrics, and a command by which readers can check a score.

    Args:
        report: The settings and the results of the experiment.
    """
    settings = report.settings
    systems = collect_system_settings(settings)
    corpora = {}
    for name, corpus in settings.corpora.items():
        # Files are shown in a table of their own.
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
    """Return the arguments of a sacreBLEU command that computes a BLEU of the report again.

    The page shows this command, so that readers can check a score without this package. The example
    is the first BLEU of the report.

    Returns:
        The paths `sources`, `references` and `hypotheses`, and the name of the `tokenizer`.
    """
    row = report.bleu_rows[0]
    run = Run(row.system, row.corpus, int(row.first_seed))
    files = Results(report.settings, run).files(row.test)
    arguments = {}
    for name, path in files._asdict().items():
        arguments[name] = path.as_posix()
    # The field `tok` of the signature, such as nrefs:1|case:mixed|tok:13a|version:2.6.0, names the
    # tokenizer.
    _, _, after_tokenizer_key = row.signature.partition("|tok:")
    tokenizer, _, _ = after_tokenizer_key.partition("|")
    arguments["tokenizer"] = tokenizer
    return arguments


def _systems_by_machine(runs: pd.DataFrame) -> dict[Machine, str]:
    """Return which systems were trained on each machine, such as `base on wmt14, big on wmt14`.

    If there is only one machine, this is `all`.

    Args:
        runs: The table of runs in results.json, a row for each run and test set.
    """
    # Unknown facts, such as the machine of an old training, become a dash, since `groupby` would
    # drop rows with missing values.
    trainings = one_row_per_training(runs).astype(object).fillna(DASH)
    # The fields of `Machine` and the columns have the same names.
    runs_by_machine = trainings.groupby(list(Machine._fields), sort=False)
    has_one_machine = len(runs_by_machine) == 1
    systems_by_machine = {}
    for machine_fields, runs_on_machine in runs_by_machine:
        systems_on_corpora = runs_on_machine.system + " on " + runs_on_machine.corpus
        systems = "all" if has_one_machine else ", ".join(systems_on_corpora)
        systems_by_machine[Machine(*machine_fields)] = systems
    return systems_by_machine


def _text_files(corpus_name: str, settings: Settings) -> list[TextFile]:
    """Return the files from which the texts of a corpus come, with origin, hash and license.

    A text has two sides, the source and the target, which may be in two files.

    Args:
        corpus_name: The name of the corpus.
        settings: The settings of the experiment, which list the files.
    """
    corpus = settings.corpora[corpus_name]
    texts = corpus.files.texts()
    files = []
    for text_side in settings.text_sides(corpus_name):
        text = texts[text_side.text]
        text_license = corpus.license_and_citation[text.license_and_citation].license
        # A text may be repeated, so that training sees it more often than other texts.
        repetition = f", {text.repeat} times" if text.repeat else ""
        files.append(
            TextFile(
                text=f"{text_side.text}{repetition}",
                side=text_side.side,
                origin=text_side.origin,
                sha256=text_side.sha256,
                license=text_license,
            )
        )
    return files
