"""The section of provenance: what the numbers come from, and how to compute them again."""

import dataclasses
from collections.abc import Iterator

from bleuprint.config.experiment import Corpus
from bleuprint.report.citations import citations
from bleuprint.report.page.material import Material
from bleuprint.report.page.section import Section
from bleuprint.runtime.flatten import dotted

_NONE = "–"


def provenance(material: Material) -> Section:
    settings = material.settings
    systems = {name: dotted(system) for name, system in settings.systems.items()}
    commits = _commits(material)
    data = {
        "record": material.records[0],
        "commits": commits,
        "uncommitted": any(commit.endswith("+") for commit in commits),
        "trainings": _trainings(material),
        "systems": systems,
        "baseline": next(iter(systems)),
        "changes": list(_changes(systems)),
        "corpora": {
            name: {"files": list(_files(corpus)), "settings": _preparation(corpus)}
            for name, corpus in settings.corpora.items()
        },
        "citations": citations(settings),
        "records": material.records,
    }
    return Section("provenance", "Provenance", data)


def _commits(material: Material) -> list[str]:
    timings = (material.timings.get(cell) for cell in material.cells)
    trainings = (timing.training for timing in timings if timing and timing.training)
    return list(dict.fromkeys(each.commit for each in trainings if each.commit))


def _trainings(material: Material) -> dict[tuple[str, ...], str]:
    """Device, processes, versions and commit; and the names of the trainings that share them."""
    shared: dict[tuple[str, ...], list[str]] = {}
    for cell in material.cells:
        timing = material.timings.get(cell)
        where = (_NONE,) * 4
        if timing and (one := timing.training):
            shape = f"{one.processes} x {one.threads} threads"
            where = one.device, shape, one.versions or _NONE, one.commit or _NONE
        seed = f" (seed {cell.seed})" if len(material.settings.seeds) > 1 else ""
        shared.setdefault(where, []).append(f"{cell.system} on {cell.corpus}{seed}")
    count = len(material.cells)
    return {
        where: "all" if len(names) == count else ", ".join(names) for where, names in shared.items()
    }


def _changes(systems: dict[str, dict[str, str]]) -> Iterator[tuple[str, str, str, str]]:
    """System, setting, the baseline's value and this one's, for each setting that differs."""
    base, *_ = systems.values()
    for name, settings in list(systems.items())[1:]:
        keys = dict.fromkeys((*base, *settings))
        pairs = {key: (base.get(key, _NONE), settings.get(key, _NONE)) for key in keys}
        changed = {key: pair for key, pair in pairs.items() if pair[0] != pair[1]}
        for key, pair in (changed or {"nothing": (_NONE, _NONE)}).items():
            yield name, key, *pair


def _preparation(corpus: Corpus) -> dict[str, str]:
    fields = {field.name: getattr(corpus, field.name) for field in dataclasses.fields(corpus)}
    return dotted(
        {name: fields[name] for name in fields if name not in ("license_and_citation", "files")}
    )


def _files(corpus: Corpus) -> Iterator[tuple[str, ...]]:
    """Text, side, file, SHA-256 (may be empty) and license."""
    for name, text in corpus.files.texts().items():
        license_ = corpus.license_and_citation[text.license_and_citation].license
        for side in ("source", "target", "both"):
            if file := getattr(text, side):
                yield name, side, file.name, file.sha256 or "", license_
