"""Exports a trained system as a folder for others, which works without this project."""

import dataclasses
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bleuprint.config.experiment import Settings
from bleuprint.config.paths import Run, corpus_folder
from bleuprint.dataset.binarized import SEGMENTATION, BinaryCorpus
from bleuprint.decoding.ctranslate2_convert import Precision, convert
from bleuprint.model.transformer import Transformer
from bleuprint.model.weights import load_model
from bleuprint.runs.results import Results
from bleuprint.runtime.atomic_files import atomic_folder, write_text
from bleuprint.runtime.closure import SourceTree
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.html import template_environment
from bleuprint.runtime.json_files import write_json
from bleuprint.runtime.regular_files import sha256_of
from bleuprint.runtime.schema import to_json_value
from bleuprint.scoring.metrics import METRICS, SCORE_KEYS
from bleuprint.serving.known_words import KnownWords
from bleuprint.tracking.hardware import text_libraries

_PACKAGE = Path(__file__).parents[1]
# The module that becomes the script of an exported folder.
_SCRIPT = "serving/standalone.py"
_TEMPLATES = template_environment(Path(__file__).with_name("templates"), autoescape=False)


def export(settings: Settings, run: Run, output: Path, precision: Precision) -> None:
    """Export a trained model as a folder that can translate without this project.

    The folder contains the model in the format of CTranslate2, a fast engine for translation, and
    the script translate.py with all that it needs: the subwords, modules of this package,
    settings.json and README.md.

    Args:
        settings: The settings of the experiment.
        run: The system, corpus and seed of the model.
        output: The folder to write, which must not exist.
        precision: The number format of the exported weights, such as `float32` or `int8`.

    Raises:
        UserError: The folder exists, or CTranslate2 or the script does not support the system.
    """
    model, corpus = load_exportable(settings, run, output)
    vocabularies = (
        corpus.segmentation(corpus.source).vocabulary,
        corpus.segmentation(corpus.target).vocabulary,
    )
    # The folder gets its name when it is complete.
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
        readme_text = render_readme(settings, run, precision, trained_on=str(KnownWords(corpus)))
        write_text(partial / "README.md", readme_text)


def load_exportable(settings: Settings, run: Run, output: Path) -> tuple[Transformer, BinaryCorpus]:
    """Load a trained model that is to be exported, and the corpus that it was trained on.

    Args:
        settings: The settings of the experiment.
        run: The system, corpus and seed of the model.
        output: The folder to write.

    Raises:
        UserError: The folder exists, or the system is not a single model for one language pair.
    """
    if output.exists():
        raise UserError(f"{output} exists already. Name another folder")
    _check_exportable(settings, run)
    corpus = BinaryCorpus(corpus_folder(run.corpus, "binary"))
    return load_model(run.models_folder / "averaged", corpus), corpus


def _check_exportable(settings: Settings, run: Run) -> None:
    """Raise UserError if an exported folder could not translate like the system itself.

    Args:
        settings: The settings of the experiment.
        run: The system, corpus and seed of the model.
    """
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
    """Return the content of settings.json, which the exported script reads.

    It contains the languages, and the settings of the tokenizer and of the search.

    Args:
        settings: The settings of the experiment.
        run: The system, corpus and seed of the model.
        corpus: The corpus that the model was trained on.
        model: The model.
        precision: The number format of the exported weights.
    """
    decode = settings.system_on(run.system, run.corpus).decode
    script_settings: dict[str, Any] = {
        "source": corpus.source,
        "target": corpus.target,
        "max_positions": model.settings.max_positions,
    }
    script_settings.update(dataclasses.asdict(settings.corpus(run.corpus).tokenize))
    script_settings.update(to_json_value(decode))
    # `decode` contains the precision with which this project searches. The script searches with the
    # precision of the exported weights.
    script_settings["precision"] = precision
    return script_settings


def render_readme(
    settings: Settings,
    run: Run,
    precision: Precision,
    trained_on: str,
    template: str = "export.md.j2",
) -> str:
    """Return the README.md of an exported folder: its use, scores, origin and licenses.

    Args:
        settings: The settings of the experiment.
        run: The system, corpus and seed of the exported model.
        precision: The number format of the exported weights.
        trained_on: A description of the training text, such as `9 pairs of toy`.
        template: The name of the template in serving/templates.
    """
    corpus = settings.corpus(run.corpus)
    results = Results.find(settings, run)
    used_licenses = {text.license_and_citation for text in corpus.files.texts().values()}
    licenses = {}
    for name in sorted(used_licenses):
        licenses[name] = corpus.license_and_citation[name].license
    # The README lists no scores if there are no results, or if the translations have changed since
    # they were scored.
    scores: Mapping[str, Any] = {}
    if results:
        scores, _ = results.checked_scores()
    metrics = [METRICS[name] for name in (*SCORE_KEYS, *settings.metrics)]
    return _TEMPLATES.get_template(template).render(
        run=run,
        corpus=corpus,
        packages=["ctranslate2", "psutil", *text_libraries(corpus)],
        precision=precision,
        trained_on=trained_on,
        decode=settings.system_on(run.system, run.corpus).decode,
        licenses=licenses,
        results=results,
        labels={metric.key: metric.label for metric in metrics},
        scores=scores,
        weights=sha256_of(run.models_folder / "averaged" / "model.safetensors"),
    )


def script_modules() -> list[Path]:
    """Return the files of this package that the exported script needs, directly or indirectly.

    These are the modules that it imports, and their tables. They are copied beside the script, so
    that it runs without this project. Python also needs the file __init__.py of each package that
    contains one of them.

    Returns:
        The paths relative to this package, such as `text/tokenizers.py`.
    """
    project_root = _PACKAGE.parents[1]
    source_tree = SourceTree(project_root)
    needed_modules = set[str]()
    # The modules whose imports have not been looked up yet.
    unvisited_modules = [_SCRIPT]
    while unvisited_modules:
        imported = source_tree.imports_of(unvisited_modules.pop())
        unvisited_modules += imported - needed_modules
        needed_modules |= imported
    files = set[Path]()
    for module in needed_modules:
        files.add(Path(module))
        # A table that the module reads, such as text/language_codes.csv.
        table = Path(module).with_suffix(".csv")
        if (_PACKAGE / table).exists():
            files.add(table)
        for package_folder in Path(module).parents:
            files.add(package_folder / "__init__.py")
    return sorted(files)
