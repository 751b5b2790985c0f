"""BLEU variants used in papers, reported in addition to sacreBLEU's default.

The same translations of newstest2014 score 27.52 (sacreBLEU), 28.33 (intl) and 29.02
(compound-split), so that a published score is comparable only if its variant is known.
"""

import hashlib
import re
from collections.abc import Sequence
from typing import TypedDict

from sacrebleu.metrics.bleu import BLEU

from bleuprint.dataset.subwords.vocabulary import SPECIALS, UNK
from bleuprint.scoring.bleu import bleu_metric
from bleuprint.scoring.metrics import DIGITS
from bleuprint.text.tokenizers import Tokenizer

LOWERCASED, INTL, TOKENS, TOKENIZED = "lower-cased", "intl", "tokens", "tokenized"
TOKENIZED_LOWERCASED, COMPOUND_SPLIT = "tokenized, lower-cased", "compound-split"
VARIANTS = (LOWERCASED, INTL, TOKENS, TOKENIZED, TOKENIZED_LOWERCASED, COMPOUND_SPLIT)
PAPERS_ONLY = "paper comparison only"

# tensor2tensor, utils/get_ende_bleu.sh: perl -ple 's{(\S)-(\S)}{$1 ##AT##-##AT## $2}g'
_COMPOUND = re.compile(r"(\S)-(\S)")

# A rare letter, a token of its own to every tokenizer, in place of an unknown token.
_UNKNOWN_LETTER = "\ua73f"
# Segmenters take two of them without a space between for a word.
_BETWEEN_UNKNOWN = re.compile(f"(?<={_UNKNOWN_LETTER})(?={_UNKNOWN_LETTER})")

_Lines = Sequence[str]


class BleuVariant(TypedDict):
    """BLEU by one of VARIANTS.

    `references` and `hypotheses` are the SHA-256 of the lines passed to sacreBLEU.
    """

    name: str
    score: float
    signature: str
    lines: int
    references: str
    hypotheses: str


def bleu_variants(
    hypotheses: _Lines, references: _Lines, language: str, both_in_tokens: tuple[_Lines, _Lines]
) -> list[BleuVariant]:
    """BLEU of the same translations by all VARIANTS.

    `both_in_tokens`: as `own_tokens` gives them.
    The variants on Moses tokens are left out if the default tokenizer is not 13a, as for Chinese,
    Japanese, Korean and Thai, whose sentences Moses does not split into words.
    """
    default = bleu_metric(references, language)
    lowercased = bleu_metric([], language, lowercase=True)
    assert lowercased.tokenizer_signature == default.tokenizer_signature
    variants = [
        _score_variant(LOWERCASED, lowercased, hypotheses, references),
        _score_variant(INTL, BLEU(tokenize="intl"), hypotheses, references),
        _score_variant(TOKENS, BLEU(tokenize="none", force=True), *both_in_tokens),
    ]
    if default.tokenizer_signature != BLEU.TOKENIZER_DEFAULT:
        return variants
    tokens = [tokenized(side, language) for side in (hypotheses, references)]
    split = [list(map(split_compounds, side)) for side in tokens]
    for name, lowercase, sides in (
        (TOKENIZED, False, tokens),
        (TOKENIZED_LOWERCASED, True, tokens),
        (COMPOUND_SPLIT, False, split),
    ):
        metric = BLEU(tokenize="none", lowercase=lowercase, force=True)
        variants.append(_score_variant(name, metric, *sides))
    return variants


def own_tokens(lines: _Lines, tokenizer: Tokenizer) -> list[str]:
    """Translations in tokens of the corpus's tokenizer, separated by spaces.

    An unknown token, which tokenizers split at its brackets, is one token, as in the output of the
    model.
    """
    unknown = SPECIALS[UNK]
    marked = (line.replace(unknown, _UNKNOWN_LETTER) for line in lines)
    tokens = (" ".join(tokenizer.tokenize(line)) for line in marked)
    return [_BETWEEN_UNKNOWN.sub(" ", line).replace(_UNKNOWN_LETTER, unknown) for line in tokens]


def tokenized(lines: _Lines, language: str) -> list[str]:
    """Moses tokens of each line, separated by spaces; hyphens not split, nothing escaped."""
    from bleuprint.text.moses import Moses

    moses = Moses(language, hyphens=False, escape=False)
    return [" ".join(moses.tokenize(line)) for line in lines]


def split_compounds(tokens: str) -> str:
    """Split hyphens inside words into tokens: a-b becomes a ##AT##-##AT## b.

    Matches do not overlap, as in Perl: in a-b-c the second hyphen is not split.
    """
    return _COMPOUND.sub(r"\1 ##AT##-##AT## \2", tokens)


def _score_variant(name: str, metric: BLEU, hypotheses: _Lines, references: _Lines) -> BleuVariant:
    result = metric.corpus_score(hypotheses, [references])
    return BleuVariant(
        name=name,
        score=round(result.score, DIGITS),
        signature=metric.get_signature().format(),
        lines=len(hypotheses),
        references=digest(references),
        hypotheses=digest(hypotheses),
    )


def digest(lines: _Lines) -> str:
    """The SHA-256 of a file of these lines."""
    return hashlib.sha256("".join(f"{line}\n" for line in lines).encode()).hexdigest()
