"""Score translations with unbabel-comet: run by the Python of COMET's environment, with -I.

    python -I comet_predict.py FOLDER OUTPUT [SOURCES TRANSLATIONS REFERENCES]...

It imports nothing of bleuprint, whose dependencies that environment does not have. OUTPUT is JSON:
the scores of each line of each three files, and the versions; or `error`, one line.
"""

import json
import logging
import platform
import sys
import tempfile
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import Any

# COMET's default. Scores of a line depend on those it is batched with, in the last digits.
BATCH = 16


def main(folder: str, output: str, *texts: str) -> None:
    path = Path(output)
    try:
        content = scores(Path(folder).resolve(), list(map(Path, texts)))
    except ImportError as error:
        path.write_text(json.dumps({"error": f"{error}: install unbabel-comet there"}))
        sys.exit(1)
    path.write_text(json.dumps(content))


def scores(folder: Path, texts: list[Path]) -> dict[str, Any]:
    """The scores of all lines, and what a signature names."""
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    model = load(folder)
    import torch

    referenced = model.requires_references()
    names = ("src", "mt", "ref") if referenced else ("src", "mt")
    scored = []
    for first in range(0, len(texts), 3):
        sides = map(lines, texts[first : first + len(names)])
        samples = [dict(zip(names, line, strict=True)) for line in zip(*sides, strict=True)]
        predicted = model.predict(
            samples,
            batch_size=BATCH,
            gpus=int(torch.cuda.is_available()),
            num_workers=0,
            progress_bar=sys.stderr.isatty(),
        )
        scored.append(predicted.scores)
    return {
        "python": platform.python_version(),
        "comet": version("unbabel-comet"),
        "references": int(referenced),
        "scores": scored,
    }


def load(folder: Path) -> Any:
    """The model by COMET's own function, with the encoder's files of the folder.

    The name of the encoder, which would be looked up on huggingface.co, is replaced in a copy of
    hparams.yaml: of two equal keys the last one counts.
    """
    import comet

    hparams = (folder / "hparams.yaml").read_text(encoding="utf-8")
    encoder = json.dumps(str(folder / "encoder"))
    with tempfile.TemporaryDirectory() as place:
        local = Path(place, "hparams.yaml")
        local.write_text(f"{hparams}\npretrained_model: {encoder}\n", encoding="utf-8")
        (checkpoints := Path(place, "checkpoints")).symlink_to(folder / "checkpoints")
        return comet.load_from_checkpoint(
            checkpoints / "model.ckpt", reload_hparams=True, local_files_only=True
        )


def lines(path: Path) -> list[str]:
    """The lines of a file, which end at \\n alone."""
    text = path.read_bytes().decode()
    return text.removesuffix("\n").split("\n") if text else []


if __name__ == "__main__":
    main(*sys.argv[1:])
