"""Print hashes of what a small model computes, as JSON: in two updates and in a search.

On every processor, portable arithmetic must give the same hashes. The output also contains the name
of the processor, and the reason if this process does not compute in portable arithmetic.

The script may run on an emulated processor, so it imports little more than torch.
"""

import hashlib
import json
from pathlib import Path

import numpy as np
import torch

import systems
from bleuprint.dataset.batch import Batch, PairIds
from bleuprint.decoding.engine import Engine
from bleuprint.model.linear import pack_weights
from bleuprint.model.transformer import Transformer
from bleuprint.runtime.arithmetic_state import describe_deviation
from bleuprint.training.loss import batch_loss
from bleuprint.training.optimizer import FlatOptimizer

VOCABULARY = 301


def sentences(rng, count):
    """Return random sentences: lists of 3 to 11 token ids, which end in EOS (2).

    Args:
        rng: The random generator of NumPy.
        count: The number of sentences.
    """
    lengths = rng.integers(3, 12, count)
    return [[*rng.integers(4, VOCABULARY, length).tolist(), 2] for length in lengths]


def sha256(tensor):
    """Return the SHA-256 of a tensor's bytes."""
    return hashlib.sha256(tensor.detach().contiguous().numpy().tobytes()).hexdigest()


def update_hashes(model, rng):
    """Update a model twice on random sentences.

    Args:
        model: The model.
        rng: The random generator of NumPy.

    Returns:
        The hashes of both gradients, the state of the optimizer, and the weights.
    """
    optimizer = FlatOptimizer(model, systems.train())
    hashes = {}
    for update in range(2):
        optimizer.zero_grad()
        batch = Batch.from_ids(PairIds(sentences(rng, 60), sentences(rng, 60)))
        loss = batch_loss(model, batch, 0.1, "uniform") / 400
        torch.autograd.backward(loss)
        hashes[f"gradient {update}"] = sha256(optimizer.gradient)
        optimizer.step(0.001, optimizer.grad_norm())
    for name, state in optimizer.state_dict().items():
        hashes[name] = sha256(state)
    hashes["weights"] = sha256(optimizer.weights)
    return hashes


def search_hash(model, rng):
    """Translate random sentences with a beam of 4; return the hash of all outputs and scores."""
    model.eval()
    pack_weights(model)
    sources = sentences(rng, 20)
    lengths = np.array([len(source) for source in sources])
    outputs = Engine(model, systems.decode(beam=4)).search(sources, lengths, best=4)
    return hashlib.sha256(repr(outputs).encode()).hexdigest()


def processor_name():
    """Return the name of the first processor in /proc/cpuinfo."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(": ")[2].strip()
    raise ValueError("/proc/cpuinfo contains no model name")


def main():
    """Print the hashes, the deviation from portable arithmetic, and the processor."""
    torch.manual_seed(1)
    rng = np.random.default_rng(1)
    shape = systems.model(d_model=96, d_ff=192, d_k=24, d_v=24, dropout=0.1)
    model = Transformer(shape, VOCABULARY, VOCABULARY)
    printed = update_hashes(model, rng)
    printed["outputs"] = search_hash(model, rng)
    printed["deviation"] = describe_deviation()
    printed["processor"] = processor_name()
    print(json.dumps(printed))


if __name__ == "__main__":
    main()
