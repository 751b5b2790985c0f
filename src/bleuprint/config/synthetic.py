"""Synthetic text: training texts with one side that a system of the experiment translates.

In back-translation (Sennrich et al. 2016), the source is translated; in sequence distillation (Kim
and Rush 2016), the target. params.yaml lists these texts under `synthetic`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bleuprint.config import paths
from bleuprint.config.corpus import Corpus
from bleuprint.config.corpus_files import Text
from bleuprint.config.noise import Noise
from bleuprint.rules.rule import apply_edits
from bleuprint.runtime.schema import Count, SettingError, list_known_names
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
class SyntheticText:
    """How one side of a training text is translated.

    The translating model is `system` on `corpus`, trained with the first seed.

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
        """Raise ValueError if outputs are both sampled and noised; each is random enough alone."""
        if self.sampling and self.noise:
            raise ValueError(
                "sampling and noise are both set, but noise is for outputs of beam search. Remove "
                "one of the two"
            )

    @property
    def method(self) -> str:
        """How the system translates, in words for the report; empty for plain beam search."""
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
        settings: The settings of its translation, in addition to the settings of the corpus.
    """

    description: str
    params: Mapping[str, str]
    methods: frozenset[str]
    settings: SyntheticText


def origin_of(text: Text, synthetic: SyntheticText) -> Origin:
    """Describe how the synthetic side of a training text is translated, for report and MLflow.

    Args:
        text: The training text. One side is in a file; a system translates it into the other side.
        synthetic: The settings of the translation.
    """
    side = text.synthetic_side
    assert side is not None, "a system translates one side of the text"
    description = f"translated by {synthetic.system}, trained on {synthetic.corpus}"
    # The words under which methods.bib lists publications: `made source` means back-translation,
    # `made target` sequence distillation, `drawn` sampling or noise.
    methods = {f"made {side}"}
    if synthetic.method:
        description += f"; {synthetic.method}"
        methods.add("drawn")
    if text.tag:
        description += f"; sources begin with {text.tag}"
        methods.add("tag")
    return Origin(
        description=description,
        params={
            "system": synthetic.system,
            "corpus": synthetic.corpus,
            "how": synthetic.method or "beam search",
        },
        methods=frozenset(methods),
        settings=synthetic,
    )


def synthetic_folder(corpus: str, text: str, root: Path = Path()) -> Path:
    """Return the folder for the translations of a synthetic training text.

    Args:
        corpus: The corpus that the text belongs to.
        text: The name of the text.
        root: The project's folder.
    """
    return paths.corpus_folder(corpus, "raw", root) / f"synthetic-{text}"


def check_synthetic_texts(
    corpora: Mapping[str, Corpus], synthetic: Mapping[str, SyntheticText]
) -> None:
    """Check that for each text with one side in a file, params.yaml names a system to translate it.

    A training text may have only a source or only a target file. Then the top-level key `synthetic`
    of params.yaml must have an entry with the name of the text, which names the translating system.

    Args:
        corpora: The settings of the corpora by name.
        synthetic: The entries of `synthetic` by the name of the text.

    Raises:
        SettingError: A text has no entry, an entry has no text, or the system cannot translate it.
    """
    # The keys are, for example, `news.files.train.monolingual`.
    texts_by_key = _synthetic_texts_by_key(corpora)
    keys_with_entry = set()
    for name, entry in synthetic.items():
        key = f"{entry.part_of}.files.train.{name}"
        keys_with_entry.add(key)
        if key not in texts_by_key:
            known_names = list_known_names(key, texts_by_key)
            message = f"no text {key} lacks its source or target; {known_names}"
            raise SettingError(["synthetic", name, "part_of"], message)
        _check_entry(name, entry, texts_by_key[key], corpora)
    for key, text in texts_by_key.items():
        if key not in keys_with_entry:
            message = (
                f"has no {text.synthetic_side}. Add the file, or an entry of synthetic, which "
                "translates the text"
            )
            raise SettingError(["corpora", *key.split(".")], message)


def _synthetic_texts_by_key(corpora: Mapping[str, Corpus]) -> dict[str, Text]:
    """Return all training texts with one side that a system translates.

    Args:
        corpora: The settings of the corpora by name.

    Returns:
        The texts by their keys in params.yaml, such as `news.files.train.monolingual`.

    Raises:
        SettingError: Such a text is in a corpus with several translation directions, or its tag is
            not one token.
    """
    texts_by_key = {}
    for corpus_name, corpus in corpora.items():
        for text_name, text in corpus.files.synthetic_texts().items():
            keys = ["corpora", corpus_name, "files", "train", text_name]
            # A corpus without directions has a single language pair, with the name of the corpus.
            has_one_pair = list(corpus.language_pairs(corpus_name)) == [corpus_name]
            if not has_one_pair:
                message = (
                    "a corpus with directions cannot contain a text that a system translates. Add "
                    f"the {text.synthetic_side} file"
                )
                raise SettingError(keys, message)
            _check_tag(text, corpus, [*keys, "tag"])
            texts_by_key[f"{corpus_name}.files.train.{text_name}"] = text
    return texts_by_key


def _check_tag(text: Text, corpus: Corpus, keys: list[str]) -> None:
    """Raise SettingError if the tag of a synthetic text would not be one token for the model.

    A tag, such as <BT>, is put before each source sentence of the text, so that the model can
    distinguish synthetic from real sentences. It is cleaned and tokenized like the rest of the
    sentence, which may change or split it.

    Args:
        text: The text, which may have a tag.
        corpus: The corpus that the text belongs to.
        keys: Where params.yaml has the tag, for the message.
    """
    if text.tag is None:
        return
    if corpus.vocabulary.sentencepiece is not None:
        message = f"SentencePiece would split {text.tag!r}. Remove tag or vocabulary.sentencepiece"
        raise SettingError(keys, message)
    word = apply_edits(text.tag, corpus.source, corpus.clean)
    tokens = tokenizer_for(corpus.source, corpus.tokenize).tokenize(word)
    if tokens != [text.tag]:
        message = (
            f"clean and tokenize turn {text.tag!r} into {tokens}, but a tag must stay one token. "
            "Change it"
        )
        raise SettingError(keys, message)


def _check_entry(
    name: str, entry: SyntheticText, text: Text, corpora: Mapping[str, Corpus]
) -> None:
    """Raise SettingError if an entry of `synthetic` does not fit the text that it is for.

    The system that it names must translate from the text's given language into the missing one. The
    entry may add noise to synthetic sources, but not to synthetic targets.

    Args:
        name: The name of the text.
        entry: The entry, which names the system.
        text: The settings of the text.
        corpora: The settings of the corpora by name.
    """
    source, target = corpora[entry.part_of].languages
    needed_languages = (source, target)
    if text.synthetic_side == "source":
        # Back-translation: the system translates the target into the source.
        needed_languages = (target, source)
    # The corpus that the system was trained on. An unknown name is reported elsewhere.
    system_corpus = corpora.get(entry.corpus)
    if system_corpus is not None and system_corpus.languages != needed_languages:
        message = (
            f"{entry.corpus} is {' to '.join(system_corpus.languages)}, but {name} of "
            f"{entry.part_of} needs {' to '.join(needed_languages)}"
        )
        raise SettingError(["synthetic", name, "corpus"], message)
    if entry.noise is not None and text.synthetic_side != "source":
        message = (
            f"noise is only for synthetic sources, but {name} has a synthetic "
            f"{text.synthetic_side}. Remove noise"
        )
        raise SettingError(["synthetic", name, "noise"], message)
