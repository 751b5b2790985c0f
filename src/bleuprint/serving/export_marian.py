"""Exports a trained system in the Marian format of Hugging Face, which transformers loads."""

import shutil
from pathlib import Path
from typing import Any

from safetensors.torch import save_file

from bleuprint.config.experiment import Settings
from bleuprint.config.paths import Run
from bleuprint.config.system import Decode
from bleuprint.dataset.binarized import SEGMENTATION, BinaryCorpus
from bleuprint.dataset.marian_vocabulary import (
    SOURCE_VOCABULARY,
    TARGET_VOCABULARY,
    ExportedVocabulary,
)
from bleuprint.dataset.subwords.segmentation import MODEL
from bleuprint.model.marian_config import CONFIG, check_expressible, marian_config
from bleuprint.model.marian_weights import WEIGHTS, marian_tensors
from bleuprint.model.transformer import Transformer
from bleuprint.runtime.atomic_files import atomic_folder, write_text
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.json_files import write_json
from bleuprint.serving.export import load_exportable, render_readme
from bleuprint.serving.known_words import KnownWords


def export_marian(settings: Settings, run: Run, output: Path) -> None:
    """Export a trained model in the Marian format of Hugging Face.

    Args:
        settings: The settings of the experiment.
        run: The system, corpus and seed of the model.
        output: The folder to write, which must not exist.

    Raises:
        UserError: The folder exists, or the format cannot describe the system.
    """
    model, corpus = load_exportable(settings, run, output)
    check_expressible(model.settings)
    _check_text(settings, run)
    decode = settings.system_on(run.system, run.corpus).decode
    with atomic_folder(output) as partial:
        write_marian(model, corpus, decode, partial)
        readme_text = render_readme(
            settings,
            run,
            precision="float32",
            trained_on=str(KnownWords(corpus)),
            template="export_marian.md.j2",
        )
        write_text(partial / "README.md", readme_text)


def _check_text(settings: Settings, run: Run) -> None:
    """Check that the Marian format can describe how sentences become tokens.

    Args:
        settings: The settings of the experiment.
        run: The system, corpus and seed of the model.

    Raises:
        UserError: The corpus has another kind of tokens than SentencePiece, or a tokenizer.
    """
    corpus = settings.corpus(run.corpus)
    key = f"corpora.{run.corpus}"
    if corpus.vocabulary.sentencepiece is None:
        raise UserError(
            f"the Marian format needs {key}.vocabulary.sentencepiece, but the corpus has other "
            "units. Train a system on a corpus with sentencepiece"
        )
    tokenize = corpus.tokenize
    if tokenize.name != "none" or tokenize.lowercase:
        lowercase = ", lowercase: true" if tokenize.lowercase else ""
        raise UserError(
            f"the Marian format cannot describe {key}.tokenize {{name: {tokenize.name}{lowercase}}}"
            ". Train a system on a corpus with tokenize: {name: none}"
        )


def write_marian(model: Transformer, corpus: BinaryCorpus, decode: Decode, folder: Path) -> None:
    """Write a model, its vocabularies and its search in the Marian format of Hugging Face.

    Args:
        model: The model, whose settings `check_expressible` has accepted.
        corpus: The corpus that it was trained on, with pieces of SentencePiece.
        decode: The settings of the search.
        folder: The folder to write into.
    """
    source_vocabulary = corpus.segmentation(corpus.source).vocabulary
    target_vocabulary = corpus.segmentation(corpus.target).vocabulary
    is_joint = source_vocabulary.tokens == target_vocabulary.tokens
    source = ExportedVocabulary.from_vocabulary(source_vocabulary, is_joint)
    target = ExportedVocabulary.from_vocabulary(target_vocabulary, is_joint)
    write_json(folder / SOURCE_VOCABULARY, source.ids)
    if not is_joint:
        write_json(folder / TARGET_VOCABULARY, target.ids)
    for side, language in (("source", corpus.source), ("target", corpus.target)):
        model_file = corpus.folder / SEGMENTATION / f"{MODEL}.{language}"
        shutil.copyfile(model_file, folder / f"{side}.spm")
    sizes = (len(source.ids), len(target.ids))
    config = marian_config(model.settings, sizes, target.pad_id, target.eos_id)
    write_json(folder / CONFIG, config)
    max_positions = model.settings.max_positions
    tokenizer_config = {
        "tokenizer_class": "MarianTokenizer",
        "source_lang": corpus.source,
        "target_lang": corpus.target,
        "separate_vocabs": not is_joint,
        "model_max_length": max_positions,
    }
    write_json(folder / "tokenizer_config.json", tokenizer_config)
    generation_config = _generation_config(decode, target, max_positions)
    write_json(folder / "generation_config.json", generation_config)
    tensors = marian_tensors(model, (source.our_ids, target.our_ids))
    # The library transformers asks for this entry.
    save_file(tensors, folder / WEIGHTS, metadata={"format": "pt"})


def _generation_config(
    decode: Decode, target: ExportedVocabulary, max_positions: int
) -> dict[str, Any]:
    """Return the content of generation_config.json: how the library transformers searches.

    It divides log-probabilities by length^length_penalty. The length penalty `gnmt` has no
    counterpart; its alpha is written.

    Args:
        decode: The settings of our search.
        target: The target vocabulary in the Marian format.
        max_positions: The most tokens of an output.
    """
    forbidden_tokens = [[target.pad_id]]
    if not decode.allow_unk:
        forbidden_tokens.append([target.unknown_id])
    config: dict[str, Any] = {
        "num_beams": decode.beam,
        "max_length": max_positions,
        "pad_token_id": target.pad_id,
        "decoder_start_token_id": target.pad_id,
        "eos_token_id": target.eos_id,
        "forced_eos_token_id": target.eos_id,
        "bad_words_ids": forbidden_tokens,
        # Probabilities are those among the tokens that are allowed.
        "renormalize_logits": True,
    }
    if decode.beam > 1:
        # As in our search, a sentence is finished after as many outputs as the beam is large.
        config["early_stopping"] = True
        config["length_penalty"] = decode.length_penalty.alpha
    if decode.no_repeat_ngram_size:
        config["no_repeat_ngram_size"] = decode.no_repeat_ngram_size
    if decode.min_len:
        # This length includes the token from which decoding starts.
        config["min_length"] = decode.min_len + 1
    return config
