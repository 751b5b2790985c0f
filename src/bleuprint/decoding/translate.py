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
from bleuprint.decoding.translation_record import TRANSLATION, TranslationRecord
from bleuprint.decoding.word_alignment import WordAligner
from bleuprint.model.description import DESCRIPTION, Averaged, ModelDescription
from bleuprint.model.linear import pack_weights
from bleuprint.model.precision import check_precision, round_to_bfloat16
from bleuprint.model.transformer import Transformer
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import RERUN, DamagedFile, atomic_folder, sha256_of
from bleuprint.runtime.schema import to_json_value
from bleuprint.text.parallel import count_lines, read_lines


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
    fingerprint, averaged = _origin(model_folder)
    corpus = BinaryCorpus(corpus_folder)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = load_model_or_ensemble(model_folder, corpus).to(device)
    tests = [name for name in corpus.sets if name.startswith("test.")]
    for name in tests:
        corpus.verify(name)
    # before the engine, which may round the weights
    losses = {name.removeprefix("test."): reference_loss(model, corpus, name) for name in tests}
    engine, newest = create_engine(model, decode), models_of(model)[-1]
    aligner = WordAligner(newest, corpus, decode)
    hypotheses = results / "hypotheses"
    maps: dict[str, list[SentenceAttention]] = {}
    cut_lines = dict[str, list[int]]()
    with atomic_folder(hypotheses) as unfinished:
        for name in tests:
            test = name.removeprefix("test.")
            title = " ".join(("translate", *results.parts[-3:], name))  # system, corpus, seed
            found = search(engine, corpus, name, progress=title)
            cut = [line for line, each in enumerate(found, 1) if each.is_cut]
            if cut:
                cut_lines[test] = cut
            outputs = [each.tokens for each in found]
            source_file = tokens / f"{name}.{corpus.source}"
            lines = _detokenized(corpus, aligner, name, outputs, source_file)
            text = "".join(f"{line}\n" for line in lines)
            (unfinished / f"{name}.{corpus.target}").write_bytes(text.encode())
            if decode.attention:
                maps[test] = _attention_of_few(newest, corpus, name, outputs)
        hashes = {path.name: sha256_of(path) for path in sorted(unfinished.iterdir())}
        if decode.attention:
            write_attention(unfinished / ATTENTION_FILE, maps)
    record = TranslationRecord(
        model=fingerprint,
        averaged=averaged,
        decode=to_json_value(decode),
        hypotheses=hashes,
        losses=losses,
        cut=cut_lines,
    )
    record.write(results / TRANSLATION)


def _origin(model_folder: Path) -> tuple[str, Averaged]:
    """Return the fingerprint of the training that a model comes from, and of which average it is.

    Raises DamagedFile if the model's description does not say it.
    """
    described = ModelDescription.read(model_folder)
    if described.fingerprint is None or described.averaged is None:
        problem = "it does not say which training and which average it is of"
        raise DamagedFile(model_folder / DESCRIPTION, problem)
    return described.fingerprint, described.averaged


def _detokenized(
    corpus: BinaryCorpus,
    aligner: WordAligner,
    name: str,
    outputs: list[list[int]],
    source_file: Path,
) -> list[str]:
    """Return the text of a set's translations.

    `outputs`: their token ids; `source_file`: the words of the sources, for `replace_unk`.
    """
    source = corpus.side(name, corpus.source)
    line_count = count_lines(source_file)
    if line_count != len(source):
        raise UserError(f"{source_file}: has {line_count} lines, not {len(source)}; {RERUN}")
    lines = []
    for row, line in enumerate(read_lines(source_file)):
        words = corpus.source_words(line)
        ids = source[row]
        output_words = aligner.output_words(ids.tolist(), words, outputs[row])
        lines.append(corpus.detokenizer(ids)(output_words))
    return lines


def _attention_of_few(
    model: Transformer, corpus: BinaryCorpus, name: str, outputs: list[list[int]]
) -> list[SentenceAttention]:
    """Return where the model looked, for the few sentences of a set that are shown."""
    source = corpus.side(name, corpus.source)
    found = []
    for row in select_sentences(source.lengths):
        maps = compute_attention_maps(model, corpus, source[row].tolist(), outputs[row])
        found.append(SentenceAttention(row + 1, maps))
    return found


def create_engine(model: ModelOrEnsemble, decode: Decode, sampler: Sampler | None = None) -> Engine:
    """Prepare a model for searching with `decode`.

    Args:
        model: Trained weights, in float32; they are rounded to `decode.precision`.
        decode: The settings of the search.
        sampler: Draws outputs, instead of beam search.

    Returns:
        The engine, which translates sentences.

    Raises:
        UserError: The beam is wider than the vocabulary, or the machine lacks the precision.
    """
    size = model.projection.out_features
    if decode.beam > size:
        raise UserError(f"a beam of {decode.beam} is wider than the vocabulary of {size} tokens")
    check_precision("decode.precision", decode.precision, model.device)
    for each in models_of(model):
        if decode.precision == "bfloat16":
            round_to_bfloat16(each)
            each.activation_dtype = torch.bfloat16
        pack_weights(each)
    return Engine(model, decode, sampler)


def search(
    engine: Engine, corpus: BinaryCorpus, name: str, progress: str | None = None
) -> list[Hypothesis]:
    """The best translation of each sentence of a set, in its order."""
    source = corpus.side(name, corpus.source)
    longest, most = int(source.lengths.max(initial=0)), engine.max_source_length
    if longest > most:
        raise UserError(
            f"{corpus.folder}: line {int(source.lengths.argmax()) + 1} of {name}.{corpus.source} "
            f"has {longest} tokens, EOS included: raise model.max_positions ({most})"
        )
    lengths = corpus.search_lengths(source)
    return [best[0] for best in engine.search(source, lengths, progress=progress)]
