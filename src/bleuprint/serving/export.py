"""A trained system as a folder for others: it works without this project."""

import dataclasses
import shutil
from pathlib import Path

from bleuprint.config.experiment import Settings
from bleuprint.config.paths import Cell, folder
from bleuprint.dataset.binarized import SEGMENTATION, BinaryCorpus
from bleuprint.decoding.ctranslate2_convert import Precision, convert
from bleuprint.model.weights import load_model
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import whole_folder, write_json


def export(settings: Settings, cell: Cell, output: Path, precision: Precision) -> None:
    """Write model/ (CTranslate2's), translate.py, and what that needs, into a new folder.

    Raises UserError if the folder exists, or the model's shape is not CTranslate2's.
    """
    if output.exists():
        raise UserError(f"{output}: exists already")
    corpus = BinaryCorpus(folder(cell.corpus, "binary"))
    model = load_model(cell.models / "averaged", corpus)
    languages = corpus.source, corpus.target
    source, target = (corpus.segmentation(language).vocabulary for language in languages)
    about = {
        "source": corpus.source,
        "target": corpus.target,
        "max_positions": model.settings.max_positions,
        **dataclasses.asdict(settings.corpus(cell.corpus).tokenize),
        **dataclasses.asdict(settings.system(cell.system).decode),
        "precision": precision,
    }
    del about["engine"]  # CTranslate2's alone
    with whole_folder(output) as partial:
        convert(model, (source, target), partial / "model", precision)
        for name in ("codes", "allowed"):
            path = corpus.folder / SEGMENTATION / f"{name}.{corpus.source}"
            if path.exists():
                shutil.copyfile(path, partial / name)
        shutil.copyfile(Path(__file__).with_name("standalone.py"), partial / "translate.py")
        write_json(partial / "settings.json", about)
