"""Folders of COMET models: stand-ins without a model, or tiny models with random weights.

As a script, run by the Python of COMET's environment, it writes a tiny model by the real package to
the folder that it is given; with `scores FOLDER SOURCES TRANSLATIONS REFERENCES` it prints the
scores of all lines, each computed alone, without COMET's loading, batching and Trainer.
"""

import json
import string
import sys
import warnings
from pathlib import Path
from typing import Any

FILES = ("checkpoints/model.ckpt", "hparams.yaml", "encoder/config.json", "encoder/tokenizer.json")


def write_empty(folder):
    """Write a folder with the file names of a model, and return it."""
    for name in FILES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"{name}\n")
    return folder


def write_tiny(folder):
    """Write a model in the layout of published ones: a regression on a tiny XLM-R.

    Its tokens are characters, and its weights are random.
    """
    import torch
    import yaml
    from comet.models import RegressionMetric
    from pytorch_lightning import Trainer
    from transformers import XLMRobertaConfig, XLMRobertaModel

    encoder = folder / "encoder"
    vocabulary_size = _write_tokenizer(encoder)
    torch.manual_seed(1)
    config = XLMRobertaConfig(
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=514,
        type_vocab_size=1,
        vocab_size=vocabulary_size,
        bos_token_id=0,
        pad_token_id=1,
        eos_token_id=2,
    )
    XLMRobertaModel(config, add_pooling_layer=False).save_pretrained(encoder)
    model = RegressionMetric(
        pretrained_model=str(encoder), hidden_sizes=[24, 12], layer_transformation="sparsemax"
    )
    (encoder / "model.safetensors").unlink()
    # Published checkpoints contain a name, which COMET would look up on the internet.
    model.hparams["pretrained_model"] = "xlm-roberta-large"
    trainer = Trainer(logger=False, enable_checkpointing=False, accelerator="cpu", devices=1)
    trainer.strategy.connect(model)
    trainer.save_checkpoint(folder / "checkpoints" / "model.ckpt", weights_only=True)
    described = {**model.hparams, "class_identifier": "regression_metric"}
    (folder / "hparams.yaml").write_text(yaml.safe_dump(described))


def _write_tokenizer(folder):
    """Write a tokenizer of characters, and return the size of its vocabulary."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import XLMRobertaTokenizerFast

    characters = sorted({*string.printable.strip(), *"äöüßÄÖÜ▁"})
    special = [(token, 0.0) for token in ("<s>", "<pad>", "</s>", "<unk>", "<mask>")]
    vocabulary = special + [(character, -5.0) for character in characters]
    tokenizer = Tokenizer(models.Unigram(vocabulary, unk_id=3))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    XLMRobertaTokenizerFast(tokenizer_object=tokenizer).save_pretrained(folder)
    return len(vocabulary)


def scores(folder, *texts):
    """Compute the score of each line by the real package, one line at a time.

    Args:
        folder: The folder of the model.
        texts: The files of the sources, of the translations and of the references.
    """
    import torch
    from comet.models import RegressionMetric

    model: Any = RegressionMetric.load_from_checkpoint(
        folder / "checkpoints" / "model.ckpt",
        load_pretrained_weights=False,
        pretrained_model=str(folder / "encoder"),
        map_location="cpu",
    )
    model.eval()
    sides = [path.read_bytes().decode().removesuffix("\n").split("\n") for path in texts]
    line_scores = []
    with torch.no_grad():
        for lines in zip(*sides, strict=True):
            embeddings = []
            for line in lines:
                tokens = model.encoder.tokenizer(line, return_tensors="pt")
                embedding = model.get_sentence_embedding(
                    tokens["input_ids"], tokens["attention_mask"]
                )
                embeddings.append(embedding)
            line_scores.append(model.estimate(*embeddings).score.item())
    return line_scores


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if sys.argv[1] == "scores":
        print(json.dumps(scores(*map(Path, sys.argv[2:]))))
    else:
        write_tiny(Path(sys.argv[1]))
