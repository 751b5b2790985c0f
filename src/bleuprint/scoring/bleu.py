"""sacreBLEU's BLEU with the tokenizer of the target language."""

from collections.abc import Sequence

from sacrebleu.metrics.bleu import BLEU

from bleuprint.runtime.errors import UserError

# sacreBLEU chooses the tokenizer by two-letter codes; with these it would use 13a, which does not
# split text without spaces into words.
_TWO_LETTERS = {"cmn": "zh", "zho": "zh", "jpn": "ja", "kor": "ko"}


# Languages without spaces between words for which sacreBLEU has no tokenizer that needs no
# download: Thai, Lao, Khmer and Burmese. Its tokenizer `char` makes each character a token.
_BY_CHARACTERS = frozenset(("th", "tha", "lo", "lao", "km", "khm", "my", "mya"))


def bleu_metric(
    references: Sequence[str],
    language: str,
    lowercase: bool = False,
    effective_order: bool = False,
    force: bool = False,
) -> BLEU:
    """BLEU against `references`; its signature names the tokenizer, that of the target language.

    `force`: without sacreBLEU's warning of lines that seem to be tokenized.
    """
    code = _TWO_LETTERS.get(language, language)
    tokenize = "char" if language in _BY_CHARACTERS else None
    try:
        return BLEU(
            lowercase=lowercase,
            tokenize=tokenize,
            effective_order=effective_order,
            force=force,
            trg_lang=code,
            references=[references],
        )
    except RuntimeError:
        raise UserError(
            f"BLEU of translations into {language!r} needs a tokenizer that is not installed: "
            f"pip install -c constraints.txt 'sacrebleu[{code}]'"
        ) from None
