"""Two updates and a search of a small model: the SHA-256 of all that they leave, as JSON.

With it what is not as portable arithmetic needs it, null if nothing is.

A script, to be run as it is or on an emulated processor: it imports little more than torch.
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
    """Random ids with EOS."""
    lengths = rng.integers(3, 12, count)
    return [[*rng.integers(4, VOCABULARY, length).tolist(), 2] for length in lengths]


def sha256(tensor):
    return hashlib.sha256(tensor.detach().contiguous().numpy().tobytes()).hexdigest()


def main():
    torch.manual_seed(1)
    rng = np.random.default_rng(1)
    shape = systems.model(d_model=96, d_ff=192, d_k=24, d_v=24, dropout=0.1)
    model = Transformer(shape, VOCABULARY, VOCABULARY)
    optimizer, found = FlatOptimizer(model, systems.train()), {}
    for update in range(2):
        optimizer.zero_grad()
        batch = Batch.from_ids(PairIds(sentences(rng, 60), sentences(rng, 60)))
        torch.autograd.backward(batch_loss(model, batch, 0.1, "uniform") / 400)
        found[f"gradient {update}"] = sha256(optimizer.gradient)
        optimizer.step(0.001, optimizer.grad_norm())
    found |= {name: sha256(state) for name, state in optimizer.state_dict().items()}
    found["weights"] = sha256(optimizer.weights)
    model.eval()
    pack_weights(model)
    sources = sentences(rng, 20)
    lengths = np.array([len(source) for source in sources])
    outputs = Engine(model, systems.decode(beam=4)).search(sources, lengths, best=4)
    found["deviation"] = describe_deviation()
    found["outputs"] = hashlib.sha256(repr(outputs).encode()).hexdigest()
    found["processor"] = next(
        line.partition(": ")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    )
    print(json.dumps(found))


if __name__ == "__main__":
    main()
