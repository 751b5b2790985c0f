"""Turns the entries of dvc.yaml into rules for the Snakefile.

DVC writes the loop variables of an entry as `${item.system}`, Snakemake writes the wildcards of a
rule as `{system}`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from bleuprint.config import paths
from bleuprint.corpus.steps.sharded import INDEX_FOLDER
from bleuprint.pipeline.dvc_yaml import load_entries
from bleuprint.pipeline.graph import WORK, Stage, input_paths


@dataclass(frozen=True)
class Rule:
    """The stages of one entry of dvc.yaml, such as `train` for all systems, corpora and seeds.

    The methods with the argument `wildcards` are functions that Snakemake calls for a job. Its
    wildcards have the values of one stage, such as {"corpus": "phrasebook"}.

    Attributes:
        name: The name of the entry.
        outputs: The outputs with wildcards: `models/{system}/{corpus}/{seed}/averaged`.
        git_outputs: The outputs that Git tracks instead of DVC's cache.
        stages: The stages, by their first output.
        dependencies: The input files of every stage of the graph, by the stage's name.
        shards: How many jobs prepare a corpus; 1 for a stage that is not sharded.
    """

    name: str
    outputs: tuple[str, ...]
    git_outputs: tuple[str, ...]
    stages: Mapping[str, Stage]
    dependencies: Mapping[str, list[str]]
    shards: int

    @property
    def wildcards(self) -> list[str]:
        """The names of the wildcards, each once, in the order of the outputs."""
        all_outputs = "".join(self.outputs)
        return list(dict.fromkeys(re.findall(r"\{(\w+)\}", all_outputs)))

    @property
    def constraints(self) -> dict[str, str]:
        """A regular expression for each wildcard, which matches only values that occur in stages.

        Without it, the wildcard {system} of an output could match any text. For the output
        models/{system}/{corpus}/{seed}, the result is for example {"system": "small|tiny",
        "corpus": "own", "seed": "1|2"}.
        """
        # Turns the output above into the pattern models/(?P<system>[^/]+)/(?P<corpus>[^/]+)/... Its
        # groups match the values in the output paths of stages. `re.escape` puts a backslash before
        # each brace, so the backslashes are replaced, too.
        escaped_output = re.escape(self.outputs[0])
        pattern = re.compile(re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>[^/]+)", escaped_output))
        values_by_wildcard: dict[str, set[str]] = {name: set() for name in self.wildcards}
        for output in self.stages:
            match = pattern.fullmatch(output)
            if match is None:
                continue
            for name in self.wildcards:
                values_by_wildcard[name].add(re.escape(match[name]))
        expressions = {}
        for name, values in values_by_wildcard.items():
            expressions[name] = "|".join(sorted(values))
        return expressions

    @property
    def folders(self) -> list[str]:
        """The outputs that are folders."""
        return [path for path in self.outputs if _is_folder(path)]

    @property
    def files(self) -> list[str]:
        """The outputs that are files and that Git does not track.

        The Snakefile lists folders, and outputs that Git tracks, separately, with marks of their
        own.
        """
        files = []
        for path in self.outputs:
            if not _is_folder(path) and path not in self.git_outputs:
                files.append(path)
        return files

    @property
    def log(self) -> str:
        """The path of the log file of a job, with wildcards."""
        return str(WORK / "logs" / f"{self._stage_name('{', '}')}.log")

    @property
    def message(self) -> str:
        """What Snakemake prints when a job starts: the name of its stage."""
        return self._stage_name("{wildcards.", "}")

    @property
    def index(self) -> str:
        """The folder to which a job writes the index of a corpus, which the jobs of shards read."""
        return self.shard(INDEX_FOLDER)

    def shard(self, item: str = "{scatteritem}") -> str:
        """Return the folder to which a job writes its shard, one of N parts of a corpus.

        Args:
            item: The shard, such as `3-of-8`; by default the wildcard that Snakemake replaces by
                each shard in turn.
        """
        names = "/".join(f"{{{name}}}" for name in self.wildcards)
        return str(paths.shards_folder(names, self.name) / item)

    def stage(self, wildcards: Mapping[str, str]) -> Stage:
        """Return the stage of a job."""
        first_output = self.outputs[0].format_map(dict(wildcards.items()))
        return self.stages[first_output]

    def inputs(self, wildcards: Mapping[str, str]) -> list[str]:
        """Return the input files of a job."""
        return self.dependencies[self.stage(wildcards).name]

    def begin(self, wildcards: Mapping[str, str]) -> str:
        """Return the command that notes the state from which a job starts."""
        return self.stage(wildcards).begin_command()

    def command(self, wildcards: Mapping[str, str]) -> str:
        """Return the command of a job, which joins the shards if there are any."""
        return self.stage(wildcards).marked_command(self.shards)

    def shard_command(self, wildcards: Mapping[str, str]) -> str:
        """Return the command of a job for one shard, without the option that names the shard."""
        return self.stage(wildcards).command

    def shard_digest(self, wildcards: Mapping[str, str]) -> str:
        """Return the SHA-256 of command and settings, so that Snakemake sees a change of them."""
        return self.stage(wildcards).digest

    def _stage_name(self, opening: str, closing: str) -> str:
        """Return the name of a job's stage in DVC, with wildcards for system, corpus and seed.

        In a path, Snakemake writes a wildcard as {system}: `train@{system}-{corpus}-{seed}`. In a
        message, it writes {wildcards.system} instead.

        Args:
            opening: The text before the name of each wildcard: `{` or `{wildcards.`.
            closing: The text after the name of each wildcard: `}`.
        """
        values = "-".join(f"{opening}{name}{closing}" for name in self.wildcards)
        # Without wildcards, DVC's stage has the name of the entry, such as `report`.
        return f"{self.name}@{values}" if values else self.name


def _is_folder(output: str) -> bool:
    """Return whether an output is a folder, which has no suffix."""
    return Path(output).suffix == ""


def make_rules(stages: Iterable[Stage], shards: int = 1, root: Path = Path()) -> Iterator[Rule]:
    """Yield a Snakemake rule for each entry of dvc.yaml, in the order of dvc.yaml.

    The stages are defined only in dvc.yaml; the Snakefile makes its rules from these. DVC turns the
    entry `train`, for example, into one stage for each system, corpus and seed. In the same way,
    Snakemake turns the rule `train` into jobs. An entry without stages gets no rule.

    Args:
        stages: All stages of dvc.yaml.
        shards: Into how many parts the text of a corpus is divided. In stages that support it, each
            part is prepared by a job of its own.
        root: The project's folder.
    """
    stages = list(stages)
    dependencies = input_paths(stages, root)
    for name, entry in load_entries(root).items():
        stages_by_output = {}
        for stage in stages:
            if stage.kind == name:
                stages_by_output[stage.outputs[0]] = stage
        if not stages_by_output:
            continue
        # These options are the same for all stages of an entry, so the first one is as good as any.
        first_stage = next(iter(stages_by_output.values()))
        yield Rule(
            name=name,
            outputs=tuple(_with_wildcards(path) for path in entry.outputs),
            git_outputs=first_stage.git_outputs,
            stages=stages_by_output,
            dependencies=dependencies,
            shards=shards if first_stage.is_sharded else 1,
        )


def _with_wildcards(path: str) -> str:
    """Replace DVC's loop variables, `${item.system}` and `${key}`, by `{system}` and `{key}`."""
    return re.sub(r"\$\{(?:item\.)?(\w+)\}", r"{\1}", path)
