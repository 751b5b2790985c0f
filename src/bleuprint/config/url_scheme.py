"""Checks the URLs of files in the settings."""

from urllib.parse import urlsplit


def valid_scheme(key: str, url: str) -> str:
    """Check a URL, and return its scheme: http, https or file.

    Args:
        key: The setting that contains the URL, for messages.
        url: The URL.

    Raises:
        ValueError: The URL is not valid, or it has another scheme.
    """
    try:
        parts = urlsplit(url)
        _ = parts.port  # Raises ValueError if the port is not a number.
    except ValueError as error:
        raise ValueError(f"{key} is {url!r}, which is not a valid URL: {error}") from None
    if " " in url or not url.isprintable():
        raise ValueError(f"{key} is {url!r}, which contains a space or non-printing character")
    is_web_address = parts.scheme in ("http", "https") and bool(parts.hostname)
    if not is_web_address and parts.scheme != "file":
        raise ValueError(
            f"{key} is {url!r}. Write an http, https or file URL. For a file in inputs/, set path"
        )
    return parts.scheme
