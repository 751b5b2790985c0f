"""Synthetic text: training texts of which a system of the experiment translates one side.

In back-translation (Sennrich et al. 2016), the source is translated; in sequence distillation (Kim
and Rush 2016), the target. params.yaml lists these texts under `synthetic`.
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
    """Sampling of outputs in place of beam search: each token is drawn by its probability.

    The draws depend on the experiment's first seed, the text's name and the line number.

    Attributes:
        top_k: From how many of the most probable tokens a token is drawn; None for all tokens.
    """

    top_k: Count | None = None


@dataclass(frozen=True)
class Noise:
    """Noise in synthetic sources (Edunov et al. 2018).

    The draws depend on the experiment's first seed, the text's name and the line number.

    Attributes:
        drop: The probability with which each word is left out.
        blank: The probability with which each remaining word is replaced by a filler token.
        shuffle: By how many positions a word moves at most.
    """

    drop: Share = 0.1
    blank: Share = 0.1
    shuffle: Annotated[int, Interval(ge=0, le=1000)] = 3


@dataclass(frozen=True)
class SyntheticText:
    """How one side of a training text is translated.

    The translating model is that of `system` on `corpus`, trained with the first seed.

    Attributes:
        part_of: The corpus that the training text belongs to.
        system: The system that translates, with its settings `decode`.
        corpus: The corpus on which this system was trained.
        sampling: How outputs are sampled; None for beam search.
        noise: The noise that is put into the outputs of beam search.
    """

    part_of: str
    system: str
    corpus: str
    sampling: Sampling | None = None
    noise: Noise | None = None

    def __post_init__(self) -> None:
        """Raise ValueError at noise in sampled outputs."""
        if self.sampling and self.noise:
            raise ValueError("sampling and noise: noise is for outputs of beam search")

    @property
    def method(self) -> str:
        """How outputs differ from those of plain beam search, in words; empty if they do not."""
        if self.sampling is not None:
            if self.sampling.top_k is None:
                return "drawn from all tokens"
            return f"drawn from the {self.sampling.top_k} most probable tokens"
        if self.noise is not None:
            noise = self.noise
            return f"drop {noise.drop:g}, blank {noise.blank:g}, shuffle {noise.shuffle:g}"
        return ""


@dataclass(frozen=True)
class Origin:
    """Where the synthetic side of a training text comes from.

    Attributes:
        description: What translated it and how, for the report.
        params: The same by key, for MLflow.
        methods: The methods that made it, by their keys in `methods.bib`.
        settings: The settings that decide it, besides those of the corpus.
    """

    description: str
    params: Mapping[str, str]
    methods: frozenset[str]
    settings: SyntheticText


def origin_of(text: Text, synthetic: SyntheticText) -> Origin:
    """Return where the synthetic side of a training text comes from.

    Args:
        text: The training text, of which a file has the other side.
        synthetic: The entry of `synthetic` for the text.
    """
    side = text.synthetic_side
    assert side is not None, "a text of which a system translates one side"
    # `steps` are parts of a sentence for the report, `methods` are keys of methods.bib.
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
    """Return the folder of a synthetic training text.

    Args:
        corpus: The corpus that the text belongs to.
        text: The name of the text.
        root: The project's folder.
    """
    return paths.corpus_folder(corpus, "raw", root) / f"synthetic-{text}"


def check_synthetic_texts(
    corpora: Mapping[str, Corpus], synthetic: Mapping[str, SyntheticText]
) -> None:
    """Raise SettingError at a text without its entry of `synthetic`, or an entry without its text.

    Args:
        corpora: The corpora by name.
        synthetic: The entries of `synthetic` by the name of the text.
    """
    texts_by_key = _synthetic_texts_by_key(corpora)
    keys_of_entries = set()
    for name, entry in synthetic.items():
        key = f"{entry.part_of}.files.train.{name}"
        keys_of_entries.add(key)
        if key not in texts_by_key:
            known_names = list_known_names(key, texts_by_key)
            message = f"no {key} with source or target alone; {known_names}"
            raise SettingError(["synthetic", name, "part_of"], message)
        _check_entry(name, entry, texts_by_key[key], corpora)
    for key, text in texts_by_key.items():
        if key not in keys_of_entries:
            message = f"has no {text.synthetic_side}, and no entry of synthetic"
            raise SettingError(["corpora", *key.split(".")], message)


def _synthetic_texts_by_key(corpora: Mapping[str, Corpus]) -> dict[str, Text]:
    """Return the training texts with a synthetic side by key, CORPUS.files.train.TEXT.

    Args:
        corpora: The corpora by name.

    Raises:
        SettingError: Such a text is in a corpus with directions, or its tag is not one token.
    """
    texts_by_key = {}
    for corpus_name, corpus in corpora.items():
        for text_name, text in corpus.files.synthetic_texts().items():
            keys = ["corpora", corpus_name, "files", "train", text_name]
            has_directions = list(corpus.language_pairs(corpus_name)) != [corpus_name]
            if has_directions:
                raise SettingError(keys, "made by a system: not in a corpus with directions")
            _check_tag(text, corpus, [*keys, "tag"])
            texts_by_key[f"{corpus_name}.files.train.{text_name}"] = text
    return texts_by_key


def _check_tag(text: Text, corpus: Corpus, keys: list[str]) -> None:
    """Raise SettingError if the model would read the tag of a text as more than one token.

    Args:
        text: The text, whose sources begin with the tag.
        corpus: The corpus, by whose settings the tag is cleaned and tokenized.
        keys: The keys of the tag, for the message.
    """
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
    """Raise SettingError if the translating system has the wrong languages, or at misplaced noise.

    Args:
        name: The name of the text.
        entry: The entry of `synthetic` for the text.
        text: The text.
        corpora: The corpora by name.
    """
    needed_languages = corpora[entry.part_of].languages
    if text.synthetic_side == "source":  # The system translates from the target to the source.
        source, target = needed_languages
        needed_languages = (target, source)
    system_corpus = corpora.get(entry.corpus)
    if system_corpus is not None and system_corpus.languages != needed_languages:
        message = (
            f"{entry.corpus} is {' to '.join(system_corpus.languages)}, and {name} of "
            f"{entry.part_of} needs {' to '.join(needed_languages)}"
        )
        raise SettingError(["synthetic", name, "corpus"], message)
    if entry.noise is not None and text.synthetic_side != "source":
        message = f"is for synthetic sources, and {name} has a synthetic {text.synthetic_side}"
        raise SettingError(["synthetic", name, "noise"], message)
