"""Our tokens of Multi30k against the published ones.

Multi30k was lower-cased, normalized by Moses' normalize-punctuation, and tokenized with escaping.
All differences come from punctuation normalization, where sacremoses differs from the Perl script:

- the script turns `."` at the end of a sentence into `".` in German and French, because it reads
  the line break after it: 6 training sentences in German, 4 in French.
- the script turns an apostrophe ’ that is not between letters a to z into ": 1 and 14.
"""

import gzip

import pytest

from bleuprint.rules.edits import Punctuation
from bleuprint.text.tokenizers import Tokenize, tokenizer_for
from requirements import MIRROR, mirror_has, mirror_path, needs

MULTI30K = (
    "raw.githubusercontent.com/multi30k/dataset/a3d2e0d26b56f3846f66a952536ffed4e401d05a/data/task1"
)

pytestmark = needs(MIRROR, mirror_has(f"{MULTI30K}/tok"))


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
    folder = mirror_path(MULTI30K)
    raw = lines(folder / "raw" / f"{name}.{language}.gz")
    published = lines(folder / "tok" / f"{name}.lc.norm.tok.{language}")
    assert len(raw) == len(published) == total
    found = [tokenizer.tokenize(Punctuation().edit(line, language)) for line in raw]
    same = sum(ours == theirs.split() for ours, theirs in zip(found, published, strict=True))
    assert same >= alike
