"""Settings of a system: combinations that are valid or refused, and what is computed from them."""

import pytest

from bleuprint.config.noise import Noise
from bleuprint.config.optimization import (
    Constant,
    Cosine,
    InverseSqrt,
    LrSchedule,
    Noam,
    Optimizer,
)
from bleuprint.config.synthetic import Sampling, SyntheticText
from bleuprint.config.system import Average, Decode, InitFrom, Model, System, Train


def train_settings(**changes):
    """Return settings of a training: 10,000 updates of 400 tokens, in batches of 100."""
    settings = {"max_tokens": 100, "tokens_per_update": 400, "max_updates": 10_000}
    settings |= changes
    return Train(**settings)


def sentence_train_settings(**changes):
    """Return settings of a training whose updates have 8 sentences."""
    return train_settings(tokens_per_update=None, sentences_per_update=8, **changes)


def model_settings(**changes):
    """Return settings of a model of 12 dimensions, with 3 heads of 4 dimensions."""
    settings = {
        "encoder_layers": 2,
        "decoder_layers": 3,
        "d_model": 12,
        "d_ff": 40,
        "heads": 3,
        "d_k": 4,
        "d_v": 4,
    }
    settings |= changes
    return Model(**settings)


def system_settings(**changes):
    """Return settings of a system that averages the last 5 checkpoints."""
    settings = {
        "train": train_settings(),
        "model": model_settings(),
        "average": Average(last=5),
    }
    settings |= changes
    return System(**settings)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"heads": 5, "d_k": 0}, "d_model 12 is not a multiple of heads 5. Set d_k"),
        ({"heads": 5, "d_v": 0}, "d_model 12 is not a multiple of heads 5. Set d_v"),
        ({"d_model": 13}, "d_model 13 is odd, but sinusoidal encodings need it even"),
        (
            {"d_k": 5, "positional_encoding": "rotary"},
            "d_k 5 is odd, but rotary encodings turn pairs of dimensions",
        ),
    ],
    ids=[
        "d_model no multiple of heads, d_k derived",
        "d_model no multiple of heads, d_v derived",
        "odd d_model, sinusoidal encodings",
        "odd d_k, rotary encodings",
    ],
)
def test_a_model_with_sizes_that_do_not_fit_each_other_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        model_settings(**changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"d_model": 13, "positional_encoding": "learned"},
        {"d_k": 5},
        {"d_k": 5, "positional_encoding": "learned"},
        {"d_v": 5, "positional_encoding": "rotary"},
        {"heads": 5},
    ],
    ids=str,
)
def test_a_model_with_unusual_sizes_is_accepted(changes):
    assert model_settings(**changes)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"system": "a"},
        {"corpus": "a"},
        {"system": "a", "folder": "b"},
        {"system": "a", "corpus": "b", "folder": "c"},
    ],
    ids=str,
)
def test_a_start_must_be_either_a_system_on_a_corpus_or_a_folder(settings):
    with pytest.raises(ValueError, match=r"names no model|needs system and corpus, or a folder"):
        InitFrom(**settings)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tokens_per_update": None}, "needs exactly one of tokens_per_update, sentences_per"),
        ({"sentences_per_update": 8}, "needs exactly one of tokens_per_update, sentences_per"),
        ({"max_tokens": 401}, "max_tokens 401 is above tokens_per_update 400"),
        ({"max_updates": None}, "training would never end"),
        (
            {"save_interval": 5, "keep_interval": 12},
            "keep_interval 12 is not a multiple of save_interval 5",
        ),
        (
            {"save_interval": 5, "validate_interval": 12, "keep_best": 1},
            "validate_interval 12 is not a multiple of save_interval 5",
        ),
    ],
    ids=[
        "no size of updates",
        "two sizes of updates",
        "batch larger than update",
        "no end",
        "keep_interval between saves",
        "validation between saves",
    ],
)
def test_a_training_with_settings_that_contradict_each_other_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        train_settings(**changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"max_tokens": 400},
        {"max_updates": None, "max_epochs": 1},
        {"max_updates": None, "patience": 1},
        {"save_interval": 5, "validate_interval": 12, "keep_interval": 15},
        {"save_interval": 5, "validate_interval": 15, "keep_best": 1},
    ],
    ids=str,
)
def test_a_training_at_the_limits_of_its_settings_is_accepted(changes):
    assert train_settings(**changes)


def test_a_batch_may_have_any_size_if_updates_are_counted_in_sentences():
    assert sentence_train_settings(max_tokens=10_000)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "needs exactly one of last, best, ema"),
        ({"last": 2, "best": 2}, "needs exactly one of last, best, ema"),
        ({"best": 2, "ema": True}, "needs exactly one of last, best, ema"),
        ({"last": 1, "ensemble": True}, "an ensemble needs more than one checkpoint"),
        ({"best": 1, "ensemble": True}, "an ensemble needs more than one checkpoint"),
        ({"ema": True, "ensemble": True}, "an ensemble needs more than one checkpoint"),
    ],
    ids=str,
)
def test_an_average_of_no_or_contradictory_checkpoints_is_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        Average(**settings)


@pytest.mark.parametrize(
    "settings",
    [{"last": 2, "ensemble": True}, {"best": 2, "ensemble": True}, {"last": 1}],
    ids=str,
)
def test_an_average_or_ensemble_of_checkpoints_is_accepted(settings):
    assert Average(**settings)


def test_replacing_unk_without_allowing_unk_is_refused():
    with pytest.raises(ValueError, match="replace_unk true needs allow_unk true"):
        Decode(replace_unk=True, allow_unk=False)


@pytest.mark.parametrize(
    "settings",
    [
        {"precision": "bfloat16"},
        {"replace_unk": True},
        {"allow_unk": False},
        {"min_len": 1, "no_repeat_ngram_size": 2},
    ],
    ids=str,
)
def test_settings_of_decoding_are_accepted(settings):
    assert Decode(**settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"momentum": 0.5}, "optimizer adam has no setting momentum"),
        ({"name": "adamw", "momentum": 0.0}, "optimizer adamw has no setting momentum"),
        ({"name": "sgd", "betas": (0.9, 0.98)}, "optimizer sgd has no setting betas"),
        ({"name": "sgd", "eps": 1e-9}, "optimizer sgd has no setting eps"),
    ],
    ids=["momentum for adam", "momentum for adamw", "betas for sgd", "eps for sgd"],
)
def test_a_setting_of_another_optimizer_is_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        Optimizer(**settings)


def test_a_warmup_from_above_the_learning_rate_is_refused():
    with pytest.raises(ValueError, match=r"warmup_init_lr 0\.2 is above lr 0\.1"):
        InverseSqrt(lr=0.1, warmup_init_lr=0.2)


def test_a_warmup_from_the_learning_rate_is_accepted():
    assert InverseSqrt(lr=0.1, warmup_init_lr=0.1)


def test_a_cosine_schedule_that_ends_with_its_warmup_is_refused():
    with pytest.raises(ValueError, match="warmup_updates 10 must be below max_updates 10"):
        Cosine(lr=0.1, warmup_updates=10, max_updates=10)


def test_a_cosine_schedule_that_rises_is_refused():
    with pytest.raises(ValueError, match=r"min_lr 0\.2 is above lr 0\.1"):
        Cosine(lr=0.1, warmup_updates=1, max_updates=10, min_lr=0.2)


def test_a_constant_cosine_schedule_of_one_update_is_accepted():
    assert Cosine(lr=0.1, warmup_updates=9, max_updates=10, min_lr=0.1)


@pytest.mark.parametrize(
    "schedules",
    [
        pytest.param({}, id="none"),
        pytest.param({"noam": Noam(), "constant": Constant(lr=0.1)}, id="two"),
    ],
)
def test_a_learning_rate_needs_exactly_one_schedule(schedules):
    with pytest.raises(
        ValueError, match="needs exactly one of inverse_sqrt, noam, constant, cosine"
    ):
        LrSchedule(**schedules)


def test_noise_in_sampled_translations_is_refused():
    with pytest.raises(ValueError, match="noise is for outputs of beam search"):
        SyntheticText("own", "base", "back", sampling=Sampling(), noise=Noise())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        pytest.param(
            {"decode": Decode(min_len=1024)},
            "decode.min_len 1024 leaves no position for EOS in model.max_positions 1024",
            id="outputs longer than the model allows",
        ),
        pytest.param(
            {"average": Average(ema=True)},
            "average.ema needs the moving average",
            id="moving average that is not kept",
        ),
        pytest.param(
            {"arithmetic": "portable", "train": train_settings(precision="bfloat16")},
            "arithmetic portable needs train.precision float32, not bfloat16",
            id="portable training in bfloat16",
        ),
        pytest.param(
            {"arithmetic": "portable", "train": train_settings(compile=True)},
            "arithmetic portable needs train.compile false, not true",
            id="portable training, compiled",
        ),
        pytest.param(
            {"arithmetic": "portable", "decode": Decode(precision="bfloat16")},
            "arithmetic portable needs decode.precision float32, not bfloat16",
            id="portable decoding in bfloat16",
        ),
    ],
)
def test_a_system_with_parts_that_do_not_fit_each_other_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        system_settings(**changes)


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"decode": Decode(min_len=1023)}, id="outputs as long as the model allows"),
        pytest.param({"model": model_settings(d_k=6, d_v=6)}, id="larger heads"),
        pytest.param({"average": Average(last=2, ensemble=True)}, id="ensemble"),
        pytest.param(
            {"average": Average(ema=True), "train": train_settings(ema=0.9)}, id="moving average"
        ),
        pytest.param({"train": train_settings(ema=0.9)}, id="moving average that is not used"),
        pytest.param({"arithmetic": "portable"}, id="portable"),
        pytest.param(
            {"arithmetic": "portable", "train": train_settings(compile=False)},
            id="portable, not compiled",
        ),
        pytest.param(
            {"train": train_settings(precision="bfloat16", compile=True)},
            id="bfloat16 and compiled",
        ),
    ],
)
def test_a_system_with_parts_that_fit_each_other_is_accepted(changes):
    assert system_settings(**changes)


@pytest.mark.parametrize(
    ("activation", "matrices"),
    [
        pytest.param("relu", 2, id="relu: from d_model to d_ff and back"),
        pytest.param("swiglu", 3, id="swiglu: also a gate"),
    ],
)
def test_the_weights_of_a_feed_forward_network_are_counted(activation, matrices):
    model = model_settings(d_model=12, d_ff=40, activation=activation)

    assert model.feed_forward_weights == matrices * 12 * 40


def test_the_default_activation_has_two_feed_forward_matrices():
    assert model_settings(d_model=12, d_ff=40).feed_forward_weights == 2 * 12 * 40


@pytest.mark.parametrize(
    ("changes", "expected_d_k", "expected_d_v"),
    [({"d_k": 0, "d_v": 5}, 18 // 3, 5), ({"d_k": 5, "d_v": 0}, 5, 18 // 3)],
    ids=str,
)
def test_heads_share_the_dimensions_of_the_model_by_default(changes, expected_d_k, expected_d_v):
    """d_k and d_v are the dimensions of a head.

    0 stands for d_model divided by the number of heads.
    """
    model = model_settings(d_model=18, heads=3, **changes)

    assert model.d_k == expected_d_k
    assert model.d_v == expected_d_v


@pytest.mark.parametrize(
    ("changes", "difference"),
    [
        ({}, None),
        ({"d_ff": 41}, "model.d_ff is 41, but 40 in the model that the training starts from"),
        ({"norm": "pre"}, "model.norm is pre, but post in the model that the training starts from"),
        ({"layer_drop": 0.5}, None),
        ({"max_positions": 99}, None),
    ],
    ids=["same settings", "other d_ff", "other norm", "other layer_drop", "other max_positions"],
)
def test_a_training_cannot_start_from_weights_of_another_model(changes, difference):
    """Settings that change no weights, such as layer_drop, may differ."""
    start_model = model_settings()

    assert model_settings(**changes).difference(start_model) == difference


def test_a_training_cannot_start_from_another_number_of_learned_positions():
    """Each learned position has weights, unlike sinusoidal ones."""
    start_model = model_settings(positional_encoding="learned")
    longer_model = model_settings(positional_encoding="learned", max_positions=2000)

    assert longer_model.difference(start_model) == (
        "model.max_positions is 2000, but 1024 in the model that the training starts from"
    )


def test_a_start_from_a_system_has_it_as_parent():
    assert InitFrom(system="a", corpus="b").parent == ("a", "b")


def test_a_start_from_a_folder_has_no_parent():
    assert InitFrom(folder="a").parent is None


def test_the_size_of_an_update_is_counted_in_tokens():
    assert train_settings(tokens_per_update=400).update_size == ("tokens_per_update", 400)


def test_the_size_of_an_update_is_counted_in_sentences():
    settings = train_settings(tokens_per_update=None, sentences_per_update=8)

    assert settings.update_size == ("sentences_per_update", 8)


@pytest.mark.parametrize(
    ("limits", "expected_updates"),
    [
        pytest.param({}, 10_000, id="max_updates"),
        pytest.param({"max_updates": None, "patience": 1}, None, id="no limit"),
        # 1,001 / 400 tokens are 2.5 updates per epoch. Updates continue in the next epoch.
        pytest.param({"max_updates": None, "max_epochs": 1}, 3, id="2.5 updates"),
        pytest.param({"max_updates": None, "max_epochs": 2}, 6, id="5.005 updates"),
        pytest.param({"max_updates": None, "max_epochs": 3}, 8, id="7.5 updates"),
        pytest.param({"max_updates": 7, "max_epochs": 3}, 7, id="max_updates comes first"),
        pytest.param({"max_updates": 9, "max_epochs": 3}, 8, id="max_epochs comes first"),
    ],
)
def test_a_training_in_tokens_ends_after_its_updates_or_epochs(limits, expected_updates):
    settings = train_settings(tokens_per_update=400, **limits)

    assert settings.update_limit(target_tokens=1001, sentence_pairs=33) == expected_updates


@pytest.mark.parametrize(
    ("limits", "expected_updates"),
    [
        # 33 / 8 sentences are 4 full updates per epoch, and one of the last sentence.
        pytest.param({"max_updates": None, "max_epochs": 1}, 5, id="one epoch"),
        pytest.param({"max_updates": None, "max_epochs": 3}, 15, id="three epochs"),
        pytest.param({"max_updates": 14, "max_epochs": 3}, 14, id="max_updates comes first"),
    ],
)
def test_a_training_in_sentences_ends_after_its_updates_or_epochs(limits, expected_updates):
    settings = train_settings(tokens_per_update=None, sentences_per_update=8, **limits)

    assert settings.update_limit(target_tokens=1001, sentence_pairs=33) == expected_updates


@pytest.mark.parametrize(
    "settings", [{"last": 5}, {"best": 2, "ensemble": True}, {"ema": True}], ids=str
)
def test_an_average_lists_the_settings_that_choose_its_checkpoints(settings):
    assert Average(**settings).chosen == settings


def test_adam_has_betas_and_eps_by_default():
    """The defaults are those of the Transformer paper (Vaswani et al. 2017)."""
    adam = Optimizer(name="adam", weight_decay=0.1)

    assert adam.betas == (0.9, 0.98)
    assert adam.eps == 1e-9
    assert adam.momentum is None


def test_sgd_has_momentum_by_default():
    """Betas and eps belong to Adam."""
    sgd = Optimizer(name="sgd")

    assert sgd.betas is None
    assert sgd.eps is None
    assert sgd.momentum == 0.0


def test_settings_of_an_optimizer_replace_its_defaults():
    adamw = Optimizer(name="adamw", betas=(0.5, 0.6), eps=1e-3)

    assert adamw.betas == (0.5, 0.6)
    assert adamw.eps == 1e-3


@pytest.mark.parametrize(
    ("schedule", "expected_updates"),
    [
        pytest.param(
            LrSchedule(inverse_sqrt=InverseSqrt(lr=0.1, warmup_updates=7)), 7, id="inverse_sqrt"
        ),
        pytest.param(LrSchedule(noam=Noam(warmup_updates=8)), 8, id="noam"),
        pytest.param(
            LrSchedule(cosine=Cosine(lr=0.1, warmup_updates=9, max_updates=20)), 9, id="cosine"
        ),
        pytest.param(LrSchedule(constant=Constant(lr=0.1)), 0, id="constant"),
    ],
)
def test_a_schedule_has_the_warmup_of_its_kind(schedule, expected_updates):
    assert schedule.warmup_updates == expected_updates


@pytest.mark.parametrize(
    ("settings", "description"),
    [
        pytest.param({}, "", id="beam search"),
        pytest.param({"sampling": Sampling()}, "drawn from all tokens", id="sampling"),
        pytest.param(
            {"sampling": Sampling(top_k=10)},
            "drawn from the 10 most probable tokens",
            id="top-k sampling",
        ),
        pytest.param(
            {"noise": Noise(drop=0.2, shuffle=1)}, "drop 0.2, blank 0.1, shuffle 1", id="noise"
        ),
    ],
)
def test_a_synthetic_text_describes_how_it_is_translated(settings, description):
    assert SyntheticText("own", "base", "back", **settings).method == description
