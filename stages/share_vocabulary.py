"""Take the codes and vocabularies that a corpus has of another."""

import shutil

from bleuprint.config import paths
from bleuprint.config.experiment import load_resolved
from bleuprint.pipeline import stage_args
from bleuprint.runtime.errors import run_main
from bleuprint.runtime.files import atomic_folder


def main() -> None:
    (name,) = stage_args.names(__doc__, "CORPUS")
    of = load_resolved().corpus(name).vocabulary.of
    assert of is not None, "a stage for each entry of vocabularies alone"
    with atomic_folder(paths.vocabulary(name, of)) as partial:
        shutil.copytree(paths.vocabulary(of, None), partial, dirs_exist_ok=True)


if __name__ == "__main__":
    run_main(main)
