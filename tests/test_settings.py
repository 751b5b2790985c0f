import pytest

from bleuprint.errors import UserError
from bleuprint.settings import load

PARAMS = """\
experiment: trial
seeds: [1]
corpora:
  own:
    source: "de"
    target: "no"
    about:
      - {name: own, licence: none, citation: none}
    files:
      train: {a: {source: {path: inputs/a.de}, target: {path: inputs/a.no}}}
      valid: {}
      tests: {}
    clean: {unicode: NFC}
    filter: {min_words: 1, max_words: 100, max_ratio: 3.0}
    split: {valid: 0.05, test: 0.05, seed: 1}
    tokenize: {punctuation: false, lowercase: false}
    learn_bpe: {merges: 10}
systems:
  base:
    model: &model
      encoder_layers: 1
      decoder_layers: 1
      d_model: 8
      d_ff: 16
      heads: 2
      dropout: 0
      norm: post
      tie: all
    train: &train
      tokens_per_update: 100
      batch_tokens: 100
      updates: 10
      learning_rate: 1e-03
      warmup: 4
      betas: [0.9, 0.98]
      epsilon: 1e-9
      clip_norm: 1.0
      label_smoothing: 0.1
      precision: float32
      validate_every: 5
      checkpoint_every: 5
      keep_last: 2
    average: {last: 2}
    decode: {beam: 1, alpha: 0.6, max_extra: 10}
"""


def read(tmp_path, text=PARAMS):
    path = tmp_path / "params.yaml"
    path.write_text(text)
    return load(path)


def test_values_are_those_of_yaml_1_2(tmp_path):
    settings = read(tmp_path)
    assert settings.system("base").train.learning_rate == 0.001
    assert settings.corpus("own").target == "no"
    assert settings.system("base").model.dropout == 0.0


def test_rows_made_with_merge_keys(tmp_path):
    row = "  wide: {<<: *base, model: {<<: *model, d_model: 16}}\n"
    text = PARAMS.replace("  base:", "  base: &base") + row
    settings = read(tmp_path, text)
    assert settings.system("wide").model.d_model == 16
    assert settings.system("wide").train == settings.system("base").train


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "heads: 2",
            "haeds: 2",
            "25: systems.base.model.haeds: unknown key; did you mean 'heads'?",
        ),
        ("heads: 2", "heads: 3", "systems.base.model: d_model 8 is not divisible by heads 3"),
        ("heads: 2", "heads: 0", "25: systems.base.model.heads: 0 is out of range: at least 1"),
        ("heads: 2", 'heads: "2"', "25: systems.base.model.heads: '2' is not a whole number"),
        ("heads: 2", "heads: 2.0", "25: systems.base.model.heads: 2.0 is not a whole number"),
        ("heads: 2", "heads: true", "25: systems.base.model.heads: True is not a whole number"),
        ("heads: 2", "heads:", "25: systems.base.model.heads: nothing is not a whole number"),
        ("      heads: 2\n", "", "systems.base.model: the key 'heads' is missing"),
        ("dropout: 0", "dropout: 1.0", "26: systems.base.model.dropout: 1.0 is out of range"),
        ("norm: post", "norm: past", "27: systems.base.model.norm: 'past' is not one of post, pre"),
        ("seeds: [1]", "seeds: 1", "2: seeds: 1 is not a list"),
        ("seeds: [1]", "seeds: [1, 1]", "seeds [1, 1]: one or more, each once"),
        ("  own:", "  own.x:", "corpora.own.x: a name is of letters"),
        ('target: "no"', 'target: "de"', "source and target are both 'de'"),
        ("a: {source: {path: inputs/a.de}", "a: {source: {path: /etc/a}", "lie below inputs/"),
        ("max_words: 100", "max_words: 0", "14: corpora.own.filter.max_words: 0 is out of range"),
        ("min_words: 1", "min_words: 101", "max_words 100 is below min_words 101"),
        ("punctuation: false", "punctuation: no", "'no' is not true or false"),
        ("{last: 2}", "{last: 3}", "average.last 3: training keeps 2 checkpoints"),
        ("experiment: trial", "experiment: [", "not valid YAML"),
        ("experiment: trial", "experiment: a\x00", "not valid YAML"),
        ("heads: 2", "heads: 2\n      heads: 4", 'found duplicate key "heads"'),
        ("batch_tokens: 100", "batch_tokens: 101", "batch_tokens 101 is beyond tokens_per_update"),
        ("updates: 10", "updates: 11", "train.updates 11 is no multiple of"),
        ("seeds: [1]", "seeds: [9223372036854775808]", "seeds.0: 9223372036854775808 is out of"),
        ("{path: inputs/a.de}", '{url: "phrasebook:tets.en"}', "phrasebook: and one of train.en"),
        ("{path: inputs/a.de}", '{url: "file:///a.de"}', "needs sha256"),
        ("train: {a: ", "train: {../a: ", "train.../a: a name is of letters"),
    ],
)
def test_a_mistake_is_named_with_its_place(tmp_path, old, new, message):
    assert PARAMS.count(old) == 1
    with pytest.raises(UserError) as error:
        read(tmp_path, PARAMS.replace(old, new))
    assert str(error.value).startswith(f"{tmp_path / 'params.yaml'}:")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_an_entry_that_is_not_there_is_named_with_those_that_are(tmp_path):
    with pytest.raises(UserError, match=r"no corpora entry 'wmt'; there are: own"):
        read(tmp_path).corpus("wmt")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(UserError, match=r"params\.yaml: no such file"):
        load(tmp_path / "params.yaml")


def test_two_cells_of_one_name_are_refused(tmp_path):
    """DVC calls a cell SYSTEM-CORPUS-SEED, and would drop the first of two without a word."""
    text = PARAMS.replace("  own:\n", "  c: &c\n").replace("systems:\n", "  b-c: *c\nsystems:\n")
    text = text.replace("  base:\n", "  a: &a\n") + "  a-b: *a\n"
    with pytest.raises(UserError, match="two cells are called a-b-c: rename"):
        read(tmp_path, text)
