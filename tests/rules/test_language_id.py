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


@pytest.mark.parametrize(
    ("sentence", "language", "kept"),
    [
        (GERMAN.upper(), "de", True),
        (ENGLISH, "de", False),
        (GERMAN, "en", False),
        ("Le vieil homme lit un journal sur le banc.", "fr", True),
        ("El viejo lee un periódico en el banco.", "fr", False),
        (RUSSIAN, "de", False),
        (RUSSIAN, "ru", True),
        ("老人はベンチで新聞を読んでいる。", "ja", True),
        ("老人はベンチで新聞を読んでいる。", "zh", False),
        ("老人在长椅上看报纸。", "zh", True),
        ("老人在长椅上看报纸。", "ja", False),
        ("노인이 벤치에서 신문을 읽고 있다.", "ko", True),
        # Too short or too odd to tell.
        ("Hund", "en", True),
        ("OK", "de", True),
        ("Ja.", "de", True),
        ("...", "ru", True),
        ("", "de", True),
        ('{"id": 1234, "a": [1, 2]}', "de", True),
        # Too near to tell.
        ("Želim ti ugodan dan i sretan put kući.", "hr", True),
        ("Želim ti ugodan dan i sretan put kući.", "sr", True),
    ],
)
def test_language(sentence, language, kept):
    assert keeps_side("language_id", sentence, language, fine=(ENGLISH, "en")) is kept


def test_how_much_likelier_another_language_must_be():
    assert not keeps("language_id", ENGLISH, "Haus, Hund, Hand", ("en", "da"), min_odds=2.01)
    assert keeps("language_id", ENGLISH, "Haus, Hund, Hand", ("en", "da"), min_odds=1e30)


def test_the_identifier_is_loaded_at_first_use_and_only_once():
    program = """
import sys
from bleuprint.rules import CHECKS
check = CHECKS["language_id"](min_odds=10)
print("py3langid" in sys.modules)
from bleuprint.rules import language_id
print([check.passes("Das ist ein kleines Haus.", "de") for _ in range(3)])
print(language_id._language_model.cache_info().misses)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.splitlines() == ["False", "[True, True, True]", "1"], done.stderr


def test_likelihoods_are_the_same_in_every_process_whatever_the_processor():
    program = f"""
from bleuprint.rules.language_id import _language_model
print(_language_model().likelihoods([{GERMAN * 5!r}]).round(12).tolist())
"""
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            check=True,
            env={**os.environ, "OPENBLAS_CORETYPE": kernels, "OPENBLAS_NUM_THREADS": threads},
        ).stdout
        for kernels, threads in (("Haswell", "1"), ("Nehalem", "2"))
    }
    assert len(outputs) == 1


def sentences():
    """Whole ones, their first words, and text in no language; of mixed lengths."""
    sides = (phrasebook.sentences("noisy", language) for language in ("en", "de", "fr"))
    texts = [" ".join(lines) for lines in zip(*sides, strict=True)][:200]
    heads = [" ".join(text.split()[: n % 6]) for n, text in enumerate(texts)]
    odd = ["\r\x85\u2028\x1c\0", "\ufeffHund", "Hund", "\ud800", "e\u0301t\u00e9"]
    odd += ["12", "\u3042" * 999]
    return [*texts, *heads, *odd, *(text.upper() for text in texts[:20]), RUSSIAN, ""]


def test_likelihoods_are_those_of_py3langid_also_in_a_block():
    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    identifier.set_languages(SCRIPTS)
    identifier.nb_ptc = identifier.nb_ptc.astype("float64")
    model = LanguageLikelihoods(SCRIPTS)
    assert set(model.columns) == set(SCRIPTS)
    for sentence, row in zip(sentences(), model.likelihoods(sentences()), strict=True):
        best, largest = identifier.classify(sentence)
        expected = {name: value / largest for name, value in identifier.rank(sentence)}
        found = {name: row[column] for name, column in model.columns.items()}
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-300), sentence
        assert found[best] == 1


def test_a_block_is_judged_like_its_pairs_one_by_one():
    check, texts = CHECKS["language_id"](min_odds=10.0), sentences()
    pairs = map(Pair, texts, reversed(texts))
    candidates = [Candidate(pair, ("en", "de"), (str.split, str.split)) for pair in pairs]
    kept = check.keeps_each(candidates)
    assert kept == list(map(check.keeps, candidates))
    assert {True, False} == set(kept)
    assert check.keeps_each([]) == []


def test_a_language_is_identified_by_the_first_thousand_characters():
    """Of a long line the beginning is enough: here 1,150 characters of German, then Russian."""
    beginning, end = GERMAN * 25, RUSSIAN * 100
    assert len(beginning) > 1000
    assert keeps("language_id", ENGLISH, beginning + end)
    assert not keeps("language_id", ENGLISH, end + beginning)
