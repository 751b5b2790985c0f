"""Training texts that a system translates: what params.yaml may say of them."""

import dataclasses

import pytest

from bleuprint.config.paths import Run
from bleuprint.config.runs import settings_sha256
from bleuprint.config.synthetic import Noise
from bleuprint.runtime.errors import UserError
from params import PARAMS, read

FORWARD = """\
  more:
    source: "de"
    target: "no"
    license_and_citation: {own: {license: none, bibtex: "@misc{own,}"}}
    files:
      train:
        german: {license_and_citation: own, source: {path: inputs/a.de}, tag: "☀", repeat: 2}
      valid: {}
      tests: {}
    clean: {non_printing: {}, unicode: {form: NFC}}
    dedup: {pairs: false, sources: false, targets: false, decontaminate: none}
    filter: {}
    split: {valid: 0.05, test: 0.05, seed: 1}
    tokenize: {name: moses, lowercase: false, hyphens: false, escape: false}
    vocabulary: {bpe: {num_merges: 10, joint: true, threshold: 0}}
synthetic:
  german: {part_of: more, system: base, corpus: own}
systems:
"""
TEXT = PARAMS.replace("systems:\n", FORWARD)


def test_a_text_with_one_side(tmp_path):
    settings = read(tmp_path, TEXT)
    made = settings.synthetic_text("german")
    assert (made.part_of, made.system, made.corpus) == ("more", "base", "own")
    (part, text), *more = settings.corpus("more").files.synthetic_texts().items()
    assert (part, text.synthetic_side, text.tag, text.repeat, more) == (
        "german",
        "target",
        "☀",
        2,
        [],
    )
    assert read(tmp_path).synthetic is None
    # other sampling is another text, and so another result
    other = read(tmp_path, TEXT.replace("corpus: own}", "corpus: own, sampling: {}}"))
    assert len({settings_sha256(each, Run("base", "more", 1)) for each in (settings, other)}) == 2


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("{pairs: false", "{pairs: true", "german.repeat: 2: dedup.pairs would drop the copies"),
        ('tag: "☀"', 'tag: "B,T"', "tag: clean and tokenize turn 'B,T' into ['B', ',', 'T']"),
        (", tag: ", ", target: {path: inputs/a.no}, tag: ", "tag '☀' is for a text that a system"),
        ("source: {path: inputs/a.de}, tag", "tag", "format plain needs two files"),
        (
            'tag: "☀", repeat: 2}\n      valid: {}',
            "}\n      valid: {a: {license_and_citation: own, source: {path: inputs/a.de}}}",
            "corpora.more.files: valid.a: needs two files, source and target: add ",
        ),
        ("  german: {part_of", "  norse: {part_of", "norse.part_of: no more.files.train.norse"),
        (
            "synthetic:\n  german: {part_of: more, system: base, corpus: own}\n",
            "",
            "corpora.more.files.train.german: has no target, and no entry of synthetic",
        ),
        ("system: base, ", "system: bass, ", "german.system: no system 'bass'; there are: base"),
        ("corpus: own}", "corpus: won}", "corpus: base is not trained on 'won'; there are: own"),
        ("part_of: more", "part_of: mere", "german.part_of: no mere.files.train.german with"),
        ("published:", "    corpora: {more: {}}\npublished:", "corpora.own: no system is trained"),
        (
            *("source: {path: inputs/a.de}, tag", "target: {path: inputs/a.no}, tag"),
            "synthetic.german.corpus: own is de to no, and german of more needs no to de",
        ),
        ("corpus: own}", "corpus: own, sampling: {}, noise: {}}", "noise is for outputs of beam"),
        ("corpus: own}", "corpus: own, noise: {drop: 1.0}}", "1.0 is out of range: below 1"),
        ("corpus: own}", "corpus: own, noise: {}}", "german.noise: is for synthetic sources, but "),
        ("corpus: own}", "corpus: more}", "each needs the next: more -> base on more -> more"),
    ],
)
def test_one_line_says_what_is_wrong(tmp_path, old, new, message):
    text = TEXT.replace(old, new)
    assert TEXT.count(old) == 1
    with pytest.raises(UserError) as error:
        read(tmp_path, text)
    assert message in str(error.value) and "\n" not in str(error.value)


def test_an_empty_section_is_refused(tmp_path):
    text = PARAMS.replace("systems:\n", "synthetic:\nsystems:\n")
    with pytest.raises(UserError, match=r"yaml:\d+: synthetic: is empty: remove the key"):
        read(tmp_path, text)


def test_what_is_done_besides_beam_search_is_described(tmp_path):
    text = TEXT.replace("corpus: own}\n", "corpus: own, sampling: {top_k: 3}}\n")
    made = read(tmp_path, text).synthetic_text("german")
    assert (made.sampling.top_k, made.method) == (3, "drawn from the 3 most probable tokens")
    noisy = dataclasses.replace(made, sampling=None, noise=Noise(drop=0.25))
    assert noisy.method == "drop 0.25, blank 0.1, shuffle 3"


def test_a_run_that_is_left_out_translates_nothing(tmp_path):
    other = "  other:\n    <<: *base\n    corpora: {more: {}}\npublished:"
    text = TEXT.replace("  base:\n", "  base: &base\n").replace("published:", other)
    with pytest.raises(UserError, match="corpus: other is not trained on 'own'"):
        read(tmp_path, text.replace("system: base, corpus", "system: other, corpus"))


def test_a_cycle_of_two_corpora_is_named(tmp_path):
    part = "back: {license_and_citation: own, source: {path: inputs/a.de}}"
    text = TEXT.replace("      train: {a: ", f"      train:\n        {part}\n        a: ").replace(
        "{path: inputs/a.no}}}", "{path: inputs/a.no}}"
    )
    made = "  back: {part_of: own, system: base, corpus: more}\nsystems:\n"
    cycle = "more -> base on own -> own -> base on more -> more"
    with pytest.raises(UserError, match=rf"yaml:\d+: synthetic.german: a cycle, .*: {cycle}$"):
        read(tmp_path, text.replace("systems:\n", made))


def test_a_tag_with_sentencepiece_is_refused(tmp_path):
    old = "{bpe: {num_merges: 10, joint: true, threshold: 0}}\nsynthetic"
    settings = "model_type: bpe, vocab_size: 90, joint: true, byte_fallback: true"
    new = f"{{sentencepiece: {{{settings}}}}}\nsynthetic"
    assert TEXT.count(old) == 1
    with pytest.raises(UserError, match=r"german\.tag: '☀': SentencePiece splits tags"):
        read(tmp_path, TEXT.replace(old, new))
