"""Random Marian models of the library transformers, with vocabularies, as folders like OPUS-MT."""

import io
import json
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import load_file
from sentencepiece import SentencePieceProcessor, SentencePieceTrainer
from transformers import MarianConfig, MarianMTModel, MarianTokenizer

import trainings
from bleuprint.dataset.subwords.segmentation import Segmentation
from bleuprint.dataset.subwords.vocabulary import BOS, PAD
from bleuprint.model.description import ModelDescription
from bleuprint.model.transformer import Transformer
from bleuprint.model.weights import load_weights

# The languages of `write_marian`: invented words to the same words in capitals.
PAIRS = trainings.mirrored_pairs(300, 1)
SOURCES = [source for source, _ in PAIRS]
TARGETS = [target for _, target in PAIRS]


def learn_pieces(lines, vocab_size):
    """Learn a SentencePiece model, and return the content of its file.

    As in OPUS-MT, it has none of our special tokens, and it normalizes text.
    """
    model = io.BytesIO()
    SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=model, vocab_size=vocab_size, minloglevel=2
    )
    return model.getvalue()


def vocabulary_ids(*models):
    """Return the content of vocab.json: the pieces of SentencePiece models and special tokens.

    As in OPUS-MT, the end of a sentence is first, padding is last, and pieces that both models have
    occur once.
    """
    tokens = ["</s>", "<unk>"]
    for model in models:
        processor = SentencePieceProcessor(model_proto=model)
        for piece_id in range(3, len(processor)):
            piece = processor.id_to_piece(piece_id)
            if piece not in tokens:
                tokens.append(piece)
    tokens.append("<pad>")
    return {token: token_id for token_id, token in enumerate(tokens)}


def write_marian(folder, separate=False, gain=1.0, **changes):
    """Write a random Marian model with a vocabulary as the library transformers does.

    Args:
        folder: The folder to write.
        separate: Whether each language has a vocabulary.
        gain: See `random_marian`.
        changes: Values of config.json that differ from those of a small OPUS-MT model.

    Returns:
        The model of transformers.
    """
    folder.mkdir(parents=True, exist_ok=True)
    source_pieces = learn_pieces(SOURCES, 60)
    # Both vocabularies need one id of padding, so they have the same size.
    target_pieces = learn_pieces(TARGETS, 60 if separate else 50)
    (folder / "source.spm").write_bytes(source_pieces)
    (folder / "target.spm").write_bytes(target_pieces)
    if separate:
        ids = vocabulary_ids(source_pieces)
        (folder / "target_vocab.json").write_text(json.dumps(vocabulary_ids(target_pieces)))
    else:
        ids = vocabulary_ids(source_pieces, target_pieces)
    (folder / "vocab.json").write_text(json.dumps(ids))
    tokenizer_config = {"source_lang": "de", "target_lang": "en", "separate_vocabs": separate}
    (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer_config))
    config = {
        "vocab_size": len(ids),
        "decoder_vocab_size": len(ids),
        "d_model": 32,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "encoder_attention_heads": 4,
        "decoder_attention_heads": 4,
        "encoder_ffn_dim": 48,
        "decoder_ffn_dim": 48,
        "activation_function": "swish",
        "scale_embedding": True,
        "max_position_embeddings": 64,
        "pad_token_id": len(ids) - 1,
        "decoder_start_token_id": len(ids) - 1,
        "eos_token_id": 0,
        "share_encoder_decoder_embeddings": not separate,
        **changes,
    }
    model = random_marian(MarianConfig(**config), gain)
    model.save_pretrained(folder)
    return model


def random_marian(config, gain=1.0):
    """Return a model of transformers with these settings, and all weights random.

    A new model has biases of 0 and norm weights of 1, which would hide errors in their use.

    Args:
        config: The settings.
        gain: The factor of the weights in layers, compared with those of a new model. With large
            ones, an output depends on more than the token before it, and rounding errors grow.
    """
    torch.manual_seed(1)
    model = MarianMTModel(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "embed_positions" in name:
                continue
            if "layer_norm" in name or parameter.dim() == 1:
                parameter.add_(torch.randn_like(parameter), alpha=0.2)
            else:
                is_embedding = "embed_tokens" in name or "shared" in name or "lm_head" in name
                factor = 1.0 if is_embedding else gain
                parameter.normal_(std=factor * parameter.size(1) ** -0.5)
        model.final_logits_bias.normal_()
        # Most outputs end before their maximum length.
        model.final_logits_bias[0, config.eos_token_id] = 3.0
    return model


def load_marian(folder):
    """Load the model and the tokenizer of a folder with the library transformers."""
    model = MarianMTModel.from_pretrained(folder, dtype=torch.float32)
    return model.eval(), MarianTokenizer.from_pretrained(folder)


@dataclass(frozen=True)
class Imported:
    """A folder that `import_marian` has written.

    Attributes:
        folder: The folder.
    """

    folder: Path

    def model(self):
        """Load the model."""
        description = ModelDescription.read(self.folder)
        vocabularies = description.vocabularies
        sizes = (vocabularies.source.size, vocabularies.target.size)
        model = Transformer(description.model, *sizes)
        with torch.no_grad():
            load_weights(model, load_file(self.folder / "model.safetensors"))
        return model.eval()

    def segmentation(self, side):
        """Return the segmentation of a side, `source` or `target`."""
        return Segmentation.read(self.folder, side)

    def marian_ids(self, side, vocabulary_path):
        """Return for each of our token ids of a side the id in a vocabulary of the Marian model."""
        ids = json.loads(vocabulary_path.read_text())
        marian_ids = []
        for our_id, token in enumerate(self.segmentation(side).vocabulary.tokens):
            marian_ids.append(ids["<pad>"] if our_id in (PAD, BOS) else ids[token])
        return torch.tensor(marian_ids)
