"""The section of provenance: what the numbers come from, and how to have them again."""

import dataclasses
from collections.abc import Mapping, Sequence

from bleuprint.config.corpus_files import File
from bleuprint.config.experiment import Corpus
from bleuprint.report.citations import citations
from bleuprint.report.page.html import Entry, details, escape, paragraph, table
from bleuprint.report.page.material import Material, Section
from bleuprint.report.page.reconciliation import digest_html
from bleuprint.runtime.flatten import dotted

_NONE = "–"


def provenance(material: Material) -> Section:
    settings = material.settings
    body = "<h3>Repeat it</h3>\n" + _commands(material)
    body += "<h3>Trained on</h3>\n" + _trainings(material)
    body += "<h3>Settings of the systems</h3>\n" + _systems(material)
    body += "<h3>Corpora</h3>\n"
    for name, corpus in settings.corpora.items():
        body += details(f"{escape(name)}: files and licenses", _files(corpus))
        body += details(f"{escape(name)}: settings", _flat_table(_preparation(corpus)))
    body += details("What to cite, as BibTeX", f"<pre>{escape(citations(settings))}</pre>\n")
    body += "<h3>Fingerprints</h3>\n" + _fingerprints(material)
    return Section("provenance", "Where it comes from", body)


def _commands(material: Material) -> str:
    """The commands that repeat the experiment, and one that scores a translation again."""
    commits = _commits(material)
    lines = ["make reproduce", "", "# one of the scores again, by sacreBLEU's own command:"]
    one = material.records[0]
    name = f"test.{one.test}.{one.target}"
    hypotheses = (one.cell.results / "hypotheses" / name).as_posix()
    lines.append(
        f"sacrebleu data/split/{one.corpus}/{name} -l {one.pair} -i {hypotheses} -m bleu -w 2"
    )
    text = (
        "In a clone of the project, at the commit that holds this experiment's params.yaml and "
        "dvc.lock. What is computed already is not computed again; on the same machine the same "
        "settings give the same bytes."
    )
    if len(commits) == 1:
        text += f" Trained at commit {commits[0]}; what came after, this page too, may be of later."
    if len(commits) > 1:
        text += " The trainings are of several commits, below: each ran with the code of its own."
    if any(commit.endswith("+") for commit in commits):
        text += " + after a commit: the code had changes that were not committed."
    return f"<pre>{escape(chr(10).join(lines))}</pre>\n" + paragraph(escape(text), "hint")


def _commits(material: Material) -> list[str]:
    timings = (material.timings.get(cell) for cell in material.cells)
    trained = (one.training for one in timings if one is not None)
    return list(dict.fromkeys(one.commit for one in trained if one is not None and one.commit))


def _trainings(material: Material) -> str:
    """Where each training ran: trainings of which all is the same share a row."""
    shared: dict[tuple[str, ...], list[str]] = {}
    for cell in material.cells:
        timing = material.timings.get(cell)
        one = timing.training if timing else None
        if one is None:
            where = (_NONE,) * 4
        else:
            shape = f"{one.processes} x {one.threads} threads"
            where = one.device, shape, one.versions or _NONE, one.commit or _NONE
        seed = f" (seed {cell.seed})" if len(material.settings.seeds) > 1 else ""
        shared.setdefault(where, []).append(f"{cell.system} on {cell.corpus}{seed}")
    heads = ("Device", "Processes", "Versions", "Commit", "Trainings")
    count = len(material.cells)
    rows = [
        [Entry.text(text) for text in (*where, "all" if len(of) == count else ", ".join(of))]
        for where, of in shared.items()
    ]
    return table(heads, rows, "Device, versions and commit as noted by the training", left=5)


def _systems(material: Material) -> str:
    """The baseline in full; of the others what differs."""
    systems = {name: dotted(one) for name, one in material.settings.systems.items()}
    (baseline, base), *others = systems.items()
    body = details(f"{escape(baseline)} (baseline), all settings", _flat_table(base))
    rows = []
    for name, other in others:
        for key in dict.fromkeys((*base, *other)):
            if base.get(key) != other.get(key):
                change = key, base.get(key, _NONE), other.get(key, _NONE)
                rows.append([Entry.text(text) for text in (name, *change)])
        if not rows or rows[-1][0].key != name:
            rows.append([Entry.text(text) for text in (name, "nothing", _NONE, _NONE)])
    if rows:
        heads = ("System", "Setting", escape(baseline), "This system")
        caption = f"What differs from the baseline, {escape(baseline)}"
        body += table(heads, rows, caption, left=4)
    return body


def _preparation(corpus: Corpus) -> dict[str, str]:
    settings = {
        field.name: getattr(corpus, field.name)
        for field in dataclasses.fields(corpus)
        if field.name not in ("license_and_citation", "files")
    }
    return dotted(settings)


def _flat_table(settings: Mapping[str, str]) -> str:
    rows = [[Entry(f"<code>{escape(key)}</code>"), Entry.text(settings[key])] for key in settings]
    return table(("Setting", "Value"), rows, "", left=2)


def _files(corpus: Corpus) -> str:
    heads = ("Text", "Side", "File", "SHA-256", "License")
    rows = []
    for name, text in corpus.files.texts().items():
        license_ = corpus.license_and_citation[text.license_and_citation].license
        sides = {"source": text.source, "target": text.target, "both": text.both}
        for side, file in sides.items():
            if file is not None:
                cells = [Entry.text(one) for one in (name, side, file.name)]
                rows.append([*cells, _sum(file), Entry.text(license_)])
    return table(heads, rows, "Addresses as in params.yaml", left=5)


def _sum(file: File) -> Entry:
    return Entry(digest_html(file.sha256)) if file.sha256 else Entry(_NONE)


def _fingerprints(material: Material) -> str:
    heads = ["System", "Corpus", "Seed", "Test set", "Training", "Settings", "Code"]
    heads += ["Binary corpus", "Sources", "References", "Translations"]
    rows = []
    for one in material.records:
        texts = one.system, one.corpus, str(one.seed), one.test
        made, data = one.fingerprints, one.data
        digests: Sequence[str] = (
            *(made.training, made.settings, made.code),
            *(data.binary, data.sources, data.references, data.hypotheses),
        )
        rows.append([*map(Entry.text, texts), *(Entry(digest_html(digest)) for digest in digests)])
    caption = "SHA-256, the first 12 digits; all of them in results.json"
    return details("Of each result", table(heads, rows, caption, left=len(heads)))
