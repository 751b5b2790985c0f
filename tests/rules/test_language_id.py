"""The identifier of languages: what it keeps, how it is loaded, and that it repeats."""

import os
import subprocess
import sys

import pytest
from py3langid.langid import MODEL_FILE, LanguageIdentifier

from bleuprint.corpus import phrasebook
from bleuprint.rules import CHECKS
from bleuprint.rules.letters import SCRIPTS
from bleuprint.rules.rule import Candidate
from bleuprint.text.language_likelihoods import LanguageLikelihoods
from bleuprint.text.parallel import Pair
from checks import keeps, keeps_side

ENGLISH = "The old man is reading a newspaper on the bench."
GERMAN = "Der alte Mann liest auf der Bank eine Zeitung."
RUSSIAN = "Старик читает газету на скамейке."


JAPANESE = "老人はベンチで新聞を読んでいる。"
CHINESE = "老人在长椅上看报纸。"


@pytest.mark.parametrize(
    ("sentence", "language"),
    [
        pytest.param(GERMAN.upper(), "de", id="German in capitals"),
        pytest.param("Le vieil homme lit un journal sur le banc.", "fr", id="French"),
        pytest.param(RUSSIAN, "ru", id="Russian"),
        pytest.param(JAPANESE, "ja", id="Japanese"),
        pytest.param(CHINESE, "zh", id="Chinese"),
        pytest.param("노인이 벤치에서 신문을 읽고 있다.", "ko", id="Korean"),
    ],
)
def test_a_sentence_in_the_right_language_is_kept(sentence, language):
    assert keeps_side("language_id", sentence, language, fine=(ENGLISH, "en"))


@pytest.mark.parametrize(
    ("sentence", "language"),
    [
        pytest.param(ENGLISH, "de", id="English as German"),
        pytest.param(GERMAN, "en", id="German as English"),
        pytest.param("El viejo lee un periódico en el banco.", "fr", id="Spanish as French"),
        pytest.param(RUSSIAN, "de", id="Russian as German"),
        pytest.param(JAPANESE, "zh", id="Japanese as Chinese"),
        pytest.param(CHINESE, "ja", id="Chinese as Japanese"),
    ],
)
def test_a_sentence_in_another_language_is_dropped(sentence, language):
    assert not keeps_side("language_id", sentence, language, fine=(ENGLISH, "en"))


@pytest.mark.parametrize(
    ("sentence", "language"),
    [
        pytest.param("Hund", "en", id="a German word as English"),
        pytest.param("OK", "de", id="two letters"),
        pytest.param("Ja.", "de", id="a short word"),
        pytest.param("...", "ru", id="no letters"),
        pytest.param("", "de", id="empty"),
        pytest.param('{"id": 1234, "a": [1, 2]}', "de", id="JSON"),
        pytest.param("Želim ti ugodan dan i sretan put kući.", "hr", id="Croatian"),
        pytest.param("Želim ti ugodan dan i sretan put kući.", "sr", id="Croatian as Serbian"),
    ],
)
def test_a_sentence_whose_language_is_uncertain_is_kept(sentence, language):
    """It is too short or odd, or the two languages are too similar."""
    assert keeps_side("language_id", sentence, language, fine=(ENGLISH, "en"))


@pytest.mark.parametrize(("min_odds", "is_kept"), [(2.01, False), (1e30, True)])
def test_a_pair_is_dropped_if_another_language_is_min_odds_times_as_likely(min_odds, is_kept):
    """The target, German words, is taken for Danish."""
    pair = (ENGLISH, "Haus, Hund, Hand")

    assert keeps("language_id", *pair, ("en", "da"), min_odds=min_odds) is is_kept


def test_the_language_model_is_loaded_at_first_use_and_only_once():
    """Loading the model takes time, which commands without this rule need not wait for.

    A new process prints whether the model is loaded before use, three decisions, and the number of
    times that it was loaded.
    """
    program = """
import sys
from bleuprint.rules import CHECKS
check = CHECKS["language_id"](min_odds=10)
print("py3langid" in sys.modules)
from bleuprint.rules import language_id
print([check.passes("Das ist ein kleines Haus.", "de") for _ in range(3)])
print(language_id._language_model.cache_info().misses)
"""

    process = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)

    is_loaded_before, decisions, times_loaded = process.stdout.splitlines()
    assert is_loaded_before == "False", process.stderr
    assert decisions == "[True, True, True]"
    assert times_loaded == "1"


def print_likelihoods(processor, threads):
    """Compute the likelihoods of the languages of a sentence in a process; return its output.

    Args:
        processor: The processor for which the library of linear algebra chooses its code.
        threads: Its number of threads.
    """
    program = f"""
from bleuprint.rules.language_id import _language_model
print(_language_model().likelihoods([{GERMAN * 5!r}]).round(12).tolist())
"""
    environment = {
        **os.environ,
        "OPENBLAS_CORETYPE": processor,
        "OPENBLAS_NUM_THREADS": str(threads),
    }
    process = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=True, env=environment
    )
    return process.stdout


def test_likelihoods_are_the_same_in_every_process_whatever_the_processor():
    """Otherwise a corpus would be filtered differently on another machine."""
    assert print_likelihoods("Haswell", 1) == print_likelihoods("Nehalem", 2)


@pytest.fixture(scope="module")
def sentences():
    """Return sentences in several languages at once, their first words, and text in no language."""
    languages = [phrasebook.sentences("noisy", language) for language in ("en", "de", "fr")]
    long_sentences = [" ".join(translations) for translations in zip(*languages, strict=True)]
    long_sentences = long_sentences[:200]
    beginnings = []
    for number, sentence in enumerate(long_sentences):
        first_words = sentence.split()[: number % 6]  # 0 to 5 words
        beginnings.append(" ".join(first_words))
    capitals = [sentence.upper() for sentence in long_sentences[:20]]
    unusual = [
        "\r\x85\u2028\x1c\0",
        "\ufeffHund",
        "Hund",
        "\ud800",
        "e\u0301t\u00e9",
        "12",
        "\u3042" * 999,
        RUSSIAN,
        "",
    ]
    return long_sentences + beginnings + unusual + capitals


def test_likelihoods_of_a_block_of_sentences_are_those_of_py3langid(sentences):
    """Our model computes many sentences at once; py3langid, one by one, is the reference.

    Both are divided by the likelihood of the best language.
    """
    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    identifier.set_languages(SCRIPTS)
    identifier.nb_ptc = identifier.nb_ptc.astype("float64")

    model = LanguageLikelihoods(SCRIPTS)
    rows = model.likelihoods(sentences)

    assert set(model.columns) == set(SCRIPTS)
    for sentence, row in zip(sentences, rows, strict=True):
        best_language, best_likelihood = identifier.classify(sentence)
        expected = {}
        for language, likelihood in identifier.rank(sentence):
            expected[language] = likelihood / best_likelihood
        computed = {language: row[column] for language, column in model.columns.items()}
        assert computed == pytest.approx(expected, rel=1e-9, abs=1e-300), sentence
        assert computed[best_language] == 1


def test_a_block_of_pairs_is_judged_like_its_pairs_one_by_one(sentences):
    """Pairs are filtered in blocks, which is faster.

    In some of these pairs the target is German, as the rule demands; in others it is not.
    """
    check = CHECKS["language_id"](min_odds=10.0)
    candidates = []
    for source, target in zip(sentences, reversed(sentences), strict=True):
        candidates.append(Candidate(Pair(source, target), ("en", "de"), (str.split, str.split)))

    decisions = check.keeps_each(candidates)

    assert decisions == [check.keeps(candidate) for candidate in candidates]
    assert set(decisions) == {True, False}


def test_an_empty_block_of_pairs_has_no_decisions():
    assert CHECKS["language_id"](min_odds=10.0).keeps_each([]) == []


def test_a_language_is_identified_by_the_first_thousand_characters():
    """The beginning of a long line is enough."""
    german = GERMAN * 25
    russian = RUSSIAN * 100
    assert len(german) > 1000
    assert len(russian) > 1000

    # The target language is German.
    assert keeps("language_id", ENGLISH, german + russian)
    assert not keeps("language_id", ENGLISH, russian + german)
