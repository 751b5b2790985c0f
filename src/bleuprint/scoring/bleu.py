"""sacreBLEU's BLEU with the tokeniser that belongs to a language."""

from collections.abc import Sequence

from sacrebleu.metrics.bleu import BLEU

from bleuprint.runtime.errors import UserError

# sacreBLEU chooses the tokenizer by two-letter codes; these would fall to 13a, which cannot
# tell the words of a text without spaces apart.
_TWO_LETTERS = {"cmn": "zh", "zho": "zh", "jpn": "ja", "kor": "ko"}


def bleu_metric(references: Sequence[str], language: str) -> BLEU:
    """BLEU against `references`, cased; its tokeniser stands in its signature."""
    code = _TWO_LETTERS.get(language, language)
    try:
        return BLEU(trg_lang=code, references=[references])
    except RuntimeError:
        raise UserError(
            f"BLEU of translations into {language!r} needs a tokenizer that is not installed: "
            f"pip install 'sacrebleu[{code}]'"
        ) from None
