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
from bleuprint.runtime.atomic_files import atomic_folder, write_text
from bleuprint.runtime.checksums import CHECKSUM_FILE, format_checksums
from bleuprint.runtime.code import code_commit, git_output
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.html import template_environment
from bleuprint.runtime.regular_files import sha256_of
from bleuprint.runtime.secrets import has_secret
from bleuprint.serving.export import export
from bleuprint.text.language_codes import language_code
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
    """Write a release of this project: a folder with models, settings and results to publish.

    For each system, it contains the model of the first seed, also in the format of CTranslate2, a
    fast translation engine. README.md is the model card. SHA256SUMS lists the SHA-256 of the files,
    so that others can check that their copy is complete. The project is the working folder.

    Args:
        settings: The settings in params.yaml.
        output: The folder to write: a new one, or an empty one.
        system: If given, only the models of this system are included.
        corpus: If given, only the models that were trained on this corpus are included.

    Raises:
        UserError: params.yaml does not name the system or the corpus, `output` is not empty, a
            model is missing, a file is a link to somewhere outside the project, a stage is out of
            date, or the code differs from its commit in Git.
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
        write_text(folder / "references.bib", citations(settings))
        # The checksums cover all files above; the model card names the checksum of this list.
        write_text(folder / CHECKSUM_FILE, format_checksums(folder))
        card = _model_card(settings, records, runs, export_errors, commit, folder)
        write_text(folder / CARD, card)


def _check_output(output: Path) -> None:
    """Raise UserError if the path to write to exists already, except as an empty folder."""
    if not output.exists():
        return
    if not output.is_dir() or any(output.iterdir()):
        raise UserError(f"{output} exists already and is not an empty folder. Name another folder")


def _check_names(settings: Settings, system: str | None, corpus: str | None) -> None:
    """Raise UserError if params.yaml does not define a system or corpus that the user has named.

    Args:
        settings: The settings in params.yaml.
        system: The name of the system, or None if the user has named none.
        corpus: The name of the corpus, or None if the user has named none.
    """
    # Each of these methods looks up a name, and raises UserError with the defined names if it is
    # unknown. Their results are not needed here.
    if system:
        settings.system_settings(system)
    if corpus:
        settings.corpus(corpus)
    if system and corpus:
        # params.yaml may exclude the combination.
        settings.system_on(system, corpus)


def _released_runs(settings: Settings, system: str | None, corpus: str | None) -> list[Run]:
    """Return the runs whose models a release contains: those of the first seed.

    A run is one system, trained on one corpus with one seed.

    Args:
        settings: The settings in params.yaml.
        system: If given, only runs of this system are returned.
        corpus: If given, only runs on this corpus are returned.
    """
    first_seed = settings.seeds[0]
    released_runs = []
    for run in trained_runs(settings):
        is_of_system = system is None or run.system == system
        is_on_corpus = corpus is None or run.corpus == corpus
        if is_of_system and is_on_corpus and run.seed == first_seed:
            released_runs.append(run)
    return released_runs


def _check_models(runs: Sequence[Run]) -> None:
    """Raise UserError if the model of a run is missing.

    Args:
        runs: The runs, each one system, trained on one corpus with one seed. The model of a run is
            the average of its last checkpoints.
    """
    for run in runs:
        averaged = run.models_folder / "averaged"
        if not averaged.exists():
            raise UserError(
                f"{averaged}: no such folder. Train the model: make reproduce. "
                "Or download it: dvc pull"
            )


def _check_links(runs: Sequence[Run]) -> None:
    """Raise UserError if a release would contain a file from outside the project.

    A symbolic link in the project could lead to a file with passwords, which would be published.
    Links into DVC's cache are allowed: DVC itself may replace outputs by such links, and its cache
    may be outside the project.

    Args:
        runs: The runs whose models are released.
    """
    allowed_folders = [Path().resolve(), cache_folder(Path()).resolve()]
    # `lexists` is also true for a link to a path that does not exist.
    copied_paths = [path for path in _COPIED_FILES if os.path.lexists(path)]
    for run in runs:
        model_folder = run.models_folder / "averaged"
        segmentation_folder = paths.corpus_folder(run.corpus, "binary") / SEGMENTATION
        for folder in (model_folder, segmentation_folder):
            copied_paths.append(folder)
            copied_paths += folder.rglob("*")
    for path in copied_paths:
        target = path.resolve()
        if not any(target.is_relative_to(folder) for folder in allowed_folders):
            raise UserError(
                f"{path} leads to {target}, outside the project. Replace the link by a file or "
                "folder that may be published"
            )


def _check_up_to_date() -> None:
    """Raise UserError if settings, code or files of a stage have changed since DVC recorded it."""
    changed = list(changed_stages())
    if changed:
        raise UserError(
            f"{changed[0]} is out of date. To see what has changed: dvc status. To update it: make "
            "reproduce"
        )


def _committed_code() -> str | None:
    """Return the hash of the Git commit that contains the code; None if Git is not used.

    Raises:
        UserError: The code was edited after the commit, so nobody else could get it.
    """
    commit = code_commit()
    if commit is None:
        return None
    # `code_commit` appends a plus sign to the hash if the code was edited after the commit.
    has_edits = commit.endswith("+")
    if has_edits:
        short_hash = commit[:12]
        raise UserError(
            f"src, stages, own or dvc.yaml differs from the commit {short_hash}. Commit the "
            "changes (git status lists them), then run the same command again"
        )
    return commit


def _copy_files(folder: Path) -> None:
    """Copy the files with settings and results, if they exist, into the folder of a release."""
    for path in _COPIED_FILES:
        if path.exists():
            target = folder / path
            target.parent.mkdir(exist_ok=True)
            shutil.copyfile(path, target)


def _copy_all_weights(settings: Settings, runs: Sequence[Run], folder: Path) -> dict[Run, str]:
    """Copy the models of all runs into a release, and add each in CTranslate2's format.

    CTranslate2 is a fast engine for translation, which does not support every model.

    Args:
        settings: The settings in params.yaml.
        runs: The runs, each one system, trained on one corpus with one seed.
        folder: The folder of the release.

    Returns:
        The error message for each run whose model CTranslate2 does not support.
    """
    export_errors = {}
    for run in runs:
        copy_model(run, folder / run.models_folder / "averaged")
        # The path is ctranslate2/SYSTEM/CORPUS/SEED in the release.
        export_folder = folder / "ctranslate2" / run.models_folder.relative_to("models")
        export_folder.parent.mkdir(parents=True)
        try:
            export(settings, run, export_folder, precision="float32")
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
    """Return the text of README.md, the model card of a release.

    It describes the systems and their scores, and how to reproduce them. It also contains the
    SHA-256 of the file SHA256SUMS, which lists the SHA-256 of each file. So a reader who trusts
    the card can check all other files.

    Args:
        settings: The settings in params.yaml.
        records: The results of all runs.
        runs: The runs whose models are in the release.
        export_errors: Why there is no CTranslate2 model, for each run without one.
        commit: The hash of the Git commit of the code; None if Git is not used.
        folder: The release, with all files except README.md.
    """
    languages = set[str]()
    for pair in settings.language_pairs().values():
        # Model hubs list models by language, not by script or region.
        languages.update(map(language_code, pair.languages))
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
        notes=bullets(notes.all_notes(records, Path())),
        runs=runs,
        export_errors=export_errors,
        page=frame.REPORTS / HTML_REPORT,
        sha256_of_sums=sha256_of(folder / CHECKSUM_FILE),
    )


def _public_address(address: str) -> str | None:
    """Return the address of the Git repository for the command `git clone` in the model card.

    The address of the user's copy may be unfit for other people: a folder of this machine, or an
    address with a password.

    Args:
        address: The address of the remote `origin`; empty if there is none.

    Returns:
        The address, quoted for a shell; None if it must not be published, or if white space or
        control characters in it would break the command.
    """
    is_url = "://" in address
    is_one_word = address.isprintable() and " " not in address
    can_be_published = is_url and is_one_word and not has_secret(address)
    return shlex.quote(address) if can_be_published else None
