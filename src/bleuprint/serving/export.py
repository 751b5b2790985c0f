"""A trained system as a folder for others: it works without this project."""

import dataclasses
import shutil
from pathlib import Path

from bleuprint.config.experiment import Corpus, Settings
from bleuprint.config.paths import Cell, folder
from bleuprint.dataset.binarized import SEGMENTATION, BinaryCorpus
from bleuprint.dataset.subwords.pieces import MODEL
from bleuprint.decoding.ctranslate2_convert import Precision, convert
from bleuprint.model.weights import load_model
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import sha256_of, whole_folder, write_json
from bleuprint.runtime.html import environment
from bleuprint.scoring.metrics import METRICS
from bleuprint.tracking.cell_results import CellResults

_TEMPLATES = environment(Path(__file__).with_name("templates"), autoescape=False)


def export(settings: Settings, cell: Cell, output: Path, precision: Precision) -> None:
    """Write README.md, model/ (CTranslate2's), translate.py, and what that needs, into a folder.

    Raises UserError if the folder exists, the tokenizer is spaCy or a segmenter, the system is an
    ensemble, or the model's shape is not CTranslate2's.
    """
    if output.exists():
        raise UserError(f"{output}: exists already")
    if (tokenizer := settings.corpus(cell.corpus).tokenize.name) in ("spacy", "segmenter"):
        raise UserError(f"tokenize.name {tokenizer}: the exported script has no such tokenizer")
    if settings.system_on(cell.system, cell.corpus).average.ensemble:
        raise UserError("average.ensemble: an exported folder has one model")
    corpus = BinaryCorpus(folder(cell.corpus, "binary"))
    model = load_model(cell.models / "averaged", corpus)
    languages = corpus.source, corpus.target
    source, target = (corpus.segmentation(language).vocabulary for language in languages)
    about = {
        "source": corpus.source,
        "target": corpus.target,
        "max_positions": model.settings.max_positions,
        **dataclasses.asdict(settings.corpus(cell.corpus).tokenize),
        **dataclasses.asdict(settings.system_on(cell.system, cell.corpus).decode),
        "precision": precision,
    }
    del about["engine"]  # CTranslate2's alone
    with whole_folder(output) as partial:
        convert(model, (source, target), partial / "model", precision)
        for name in ("codes", "allowed"):
            path = corpus.folder / SEGMENTATION / f"{name}.{corpus.source}"
            if path.exists():
                shutil.copyfile(path, partial / name)
        for side, language in zip(("source", "target"), languages, strict=True):
            path = corpus.folder / SEGMENTATION / f"{MODEL}.{language}"
            if path.exists():
                shutil.copyfile(path, partial / f"{side}.spm")
        shutil.copyfile(Path(__file__).with_name("standalone.py"), partial / "translate.py")
        write_json(partial / "settings.json", about)
        (partial / "README.md").write_text(readme(settings, cell, precision), encoding="utf-8")


def readme(settings: Settings, cell: Cell, precision: Precision) -> str:
    """How to use the folder, its license, the scores of the system and its provenance."""
    corpus = settings.corpus(cell.corpus)
    results = CellResults.find(settings, cell)
    used = {text.license_and_citation for text in corpus.files.texts().values()}
    return _TEMPLATES.get_template("export.md.j2").render(
        cell=cell,
        corpus=corpus,
        packages=packages(corpus),
        precision=precision,
        engine=settings.system_on(cell.system, cell.corpus).decode,
        licenses={name: corpus.license_and_citation[name].license for name in sorted(used)},
        results=results,
        metrics=METRICS,
        scores=results.checked_scores()[0] if results else {},
        weights=sha256_of(cell.models / "averaged" / "model.safetensors"),
    )


def packages(corpus: Corpus) -> list[str]:
    """What the exported script needs."""
    return [
        "ctranslate2",
        *(["sacremoses"] if corpus.tokenize.name == "moses" else []),
        *(["subword-nmt"] if corpus.vocabulary.bpe else []),
        *(["sentencepiece"] if corpus.vocabulary.sentencepiece else []),
    ]
