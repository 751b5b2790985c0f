"""Training texts of which a system of the experiment translates one side.

Back-translation (Sennrich et al. 2016) makes the source, sequence distillation (Kim and Rush 2016)
the target. Part of the settings in `experiment.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Annotated

from annotated_types import Interval

from bleuprint.config.corpus import Corpus
from bleuprint.config.system import System
from bleuprint.runtime.schema import Count, SettingError, Share, there_are


@dataclass(frozen=True)
class Sampling:
    """Each token is drawn by its probability: from all (`sampling: {}`), or from the `top_k` most
    probable ones. Drawn by the experiment's first seed, the text's name and the line.
    """

    top_k: Count | None = None


@dataclass(frozen=True)
class Noise:
    """Faults of made sources (Edunov et al. 2018): each word is left out with probability `drop`,
    then replaced by a filler token with probability `blank`; then words move by at most `shuffle`
    positions. Drawn as by `Sampling`.
    """

    drop: Share = 0.1
    blank: Share = 0.1
    shuffle: Annotated[int, Interval(ge=0, le=1000)] = 3


@dataclass(frozen=True)
class MadeText:
    """What translates the training text of its name in the corpus `part_of`: the training of
    `system` on `corpus` with the first seed. It searches with the system's `decode`, or draws its
    outputs (`sampling`); `noise` is put into what beam search found.
    """

    part_of: str
    system: str
    corpus: str
    sampling: Sampling | None = None
    noise: Noise | None = None

    def __post_init__(self) -> None:
        if self.sampling and self.noise:
            raise ValueError("sampling and noise: noise is for outputs of beam search")

    @property
    def how(self) -> str:
        """What is done besides beam search, or instead of it; empty if nothing is."""
        if self.sampling:
            most = self.sampling.top_k
            return f"drawn from {f'the {most} most probable' if most else 'all'} tokens"
        given = vars(self.noise) if self.noise else {}
        return ", ".join(f"{name} {value:g}" for name, value in given.items())


def check_made_texts(
    made_texts: Mapping[str, MadeText],
    corpora: Mapping[str, Corpus],
    cells: Mapping[str, Mapping[str, System | None]],
) -> None:
    """Raise SettingError at a text without its translation or the reverse, and at a cycle."""
    for name, made in made_texts.items():
        _check_made_text(name, made, corpora, cells)
    for corpus, column in corpora.items():
        for part, text in column.files.made().items():
            if part not in made_texts or made_texts[part].part_of != corpus:
                raise SettingError(
                    ["corpora", corpus, "files", "train", part],
                    f"has no {text.made}, and made_texts no entry {part} with part_of {corpus}",
                )
    graph: dict[str, list[str]] = {}
    for made in made_texts.values():
        graph.setdefault(made.part_of, []).append(made.corpus)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        # in which each corpus is one that the next needs
        cycle = " -> ".join(reversed(error.args[1]))
        message = f"a cycle, each translated by a system that is trained on the next: {cycle}"
        raise SettingError(["made_texts"], message) from None


def _check_made_text(
    name: str,
    made: MadeText,
    corpora: Mapping[str, Corpus],
    cells: Mapping[str, Mapping[str, System | None]],
) -> None:
    """Raise SettingError if there is no such text or training, or languages differ."""

    def error(key: str, message: str) -> SettingError:
        return SettingError(["made_texts", name, key], message)

    for key, known in (("part_of", corpora), ("corpus", corpora), ("system", cells)):
        if (value := getattr(made, key)) not in known:
            kind = key if key == "system" else "corpus"
            raise error(key, f"no {kind} {value!r}; {there_are(value, known)}")
    column, trained = corpora[made.part_of], corpora[made.corpus]
    if not (system := cells[made.system].get(made.corpus)):
        where = f"{made.corpus} (systems.{made.system}.corpora)"
        raise error("system", f"{made.system} is not trained on {where}")
    if (text := column.files.made().get(name)) is None:
        where = f"files.train.{name} with source or target alone"
        raise error("part_of", f"{made.part_of} has no {where}")
    sides = column.source, column.target
    if (trained.source, trained.target) != (needs := sides[:: 1 if text.made == "target" else -1]):
        there = f"{made.corpus} is {trained.source} to {trained.target}"
        raise error("corpus", f"{there}, and {name} of {made.part_of} needs {' to '.join(needs)}")
    if made.sampling and (engine := system.decode.engine) != "pytorch":
        raise error("sampling", f"needs engine pytorch; {made.system} has decode.engine {engine}")
    if made.noise and text.made != "source":
        raise error("noise", f"is for made sources, and the {text.made} of {name} is made")
