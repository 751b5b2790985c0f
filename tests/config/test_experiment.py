import pytest

from bleuprint.runtime.errors import UserError
from params import PARAMS, read


def test_rules_run_in_one_order_however_they_are_written(tmp_path):
    corpus = read(tmp_path).corpus("own")
    assert [edit.name() for edit in corpus.clean] == ["unicode", "non_printing"]
    assert [check.name() for check in corpus.filter] == ["length", "length_ratio"]
    other = PARAMS.replace(
        "{non_printing: {}, unicode: {form: NFC}}", "{unicode: {form: NFC}, non_printing: {}}"
    )
    assert other != PARAMS and read(tmp_path, other).corpus("own") == corpus
    none = PARAMS.replace("{length_ratio: {max: 3.0}, length: {min: 1, max: 100}}", "{}")
    assert read(tmp_path, none).corpus("own").filter == ()


def test_a_whole_number_may_be_written_with_an_exponent(tmp_path):
    train = (
        read(tmp_path, PARAMS.replace("max_updates: 10", "max_updates: 1e5"))
        .system_settings("base")
        .train
    )
    assert type(train.max_updates) is int and train.max_updates == 100_000


def test_rows_made_with_merge_keys(tmp_path):
    row = "  wide: {<<: *base, model: {<<: *model, d_model: 16}}\n"
    text = PARAMS.replace("  base:", "  base: &base").replace("published:", f"{row}published:")
    settings = read(tmp_path, text)
    assert settings.system_settings("wide").model.d_model == 16
    assert settings.system_settings("wide").train == settings.system_settings("base").train


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("heads: 2", "true: 2", "25: systems.base.model.True: unknown key; known here: enc"),
        ("heads: 2", "haeds: 2", "25: systems.base.model.haeds: unknown key; did you mean"),
        # a key that stands in another mapping below is named there
        (
            "    model: &",
            "    heads: 2\n    model: &",
            "base.heads: unknown key; did you mean 'model.heads'?",
        ),
        ("    model: &", "    init_from: {}\n    model: &", "did you mean 'train.init_from'?"),
        ("  clip_norm: 1.0", "  lr: 1.0", "train.lr: unknown key; did you mean 'lr_schedule."),
        ("d_model: 8", "d_model: 7", "systems.base.model: d_model 7 is odd: sinusoidal"),
        ("heads: 2", "heads: 2.5", "25: systems.base.model.heads: 2.5 is not a whole number"),
        ("heads: 2", "heads:", "base.model.heads: an empty value is not a whole number"),
        ("  dropout: {", "  dropout: 0.1 # {", "dropout: 0.1 is not a mapping: {embedding: ..., "),
        ("max_tokens: 100", "", "train: the key 'max_tokens' is missing; `like: NAME` takes what"),
        ("norm: post", "norm: past", "29: systems.base.model.norm: 'past' is not one of post, pre"),
        ("seeds: [1]", "seeds: 1", "2: seeds: 1 is not a list"),
        ("seeds: [1]", "seeds: [1.0]", "2: seeds.0: 1.0 is not a whole number"),
        ("seeds: [1]", "seeds: [1, 1]", "2: seeds: [1, 1]: at least one seed, and none twice"),
        ("  own:", "  own.x:", "4: corpora.own.x: a name is of letters (a to z, A to Z), digits,"),
        ('target: "no"', 'target: "de"', "simplification, write target: qaa, a code for"),
        ("source: {path: inputs/a.de}", "source: {path: /etc/a}", "must be below inputs/"),
        ("max: 100", "max: 0", "14: corpora.own.filter.length.max: 0 is out of range"),
        ("lowercase: false", "lowercase: no", "'no' is not true or false"),
        (
            "length_ratio: {",
            "length_rato: {",
            "14: corpora.own.filter.length_rato: unknown key; did you mean 'length_ratio'?",
        ),
        ("{form: NFC}", "NFC", "12: corpora.own.clean.unicode: 'NFC' is not a mapping"),
        ("non_printing: {}", "non_printing: {form: NFC}", "form: unknown key; write {}"),
        (
            "{length_ratio: {max: 3.0}, length: {min: 1, max: 100}}",
            "[length_ratio]",
            "is not a mapping",
        ),
        ("seed: 1}", "seed: 1, every: 23}", "valid 0.05 and every 23: valid must be 0"),
        ("test: 0.05", "test: 0", "15: corpora.own.split.test: 0, but files has no test text"),
        (
            "name: moses, lowercase: false, hyphens: false",
            "name: none, lowercase: false, hyphens: true",
            "option hyphens belongs to moses, not to none",
        ),
        ("joint: true", "joint: false", "19: systems.base: ties all embeddings"),
        ("threshold: 0}", "threshold: 0}, words: {max_size: 9}", "needs one of bpe, words"),
        ("citation: own, source", "citation: wmt, source", "train.a.license_and_citation: no"),
        ('"@misc{own,}"', "own (2026)", "7: corpora.own.license_and_citation.own.bibtex: 'own"),
        (
            '"@misc{own,}"',
            '"@misc{own,"',
            "'@misc{own,' is not a BibTeX entry: write '@type{key, ...}'",
        ),
        ("citation: own, source", "citation: own, format: tmx, source", "both sides in one file"),
        ("citation: own, source", "citation: own, columns: [1, 2], source", "tsv needs columns"),
        ("target: {path: inputs/a.no}", "both: {path: inputs/a.no}", "needs two files"),
        ("{path: inputs/a.de}", "{path: inputs/a.de, mirrors: [http://x/y]}", "mirrors needs url"),
        ("precision: float32}", "precision: int8}", "decode.precision: 'int8' is not one of"),
        ("average: {last: 2}", "average: {last: 3}", "keeps 2: lower train.save_interval (5)"),
        ("init_lr: 0.0}", "init_lr: 0.1}", "inverse_sqrt: warmup_init_lr 0.1 is above lr 0.001"),
        ("max_tokens: 100", "max_tokens: 101", "max_tokens 101 is above tokens_per_update 100"),
        ("max_updates", "sentences_per_update: 8\n      max_updates", "needs one of tokens_per"),
        ("average: {last: 2}", "average: {ema: true}", "average.ema true: training keeps no"),
        ("average: {last: 2}", "average: {last: 1, ensemble: true}", "ensemble: needs more than"),
        ("name: adam, ", "name: sgd, ", "train.optimizer: optimizer sgd has no setting betas"),
        (
            "eps: 1e-9, ",
            "eps: 1e-9, momentum: 0.9, ",
            "optimizer: optimizer adam has no setting momentum",
        ),
        ("train: {a: {", "train: {a: {pairs_seed: 1, ", "train.a: pairs_seed 1 needs pairs"),
        ("max_updates: 10", "max_updates:", "base.train: needs max_updates, max_epochs or"),
        ("init_lr: 0.0}", "init_lr: 0.0}, noam: {factor: 1}", "needs one of inverse_sqrt"),
        (
            "keep_interval: 0",
            "keep_interval: 7",
            "keep_interval 7 is not a multiple of save_interval 5",
        ),
        ("average: {last: 2}", "average: {}", "base.average: needs one of last, best, ema"),
        ("average: {last: 2}", "average: {best: 1}", "1: training keeps 0: raise train.keep_best"),
        ("{path: inputs/a.de}", '{url: "phrasebook:tets.en"}', "one of phrasebook:train.en, "),
        ("{path: inputs/a.de}", '{url: "file:///a.de"}', "needs sha256"),
        ("{path: inputs/a.de}", "{url: inputs/a.de}", "'inputs/a.de': not http, https or file ("),
        ("{path: inputs/a.de}", '{url: "http://[::1/x"}', "not a valid URL: Invalid IPv6 URL"),
        ("{path: inputs/a.de}", '{url: "http://a:b/x"}', "not a valid URL: Port could not be cast"),
        (
            "{path: inputs/a.de}",
            "{url: http://x/a, mirrors: [ftp://x/a]}",
            "mirrors is 'ftp://x/a'",
        ),
        ("{path: inputs/a.de}", '{url: "http://x/a "}', "'http://x/a ': it contains a space or"),
        ("{path: inputs/a.de}", "{url: http://x/a, sha256: aa}", "source.sha256: a SHA-256 is 64"),
        ("path: inputs/a.de", "path: [a.de, b.de]", "source.path: ['a.de', 'b.de'] is not text"),
        ("train: {a: ", "train: [x] # {a: ", "['x'] is not a mapping of names"),
        ("experiment: trial", f"experiment: {'a' * 101}", "digits, '-' and '_', at most 100"),
        ("clip_norm: 1.0", f"clip_norm: 1{'0' * 400}", "47: systems.base.train.clip_norm: 1000"),
        ("d_model: 8", f"d_model: 0x{'f' * 5000}", "model.d_model: a number of thousands of dig"),
        ("d_model: 8", f"d_model: 1{'0' * 24}", "is out of range: at "),
        (
            "allow_unk: true",
            "allow_unk: false, replace_unk: true",
            "replace_unk true needs allow_unk",
        ),
        ("allow_unk: true", "allow_unk: true, replace_unk: true", "replace_unk, which needs a"),
        ("min_len: 0", "min_len: 1024", "min_len 1024 leaves no place for EOS in model"),
    ],
)
def test_a_mistake_is_named_with_its_place(tmp_path, old, new, message):
    assert PARAMS.count(old) == 1
    with pytest.raises(UserError) as error:
        read(tmp_path, PARAMS.replace(old, new))
    assert str(error.value).startswith(f"{tmp_path / 'params.yaml'}:")
    assert message in str(error.value)
    assert all(line.startswith(f"{tmp_path}") for line in str(error.value).splitlines())


@pytest.mark.parametrize(
    ("updates", "average", "keep", "remedy"),
    [
        # a checkpoint every 5 updates: 1, 2 and 3 checkpoints
        (5, "last: 2", "keep_last: 2\n      keep_best: 0", "lower train.save_interval (5)"),
        (10, "last: 3", "keep_last: 2\n      keep_best: 0", "lower train.save_interval (5)"),
        (15, "last: 3", "keep_last: 2\n      keep_best: 0", "raise train.keep_last"),
        (11, "last: 3", "keep_last: 2\n      keep_best: 0", "raise train.keep_last"),
        (10, "best: 3", "keep_last: 1\n      keep_best: 2", "lower train.validate_interval (5)"),
        (15, "best: 3", "keep_last: 1\n      keep_best: 2", "raise train.keep_best"),
    ],
)
def test_how_training_keeps_enough_checkpoints_to_average(tmp_path, updates, average, keep, remedy):
    text = PARAMS.replace("max_updates: 10", f"max_updates: {updates}")
    text = text.replace("average: {last: 2}", f"average: {{{average}}}")
    text = text.replace("keep_last: 2\n      keep_best: 0", keep)
    name = average.partition(":")[0]
    with pytest.raises(UserError) as error:
        read(tmp_path, text)
    assert str(error.value).endswith(f": {remedy}, or lower average.{name}")


@pytest.mark.parametrize("updates", [11, 15, 16])
def test_as_many_checkpoints_as_training_keeps_are_averaged(tmp_path, updates):
    text = PARAMS.replace("max_updates: 10", f"max_updates: {updates}")
    text = text.replace("average: {last: 2}", "average: {last: 3}")
    text = text.replace("keep_last: 2", "keep_last: 3")
    assert read(tmp_path, text).system_settings("base").average.last == 3


def test_an_empty_file_lacks_the_keys_of_an_experiment(tmp_path):
    with pytest.raises(UserError) as error:
        read(tmp_path, "# nothing yet\n")
    said = "params.yaml: not a mapping of experiment, seeds, corpora and systems"
    assert str(error.value) == str(tmp_path / said)


def test_pairs_of_a_test_set_are_refused(tmp_path):
    part = "{license_and_citation: own, source: {path: inputs/a.de}, target: {path: inputs/a.no}"
    text = PARAMS.replace("tests: {}", f"tests: {{x: {{a: {part}, pairs: 9}}}}}}")
    with pytest.raises(UserError, match=r"files: test\.x\.a: pairs 9 is for training texts"):
        read(tmp_path, text)


@pytest.mark.parametrize("name", ["valid", "test.x"])
def test_held_out_documents_are_refused(tmp_path, name):
    """Aligning them would leave sentences out."""
    part = "{license_and_citation: own, source: {path: inputs/a.de}, target: {path: inputs/a.no}"
    if name == "valid":
        text = PARAMS.replace("valid: {}", f"valid: {{a: {part}, format: documents}}}}")
    else:
        text = PARAMS.replace("tests: {}", f"tests: {{x: {{a: {part}, format: documents}}}}}}")
    with pytest.raises(UserError, match=rf"{name}\.a: format documents is for training texts"):
        read(tmp_path, text)


def test_an_entry_that_is_not_there_is_named_with_those_that_are(tmp_path):
    with pytest.raises(UserError, match=r"no corpora entry 'wmt'; there are: own"):
        read(tmp_path).corpus("wmt")


def test_two_runs_of_one_name_are_refused(tmp_path):
    """DVC names a run SYSTEM-CORPUS-SEED, and silently drops the first of two equal names."""
    text = PARAMS.replace("  own:\n", "  c: &c\n").replace("systems:\n", "  b-c: *c\nsystems:\n")
    text = text.replace("  base:\n", "  a: &a\n").replace("published:", "  a-b: *a\npublished:")
    with pytest.raises(UserError, match=r"called a-b-c: system a on corpus b-c and .*; rename"):
        read(tmp_path, text)


def test_a_language_that_a_rule_does_not_support_is_refused_before_any_work(tmp_path):
    text = PARAMS.replace("length_ratio: {max: 3.0}", "character_score: {min: 0.5}").replace(
        '"no"', '"xx"'
    )
    with pytest.raises(
        UserError, match=r"yaml:4: corpora\.own: rule character_score does not support .*'xx'"
    ):
        read(tmp_path, text)
