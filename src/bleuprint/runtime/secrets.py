"""Passwords, tokens and keys in addresses: `mask` replaces them wherever an address is printed.

The patterns find secrets in any text, such as the message of a library that quotes an address. An
address that no parser understands, such as one whose password has an unescaped slash, is masked up
to its last `@`: of two readings, the one that shows less.
"""

import os
import re

MASK = "***"
# Variables whose value is an address, so that a password in it may contain spaces.
_ADDRESS_VARIABLES = (
    "MLFLOW_TRACKING_URI",
    "MLFLOW_REGISTRY_URI",
    "MLFLOW_S3_ENDPOINT_URL",
    "BLEUPRINT_MIRROR",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
)
# In the value of such a variable: all up to the last @ before a question mark, after the scheme
# (group 1); or the value of a parameter that contains a space.
_SECRET_OF_ADDRESS = re.compile(
    r"^(?!(?:file|sqlite):)([a-zA-Z][\w+.-]*://)?[^?]*@|(?<==)[^&]* [^&]*"
)
# A user and a password with spaces. The text after the colon is not a port.
_USER_WITH_SPACES = re.compile(r"(?<=://)[^\s/?#@:]*:(?!\d*(?:[/?#:,;.)'\"\s]|$))[^@\n]*@")
# What precedes a host: up to its @, or from a colon that no port follows up to the last @.
_USER = re.compile(r"//(?:(?!\[)[^\s/?#@]*:(?!\d+(?:[/?#\s]|$))\S*@|[^\s/?#]*@)")
# USER:PASSWORD@HOST without a scheme.
_USER_WITHOUT_SCHEME = re.compile(
    r"(?<![\w/.@:%+-])[\w.%+-]+:[^\s@:/'\"]+@(?=[\w-]+(\.[\w-]+|:\d|/))"
)
# The name of a parameter or variable with a secret, such as `api_key` or `X-Amz-Signature`.
_SECRET_NAME = (
    r"[\w.~-]{0,40}(?:passw(?:or)?d|passphrase|pwd|secret|token|signature|credentials?|"
    r"authorization|(?:api|auth|access|private|secret|ssl)_?key(?:id)?)"
)
# Short names of secrets, which count only where a URL's parameter begins: after ?, &, ; or #.
_SHORT_SECRET_NAME = (
    r"(?:[\w.~-]*[_.-])?(?:pass|pw|key|sig|auth|sas|jwt|odbc_connect|j?session(?:id)?)"
    r"(?:[_.-][\w.~-]*)?"
)
# A value in quotes or braces, or one that ends at a space, a semicolon, an ampersand or a comma;
# punctuation at its end belongs to the sentence around it.
_VALUE = r"""('[^']*'|"[^"]*"|\{[^}]*\}|[^\s;&,]+?(?=["')\]>.:]*(?:[\s;&,]|$)))"""
_SECRET_PARAMETER = re.compile(
    rf"(?i)([?&;#](?:{_SECRET_NAME}|{_SHORT_SECRET_NAME})=|\b{_SECRET_NAME}\s*=\s*){_VALUE}"
)
# The value of an HTTP header with a token or a password.
_AUTHORIZATION = re.compile(r"\b(Bearer|Basic) [\w.~+/=-]{8,}")


def mask(text: str) -> str:
    """Replace passwords, tokens and keys in a text by `***`, so that it can be printed.

    Two kinds of secrets are found: the user name and password before a host, which become
    `https://***@host`, and the values of parameters that are named like secrets (`password`,
    `token`, `X-Amz-Signature`).
    """
    # Some environment variables contain addresses. In a text, it is known where such an address
    # begins and ends, so that even a password with spaces is found in it.
    for variable in _ADDRESS_VARIABLES:
        address = os.environ.get(variable)
        if address:
            text = text.replace(address, _SECRET_OF_ADDRESS.sub(_masked_part, address))
    # The order matters: the first pattern finds passwords that contain spaces. The later ones would
    # mask only a part of such a password.
    text = _USER_WITH_SPACES.sub(f"{MASK}@", text)
    text = _USER.sub(f"//{MASK}@", text)
    text = _USER_WITHOUT_SCHEME.sub(f"{MASK}@", text)
    text = _SECRET_PARAMETER.sub(rf"\1{MASK}", text)
    return _AUTHORIZATION.sub(rf"\1 {MASK}", text)


def _masked_part(match: re.Match[str]) -> str:
    """Return what replaces a secret in an address: `https://***@` before a host, otherwise `***`.

    Args:
        match: The secret. If it is a user name and password, it ends with @, and its first group is
            the scheme, such as `https://`, which is kept.
    """
    if match[0].endswith("@"):
        scheme = match[1] or ""
        return f"{scheme}{MASK}@"
    return MASK


def has_secret(address: str) -> bool:
    """Return whether an address has a user name, a password, or a parameter with a secret."""
    return mask(address) != address
