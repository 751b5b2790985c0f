"""What torch and its libraries of arithmetic really do in this process.

`arithmetic: portable` promises the same bits on every processor. It sets environment variables, but
these are requests: a library may prefer another variable, or a preloaded library may take its
place. So the state is read back, where a library tells it, and a fixed computation (the probe) is
compared with its known bytes. The probe also shows what no library tells, such as the instruction
set of oneDNN.

torch is imported in the functions: stages read the names of variables from this module before they
restart, and loading torch takes seconds.
"""

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

# The variables of these libraries choose instructions, threads, or the order of a sum. Variables
# that start with one of these prefixes are removed before a portable computation.
_THREAD_PREFIXES = ("OMP_", "GOMP_", "KMP_", "TBB_")
_PRODUCT_PREFIXES = ("MKL_", "OPENBLAS_", "GOTO_", "BLIS_", "FLEXIBLAS")
_NETWORK_PREFIXES = ("ONEDNN_", "DNNL_", "MKLDNN_", "FBGEMM_")
_TORCH_PREFIXES = ("ATEN_", "TORCH_LINEAR_", "TORCH_MKLDNN_", "NPY_", "LRU_CACHE_CAPACITY")
LIBRARY_PREFIXES = _THREAD_PREFIXES + _PRODUCT_PREFIXES + _NETWORK_PREFIXES + _TORCH_PREFIXES
# These variables are not removed, since other programs rely on them. If the arithmetic deviates,
# one of them is the likely cause.
_SUSPECT_PREFIXES = ("LD_", "GLIBC_TUNABLES", "TORCH", "PYTORCH", *LIBRARY_PREFIXES)

# The result of `probe_digest`, by the version of torch. For a new version, add the hash that
# tests/runtime/test_arithmetic_state.py prints, once it is equal on processors of both vendors.
PROBE_DIGESTS = {
    "2.13.0+cpu": "a2a04483556f03b3b557c1e0f14dbb6e1485d01f5c944e2e14ce853ed0cbd858",
}
# The sizes of the test computation.
_PROBE_ROWS = 640
_PROBE_WIDTH = 96
_PROBE_INNER_WIDTH = 200
_PROBE_HEADS = 4
_PROBE_SENTENCE_LENGTH = 40


def library_variables(environment: Mapping[str, str]) -> set[str]:
    """Return the names of environment variables that control arithmetic libraries, such as MKL.

    Args:
        environment: Environment variables and their values, such as `os.environ`.
    """
    return {name for name in environment if name.startswith(LIBRARY_PREFIXES)}


def describe_deviation() -> str | None:
    """Check that torch computes as `arithmetic: portable` promises: the same bits everywhere.

    The settings of the libraries are checked first, since a wrong setting explains itself. The last
    check compares the result of a test computation with the result on other machines.

    Returns:
        The first deviation, such as "oneDNN is switched off", for a message; None if there is none.
    """
    import torch

    threads = torch.get_num_threads()
    if threads != 1:
        return f"torch computes with {threads} threads instead of 1"
    mkl_threads = _mkl_threads(torch.__config__.parallel_info())
    if mkl_threads not in (None, 1):
        return f"MKL computes with {mkl_threads} threads instead of 1"
    if torch.get_default_dtype() != torch.float32:
        return f"torch's default type is {torch.get_default_dtype()} instead of torch.float32"
    precision = torch.get_float32_matmul_precision()
    if precision != "highest":
        return f"torch's precision of float32 products is {precision!r} instead of 'highest'"
    if torch.is_autocast_enabled("cpu"):
        return "torch computes in a type of its own choice (autocast)"
    if not torch.backends.mkldnn.enabled:
        return "oneDNN is switched off"
    if _rounds_denormals():
        return "numbers below 2^-126 are rounded to 0 (denormals)"
    expected_digest = PROBE_DIGESTS.get(torch.__version__)
    if expected_digest is not None and probe_digest() != expected_digest:
        return "a test computation gives other bytes than elsewhere"
    return None


def _mkl_threads(parallel_info: str) -> int | None:
    """Find the number of threads that MKL uses, Intel's arithmetic library.

    Args:
        parallel_info: How torch describes its libraries and threads.

    Returns:
        The number; None if torch was built without MKL.
    """
    match = re.search(r"mkl_get_max_threads\(\) : (\d+)", parallel_info)
    return int(match[1]) if match else None


def _rounds_denormals() -> bool:
    """Return whether the processor rounds very small (denormal) numbers to 0.

    Some programs set this to compute faster. 2^-126 is the smallest normal number of float32, so
    its half is denormal, and would become 0.
    """
    import torch

    # 64 numbers fill several vector registers, so that vector instructions compute them.
    halves = torch.full((64,), 2.0**-126) * 0.5
    return not bool(halves.all())


def list_suspect_variables(known: Mapping[str, str]) -> str:
    """List the environment variables that may have changed the arithmetic, for a message.

    Args:
        known: The variables that this program has set itself, with their values. They are listed
            only if another value was set since.

    Returns:
        The variables, in the form `NAME=VALUE, NAME=VALUE`.
    """
    suspects = []
    for name, value in sorted(os.environ.items()):
        controls_arithmetic = name.startswith(_SUSPECT_PREFIXES)
        if controls_arithmetic and known.get(name) != value:
            suspects.append(f"{name}={value}")
    return ", ".join(suspects)


def probe_digest() -> str:
    """Return the SHA-256 of the results of a test computation, to compare machines bit by bit.

    It uses the operations of training and search: products of matrices, sums, elementary functions,
    random numbers and gradients. The matrices are large, so that two threads or wider registers
    would sum their numbers in another order, which changes the last bits. The computation takes
    about 0.1 s and leaves torch's random numbers as they were.
    """
    import torch

    digest = hashlib.sha256()
    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        torch.manual_seed(1)
        for result in _probe_results():
            digest.update(result.detach().contiguous().numpy().tobytes())
    # Learning rates are computed by Python itself, as powers of the step.
    digest.update(repr([step**-0.5 for step in range(1, 400)]).encode())
    return digest.hexdigest()


def _probe_results() -> Iterator["Tensor"]:
    """Yield the results of a test computation, whose bytes show how this machine computes.

    Their hash is compared with a known one. It depends on every operation here, and on their order,
    since this determines which random numbers each of them gets.
    """
    import torch
    from torch.nn import functional

    x = torch.randn(_PROBE_ROWS, _PROBE_WIDTH, requires_grad=True)
    weight = torch.randn(_PROBE_INNER_WIDTH, _PROBE_WIDTH)
    # A product of matrices by the library oneDNN, if this build of torch has it.
    if torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        yield torch.ops.mkldnn._linear_pointwise(x.detach(), weight, None, "none", [], "")

    # A feed-forward layer, and functions that are applied to each number.
    hidden = functional.linear(x, weight)
    hidden_values = hidden.detach()
    for function in (torch.relu, functional.gelu, functional.silu, torch.sigmoid):
        yield function(hidden)
    yield torch.exp(hidden_values.clamp(-80, 80))
    # torch.sqrt is not tested: its result may differ between processors, and no model uses it.
    yield torch.rsqrt(hidden_values.abs() + 0.5)
    yield torch.sin(hidden_values)
    yield torch.cos(hidden_values)

    labels, loss = _probe_loss(hidden)
    attended, logits, mixed = _probe_attention(x)

    # Gradients, and what optimizers and search do with numbers.
    total = loss + attended.square().sum() + mixed.square().sum() + x.exp().mean()
    (gradient,) = torch.autograd.grad(total, x)
    yield from (loss, attended, logits, mixed, total, gradient)
    yield gradient.norm()
    yield hidden_values.topk(8).values
    yield torch.zeros(_PROBE_INNER_WIDTH, _PROBE_WIDTH).index_add_(0, labels, x.detach())


def _probe_loss(hidden: "Tensor") -> tuple["Tensor", "Tensor"]:
    """Compute the loss of a classification, with layer norm, dropout and label smoothing.

    Args:
        hidden: The inputs of the classification, (rows, classes).

    Returns:
        Random labels, (rows,), and the loss, a single number.
    """
    import torch
    from torch.nn import functional

    classes = hidden.size(1)
    scale = torch.ones(classes)
    shift = torch.zeros(classes)
    normalized = functional.layer_norm(hidden, (classes,), scale, shift)
    dropped = functional.dropout(normalized, 0.1)
    labels = torch.randint(classes, (len(hidden),))
    loss = functional.cross_entropy(dropped, labels, reduction="sum", label_smoothing=0.1)
    return labels, loss


def _probe_attention(x: "Tensor") -> tuple["Tensor", "Tensor", "Tensor"]:
    """Compute attention twice: by torch's own function, and by products of batches of matrices.

    Args:
        x: Random numbers, (rows, width), from which queries, keys and values are taken.

    Returns:
        The output of torch's function; of the attention by products, the scores before the softmax,
        and the output.
    """
    import torch
    from torch.nn import functional

    rows, width = x.shape
    sentences = x.view(
        rows // _PROBE_SENTENCE_LENGTH, _PROBE_SENTENCE_LENGTH, _PROBE_HEADS, -1
    ).transpose(1, 2)
    # Three sentences, (heads, length, head width). `[None]` makes a batch of one sentence.
    query, key, value = sentences.unbind(0)[:3]
    attended = functional.scaled_dot_product_attention(query[None], key[None], value[None])
    # The same view of x is created three times on purpose. With one shared view, torch would sum
    # the parts of the gradient of x in another order, and the known hash would change.
    logits = torch.bmm(
        x.view(_PROBE_HEADS, -1, width), x.view(_PROBE_HEADS, -1, width).transpose(1, 2)
    )
    weights = logits.mul(width**-0.5).softmax(-1)
    mixed = torch.bmm(weights, x.view(_PROBE_HEADS, -1, width))
    return attended, logits, mixed
