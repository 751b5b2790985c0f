"""A trained system with the averages and searches of the published numbers of params.yaml.

The averaged checkpoints, the beam and the length penalty are set to those of the published number.
"""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from bleuprint.config.experiment import Settings
from bleuprint.config.paths import Cell, folder
from bleuprint.config.published import Published
from bleuprint.config.system import Average, LengthPenalty, System
from bleuprint.corpus.test_sets import read_description
from bleuprint.runtime import environment
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import read_object, write_json
from bleuprint.runtime.schema import build
from bleuprint.text.parallel import TextFolder
from bleuprint.training.averaging import average, choose
from bleuprint.training.history import CheckpointsRecord

# The settings of a variant that may be known of a published number.
AVERAGE = ("average",)
SEARCH = ("beam", "length_penalty")


@dataclass(frozen=True)
class Variant:
    """A way to translate: the averaged checkpoints, the beam and the length penalty."""

    average: Average
    beam: int
    length_penalty: LengthPenalty


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
    """The variants of a cell; `training` is the fingerprint of its training."""

    training: str
    varied: tuple[Varied, ...]

    @classmethod
    def read(cls, path: Path) -> "Variants":
        """Read what `measure` wrote; raises UserError if it is of another version."""
        content = read_object(path, ("training", "varied"))
        try:
            varied = tuple(
                Varied(**{**entry, "variant": build(Variant, entry["variant"], path)})
                for entry in content["varied"]
            )
        except (KeyError, TypeError, UserError):
            raise UserError(
                f"{path}: was not written by this version; run: bleuprint gap"
            ) from None
        return cls(content["training"], varied)


def own(system: System) -> Variant:
    """The system as it is."""
    return Variant(system.average, system.decode.beam, system.decode.length_penalty)


def adopted(number: Published, variant: Variant, settings: Sequence[str]) -> Variant:
    """A variant with those of the settings that are known of the published number."""
    known = {name: getattr(number, name) for name in settings}
    return replace(variant, **{k: v for k, v in known.items() if v is not None})


def variants_for(number: Published, system: System) -> tuple[Variant, ...]:
    """Every variant that the gap to a published number needs, the system's own first."""
    base = own(system)
    averaged = adopted(number, base, AVERAGE)
    return base, averaged, adopted(number, base, SEARCH), adopted(number, averaged, SEARCH)


def path_of(cell: Cell, root: Path = Path()) -> Path:
    """Where `measure` writes and the report reads a cell's variants; DVC does not own this file."""
    return root / "reports" / "variants" / cell.system / cell.corpus / f"{cell.seed}.json"


def measure(settings: Settings, cell: Cell, root: Path = Path()) -> None:
    """Translate and score all variants of a cell; write the file that `path_of` names.

    Raises UserError if there are no checkpoints or texts of the cell.
    """
    numbers = [n for n in settings.published if (n.system, n.corpus) == (cell.system, cell.corpus)]
    system = settings.system_on(cell.system, cell.corpus)
    variants = dict.fromkeys(variant for n in numbers for variant in variants_for(n, system))
    checkpoints = root / cell.models / "checkpoints"
    if not checkpoints.exists():
        raise UserError(f"{checkpoints}: no such folder; run: dvc repro, or dvc pull")
    training = CheckpointsRecord.read(checkpoints)
    possible = []
    for variant in variants:
        with suppress(UserError):  # if fewer checkpoints are kept
            choose(checkpoints, variant.average, training)
            possible.append(variant)
    tests = list(dict.fromkeys(number.test for number in numbers))
    varied = tuple(_translate(settings, cell, tests, possible, root))
    write_json(path_of(cell, root), asdict(Variants(training.fingerprint, varied)))


def _translate(
    settings: Settings, cell: Cell, tests: Sequence[str], variants: Sequence[Variant], root: Path
) -> Iterator[Varied]:
    """Each variant, averaged, translated and scored as the stages do it; each average made once."""
    from bleuprint.decoding.translate import translate_tests
    from bleuprint.scoring.score import score_files

    corpus, decode = settings.corpus(cell.corpus), settings.system_on(*cell[:2]).decode
    texts = TextFolder(folder(cell.corpus, "split", root), corpus.source, corpus.target)
    (work := environment.work()).mkdir(parents=True, exist_ok=True)
    for averaging in dict.fromkeys(variant.average for variant in variants):
        with tempfile.TemporaryDirectory(prefix="variants-", dir=work) as scratch:
            average(
                root / cell.models / "checkpoints", averaging, averaged := Path(scratch, "averaged")
            )
            for variant in (variant for variant in variants if variant.average == averaging):
                penalty = variant.length_penalty
                changed = replace(decode, beam=variant.beam, length_penalty=penalty)
                binary = folder(cell.corpus, "binary", root)
                translate_tests(binary, averaged, changed, Path(scratch))
                for test in tests:
                    sources, references = texts.files(f"test.{test}")
                    hypotheses = Path(scratch, "hypotheses", references.name)
                    described = read_description(folder(cell.corpus, "tests", root), test)
                    scored = score_files(sources, references, hypotheses, corpus, described, None)
                    scores = {each["name"]: each["score"] for each in scored["bleu_variants"]}
                    scores = {"sacrebleu": scored["bleu"]["score"], **scores}
                    yield Varied(test, variant, scores, scored["hypotheses"])
