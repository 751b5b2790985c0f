"""BLEU variants used in papers, reported in addition to sacreBLEU's default.

The same translations of newstest2014 score 27.52 (sacreBLEU), 28.33 (intl) and 29.02
(compound-split), so that a published score is comparable only if its variant is known.
"""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from sacrebleu.metrics.bleu import BLEU

from bleuprint.dataset.subwords.vocabulary import SPECIALS, UNK
from bleuprint.scoring.bleu import bleu_metric, is_scored_by_13a
from bleuprint.scoring.metric import Metric, Texts
from bleuprint.scoring.sacrebleu_metrics import Maker, Sides, sacrebleu_metric
from bleuprint.text.tokenizers import Tokenizer, tokenizer_for

LOWERCASED = "lower-cased"
INTL = "intl"
TOKENS = "tokens"
TOKENIZED = "tokenized"
TOKENIZED_LOWERCASED = "tokenized, lower-cased"
COMPOUND_SPLIT = "compound-split"
VARIANTS = (LOWERCASED, INTL, TOKENS, TOKENIZED, TOKENIZED_LOWERCASED, COMPOUND_SPLIT)

# tensor2tensor, utils/get_ende_bleu.sh: perl -ple 's{(\S)-(\S)}{$1 ##AT##-##AT## $2}g'
_COMPOUND = re.compile(r"(\S)-(\S)")

# A rare letter that stands for an unknown token: every tokenizer makes it a token of its own.
_UNKNOWN_LETTER = "\ua73f"
# The place between two of them that no space separates, which segmenters take for a word.
_BETWEEN_UNKNOWN = re.compile(f"(?<={_UNKNOWN_LETTER})(?={_UNKNOWN_LETTER})")


def own_tokens(lines: Sequence[str], tokenizer: Tokenizer) -> list[str]:
    """Split translations into tokens of the corpus's tokenizer, separated by spaces.

    An unknown token, which tokenizers split at its brackets, stays one token, as in the output of
    the model.
    """
    unknown = SPECIALS[UNK]
    tokenized_lines = []
    for line in lines:
        tokens = tokenizer.tokenize(line.replace(unknown, _UNKNOWN_LETTER))
        separated = _BETWEEN_UNKNOWN.sub(" ", " ".join(tokens))
        tokenized_lines.append(separated.replace(_UNKNOWN_LETTER, unknown))
    return tokenized_lines


def in_own_tokens(texts: Texts) -> Sides:
    """Return translations and references in the tokens of the corpus."""
    tokenizer = tokenizer_for(texts.language, texts.corpus.tokenize)
    hypotheses = own_tokens(texts.hypotheses, tokenizer)
    return Sides(hypotheses, texts.description.reference_tokens)


@lru_cache(maxsize=1)  # Three variants count the same tokens.
def _in_moses_tokens(texts: Texts) -> Sides | None:
    """Return translations and references in Moses tokens.

    None if the default tokenizer of the language is not 13a, as for Chinese, Japanese, Korean and
    Thai, whose sentences Moses does not split into words.
    """
    if not is_scored_by_13a(texts.language):
        return None
    return Sides(
        hypotheses=tokenized(texts.hypotheses, texts.language),
        references=tokenized(texts.references, texts.language),
    )


def tokenized(lines: Sequence[str], language: str) -> list[str]:
    """Return Moses tokens of each line, separated by spaces; hyphens not split, nothing escaped."""
    from bleuprint.text.moses import Moses

    moses = Moses(language, hyphens=False, escape=False)
    return [" ".join(moses.tokenize(line)) for line in lines]


def split_compounds(tokens: str) -> str:
    """Split hyphens inside words into tokens: a-b becomes a ##AT##-##AT## b.

    Matches do not overlap, as in Perl: in a-b-c the second hyphen is not split.
    """
    return _COMPOUND.sub(r"\1 ##AT##-##AT## \2", tokens)


def _in_split_moses_tokens(texts: Texts) -> Sides | None:
    """Return translations and references in Moses tokens, compounds split; None if without them."""
    sides = _in_moses_tokens(texts)
    if sides is None:
        return None
    return Sides(
        hypotheses=[split_compounds(line) for line in sides.hypotheses],
        references=[split_compounds(line) for line in sides.references],
    )


def _make_lowercased(references: Sequence[str], language: str) -> BLEU:
    """Return BLEU of lower-cased text, with the tokenizer of the language."""
    return bleu_metric(references, language, lowercase=True)


def _make_intl(references: Sequence[str], _: str) -> BLEU:
    """Return BLEU with sacreBLEU's international tokenizer."""
    return BLEU(force=True, tokenize="intl", references=[references])


def _make_of_tokens(references: Sequence[str], _: str) -> BLEU:
    """Return BLEU of tokens that spaces separate."""
    return BLEU(force=True, tokenize="none", references=[references])


def _make_of_lowercased_tokens(references: Sequence[str], _: str) -> BLEU:
    """Return BLEU of lower-cased tokens that spaces separate."""
    return BLEU(lowercase=True, force=True, tokenize="none", references=[references])


def _variant(
    name: str, make: Maker, sides: Callable[[Texts], Sides | None] | None = None
) -> Metric:
    """Return a metric that is shown without interval and tests; `sides`: what it compares."""
    options: dict[str, Any] = {} if sides is None else {"sides": sides}
    return sacrebleu_metric(name, name, make, is_resampled=False, kind="variant", **options)


BLEU_VARIANTS = (
    _variant(LOWERCASED, _make_lowercased),
    _variant(INTL, _make_intl),
    _variant(TOKENS, _make_of_tokens, sides=in_own_tokens),
    _variant(TOKENIZED, _make_of_tokens, sides=_in_moses_tokens),
    _variant(TOKENIZED_LOWERCASED, _make_of_lowercased_tokens, sides=_in_moses_tokens),
    _variant(COMPOUND_SPLIT, _make_of_tokens, sides=_in_split_moses_tokens),
)
