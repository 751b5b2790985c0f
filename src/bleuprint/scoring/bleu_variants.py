"""BLEU variants used in papers, reported in addition to sacreBLEU's default.

The same translations of newstest2014 score 27.52 (sacreBLEU), 28.33 (intl) and 29.02
(compound-split), so that a published score is comparable only if its variant is known.
"""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

from sacrebleu.metrics.bleu import BLEU

from bleuprint.dataset.subwords.vocabulary import SPECIALS, UNK
from bleuprint.scoring.bleu import bleu_metric, is_scored_by_13a
from bleuprint.scoring.metric import Metric, TranslatedSet
from bleuprint.scoring.sacrebleu_metrics import (
    ComparedLines,
    ScorerFactory,
    sacrebleu_metric,
    unchanged_lines,
)
from bleuprint.text.language_codes import language_code
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

# A rare letter that replaces an unknown token: every tokenizer makes it a token of its own.
_UNKNOWN_LETTER = "\ua73f"
# The place between two of them that no space separates, which segmenters take for a word.
_BETWEEN_UNKNOWN = re.compile(f"(?<={_UNKNOWN_LETTER})(?={_UNKNOWN_LETTER})")


def corpus_tokens(lines: Sequence[str], tokenizer: Tokenizer) -> list[str]:
    """Split translations with the tokenizer of the corpus: `Hi, <unk>!` becomes `Hi , <unk> !`.

    `<unk>` is the model's token for an unknown word. Tokenizers would split it at its brackets. So
    a rare letter, which each tokenizer treats as a word, takes its place while a line is tokenized.

    Args:
        lines: The translations.
        tokenizer: The tokenizer of the target language.
    """
    unknown = SPECIALS[UNK]
    tokenized_lines = []
    for line in lines:
        tokens = tokenizer.tokenize(line.replace(unknown, _UNKNOWN_LETTER))
        # Two such letters side by side, from `<unk><unk>`, may become one word: separate them.
        tokenized = _BETWEEN_UNKNOWN.sub(" ", " ".join(tokens))
        tokenized_lines.append(tokenized.replace(_UNKNOWN_LETTER, unknown))
    return tokenized_lines


def in_corpus_tokens(test_set: TranslatedSet) -> ComparedLines:
    """Return the translations and references of a test set, split by the corpus's tokenizer."""
    tokenizer = tokenizer_for(test_set.language, test_set.corpus.tokenize)
    hypotheses = corpus_tokens(test_set.hypotheses, tokenizer)
    return ComparedLines(hypotheses, test_set.description.reference_tokens)


@lru_cache(maxsize=1)  # Three BLEU variants call this for the same test set, one after another.
def _in_moses_tokens(test_set: TranslatedSet) -> ComparedLines | None:
    """Return the translations and references of a test set, split into tokens by Moses.

    Returns:
        The lines, with spaces between tokens. None for Chinese, Japanese, Thai and other languages
        for which sacreBLEU does not use its default tokenizer 13a: Moses cannot split their
        sentences into words.
    """
    if not is_scored_by_13a(test_set.language):
        return None
    return ComparedLines(
        hypotheses=moses_tokenized(test_set.hypotheses, test_set.language),
        references=moses_tokenized(test_set.references, test_set.language),
    )


def moses_tokenized(lines: Sequence[str], language: str) -> list[str]:
    """Split lines into tokens by Moses, and separate the tokens by spaces.

    Words are not split at hyphens, and no character becomes an XML entity.

    Args:
        lines: The lines.
        language: Their language, such as `de` or `pt-BR`.
    """
    from bleuprint.text.moses import Moses

    moses = Moses(language_code(language), splits_at_hyphens=False, escapes_xml=False)
    return [" ".join(moses.tokenize(line)) for line in lines]


def split_compounds(tokens: str) -> str:
    """Split words at hyphens, in the form that papers on German use: a-b becomes a ##AT##-##AT## b.

    In a-b-c, the second hyphen stays: the letter b belongs to the first match, and matches do not
    overlap. The Perl script of these papers does the same, and the scores must be comparable.

    Args:
        tokens: The tokens of a line, separated by spaces.
    """
    return _COMPOUND.sub(r"\1 ##AT##-##AT## \2", tokens)


def _in_split_moses_tokens(test_set: TranslatedSet) -> ComparedLines | None:
    """Return the translations and references of a test set in Moses tokens, split at hyphens.

    Returns:
        The lines, with spaces between tokens. None if Moses cannot split the language into words.
    """
    tokenized = _in_moses_tokens(test_set)
    if tokenized is None:
        return None
    return ComparedLines(
        hypotheses=[split_compounds(line) for line in tokenized.hypotheses],
        references=[split_compounds(line) for line in tokenized.references],
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
    name: str,
    make_scorer: ScorerFactory,
    choose_lines: Callable[[TranslatedSet], ComparedLines | None] = unchanged_lines,
) -> Metric:
    """Create the metric of a BLEU variant, which tables show without intervals and tests.

    Args:
        name: Its name in results and in tables, such as `lower-cased`.
        make_scorer: Creates sacreBLEU's object for the variant.
        choose_lines: Returns the lines to compare, for example split into tokens by Moses.
    """
    return sacrebleu_metric(
        key=name,
        label=name,
        make_scorer=make_scorer,
        choose_lines=choose_lines,
        is_resampled=False,
        kind="variant",
    )


BLEU_VARIANTS = (
    _variant(LOWERCASED, _make_lowercased),
    _variant(INTL, _make_intl),
    _variant(TOKENS, _make_of_tokens, in_corpus_tokens),
    _variant(TOKENIZED, _make_of_tokens, _in_moses_tokens),
    _variant(TOKENIZED_LOWERCASED, _make_of_lowercased_tokens, _in_moses_tokens),
    _variant(COMPOUND_SPLIT, _make_of_tokens, _in_split_moses_tokens),
)
