"""The identifier of languages: what it keeps, how it is loaded, and that it repeats."""

import os
import subprocess
import sys

import pytest

from checks import keeps, keeps_side

ENGLISH = "The old man is reading a newspaper on the bench."
GERMAN = "Der alte Mann liest auf der Bank eine Zeitung."
RUSSIAN = "Старик читает газету на скамейке."


@pytest.mark.parametrize(
    ("sentence", "language", "kept"),
    [
        (GERMAN, "de", True),
        (GERMAN.upper(), "de", True),
        (GERMAN.lower(), "de", True),
        (ENGLISH, "de", False),
        (ENGLISH, "en", True),
        (GERMAN, "en", False),
        ("Le vieil homme lit un journal sur le banc.", "fr", True),
        ("Le vieil homme lit un journal sur le banc.", "en", False),
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
        ("1999", "de", True),
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
    assert not keeps("language_id", ENGLISH, "Haus, Hund, Hand", ("en", "da"), likelier=2.01)
    assert keeps("language_id", ENGLISH, "Haus, Hund, Hand", ("en", "da"), likelier=1e30)


def test_a_language_is_identified_by_the_beginning_of_a_line():
    assert keeps("language_id", ENGLISH, GERMAN * 25 + RUSSIAN * 100)


def test_the_identifier_is_loaded_at_first_use_and_only_once():
    program = """
import sys
from bleuprint.rules import CHECKS
check = CHECKS["language_id"](likelier=10)
print("py3langid" in sys.modules)
from bleuprint.rules import language_id
print([check.passes("Das ist ein kleines Haus.", "de") for _ in range(3)])
print(language_id._identifier.cache_info().misses)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.splitlines() == ["False", "[True, True, True]", "1"], done.stderr


def test_likelihoods_are_the_same_in_every_process_whatever_the_processor():
    program = f"""
from bleuprint.rules.language_id import _identifier
print([(name, round(value, 12)) for name, value in _identifier().rank({GERMAN * 5!r})])
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
