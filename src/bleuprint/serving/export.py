"""A trained system as a folder for others: it works without this project."""

import dataclasses
import shutil
from pathlib import Path

from bleuprint.config.experiment import Settings
from bleuprint.config.paths import Run, corpus_folder
from bleuprint.dataset.binarized import SEGMENTATION, BinaryCorpus
from bleuprint.decoding.ctranslate2_convert import Precision, convert
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
_TEMPLATES = template_environment(Path(__file__).with_name("templates"), autoescape=False)


def export(settings: Settings, run: Run, output: Path, precision: Precision) -> None:
    """Write README.md, model/ (CTranslate2's), translate.py, and what that needs, into a folder.

    Raises UserError if the folder exists, the system is an ensemble, or the model's shape is not
    CTranslate2's.
    """
    if output.exists():
        raise UserError(f"{output}: exists already: name another folder")
    system = settings.system_on(run.system, run.corpus)
    if system.average.ensemble:
        raise UserError("average.ensemble: an exported folder has one model")
    if system.decode.replace_unk:
        raise UserError("decode.replace_unk: an exported folder knows no attention")
    corpus = BinaryCorpus(corpus_folder(run.corpus, "binary"))
    if run.corpus not in settings.language_pairs():
        raise UserError(f"{run.corpus} has several directions: not yet exported")
    model = load_model(run.models_folder / "averaged", corpus)
    languages = corpus.source, corpus.target
    source, target = (corpus.segmentation(language).vocabulary for language in languages)
    about = {
        "source": corpus.source,
        "target": corpus.target,
        "max_positions": model.settings.max_positions,
        **dataclasses.asdict(settings.corpus(run.corpus).tokenize),
        **to_json_value(system.decode),
        "precision": precision,  # of the exported weights
    }
    with atomic_folder(output) as partial:
        convert(model, (source, target), partial / "model", precision)
        shutil.copytree(corpus.folder / SEGMENTATION, partial / SEGMENTATION)
        shutil.copyfile(Path(__file__).with_name("standalone.py"), partial / "translate.py")
        for module in script_modules():
            copy = partial / "bleuprint" / module
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(_PACKAGE / module, copy)
        write_json(partial / "settings.json", about)
        (partial / "README.md").write_text(
            readme(settings, run, precision, str(KnownWords(corpus))), "utf-8"
        )


def readme(settings: Settings, run: Run, precision: Precision, trained_on: str) -> str:
    """How to use the folder, its license, the scores of the system and its provenance."""
    corpus = settings.corpus(run.corpus)
    results = Results.find(settings, run)
    used = {text.license_and_citation for text in corpus.files.texts().values()}
    return _TEMPLATES.get_template("export.md.j2").render(
        run=run,
        corpus=corpus,
        packages=["ctranslate2", "psutil", *text_libraries(corpus)],
        precision=precision,
        trained_on=trained_on,
        scored_precision=settings.system_on(run.system, run.corpus).decode.precision,
        licenses={name: corpus.license_and_citation[name].license for name in sorted(used)},
        results=results,
        labels={key: METRICS[key].label for key in SCORE_KEYS},
        scores=results.checked_scores()[0] if results else {},
        weights=sha256_of(run.models_folder / "averaged" / "model.safetensors"),
    )


def script_modules() -> list[Path]:
    """The files of this package that the exported script imports, and that these import."""
    code, found, todo = SourceTree(_PACKAGE.parents[1]), set[str](), ["serving/standalone.py"]
    while todo:
        new = code.imports_of(todo.pop()) - found
        found, todo = found | new, [*todo, *new]
    packages = (parent / "__init__.py" for path in found for parent in Path(path).parents)
    return sorted({*map(Path, found), *packages})
