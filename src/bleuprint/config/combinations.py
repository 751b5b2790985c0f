"""Check systems and corpora in combination: each system on each corpus, and the names of runs."""

from collections.abc import Collection, Mapping
from typing import TypeVar

from bleuprint.config.corpus import Corpus
from bleuprint.config.system import System
from bleuprint.runtime.schema import SettingError

T = TypeVar("T")


def systems_on(
    corpus: str, settings_by_system: Mapping[str, Mapping[str, T | None]]
) -> dict[str, T]:
    """Return the settings of the systems that exist on a corpus, by system.

    Args:
        corpus: The name of the corpus.
        settings_by_system: The settings of each system by corpus; None for a corpus without the
            system.
    """
    systems = {}
    for name, settings_by_corpus in settings_by_system.items():
        settings = settings_by_corpus.get(corpus)
        if settings is not None:
            systems[name] = settings
    return systems


def check_systems_of_corpus(
    corpus_name: str, corpus: Corpus, systems: Mapping[str, System]
) -> None:
    """Check that a corpus has systems, and that each of them can be trained on it.

    Args:
        corpus_name: The name of the corpus.
        corpus: The settings of the corpus.
        systems: The settings of the systems that are to be trained on the corpus, by name.

    Raises:
        SettingError: The corpus lacks a system, or one does not fit the vocabulary of the corpus.
    """
    if not systems:
        message = (
            "no system is trained on this corpus. Add it to systems.NAME.corpora, or remove it"
        )
        raise SettingError(["corpora", corpus_name], message)
    for system_name, system in systems.items():
        problem = _why_untrainable(system, corpus_name, corpus)
        if problem is not None:
            raise SettingError(["runs", system_name, corpus_name], problem)


def _why_untrainable(system: System, corpus_name: str, corpus: Corpus) -> str | None:
    """Return why a system cannot be trained on a corpus; None if it can.

    Three settings of a system work only with a certain vocabulary: `replace_unk` needs whole words,
    `bpe_dropout` needs BPE subwords, and tying all embeddings needs one vocabulary for both
    languages.

    Args:
        system: The settings of the system.
        corpus_name: The name of the corpus, for the message.
        corpus: The settings of the corpus, whose vocabulary is compared.
    """
    vocabulary = corpus.vocabulary
    if system.decode.replace_unk and vocabulary.words is None:
        return (
            "decode.replace_unk needs a vocabulary of whole words, but corpus "
            f"{corpus_name} uses subwords"
        )
    if system.train.bpe_dropout and vocabulary.bpe is None:
        return (
            f"train.bpe_dropout needs a BPE vocabulary, but corpus {corpus_name} uses another one"
        )
    if system.model.tie_embeddings == "all" and not vocabulary.joint:
        return (
            "model.tie_embeddings all needs one vocabulary for both languages, but corpus "
            f"{corpus_name} has a vocabulary for each language"
        )
    return None


def check_run_names(systems: Collection[str], corpora: Collection[str]) -> None:
    """Raise ValueError if two runs would have the same name in DVC, which is SYSTEM-CORPUS.

    Names may contain hyphens, too. So the system `a` on the corpus `b-c` and the system `a-b` on
    the corpus `c` would both be called `a-b-c`.

    Args:
        systems: The names of all systems.
        corpora: The names of all corpora.
    """
    runs_by_name: dict[str, list[str]] = {}
    for system in systems:
        for corpus in corpora:
            runs = runs_by_name.setdefault(f"{system}-{corpus}", [])
            runs.append(f"system {system} on corpus {corpus}")
    for name, runs in sorted(runs_by_name.items()):
        if len(runs) > 1:
            raise ValueError(
                f"two runs are called {name}: {' and '.join(runs)}. Rename a system or a corpus"
            )
