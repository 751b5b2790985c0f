"""The same translations scored as papers scored theirs, beside the headline and never instead.

One checkpoint's translations of newstest2014 have been scored 27.52 (sacreBLEU), 28.33 (intl) and
29.02 (compound-split): which figure a paper printed depends on how it counted.
"""

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sacrebleu.metrics.bleu import BLEU

from bleuprint.scoring.bleu import bleu_metric
from bleuprint.scoring.metrics import DIGITS

LOWERCASED, INTL, TOKENIZED = "lower-cased", "intl", "tokenised"
TOKENIZED_LOWERCASED, COMPOUND_SPLIT = "tokenised, lower-cased", "compound-split"
WAYS = (LOWERCASED, INTL, TOKENIZED, TOKENIZED_LOWERCASED, COMPOUND_SPLIT)
PAPERS_ONLY = "paper comparison only"

# tensor2tensor, utils/get_ende_bleu.sh: perl -ple 's{(\S)-(\S)}{$1 ##AT##-##AT## $2}g'
_COMPOUND = re.compile(r"(\S)-(\S)")

_Lines = Sequence[str]


@dataclass(frozen=True)
class Reconciled:
    """BLEU counted in one of WAYS.

    `references` and `hypotheses` are SHA-256 of what sacreBLEU was given, one line each.
    """

    name: str
    score: float
    signature: str
    lines: int
    references: str
    hypotheses: str


def reconcile(hypotheses: _Lines, references: _Lines, language: str) -> list[Reconciled]:
    """BLEU of the same translations in all WAYS; those of Moses tokens only where they are words.

    That is where the headline's tokenizer is 13a: Chinese, Japanese and Korean have one of their
    own, and Moses leaves whole sentences as one token.
    """
    tokenizer = bleu_metric(references, language)
    found = [
        _reconciled(LOWERCASED, _lowercased(tokenizer), hypotheses, references),
        _reconciled(INTL, BLEU(tokenize="intl"), hypotheses, references),
    ]
    if tokenizer.tokenizer_signature != BLEU.TOKENIZER_DEFAULT:
        return found
    tokens = [tokenized(side, language) for side in (hypotheses, references)]
    ways: list[tuple[str, bool, Callable[[str], str]]] = [
        (TOKENIZED, False, str),
        (TOKENIZED_LOWERCASED, True, str),
        (COMPOUND_SPLIT, False, split_compounds),
    ]
    for name, lowercase, change in ways:
        metric = BLEU(tokenize="none", lowercase=lowercase, force=True)
        found.append(_reconciled(name, metric, *(list(map(change, side)) for side in tokens)))
    return found


def tokenized(lines: _Lines, language: str) -> list[str]:
    """Moses tokens of each line, spaces between: words with their hyphens, nothing escaped."""
    from bleuprint.text.moses import Moses

    moses = Moses(language, hyphens=False, escape=False)
    return [" ".join(moses.tokenize(line)) for line in lines]


def split_compounds(tokens: str) -> str:
    """Tokens with each hyphen inside a word as a token of its own: a-b as a ##AT##-##AT## b.

    From left to right without overlap, as Perl does it: of a-b-c the second hyphen stays, since b
    has been taken.
    """
    return _COMPOUND.sub(r"\1 ##AT##-##AT## \2", tokens)


def _lowercased(headline: BLEU) -> BLEU:
    """The headline's BLEU, lower-cased."""
    metric = BLEU(lowercase=True, trg_lang=headline.trg_lang)
    assert metric.tokenizer_signature == headline.tokenizer_signature
    return metric


def _reconciled(name: str, metric: BLEU, hypotheses: _Lines, references: _Lines) -> Reconciled:
    result = metric.corpus_score(hypotheses, [references])
    return Reconciled(
        name=name,
        score=round(result.score, DIGITS),
        signature=metric.get_signature().format(),
        lines=len(hypotheses),
        references=_digest(references),
        hypotheses=_digest(hypotheses),
    )


def _digest(lines: _Lines) -> str:
    return hashlib.sha256("".join(f"{line}\n" for line in lines).encode()).hexdigest()
