"""Wrong translations made from the references of any test set, token by token.

None needs to know the language but `negation`, which is left out for languages without a word for
it here. A perturbed reference is nearly always wrong, not always: two words may be swapped where
their order is free.
"""

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count, pairwise

Tokens = list[str]

# Words of negation that can be left out, and articles of negation with those that take their place.
_DROPPED: Mapping[str, frozenset[str]] = {
    language: frozenset(words.split())
    for language, words in {
        "bg": "не",
        "da": "ikke",
        "de": "nicht",
        "en": "not n't",
        "es": "no",
        "it": "non",
        "nb": "ikke",
        "nl": "niet",
        "no": "ikke",
        "pl": "nie",
        "pt": "não",
        "ru": "не",
        "sv": "inte",
        "uk": "не",
    }.items()
}
# Where the word also means "no", if no word follows.
_ALSO_NO = ("bg", "es", "pl", "pt")
_ARTICLES: Mapping[str, Mapping[str, str]] = {
    "de": {f"kein{end}": f"ein{end}" for end in ("", "e", "en", "em", "er", "es")},
    "nl": {"geen": "een"},
}
_CONTRACTED = ("'t", "&apos;t", "’t")
_FULL = {"can": "can", "won": "will", "shan": "shall"}
# Between `ne` and `pas`: a verb and pronouns.
_NE, _PAS, _BETWEEN = ("ne", "n'", "n&apos;", "n’"), ("pas", "plus", "jamais"), 4


def perturbations(
    references: Sequence[Tokens], language: str, most: int
) -> dict[str, list[tuple[int, Tokens]]]:
    """Up to `most` wrong translations of each kind: the line, from 0, and its tokens.

    Lines are taken in an order that depends on their text alone, so that any part of a test set
    may be drawn; the places within a line are drawn likewise.
    """
    seeds = [zlib.crc32(" ".join(tokens).encode()) for tokens in references]
    order = sorted(range(len(references)), key=lambda line: (seeds[line], line))
    kinds: dict[str, Callable[[Tokens], Iterator[Tokens]]] = {
        "numeral": _other_number,
        "word order": _swapped,
        "end": _without_end,
    }
    if language in _DROPPED or language == "fr":
        kinds["negation"] = lambda tokens: _without_negation(tokens, language)
    found: dict[str, list[tuple[int, Tokens]]] = {}
    for name, change in kinds.items():
        wrong: list[tuple[int, Tokens]] = []
        for line in order:
            if len(wrong) == most:
                break
            if changes := [each for each in change(references[line]) if each != references[line]]:
                wrong.append((line, changes[seeds[line] % len(changes)]))
        if wrong:
            found[name] = sorted(wrong)
    return found


def _other_number(tokens: Tokens) -> Iterator[Tokens]:
    """One digit is another, and none becomes 0."""
    for place, token in enumerate(tokens):
        for at, digit in enumerate(token):
            if digit.isdecimal():
                # the digits of a script follow each other
                other = chr(ord(digit) + (1 if int(digit) < 9 else -1))
                yield [*tokens[:place], token[:at] + other + token[at + 1 :], *tokens[place + 1 :]]


def _swapped(tokens: Tokens) -> Iterator[Tokens]:
    """Two adjacent words are swapped, but not the first, whose capital would tell."""
    for place, (first, second) in zip(count(1), pairwise(tokens[1:]), strict=False):
        if first.isalpha() and second.isalpha() and first.lower() != second.lower():
            yield [*tokens[:place], second, first, *tokens[place + 2 :]]


def _without_end(tokens: Tokens) -> Iterator[Tokens]:
    """The last third is missing, but not a final mark."""
    mark = 1 if tokens and not any(map(str.isalnum, tokens[-1])) else 0
    words = len(tokens) - mark
    if words >= 3:
        yield [*tokens[: words - words // 3], *tokens[words:]]


def _without_negation(tokens: Tokens, language: str) -> Iterator[Tokens]:
    """One negation is missing; a word alone, such as `No.` in Spanish, is none."""
    lower = [token.lower() for token in tokens]
    articles = _ARTICLES.get(language, {})
    for place, (token, following) in enumerate(pairwise([*lower, ""])):
        before, after = tokens[:place], tokens[place + 1 :]
        if language == "fr" and token in _NE:
            for end in range(place + 2, min(place + 2 + _BETWEEN, len(tokens))):
                if lower[end] in _PAS:
                    yield [*before, *tokens[place + 1 : end], *tokens[end + 1 :]]
                    break
        elif token in articles:
            article = articles[token]
            yield [*before, article if tokens[place].islower() else article.capitalize(), *after]
        elif language == "en" and following in _CONTRACTED and token.endswith("n"):
            yield [*before, _FULL.get(token, tokens[place][:-1]), *tokens[place + 2 :]]
        elif language == "en" and token == "cannot":
            yield [*before, tokens[place][:3], *after]
        elif token in _DROPPED.get(language, ()) and (
            language not in _ALSO_NO or any(map(str.isalpha, following))
        ):
            yield [*before, *after]
