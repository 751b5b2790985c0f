"""The command rules: what each cleaning rule of a corpus gains, by trainings without it.

The experiment is a project of its own below work/, with the code and the graph of this one: a
corpus for each rule left out, and one small system. All have the same held-out sets.
"""

import filecmp
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from tempfile import TemporaryDirectory
from typing import Any

from rich.console import Console
from rich.table import Table
from ruamel.yaml import YAML
from scipy.stats import ttest_1samp

from bleuprint.config.experiment import load
from bleuprint.config.paths import Cell
from bleuprint.corpus.download.download import Sample, download_corpus
from bleuprint.corpus.download.fetch import source_of_environment
from bleuprint.corpus.steps.ledger import read_ledgers
from bleuprint.runtime import environment
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import whole_file
from bleuprint.runtime.schema import load_yaml
from bleuprint.scoring.score import read_scores
from bleuprint.text.parallel import TextFolder

CLEANED, AS_IT_IS = "cleaned", "as-it-is"
# The rules of dedup by the name of their variant, with its settings without them.
_DEDUP: dict[str, dict[str, Any]] = {
    "duplicates": dict.fromkeys(("pairs", "sources", "targets"), False),
    "decontaminate": {"decontaminate": "none"},
}
# What a project has beside its params.yaml and texts.
_LINKS = (".dvcignore", "Snakefile", "dvc.yaml", "environment.yaml", "profiles", "src", "stages")
_DVC_CONFIG = "[core]\n    no_scm = true\n    analytics = false\n    check_update = false\n"

Document = dict[str, Any]


@dataclass(frozen=True)
class RuleExperiment:
    """The trainings for one corpus in the project `root`, all of the same system."""

    root: Path
    system: str
    seeds: Sequence[int]
    variants: Mapping[str, Document]

    def cells(self, variant: str) -> list[Cell]:
        return [Cell(self.system, variant, seed) for seed in self.seeds]

    def unscored(self) -> int:
        """The number of trainings without scores."""
        cells = [cell for variant in self.variants for cell in self.cells(variant)]
        return sum(not (self.root / cell.results / "scores.json").exists() for cell in cells)

    def run(self) -> None:
        """Run what is not up to date. Raises UserError if a stage fails; it has said why."""
        command = [sys.executable, "-m", "snakemake", f"-c{environment.workers()}"]
        # small models train faster beside each other, but not on one GPU
        command += ["--max-threads", "1", *(["--resources", "gpu=1"] * environment.has_gpu())]
        variables = {name: value for name, value in os.environ.items() if name != "DVC_ROOT"}
        if subprocess.run([*command, "--quiet", "rules"], cwd=self.root, env=variables).returncode:
            raise UserError(f"{self.root}: the run has failed; the same command continues it")


def variants(corpus: Document) -> dict[str, Document]:
    """The entries of corpora: the corpus with all its rules, with none, and with all but one.

    Raises ValueError if the corpus has no rules.
    """
    without: dict[str, Document] = {}
    for section in ("clean", "dedup", "filter"):
        rules: Document = corpus[section]
        if section == "dedup":
            left = {name: {**rules, **off} for name, off in _DEDUP.items()}
            left = {name: entry for name, entry in left.items() if entry != rules}
        else:
            left = {rule: {k: v for k, v in rules.items() if k != rule} for rule in rules}
        for rule, entry in left.items():
            without[rule] = {**corpus, section: entry}
    if not without:
        raise ValueError("no cleaning rules (clean, dedup, filter): there is nothing to leave out")
    dedup: Document = {**corpus["dedup"], **_DEDUP["duplicates"], **_DEDUP["decontaminate"]}
    bare = {**corpus, "clean": {}, "dedup": dedup, "filter": {}}
    named = {variant_of(rule): entry for rule, entry in without.items()}
    return {CLEANED: corpus, AS_IT_IS: bare, **named}


def variant_of(rule: str) -> str:
    """The name of the corpus without a rule."""
    return f"no-{rule.replace('_', '-')}"


def make(name: str, system: str | None, seeds: int, pairs: int) -> RuleExperiment:
    """Write the project for corpus `name` of params.yaml, below work/; the texts are fetched.

    `system`: the first if None; `pairs`: at most so many are drawn of each training text. Raises
    UserError if the corpus has no rules, or draws validation or test sets, which would differ.
    """
    settings, document = load(), _plain(load_yaml(Path("params.yaml")))
    corpus, system = settings.corpus(name), system or next(iter(settings.systems))
    settings.system_on(system, name)
    for kind in ("valid", "tests"):
        if not getattr(corpus.files, kind):
            raise UserError(
                f"params.yaml: corpora.{name}.files.{kind} is empty: a set drawn after cleaning "
                "would differ from rule to rule; give it files"
            )
    if made := ", ".join(corpus.files.made()):
        raise UserError(
            f"params.yaml: corpora.{name}.files.train: systems translate one side of {made}, which "
            "a run on other corpora cannot repeat: leave it out of a copy of the corpus"
        )
    root = environment.work() / "rules" / name
    raw = TextFolder(root / "inputs", corpus.source, corpus.target)
    try:
        entries = variants(_with_local_files(document["corpora"][name], raw))
    except ValueError as error:
        raise UserError(f"params.yaml: corpora.{name}: {error}") from None
    row: Document = document["systems"][system]
    overrides = (row.pop("corpora", None) or {}).get(name, {})
    numbers = list(range(1, seeds + 1))
    experiment: Document = {
        "experiment": f"rules-{name}",
        "seeds": numbers,
        "corpora": entries,
        "systems": {system: {**row, **overrides}},
        "published": [],
    }
    _link(root)
    with TemporaryDirectory(dir=root) as folder:
        new, ledger = raw.at(Path(folder) / "raw"), Path(folder) / "ledger.json"
        sample = Sample(pairs, 1)
        download_corpus(name, corpus.files, new, ledger, source_of_environment(), sample)
        YAML().dump(_plain(experiment), new.path / "params.yaml")
        for file in new.path.iterdir():
            params = file.name == "params.yaml"
            _replace(file, root / file.name if params else raw.path / file.name)
    load(root / "params.yaml")
    return RuleExperiment(root, system, numbers, entries)


def _plain(document: Any) -> Document:
    """A document without comments, and with a copy of each entry that others share."""
    plain: Document = json.loads(json.dumps(document))
    return plain


def _with_local_files(corpus: Document, raw: TextFolder) -> Document:
    """A corpus whose texts are the files of the folder `inputs`, one a set."""

    def local(name: str, texts: Document) -> Document:
        source, target = ({"path": f"inputs/{file.name}"} for file in raw.files(name))
        given = next(iter(texts.values()))["license_and_citation"]
        return {"all": {"license_and_citation": given, "source": source, "target": target}}

    files: Document = corpus["files"]
    tests = {name: local(f"test.{name}", texts) for name, texts in files["tests"].items()}
    sets = {name: local(name, files[name]) for name in ("train", "valid")}
    return {**corpus, "files": {**sets, "tests": tests}}


def _link(root: Path) -> None:
    """Make the project's folder, with links to this one's code; DVC has its own cache there."""
    for folder in ("inputs", ".dvc"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    (root / ".dvc" / "config").write_text(_DVC_CONFIG)
    for name in _LINKS:
        link = root / name
        if not link.is_symlink():
            link.symlink_to(os.path.relpath(name, root))


def _replace(new: Path, old: Path) -> None:
    """Move a file to its place unless it is there already, with its time."""
    if not old.exists() or not filecmp.cmp(new, old, shallow=False):
        with whole_file(old) as partial:
            shutil.copyfile(new, partial)


def table(experiment: RuleExperiment) -> Iterator[str]:
    """The lines that `bleuprint rules` prints: a table for each test set."""
    bleu = {
        variant: [read_scores(experiment.root / cell.results / "scores.json") for cell in cells]
        for variant, cells in ((name, experiment.cells(name)) for name in experiment.variants)
    }
    found = _found(experiment.root)
    for test in bleu[CLEANED][0]:
        of_test = {
            name: [scores[test]["bleu"]["score"] for scores in by_seed]
            for name, by_seed in bleu.items()
        }
        grid = Table(title=f"test set {test}", title_justify="left", box=None)
        for column in ("left out", "pairs changed or dropped", "BLEU", "difference"):
            grid.add_column(column, justify="left" if column == "left out" else "right")
        for name, scores in of_test.items():
            difference = "" if name == CLEANED else _difference(scores, of_test[CLEANED])
            rule = {CLEANED: "nothing", AS_IT_IS: "all rules"}.get(name, name)
            count = f"{found[name]:,}" if name in found else ""
            grid.add_row(rule, count, _mean(scores), difference)
        console = Console(width=100, no_color=True, highlight=False)
        with console.capture() as capture:
            console.print(grid)
        yield from (line.rstrip() for line in capture.get().splitlines())
    if len(experiment.seeds) > 1:
        yield (
            f"BLEU: mean and standard deviation over {len(experiment.seeds)} seeds; difference "
            "from nothing left out, paired by seed, with its 95 % interval (t)"
        )


def _found(root: Path) -> dict[str, int]:
    """How many pairs each rule changes or drops after those before it, by variant."""
    ledgers = read_ledgers(CLEANED, root, ("clean", "dedup", "filter"))
    train = {stage: sets["train"] for stage, sets in ledgers.items()}
    dedup = train["dedup"].dropped
    held_out = sum(count for rule, count in dedup.items() if rule.endswith("_held_out"))
    counts = {
        **train["clean"].changed,
        "duplicates": sum(dedup.values()) - held_out,
        "decontaminate": held_out,
        **train["filter"].dropped,
    }
    return {variant_of(rule): count for rule, count in counts.items()}


def _mean(scores: Sequence[float]) -> str:
    deviation = f" ± {stdev(scores):.1f}" if len(scores) > 1 else ""
    return f"{fmean(scores):.1f}{deviation}"


def _difference(scores: Sequence[float], baseline: Sequence[float]) -> str:
    """The mean of the differences by seed, and its 95 % interval by Student's t."""
    differences = [a - b for a, b in zip(scores, baseline, strict=True)]
    mean = f"{fmean(differences):+.1f}"
    if len(set(differences)) < 2:
        return mean  # one seed, or a rule without effect
    interval = ttest_1samp(differences, 0).confidence_interval(0.95)
    return f"{mean} [{interval.low:+.1f}, {interval.high:+.1f}]"
