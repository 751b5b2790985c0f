"""Likelihoods of languages by py3langid's model, for many sentences at once."""

from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class LanguageLikelihoods:
    """py3langid's naive Bayes over n-grams of bytes, in NumPy: ten times as fast on a block.

    Chosen since its model is in the package, its license is BSD and it needs only NumPy; other
    libraries: docs/preparation.md. Loading it takes half a second or more.
    """

    def __init__(self, languages: Collection[str]) -> None:
        """Without languages such as the model's class for text in none, where digits fall."""
        from py3langid.langid import MODEL_FILE, LanguageIdentifier

        identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
        identifier.set_languages(languages)
        self._encode = identifier._encode
        self._aliases: list[tuple[int, int]] = identifier._alias_pairs
        self.columns: dict[str, int] = {}
        for column, language in enumerate(identifier.nb_classes):
            self.columns.setdefault(language, column)
        # In single precision, rounding and sometimes the decision depend on the processor.
        # By rows, since those of a sentence's n-grams are added up.
        self._weights: Floats = np.ascontiguousarray(identifier.nb_ptc, np.float64)
        self._prior: Floats = identifier.nb_pc.astype(np.float64)
        # The automaton: from a state by a byte to the next, and the n-gram that ends there (or -1).
        self._next = np.asarray(identifier.tk_nextmove)
        self._row: Ints = np.asarray(identifier.tk_row, np.int64) << 8
        self._ngram: Ints = np.asarray(identifier.tk_output, np.int64)

    def likelihoods_of_languages(
        self, sentences: Sequence[str], languages: Sequence[str]
    ) -> Floats:
        """The likelihood of each sentence's language, as a share of its likeliest one's."""
        columns = [self.columns[language] for language in languages]
        own: Floats = self.likelihoods(sentences)[np.arange(len(sentences)), columns]
        return own

    def likelihoods(self, sentences: Sequence[str]) -> Floats:
        """The likelihoods, [sentences, columns], each as a share of the sentence's largest.

        The scores are divided by the square root of the sentence's bytes, as py3langid does. A
        sentence without n-grams of the model is as likely in one language as in another; a
        language with two columns, one for a script, has the sum of both in its first.
        """
        texts: list[bytes] = [self._encode(sentence) for sentence in sentences]
        counts = self._count(texts)
        lengths = np.fromiter(map(len, texts), np.float64, len(texts))
        known = np.diff(counts.indptr) > 0
        scores: Floats = (counts @ self._weights + self._prior) * known[:, np.newaxis]
        scores /= np.sqrt(np.maximum(lengths, 1))[:, np.newaxis]
        likelihoods: Floats = np.exp(scores - scores.max(axis=1, keepdims=True))
        for first, other in self._aliases:
            likelihoods[:, first] += likelihoods[:, other]
            likelihoods[:, other] = 0
        likelihoods /= likelihoods.max(axis=1, keepdims=True)
        return likelihoods

    def _count(self, texts: Sequence[bytes]) -> csr_array:
        """log(1 + count) of each n-gram, [texts, n-grams], with py3langid's rounding of it."""
        order = sorted(range(len(texts)), key=lambda index: -len(texts[index]))
        lengths = np.array([len(texts[index]) for index in order])
        width = int(lengths[0])
        padded = b"".join(texts[index].ljust(width) for index in order)
        columns = np.frombuffer(padded, np.uint8).reshape(len(texts), width).T.copy()
        running = np.searchsorted(-lengths, -np.arange(width))
        state = np.zeros(len(texts), self._next.dtype)
        keys, ngrams = [np.empty(0, np.int64)], len(self._weights)
        rows = np.array(order) * ngrams
        # all texts by one byte at a time; the first `count` of them have a byte there
        for column, count in zip(columns, running, strict=True):
            state = self._next[self._row[state[:count]] + column[:count]]
            ngram = self._ngram[state]
            (found,) = np.nonzero(ngram >= 0)
            keys.append(rows[found] + ngram[found])
        unique, counts = np.unique(np.concatenate(keys), return_counts=True)
        weights = np.log1p(counts.astype(np.float32)).astype(np.float64)
        return csr_array((weights, divmod(unique, ngrams)), shape=(len(texts), ngrams))
