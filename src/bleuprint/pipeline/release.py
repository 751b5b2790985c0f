"""An experiment as a folder for others: weights, results, and how to make and to check them.

It quotes text of corpora in reports/index.html alone.
"""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import pandas as pd
from ruamel.yaml import YAML

from bleuprint import __version__
from bleuprint.config.cells import cells_of
from bleuprint.config.experiment import Settings
from bleuprint.config.paths import RESOLVED, Cell
from bleuprint.pipeline.dvc_lock import changed_stages
from bleuprint.report import frame, main_table, notes
from bleuprint.report.citations import citations
from bleuprint.report.grid import bullets, markdown
from bleuprint.report.report import PAGE, write_page
from bleuprint.report.system_results import system_results
from bleuprint.runtime.code import commit, git
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import sha256_of, whole_folder
from bleuprint.runtime.html import environment
from bleuprint.runtime.secrets import has_secret
from bleuprint.scoring.measures import MEASURES
from bleuprint.serving.export import export

SUMS = "SHA256SUMS"

_TEMPLATES = environment(Path(__file__).with_name("templates"), autoescape=False)
_PROJECT = ("params.yaml", "dvc.yaml", "dvc.lock", "constraints.txt")
_REPORTS = (
    *("results.json", "costs.csv", "metrics.json", "table.md", "table.csv", "table.tex"),
    *("training.csv", "validation.csv", PAGE),
)


@dataclass(frozen=True)
class About:
    """What a release is, who made it, under which terms."""

    name: str
    description: str
    authors: list[str]
    published: str
    license: str
    address: str | None
    commit: str | None


def release(
    settings: Settings, output: Path, system: str | None = None, corpus: str | None = None
) -> None:
    """Write the release of the project in the working folder, with the weights of the first seed.

    `system`, `corpus`: the weights of these alone. Raises UserError if there is none of the name,
    if `output` is not empty, if a stage is not up to date, or if the code differs from its commit.
    """
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise UserError(f"{output}: exists already, and is not an empty folder")
    if system and corpus:
        settings.system_on(system, corpus)
    elif system:
        settings.system(system)
    elif corpus:
        settings.corpus(corpus)
    cells = [
        cell
        for cell in cells_of(settings)
        if cell.seed == settings.seeds[0]
        and system in (None, cell.system)
        and corpus in (None, cell.corpus)
    ]
    for cell in cells:
        if not (averaged := cell.models / "averaged").exists():
            raise UserError(f"{averaged}: no such folder; run: dvc repro, or dvc pull")
    if changed := [*changed_stages()]:
        raise UserError(f"{changed[0]} is not up to date: run dvc repro first (dvc status)")
    if (head := commit()) and head.endswith("+"):
        raise UserError(f"the code differs from its commit {head[:-1]}: commit it first")
    records = frame.load()
    write_page(settings, records)  # which is not verified: it shows what was measured
    about = _about(settings, head)
    with whole_folder(output) as folder:
        _copy(folder)
        left_out = dict(filter(None, (_weights(settings, cell, folder) for cell in cells)))
        texts = {
            "references.bib": citations(settings),
            "CITATION.cff": _citation(about),
            "README.md": _card(settings, records, cells, left_out, about),
        }
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8", newline="\n")
        (folder / SUMS).write_text(_sums(folder), encoding="utf-8")


def _sums(folder: Path) -> str:
    """The SHA-256 of every file, as `sha256sum` writes and checks them."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return "".join(f"{sha256_of(path)}  {path.relative_to(folder)}\n" for path in files)


def _copy(folder: Path) -> None:
    """Copy settings, graph and reports."""
    (folder / frame.REPORTS).mkdir()
    reports = (frame.REPORTS / name for name in _REPORTS)
    for path in (*map(Path, _PROJECT), *reports, RESOLVED):
        if path.exists():  # a project may lack constraints.txt
            shutil.copyfile(path, folder / path)


def _weights(settings: Settings, cell: Cell, folder: Path) -> tuple[Cell, str] | None:
    """Copy the averaged weights, and convert them for CTranslate2; if that fails, why."""
    shutil.copytree(cell.models / "averaged", folder / cell.models / "averaged")
    converted = folder / "ctranslate2" / cell.models.relative_to("models")
    converted.parent.mkdir(parents=True)
    try:
        export(settings, cell, converted, "float32")
    except UserError as error:
        return cell, str(error)
    return None


def _about(settings: Settings, head: str | None) -> About:
    """Authors and date of the commits; the date of the report outside git."""
    names = git(Path(), "log", "--format=%aN", "--", "params.yaml").decode().splitlines()
    date = git(Path(), "show", "--no-patch", "--format=%cs", "HEAD").decode().strip()
    address = git(Path(), "remote", "get-url", "origin").decode().strip()
    made = pd.Timestamp(frame.RESULTS.stat().st_mtime, unit="s").strftime("%Y-%m-%d")
    pairs = {f"{corpus.source}-{corpus.target}": None for corpus in settings.corpora.values()}
    return About(
        name=settings.experiment,
        description=f"Machine translation ({', '.join(pairs)}): Transformers with their scores, "
        f"settings and sums, by bleuprint {__version__}",
        authors=sorted(set(names)) or [f"the authors of {settings.experiment}"],
        published=date or made,
        license="; ".join(f"{name}: {license}" for name, license in _licenses(settings).items()),
        # neither a password nor a folder of this machine
        address=address if "://" in address and not has_secret(address) else None,
        commit=head,
    )


def _licenses(settings: Settings) -> dict[str, str]:
    """The terms of the texts in use, by corpus and text."""
    return {
        f"{name}, {key}": " ".join(corpus.license_and_citation[key].license.split())
        for name, corpus in settings.corpora.items()
        for key in sorted({text.license_and_citation for text in corpus.files.texts().values()})
    }


def _citation(about: About) -> str:
    """CITATION.cff, by its schema 1.2.0."""
    return _yaml(
        {
            "cff-version": "1.2.0",
            "message": "Please cite this release and the works in references.bib.",
            "title": about.name,
            "abstract": about.description,
            "type": "dataset",
            "authors": [{"name": name} for name in about.authors],
            "date-released": about.published,
            **({"repository-code": about.address} if about.address else {}),
            **({"commit": about.commit} if about.commit else {}),
        }
    )


def _card(
    settings: Settings,
    records: frame.Records,
    cells: Sequence[Cell],
    left_out: dict[Cell, str],
    about: About,
) -> str:
    """The model card, which begins with Hugging Face's metadata."""
    corpora = settings.corpora.values()
    languages = sorted({language for of in corpora for language in (of.source, of.target)})
    metadata = {
        "language": languages,
        "license": "other",
        "license_name": "terms-of-the-texts",
        "pipeline_tag": "translation",
        "library_name": "ctranslate2",
        "tags": ["translation", "bleuprint"],
        "model-index": _model_index(records, cells),
    }
    text: str = _TEMPLATES.get_template("release.md.j2").render(
        metadata=_yaml(metadata),
        about=about,
        table=markdown(main_table.scores(records)),
        notes=bullets(notes.notes(records)),
        cells=cells,
        left_out=left_out,
        licenses=_licenses(settings),
        page=frame.REPORTS / PAGE,
    )
    return text


def _model_index(records: frame.Records, cells: Sequence[Cell]) -> list[dict[str, Any]]:
    """Scores (means over seeds) of the systems whose weights are here."""
    models: dict[str, list[dict[str, Any]]] = {f"{of.system} on {of.corpus}": [] for of in cells}
    for result in system_results(records):
        pair = f"{result.first.source}-{result.first.target}"
        if (name := f"{result.system} on {result.corpus}") in models:
            models[name].append(
                {
                    "task": {"type": "translation", "name": f"Translation {pair}"},
                    "dataset": {"name": result.test, "type": result.corpus, "args": pair},
                    "metrics": [
                        {
                            "type": "chrf" if metric.startswith("chrf") else metric,
                            "name": MEASURES[metric].label,
                            "value": round(float(score.mean), 4),
                        }
                        for metric, score in result.scores.items()
                    ],
                }
            )
    return [{"name": name, "results": results} for name, results in models.items()]


def _yaml(content: dict[str, Any]) -> str:
    yaml, text = YAML(), StringIO()
    yaml.default_flow_style, yaml.width = False, 1000
    yaml.dump(content, text)
    return text.getvalue()
