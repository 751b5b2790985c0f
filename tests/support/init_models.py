"""Models that a training starts from, for the tests of `train.init_from`."""

import torch
from safetensors.torch import save_file

import systems
from bleuprint.config.paths import Run
from bleuprint.model.transformer import Transformer
from bleuprint.model.weights import named_weights, write_description
from bleuprint.training.init_weights import InitFiles

# The run that starts from another model's weights.
RUN = Run("micro", "toy", 1)


def random_model(corpus, seed):
    """Make a model with random weights for a corpus."""
    torch.manual_seed(seed)
    source_size = len(corpus.segmentation(corpus.source).vocabulary)
    target_size = len(corpus.segmentation(corpus.target).vocabulary)
    settings = systems.model(tie_embeddings="none", output_bias=True)
    return Transformer(settings, source_size, target_size)


def write_model(folder, model, corpus):
    """Write a model and its vocabularies into a folder, and return its files.

    It is the model that a training starts from: its init model.
    """
    folder.mkdir(parents=True)
    weights = {name: tensor.clone() for name, tensor in named_weights(model).items()}
    save_file(weights, folder / "model.safetensors")
    write_description(folder, model.settings, corpus, "mark")
    for file in (corpus.folder / "segmentation").glob("vocabulary.*"):
        (folder / file.name).write_bytes(file.read_bytes())
    return InitFiles("general own", folder / "model.safetensors")
