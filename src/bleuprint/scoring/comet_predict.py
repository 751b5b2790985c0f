"""Score translations with unbabel-comet: run by the Python of COMET's environment, with -I.

    python -I comet_predict.py FOLDER OUTPUT [SOURCES TRANSLATIONS REFERENCES]...

It imports nothing of bleuprint, whose dependencies that environment does not have. OUTPUT is JSON:
the scores of the lines of each test set, and the versions; or `error`, one line.
"""

import ctypes
import json
import logging
import platform
import signal
import sys
import tempfile
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import Any

# COMET's default. Scores of a line depend on those it is batched with, in the last digits.
BATCH = 16
# The number of an operation of Linux's system call prctl: which signal the kernel sends to this
# process when its parent dies. bleuprint.runtime.launcher cannot be imported here.
_PR_SET_PDEATHSIG = 1


def main(folder: str, output: str, *texts: str) -> None:
    """Score test sets by COMET, and write the scores as JSON.

    If unbabel-comet cannot be imported, writes one line about what is missing, and exits with
    status 1.

    Args:
        folder: The folder of the model.
        output: The file to write.
        texts: The sources, translations and references of each test set, one after the other.
    """
    end_with_parent()
    output_file = Path(output)
    try:
        content = scores(Path(folder).resolve(), [Path(text) for text in texts])
    except ImportError as error:
        output_file.write_text(json.dumps({"error": f"{error}. Install unbabel-comet there"}))
        sys.exit(1)
    output_file.write_text(json.dumps(content))


def end_with_parent() -> None:
    """Let Linux kill this process when the stage `comet`, which started it, is killed.

    The stage holds the lock of the GPU, which ends with the stage. Without this, the GPU would be
    in use without a lock.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def scores(folder: Path, texts: list[Path]) -> dict[str, Any]:
    """Load the model, and score all lines of the test sets.

    Args:
        folder: The folder of the model.
        texts: The sources, translations and references of each test set, one after the other.

    Returns:
        The scores of the lines of each test set, and what a signature names: the versions of Python
        and COMET, and whether the model reads references.
    """
    # Warnings of COMET's libraries would hide the messages of the stage.
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    model = load(folder)
    import torch

    needs_references = model.requires_references()
    scored = []
    # Three files belong to each test set.
    for first in range(0, len(texts), 3):
        sources, translations, references = texts[first : first + 3]
        # For each line, COMET reads a dictionary: {"src": ..., "mt": ..., "ref": ...}.
        columns = {"src": lines(sources), "mt": lines(translations)}
        if needs_references:
            columns["ref"] = lines(references)
        samples = []
        for line in zip(*columns.values(), strict=True):
            samples.append(dict(zip(columns, line, strict=True)))
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
        "references": int(needs_references),
        "scores": scored,
    }


def load(folder: Path) -> Any:
    """Load the model by COMET's own function, without access to the network.

    The settings of the model, hparams.yaml, contain the name of its encoder, which COMET would look
    up on huggingface.co. The encoder's files are in the folder, too. So its path is appended to a
    copy of hparams.yaml under the same key: of two equal keys, the last one counts.

    Args:
        folder: The folder of the model.
    """
    import comet

    settings = (folder / "hparams.yaml").read_text(encoding="utf-8")
    encoder = json.dumps(str(folder / "encoder"))
    with tempfile.TemporaryDirectory() as scratch:
        local_settings = Path(scratch, "hparams.yaml")
        local_settings.write_text(f"{settings}\npretrained_model: {encoder}\n", encoding="utf-8")
        # COMET reads hparams.yaml from the parent of the folder that contains the checkpoint.
        checkpoints = Path(scratch, "checkpoints")
        checkpoints.symlink_to(folder / "checkpoints")
        return comet.load_from_checkpoint(
            checkpoints / "model.ckpt", reload_hparams=True, local_files_only=True
        )


def lines(path: Path) -> list[str]:
    r"""Read the lines of a UTF-8 file.

    A line ends only at \n; Python's `splitlines` would also end it at other characters.
    """
    text = path.read_bytes().decode()
    if not text:
        return []
    return text.removesuffix("\n").split("\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
