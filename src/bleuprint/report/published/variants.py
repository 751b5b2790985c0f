"""A trained system with the averages and searches of the published numbers of params.yaml.

The number of averaged checkpoints, the beam and the length penalty: each changed alone, and all set
to the values of the published number.
"""

import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from bleuprint.config.experiment import Settings
from bleuprint.config.paths import Cell, folder
from bleuprint.config.published import Published
from bleuprint.config.system import Average, LengthPenalty, System
from bleuprint.runtime import environment
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import read_object, write_json
from bleuprint.text.parallel import TextFolder
from bleuprint.training.averaging import average, updates_in
from bleuprint.training.history import CheckpointsRecord

LASTS, BEAMS, ALPHAS = (1, 5, 10), (1, 4), (0.0, 0.6, 1.0)


@dataclass(frozen=True)
class Variant:
    """A way to translate: the averaged checkpoints, the beam and the length penalty."""

    average: Average
    beam: int
    alpha: float
    penalty: Literal["gnmt", "length"]


@dataclass(frozen=True)
class Varied:
    """The scores of a variant on a test set.

    `scores` are BLEU as Published.scored names its variants, and `hypotheses` is the SHA-256 of the
    translations, one line each.
    """

    test: str
    variant: Variant
    scores: Mapping[str, float]
    hypotheses: str


@dataclass(frozen=True)
class Variants:
    """The variants of a cell; `training` is the fingerprint of its training.

    `checkpoints` are the updates of the kept checkpoints. Averages of more are not measured.
    """

    training: str
    checkpoints: tuple[int, ...]
    varied: tuple[Varied, ...]

    def find(self, test: str, variant: Variant) -> Varied | None:
        """The scores of a variant on a test set; None if it was not measured."""
        keys = [(varied.test, varied.variant) for varied in self.varied]
        return self.varied[keys.index((test, variant))] if (test, variant) in keys else None

    @classmethod
    def read(cls, path: Path) -> "Variants":
        """Read what `measure` wrote; raises UserError if it is of another version."""
        content = read_object(path, ("training", "checkpoints", "varied"))
        try:
            varied = tuple(_varied(entry) for entry in content["varied"])
            return cls(content["training"], tuple(content["checkpoints"]), varied)
        except (KeyError, TypeError, ValueError):
            raise UserError(
                f"{path}: was not written by this version; run: bleuprint gap"
            ) from None


def own(system: System) -> Variant:
    """The system as it is."""
    decode, penalty = system.decode, system.decode.length_penalty
    return Variant(system.average, decode.beam, penalty.alpha, penalty.kind)


def searched(number: Published, variant: Variant) -> Variant:
    """A variant with the known beam and length penalty of the published number."""
    known = {name: getattr(number, name) for name in ("beam", "alpha", "penalty")}
    return replace(variant, **{k: v for k, v in known.items() if v is not None})


def single_changes(number: Published, system: System) -> dict[str, list[Variant]]:
    """The system as it is and with another average, beam or length penalty, in rising order."""
    base = own(system)
    search = searched(number, base)
    both = number.average or base.average, base.average
    lasts = {*LASTS, *(how.last for how in both if how.last)}
    averages = dict.fromkeys((*(Average(last=last) for last in sorted(lasts)), *both))
    beams = sorted({*BEAMS, base.beam, search.beam})
    alphas = {(alpha, base.penalty) for alpha in (*ALPHAS, base.alpha)}
    alphas.add((search.alpha, search.penalty))
    return {
        "average": [replace(base, average=average) for average in averages],
        "beam": [replace(base, beam=beam) for beam in beams],
        "alpha": [replace(base, alpha=a, penalty=p) for a, p in sorted(alphas)],
    }


def variants_for(number: Published, system: System) -> list[Variant]:
    """Every variant that the gap to a published number needs, the system's own first."""
    base = own(system)
    changes = [variant for group in single_changes(number, system).values() for variant in group]
    search = searched(number, base)
    theirs = replace(search, average=number.average or base.average)
    return list(dict.fromkeys([base, *changes, search, theirs]))


def path_of(cell: Cell, root: Path = Path()) -> Path:
    """Where `measure` writes and the report reads a cell's variants; DVC does not own this file."""
    return root / "reports" / "variants" / cell.system / cell.corpus / f"{cell.seed}.json"


def measure(settings: Settings, cell: Cell, root: Path = Path()) -> None:
    """Translate and score all variants of a cell; write the file that `path_of` names.

    Raises UserError if there are no checkpoints or texts of the cell.
    """
    by_test: dict[str, dict[Variant, None]] = {}
    for number in settings.published:
        if (number.system, number.corpus) == (cell.system, cell.corpus):
            variants = variants_for(number, settings.system(cell.system))
            by_test.setdefault(number.test, {}).update(dict.fromkeys(variants))
    checkpoints = root / cell.models / "checkpoints"
    if not checkpoints.exists():
        raise UserError(f"{checkpoints}: no such folder; run: dvc repro, or dvc pull")
    kept = updates_in(checkpoints)
    training = CheckpointsRecord.read(checkpoints)
    validated = {validation["update"] for validation in training.validations}
    possible = {
        test: [variant for variant in variants if _enough(variant.average, kept, validated)]
        for test, variants in by_test.items()
    }
    varied = _translate(settings, cell, possible, root)
    measured = Variants(training.fingerprint, tuple(kept), tuple(varied))
    write_json(path_of(cell, root), asdict(measured))


def _enough(how: Average, kept: Sequence[int], validated: Collection[int]) -> bool:
    """Whether the kept checkpoints, by their updates, suffice for an average."""
    if how.updates:
        return any(how.updates[0] <= update <= how.updates[1] for update in kept)
    if how.best:
        return how.best <= sum(update in validated for update in kept)
    return (how.last or 1) <= len(kept)


def _translate(
    settings: Settings, cell: Cell, by_test: Mapping[str, Sequence[Variant]], root: Path
) -> Iterator[Varied]:
    """Translations of each variant, scored: one averaged model after the other, each made once."""
    import torch

    from bleuprint.dataset.binarized import BinaryCorpus
    from bleuprint.decoding.engine import create_engine
    from bleuprint.decoding.translate import search
    from bleuprint.model.weights import load_model

    corpus = BinaryCorpus(folder(cell.corpus, "binary", root))
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    decode = settings.system(cell.system).decode
    (work := environment.work()).mkdir(parents=True, exist_ok=True)
    variants = dict.fromkeys(variant for several in by_test.values() for variant in several)
    for how in dict.fromkeys(variant.average for variant in variants):
        with tempfile.TemporaryDirectory(prefix="variants-", dir=work) as scratch:
            average(root / cell.models / "checkpoints", how, averaged := Path(scratch, "averaged"))
            for variant in (variant for variant in variants if variant.average == how):
                penalty = LengthPenalty(variant.penalty, variant.alpha)
                changed = replace(decode, beam=variant.beam, length_penalty=penalty)
                model = load_model(averaged, corpus).to(device)
                engine = create_engine(model, corpus, changed)
                for test in (test for test, several in by_test.items() if variant in several):
                    name = f"test.{test}"
                    corpus.verify(name)
                    outputs = search(engine, corpus, name, progress=f"translate {name}")
                    lines = [corpus.text(corpus.target, tokens) for tokens in outputs]
                    yield _scored(settings, cell, test, variant, lines, root)


def _scored(
    settings: Settings, cell: Cell, test: str, variant: Variant, lines: Sequence[str], root: Path
) -> Varied:
    """The translations of a test set, scored as the score stage does it."""
    from bleuprint.scoring import metrics
    from bleuprint.scoring.bleu_variants import bleu_variants

    corpus = settings.corpus(cell.corpus)
    texts = TextFolder(folder(cell.corpus, "split", root), corpus.source, corpus.target)
    references = [pair.target for pair in texts.pairs(f"test.{test}")]
    scores = {"sacrebleu": metrics.bleu(lines, references, corpus.target)["score"]}
    scores |= {each.name: each.score for each in bleu_variants(lines, references, corpus.target)}
    digest = sha256("".join(f"{line}\n" for line in lines).encode()).hexdigest()
    return Varied(test, variant, scores, digest)


def _varied(entry: Any) -> Varied:
    variant = entry["variant"]
    updates = variant["average"]["updates"]
    how = Average(**{**variant["average"], "updates": updates and tuple(updates)})
    return Varied(**{**entry, "variant": Variant(**{**variant, "average": how})})
