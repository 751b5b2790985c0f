"""Guesses the encoding of text that is not UTF-8."""

import re
from collections.abc import Sequence

# Encodings of scripts whose letters come in runs of bytes beyond ASCII.
_OTHER_SCRIPTS = (
    *("CP1251", "KOI8-R", "ISO-8859-5", "CP866", "ISO-8859-7", "CP1253", "CP1255", "CP1256"),
    *("CP932", "EUC-JP", "GB18030", "BIG5", "CP949"),
)
_NAMES = {name.lower().replace("iso-", "iso").replace("-", "_"): name for name in _OTHER_SCRIPTS}
# With fewer bytes beyond ASCII they cannot be told from each other.
_FEW = 30
# Letters beyond ASCII by language. An encoding in which the letters are those of one language is
# likely; where several are, as for German, the first.
_CENTRAL = "ąćęłńóśźż áčďéěíňóřšťúůýž áäčďéíĺľňóôŕšťúýž áéíóöőúüű čćđšž ăâîşţ"
LATIN = {
    "CP1252": "äöüß àâæçèéêëîïôœùûüÿ áéíñóúü àáâãçéêíóôõúü àáèéìíîòóùú åäöæøé àçèéíïòóúü "
    "áðéíóúýþæö áäçèéêëíïóôöúü",
    "CP1250": _CENTRAL,
    "ISO-8859-2": _CENTRAL,
    "CP1254": "âçğıîöşüû\u0307",
    "CP1257": "āčēģīķļņšūž ąčęėįšųūž äõöüšž",
}
_MARKS = "ªº«»“”„‚‘’‹›–—…€£°§·•¡¿©®™\u00a0"
_UTF8 = re.compile("[^\0-\x7f\udc80-\udcff]+")
_BEYOND_ASCII = re.compile(b"[\x80-\xff]+")
# The share of letters of other languages, by names and loan words, at most.
_FOREIGN = 0.25


def guess_encoding(lines: Sequence[bytes]) -> str | None:
    """The name, for iconv and Python, of the likeliest encoding of some lines; None if none is.

    Latin letters beyond ASCII mostly stand alone or in pairs. What is UTF-8 in the lines is not of
    a Latin encoding, but may be of another one by chance.
    """
    raw = b"\n".join(lines)
    decoded = raw.decode(errors="surrogateescape")
    text = _UTF8.sub("", decoded).encode(errors="surrogateescape")
    runs = _BEYOND_ASCII.findall(text)
    short = sum(len(run) == 1 or (len(run) == 2 and min(run) >= 0xC0) for run in runs)
    if 2 * short >= len(runs):
        shares = {name: _foreign(text, name, languages) for name, languages in LATIN.items()}
        # CP1252 is the usual one: others must be clearly better
        likeliest = min(shares, key=lambda name: shares[name] * (1 if name == "CP1252" else 2))
        if shares[likeliest] <= _FOREIGN:
            return likeliest
    if sum(map(len, runs)) < _FEW:
        return None
    from charset_normalizer import from_bytes  # only where a file is refused

    best = from_bytes(raw, cp_isolation=[*_NAMES]).best()
    return _NAMES.get(best.encoding) if best else None


def _foreign(text: bytes, encoding: str, languages: str) -> float:
    """The share of characters beyond ASCII that are neither marks nor of the likeliest language."""
    try:
        letters = re.sub(f"[\0-\x7f{_MARKS}]+", "", text.decode(encoding).lower())
    except UnicodeDecodeError:
        return 1.0
    others = min(len(re.sub(f"[{own}]+", "", letters)) for own in languages.split())
    return others / max(1, len(letters))
