"""The stage resolve: writes reports/resolved.json, which DVC compares instead of params.yaml.

The file contains:

- the settings of every corpus and run, after inheritance and defaults;
- the MD5 of each of the user's own files, by corpus. If stages depended on the folder inputs/, each
  new file in it would make every corpus out of date;
- `dvc`: settings in a form that DVC can compare, as narrow as the stages need; no stage reads them;
- the fingerprint of each stage's code, in which comments do not count;
- the changes of code that were accepted (`bleuprint accept`), for the report.
"""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bleuprint.config.corpus import Corpus
from bleuprint.config.corpus_files import Files
from bleuprint.config.experiment import Settings, load_settings
from bleuprint.config.parts import resolved_parts, texts_by_part
from bleuprint.config.paths import RESOLVED
from bleuprint.dataset.pretrained_pieces import add_piece_hashes
from bleuprint.pipeline.dvc_repo import open_repo
from bleuprint.runtime import accepted_code, environment
from bleuprint.runtime.closure import code_fingerprints
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.json_files import format_json, write_json
from bleuprint.runtime.regular_files import read_bytes
from bleuprint.runtime.schema import to_json_value
from bleuprint.runtime.unicode_paths import path_on_disk
from bleuprint.serving.pretrained_models import import_models_of_experiment
from bleuprint.training.init_weights import add_weight_hashes

# Stages write their outputs below these folders.
_OUTPUT_FOLDERS = ("data", "models", "results")


def write_resolved(root: Path = Path()) -> None:
    """Write reports/resolved.json, the file by which DVC decides which stages are out of date.

    It contains the settings in params.yaml with all defaults, and hashes of the code and of the
    user's files. An equal file is not written again: Snakemake compares modification times, and
    would run the stages that depend on the file.

    Args:
        root: The project's folder.

    Raises:
        UserError: There is a mistake in params.yaml.
    """
    settings = load_settings(root / "params.yaml")
    content = resolved_content(settings, root)
    path = root / RESOLVED
    is_unchanged = path.is_file() and read_bytes(path) == format_json(content).encode()
    if not is_unchanged:
        write_json(path, content)


def check_no_links(root: Path = Path()) -> None:
    """Check that the folders into which stages write their outputs are not symbolic links.

    DVC refuses to store an output behind a link, but only after the stage has run, which may take
    days. This check refuses the link before.

    Args:
        root: The project's folder.

    Raises:
        UserError: A folder is a link. The message says how to store outputs on another disk.
    """
    for folder_name in _OUTPUT_FOLDERS:
        folder = root / folder_name
        for path in (folder, *sorted(folder.glob("*"))):
            if path.is_symlink():
                name = path.relative_to(root)
                raise UserError(
                    f"{name} is a link to {path.readlink()}, and DVC keeps outputs only in folders "
                    f"of the project. Replace the link by a folder: rm {name}. To use another "
                    "disk, move DVC's cache there: dvc cache dir --local DISK/cache; dvc config "
                    "--local cache.type symlink. work/ may be a link"
                )


def resolved_content(settings: Settings, root: Path = Path()) -> dict[str, Any]:
    """Return the content of reports/resolved.json: all that decides the results of the stages.

    These are the settings with their defaults, the MD5 of each text file that the user provides
    (`inputs`), a hash of each stage's code (`code`), and the changes of code that a user has
    accepted (`accepted`), if there are any.

    Args:
        settings: The settings in params.yaml.
        root: The project's folder.

    Raises:
        UserError: A folder of outputs is a link, or stages/accepted.yaml is not valid.
    """
    code = code_fingerprints(root)
    content = resolved_settings(settings, root)
    content["inputs"] = md5_of_input_files(settings, root)
    content["code"] = code
    changes = accepted_code.changes_in_use(code, root)
    if changes:
        content[accepted_code.RESOLVED_SECTION] = [asdict(change) for change in changes]
    return content


def resolved_settings(settings: Settings, root: Path = Path()) -> dict[str, Any]:
    """Return the settings as JSON values, with all defaults, for reports/resolved.json.

    A system may start from the weights of another project. Its setting is then the path of a
    folder. The SHA-256 of the weights is added, so that DVC repeats the training if other weights
    are put into the same folder. The same is done for pretrained subwords of a corpus. A model that
    has a name instead of a folder is downloaded and imported first.

    Args:
        settings: The settings in params.yaml.
        root: The project's folder.

    Raises:
        UserError: A folder of outputs is a link, or the weights or subwords are missing.
    """
    check_no_links(root)
    import_models_of_experiment(settings, root)
    content = settings.resolved()
    content["dvc"] = _settings_for_dvc(settings.corpora)
    add_weight_hashes(content["runs"], root)
    add_piece_hashes(content["corpora"], root)
    return content


def _settings_for_dvc(corpora: Mapping[str, Corpus]) -> dict[str, Any]:
    """Return the section `dvc` of reports/resolved.json, which only DVC and Snakemake compare.

    Args:
        corpora: The settings of the corpora by name.

    Returns:
        The sections `part` and `part_order` of `resolved_parts`, and two others with an entry for
        each corpus. `files_together` has its texts that are not parts, on which the stages download
        and clean depend. `set_names` has the names of the sets that its language pairs have in
        files; stages that use nothing else of `files` depend on them.
    """
    sections = resolved_parts(corpora)
    sections["files_together"] = {}
    sections["set_names"] = {}
    for name, corpus in corpora.items():
        sections["files_together"][name] = to_json_value(corpus.files.prepared_together())
        set_names = {}
        for pair_name, pair in corpus.language_pairs(name).items():
            # Sorted, since the order in params.yaml has no effect on the stages.
            set_names[pair_name] = sorted(pair.files.set_names())
        sections["set_names"][name] = set_names
    return sections


def md5_of_input_files(settings: Settings, root: Path = Path()) -> dict[str, dict[str, str]]:
    """Return the MD5 of each text file of the user, by corpus and by the path in params.yaml.

    An example of the result is {"own": {"inputs/train.de": "d41d8cd98f00b204e9800998ecf8427e"}}.
    Files that do not exist are omitted. Texts that are prepared by themselves have an entry of
    their own, `CORPUS/TEXT`, so that another text does not make their stages out of date.

    Args:
        settings: The settings in params.yaml.
        root: The folder of the project, or of the copy of it in which DVC runs an experiment.
    """
    files_by_corpus: dict[str, dict[str, Path]] = {}
    texts_by_name = texts_by_part(settings.corpora)
    for name, corpus in settings.corpora.items():
        texts_by_name[name] = corpus.files.prepared_together()
    for name, texts in texts_by_name.items():
        files_by_corpus[name] = _existing_input_files(texts, root)
    md5_by_corpus: dict[str, dict[str, str]] = {name: {} for name in files_by_corpus}
    has_files = any(files_by_corpus.values())
    if not has_files:
        # Returning here saves the time to open DVC's repository.
        return md5_by_corpus
    with open_repo(root) as repo:
        for name, files in files_by_corpus.items():
            for path, file in files.items():
                md5_by_corpus[name][path] = _md5_from_dvc(file, repo)
    return md5_by_corpus


def _existing_input_files(texts: Files, root: Path) -> dict[str, Path]:
    """Find the local files of some texts, also if DVC runs in a copy of the project.

    `dvc exp run --temp` runs in a copy without the files that Git ignores, such as the user's text.
    A file that the copy lacks is taken from the project itself.

    Args:
        texts: The settings of the texts.
        root: The folder of the project, or of its copy.

    Returns:
        The existing files, by their paths in params.yaml.
    """
    paths = set[str]()
    for file_settings in texts.files_by_name().values():
        # A file that is downloaded has no path.
        if file_settings.path:
            paths.add(file_settings.path)
    existing_files = {}
    for path in sorted(paths):
        for folder in (root, environment.project_root()):
            file = path_on_disk(folder / path)
            if file.is_file():
                existing_files[path] = file
                break
    return existing_files


def _md5_from_dvc(file: Path, repo: Any) -> str:
    """Return the MD5 of a file from DVC, which reads the file again only if it has changed.

    Args:
        file: The file.
        repo: DVC's repository. Its database `state` stores the MD5 of each file that it has read.
    """
    from dvc.fs import localfs
    from dvc_data.hashfile.hash import hash_file

    _, md5 = hash_file(str(file.resolve()), localfs, "md5", state=repo.state)
    return str(md5.value)
