"""The experiment as frozen dataclasses, `Settings`: the one place where settings are read.

`load_settings` reads params.yaml; a setting that it omits takes the default of its dataclass. The
stage `resolve` writes all settings to reports/resolved.json. The other stages read this file by
`load_resolved_settings`, and DVC compares its values. What cannot change a result (workers, GPUs,
mirrors) is an environment variable instead of a setting; see `runtime/environment.py`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, TypeVar

from annotated_types import Interval, MaxLen, MinLen
from pydantic import Strict

from bleuprint.config.combinations import check_run_names, check_systems_of_corpus, systems_on
from bleuprint.config.comet import Comet
from bleuprint.config.corpus import Corpus
from bleuprint.config.corpus_files import SIDES
from bleuprint.config.entries import read_entries
from bleuprint.config.external import ExternalSystem, check_external, separate_external_systems
from bleuprint.config.old_keys import check_not_of_1_0
from bleuprint.config.paths import RESOLVED, Run
from bleuprint.config.published import Published, check_published
from bleuprint.config.references import LINKS, Reference, check_references, references
from bleuprint.config.resolved_runs import JsonRuns, runs_from_json, runs_to_json
from bleuprint.config.synthetic import Origin, SyntheticText, origin_of
from bleuprint.config.system import System
from bleuprint.config.text_side import TextSide
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.file_errors import DamagedFile
from bleuprint.runtime.json_files import read_json_object
from bleuprint.runtime.schema import (
    Name,
    SettingError,
    check_record,
    list_known_names,
    to_json_value,
    validate_document,
)

T = TypeVar("T")
# The name of the test set that is drawn from the training text of a corpus without test sets.
_DRAWN_TEST_SET = "held-out"
_RESOLVE = "Run: dvc repro resolve"
# The top-level keys of params.yaml that may be missing. dvc.yaml has an empty mapping in place of a
# missing key, but DVC fails at a key without a value.
_OPTIONAL_MAPPINGS = (*LINKS, "synthetic", "comet")
_TOP_LEVEL_KEYS = (
    "experiment",
    "seeds",
    "corpora",
    "systems",
    "published",
    "metrics",
    "synthetic",
    "comet",
    *LINKS,
)


def load_settings(path: Path = Path("params.yaml"), root: Path | None = None) -> "Settings":
    """Read and check the settings in params.yaml, or in a file of the same form in recipes/.

    Args:
        path: The file.
        root: The folder that contains corpora/; by default the folder of the file or, for a recipe,
            the folder above it.

    Raises:
        UserErrors: The settings have mistakes; a line for each names its file, line, key and value.
    """
    entries, errors = load_entries(path, root)
    return validate_document(Settings, entries, path, errors)


def load_entries(path: Path, root: Path | None = None) -> tuple[Any, list[UserError]]:
    """Read params.yaml, and fill in what its entries take from other entries and files.

    For example, a system with `like: NAME` gets the settings of another system. The values are not
    checked yet.

    Args:
        path: The path of params.yaml, or of a recipe.
        root: The folder that contains corpora/; by default it is searched for.

    Returns:
        The content of the file, and the errors. In the content, the settings of trained systems are
        in `runs`, those of external systems in `external`, both by system and corpus. An entry that
        could not be filled in is left out, and has an error.
    """
    entries, errors = read_entries(path, root, _TOP_LEVEL_KEYS, _OPTIONAL_MAPPINGS)
    separated, system_errors = separate_external_systems(entries)
    return separated, errors + system_errors


def load_resolved_settings(root: Path = Path()) -> "Settings":
    """Read all settings, defaults included, from reports/resolved.json.

    The stage `resolve` of the pipeline writes this file from params.yaml, and all other stages read
    it.

    Args:
        root: The project's folder.

    Raises:
        UserError: The file is missing, damaged, or of bleuprint 1.0.
    """
    path = root / RESOLVED
    if not path.exists():
        raise UserError(f"{path}: no such file. To write it, run: dvc repro resolve")
    document = read_json_object(path, ("corpora",), _RESOLVE)
    check_not_of_1_0(document, path)
    if "runs" not in document:
        raise DamagedFile(path, "field runs is missing", _RESOLVE)
    runs = check_record(JsonRuns, document["runs"], path, _RESOLVE, ["runs"])
    runs_by_kind = runs_from_json(runs)
    document["runs"] = runs_by_kind.trained
    document["external"] = runs_by_kind.untrained
    # What only DVC compares, such as hashes of the stages' code, is removed.
    for key in ("code", "inputs", "accepted", "dvc"):
        document.pop(key, None)
    return check_record(Settings, document, path, _RESOLVE)


@dataclass(frozen=True)
class Settings:
    """The whole experiment.

    In params.yaml, `runs` and `external` are one mapping, `systems`.

    Attributes:
        experiment: The name of the experiment.
        seeds: The seeds with which each system is trained.
        corpora: The corpora by name.
        runs: The settings of trained systems by system and corpus; None where a system is not
            trained.
        published: Published scores, for comparison.
        metrics: The metrics of own code, which are computed besides the built-in ones.
        synthetic: The training texts with one side that a system translates, by name.
        comet: The COMET model by its name, if there is one.
        external: The files of external systems by system and corpus; None without files.
    """

    experiment: Name
    # Strict, because DVC would write a seed 1.0 as 1.0 into the commands.
    seeds: tuple[Annotated[int, Strict(), Interval(ge=0, le=2**32 - 1)], ...]
    corpora: Annotated[dict[Name, Corpus], MinLen(1)]
    runs: Annotated[dict[Name, dict[str, System | None]], MinLen(1)]
    published: tuple[Published, ...] = ()
    metrics: tuple[str, ...] = ()
    synthetic: dict[Name, SyntheticText] | None = None
    comet: Annotated[dict[Name, Comet], MaxLen(1)] | None = None
    external: dict[Name, dict[str, ExternalSystem | None]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check the entries of params.yaml together, after each has been checked on its own.

        The seeds must differ, each system must fit its corpora, and the names by which entries
        refer to corpora, systems and test sets must exist.

        Raises:
            SettingError: A setting does not fit another one; the error names its keys.
            ValueError: Two runs would have the same name.
        """
        are_seeds_unique = len(set(self.seeds)) == len(self.seeds)
        if not self.seeds or not are_seeds_unique:
            raise SettingError(["seeds"], f"{list(self.seeds)}: needs one or more different seeds")
        for name, corpus in self.corpora.items():
            check_systems_of_corpus(name, corpus, self.trained_systems_on(name))
        check_run_names(self.all_systems, self.corpora)
        check_references(
            self.corpora,
            {name: self.runs[name] for name in self.trained_systems},
            self.synthetic or {},
            not_trained=self.external,
        )
        tests_by_corpus = {}
        trained_systems_by_corpus = {}
        for name, corpus in self.corpora.items():
            tests_by_corpus[name] = list(corpus.files.tests) or [_DRAWN_TEST_SET]
            trained_systems_by_corpus[name] = list(self.trained_systems_on(name))
        check_external(self.external, tests_by_corpus)
        check_published(
            self.published,
            tests_by_corpus,
            trained_systems_by_corpus,
            untrained_systems=self.external,
        )

    @property
    def trained_systems(self) -> list[str]:
        """The names of the trained systems, in order; the first is the baseline."""
        names = []
        for name, settings_by_corpus in self.runs.items():
            is_trained = any(settings is not None for settings in settings_by_corpus.values())
            if is_trained:
                names.append(name)
        return names

    @property
    def all_systems(self) -> dict[str, Mapping[str, System | ExternalSystem | None]]:
        """The settings of all systems by system and corpus, trained systems first."""
        return {**self.runs, **self.external}

    def system_names_on(self, corpus: str) -> list[str]:
        """Return the names of the systems with translations of a corpus's test sets.

        Trained systems come first, then external ones, whose translations are files of the user.
        """
        names = []
        for name, settings_by_corpus in self.all_systems.items():
            if settings_by_corpus.get(corpus) is not None:
                names.append(name)
        return names

    def is_trained(self, system: str) -> bool:
        """Return whether a system is trained here; otherwise its translations are files."""
        return system not in self.external

    def seeds_of(self, system: str) -> tuple[int, ...]:
        """Return the seeds with which a system translates: for an external one, only the first."""
        return self.seeds if self.is_trained(system) else self.seeds[:1]

    def selected_tests(self, system: str, corpus: str) -> list[str] | None:
        """Return the test sets of a corpus for which an external system has translations.

        Returns:
            The names of the test sets; None for a trained system, which translates all test sets.
        """
        external_system = self.external_systems_on(corpus).get(system)
        if external_system is None:
            return None
        return list(external_system.translations)

    def copied_file(self, system: str, corpus: str, test: str) -> str | None:
        """Return the user's file with an external system's translations of a test set.

        Returns:
            The path of the file; None for a trained system, whose translations are computed.
        """
        external_system = self.external_systems_on(corpus).get(system)
        if external_system is None:
            return None
        return external_system.translations[test].path

    def about_system(self, system: str, corpus: str) -> str | None:
        """Return what the user writes about an external system; None for a trained system."""
        external_system = self.external_systems_on(corpus).get(system)
        if external_system is None:
            return None
        return external_system.about

    def corpus(self, name: str) -> Corpus:
        """Return the settings of a corpus or of a language pair.

        Args:
            name: The name of a corpus, such as `many`; or the name of one of its language pairs, if
                it has several translation directions, such as `many/en-de`.

        Raises:
            UserError: The corpus does not exist.
        """
        return _entry_named(name, "corpora", {**self.language_pairs(), **self.corpora})

    def language_pairs(self) -> dict[str, Corpus]:
        """Return the language pairs of all corpora by name, each as a corpus.

        A corpus with several translation directions has several: `many/en-de`, `many/de-en`. Any
        other corpus is its only language pair.
        """
        pairs = {}
        for name, corpus in self.corpora.items():
            pairs.update(corpus.language_pairs(name))
        return pairs

    def other_language_pairs(self, name: str) -> dict[str, Corpus]:
        """Return the other language pairs of the corpus that a language pair belongs to.

        Args:
            name: The name of the language pair, such as `many/en-de`; others are `many/de-en`.
        """
        for corpus_name, corpus in self.corpora.items():
            pairs = corpus.language_pairs(corpus_name)
            if name in pairs:
                del pairs[name]
                return pairs
        return {}

    def system_settings(self, name: str) -> System:
        """Return the settings of a system on the first corpus that it is trained on.

        Raises:
            UserError: The system does not exist.
        """
        settings_by_corpus = self.settings_by_corpus(name)
        return next(iter(settings_by_corpus.values()))

    def settings_by_corpus(self, name: str) -> dict[str, System]:
        """Return the settings of a system on each corpus that it is trained on.

        Raises:
            UserError: The system does not exist; or it is an external system, with translations in
                files of the user.
        """
        if not self.is_trained(name):
            raise UserError(f"params.yaml: {name} is an external system, so it has no model")
        trained_settings = {}
        for corpus, settings in _entry_named(name, "systems", self.runs).items():
            if settings is not None:
                trained_settings[corpus] = settings
        return trained_settings

    def trained_systems_on(self, corpus: str) -> dict[str, System]:
        """Return the settings of the systems that are trained on a corpus, by name."""
        return systems_on(corpus, self.runs)

    def external_systems_on(self, corpus: str) -> dict[str, ExternalSystem]:
        """Return the external systems with translations of a corpus's test sets, by name."""
        return systems_on(corpus, self.external)

    def system_on(self, name: str, corpus: str) -> System:
        """Return the settings of a system on a corpus.

        Raises:
            UserError: The system or corpus does not exist, or the system is not trained on it.
        """
        settings_by_corpus = self.settings_by_corpus(name)
        self.corpus(corpus)  # Raises UserError if the corpus does not exist.
        if corpus not in settings_by_corpus:
            raise UserError(
                f"params.yaml: {name} is not trained on {corpus}, but only on "
                f"{', '.join(settings_by_corpus)}"
            )
        return settings_by_corpus[corpus]

    def stage(self, kind: str, system: str, corpus: str, seed: int) -> str:
        """Return the name that a stage of the pipeline has in DVC, such as train@small-news-1.

        Args:
            kind: What the stage does: train, average, translate or score.
            system: The name of the system.
            corpus: The name of the corpus.
            seed: The seed. It is ignored for an external system, whose stages have the first seed.
        """
        run = self.scored_run(Run(system, corpus, seed))
        return f"{kind}@{run.system}-{run.corpus}-{run.seed}"

    def scored_run(self, run: Run) -> Run:
        """Return the run under which the scores of a run are stored.

        A trained system is scored with each seed, so this is the run itself. The translations of an
        external system do not depend on the seed. They are scored once, with the first seed, and
        these scores count for all seeds.
        """
        if self.is_trained(run.system):
            return run
        return run._replace(seed=self.seeds[0])

    def metric_models(self, metric: str) -> Mapping[str, Comet]:
        """Return the neural models that compute a metric, by name: only COMET can have one."""
        if metric == "comet" and self.comet is not None:
            return self.comet
        return {}

    def synthetic_text(self, name: str) -> SyntheticText:
        """Return the settings of a synthetic text: a training text that a system translates.

        Args:
            name: The name of the text.

        Raises:
            UserError: The text does not exist.
        """
        return _entry_named(name, "synthetic", self.synthetic or {})

    def text_sides(self, corpus: str) -> Iterator[TextSide]:
        """Yield where the source and the target of each text of a corpus come from.

        Each comes from a file, or a system of the experiment translates it from the other side.

        Args:
            corpus: The name of the corpus.
        """
        origins = self._origins(corpus)
        for name, text in self.corpus(corpus).files.texts().items():
            for side in SIDES:
                file = getattr(text, side)
                if file is not None:
                    yield TextSide(name, side, file.name, file.sha256 or "")
            # Only training texts, called train.NAME, can be synthetic.
            origin = origins.get(name.removeprefix("train."))
            if origin is not None and text.synthetic_side is not None:
                yield TextSide(name, text.synthetic_side, origin.description)

    def text_params(self, corpus: str) -> dict[str, dict[str, Any]]:
        """Return, for MLflow, how each training text of a corpus is used.

        Returns:
            For each text, which of its pairs are used and how often, such as `{"pairs": 10000,
            "repeat": 2}`. If a system translates one side, the key `made_by` describes the system.
        """
        params = dict[str, dict[str, Any]]()
        for name, text in self.corpus(corpus).files.train.items():
            params[name] = dict(text.selection)
        for name, origin in self._origins(corpus).items():
            params[name]["made_by"] = origin.params
        return params

    def text_methods(self, corpus: str) -> set[str]:
        """Return the BibTeX keys of the publications to cite for a corpus's synthetic texts.

        They describe methods such as back-translation. The entries are in the file methods.bib.
        """
        methods = set[str]()
        for origin in self._origins(corpus).values():
            methods |= origin.methods
        return methods

    def text_settings(self, corpus: str) -> list[SyntheticText]:
        """Return how systems translate the synthetic texts of a corpus: which system, with what."""
        return [origin.settings for origin in self._origins(corpus).values()]

    def _origins(self, corpus: str) -> dict[str, Origin]:
        """Return how each synthetic text of a corpus is translated, and by which system.

        Args:
            corpus: The name of the corpus.

        Returns:
            The origins by the names of the texts. Texts whose source and target are both in files
            have no origin.
        """
        origins = {}
        for name, text in self.corpus(corpus).files.synthetic_texts().items():
            origins[name] = origin_of(text, self.synthetic_text(name))
        return origins

    def references(self) -> list[Reference]:
        """Return which corpora and trainings need which others, for example for a vocabulary."""
        return references(self.corpora, self.runs, self.synthetic or {}, self.seeds)

    def check_seed(self, seed: int) -> None:
        """Raise UserError if the experiment has no such seed."""
        if seed not in self.seeds:
            known_seeds = list_known_names(seed, list(map(str, self.seeds)))
            raise UserError(f"params.yaml: no seed {seed}; {known_seeds}")

    def check_scored(self, system: str, corpus: str, seed: int) -> None:
        """Raise UserError if no system of this name is scored on the corpus with the seed.

        Args:
            system: The name of a trained or an external system.
            corpus: The name of the corpus.
            seed: The seed.
        """
        if system not in self.system_names_on(corpus):
            # `system_on` always raises an error here. It says which name is unknown.
            self.system_on(system, corpus)
        self.check_seed(seed)

    def resolved(self) -> dict[str, Any]:
        """Return all settings, defaults included, as JSON values for reports/resolved.json.

        DVC runs a stage again if a setting changes in this file. So that a setting without effect
        does not cause this, it is replaced by its default.
        """
        document: dict[str, Any] = to_json_value(self)
        del document["external"]  # `runs` also contains the external systems.
        document["runs"] = runs_to_json(self.all_systems, self.corpora, self.seeds[0])
        for name, corpus in self.corpora.items():
            document["corpora"][name]["split"] = to_json_value(corpus.effective_split())
        return document


def _entry_named(name: str, section: str, entries: Mapping[str, T]) -> T:
    """Return the entry of a section of params.yaml that has a name.

    Args:
        name: The name of the entry, such as `small`.
        section: The name of the section for the message, such as `systems`.
        entries: All entries of the section by name.

    Raises:
        UserError: The section has no such entry. The message lists similar names.
    """
    if name not in entries:
        known_names = list_known_names(name, entries)
        raise UserError(f"params.yaml: no {section} entry {name!r}; {known_names}")
    return entries[name]
