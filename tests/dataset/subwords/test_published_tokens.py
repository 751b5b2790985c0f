"""Our tokens of Multi30k against the published ones, and all of Tanaka.

Multi30k was lower-cased, normalized by Moses' normalize-punctuation, and tokenized with escaping.
All differences come from punctuation normalization, where sacremoses differs from the Perl script:

- the script turns `."` at the end of a sentence into `".` in German and French, because it reads
  the line break after it: 6 training sentences in German, 4 in French.
- the script turns an apostrophe ’ that is not between letters a to z into ": 1 and 14.
"""

import gzip
import os
from pathlib import Path

import pytest
from sacremoses import MosesTokenizer

from bleuprint.rules.edits import Punctuation
from bleuprint.text.moses import Moses
from bleuprint.text.tokenizers import Tokenize, tokenizer_for
from bleuprint.text.unicode import blank_white

GITHUB = Path(os.environ.get("BLEUPRINT_MIRROR", "")) / "raw.githubusercontent.com"
MULTI30K = GITHUB / "multi30k/dataset/a3d2e0d26b56f3846f66a952536ffed4e401d05a/data/task1"
TANAKA = GITHUB / "odashi/small_parallel_enja/312408a11c5fbcbc09443bebb18121f7efdcd61e"

pytestmark = pytest.mark.skipif(
    not (MULTI30K / "tok").is_dir(),
    reason="BLEUPRINT_MIRROR names no folder that holds Multi30k and Tanaka",
)


def lines(path):
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
    return text.removesuffix("\n").split("\n")


@pytest.mark.parametrize(
    ("language", "name", "total", "alike"),
    [
        ("en", "train", 29000, 29000),
        ("de", "train", 29000, 28993),
        ("fr", "train", 29000, 28982),
        ("en", "val", 1014, 1014),
        ("de", "val", 1014, 1013),
        ("fr", "val", 1014, 1013),
        ("en", "test_2016_flickr", 1000, 1000),
        ("de", "test_2016_flickr", 1000, 1000),
        ("fr", "test_2016_flickr", 1000, 999),
    ],
)
def test_sentences_with_the_published_tokens(language, name, total, alike):
    settings = Tokenize(name="moses", lowercase=True, hyphens=False, escape=True, plain=True)
    tokenizer = tokenizer_for(language, settings)
    raw = lines(MULTI30K / "raw" / f"{name}.{language}.gz")
    published = lines(MULTI30K / "tok" / f"{name}.lc.norm.tok.{language}")
    assert len(raw) == len(published) == total
    found = [tokenizer.tokenize(Punctuation().edit(line, language)) for line in raw]
    same = sum(ours == theirs.split() for ours, theirs in zip(found, published, strict=True))
    assert same >= alike


@pytest.mark.parametrize(
    ("language", "file"),
    [(language, f"raw/train.{language}.gz") for language in ("en", "de", "fr")]
    + [(language, f"tok/train.lc.norm.tok.{language}") for language in ("en", "de", "fr")],
)
def test_all_of_multi30k_is_tokenized_as_by_sacremoses(language, file):
    same_as_sacremoses(language, lines(MULTI30K / file))


@pytest.mark.parametrize("name", ["en", pytest.param("ja", marks=pytest.mark.slow)])
def test_all_of_tanaka_is_tokenized_as_by_sacremoses(name):
    for part in ("train", "dev", "test"):
        same_as_sacremoses(name, lines(TANAKA / f"{part}.{name}"))


def same_as_sacremoses(language, sentences):
    reference, tokenizer = MosesTokenizer(language), Moses(language, hyphens=True, escape=True)
    for sentence in sentences:
        plain = blank_white(sentence)
        expected = reference.tokenize(plain, aggressive_dash_splits=True, escape=True)
        assert tokenizer.tokenize(sentence) == expected
