"""Passwords, tokens and keys in addresses: `mask` replaces them wherever an address is printed.

An address that no parser understands, such as one whose password has an unescaped slash, is masked
up to its last `@`: of two readings, the one that shows less.
"""

import os
import re

MASK = "***"
# Variables whose whole value is an address, so that a password in it may contain spaces.
_ADDRESSES = (
    *("MLFLOW_TRACKING_URI", "MLFLOW_REGISTRY_URI", "MLFLOW_S3_ENDPOINT_URL", "BLEUPRINT_MIRROR"),
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"),
)
_WHOLE = re.compile(r"^(?!(?:file|sqlite):)([a-zA-Z][\w+.-]*://)?[^?]*@|(?<==)[^&]* [^&]*")
# A password with spaces, known by what follows the colon, which is no port.
_SPACED = re.compile(r"(?<=://)[^\s/?#@:]*:(?!\d*(?:[/?#:,;.)'\"\s]|$))[^@\n]*@")
# What precedes a host: up to its @, or from a colon that no port follows up to the last @.
_USER = re.compile(r"//(?:(?!\[)[^\s/?#@]*:(?!\d+(?:[/?#\s]|$))\S*@|[^\s/?#]*@)")
# user:password@host without a scheme
_BARE = re.compile(r"(?<![\w/.@:%+-])[\w.%+-]+:[^\s@:/'\"]+@(?=[\w-]+(\.[\w-]+|:\d|/))")
# Names of secrets; the short ones are those of URLs' parameters alone.
_NAME = (
    r"[\w.~-]{0,40}(?:passw(?:or)?d|passphrase|pwd|secret|token|signature|credentials?|"
    r"authorization|(?:api|auth|access|private|secret|ssl)_?key(?:id)?)"
)
_SHORT = (
    r"(?:[\w.~-]*[_.-])?(?:pass|pw|key|sig|auth|sas|jwt|odbc_connect|j?session(?:id)?)"
    r"(?:[_.-][\w.~-]*)?"
)
_VALUE = r"""('[^']*'|"[^"]*"|\{[^}]*\}|[^\s;&,]+?(?=["')\]>.:]*(?:[\s;&,]|$)))"""
_PARAMETER = re.compile(rf"(?i)([?&;#](?:{_NAME}|{_SHORT})=|\b{_NAME}\s*=\s*){_VALUE}")
_HEADER = re.compile(r"\b(Bearer|Basic) [\w.~+/=-]{8,}")


def mask(text: str) -> str:
    """`text` without the passwords, tokens and keys of the addresses in it.

    That is the user name and password before a host, and the values of parameters with the names
    of secrets (`password`, `token`, `X-Amz-Signature`, ...), each replaced by `***`.
    """
    for address in filter(None, map(os.environ.get, _ADDRESSES)):
        whole = _WHOLE.sub(lambda f: f"{f[1] or ''}{MASK}@" if f[0][-1] == "@" else MASK, address)
        text = text.replace(address, whole)
    text = _USER.sub(f"//{MASK}@", _SPACED.sub(f"{MASK}@", text))
    text = _BARE.sub(f"{MASK}@", text)
    return _HEADER.sub(rf"\1 {MASK}", _PARAMETER.sub(rf"\1{MASK}", text))


def has_secret(address: str) -> bool:
    """Whether an address has a user name or password, or a parameter with the name of a secret."""
    return mask(address) != address
