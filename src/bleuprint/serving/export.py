"""Exports a trained system as a folder for others, which works without this project."""

import dataclasses
import shutil
from pathlib import Path
from typing import Any

from bleuprint.config.experiment import Settings
from bleuprint.config.paths import Run, corpus_folder
from bleuprint.dataset.binarized import SEGMENTATION, BinaryCorpus
from bleuprint.decoding.ctranslate2_convert import Precision, convert
from bleuprint.model.transformer import Transformer
from bleuprint.model.weights import load_model
from bleuprint.runs.results import Results
from bleuprint.runtime.closure import SourceTree
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import atomic_folder, sha256_of, write_json
from bleuprint.runtime.html import template_environment
from bleuprint.runtime.schema import to_json_value
from bleuprint.scoring.metrics import METRICS, SCORE_KEYS
from bleuprint.serving.known_words import KnownWords
from bleuprint.tracking.hardware import text_libraries

_PACKAGE = Path(__file__).parents[1]
# The module that becomes the script of an exported folder.
_SCRIPT = "serving/standalone.py"
_TEMPLATES = template_environment(Path(__file__).with_name("templates"), autoescape=False)


def export(settings: Settings, run: Run, output: Path, precision: Precision) -> None:
    """Export a trained run as a folder.

    The folder contains the model in CTranslate2's format, the subwords, the script translate.py,
    the modules of this package that it imports, settings.json and README.md.

    Args:
        settings: The settings of the experiment.
        run: The run.
        output: The folder to write.
        precision: The precision of the exported weights.

    Raises:
        UserError: The folder exists, or CTranslate2 or the script does not support the system.
    """
    if output.exists():
        raise UserError(f"{output} exists already. Name another folder")
    _check_exportable(settings, run)
    corpus = BinaryCorpus(corpus_folder(run.corpus, "binary"))
    model = load_model(run.models_folder / "averaged", corpus)
    vocabularies = (
        corpus.segmentation(corpus.source).vocabulary,
        corpus.segmentation(corpus.target).vocabulary,
    )
    with atomic_folder(output) as partial:
        convert(model, vocabularies, partial / "model", precision)
        shutil.copytree(corpus.folder / SEGMENTATION, partial / SEGMENTATION)
        shutil.copyfile(_PACKAGE / _SCRIPT, partial / "translate.py")
        for module in script_modules():
            module_copy = partial / "bleuprint" / module
            module_copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(_PACKAGE / module, module_copy)
        script_settings = _script_settings(settings, run, corpus, model, precision)
        write_json(partial / "settings.json", script_settings)
        readme_text = readme(settings, run, precision, trained_on=str(KnownWords(corpus)))
        (partial / "README.md").write_text(readme_text, encoding="utf-8")


def _check_exportable(settings: Settings, run: Run) -> None:
    """Raise UserError if the script of an exported folder could not translate like the system."""
    system = settings.system_on(run.system, run.corpus)
    if system.average.ensemble:
        raise UserError("cannot export an ensemble. Set average.ensemble: false")
    if system.decode.replace_unk:
        raise UserError(
            "cannot export a system with decode.replace_unk, which needs the attention of the "
            "model. Set decode.replace_unk: false"
        )
    if run.corpus not in settings.language_pairs():
        raise UserError(
            f"cannot export a system of corpus {run.corpus}, which has several directions"
        )


def _script_settings(
    settings: Settings, run: Run, corpus: BinaryCorpus, model: Transformer, precision: Precision
) -> dict[str, Any]:
    """Return the content of settings.json: how to tokenize, and how to search."""
    decode = settings.system_on(run.system, run.corpus).decode
    script_settings: dict[str, Any] = {
        "source": corpus.source,
        "target": corpus.target,
        "max_positions": model.settings.max_positions,
    }
    script_settings.update(dataclasses.asdict(settings.corpus(run.corpus).tokenize))
    script_settings.update(to_json_value(decode))
    # The precision of the exported weights replaces that of the pipeline's own search.
    script_settings["precision"] = precision
    return script_settings


def readme(settings: Settings, run: Run, precision: Precision, trained_on: str) -> str:
    """Return the README of an exported folder: its use, license, scores and provenance.

    Args:
        settings: The settings of the experiment.
        run: The exported run.
        precision: The precision of the exported weights.
        trained_on: The description of the training text.
    """
    corpus = settings.corpus(run.corpus)
    results = Results.find(settings, run)
    used_licenses = {text.license_and_citation for text in corpus.files.texts().values()}
    licenses = {}
    for name in sorted(used_licenses):
        licenses[name] = corpus.license_and_citation[name].license
    # No scores if the run has not been scored, or was scored with other files.
    scores = results.checked_scores()[0] if results else {}
    return _TEMPLATES.get_template("export.md.j2").render(
        run=run,
        corpus=corpus,
        packages=["ctranslate2", "psutil", *text_libraries(corpus)],
        precision=precision,
        trained_on=trained_on,
        scored_precision=settings.system_on(run.system, run.corpus).decode.precision,
        licenses=licenses,
        results=results,
        labels={key: METRICS[key].label for key in SCORE_KEYS},
        scores=scores,
        weights=sha256_of(run.models_folder / "averaged" / "model.safetensors"),
    )


def script_modules() -> list[Path]:
    """Return the files of this package that the script needs, relative to the package.

    These are the modules that it imports, those that they import in turn, and the __init__.py of
    each package on the way.
    """
    source_tree = SourceTree(_PACKAGE.parents[1])
    needed = set[str]()
    to_visit = [_SCRIPT]
    while to_visit:
        imported = source_tree.imports_of(to_visit.pop())
        to_visit += imported - needed
        needed |= imported
    files = set[Path]()
    for module in needed:
        files.add(Path(module))
        for package in Path(module).parents:
            files.add(package / "__init__.py")
    return sorted(files)
