"""What the libraries of arithmetic do in this process, read back before `portable` is believed.

Environment variables are requests: a library may prefer another variable, or a preloaded library
may take its place. Hence the state is read where the libraries tell it, and a fixed computation is
compared with its known bytes, which also covers what they do not tell, such as the instruction set
of oneDNN.

torch is imported in the functions: reading the names of variables does not need it.
"""

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

# Imported where it is used: stages read this module before they restart, and torch takes seconds.
if TYPE_CHECKING:
    from torch import Tensor

# Variables of these libraries choose instructions, threads, or the order of a sum. Those that start
# with one of these prefixes are removed before a portable computation.
LIBRARY_PREFIXES = (
    *("OMP_", "GOMP_", "KMP_", "TBB_"),  # threads: GNU's, Intel's and LLVM's OpenMP
    *("MKL_", "OPENBLAS_", "GOTO_", "BLIS_", "FLEXIBLAS"),  # products
    *("ONEDNN_", "DNNL_", "MKLDNN_", "FBGEMM_"),
    *("ATEN_", "TORCH_LINEAR_", "TORCH_MKLDNN_", "NPY_", "LRU_CACHE_CAPACITY"),
)
# Variables that other programs rely on stay; one of them is the likely cause of a deviation.
_SUSPECTS = ("LD_", "GLIBC_TUNABLES", "TORCH", "PYTORCH", *LIBRARY_PREFIXES)

# The SHA-256 of `probe`, by the version of torch. For a new version, add the hash that
# tests/runtime/test_arithmetic_state.py prints, once it is equal on processors of both vendors.
PROBE_DIGESTS = {
    "2.13.0+cpu": "a2a04483556f03b3b557c1e0f14dbb6e1485d01f5c944e2e14ce853ed0cbd858",
}


def library_variables(environment: Mapping[str, str]) -> set[str]:
    """Return the names of the variables in `environment` that belong to a library of arithmetic."""
    return {name for name in environment if name.startswith(LIBRARY_PREFIXES)}


def describe_deviation() -> str | None:
    """Return what is not as portable arithmetic needs it, as a clause for a message; None: nothing.

    The test computation comes last: it is of no use where a library tells that it differs.
    """
    import torch

    threads = torch.get_num_threads()
    mkl_threads = _mkl_threads(torch.__config__.parallel_info())
    precision = torch.get_float32_matmul_precision()
    if threads != 1:
        return f"torch computes with {threads} threads instead of 1"
    if mkl_threads not in (None, 1):
        return f"MKL computes with {mkl_threads} threads instead of 1"
    if torch.get_default_dtype() != torch.float32:
        return f"torch's default type is {torch.get_default_dtype()} instead of torch.float32"
    if precision != "highest":
        return f"torch's precision of float32 products is {precision!r} instead of 'highest'"
    if torch.is_autocast_enabled("cpu"):
        return "torch computes in a type of its own choice (autocast)"
    if not torch.backends.mkldnn.enabled:
        return "oneDNN is switched off"
    if not bool((torch.full((64,), 2.0**-126) * 0.5).all()):
        return "numbers below 2^-126 are rounded to 0 (denormals)"
    expected = PROBE_DIGESTS.get(torch.__version__)
    if expected is not None and probe_digest() != expected:
        return "a test computation gives other bytes than elsewhere"
    return None


def list_suspect_variables(known: Mapping[str, str]) -> str:
    """Return the variables of this process's environment that may cause a deviation, as text.

    Args:
        known: Variables that cause none, by their names and values.
    """
    variables = {name: text for name, text in os.environ.items() if name.startswith(_SUSPECTS)}
    unknown = sorted(variables.items() - known.items())
    return ", ".join(f"{name}={text}" for name, text in unknown)


def probe_digest() -> str:
    """Return the SHA-256 of the results of the operations that training and search use.

    Products by MKL and oneDNN, sums, elementary functions and random numbers, with their gradients;
    takes about 0.1 s. The sizes are such that two threads, or wider registers, sum in another
    order.
    """
    import torch

    digest = hashlib.sha256()
    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        torch.manual_seed(1)
        for result in _results():
            digest.update(result.detach().contiguous().numpy().tobytes())
    digest.update(repr([step**-0.5 for step in range(1, 400)]).encode())
    return digest.hexdigest()


def _results() -> Iterator["Tensor"]:
    """The results of the computation that `probe` hashes."""
    import torch
    from torch.nn import functional

    rows, width, inner, heads, length = 640, 96, 200, 4, 40
    x = torch.randn(rows, width, requires_grad=True)
    weight = torch.randn(inner, width)
    # A product by oneDNN, where this build of torch has it.
    if torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        yield torch.ops.mkldnn._linear_pointwise(x.detach(), weight, None, "none", [], "")
    hidden = functional.linear(x, weight)
    for function in (torch.relu, functional.gelu, functional.silu, torch.sigmoid):
        yield function(hidden)
    yield torch.exp(hidden.detach().clamp(-80, 80))
    # Not torch.sqrt, which nothing here uses: MKL's starts from an estimate of the processor's own.
    yield torch.rsqrt(hidden.detach().abs() + 0.5)
    for function in (torch.sin, torch.cos):
        yield function(hidden.detach())
    normal = functional.layer_norm(hidden, (inner,), torch.ones(inner), torch.zeros(inner))
    dropped = functional.dropout(normal, 0.1)
    labels = torch.randint(inner, (rows,))
    loss = functional.cross_entropy(dropped, labels, reduction="sum", label_smoothing=0.1)
    query, key, value = x.view(rows // length, length, heads, -1).transpose(1, 2).unbind(0)[:3]
    attended = functional.scaled_dot_product_attention(query[None], key[None], value[None])
    logits = torch.bmm(x.view(heads, -1, width), x.view(heads, -1, width).transpose(1, 2))
    mixed = torch.bmm(logits.mul(width**-0.5).softmax(-1), x.view(heads, -1, width))
    total = loss + attended.square().sum() + mixed.square().sum() + x.exp().mean()
    (gradient,) = torch.autograd.grad(total, x)
    yield from (loss, attended, logits, mixed, total, gradient)
    yield gradient.norm()
    yield hidden.detach().topk(8).values
    yield torch.zeros(inner, width).index_add_(0, labels, x.detach())


def _mkl_threads(parallel_info: str) -> int | None:
    """The number of MKL's threads in torch's description of itself; None if torch has no MKL."""
    found = re.search(r"mkl_get_max_threads\(\) : (\d+)", parallel_info)
    return int(found[1]) if found else None
