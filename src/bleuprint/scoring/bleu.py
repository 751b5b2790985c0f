"""sacreBLEU's BLEU with the tokenizer of the target language."""

from collections.abc import Sequence

from sacrebleu.metrics.bleu import BLEU

from bleuprint.runtime.errors import UserError

# sacreBLEU chooses the tokenizer by two-letter codes; with other codes it would use 13a, which does
# not split text without spaces into words. All Chinese languages are written in Han characters, or
# in Latin letters, which the tokenizer for Chinese treats as 13a does.
_CHINESE = "zh zho chi cmn yue wuu nan hak gan hsn cdo cjy cnp cpx csp czh czo mnp lzh och ltc"
_CODES = {"jpn": "ja", "kor": "ko", **dict.fromkeys(_CHINESE.split(), "zh")}

# Languages in scripts without spaces between words for which sacreBLEU has no tokenizer that needs
# no download: Thai, Lao, Khmer, Burmese, and those in Tibetan script. Its tokenizer `char` makes
# each character a token.
_BY_CHARACTERS = frozenset(
    ("th", "tha", "lo", "lao", "km", "khm", "my", "mya", "bo", "bod", "tib", "dz", "dzo", "adx")
)


def is_chinese(language: str) -> bool:
    """Whether a language is Chinese, written without spaces, by its two- or three-letter code."""
    return _CODES.get(language) == "zh"


def bleu_metric(
    references: Sequence[str],
    language: str,
    lowercase: bool = False,
    effective_order: bool = False,
) -> BLEU:
    """BLEU against `references`; its signature names the tokenizer, that of the target language.

    sacreBLEU's warning of lines that seem to be tokenized is off, since it names neither file nor
    line: see text/text_form.py.
    """
    code = _CODES.get(language, language)
    tokenize = "char" if language in _BY_CHARACTERS else None
    try:
        return BLEU(
            lowercase=lowercase,
            tokenize=tokenize,
            effective_order=effective_order,
            force=True,
            trg_lang=code,
            references=[references],
        )
    except RuntimeError:
        raise UserError(
            f"BLEU of translations into {language!r} needs a tokenizer that is not installed: "
            f"pip install -c constraints.txt 'sacrebleu[{code}]'"
        ) from None


def is_scored_by_13a(language: str) -> bool:
    """Whether BLEU's default tokenizer is that of a language."""
    return bool(bleu_metric([], language).tokenizer_signature == BLEU.TOKENIZER_DEFAULT)
