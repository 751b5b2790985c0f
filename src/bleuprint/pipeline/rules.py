"""The entries of dvc.yaml as rules for the Snakefile, with a wildcard for each loop variable."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from bleuprint.config import paths
from bleuprint.pipeline.dvc_yaml import load_entries
from bleuprint.pipeline.graph import WORK, Stage, input_paths


@dataclass(frozen=True)
class Rule:
    """The stages of one entry of dvc.yaml: `train` of all systems, corpora and seeds.

    `outputs` have wildcards, `models/{system}/{corpus}/{seed}/averaged`; `kept`: those that are in
    git instead of DVC's cache. `stages`: by the first output. `dependencies`: files by the stage's
    name. `shards`: the number of jobs that prepare a corpus, 1 for a stage that is not sharded.
    The methods that take `wildcards` are Snakemake's functions of a job.
    """

    name: str
    outputs: tuple[str, ...]
    git_outputs: tuple[str, ...]
    stages: Mapping[str, Stage]
    dependencies: Mapping[str, list[str]]
    shards: int

    @property
    def wildcards(self) -> list[str]:
        return list(dict.fromkeys(re.findall(r"\{(\w+)\}", "".join(self.outputs))))

    @property
    def constraints(self) -> dict[str, str]:
        """The wildcards' regular expressions: the values that stages have."""
        pattern = re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>[^/]+)", re.escape(self.outputs[0]))
        found = [re.fullmatch(pattern, output) for output in self.stages]
        return {
            name: "|".join(sorted({re.escape(match[name]) for match in found if match}))
            for name in self.wildcards
        }

    @property
    def folders(self) -> list[str]:
        return [path for path in self.outputs if _is_folder(Path(path))]

    @property
    def files(self) -> list[str]:
        """The outputs that are files in DVC's cache."""
        files = [path for path in self.outputs if not _is_folder(Path(path))]
        return [path for path in files if path not in self.git_outputs]

    @property
    def log(self) -> str:
        return str(WORK / "logs" / f"{self._job('{', '}')}.log")

    @property
    def message(self) -> str:
        return self._job("{wildcards.", "}")

    def shard(self, item: str = "{scatteritem}") -> str:
        """The folder of a shard."""
        return str(paths.shards_folder("{key}", self.name) / item)

    def stage(self, wildcards: Mapping[str, str]) -> Stage:
        return self.stages[self.outputs[0].format_map(dict(wildcards.items()))]

    def inputs(self, wildcards: Mapping[str, str]) -> list[str]:
        return self.dependencies[self.stage(wildcards).name]

    def threads(self, wildcards: Mapping[str, str]) -> int:
        return self.stage(wildcards).threads

    def begin(self, wildcards: Mapping[str, str]) -> str:
        return self.stage(wildcards).begin_command()

    def command(self, wildcards: Mapping[str, str]) -> str:
        return self.stage(wildcards).marked_command(self.shards)

    def shard_command(self, wildcards: Mapping[str, str]) -> str:
        return self.stage(wildcards).command

    def shard_digest(self, wildcards: Mapping[str, str]) -> str:
        return self.stage(wildcards).digest

    def _job(self, before: str, after: str) -> str:
        """DVC's name of the stage, `train@small-phrasebook-1`."""
        values = "-".join(f"{before}{name}{after}" for name in self.wildcards)
        return f"{self.name}@{values}" if values else self.name


def _is_folder(output: Path) -> bool:
    """Whether an output is a folder, which has no suffix."""
    return output.suffix == ""


def make_rules(stages: Iterable[Stage], shards: int = 1, root: Path = Path()) -> Iterator[Rule]:
    """All rules, in the order of dvc.yaml; entries without stages are left out."""
    stages = list(stages)
    dependencies = input_paths(stages, root)
    for name, entry in load_entries(root).items():
        of_entry = [stage for stage in stages if stage.kind == name]
        if not of_entry:
            continue
        first = of_entry[0]
        # DVC's `${item.system}` and `${key}` are Snakemake's `{system}` and `{key}`
        outputs = (re.sub(r"\$\{(?:item\.)?(\w+)\}", r"{\1}", path) for path in entry.outputs)
        yield Rule(
            name=name,
            outputs=tuple(outputs),
            git_outputs=first.git_outputs,
            stages={stage.outputs[0]: stage for stage in of_entry},
            dependencies=dependencies,
            shards=shards if first.is_sharded else 1,
        )
