"""The names of the texts that this package contains, which stand in place of URLs."""


def _embedded_texts() -> list[str]:
    """Return the URLs of all texts that this package contains, such as `phrasebook:train.en`.

    They belong to three small corpora: `phrasebook`, `copy` and `toy`.
    """
    urls = []
    for text in ("train", "valid", "test", "noisy"):
        for language in ("en", "de", "fr"):
            urls.append(f"phrasebook:{text}.{language}")
    for text in ("train", "valid", "test"):
        for side in ("src", "tgt"):
            urls.append(f"copy:{text}.{side}")
    for text in ("sentence", "sentences"):
        for language in ("de", "en"):
            urls.append(f"toy:{text}.{language}")
    return urls


EMBEDDED = tuple(_embedded_texts())
