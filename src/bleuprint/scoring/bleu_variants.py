"""BLEU variants used in papers, reported in addition to sacreBLEU's default.

The same translations of newstest2014 score 27.52 (sacreBLEU), 28.33 (intl) and 29.02
(compound-split), so that a published score is comparable only if its variant is known.
"""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

from sacrebleu.metrics.bleu import BLEU

from bleuprint.dataset.subwords.vocabulary import SPECIALS, UNK
from bleuprint.scoring.bleu import bleu_metric, is_scored_by_13a
from bleuprint.scoring.metric import Metric, Texts
from bleuprint.scoring.sacrebleu_metrics import Sides, sacrebleu_metric
from bleuprint.text.tokenizers import Tokenizer, tokenizer_for

LOWERCASED, INTL, TOKENS, TOKENIZED = "lower-cased", "intl", "tokens", "tokenized"
TOKENIZED_LOWERCASED, COMPOUND_SPLIT = "tokenized, lower-cased", "compound-split"
VARIANTS = (LOWERCASED, INTL, TOKENS, TOKENIZED, TOKENIZED_LOWERCASED, COMPOUND_SPLIT)

# tensor2tensor, utils/get_ende_bleu.sh: perl -ple 's{(\S)-(\S)}{$1 ##AT##-##AT## $2}g'
_COMPOUND = re.compile(r"(\S)-(\S)")

# A rare letter, a token of its own to every tokenizer, in place of an unknown token.
_UNKNOWN_LETTER = "\ua73f"
# Segmenters take two of them without a space between for a word.
_BETWEEN_UNKNOWN = re.compile(f"(?<={_UNKNOWN_LETTER})(?={_UNKNOWN_LETTER})")


def own_tokens(lines: Sequence[str], tokenizer: Tokenizer) -> list[str]:
    """Translations in tokens of the corpus's tokenizer, separated by spaces.

    An unknown token, which tokenizers split at its brackets, is one token, as in the output of the
    model.
    """
    unknown = SPECIALS[UNK]
    marked = (line.replace(unknown, _UNKNOWN_LETTER) for line in lines)
    tokens = (" ".join(tokenizer.tokenize(line)) for line in marked)
    return [_BETWEEN_UNKNOWN.sub(" ", line).replace(_UNKNOWN_LETTER, unknown) for line in tokens]


def in_own_tokens(texts: Texts) -> Sides:
    """Translations and references in the tokens of the corpus."""
    tokenizer = tokenizer_for(texts.language, texts.corpus.tokenize)
    return own_tokens(texts.hypotheses, tokenizer), texts.description.reference_tokens


@lru_cache(maxsize=1)  # three variants count them
def _moses(texts: Texts) -> Sides | None:
    """In Moses tokens; None if the default tokenizer is not 13a.

    As for Chinese, Japanese, Korean and Thai, whose sentences Moses does not split into words.
    """
    if not is_scored_by_13a(texts.language):
        return None
    return tokenized(texts.hypotheses, texts.language), tokenized(texts.references, texts.language)


def tokenized(lines: Sequence[str], language: str) -> list[str]:
    """Moses tokens of each line, separated by spaces; hyphens not split, nothing escaped."""
    from bleuprint.text.moses import Moses

    moses = Moses(language, hyphens=False, escape=False)
    return [" ".join(moses.tokenize(line)) for line in lines]


def split_compounds(tokens: str) -> str:
    """Split hyphens inside words into tokens: a-b becomes a ##AT##-##AT## b.

    Matches do not overlap, as in Perl: in a-b-c the second hyphen is not split.
    """
    return _COMPOUND.sub(r"\1 ##AT##-##AT## \2", tokens)


def _split(texts: Texts) -> Sides | None:
    if (sides := _moses(texts)) is None:
        return None
    return [*map(split_compounds, sides[0])], [*map(split_compounds, sides[1])]


def _variant(name: str, make: Callable[[Sequence[str], str], BLEU], **given: Any) -> Metric:
    return sacrebleu_metric(name, name, make, resampled=False, kind="variant", **given)


def _bleu(lines: Sequence[str], _: str, lowercase: bool = False, tokenize: str = "none") -> BLEU:
    """Against these lines; of tokens, counted as they are, unless another tokenizer is given."""
    return BLEU(lowercase, force=True, tokenize=tokenize, references=[lines])


BLEU_VARIANTS = (
    _variant(LOWERCASED, partial(bleu_metric, lowercase=True)),
    _variant(INTL, partial(_bleu, tokenize="intl")),
    _variant(TOKENS, _bleu, sides=in_own_tokens),
    _variant(TOKENIZED, _bleu, sides=_moses),
    _variant(TOKENIZED_LOWERCASED, partial(_bleu, lowercase=True), sides=_moses),
    _variant(COMPOUND_SPLIT, _bleu, sides=_split),
)
