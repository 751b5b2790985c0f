"""Training texts of which a system of the experiment translates one side.

Back-translation (Sennrich et al. 2016) makes the source, sequence distillation (Kim and Rush 2016)
the target. Part of the settings in `experiment.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from annotated_types import Interval

from bleuprint.config import paths
from bleuprint.config.corpus import Corpus
from bleuprint.config.corpus_files import Text
from bleuprint.rules.rule import apply_edits
from bleuprint.runtime.schema import Count, SettingError, Share, list_known_names
from bleuprint.text.tokenizers import tokenizer_for


@dataclass(frozen=True)
class Sampling:
    """Each token is drawn by its probability: from all (`sampling: {}`), or from the `top_k` most
    probable ones. Drawn by the experiment's first seed, the text's name and the line.
    """

    top_k: Count | None = None


@dataclass(frozen=True)
class Noise:
    """Noise in synthetic sources (Edunov et al. 2018), drawn as by `Sampling`.

    Each word is left out with probability `drop`, then replaced by a filler token with probability
    `blank`; then words move by at most `shuffle` positions.
    """

    drop: Share = 0.1
    blank: Share = 0.1
    shuffle: Annotated[int, Interval(ge=0, le=1000)] = 3


@dataclass(frozen=True)
class SyntheticText:
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
    def method(self) -> str:
        """What is done besides beam search, or instead of it; empty if nothing is."""
        if self.sampling:
            most = self.sampling.top_k
            return f"drawn from {f'the {most} most probable' if most else 'all'} tokens"
        given = vars(self.noise) if self.noise else {}
        return ", ".join(f"{name} {value:g}" for name, value in given.items())


@dataclass(frozen=True)
class Origin:
    """Where the side of a training text comes from that is not in a file.

    Attributes:
        description: What made it, for the report.
        params: The same for MLflow, by key.
        methods: The methods that made it, as `methods.bib` names them.
        settings: The settings that decide it, besides those of the corpus.
    """

    description: str
    params: Mapping[str, str]
    methods: frozenset[str]
    settings: SyntheticText


def origin_of(text: Text, synthetic: SyntheticText) -> Origin:
    """Return where the side of a training text comes from that a system translates."""
    side = text.synthetic_side
    assert side is not None, "a text of which a system translates one side"
    steps = [f"translated by {synthetic.system}, trained on {synthetic.corpus}"]
    methods = {f"made {side}"}
    if synthetic.method:
        steps.append(synthetic.method)
        methods.add("drawn")
    if text.tag:
        steps.append(f"sources begin with {text.tag}")
        methods.add("tag")
    return Origin(
        description="; ".join(steps),
        params={
            "system": synthetic.system,
            "corpus": synthetic.corpus,
            "how": synthetic.method or "beam search",
        },
        methods=frozenset(methods),
        settings=synthetic,
    )


def synthetic_folder(corpus: str, text: str, root: Path = Path()) -> Path:
    """The folder of a training text of a corpus of which a system has translated one side."""
    return paths.corpus_folder(corpus, "raw", root) / f"synthetic-{text}"


def check_synthetic_texts(
    corpora: Mapping[str, Corpus], synthetic: Mapping[str, SyntheticText]
) -> None:
    """Raise SettingError at a text without its entry of `synthetic`, or an entry without its text.

    Args:
        corpora: The corpora by name.
        synthetic: The entries of `synthetic` by the name of the text.
    """
    texts = {}
    for name, corpus in corpora.items():
        for part, text in corpus.files.synthetic_texts().items():
            keys = ["corpora", name, "files", "train", part]
            if list(corpus.language_pairs(name)) != [name]:
                raise SettingError(keys, "made by a system: not in a corpus with directions")
            _check_tag(text, corpus, [*keys, "tag"])
            texts[f"{name}.files.train.{part}"] = text
    wanted = set()
    for name, entry in synthetic.items():
        place = f"{entry.part_of}.files.train.{name}"
        wanted.add(place)
        if place not in texts:
            message = f"no {place} with source or target alone; {list_known_names(place, texts)}"
            raise SettingError(["synthetic", name, "part_of"], message)
        _check_entry(name, entry, texts[place], corpora)
    for place, text in texts.items():
        if place not in wanted:
            message = f"has no {text.synthetic_side}, and no entry of synthetic"
            raise SettingError(["corpora", *place.split(".")], message)


def _check_tag(text: Text, corpus: Corpus, keys: list[str]) -> None:
    """Raise SettingError if the tag of a text would not be one token."""
    if text.tag is None:
        return
    if corpus.vocabulary.sentencepiece is not None:
        message = f"{text.tag!r}: not with vocabulary.sentencepiece, for which it is rare text"
        raise SettingError(keys, message)
    word = apply_edits(text.tag, corpus.source, corpus.clean)
    tokens = tokenizer_for(corpus.source, corpus.tokenize).tokenize(word)
    if tokens != [text.tag]:
        message = f"clean and tokenize turn {text.tag!r} into {tokens}: not one token"
        raise SettingError(keys, message)


def _check_entry(
    name: str, entry: SyntheticText, text: Text, corpora: Mapping[str, Corpus]
) -> None:
    """Raise SettingError if a system translates from or into other languages than a text needs."""
    source, target = corpora[entry.part_of].languages
    needed = (source, target) if text.synthetic_side == "target" else (target, source)
    parent = corpora.get(entry.corpus)
    if parent is not None and parent.languages != needed:
        message = f"{entry.corpus} is {' to '.join(parent.languages)}, and {name} of "
        message += f"{entry.part_of} needs {' to '.join(needed)}"
        raise SettingError(["synthetic", name, "corpus"], message)
    if entry.noise and text.synthetic_side != "source":
        message = f"is for synthetic sources, and {name} has a synthetic {text.synthetic_side}"
        raise SettingError(["synthetic", name, "noise"], message)
