"""A params.yaml with one small corpus and one small system, to be changed by tests."""

import pytest

from bleuprint.config.experiment import load_settings
from bleuprint.config.paths import RESOLVED
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.json_files import write_json

PARAMS = """\
experiment: trial
seeds: [1]
corpora:
  own:
    source: "de"
    target: "no"
    license_and_citation: {own: {license: none, bibtex: "@misc{own,}"}}
    files:
      train: {a: {license_and_citation: own, source: {path: inputs/a.de}, target: {path: inputs/a.no}}}
      valid: {}
      tests: {}
    clean: {non_printing: {}, unicode: {form: NFC}}
    dedup: {pairs: true, sources: false, targets: false, decontaminate: normalized}
    filter: {length_ratio: {max: 3.0}, length: {min: 1, max: 100}}
    split: {valid: 0.05, test: 0.05, seed: 1}
    tokenize: {name: moses, lowercase: false, hyphens: false, escape: false}
    vocabulary: {bpe: {num_merges: 10, joint: true, threshold: 0}}
systems:
  base:
    model: &model
      encoder_layers: 1
      decoder_layers: 1
      d_model: 8
      d_ff: 16
      heads: 2
      d_k: 4
      d_v: 4
      dropout: {embedding: 0, residual: 0, attention: 0.0, activation: 0.0}
      norm: post
      normalization: layer
      positional_encoding: sinusoidal
      scale_embeddings: true
      scale_attention: true
      max_positions: 1024
      activation: relu
      layer_drop: 0.0
      bias: true
      output_bias: false
      tie_embeddings: all
      init: scaled
    train: &train
      tokens_per_update: 100
      max_tokens: 100
      max_updates: 10
      optimizer: {name: adam, betas: [0.9, 0.98], eps: 1e-9, weight_decay: 0.0}
      lr_schedule: {inverse_sqrt: {lr: 1e-03, warmup_updates: 4, warmup_init_lr: 0.0}}
      clip_norm: 1.0
      label_smoothing: 0.1
      label_smoothing_target: uniform
      bpe_dropout: 0
      precision: float32
      compile: false
      validation_metric: loss
      validate_interval: 5
      save_interval: 5
      keep_last: 2
      keep_best: 0
      keep_interval: 0
    average: {last: 2}
    decode: {beam: 1, length_penalty: {kind: gnmt, alpha: 0.6}, max_len_a: 1, max_len_b: 10,
             min_len: 0, no_repeat_ngram_size: 0, allow_unk: true,
             precision: float32}
published: []
"""  # noqa: E501


def corpus_entry(source, target, files, **changes):
    """Return the settings of a corpus, as params.yaml contains them.

    Args:
        source: The source language.
        target: The target language.
        files: The files of the corpus; they refer to the license and citation `own`.
        **changes: Settings that differ from the usual ones, or are added to them.
    """
    usual_settings = {
        "source": source,
        "target": target,
        "files": files,
        "license_and_citation": {"own": {"license": "none", "bibtex": "@misc{own,}"}},
        "clean": {"unicode": {"form": "NFC"}},
        "dedup": {"pairs": True, "sources": False, "targets": False, "decontaminate": "normalized"},
        "filter": {"length": {"min": 1, "max": 100}, "length_ratio": {"max": 3.0}},
        "split": {"valid": 0.05, "test": 0.05, "seed": 1},
        "tokenize": {"name": "moses", "lowercase": False, "hyphens": False, "escape": False},
        "vocabulary": {"bpe": {"num_merges": 100, "joint": True, "threshold": 0}},
    }
    return usual_settings | changes


def read_params(folder, text=PARAMS):
    """Write a params.yaml with this text to a folder, and return the settings in it."""
    path = folder / "params.yaml"
    path.write_text(text)
    return load_settings(path)


read = read_params  # The name in tests of other folders.


def params_error(folder, text):
    """Return the message with which reading a params.yaml with this text must end.

    A message has one line for each mistake, FILE:LINE: KEY: EXPLANATION.
    """
    with pytest.raises(UserError) as error:
        read_params(folder, text)
    return str(error.value)


def replace_once(text, old, new):
    """Replace the only occurrence of a part of a text."""
    assert text.count(old) == 1, f"{text.count(old)} occurrences of {old!r}"
    return text.replace(old, new)


def error_after_change(folder, old, new):
    """Change one place of PARAMS, and return the message of the error that reading it raises.

    Each line of the message must begin with the path of params.yaml.
    """
    message = params_error(folder, replace_once(PARAMS, old, new))
    assert message.startswith(f"{folder / 'params.yaml'}:")
    for line in message.splitlines():
        assert line.startswith(str(folder))
    return message


def line_number(text, part):
    """Return the number of the line in which the first occurrence of a part begins."""
    return text[: text.index(part)].count("\n") + 1


def write_resolved(root):
    """Write the settings as stages read them, without fingerprints of files and code."""
    settings = load_settings(root / "params.yaml")
    write_json(root / RESOLVED, {**settings.resolved(), "inputs": {}, "code": {}})
