"""The tag by which a source sentence says into which language to translate it."""


def tag(language: str) -> str:
    """Return the tag of a target language, such as `<2de>` for German.

    A model with several target languages reads it as the first word of each source sentence, and so
    learns into which language to translate.
    """
    return f"<2{language}>"
