"""Settings of a system that fit each other, and what is computed from them."""

import pytest

from bleuprint.config.optimization import (
    Constant,
    Cosine,
    InverseSqrt,
    LrSchedule,
    Noam,
    Optimizer,
)
from bleuprint.config.synthetic import Noise, Sampling, SyntheticText
from bleuprint.config.system import Average, Decode, InitFrom, Model, System, Train


def train(**changes):
    return Train(**{"max_tokens": 100, "tokens_per_update": 400, "max_updates": 10_000, **changes})


def sentences(**changes):
    return train(tokens_per_update=None, sentences_per_update=8, **changes)


def model(**changes):
    return Model(
        **{
            "encoder_layers": 2,
            "decoder_layers": 3,
            "d_model": 12,
            "d_ff": 40,
            "heads": 3,
            "d_k": 4,
            "d_v": 4,
            **changes,
        }
    )


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: model(heads=5, d_k=0), "d_model 12 is not a multiple of heads 5: set d_k"),
        (lambda: model(heads=5, d_v=0), "d_model 12 is not a multiple of heads 5: set d_v"),
        (lambda: model(d_model=13), "d_model 13 is odd: sinusoidal encodings need it even"),
        (
            lambda: model(d_k=5, positional_encoding="rotary"),
            "d_k 5 is odd: rotary encodings turn pairs of dimensions",
        ),
        (InitFrom, "needs system and corpus, or a folder"),
        (lambda: InitFrom(system="a"), "needs system and corpus, or a folder"),
        (lambda: InitFrom(corpus="a"), "needs system and corpus, or a folder"),
        (lambda: InitFrom(system="a", folder="b"), "needs system and corpus, or a folder"),
        (
            lambda: InitFrom(system="a", corpus="b", folder="c"),
            "needs system and corpus, or a folder",
        ),
        (lambda: train(tokens_per_update=None), "needs one of tokens_per_update, sentences_per"),
        (lambda: train(sentences_per_update=8), "needs one of tokens_per_update, sentences_per"),
        (lambda: train(max_tokens=401), "max_tokens 401 is above tokens_per_update 400"),
        (lambda: train(max_updates=None), "needs max_updates, max_epochs or patience"),
        (
            lambda: train(save_interval=5, keep_interval=12),
            "keep_interval 12 is not a multiple of save_interval 5",
        ),
        (
            lambda: train(save_interval=5, validate_interval=12, keep_best=1),
            "validate_interval 12 is not a multiple of save_interval 5",
        ),
        (Average, "needs one of last, best, ema"),
        (lambda: Average(last=2, best=2), "needs one of last, best, ema"),
        (lambda: Average(best=2, ema=True), "needs one of last, best, ema"),
        (lambda: Average(last=1, ensemble=True), "ensemble: needs more than one checkpoint"),
        (lambda: Average(best=1, ensemble=True), "ensemble: needs more than one checkpoint"),
        (lambda: Average(ema=True, ensemble=True), "ensemble: needs more than one checkpoint"),
        (
            lambda: Decode(replace_unk=True, allow_unk=False),
            "replace_unk true needs allow_unk true",
        ),
        (lambda: Optimizer(momentum=0.5), "optimizer adam has no setting momentum"),
        (lambda: Optimizer(name="adamw", momentum=0.0), "optimizer adamw has no setting momentum"),
        (lambda: Optimizer(name="sgd", betas=(0.9, 0.98)), "optimizer sgd has no setting betas"),
        (lambda: Optimizer(name="sgd", eps=1e-9), "optimizer sgd has no setting eps"),
        (lambda: InverseSqrt(lr=0.1, warmup_init_lr=0.2), "warmup_init_lr 0.2 is above lr 0.1"),
        (
            lambda: Cosine(lr=0.1, warmup_updates=10, max_updates=10),
            "warmup_updates 10 must be below max_updates 10",
        ),
        (
            lambda: Cosine(lr=0.1, warmup_updates=1, max_updates=10, min_lr=0.2),
            "min_lr 0.2 is above lr 0.1",
        ),
        (LrSchedule, "needs one of inverse_sqrt, noam, constant, cosine"),
        (
            lambda: LrSchedule(noam=Noam(), constant=Constant(lr=0.1)),
            "needs one of inverse_sqrt, noam, constant, cosine",
        ),
        (
            lambda: SyntheticText("own", "base", "back", sampling=Sampling(), noise=Noise()),
            "sampling and noise: noise is for outputs of beam search",
        ),
    ],
)
def test_settings_that_do_not_fit_each_other(make, said):
    with pytest.raises(ValueError, match=said):
        make()


@pytest.mark.parametrize(
    "make",
    [
        lambda: model(d_model=13, positional_encoding="learned"),
        lambda: model(d_k=5),
        lambda: model(d_k=5, positional_encoding="learned"),
        lambda: model(d_v=5, positional_encoding="rotary"),
        lambda: model(heads=5),
        lambda: train(max_tokens=400),
        lambda: sentences(max_tokens=10_000),
        lambda: train(max_updates=None, max_epochs=1),
        lambda: train(max_updates=None, patience=1),
        lambda: train(save_interval=5, validate_interval=12, keep_interval=15),
        lambda: train(save_interval=5, validate_interval=15, keep_best=1),
        lambda: Average(last=2, ensemble=True),
        lambda: Average(best=2, ensemble=True),
        lambda: Average(last=1),
        lambda: Decode(precision="bfloat16"),
        lambda: Decode(replace_unk=True),
        lambda: Decode(allow_unk=False),
        lambda: Decode(min_len=1, no_repeat_ngram_size=2),
        lambda: InverseSqrt(lr=0.1, warmup_init_lr=0.1),
        lambda: Cosine(lr=0.1, warmup_updates=9, max_updates=10, min_lr=0.1),
    ],
)
def test_settings_at_the_edge_of_what_fits(make):
    assert make()


def system(**changes):
    return System(**{"train": train(), "model": model(), "average": Average(last=5), **changes})


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"decode": Decode(min_len=1024)},
            "decode.min_len 1024 leaves no place for EOS in model.max_positions 1024",
        ),
        ({"average": Average(ema=True)}, "training keeps no moving average without train.ema"),
        (
            {"arithmetic": "portable", "train": train(precision="bfloat16")},
            "arithmetic portable needs train.precision float32, not bfloat16",
        ),
        (
            {"arithmetic": "portable", "train": train(compile=True)},
            "arithmetic portable needs train.compile false, not true",
        ),
        (
            {"arithmetic": "portable", "decode": Decode(precision="bfloat16")},
            "arithmetic portable needs decode.precision float32, not bfloat16",
        ),
    ],
)
def test_parts_of_a_system_that_do_not_fit_each_other(changes, said):
    with pytest.raises(ValueError, match=said):
        system(**changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"decode": Decode(min_len=1023)},
        {"model": model(d_k=6, d_v=6)},
        {"average": Average(last=2, ensemble=True)},
        {"average": Average(ema=True), "train": train(ema=0.9)},
        {"train": train(ema=0.9)},
        {"arithmetic": "portable"},
        {"arithmetic": "portable", "train": train(compile=False)},
        {"train": train(precision="bfloat16", compile=True)},
    ],
)
def test_parts_of_a_system_that_fit_each_other(changes):
    assert system(**changes)


@pytest.mark.parametrize(
    ("changes", "weights"), [({}, 2 * 12 * 40), ({"activation": "swiglu"}, 3 * 12 * 40)]
)
def test_the_weights_of_a_feed_forward_network(changes, weights):
    assert model(**changes).feed_forward_weights == weights


def test_dimensions_of_a_head_are_those_of_the_model_divided_by_heads():
    chosen = model(d_model=18, heads=3, d_k=0, d_v=5)
    assert (chosen.d_k, chosen.d_v) == (6, 5)
    chosen = model(d_model=18, heads=3, d_k=5, d_v=0)
    assert (chosen.d_k, chosen.d_v) == (5, 6)


@pytest.mark.parametrize(
    ("changes", "difference"),
    [
        ({}, None),
        ({"d_ff": 41}, "model.d_ff is 41, but 40 in the model that the training starts from"),
        ({"norm": "pre"}, "model.norm is pre, but post in the model that the training starts from"),
        ({"layer_drop": 0.5}, None),
        ({"max_positions": 99}, None),
    ],
)
def test_weights_of_a_start_fit_a_model(changes, difference):
    assert model(**changes).difference(model()) == difference


def test_learned_positions_of_a_start_are_as_many():
    learned = model(positional_encoding="learned")
    longer = model(positional_encoding="learned", max_positions=2000)
    expected = "model.max_positions is 2000, but 1024 in the model that the training starts from"
    assert longer.difference(learned) == expected


def test_the_training_that_a_start_names():
    assert InitFrom(system="a", corpus="b").parent == ("a", "b")
    assert InitFrom(folder="a").parent is None


@pytest.mark.parametrize(
    ("settings", "size"),
    [(train(), ("tokens_per_update", 400)), (sentences(), ("sentences_per_update", 8))],
)
def test_the_size_of_an_update(settings, size):
    assert settings.update_size == size


@pytest.mark.parametrize(
    ("settings", "most"),
    [
        (train(), 10_000),
        (train(max_updates=None, patience=1), None),
        # 1,001 tokens an epoch in updates of 400, which go on into the next epoch
        (train(max_updates=None, max_epochs=1), 3),
        (train(max_updates=None, max_epochs=2), 6),
        (train(max_updates=None, max_epochs=3), 8),
        (train(max_updates=7, max_epochs=3), 7),
        (train(max_updates=9, max_epochs=3), 8),
        # 33 pairs an epoch in updates of 8, which end with the epoch
        (sentences(max_updates=None, max_epochs=1), 5),
        (sentences(max_updates=None, max_epochs=3), 15),
        (sentences(max_updates=14, max_epochs=3), 14),
    ],
)
def test_the_most_updates_on_a_text(settings, most):
    assert settings.update_limit(target_tokens=1001, sentence_pairs=33) == most


def test_what_an_average_has():
    assert Average(last=5).chosen == {"last": 5}
    assert Average(best=2, ensemble=True).chosen == {"best": 2, "ensemble": True}
    assert Average(ema=True).chosen == {"ema": True}


def test_defaults_of_optimizers():
    adam = Optimizer(name="adam", weight_decay=0.1)
    assert (adam.betas, adam.eps, adam.momentum) == ((0.9, 0.98), 1e-9, None)
    sgd = Optimizer(name="sgd")
    assert (sgd.betas, sgd.eps, sgd.momentum) == (None, None, 0.0)
    given = Optimizer(name="adamw", betas=(0.5, 0.6), eps=1e-3)
    assert (given.betas, given.eps) == ((0.5, 0.6), 1e-3)


@pytest.mark.parametrize(
    ("schedule", "updates"),
    [
        (LrSchedule(inverse_sqrt=InverseSqrt(lr=0.1, warmup_updates=7)), 7),
        (LrSchedule(noam=Noam(warmup_updates=8)), 8),
        (LrSchedule(cosine=Cosine(lr=0.1, warmup_updates=9, max_updates=20)), 9),
        (LrSchedule(constant=Constant(lr=0.1)), 0),
    ],
)
def test_updates_of_warmup(schedule, updates):
    assert schedule.warmup_updates == updates


@pytest.mark.parametrize(
    ("settings", "how"),
    [
        ({}, ""),
        ({"sampling": Sampling()}, "drawn from all tokens"),
        ({"sampling": Sampling(top_k=10)}, "drawn from the 10 most probable tokens"),
        ({"noise": Noise(drop=0.2, shuffle=1)}, "drop 0.2, blank 0.1, shuffle 1"),
    ],
)
def test_how_a_text_is_made(settings, how):
    assert SyntheticText("own", "base", "back", **settings).method == how
