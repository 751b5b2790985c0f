"""Results as records: one for each system x corpus x seed x test set.

A record holds only what repeats exactly; what a clock measured is in timings.py.
"""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from bleuprint.config.experiment import Settings
from bleuprint.config.paths import Cell, folder
from bleuprint.corpus.test_sets import names_of_test_sets
from bleuprint.decoding.translation_record import TRANSLATION, TranslationRecord
from bleuprint.runtime import fingerprint
from bleuprint.runtime.code import code_fingerprint
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import read_json, read_object, sha256_of, write_json
from bleuprint.scoring.bleu import bleu_metric
from bleuprint.scoring.bleu_variants import BleuVariant
from bleuprint.scoring.breakdown import ByCount, ByLength
from bleuprint.scoring.metrics import DIGITS
from bleuprint.scoring.score import SetScores
from bleuprint.scoring.significance import PValues, paired_tests
from bleuprint.text.parallel import TextFolder, read_pairs

# What a record takes of training.json.
_OF_TRAINING = (
    *("parameters", "flops", "source_tokens", "target_tokens", "updates", "valid_loss"),
    *("fingerprint", "data"),
)


@dataclass(frozen=True)
class Metric:
    """A score with its 95 % interval and sacreBLEU's signature."""

    score: float
    low: float
    high: float
    signature: str


@dataclass(frozen=True)
class Paired:
    """The paired tests against the baseline's translations of the same seed."""

    baseline: str
    p_values: PValues


@dataclass(frozen=True)
class Length:
    """The tokens that BLEU counts in the translations and the references, and their ratio."""

    hypothesis: int
    reference: int
    ratio: float


@dataclass(frozen=True)
class Fingerprints:
    """SHA-256 of what made the result.

    `training`: what decides the training (settings, code and data), as MLflow's runs bear it;
    `settings`: all of the cell's, from the corpus's files to decoding; `code`: the package.
    """

    training: str
    settings: str
    code: str


@dataclass(frozen=True)
class Data:
    """SHA-256 of what went in and came out: the binary corpus, and the test set's files."""

    binary: str
    sources: str
    references: str
    hypotheses: str


@dataclass(frozen=True)
class Record:
    """One number of the table and all that stands behind it.

    `paired` is None for the baseline, `by_count` where tokens are characters; `decode` are the
    settings that translated.
    """

    system: str
    corpus: str
    seed: int
    test: str
    source: str
    target: str
    bleu: Metric
    chrf: Metric
    ter: Metric
    length: Length
    paired: Paired | None
    reconciliation: tuple[BleuVariant, ...]
    by_length: tuple[ByLength, ...]
    by_count: tuple[ByCount, ...] | None
    lines: int
    parameters: int
    training_flops: float
    source_tokens: int
    target_tokens: int
    updates: int
    decode: dict[str, Any]
    fingerprints: Fingerprints
    data: Data

    @property
    def cell(self) -> Cell:
        return Cell(self.system, self.corpus, self.seed)

    @property
    def pair(self) -> str:
        return f"{self.source}-{self.target}"


def collect(settings: Settings, root: Path = Path()) -> list[Record]:
    """The records of every cell in `settings`, in its order; others on disk are passed over.

    Raises UserError naming the cell and the file where one has no result yet, where the model, the
    settings or the files are not those of which translation.json tells, where the translations do
    not have the BLEU of scores.json, or where the curves are not those of training.json.
    """
    tested = {
        (corpus, seed): _test_against_first(settings, corpus, seed, root)
        for corpus, seed in product(settings.corpora, settings.seeds)
    }
    records = []
    for cell in map(Cell._make, product(settings.systems, settings.corpora, settings.seeds)):
        made = verified(settings, cell, root)
        for test in _tests(settings, cell.corpus, root):
            paired = tested[cell.corpus, cell.seed].get((cell.system, test))
            records.append(_record(settings, cell, test, paired, made, root))
    return records


@dataclass(frozen=True)
class Made:
    """What made a cell's results: training.json and translation.json."""

    training: dict[str, Any]
    translation: TranslationRecord


def trained(settings: Settings, cell: Cell, root: Path = Path()) -> dict[str, Any]:
    """training.json of a cell; raises UserError if its model, train and seed are other settings."""
    training = _read(cell, "training.json", root, (*_OF_TRAINING, "settings", "code"))
    system = settings.system(cell.system)
    if training["settings"] != fingerprint.of_settings(system.model, system.train, cell.seed):
        path = root / cell.results / "training.json"
        raise UserError(f"{path}: not run with these settings; run: dvc repro")
    return training


def verified(settings: Settings, cell: Cell, root: Path = Path()) -> Made:
    """What made a cell's results, once it is sure that they are of these settings.

    Raises UserError unless training and decoding were as in `settings`, and scores.json is of the
    translations that this training's model made, as they lie here. References are compared where
    they are here.
    """
    training, folder = trained(settings, cell, root), root / cell.results
    translation = TranslationRecord.read(path := folder / TRANSLATION)
    translation.check_model(path, training["fingerprint"], folder / "training.json")
    decode = settings.system(cell.system).decode
    texts = _texts(settings, cell.corpus, root)
    for test in _read(cell, "scores.json", root, ()):
        references = texts.files(f"test.{test}")[1]
        hypotheses = folder / "hypotheses" / references.name
        if not hypotheses.exists():
            raise UserError(f"{hypotheses}: no such file; run: dvc repro, or dvc pull")
        translation.check(path, decode, hypotheses)
        scores = scores_of(cell, test, root)
        if scores["hypotheses"] != translation.hypotheses[hypotheses.name] or (
            references.exists() and scores["references"] != sha256_of(references)
        ):
            raise UserError(
                f"{folder / 'scores.json'}: test set {test} scored of other translations or "
                "references than are here; run: dvc repro"
            )
    return Made(training, translation)


def save(records: Sequence[Record], path: Path) -> None:
    """Write the records as JSON: a list of objects, readable and exactly repeatable."""
    write_json(path, [dataclasses.asdict(record) for record in records])


def load(path: Path) -> list[Record]:
    """The records that `save` wrote."""
    if not path.exists():
        raise UserError(f"{path}: no such file; run: dvc repro")
    try:
        return [_from_json(entry) for entry in read_json(path)]
    except (KeyError, TypeError, ValueError):
        raise UserError(f"{path}: was not written by this version; run: dvc repro") from None


def check_settings(records: Sequence[Record], settings: Settings, path: Path) -> None:
    """Raise UserError unless the records, read from `path`, are those of these settings.

    Published numbers are not in the records, and may be others.
    """
    cells = list(map(Cell._make, product(settings.systems, settings.corpora, settings.seeds)))
    if list(dict.fromkeys(record.cell for record in records)) != cells or any(
        record.fingerprints.settings != settings_of(settings, record.cell) for record in records
    ):
        raise UserError(f"{path}: is not of params.yaml as it is; run: dvc repro")


def settings_of(settings: Settings, cell: Cell) -> str:
    """The fingerprint of all settings of a cell, from the corpus's files to decoding."""
    # license and citation change no result
    corpus = dict(vars(settings.corpus(cell.corpus)))
    del corpus["license_and_citation"]
    return fingerprint.of_settings(settings.system(cell.system), corpus, cell.seed)


def scores_of(cell: Cell, test: str, root: Path) -> Any:
    """What scores.json holds of a cell and test set."""
    scores = _read(cell, "scores.json", root, ())
    path = root / cell.results / "scores.json"
    if test not in scores:
        raise UserError(f"{path}: no test set {test!r} for {cell}; run: dvc repro")
    if not SetScores.__required_keys__ <= set(scores[test]):
        raise UserError(f"{path}: was not written by this version; run: dvc repro")
    return scores[test]


def scored_lines(
    settings: Settings, cell: Cell, test: str, root: Path
) -> tuple[list[str], list[str]]:
    """References and translations of a test set, as they were when scores.json was written."""
    scores = scores_of(cell, test, root)
    sources, references = _texts(settings, cell.corpus, root).files(f"test.{test}")
    hypotheses = root / cell.results / "hypotheses" / references.name
    pairs = list(read_pairs(references, hypotheses))
    files = {"sources": sources, "references": references, "hypotheses": hypotheses}
    for name, path in files.items():
        if sha256_of(path) != scores[name]:
            raise UserError(f"{path}: has changed since {cell} was scored; run: dvc repro")
    return [pair.source for pair in pairs], [pair.target for pair in pairs]


def _test_against_first(
    settings: Settings, corpus: str, seed: int, root: Path
) -> dict[tuple[str, str], Paired]:
    """Paired tests of the other systems against the first, by system and test set."""
    target = settings.corpus(corpus).target
    baseline = next(iter(settings.systems))
    tested: dict[tuple[str, str], Paired] = {}
    for test in _tests(settings, corpus, root):
        translations = {}
        for system in settings.systems:
            cell = Cell(system, corpus, seed)
            references, lines = scored_lines(settings, cell, test, root)
            _check_bleu(cell, test, references, lines, target, root)
            translations[system] = lines
        if len(translations) > 1:
            found = paired_tests(translations, references, target)
            tested |= {(system, test): Paired(baseline, p) for system, p in found.items()}
    return tested


def _check_bleu(
    cell: Cell, test: str, references: list[str], lines: list[str], target: str, root: Path
) -> None:
    """Raise UserError if the translations have another BLEU than scores.json says."""
    stored = scores_of(cell, test, root)["bleu"]["score"]
    found = round(bleu_metric(references, target).corpus_score(lines, None).score, DIGITS)
    if found != stored:
        path = cell.results / "scores.json"
        raise UserError(
            f"{root / path}: BLEU {stored} on {test}, but the translations have {found}; "
            "run: dvc repro"
        )


def _texts(settings: Settings, corpus: str, root: Path) -> TextFolder:
    entry = settings.corpus(corpus)
    return TextFolder(root / folder(corpus, "split"), entry.source, entry.target)


def _tests(settings: Settings, corpus: str, root: Path) -> list[str]:
    return names_of_test_sets(settings.corpus(corpus), _texts(settings, corpus, root))


def _record(
    settings: Settings, cell: Cell, test: str, paired: Paired | None, made: Made, root: Path
) -> Record:
    corpus, training = settings.corpus(cell.corpus), made.training
    scores = scores_of(cell, test, root)
    _check_curves(cell, training, root)
    return Record(
        system=cell.system,
        corpus=cell.corpus,
        seed=cell.seed,
        test=test,
        source=corpus.source,
        target=corpus.target,
        bleu=_metric(scores["bleu"]),
        chrf=_metric(scores["chrf"]),
        ter=_metric(scores["ter"]),
        length=_length(scores["bleu"]),
        paired=paired,
        **_parts(scores),
        lines=scores["lines"],
        parameters=training["parameters"],
        training_flops=training["flops"],
        source_tokens=training["source_tokens"],
        target_tokens=training["target_tokens"],
        updates=training["updates"],
        decode=made.translation.decode,
        fingerprints=Fingerprints(
            training["fingerprint"], settings_of(settings, cell), code_fingerprint("report", root)
        ),
        data=Data(training["data"], scores["sources"], scores["references"], scores["hypotheses"]),
    )


def _check_curves(cell: Cell, training: Mapping[str, Any], root: Path) -> None:
    """Raise UserError if there are curves, and they do not end where the training ended."""
    path = root / cell.results / "curves.json"
    if not path.exists():
        return
    validations = read_object(path, ("training", "validation"))["validation"]
    try:
        end = validations[-1]["update"], validations[-1]["loss"]
    except (KeyError, IndexError, TypeError):
        raise UserError(f"{path}: damaged, or of another version; run: dvc repro") from None
    of_training = training["updates"], training["valid_loss"]
    if end != of_training:
        raise UserError(
            f"{path}: ends at update {end[0]} with loss {end[1]:g}, but training.json "
            f"at {of_training[0]} with {of_training[1]:g}; run: dvc repro"
        )


def _metric(scores: Any) -> Metric:
    return Metric(**{field.name: scores[field.name] for field in dataclasses.fields(Metric)})


def _length(scores: Any) -> Length:
    return Length(scores["hypothesis_length"], scores["reference_length"], scores["length_ratio"])


def _parts(entry: Any) -> dict[str, Any]:
    """The lists of scores.json, or of a record in JSON."""
    by_count = entry["by_count"]
    return {
        "reconciliation": tuple(BleuVariant(**one) for one in entry["reconciliation"]),
        "by_length": tuple(ByLength(**one) for one in entry["by_length"]),
        "by_count": None if by_count is None else tuple(ByCount(**one) for one in by_count),
    }


def _from_json(entry: Any) -> Record:
    paired = entry["paired"]
    parts = {
        "bleu": Metric(**entry["bleu"]),
        "chrf": Metric(**entry["chrf"]),
        "ter": Metric(**entry["ter"]),
        "length": Length(**entry["length"]),
        "paired": paired and Paired(paired["baseline"], PValues(**paired["p_values"])),
        **_parts(entry),
        "fingerprints": Fingerprints(**entry["fingerprints"]),
        "data": Data(**entry["data"]),
    }
    return Record(**{**entry, **parts})


def _read(cell: Cell, name: str, root: Path, keys: Iterable[str]) -> dict[str, Any]:
    path = root / cell.results / name
    if not path.exists():
        raise UserError(f"{path}: no such file: no result yet for {cell}; run: dvc repro")
    return read_object(path, keys)
