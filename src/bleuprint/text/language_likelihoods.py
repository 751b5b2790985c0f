"""Likelihoods of languages by py3langid's model, for many sentences at once.

The model is a naive Bayes classifier. It counts n-grams of bytes in a sentence, which an automaton
finds: from a state and the next byte follows a state, and some states are the end of an n-gram. The
sum of the n-grams' weights for a language is the score of that language.
"""

from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class LanguageLikelihoods:
    """py3langid's classifier in NumPy, which is ten times as fast for a block of sentences.

    py3langid was chosen since its package contains the model, its license is BSD, and it needs only
    NumPy; docs/preparation.md compares other libraries. Loading it takes half a second or more.

    Attributes:
        columns: The column of each language in the arrays of likelihoods.
    """

    def __init__(self, languages: Collection[str]) -> None:
        """Load the language classifier of the library py3langid, and limit it to some languages.

        It is a naive Bayes classifier: each n-gram of bytes has a weight for each language. A
        finite automaton reads a text byte by byte and finds its n-grams.

        Args:
            languages: The codes of the languages to tell apart. The model also has a class for text
                in no language, such as digits, which is not used here.
        """
        from py3langid.langid import MODEL_FILE, LanguageIdentifier

        identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
        identifier.set_languages(languages)
        self._encode = identifier._encode
        # A language with two scripts has two columns in the model: the first and the second one.
        self._columns_of_same_language: list[tuple[int, int]] = identifier._alias_pairs
        self.columns: dict[str, int] = {}
        for column, language in enumerate(identifier.nb_classes):
            self.columns.setdefault(language, column)
        # The weight of each n-gram for each language, (ngrams, languages). In single precision, the
        # rounding, and so some decisions, would depend on the processor. The array is contiguous,
        # so that the weights of an n-gram, which are read together, lie side by side in memory.
        self._weights: Floats = np.ascontiguousarray(identifier.nb_ptc, np.float64)
        self._prior: Floats = identifier.nb_pc.astype(np.float64)
        # The automaton: the next state is next_states[row_starts[state] + byte]. A row has an entry
        # for each of the 256 bytes. ngrams[state] is the n-gram that ends in a state; -1 if none.
        self._next_states = np.asarray(identifier.tk_nextmove)
        self._row_starts: Ints = np.asarray(identifier.tk_row, np.int64) * 256
        self._ngrams: Ints = np.asarray(identifier.tk_output, np.int64)

    def likelihoods_of_languages(
        self, sentences: Sequence[str], languages: Sequence[str]
    ) -> Floats:
        """Return how likely it is that each sentence is in the language it should be in.

        Args:
            sentences: The sentences.
            languages: The code of one language for each sentence.

        Returns:
            Values between 0 and 1, `(sentences,)`. A value is relative to the likeliest language of
            its sentence: it is 1 if that is the given language.
        """
        all_likelihoods = self.likelihoods(sentences)
        rows = np.arange(len(sentences))
        columns = [self.columns[language] for language in languages]
        likelihoods: Floats = all_likelihoods[rows, columns]
        return likelihoods

    def likelihoods(self, sentences: Sequence[str]) -> Floats:
        """Return how likely it is that each sentence is in each language.

        As in py3langid, the score of a language is the sum of its prior and of the weights of the
        sentence's n-grams, divided by the square root of the number of bytes. A sentence without
        any n-gram of the model is equally likely in all languages.

        Returns:
            Values between 0 and 1, `(sentences, columns)`. A value is relative to the likeliest
            language of its sentence, which has 1. A language with two scripts may have two columns
            in the model: here its first column has the sum of both, and the second one 0.
        """
        texts: list[bytes] = [self._encode(sentence) for sentence in sentences]
        log_counts = self._log_counts(texts)
        lengths = np.fromiter(map(len, texts), np.float64, len(texts))
        # indptr[i] is where row i of a sparse array begins, so the differences are the numbers of
        # n-grams in each sentence.
        has_ngrams = np.diff(log_counts.indptr) > 0
        scores: Floats = log_counts @ self._weights + self._prior
        # Without n-grams, all scores are 0, so that all languages are equally likely.
        scores = scores * has_ngrams[:, np.newaxis]
        scores /= np.sqrt(np.maximum(lengths, 1))[:, np.newaxis]  # 1 avoids a division by 0.
        # Subtracting the largest score avoids an overflow, and does not change the ratios.
        likelihoods: Floats = np.exp(scores - scores.max(axis=1, keepdims=True))
        for first_column, second_column in self._columns_of_same_language:
            likelihoods[:, first_column] += likelihoods[:, second_column]
            likelihoods[:, second_column] = 0
        likelihoods /= likelihoods.max(axis=1, keepdims=True)
        return likelihoods

    def _log_counts(self, texts: Sequence[bytes]) -> csr_array:
        """Count how often each n-gram of bytes occurs in each text; return log(1 + count).

        Args:
            texts: The encoded sentences.

        Returns:
            A sparse array, `(texts, ngrams)`.
        """
        ngram_count = len(self._weights)
        # The number of equal keys is how often an n-gram occurs in a text.
        keys, counts = np.unique(self._ngram_keys(texts), return_counts=True)
        # py3langid computes the logarithm in single precision.
        log_counts = np.log1p(counts.astype(np.float32)).astype(np.float64)
        # The division turns the keys back into texts (rows) and n-grams (columns).
        rows_and_columns = divmod(keys, ngram_count)
        return csr_array((log_counts, rows_and_columns), shape=(len(texts), ngram_count))

    def _ngram_keys(self, texts: Sequence[bytes]) -> Ints:
        """Find the n-grams of bytes in several texts at once.

        A finite automaton finds them. It reads a text byte by byte: the state and the next byte
        determine the next state, and in some states an n-gram ends. NumPy is fast only for many
        numbers at once, so there is an automaton for each text. All read the first byte of their
        text, then all read the second byte, and so on. The texts are sorted from the longest to the
        shortest, so that those which are not at their end are always the first rows.

        Args:
            texts: The encoded sentences.

        Returns:
            A key for each occurrence of an n-gram in a text: `text * ngram_count + ngram`.
        """
        order = sorted(range(len(texts)), key=lambda index: len(texts[index]), reverse=True)
        sorted_texts = [texts[index] for index in order]
        lengths = np.fromiter(map(len, sorted_texts), np.int64, len(texts))
        longest = int(lengths[0])
        padded = b"".join(text.ljust(longest) for text in sorted_texts)
        # Row i contains byte i of every text.
        bytes_by_position = np.frombuffer(padded, np.uint8).reshape(len(texts), longest).T.copy()
        # For each position, the number of texts that are longer. `searchsorted` needs ascending
        # numbers, and the lengths descend, so both are negated.
        unfinished_counts = np.searchsorted(-lengths, -np.arange(longest))
        first_key_of_text = np.array(order) * len(self._weights)
        states = np.zeros(len(texts), self._next_states.dtype)
        keys = [np.empty(0, np.int64)]
        for next_bytes, unfinished in zip(bytes_by_position, unfinished_counts, strict=True):
            row_starts = self._row_starts[states[:unfinished]]
            states = self._next_states[row_starts + next_bytes[:unfinished]]
            ngrams = self._ngrams[states]  # -1 where no n-gram ends.
            (rows_with_ngram,) = np.nonzero(ngrams >= 0)
            keys.append(first_key_of_text[rows_with_ngram] + ngrams[rows_with_ngram])
        return np.concatenate(keys)
