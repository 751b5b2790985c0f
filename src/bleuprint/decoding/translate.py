"""Translating test sets: binarized sources to detokenized lines."""

from pathlib import Path

import torch

from bleuprint.config.system import Decode
from bleuprint.dataset.binarized import BinaryCorpus
from bleuprint.decoding.attention_maps import (
    ATTENTION_FILE,
    SentenceAttention,
    compute_attention_maps,
    select_sentences,
    write_attention,
)
from bleuprint.decoding.beam_search import Hypothesis
from bleuprint.decoding.engine import Engine
from bleuprint.decoding.ensemble import ModelOrEnsemble, load_model_or_ensemble, models_of
from bleuprint.decoding.forced_decoding import reference_loss
from bleuprint.decoding.sampling import Sampler
from bleuprint.decoding.translation_record import TRANSLATION, ReferenceLoss, TranslationRecord
from bleuprint.decoding.word_alignment import WordAligner
from bleuprint.model.description import DESCRIPTION, Averaged, ModelDescription
from bleuprint.model.linear import pack_weights
from bleuprint.model.precision import check_precision, round_to_bfloat16
from bleuprint.model.transformer import Transformer
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import RERUN, DamagedFile, atomic_folder, sha256_of
from bleuprint.runtime.schema import to_json_value
from bleuprint.text.parallel import count_lines, read_lines

# The names of test sets in a binarized corpus begin with it.
_TEST_PREFIX = "test."


def translate_tests(
    corpus_folder: Path, model_folder: Path, decode: Decode, results: Path, tokens: Path
) -> None:
    """Translate every test set of a corpus.

    Args:
        corpus_folder: The binarized corpus.
        model_folder: The averaged model.
        decode: The settings of the search.
        results: The folder for the outputs: the translations (hypotheses/test.NAME.LANGUAGE), with
            `decode.attention` also where the model looked (hypotheses/attention.json), and their
            provenance with the losses of the references (translation.json).
        tokens: The folder of the tokenized text.

    Raises:
        UserError: A file is damaged, or belongs to another corpus.
    """
    fingerprint, averaged = _read_provenance(model_folder)
    corpus = BinaryCorpus(corpus_folder)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = load_model_or_ensemble(model_folder, corpus).to(device)
    set_names = [name for name in corpus.sets if name.startswith(_TEST_PREFIX)]
    # Before the engine is created, which may round the weights.
    losses = _reference_losses(model, corpus, set_names)
    engine = create_engine(model, decode)
    newest_model = models_of(model)[-1]
    aligner = WordAligner(newest_model, corpus, decode)
    attention: dict[str, list[SentenceAttention]] = {}
    cut_lines: dict[str, list[int]] = {}
    with atomic_folder(results / "hypotheses") as unfinished:
        for set_name in set_names:
            system, corpus_name, seed = results.parts[-3:]
            title = f"translate {system} {corpus_name} {seed} {set_name}"
            best = best_translations(engine, corpus, set_name, progress=title)
            outputs = []
            for line, hypothesis in enumerate(best, 1):
                outputs.append(hypothesis.tokens)
                if hypothesis.is_cut:
                    cut_lines.setdefault(_test_name(set_name), []).append(line)
            source_file = tokens / f"{set_name}.{corpus.source}"
            lines = _detokenize(corpus, aligner, set_name, outputs, source_file)
            # Each line ends in \n. Bytes: text mode would end it as the operating system does.
            content = "\n".join([*lines, ""]).encode()
            (unfinished / f"{set_name}.{corpus.target}").write_bytes(content)
            if decode.attention:
                maps = _map_few_sentences(newest_model, corpus, set_name, outputs)
                attention[_test_name(set_name)] = maps
        # Before attention.json is written, which has no hash.
        hashes = {path.name: sha256_of(path) for path in sorted(unfinished.iterdir())}
        if decode.attention:
            write_attention(unfinished / ATTENTION_FILE, attention)
    record = TranslationRecord(
        model=fingerprint,
        averaged=averaged,
        decode=to_json_value(decode),
        hypotheses=hashes,
        losses=losses,
        cut=cut_lines,
    )
    record.write(results / TRANSLATION)


def _reference_losses(
    model: ModelOrEnsemble, corpus: BinaryCorpus, set_names: list[str]
) -> dict[str, ReferenceLoss | None]:
    """Return the loss of the references of each test set, by its name in params.yaml.

    Raises:
        UserError: A file of a set is damaged.
    """
    # All files first: a damaged one is reported at once, not after minutes.
    for set_name in set_names:
        corpus.verify(set_name)
    losses = {}
    for set_name in set_names:
        losses[_test_name(set_name)] = reference_loss(model, corpus, set_name)
    return losses


def _test_name(set_name: str) -> str:
    """Return the name of a test set in params.yaml: news for test.news."""
    return set_name.removeprefix(_TEST_PREFIX)


def _read_provenance(model_folder: Path) -> tuple[str, Averaged]:
    """Return the fingerprint of the training that a model comes from, and how it was averaged.

    Raises:
        DamagedFile: The model's description does not tell it.
    """
    description = ModelDescription.read(model_folder)
    if description.fingerprint is None or description.averaged is None:
        problem = "it does not name the training and the average that the model comes from"
        raise DamagedFile(model_folder / DESCRIPTION, problem)
    return description.fingerprint, description.averaged


def _detokenize(
    corpus: BinaryCorpus,
    aligner: WordAligner,
    set_name: str,
    outputs: list[list[int]],
    source_file: Path,
) -> list[str]:
    """Return the text of a set's translations.

    Args:
        corpus: The binarized corpus.
        aligner: Finds the source words that replace UNK, with `replace_unk`.
        set_name: The name of the set.
        outputs: The token ids of the translations.
        source_file: The file of the tokenized sources.

    Raises:
        UserError: The file of the sources has another number of lines than the set.
    """
    source = corpus.side(set_name, corpus.source)
    line_count = count_lines(source_file)
    if line_count != len(source):
        raise UserError(f"{source_file}: has {line_count} lines, not {len(source)}; {RERUN}")
    lines = []
    for row, line in enumerate(read_lines(source_file)):
        ids = source[row]
        source_words = corpus.source_words(line)
        output_words = aligner.output_words(ids.tolist(), source_words, outputs[row])
        # Which language the translation is in depends on the source's tag.
        detokenize = corpus.detokenizer(ids)
        lines.append(detokenize(output_words))
    return lines


def _map_few_sentences(
    model: Transformer, corpus: BinaryCorpus, set_name: str, outputs: list[list[int]]
) -> list[SentenceAttention]:
    """Return the attention maps of the few sentences of a set that the report shows."""
    source = corpus.side(set_name, corpus.source)
    sentences = []
    for row in select_sentences(source.lengths):
        maps = compute_attention_maps(model, corpus, source[row].tolist(), outputs[row])
        sentences.append(SentenceAttention(line=row + 1, maps=maps))
    return sentences


def create_engine(model: ModelOrEnsemble, decode: Decode, sampler: Sampler | None = None) -> Engine:
    """Prepare a model for searching.

    Args:
        model: Trained weights, in float32; they are rounded to `decode.precision`.
        decode: The settings of the search.
        sampler: Draws outputs, instead of beam search.

    Returns:
        The engine, which translates sentences.

    Raises:
        UserError: The beam is wider than the vocabulary, or the machine lacks the precision.
    """
    vocabulary = model.projection.out_features
    if decode.beam > vocabulary:
        raise UserError(
            f"a beam of {decode.beam} is wider than the vocabulary of {vocabulary} tokens"
        )
    check_precision("decode.precision", decode.precision, model.device)
    for transformer in models_of(model):
        if decode.precision == "bfloat16":
            round_to_bfloat16(transformer)
            transformer.activation_dtype = torch.bfloat16
        pack_weights(transformer)
    return Engine(model, decode, sampler)


def best_translations(
    engine: Engine, corpus: BinaryCorpus, set_name: str, progress: str | None = None
) -> list[Hypothesis]:
    """Return the best translation of each sentence of a set, in its order.

    Args:
        engine: The engine that translates.
        corpus: The binarized corpus.
        set_name: The name of the set, such as test.news.
        progress: The title of a progress bar; None shows none.

    Raises:
        UserError: A sentence is longer than the model's `max_positions`.
    """
    source = corpus.side(set_name, corpus.source)
    longest = int(source.lengths.max(initial=0))
    max_length = engine.max_source_length
    if longest > max_length:
        line = int(source.lengths.argmax()) + 1
        raise UserError(
            f"{corpus.folder}: line {line} of {set_name}.{corpus.source} "
            f"has {longest} tokens, EOS included: raise model.max_positions ({max_length})"
        )
    lengths = corpus.search_lengths(source)
    return [outputs[0] for outputs in engine.search(source, lengths, progress=progress)]
