"""An experiment as a folder for others: weights, results, sums, and how to make and check them.

It quotes text of corpora in reports/index.html alone.
"""

import os
import shlex
import shutil
from collections.abc import Sequence
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
_REPORTS = (
    *("results.json", "costs.csv", "metrics.json", "table.md", "table.csv", "table.tex"),
    *("training.csv", "validation.csv", HTML_REPORT),
)
_COPIED = (
    *map(Path, ("params.yaml", "dvc.yaml", "dvc.lock", "constraints.txt")),
    *(frame.REPORTS / name for name in _REPORTS),
    RESOLVED,
)


def release(  # noqa: C901
    settings: Settings, output: Path, system: str | None = None, corpus: str | None = None
) -> None:
    """Write the release of the project in the working folder, with the weights of the first seed.

    `system`, `corpus`: the weights of these alone. Raises UserError if there is none of the name,
    if `output` is not empty, if a stage is not up to date, or if the code differs from its commit.
    """
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise UserError(f"{output}: exists already, and is not an empty folder")
    if system:
        settings.system_settings(system)
    if corpus:
        settings.corpus(corpus)
    if system and corpus:
        settings.system_on(system, corpus)
    first = settings.seeds[0]
    runs = [
        c for c in trained_runs(settings) if c == (system or c.system, corpus or c.corpus, first)
    ]
    for run in runs:
        if not (averaged := run.models_folder / "averaged").exists():
            raise UserError(f"{averaged}: no such folder; run: make reproduce, or dvc pull")
    _check_links(runs)
    if changed := [*changed_stages()]:
        raise UserError(f"{changed[0]} is not up to date: run make reproduce first (dvc status)")
    if (head := code_commit()) and head.endswith("+"):
        raise UserError(
            f"src, stages or dvc.yaml differs from the commit {head[:12]}: commit the changes "
            "first (git status), then run the same command again"
        )
    records = load_checked(settings)
    write_html_report(settings, records)  # which is not verified: it shows what was measured
    with atomic_folder(output) as folder:
        for path in _COPIED:
            if path.exists():  # a project may lack constraints.txt
                (folder / path).parent.mkdir(exist_ok=True)
                shutil.copyfile(path, folder / path)
        left_out = {run: why for run in runs if (why := _copy_weights(settings, run, folder))}
        address = git_output(Path(), "remote", "get-url", "origin").decode().strip()
        _write_text(folder / "references.bib", citations(settings))
        _write_text(folder / CHECKSUM_FILE, format_checksums(folder))
        tables = score_tables.by_test(score_frame(records))
        card = _TEMPLATES.get_template("release.md.j2").render(
            version=__version__,
            settings=settings,
            languages=sorted(
                {x for of in settings.language_pairs().values() for x in of.languages}
            ),
            address=_shared_address(address),
            commit=head,
            tables={name: markdown(table) for name, table in tables.items()},
            notes=bullets(notes.notes(records)),
            runs=runs,
            left_out=left_out,
            page=frame.REPORTS / HTML_REPORT,
            sha256_of_sums=sha256_of(folder / CHECKSUM_FILE),
        )
        _write_text(folder / CARD, card)


def _write_text(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")


def _check_links(runs: Sequence[Run]) -> None:
    """Raise UserError if a file of the release is a link to a file outside the project.

    Such a file may hold a password. Outputs may be links into DVC's cache, wherever that is.
    """
    allowed = [Path().resolve(), cache_folder(Path()).resolve()]
    folders = [run.models_folder / "averaged" for run in runs]
    folders += [paths.corpus_folder(run.corpus, "binary") / SEGMENTATION for run in runs]
    published = [path for path in _COPIED if os.path.lexists(path)]
    for folder in folders:
        published += [folder, *folder.rglob("*")]
    for path in published:
        target = path.resolve()
        if not any(target.is_relative_to(root) for root in allowed):
            raise UserError(
                f"{path}: leads to {target}, outside the project, by a link: replace the link by "
                "what may be published"
            )


def _shared_address(address: str) -> str | None:
    """The address of the repository as a shell word; None of one that is not for others.

    That is a folder of this machine, an address with a password, or one with white space or
    control characters, which would end the line of the command.
    """
    is_word = address.isprintable() and " " not in address
    if "://" not in address or has_secret(address) or not is_word:
        return None
    return shlex.quote(address)


def _copy_weights(settings: Settings, run: Run, folder: Path) -> str:
    """Copy the averaged weights, and convert them for CTranslate2; if that fails, why."""
    copy_model(run, folder / run.models_folder / "averaged")
    converted = folder / "ctranslate2" / run.models_folder.relative_to("models")
    converted.parent.mkdir(parents=True)
    try:
        export(settings, run, converted, "float32")
    except UserError as error:
        return str(error)
    return ""
