"""sacreBLEU's BLEU with the tokenizer of the target language."""

from collections.abc import Sequence

from sacrebleu.metrics.bleu import BLEU

from bleuprint.runtime.errors import UserError

# sacreBLEU chooses the tokenizer by two-letter codes; with these it would use 13a, which does not
# split text without spaces into words.
_TWO_LETTERS = {"cmn": "zh", "zho": "zh", "jpn": "ja", "kor": "ko"}


def bleu_metric(references: Sequence[str], language: str) -> BLEU:
    """BLEU against `references`, cased; its signature names the tokenizer."""
    code = _TWO_LETTERS.get(language, language)
    try:
        return BLEU(trg_lang=code, references=[references])
    except RuntimeError:
        raise UserError(
            f"BLEU of translations into {language!r} needs a tokenizer that is not installed: "
            f"pip install 'sacrebleu[{code}]'"
        ) from None
