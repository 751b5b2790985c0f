"""The RO-Crate 1.1 of a folder: its files with their SHA-256, and the pipeline as a workflow.

Plain JSON-LD by https://www.researchobject.org/ro-crate/specification/1.1/; `sha256` is a term of
schema.org that the context of RO-Crate 1.1 lacks.
"""

import mimetypes
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote, unquote

from bleuprint.pipeline.graph import Stage, inputs
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import read_object, reading, sha256_of

METADATA = "ro-crate-metadata.json"
_SPECIFICATION = "https://w3id.org/ro/crate/1.1"
_WORKFLOW, _DVC, _LICENSE = "dvc.yaml", "#dvc", "#license"

Entity = dict[str, Any]


@dataclass(frozen=True)
class About:
    """What a crate says of itself; `published` as YYYY-MM-DD, `address` of the repository."""

    name: str
    description: str
    authors: Sequence[str]
    published: str
    license: str
    address: str | None
    commit: str | None


def ro_crate(folder: Path, about: About, graph: Sequence[Stage]) -> Entity:
    """The content of ro-crate-metadata.json for the files in `folder`, dvc.yaml among them."""
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    files = [_file(path, folder) for path in paths if path.name != METADATA]
    steps, authors = list(_steps(graph)), [f"#author-{n}" for n, _ in enumerate(about.authors, 1)]
    code = {"codeRepository": about.address} if about.address else {}
    version = {"version": about.commit} if about.commit else {}
    for file in files:
        if file["@id"] == _WORKFLOW:
            file["@type"] = ["File", "SoftwareSourceCode", "ComputationalWorkflow"]
            file |= {"programmingLanguage": _id(_DVC), **code, **version}
            file["step"] = [_id(step["@id"]) for step in steps]
    root = {
        "@id": "./",
        "@type": "Dataset",
        "name": about.name,
        "description": about.description,
        "datePublished": about.published,
        "license": _id(_LICENSE),
        "author": list(map(_id, authors)),
        "hasPart": [_id(file["@id"]) for file in files],
        "mainEntity": _id(_WORKFLOW),
    }
    descriptor = {
        "@id": METADATA,
        "@type": "CreativeWork",
        "conformsTo": _id(_SPECIFICATION),
        "about": _id("./"),
    }
    context = [f"{_SPECIFICATION}/context", {"sha256": "https://schema.org/sha256"}]
    others = [
        {
            "@id": _LICENSE,
            "@type": "CreativeWork",
            "name": "Terms of the texts",
            "description": about.license,
        },
        {"@id": _DVC, "@type": "ComputerLanguage", "name": "DVC", "url": "https://dvc.org"},
        *(
            {"@id": key, "@type": "Person", "name": name}
            for key, name in zip(authors, about.authors, strict=True)
        ),
    ]
    return {"@context": context, "@graph": [descriptor, root, *files, *others, *steps]}


def changed_files(folder: Path) -> Iterator[str]:
    """A line for each file of a crate that is missing, was changed or is not listed in it.

    Raises UserError if ro-crate-metadata.json is damaged.
    """
    path = folder / METADATA
    listed: dict[str, Mapping[str, Any]] = {}
    with reading(path):
        for entity in read_object(path, ("@graph",))["@graph"]:
            if "sha256" in entity:
                listed[unquote(entity["@id"])] = entity
    if not listed:
        raise UserError(f"{path}: lists no file with its SHA-256")
    for name, entity in listed.items():
        file = folder / name
        if not file.is_file() or not _is_inside(name):
            yield f"{file}: missing"
        elif sha256_of(file) != entity["sha256"]:
            yield f"{file}: changed since the release: its SHA-256 is not that of {METADATA}"
    for file in sorted(folder.rglob("*")):
        name = file.relative_to(folder).as_posix()
        if file.is_file() and name != METADATA and name not in listed:
            yield f"{file}: not listed in {METADATA}"


def _is_inside(name: str) -> bool:
    path = PurePosixPath(name)
    return not path.is_absolute() and ".." not in path.parts


def _file(path: Path, folder: Path) -> Entity:
    name = path.relative_to(folder).as_posix()
    return {
        "@id": quote(name),
        "@type": "File",
        "name": name,
        "contentSize": str(path.stat().st_size),
        "encodingFormat": mimetypes.guess_type(name)[0] or "application/octet-stream",
        "sha256": sha256_of(path),
    }


def _steps(graph: Sequence[Stage]) -> Iterator[Entity]:
    """The stages in an order in which they can run, each with those that it needs."""
    makers = {path: stage.name for stage in graph for path in stage.outputs}
    needed = {
        name: list(dict.fromkeys(makers[path] for path in paths if path in makers))
        for name, paths in inputs(graph).items()
    }
    commands = {stage.name: stage.command for stage in graph}
    for position, name in enumerate(TopologicalSorter(needed).static_order(), 1):
        yield {
            "@id": _step(name),
            "@type": "HowToStep",
            "position": str(position),
            "name": name,
            "text": commands[name],
            "isBasedOn": [_id(_step(before)) for before in needed[name]],
        }


def _step(name: str) -> str:
    return f"#{quote(name)}"


def _id(name: str) -> dict[str, str]:
    return {"@id": name}
