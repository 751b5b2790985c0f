"""Passwords, tokens and keys in addresses: `mask` replaces them wherever an address is printed.

An address that no parser understands, such as one whose password has an unescaped slash, is masked
up to its last `@`: of two readings, the one that shows less.
"""

import os
import re
from urllib.parse import unquote

MASK = "***"
# Variables whose whole value is an address, so that a password in it may contain spaces.
_ADDRESSES = (
    *("MLFLOW_TRACKING_URI", "MLFLOW_REGISTRY_URI", "MLFLOW_S3_ENDPOINT_URL", "BLEUPRINT_MIRROR"),
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"),
)
# begun at the start of a word only: else a long word would be read once for each letter
_SCHEME = r"(?:(?<![a-zA-Z0-9+.-])[a-zA-Z][a-zA-Z0-9+.-]*:|(?<![\w:/]))//"
_URL = re.compile(rf"({_SCHEME})((?:(?!{_SCHEME})\S)*)")
# A password with spaces, known by what follows the colon, which is no port.
_SPACED = re.compile(r"(?<=://)[^\s/?#@:]*:(?!\d*(?:[/?#:,;.)'\"\s]|$))[^@\n]*@")
# Schemes of URLs proper: what follows the host and a port may contain `@`.
_WEB = frozenset({"", "http", "https", "ftp", "ftps"})
# Those of files, whose names may contain `@`.
_FILES = frozenset({"sqlite", "file", "s3", "gs", "gcs", "hdfs", "dbfs"})
_PORT = re.compile(r"[^:]*|[^:]*:\d{0,5}|\[[^]]*\](:\d{0,5})?")
_PARAMETER = re.compile(r"([?&;#])([\w.%~-]+)=([^&\s]*)")
_IS_SECRET = re.compile(
    r"(?i:(^|[^a-z])(pass|pw|pwd|key|sig|auth|sas|jwt|odbc_connect|j?session(id)?)($|[^a-z]))"
    r"|(?i:(password|passwd|passphrase|pwd|secret|token|signature|credentials?|authorization)$)"
    r"|(?i:(api|auth|access|private|secret|ssl)key)|[a-z]Key($|[A-Z])"
)
# As in the connection strings of libpq and ODBC.
_ASSIGNED = re.compile(
    r"(?i)\b(\w*(?:passw(?:or)?d|passphrase|pwd|secret(?:_?(?:access_?)?key)?))(\s*=\s*)"
    r"('[^']*'|\"[^\"]*\"|\{[^}]*\}|[^\s;&,]+?(?=[\"')\]>.:]*(?:[\s;&,]|$)))"
)
_HEADER = re.compile(r"(?<=['\"])(Bearer|Basic) [^'\"]+|\b(Bearer|Basic) [\w.~+/=-]{8,}")
# user:password@host without a scheme
_BARE = re.compile(r"(?<![\w/.@:%+-])[\w.%+-]+:[^\s@:/'\"]+@(?=[\w-]+(\.[\w-]+|:\d|/))")


def mask(text: str) -> str:
    """`text` without the passwords, tokens and keys of the addresses in it.

    That is the user name and password before a host, and the values of parameters with the names
    of secrets (`password`, `token`, `X-Amz-Signature`, ...), each replaced by `***`.
    """
    for name in _ADDRESSES:
        if (address := os.environ.get(name, "").strip().rstrip("/")) and address in text:
            text = text.replace(address, mask_address(address, is_base=True))
    text = _SPACED.sub(f"{MASK}@", text)
    text = _URL.sub(lambda url: url[1] + _without_user(url[1], url[2]), text)
    text = _BARE.sub(f"{MASK}@", text)
    text = _PARAMETER.sub(_masked_parameter, text)
    text = _ASSIGNED.sub(rf"\1\2{MASK}", text)
    return _HEADER.sub(lambda found: f"{found[1] or found[2]} {MASK}", text)


def mask_address(address: str, is_base: bool = False) -> str:
    """`mask` for a text that is one address, with or without a scheme, and may contain spaces.

    `is_base`: that of a server, to which a path would be added; a port before `@` then begins a
    password.
    """
    found = re.match(rf"\s*({_SCHEME})?", address)
    assert found is not None
    rest = _without_user(found[1] or "", address[found.end() :], is_base)
    first, *parameters = re.split(r"(?=[?&#])", rest)
    return f"{found[0]}{first}{''.join(map(_masked_whole, parameters))}"


def has_secret(address: str) -> bool:
    """Whether an address has a user name or password, or a parameter with the name of a secret."""
    return mask_address(address) != address


def _without_user(scheme: str, rest: str, is_base: bool = False) -> str:
    """What follows `scheme`, as in `http://`, with what is before its host masked."""
    user, _, host = rest.rpartition("@")
    kind = re.split("[+:]", scheme.lower())[0]
    if not user:
        hidden = False
    elif kind in _WEB and not (is_base and ":" in user):
        authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
        hidden = "@" in authority or not _PORT.fullmatch(authority)
    else:
        hidden = kind not in _FILES or ":" in user or "/" not in user
    return f"{MASK}@{host}" if hidden else rest


def _masked_parameter(found: "re.Match[str]") -> str:
    """A parameter in a text, in which punctuation may follow it."""
    mark, name, value = found.groups()
    if not _IS_SECRET.search(unquote(name)) or not value:
        return found[0]
    closing = re.search(r"[\"')\]>,.:]*$", value)
    assert closing is not None
    return f"{mark}{name}={MASK}{closing[0]}"


def _masked_whole(parameter: str) -> str:
    """A parameter with the mark before it, to whose value all that follows belongs."""
    name, _, value = parameter.partition("=")
    return f"{name}={MASK}" if value and _IS_SECRET.search(unquote(name[1:])) else parameter
