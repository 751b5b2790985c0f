"""sacreBLEU's BLEU with the tokenizer of the target language."""

from collections.abc import Sequence

from sacrebleu.metrics.bleu import BLEU

from bleuprint.runtime.errors import UserError
from bleuprint.text.language_codes import language_code

# sacreBLEU knows Chinese as zh; for other codes it would use 13a, which does not split text without
# spaces into words. All Chinese languages are written in Han characters, or in Latin letters, which
# the tokenizer for Chinese treats as 13a does.
# fmt: off
_CHINESE = frozenset((
    "zh", "yue", "wuu", "nan", "hak", "gan", "hsn", "cdo", "cjy", "cnp", "cpx", "csp", "czh",
    "czo", "mnp", "lzh", "och", "ltc",
))
# fmt: on

# Languages in scripts without spaces between words for which sacreBLEU has no tokenizer that needs
# no download: Thai, Lao, Khmer, Burmese, and those in Tibetan script. Its tokenizer `char` makes
# each character a token.
_BY_CHARACTERS = frozenset(("th", "lo", "km", "my", "bo", "dz", "adx"))


def is_chinese(language: str) -> bool:
    """Return whether a language, such as `yue` or `zh-Hant`, is a Chinese language.

    All of them, such as `yue` (Cantonese), are written without spaces between words and need
    sacreBLEU's tokenizer for Chinese.
    """
    return language_code(language) in _CHINESE


def bleu_metric(
    references: Sequence[str],
    language: str,
    lowercase: bool = False,
    effective_order: bool = False,
) -> BLEU:
    """Create sacreBLEU's BLEU for references in a language, with the tokenizer of that language.

    sacreBLEU has tokenizers for a few languages that are written without spaces between words. For
    all others, it uses its default tokenizer, 13a.

    Args:
        references: The reference lines.
        language: The target language, such as `de` or `zh-Hant`. Its script and region do not
            matter.
        lowercase: Whether text is lower-cased.
        effective_order: Whether n-grams that are longer than a line are ignored, so that a correct
            line of two words can score 100.

    Raises:
        UserError: The tokenizer of the language is not installed.
    """
    code = "zh" if is_chinese(language) else language_code(language)
    # For languages without a suitable tokenizer, each character is a token. With None, sacreBLEU
    # chooses the tokenizer by the language.
    tokenize = "char" if code in _BY_CHARACTERS else None
    try:
        return BLEU(
            lowercase=lowercase,
            tokenize=tokenize,
            effective_order=effective_order,
            # sacreBLEU would warn of lines that seem to be tokenized, without naming a file or
            # line. text/text_form.py warns instead.
            force=True,
            trg_lang=code,
            references=[references],
        )
    except RuntimeError:
        raise UserError(
            f"BLEU of translations into {language!r} needs a tokenizer that is not installed. "
            f"Install it: pip install -c constraints.txt 'sacrebleu[{code}]'"
        ) from None


def is_scored_by_13a(language: str) -> bool:
    """Return whether BLEU splits text of a language by its default tokenizer, 13a."""
    return bool(bleu_metric([], language).tokenizer_signature == BLEU.TOKENIZER_DEFAULT)
