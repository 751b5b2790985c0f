"""oneDNN's products are torch's own, and so are their gradients."""

from dataclasses import dataclass, replace

import pytest
import torch
from torch import nn

import requirements
from bleuprint.model import backends
from bleuprint.model import linear as module
from bleuprint.model.linear import Linear, pack_weights
from bleuprint.model.rows import pad_rows, unpad_rows
from bleuprint.runtime import processor
from processors import AMD, INTEL, OLD_AMD, OLD_INTEL


@dataclass(frozen=True)
class Machine:
    """A processor and an arithmetic, and who multiplies matrices of float32 there.

    Attributes:
        processor: The processor.
        is_portable: Whether the arithmetic is `portable`.
        uses_onednn: Whether oneDNN multiplies; otherwise torch, on Intel's processors by MKL.
    """

    processor: processor.Processor
    is_portable: bool
    uses_onednn: bool


MACHINES = {
    "AMD": Machine(AMD, is_portable=False, uses_onednn=True),
    "AMD, portable": Machine(AMD, is_portable=True, uses_onednn=True),
    "Intel": Machine(INTEL, is_portable=False, uses_onednn=False),
    "Intel, portable": Machine(INTEL, is_portable=True, uses_onednn=True),
    "old AMD": Machine(OLD_AMD, is_portable=False, uses_onednn=True),
    "old Intel": Machine(OLD_INTEL, is_portable=False, uses_onednn=False),
    "old Intel, portable": Machine(OLD_INTEL, is_portable=True, uses_onednn=True),
    "ARM": Machine(replace(AMD, architecture="aarch64"), is_portable=False, uses_onednn=False),
}


@pytest.fixture(params=MACHINES)
def uses_onednn(request, monkeypatch):
    """Pretend to be on each machine in turn; return whether oneDNN multiplies there."""
    if not backends.HAS_ONEDNN:
        pytest.skip(requirements.ONEDNN)
    machine = MACHINES[request.param]
    monkeypatch.setattr(processor, "THIS", machine.processor)
    monkeypatch.setattr(backends, "IS_PORTABLE", machine.is_portable)
    return machine.uses_onednn


def our_layer_and_torchs(input_width, output_width, bias):
    """Return a linear layer of ours, and torch's with the same weights."""
    torch.manual_seed(1)
    our_layer = Linear(input_width, output_width, bias=bias)
    torch_layer = nn.Linear(input_width, output_width, bias=bias)
    torch_layer.load_state_dict(our_layer.state_dict())
    return our_layer, torch_layer


INPUT_FORMS = ["rows", "one row", "no row", "sentences", "transposed", "every other", "expanded"]


def inputs_in_form(form, width):
    """Return random inputs in a form, that is, with a shape and an order in memory."""
    torch.manual_seed(2)
    inputs_by_form = {
        "rows": torch.randn(5, width),
        "one row": torch.randn(1, width),
        "no row": torch.randn(0, width),
        "sentences": torch.randn(3, 4, width),
        "transposed": torch.randn(width, 6).t(),
        "every other": torch.randn(8, 2, width)[:, 1],
        "expanded": torch.randn(1, width).expand(7, width),
    }
    return inputs_by_form[form].requires_grad_()


def output_and_gradients(layer, inputs):
    """Return the output of a layer, and the gradients by its input and parameters."""
    outputs = layer(inputs)
    loss = outputs.square().sum() + outputs.sum()
    gradients = torch.autograd.grad(loss, [inputs, *layer.parameters()])
    return [outputs, *gradients]


@pytest.mark.parametrize("this_processor", [AMD, INTEL], ids=["AMD", "Intel"])
@pytest.mark.parametrize(
    "min_onednn_gradient",
    [
        pytest.param(0, id="gradients by oneDNN"),
        pytest.param(1 << 17, id="gradients of small weights by torch"),
    ],
)
@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
@pytest.mark.parametrize("form", INPUT_FORMS)
def test_outputs_and_gradients_are_those_of_torchs_layer(
    form, bias, min_onednn_gradient, this_processor, monkeypatch
):
    """On AMD, oneDNN multiplies; on Intel, torch itself. Both layers have the same weights.

    The inputs come with different shapes and orders in memory.
    """
    monkeypatch.setattr(backends, "_MIN_ONEDNN_GRADIENT", {torch.float32: min_onednn_gradient})
    monkeypatch.setattr(processor, "THIS", this_processor)
    our_layer, torch_layer = our_layer_and_torchs(48, 33, bias)

    our_tensors = output_and_gradients(our_layer, inputs_in_form(form, 48))

    torch_tensors = output_and_gradients(torch_layer, inputs_in_form(form, 48))
    for our_tensor, torch_tensor in zip(our_tensors, torch_tensors, strict=True):
        torch.testing.assert_close(our_tensor, torch_tensor)


def test_rows_are_padded_to_few_different_numbers():
    """OneDNN compiles a kernel for each number of rows, which takes time and memory.

    Up to 2,048 rows are padded to a multiple of 16, and up to 4,096 to a multiple of 32.
    """
    padded_counts = set()
    for row_count in range(1, 4097):
        rows = pad_rows(torch.ones(1, row_count, 1))
        padded_counts.add(len(rows))

    multiples_of_16 = 2048 // 16
    multiples_of_32 = (4096 - 2048) // 32
    assert len(padded_counts) == multiples_of_16 + multiples_of_32
    for count in padded_counts:
        assert count % 16 == 0


def test_padded_rows_are_zeros_and_can_be_removed():
    """A batch of 5 sentences of 7 positions becomes a matrix of 35 rows, and 13 rows of zeros."""
    inputs = torch.randn(5, 7, 3)

    rows = pad_rows(inputs)

    # 5 x 7 = 35 rows are padded to the next multiple of 16.
    assert rows.shape == (48, 3)
    assert torch.count_nonzero(rows[35:]) == 0
    assert torch.equal(unpad_rows(rows, (5, 7)), inputs)


@pytest.mark.parametrize("form", INPUT_FORMS)
def test_a_layer_with_packed_weights_gives_the_same_outputs(form, uses_onednn):
    """OneDNN packs weights in its own order, in which products are faster.

    On machines where oneDNN does not multiply, the layer stays as it is.
    """
    our_layer, torch_layer = our_layer_and_torchs(48, 33, bias=True)
    pack_weights(our_layer)
    inputs = inputs_in_form(form, 48)

    with torch.inference_mode():
        outputs = our_layer(inputs)
        expected_outputs = torch_layer(inputs)

    torch.testing.assert_close(outputs, expected_outputs)
    if uses_onednn:
        assert our_layer.packed is not None
        assert our_layer.packed.is_mkldnn
    else:
        assert our_layer.packed is None


@pytest.mark.usefixtures("uses_onednn")
@pytest.mark.parametrize("form", INPUT_FORMS)
def test_a_layer_with_packed_weights_has_gradients_of_its_own_weight(form):
    """Packed weights are a copy; the gradient belongs to the weight that is trained and saved."""
    our_layer, torch_layer = our_layer_and_torchs(48, 33, bias=True)
    pack_weights(our_layer)
    inputs = inputs_in_form(form, 48)

    (our_gradient,) = torch.autograd.grad(our_layer(inputs).sum(), our_layer.weight)

    (torch_gradient,) = torch.autograd.grad(torch_layer(inputs).sum(), torch_layer.weight)
    torch.testing.assert_close(our_gradient, torch_gradient)


@pytest.mark.usefixtures("uses_onednn")
def test_packed_weights_are_not_saved():
    """Saved models must load on machines with another order of packed weights."""
    our_layer, torch_layer = our_layer_and_torchs(48, 33, bias=True)

    pack_weights(our_layer)

    assert our_layer.state_dict().keys() == torch_layer.state_dict().keys()


@pytest.fixture
def onednn_products(monkeypatch):
    """Return a list that gets an entry for each product that oneDNN computes."""
    products = []
    original_product = module._onednn_product

    def recording_product(*arguments):
        products.append(arguments)
        return original_product(*arguments)

    monkeypatch.setattr(module, "_onednn_product", recording_product)
    return products


def test_onednn_computes_outputs_on_its_machines(uses_onednn, onednn_products):
    """On other machines, such as ARM, torch multiplies. `onednn_products` logs what oneDNN does."""
    our_layer, _ = our_layer_and_torchs(8, 8, bias=True)

    with torch.inference_mode():
        our_layer(torch.randn(2, 8))

    expected_count = 1 if uses_onednn else 0
    assert len(onednn_products) == expected_count


@pytest.mark.parametrize(
    ("smallest_weight", "products_of_onednn"),
    [
        # The output and the gradient of the input; torch computes the gradient of the weight.
        pytest.param(65, 2, id="torch, one element too few"),
        # The output, and the gradients of the input and of the weight.
        pytest.param(64, 3, id="oneDNN, just enough elements"),
    ],
)
def test_onednn_computes_gradients_of_large_weights_only(
    uses_onednn, onednn_products, monkeypatch, smallest_weight, products_of_onednn
):
    """The weight has 8 x 8 = 64 elements.

    Args:
        uses_onednn: Whether oneDNN multiplies on this machine; if it does not, torch does.
        onednn_products: The products that oneDNN computes.
        monkeypatch: pytest's fixture.
        smallest_weight: The elements of the smallest weight whose gradient oneDNN computes.
        products_of_onednn: How many products of this layer oneDNN computes where it is used.
    """
    monkeypatch.setattr(backends, "_MIN_ONEDNN_GRADIENT", {torch.float32: smallest_weight})
    our_layer, _ = our_layer_and_torchs(8, 8, bias=True)

    our_layer(torch.randn(2, 8, requires_grad=True)).sum().backward()

    expected_count = products_of_onednn if uses_onednn else 0
    assert len(onednn_products) == expected_count


@pytest.mark.usefixtures("uses_onednn")
def test_torch_computes_products_in_float64(onednn_products):
    """OneDNN cannot multiply float64, on any machine. `onednn_products` logs its products."""
    our_layer, _ = our_layer_and_torchs(8, 8, bias=True)

    outputs = our_layer.double()(torch.randn(2, 8).double())

    assert outputs.dtype == torch.float64
    assert onednn_products == []


@pytest.mark.parametrize(
    ("this_processor", "is_onednn_expected"),
    [
        pytest.param(AMD, True, id="AMD"),
        pytest.param(INTEL, True, id="Intel"),
        pytest.param(OLD_AMD, False, id="old AMD"),
        pytest.param(OLD_INTEL, False, id="old Intel"),
    ],
)
def test_onednn_multiplies_in_bfloat16_where_the_processor_does(
    this_processor, is_onednn_expected, monkeypatch
):
    """New processors of both vendors have instructions for bfloat16; old ones would emulate it."""
    monkeypatch.setattr(backends, "HAS_ONEDNN", True)
    monkeypatch.setattr(processor, "THIS", this_processor)

    assert backends.onednn_multiplies(torch.bfloat16) == is_onednn_expected


@pytest.mark.parametrize(
    "this_processor", [AMD, INTEL, OLD_AMD, OLD_INTEL], ids=["AMD", "Intel", "old AMD", "old Intel"]
)
def test_onednn_never_multiplies_in_float16(this_processor, monkeypatch):
    """OneDNN multiplies in float32, and in bfloat16 where the processor has instructions for it."""
    monkeypatch.setattr(backends, "HAS_ONEDNN", True)
    monkeypatch.setattr(processor, "THIS", this_processor)

    assert not backends.onednn_multiplies(torch.float16)


@pytest.mark.parametrize("this_processor", [AMD, INTEL], ids=["AMD", "Intel"])
@pytest.mark.parametrize("rows", [slice(0, 10), slice(10, None)], ids=["first", "last"])
def test_some_rows_of_a_weight_multiply_like_a_weight_of_their_own(
    rows, this_processor, monkeypatch
):
    """Cross-attention computes keys and values by the last rows of a matrix for all three.

    A part of a matrix does not begin where its memory begins, which a library may assume.
    """
    monkeypatch.setattr(processor, "THIS", this_processor)
    torch.manual_seed(3)
    weight = torch.randn(30, 8)
    bias = torch.randn(30)
    inputs = torch.randn(4, 8)

    outputs = module.linear(inputs, weight[rows], bias[rows])

    torch.testing.assert_close(outputs, inputs @ weight[rows].T + bias[rows])
