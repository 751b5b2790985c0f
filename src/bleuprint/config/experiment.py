"""The experiment as frozen dataclasses: the one place where settings are read.

A setting that params.yaml leaves out has the default of its dataclass. The stage `resolve` writes
all settings to reports/resolved.json, which the other stages read and DVC compares. What does not
change a result (workers, GPUs, mirrors) is not a setting but an environment variable; see
`runtime/environment.py`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, TypeVar

from annotated_types import Interval, MaxLen, MinLen
from pydantic import Strict

from bleuprint.config.comet import Comet
from bleuprint.config.corpus import Corpus
from bleuprint.config.corpus_files import SIDES, TextSide
from bleuprint.config.external import TRANSLATIONS, ExternalSystem, check_external, with_external
from bleuprint.config.inherit import expand_entries
from bleuprint.config.old_keys import check_not_of_1_0, old_key_errors
from bleuprint.config.paths import RESOLVED, Run
from bleuprint.config.published import Published
from bleuprint.config.references import LINKS, Reference, check_references, references
from bleuprint.config.synthetic import Origin, SyntheticText, origin_of
from bleuprint.config.system import System
from bleuprint.runtime.errors import UserError, UserErrors
from bleuprint.runtime.files import DamagedFile, read_json_object
from bleuprint.runtime.flatten import flatten_settings
from bleuprint.runtime.schema import (
    Name,
    SettingError,
    check_record,
    describe_unknown_key,
    list_known_names,
    to_json_value,
    validate_document,
)
from bleuprint.runtime.wording import join_with_and
from bleuprint.runtime.yaml_tree import LocatedMapping, load_located_yaml

T = TypeVar("T")
# The settings of a system on a corpus, whether it is trained or not.
SECTIONS = ("model", "train", "average", "decode", "arithmetic", TRANSLATIONS)


@dataclass(frozen=True)
class Settings:
    """The whole experiment.

    `runs`: the settings of trained systems by system and corpus; None where the system is not
    trained. `external`: likewise the files of external systems. In params.yaml, both are `systems`.
    """

    experiment: Name
    # strict: of 1.0, DVC would write 1.0 into the commands
    seeds: tuple[Annotated[int, Strict(), Interval(ge=0, le=2**32 - 1)], ...]
    corpora: Annotated[dict[Name, Corpus], MinLen(1)]
    runs: Annotated[dict[Name, dict[str, System | None]], MinLen(1)]
    published: tuple[Published, ...] = ()
    synthetic: dict[Name, SyntheticText] | None = None
    comet: Annotated[dict[Name, Comet], MaxLen(1)] | None = None
    external: dict[Name, dict[str, ExternalSystem | None]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.seeds or len(set(self.seeds)) != len(self.seeds):
            raise SettingError(["seeds"], f"{list(self.seeds)}: at least one seed, and none twice")
        self._check_runs()
        runs = {name: self.runs[name] for name in self.trained_systems}
        check_references(self.corpora, runs, self.synthetic or {}, not_trained=self.external)
        tests = {name: [*each.files.tests] or ["held-out"] for name, each in self.corpora.items()}
        check_external(self.external, tests)
        for position in range(len(self.published)):
            self._check_published(position)

    def _check_runs(self) -> None:
        for corpus, column in self.corpora.items():
            if not (systems := self.trained_systems_on(corpus)):
                message = "no system is trained on it (systems.*.corpora)"
                raise SettingError(["corpora", corpus], message)
            for name, system in systems.items():
                _check_run(name, system, corpus, column)
        runs = [f"{system}-{corpus}" for system in self.all_systems for corpus in self.corpora]
        if twice := {run for run in runs if runs.count(run) > 1}:
            name = min(twice)
            pairs = (
                f"system {system} on corpus {corpus}"
                for system in self.all_systems
                for corpus in self.corpora
                if f"{system}-{corpus}" == name
            )
            raise ValueError(
                f"two runs are called {name}: {join_with_and(pairs)}; rename a system or a corpus"
            )

    def _check_published(self, position: int) -> None:
        """Raise SettingError at a duplicate, or an unknown corpus, test set or system."""
        number = self.published[position]
        if number.system in self.external:
            message = f"{number.system} is an external system; name a system that is trained here"
            raise SettingError(["published", position, "system"], message)
        tests = self.corpora[number.corpus].files.tests if number.corpus in self.corpora else ()
        systems = [*self.trained_systems_on(number.corpus)]
        for key, what, names in (
            ("corpus", f"corpus {number.corpus!r}", [*self.corpora]),
            ("test", f"test set {number.test!r}", [*tests] or ["held-out"]),
            ("system", f"system {number.system!r} on {number.corpus}", systems),
        ):
            if getattr(number, key) not in (None, *names):
                message = f"no {what}; {list_known_names(getattr(number, key), names)}"
                raise SettingError(["published", position, key], message)
        runs = [(n.name, n.source, n.corpus, n.test, n.metric) for n in self.published]
        if (run := runs[position]) in runs[:position]:
            raise SettingError(["published", position], f"a second number of {', '.join(run)}")

    @property
    def trained_systems(self) -> list[str]:
        """The names of the trained systems, in order; the first is the baseline."""
        return [name for name, row in self.runs.items() if any(row.values())]

    @property
    def all_systems(self) -> dict[str, Mapping[str, System | ExternalSystem | None]]:
        """The settings of all systems by system and corpus, those that are trained first."""
        return {**self.runs, **self.external}

    def system_names_on(self, corpus: str) -> list[str]:
        """The names of the systems that translate a corpus's test sets, in the order of `rows`."""
        names = []
        for name, row in self.all_systems.items():
            if row.get(corpus) is not None:
                names.append(name)
        return names

    def is_trained(self, system: str) -> bool:
        """Whether a system is trained here; otherwise its translations are files."""
        return system not in self.external

    def seeds_of(self, system: str) -> tuple[int, ...]:
        """The seeds with which a system translates: one that is not trained only with the first."""
        return self.seeds if self.is_trained(system) else self.seeds[:1]

    def selected_tests(self, system: str, corpus: str) -> list[str] | None:
        """The test sets that a system translates; None for all of a corpus."""
        found = self.external_systems_on(corpus).get(system)
        return None if found is None else list(found.translations)

    def copied_file(self, system: str, corpus: str, test: str) -> str | None:
        """The file that has a system's translations; None if they are made here."""
        found = self.external_systems_on(corpus).get(system)
        return None if found is None else found.translations[test].path

    def about_system(self, system: str, corpus: str) -> str | None:
        """What translated, of a system that is not trained here."""
        found = self.external_systems_on(corpus).get(system)
        return None if found is None else found.about

    def corpus(self, name: str) -> Corpus:
        """The settings of a corpus, or of one of its language pairs."""
        return _entry("corpora", {**self.language_pairs(), **self.corpora}, name)

    def language_pairs(self) -> dict[str, Corpus]:
        """The language pairs of all corpora by name, each as a corpus."""
        found = {}
        for name, corpus in self.corpora.items():
            found.update(corpus.language_pairs(name))
        return found

    def other_language_pairs(self, name: str) -> dict[str, Corpus]:
        """The other language pairs of the corpus that the pair called `name` belongs to."""
        for corpus_name, corpus in self.corpora.items():
            pairs = corpus.language_pairs(corpus_name)
            if name in pairs:
                del pairs[name]
                return pairs
        return {}

    def system_settings(self, name: str) -> System:
        """The settings of a system on the first corpus that it is trained on."""
        return next(iter(self.settings_by_corpus(name).values()))

    def settings_by_corpus(self, name: str) -> dict[str, System]:
        """The settings of a system by corpus; raises UserError if there is no such system."""
        if not self.is_trained(name):
            raise UserError(f"params.yaml: {name} is an external system, without a model here")
        row = _entry("systems", self.runs, name)
        return {corpus: system for corpus, system in row.items() if system is not None}

    def trained_systems_on(self, corpus: str) -> dict[str, System]:
        """The systems that are trained on a corpus, with their settings there."""
        rows = ((name, row.get(corpus)) for name, row in self.runs.items())
        return {name: system for name, system in rows if system is not None}

    def system_on(self, name: str, corpus: str) -> System:
        """The settings of a system on a corpus; raises UserError if there is no such run."""
        row, _ = self.settings_by_corpus(name), self.corpus(corpus)
        if corpus not in row:
            raise UserError(
                f"params.yaml: {name} is not trained on {corpus}; systems.{name}.corpora has: "
                f"{', '.join(row)}"
            )
        return row[corpus]

    def dotted_settings(self, name: str) -> dict[str, str]:
        """All settings of a system by dotted key; those that differ by corpus for each corpus."""
        runs = {
            corpus: flatten_settings(system)
            for corpus, system in self.settings_by_corpus(name).items()
        }
        first, *others = runs.values()
        same = {key for key in first if all(first[key] == each.get(key) for each in others)}
        own = {
            f"{corpus}.{key}": value
            for corpus, run in runs.items()
            for key, value in run.items()
            if key not in same
        }
        corpora = {} if len(runs) == len(self.corpora) else {"corpora": ", ".join(runs)}
        return {key: value for key, value in first.items() if key in same} | corpora | own

    def stage(self, kind: str, system: str, corpus: str, seed: int) -> str:
        """DVC's name of a run's stage, such as train@small-phrasebook-1."""
        run = self.scored_run(Run(system, corpus, seed))
        return f"{kind}@{run.system}-{run.corpus}-{run.seed}"

    def scored_run(self, run: Run) -> Run:
        """The run whose stages translate and score for a run.

        Of a system that is not trained, the run with the first seed stands for all seeds.
        """
        if self.is_trained(run.system):
            return run
        return run._replace(seed=self.seeds[0])

    def metric_models(self, metric: str) -> Mapping[str, Comet]:
        """The models of a metric by their names; empty for a metric that has none here."""
        models = {"comet": self.comet or {}}
        return models.get(metric, {})

    def synthetic_text(self, name: str) -> SyntheticText:
        return _entry("synthetic", self.synthetic or {}, name)

    def text_sides(self, corpus: str) -> Iterator[TextSide]:
        """Yield where each side of each text of a corpus comes from."""
        origins = self._origins(corpus)
        for name, text in self.corpus(corpus).files.texts().items():
            for side in SIDES:
                file = getattr(text, side)
                if file is not None:
                    yield TextSide(name, side, file.name, file.sha256 or "")
            origin = origins.get(name.removeprefix("train."))
            if origin is not None and text.synthetic_side is not None:
                yield TextSide(name, text.synthetic_side, origin.description)

    def text_params(self, corpus: str) -> dict[str, dict[str, Any]]:
        """What is taken of each training text of a corpus, and what made a side of it."""
        params = dict[str, dict[str, Any]]()
        for name, text in self.corpus(corpus).files.train.items():
            params[name] = dict(text.selection)
        for name, origin in self._origins(corpus).items():
            params[name]["made_by"] = origin.params
        return params

    def text_methods(self, corpus: str) -> set[str]:
        """The methods that made the training texts of a corpus, as `methods.bib` names them."""
        methods = set[str]()
        for origin in self._origins(corpus).values():
            methods |= origin.methods
        return methods

    def text_settings(self, corpus: str) -> list[SyntheticText]:
        """The settings besides those of a corpus that decide its training texts."""
        return [origin.settings for origin in self._origins(corpus).values()]

    def _origins(self, corpus: str) -> dict[str, Origin]:
        """What made the sides of a corpus's training texts that are in no file, by text."""
        found = {}
        for name, text in self.corpus(corpus).files.synthetic_texts().items():
            found[name] = origin_of(text, self.synthetic_text(name))
        return found

    def references(self) -> list[Reference]:
        """What corpora and trainings need of others."""
        return references(self.corpora, self.runs, self.synthetic or {}, self.seeds)

    def external_systems_on(self, corpus: str) -> dict[str, ExternalSystem]:
        """The external systems that have translations of a corpus's test sets."""
        systems = {}
        for name, row in self.external.items():
            system = row.get(corpus)
            if system is not None:
                systems[name] = system
        return systems

    def check_seed(self, seed: int) -> None:
        """Raise UserError if there is no such seed."""
        if seed not in self.seeds:
            seeds = list_known_names(seed, [*map(str, self.seeds)])
            raise UserError(f"params.yaml: no seed {seed}; {seeds}")

    def check_scored(self, system: str, corpus: str, seed: int) -> None:
        """Raise UserError if there is no such seed, or no system with translations of a corpus."""
        if system not in self.system_names_on(corpus):
            self.system_on(system, corpus)
        self.check_seed(seed)

    def resolved(self) -> dict[str, Any]:
        """All settings as JSON values, which `load_resolved_settings` reads back.

        The runs of external systems are among the others. A section that a run does not have is
        `false`, since DVC needs a value of each.
        """
        whole: dict[str, Any] = to_json_value(self)
        del whole["external"]
        runs = {
            name: {corpus: _with_all_sections(row.get(corpus)) for corpus in self.corpora}
            for name, row in self.all_systems.items()
        }
        for name in self.external:
            for run in runs[name].values():
                if run[TRANSLATIONS]:
                    # by which DVC knows the run that stands for the system: the first seed's
                    run[TRANSLATIONS] = {"seed": self.seeds[0], "files": run[TRANSLATIONS]}
        for name, corpus in self.corpora.items():
            whole["corpora"][name]["split"] = to_json_value(corpus.effective_split())
        return {**whole, "runs": runs}


def load_settings(path: Path = Path("params.yaml"), root: Path | None = None) -> Settings:
    """Read and check params.yaml; raises UserError with file, line, key and value of each mistake.

    `root`: the folder with corpora/, by default that of `path` or, for a recipe, the one above.
    """
    entries, errors = load_entries(path, root)
    return validate_document(Settings, entries, path, errors)


def load_entries(path: Path, root: Path | None = None) -> tuple[Any, list[UserError]]:
    """The content of params.yaml with whole entries, each with its place, not yet checked.

    Also the errors of what cannot be whole, which is left out.
    """
    document = load_located_yaml(path)
    if not isinstance(document, LocatedMapping):
        raise UserError(f"{path}: not a mapping of experiment, seeds, corpora and systems")
    if root is None:
        above = (each for each in path.parents[:2] if (each / "corpora").is_dir())
        root = next(above, path.parent)
    if old_keys := list(old_key_errors(document, root / "corpora")):
        raise UserErrors(str(error) for error in old_keys)
    names = [each.name for each in fields(Settings) if each.name != "external"]
    known = [name if name != "runs" else "systems" for name in names]
    known += LINKS
    # dvc.yaml has an empty mapping for each, in place of a key that is not there
    optional = (*LINKS, "synthetic", "comet")
    at, errors = document.locations, []
    for key in document:
        if key not in known:
            errors.append(at[key].error(describe_unknown_key(key, known)))
        elif key in optional and document[key] is None:  # DVC fails at it
            errors.append(at[key].error("is empty: remove the key, or add entries"))
        elif key in LINKS and not isinstance(document[key], LocatedMapping):
            errors.append(at[key].error(f"{document[key]!r} is not a mapping of names"))
    if "systems" not in document:
        errors.append(UserError(f"{path}: the key 'systems' is missing"))
    whole, more = expand_entries(document.only(known), path, root)
    whole, wrong_systems = with_external(whole)
    return whole, errors + more + wrong_systems


# In reports/resolved.json, by system and corpus; a section that a run lacks is written as false.
_Runs = dict[str, dict[str, dict[str, Any]]]
_RESOLVE = "run: dvc repro resolve"


def load_resolved_settings(root: Path = Path()) -> Settings:
    """The settings in reports/resolved.json, as `load_settings` gave them when it was written."""
    if not (path := root / RESOLVED).exists():
        raise UserError(f"{path}: no such file; dvc repro resolve writes it")
    document = read_json_object(path, ("corpora",), _RESOLVE)
    check_not_of_1_0(document, path)
    if "runs" not in document:
        raise DamagedFile(path, "field runs is missing", _RESOLVE)
    runs = check_record(_Runs, document["runs"], path, _RESOLVE, ["runs"])
    document["runs"] = {}
    document["external"] = {}
    for system, row in runs.items():
        is_external = any(run.get(TRANSLATIONS) for run in row.values())
        kind = "external" if is_external else "runs"
        document[kind][system] = {corpus: _given_sections(run) for corpus, run in row.items()}
        if is_external:
            for run in document[kind][system].values():
                if run is not None:
                    run[TRANSLATIONS] = _files_of(run[TRANSLATIONS])
    for key in ("code", "inputs"):
        document.pop(key, None)
    return check_record(Settings, document, path, _RESOLVE)


def _files_of(translations: Any) -> Any:
    """The files of an external system; a value of another form stays, and is refused later."""
    return translations.get("files") if isinstance(translations, Mapping) else translations


def _with_all_sections(run: System | ExternalSystem | None) -> dict[str, Any]:
    """The settings of a run, with `false` for each section that it does not have."""
    given = {} if run is None else to_json_value(run)
    missing = [section for section in SECTIONS if section not in given]
    return {**given, **dict.fromkeys(missing, False)}


def _given_sections(run: Mapping[str, Any]) -> dict[str, Any] | None:
    """The settings of a run without the sections that are `false`; None if all are."""
    given = {section: value for section, value in run.items() if value is not False}
    return given or None


def _check_run(system: str, row: System, corpus: str, column: Corpus) -> None:
    """Raise SettingError if a system cannot be trained on a corpus."""
    message = None
    if row.model.tie_embeddings == "all" and not column.vocabulary.joint:
        message = f"ties all embeddings (model.tie_embeddings), but corpus {corpus}"
        message += " has a vocabulary for each language (vocabulary)"
    if row.train.bpe_dropout and column.vocabulary.bpe is None:
        message = f"has train.bpe_dropout, but corpus {corpus} has no bpe"
    if row.decode.replace_unk and column.vocabulary.words is None:
        message = f"has decode.replace_unk, but <unk> is no word: corpus {corpus} has subwords"
    if message:
        raise SettingError(["runs", system, corpus], message)


def _entry(kind: str, entries: Mapping[str, T], name: str) -> T:
    if name not in entries:
        raise UserError(f"params.yaml: no {kind} entry {name!r}; {list_known_names(name, entries)}")
    return entries[name]
