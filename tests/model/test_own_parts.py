"""Parts of the model that are own code: their results, and what is refused before a training."""

import dataclasses

import pytest
import torch

import systems
from bleuprint.config.system import Model
from bleuprint.decoding.ctranslate2_convert import convert
from bleuprint.model.backends import can_pack
from bleuprint.model.marian_config import check_expressible
from bleuprint.runtime.errors import UserError
from bleuprint.training.dry_run import check_model
from models import SHAPE, SOURCE, TARGET, model_of, trained_model_of
from own_code import PLAIN_PARTS, own_code_example, write_module


@pytest.fixture(autouse=True)
def project(tmp_path, monkeypatch):
    """Work in an empty project, whose folder own/ the test fills."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def copy_weights(built_in, own):
    """Copy the weights of a built-in model into a model with own parts of the same names."""
    weights = dict(built_in.named_parameters())
    with torch.no_grad():
        for name, parameter in own.named_parameters():
            parameter.copy_(weights[name.replace("own.", "")])


def module_of(name, body, base="nn.Module", head="def __init__(self, settings, kind)"):
    """Return a module with one class, whose methods besides the constructor are given."""
    return (
        f"import torch\nfrom torch import nn\n\nclass {name}({base}):\n    {head}:\n"
        f"        super().__init__()\n{body}"
    )


for_each_part = pytest.mark.parametrize(
    "parts",
    [
        pytest.param(["positions"], id="positions"),
        pytest.param(["attention"], id="attention"),
        pytest.param(["feed_forward"], id="feed-forward network"),
        pytest.param(["layer"], id="layers"),
        pytest.param(["positions", "attention", "feed_forward"], id="all but layers"),
    ],
)


@for_each_part
def test_the_built_in_parts_written_as_own_code_give_the_same_logits(project, parts):
    """The second sentence has padding. The own code has the weights of the built-in model."""
    write_module(project, "plain", PLAIN_PARTS)
    built_in = trained_model_of()
    own = model_of(**dict.fromkeys(parts, "own.plain"))
    copy_weights(built_in, own)

    expected_logits = built_in(SOURCE, TARGET)
    logits = own(SOURCE, TARGET)

    torch.testing.assert_close(logits[0], expected_logits[0])
    torch.testing.assert_close(logits[1, :2], expected_logits[1, :2])


@for_each_part
def test_each_step_of_a_search_with_own_code_gives_the_logits_of_the_built_in_model(project, parts):
    """The search keeps two hypotheses of each sentence, exchanges them, and drops a sentence."""
    write_module(project, "plain", PLAIN_PARTS)
    built_in = trained_model_of()
    own = model_of(**dict.fromkeys(parts, "own.plain"))
    copy_weights(built_in, own)
    steps = [
        # The tokens of the step, and which hypotheses and sentences are kept after it.
        ([1, 1], [0, 0, 1, 1], None),
        ([6, 7, 8, 9], [1, 0, 3, 3], None),
        ([4, 5, 6, 7], [3, 2], [1]),
        ([8, 9], [0, 1], None),
    ]

    logits_of_models = []
    for model in (built_in, own):
        cache = model.init_cache(SOURCE)
        all_logits = []
        for tokens, hypotheses, sentences in steps:
            logits, cache = model.step(torch.tensor(tokens), cache)
            all_logits.append(logits)
            kept = None if sentences is None else torch.tensor(sentences)
            cache = cache.reorder(torch.tensor(hypotheses), kept)
        logits_of_models.append(torch.cat(all_logits))

    expected_logits, own_logits = logits_of_models
    torch.testing.assert_close(own_logits, expected_logits)


@for_each_part
def test_the_gradients_of_own_code_are_those_of_the_built_in_parts(project, parts):
    write_module(project, "plain", PLAIN_PARTS)
    built_in = trained_model_of()
    own = model_of(**dict.fromkeys(parts, "own.plain"))
    copy_weights(built_in, own)

    for model in (built_in, own):
        model(SOURCE[:1], TARGET[:1]).square().sum().backward()

    expected_gradients = {name: weight.grad for name, weight in built_in.named_parameters()}
    for name, weight in own.named_parameters():
        # The sinusoids are in float32, the rest in float64.
        expected = expected_gradients[name.replace("own.", "")]
        torch.testing.assert_close(weight.grad, expected, atol=1e-5, rtol=1e-5)


def test_a_score_bias_is_added_to_the_scores_of_self_attention(project):
    """Softmax(scores + bias) = softmax(scores) exp(bias), normalized: the weights show the bias.

    The bias of this example depends on the distance: 0.5 for each position to the right.
    """
    bias = (
        "        positions = torch.arange(length, dtype=torch.float64)\n"
        "        distances = positions - positions[:, None]\n"
        "        return (0.5 * distances).expand(4, length, length)\n"  # The model has 4 heads.
    )
    module = module_of("Positions", f"    def score_bias(self, length):\n{bias}")
    write_module(project, "right", module)
    without = trained_model_of(encoder_layers=1, decoder_layers=1, positional_encoding="none")
    with_bias = trained_model_of(encoder_layers=1, decoder_layers=1, positions="own.right")

    plain = without.attention_weights(SOURCE, TARGET)
    biased = with_bias.attention_weights(SOURCE, TARGET)

    distances = torch.arange(5) - torch.arange(5)[:, None]
    factors = torch.exp(0.5 * distances)
    for kind, length in (("encoder", 5), ("decoder", 4)):
        products = getattr(plain, kind)[0] * factors[:length, :length]
        expected = products / products.sum(-1, keepdim=True)
        torch.testing.assert_close(getattr(biased, kind)[0], expected)


def test_the_score_bias_of_the_documented_example_is_learned(project):
    """Its gradient is not 0, and steps of a search give the logits of decoding at once."""
    write_module(project, "relative", own_code_example())
    model = trained_model_of(positions="own.relative")
    expected_logits = model(SOURCE, TARGET)

    expected_logits.square().sum().backward()
    for name, weight in model.named_parameters():
        if "positions" in name:
            assert weight.grad.abs().sum() > 0, name

    cache = model.init_cache(SOURCE)
    for position in range(2):  # Both sentences have so many tokens.
        logits, cache = model.step(TARGET[:, position], cache)
        torch.testing.assert_close(logits[:, 2:], expected_logits[:, position, 2:])


def test_own_code_keeps_the_weights_that_its_constructor_sets(project):
    write_module(
        project,
        "sevens",
        "from torch import nn\n\n"
        "class FeedForward(nn.Linear):\n"
        "    def __init__(self, settings, kind):\n"
        "        super().__init__(settings.d_model, settings.d_model)\n"
        "        nn.init.constant_(self.weight, 7)\n",
    )

    model = model_of(feed_forward="own.sevens")

    for layer in [*model.encoder, *model.decoder]:
        assert (layer.feed_forward.own.weight == 7).all()


def test_activations_in_16_bits_reach_own_code_with_weights_in_32_bits(project):
    """As in a training with `precision: bfloat16`."""
    write_module(project, "plain", PLAIN_PARTS)
    model = model_of(layer="own.plain").float()
    model.activation_dtype = torch.bfloat16

    memory, _ = model.encode(SOURCE)

    assert memory.dtype == torch.bfloat16
    model.activation_dtype = None
    expected, _ = model.encode(SOURCE)
    torch.testing.assert_close(memory[0].float(), expected[0], atol=0.05, rtol=0.05)


def test_own_attention_is_trained_on_padded_batches(monkeypatch):
    """Packed batches, for GPUs such as the simulated one, have no sentences for own code."""
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: (9, 0))
    gpu = torch.device("cuda")
    built_in = dataclasses.replace(SHAPE, d_k=16, d_v=16)

    assert can_pack(built_in, torch.bfloat16, gpu)
    for part in ("positions", "attention", "layer"):
        settings = dataclasses.replace(built_in, **{part: "own.plain"})
        assert not can_pack(settings, torch.bfloat16, gpu)
    own_feed_forward = dataclasses.replace(built_in, feed_forward="own.plain")
    assert can_pack(own_feed_forward, torch.bfloat16, gpu)


def test_messages_name_own_code_without_its_fingerprint():
    settings = Model(attention=f"own.part@{'ab' * 8}")

    assert settings.replaced_parts == ["model.attention own.part"]


def test_own_positions_replace_the_built_in_ones():
    settings = Model(positions="own.relative", positional_encoding="rotary")

    assert settings.positional_encoding == "none"


# For each mistake: the setting, the module, and the message.
MISTAKES = {
    "wrong shape": (
        "attention",
        module_of(
            "Attention",
            "    def forward(self, query, memory, mask):\n        return memory[:, :1]\n",
        ),
        r"own/part.py:7: Attention.forward returns a tensor of shape \(2, 1, 16\), but must return "
        r"a tensor of shape \(2, 4, 16\)",
    ),
    "wrong signature": (
        "attention",
        module_of("Attention", "    def forward(self, query, mask):\n        return query\n"),
        r"own/part.py:7: Attention.forward must take the arguments self, query, memory, mask",
    ),
    "wrong constructor": (
        "attention",
        module_of("Attention", "", head="def __init__(self)"),
        r"own/part.py:4: Attention.__init__ must take the arguments self, settings, kind",
    ),
    "exception in a method": (
        "feed_forward",
        module_of("FeedForward", "    def forward(self, x):\n        return x / self.siez\n"),
        r"own/part.py:8: AttributeError: 'FeedForward' object has no attribute 'siez'",
    ),
    "exception in a constructor": (
        "feed_forward",
        module_of("FeedForward", "        self.size = settings.d_modle\n"),
        r"own/part.py:7: AttributeError: 'Model' object has no attribute 'd_modle'",
    ),
    "exception at the import": (
        "feed_forward",
        "import torhc\n",
        r"own/part.py:1: ModuleNotFoundError: No module named 'torhc'",
    ),
    "not a tensor": (
        "feed_forward",
        module_of("FeedForward", "    def forward(self, x):\n        return x, x\n"),
        r"own/part.py:7: FeedForward.forward returns a value of the type tuple, but must return a "
        r"tensor of shape \(16, 16\)",
    ),
    "not a module": (
        "feed_forward",
        "import torch\n\nclass FeedForward:\n    pass\n",
        "own/part.py:3: FeedForward must inherit from torch.nn.Module",
    ),
    "not a class": (
        "feed_forward",
        "FeedForward = 3\n",
        "own.part must define a class FeedForward that inherits from torch.nn.Module",
    ),
    "no method": (
        "positions",
        module_of("Positions", ""),
        r"own/part.py:4: Positions needs a method forward, score_bias, or both",
    ),
    "bias of another shape": (
        "positions",
        module_of(
            "Positions", "    def score_bias(self, length):\n        return torch.zeros(length)\n"
        ),
        r"own/part.py:7: Positions.score_bias returns a tensor of shape \(4,\), but must return a "
        r"tensor of shape \(4, 4, 4\)",
    ),
    "state outside of parameters": (
        "feed_forward",
        "from torch import nn\n\nclass FeedForward(nn.BatchNorm1d):\n"
        "    def __init__(self, settings, kind):\n        super().__init__(settings.d_model)\n",
        r"own/part.py:3: FeedForward has the buffer num_batches_tracked, which checkpoints do not "
        r"contain",
    ),
    "later tokens": (
        "attention",
        module_of(
            "Attention",
            "    def forward(self, query, memory, mask):\n"
            "        return query + memory.mean(1, keepdim=True)\n",
        ),
        r"model.attention own.part: the output at a target position depends on later tokens",
    ),
    "padding": (
        "layer",
        module_of(
            "EncoderLayer",
            "    def forward(self, x, mask):\n        return x + x.mean(1, keepdim=True)\n",
        ),
        r"model.layer own.part: the output for a sentence depends on padding",
    ),
    "NaN": (
        "feed_forward",
        module_of("FeedForward", "    def forward(self, x):\n        return x.log() * 0\n"),
        r"model.feed_forward own.part: the decoder returns NaN or infinity",
    ),
}


@pytest.mark.parametrize(("setting", "module", "message"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_in_own_code_is_one_line_before_the_training(project, setting, module, message):
    """The line names the file, and for code that fails also its line."""
    write_module(project, "part", module)

    with pytest.raises(UserError, match=f"^{message}") as error:
        check_model(model_of(**{setting: "own.part"}).float())

    assert "\n" not in str(error.value)


def test_correct_own_code_passes_the_check(project):
    write_module(project, "plain", PLAIN_PARTS)

    check_model(model_of(positions="own.plain", layer="own.plain").float())


def test_a_score_bias_with_own_attention_is_refused(project):
    """Own attention computes its scores itself, so that the bias would be ignored."""
    write_module(project, "plain", PLAIN_PARTS)
    write_module(project, "relative", own_code_example())

    with pytest.raises(UserError, match="score_bias needs the built-in attention"):
        model_of(positions="own.relative", attention="own.plain")


def test_attention_weights_of_own_attention_are_refused(project):
    write_module(project, "plain", PLAIN_PARTS)

    with pytest.raises(UserError, match="own code computes the attention of this model"):
        model_of(attention="own.plain").attention_weights(SOURCE, TARGET)


@pytest.mark.parametrize("setting", ["replace_unk", "attention"])
def test_settings_that_show_attention_weights_are_refused_with_own_attention(setting):
    settings = {"model": systems.model(attention="own.plain")}

    with pytest.raises(ValueError, match=f"decode.{setting} needs the weights of the built-in"):
        systems.system(decode=systems.decode(**{setting: True}), **settings)


def test_the_export_names_the_part_that_ctranslate2_does_not_support(project):
    write_module(project, "plain", PLAIN_PARTS)

    with pytest.raises(UserError, match=r"CTranslate2 does not support model.layer own.plain"):
        convert(model_of(layer="own.plain"), ([], []), project / "exported")


def test_the_marian_format_cannot_describe_own_code():
    settings = dataclasses.replace(SHAPE, feed_forward="own.plain")

    with pytest.raises(UserError, match="cannot describe a model with own code"):
        check_expressible(settings)


def test_weights_are_not_loaded_into_own_code_that_has_changed_since(project):
    """model.json contains the name with the fingerprint of the code that was trained."""
    write_module(project, "plain", PLAIN_PARTS)

    message = "own/plain.py has changed: own.plain@0{16} is expected, but it is own.plain@"
    with pytest.raises(UserError, match=message):
        model_of(layer="own.plain@" + "0" * 16)
