"""Training texts of which a trained system translates one side: their settings in params.yaml."""

import dataclasses
import re

import pytest

from bleuprint.config.noise import Noise
from bleuprint.config.paths import Run
from bleuprint.config.runs import settings_sha256
from params import PARAMS, params_error, read_params, replace_once

# PARAMS trains the system `base` on the corpus `own`. Here it translates the German text of the
# corpus `more` to Norwegian, so that `more` has sentence pairs to train on.
PARAMS_WITH_SYNTHETIC = replace_once(
    PARAMS,
    "systems:\n",
    """\
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
""",
)


def test_an_entry_of_synthetic_names_a_text_and_the_system_that_translates_it(tmp_path):
    """The text `german` of the corpus `more` lacks its target.

    It is translated by the system `base`, trained on the corpus `own`.
    """
    synthetic_text = read_params(tmp_path, PARAMS_WITH_SYNTHETIC).synthetic_text("german")

    assert synthetic_text.part_of == "more"
    assert synthetic_text.system == "base"
    assert synthetic_text.corpus == "own"


def test_the_side_without_a_file_is_synthetic(tmp_path):
    """In the corpus `more`, the text `german` has a file for its source only.

    Its settings are: tag ☀, repeat 2.
    """
    texts = read_params(tmp_path, PARAMS_WITH_SYNTHETIC).corpus("more").files.synthetic_texts()

    assert list(texts) == ["german"]
    text = texts["german"]
    assert text.synthetic_side == "target"
    assert text.tag == "☀"
    assert text.repeat == 2


def test_params_without_the_section_have_no_synthetic_text(tmp_path):
    assert read_params(tmp_path, PARAMS).synthetic is None


def test_sampling_changes_the_fingerprint_of_a_training_on_synthetic_text(tmp_path):
    """A fingerprint decides which results are out of date.

    Sampled translations differ from those of beam search, so the training on them must run again.
    """
    settings = read_params(tmp_path, PARAMS_WITH_SYNTHETIC)
    text = replace_once(PARAMS_WITH_SYNTHETIC, "corpus: own}", "corpus: own, sampling: {}}")
    settings_with_sampling = read_params(tmp_path, text)

    run = Run("base", "more", 1)
    assert settings_sha256(settings, run) != settings_sha256(settings_with_sampling, run)


def error_after_change(folder, old, new):
    """Change one place of PARAMS_WITH_SYNTHETIC; return the error, which must have one line."""
    message = params_error(folder, replace_once(PARAMS_WITH_SYNTHETIC, old, new))
    assert "\n" not in message
    return message


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        pytest.param(
            "{pairs: false",
            "{pairs: true",
            "german.repeat: with repeat 2, dedup.pairs would drop the copies",
            id="copies of a deduplicated text",
        ),
        pytest.param(
            'tag: "☀"',
            'tag: "B,T"',
            "tag: clean and tokenize turn 'B,T' into ['B', ',', 'T']",
            id="tag of several words",
        ),
        pytest.param(
            ", tag: ",
            ", target: {path: inputs/a.no}, tag: ",
            "tag '☀' is only for a text that a system",
            id="tag of a parallel text",
        ),
        pytest.param(
            "source: {path: inputs/a.de}, tag",
            "tag",
            "format plain needs two files",
            id="text without files",
        ),
        pytest.param(
            'tag: "☀", repeat: 2}\n      valid: {}',
            "}\n      valid: {a: {license_and_citation: own, source: {path: inputs/a.de}}}",
            "corpora.more.files: valid.a: the target file is missing. Add it",
            id="validation text with one side",
        ),
    ],
)
def test_a_text_that_cannot_have_a_synthetic_side_is_reported(tmp_path, old, new, message):
    assert message in error_after_change(tmp_path, old, new)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        pytest.param(
            "  german: {part_of",
            "  norse: {part_of",
            "norse.part_of: no text more.files.train.norse",
            id="unknown text",
        ),
        pytest.param(
            "part_of: more",
            "part_of: mere",
            "german.part_of: no text mere.files.train.german",
            id="unknown corpus",
        ),
        pytest.param(
            "synthetic:\n  german: {part_of: more, system: base, corpus: own}\n",
            "",
            "corpora.more.files.train.german: has no target. Add the file, or an entry",
            id="no entry for a text with one side",
        ),
        pytest.param(
            "system: base, ",
            "system: bass, ",
            "german.system: no system 'bass'; there are: base",
            id="unknown system",
        ),
        pytest.param(
            "corpus: own}",
            "corpus: won}",
            "corpus: base is not trained on 'won'; there are: own",
            id="unknown training corpus of the system",
        ),
        pytest.param(
            "published:",
            "    corpora: {more: {}}\npublished:",
            "corpora.own: no system is trained",
            id="system that is not trained on the corpus",
        ),
        pytest.param(
            "source: {path: inputs/a.de}, tag",
            "target: {path: inputs/a.no}, tag",
            "synthetic.german.corpus: own is de to no, but german of more needs no to de",
            id="system for the other direction",
        ),
        pytest.param(
            "corpus: own}",
            "corpus: more}",
            "each needs the next: more -> base on more -> more",
            id="system that is trained on the text",
        ),
    ],
)
def test_a_translating_system_or_text_that_does_not_fit_is_reported(tmp_path, old, new, message):
    assert message in error_after_change(tmp_path, old, new)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        pytest.param(
            "sampling: {}, noise: {}", "noise is for outputs of beam", id="noise and sampling"
        ),
        pytest.param(
            "noise: {drop: 1.0}",
            "1.0 is out of range: it must be below 1",
            id="dropping all words",
        ),
        pytest.param(
            "noise: {}", "german.noise: noise is only for synthetic ", id="noise in a target"
        ),
    ],
)
def test_noise_that_does_not_fit_the_text_is_reported(tmp_path, settings, message):
    new = f"corpus: own, {settings}}}"

    assert message in error_after_change(tmp_path, "corpus: own}", new)


def test_an_empty_synthetic_section_is_reported(tmp_path):
    """The key `synthetic:` stands without an entry after it."""
    text = replace_once(PARAMS, "systems:\n", "synthetic:\nsystems:\n")

    message = params_error(tmp_path, text)

    assert re.search(r"yaml:\d+: synthetic: is empty. Remove the key", message)


def test_sampling_from_the_most_probable_tokens_is_described(tmp_path):
    """The report tells by `method` how a synthetic text was made."""
    text = replace_once(PARAMS_WITH_SYNTHETIC, "corpus: own}", "corpus: own, sampling: {top_k: 3}}")

    synthetic_text = read_params(tmp_path, text).synthetic_text("german")

    assert synthetic_text.sampling.top_k == 3
    assert synthetic_text.method == "drawn from the 3 most probable tokens"


def test_noise_is_described(tmp_path):
    """The report tells by `method` how a synthetic text was made.

    Dropping words is set to 0.25; blanking 0.1 and shuffling over 3 words are defaults.
    """
    synthetic_text = read_params(tmp_path, PARAMS_WITH_SYNTHETIC).synthetic_text("german")

    noisy_text = dataclasses.replace(synthetic_text, noise=Noise(drop=0.25))

    assert noisy_text.method == "drop 0.25, blank 0.1, shuffle 3"


def test_a_system_that_is_not_trained_on_the_named_corpus_cannot_translate(tmp_path):
    """`other` is trained only on the corpus `more`."""
    other = "  other:\n    <<: *base\n    corpora: {more: {}}\n"
    text = replace_once(PARAMS_WITH_SYNTHETIC, "  base:\n", "  base: &base\n")
    text = replace_once(text, "published:", f"{other}published:")
    text = replace_once(text, "system: base, corpus", "system: other, corpus")

    message = params_error(tmp_path, text)

    assert "corpus: other is not trained on 'own'" in message


def test_two_corpora_whose_systems_translate_for_each_other_are_reported_as_a_cycle(tmp_path):
    """`base` on `own` translates a text of `more`, and `base` on `more` a text of `own`."""
    text_of_own = "back: {license_and_citation: own, source: {path: inputs/a.de}}"
    text = replace_once(
        PARAMS_WITH_SYNTHETIC, "      train: {a: ", f"      train: {{{text_of_own}, a: "
    )
    text = replace_once(
        text, "systems:\n", "  back: {part_of: own, system: base, corpus: more}\nsystems:\n"
    )

    message = params_error(tmp_path, text)

    cycle = "more -> base on own -> own -> base on more -> more"
    assert re.search(rf"yaml:\d+: synthetic.german: in this circle, .*: {cycle}$", message)


def test_a_tag_is_refused_with_sentencepiece(tmp_path):
    """A tag must be one token, and SentencePiece would split it."""
    settings = "model_type: bpe, vocab_size: 90, joint: true, byte_fallback: true"

    message = error_after_change(
        tmp_path,
        "{bpe: {num_merges: 10, joint: true, threshold: 0}}\nsynthetic",
        f"{{sentencepiece: {{{settings}}}}}\nsynthetic",
    )

    assert re.search(r"german\.tag: SentencePiece would split", message)
