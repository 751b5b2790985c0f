"""The command `bleuprint release`: an experiment as a folder that others can check and reproduce.

The folder contains weights, settings, results and checksums, and README.md, the model card, which
explains how to reproduce the results. Of the corpora's text it quotes only the sentences in
reports/index.html. `release_check.py` checks such a folder.
"""

import os
import shlex
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from bleuprint import __version__
from bleuprint.config import paths
from bleuprint.config.experiment import Settings
from bleuprint.config.paths import RESOLVED, Run
from bleuprint.config.runs import trained_runs
from bleuprint.dataset.binarized import SEGMENTATION
from bleuprint.pipeline.dvc_repo import cache_folder, changed_stages
from bleuprint.pipeline.release_check import CARD
from bleuprint.report import frame, notes, score_tables
from bleuprint.report.citations import citations
from bleuprint.report.frame import Records
from bleuprint.report.records import load_checked
from bleuprint.report.render import bullets, markdown
from bleuprint.report.report import HTML_REPORT, write_html_report
from bleuprint.report.score_frame import score_frame
from bleuprint.runtime.checksums import CHECKSUM_FILE, format_checksums
from bleuprint.runtime.code import code_commit, git_output
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import atomic_folder, sha256_of
from bleuprint.runtime.html import template_environment
from bleuprint.runtime.secrets import has_secret
from bleuprint.serving.export import export
from bleuprint.training.model_folder import copy_model

_TEMPLATES = template_environment(Path(__file__).with_name("templates"), autoescape=False)
_REPORT_NAMES = (
    "results.json",
    "costs.csv",
    "metrics.json",
    "table.md",
    "table.csv",
    "table.tex",
    "training.csv",
    "validation.csv",
    HTML_REPORT,
)
# The files that are copied into a release. The project may lack some, such as constraints.txt.
_COPIED_FILES = (
    Path("params.yaml"),
    Path("dvc.yaml"),
    Path("dvc.lock"),
    Path("constraints.txt"),
    *(frame.REPORTS / name for name in _REPORT_NAMES),
    RESOLVED,
)


def release(
    settings: Settings, output: Path, system: str | None = None, corpus: str | None = None
) -> None:
    """Write a release of the project in the working folder.

    A release contains the weights of the first seed only.

    Args:
        settings: The settings in params.yaml.
        output: The folder to write: a new one, or an empty one.
        system: Include only the weights of this system.
        corpus: Include only the weights that were trained on this corpus.

    Raises:
        UserError: params.yaml does not name the system or the corpus, `output` is not empty, a
            model is missing, a stage is out of date, or the code differs from its commit.
    """
    _check_output(output)
    _check_names(settings, system, corpus)
    runs = _released_runs(settings, system, corpus)
    _check_models(runs)
    _check_links(runs)
    _check_up_to_date()
    commit = _committed_code()
    records = load_checked(settings)
    # DVC does not track the HTML report, so it may be missing or show earlier results.
    write_html_report(settings, records)
    with atomic_folder(output) as folder:
        _copy_files(folder)
        export_errors = _copy_all_weights(settings, runs, folder)
        _write_text(folder / "references.bib", citations(settings))
        _write_text(folder / CHECKSUM_FILE, format_checksums(folder))
        card = _model_card(settings, records, runs, export_errors, commit, folder)
        _write_text(folder / CARD, card)


def _check_output(output: Path) -> None:
    """Raise UserError if the output exists, unless it is an empty folder."""
    if not output.exists():
        return
    if not output.is_dir() or any(output.iterdir()):
        raise UserError(
            f"{output}: exists already, and is not an empty folder. Name another folder"
        )


def _check_names(settings: Settings, system: str | None, corpus: str | None) -> None:
    """Raise UserError if params.yaml does not name the system, the corpus, or their run.

    Each of the methods called here raises the error, with the names that params.yaml has.
    """
    if system:
        settings.system_settings(system)
    if corpus:
        settings.corpus(corpus)
    if system and corpus:
        settings.system_on(system, corpus)


def _released_runs(settings: Settings, system: str | None, corpus: str | None) -> list[Run]:
    """Return the runs of the first seed, only those of a system or corpus if one is named."""
    first_seed = settings.seeds[0]
    released = []
    for run in trained_runs(settings):
        has_system = system is None or run.system == system
        has_corpus = corpus is None or run.corpus == corpus
        if has_system and has_corpus and run.seed == first_seed:
            released.append(run)
    return released


def _check_models(runs: Sequence[Run]) -> None:
    """Raise UserError if the averaged weights of a run are missing."""
    for run in runs:
        averaged = run.models_folder / "averaged"
        if not averaged.exists():
            raise UserError(
                f"{averaged}: no such folder. Train the model: make reproduce. "
                "Or download it: dvc pull"
            )


def _check_links(runs: Sequence[Run]) -> None:
    """Raise UserError if a file of the release is a link to a file outside the project.

    Such a file could contain a password. DVC may have replaced outputs by links into its cache,
    which can be outside the project: these are allowed.
    """
    allowed_folders = [Path().resolve(), cache_folder(Path()).resolve()]
    copied = [path for path in _COPIED_FILES if os.path.lexists(path)]
    for run in runs:
        for folder in (
            run.models_folder / "averaged",
            paths.corpus_folder(run.corpus, "binary") / SEGMENTATION,
        ):
            copied.append(folder)
            copied += folder.rglob("*")
    for path in copied:
        target = path.resolve()
        if not any(target.is_relative_to(folder) for folder in allowed_folders):
            raise UserError(
                f"{path}: leads to {target}, outside the project, by a link. Replace the link by "
                "what may be published"
            )


def _check_up_to_date() -> None:
    """Raise UserError if DVC finds a stage that has changed since it ran."""
    changed = list(changed_stages())
    if changed:
        raise UserError(
            f"{changed[0]} is out of date: dvc status shows what has changed. Run: make reproduce"
        )


def _committed_code() -> str | None:
    """Return the Git commit of the code; None outside Git.

    Raises:
        UserError: The code differs from its commit.
    """
    commit = code_commit()
    # `code_commit` appends a plus sign if the code differs from the commit.
    if commit is not None and commit.endswith("+"):
        raise UserError(
            f"src, stages or dvc.yaml differs from the commit {commit[:12]}: commit the changes "
            "first (git status), then run the same command again"
        )
    return commit


def _copy_files(folder: Path) -> None:
    """Copy settings, results and reports into the release."""
    for path in _COPIED_FILES:
        if path.exists():
            (folder / path).parent.mkdir(exist_ok=True)
            shutil.copyfile(path, folder / path)


def _copy_all_weights(settings: Settings, runs: Sequence[Run], folder: Path) -> dict[Run, str]:
    """Copy the averaged weights of all runs, and convert them for CTranslate2.

    Returns:
        The error message of each run that CTranslate2 does not support.
    """
    export_errors = {}
    for run in runs:
        copy_model(run, folder / run.models_folder / "averaged")
        converted = folder / "ctranslate2" / run.models_folder.relative_to("models")
        converted.parent.mkdir(parents=True)
        try:
            export(settings, run, converted, "float32")
        except UserError as error:
            export_errors[run] = str(error)
    return export_errors


def _model_card(
    settings: Settings,
    records: Records,
    runs: Sequence[Run],
    export_errors: Mapping[Run, str],
    commit: str | None,
    folder: Path,
) -> str:
    """Return the text of README.md, which names the SHA-256 of the list of checksums.

    Args:
        settings: The settings of the experiment.
        records: The results of all runs.
        runs: The runs whose weights are in the release.
        export_errors: For each run without a CTranslate2 model, why.
        commit: The Git commit of the code; None outside Git.
        folder: The release, with all files except README.md.
    """
    languages = set[str]()
    for pair in settings.language_pairs().values():
        languages.update(pair.languages)
    tables = {}
    for name, table in score_tables.tables_by_test_set(score_frame(records)).items():
        tables[name] = markdown(table)
    address = git_output(Path(), "remote", "get-url", "origin").decode().strip()
    return _TEMPLATES.get_template("release.md.j2").render(
        version=__version__,
        settings=settings,
        languages=sorted(languages),
        address=_public_address(address),
        commit=commit,
        tables=tables,
        notes=bullets(notes.all_notes(records)),
        runs=runs,
        export_errors=export_errors,
        page=frame.REPORTS / HTML_REPORT,
        sha256_of_sums=sha256_of(folder / CHECKSUM_FILE),
    )


def _public_address(address: str) -> str | None:
    """Return the address of the Git repository, quoted for a shell, if others may see it.

    Returns:
        None for a folder of this machine, for an address with a password, and for one with white
        space or control characters, which would end the line of the command `git clone`.
    """
    is_url = "://" in address
    is_one_word = address.isprintable() and " " not in address
    if not is_url or not is_one_word or has_secret(address):
        return None
    return shlex.quote(address)


def _write_text(path: Path, text: str) -> None:
    """Write a file in UTF-8, with the line ends of Linux on every system."""
    path.write_text(text, encoding="utf-8", newline="\n")
