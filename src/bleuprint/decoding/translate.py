"""The stage translate: binarized sources of the test sets to detokenized lines.

`translate_tests` is the stage. The searches are in engine.py.
"""

from collections.abc import Mapping
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
from bleuprint.runtime.atomic_files import atomic_folder
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.file_errors import RERUN, DamagedFile
from bleuprint.runtime.regular_files import sha256_of
from bleuprint.runtime.schema import to_json_value
from bleuprint.text.parallel import count_lines, read_lines, write_lines

# The names of test sets in a binarized corpus begin with it.
_TEST_PREFIX = "test."


def translate_tests(
    corpus_folder: Path, model_folder: Path, decode: Decode, results: Path, tokens: Path
) -> None:
    """Translate all test sets of a corpus with a trained model.

    The folder `results` gets these files:

    - hypotheses/test.NAME.LANGUAGE: the translations of each test set
    - hypotheses/attention.json: attention maps of a few sentences, if `decode.attention` is set
    - translation.json: the model, the settings, and the losses of the references

    Args:
        corpus_folder: The folder of the binarized corpus.
        model_folder: The folder of the averaged model.
        decode: The settings of the search.
        results: The folder of the results of one run, .../SYSTEM/CORPUS/SEED.
        tokens: The folder of the tokenized text.

    Raises:
        UserError: A file is damaged, or belongs to another corpus.
    """
    fingerprint, averaged = _read_provenance(model_folder)
    corpus = BinaryCorpus(corpus_folder)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = load_model_or_ensemble(model_folder, corpus).to(device)
    set_names = [name for name in corpus.sets if name.startswith(_TEST_PREFIX)]
    # Losses need the exact weights. So they are computed first: `create_engine` may round weights.
    losses = _reference_losses(model, corpus, set_names)
    engine = create_engine(model, decode)
    newest_model = models_of(model)[-1]
    aligner = WordAligner(newest_model, corpus, decode)
    system, corpus_name, seed = results.parts[-3:]
    translations: dict[str, list[Hypothesis]] = {}
    with atomic_folder(results / "hypotheses") as unfinished:
        for set_name in set_names:
            title = f"translate {system} {corpus_name} {seed} {set_name}"
            best = best_translations(engine, corpus, set_name, progress=title)
            translations[set_name] = best
            source_file = tokens / f"{set_name}.{corpus.source}"
            lines = _detokenize(corpus, aligner, set_name, best, source_file)
            write_lines(unfinished / f"{set_name}.{corpus.target}", lines)
        # The folder contains only translations so far: attention.json, which the record does not
        # list, is written afterwards.
        hashes = {path.name: sha256_of(path) for path in sorted(unfinished.iterdir())}
        if decode.attention:
            attention = _attention_by_test(newest_model, corpus, translations)
            write_attention(unfinished / ATTENTION_FILE, attention)
    record = TranslationRecord(
        model=fingerprint,
        averaged=averaged,
        decode=to_json_value(decode),
        hypotheses=hashes,
        losses=losses,
        cut=_cut_lines_by_test(translations),
    )
    record.write(results / TRANSLATION)


def _cut_lines_by_test(translations: Mapping[str, list[Hypothesis]]) -> dict[str, list[int]]:
    """Return the lines, from 1, whose translations were cut at their maximum length.

    Args:
        translations: The translations of each test set, by its name in the corpus (`test.news`).

    Returns:
        The lines by the name of the test set in params.yaml (`news`). Test sets without cut
        translations do not occur.
    """
    cut_lines: dict[str, list[int]] = {}
    for set_name, hypotheses in translations.items():
        for line, hypothesis in enumerate(hypotheses, 1):
            if hypothesis.is_cut:
                cut_lines.setdefault(_test_name(set_name), []).append(line)
    return cut_lines


def _reference_losses(
    model: ModelOrEnsemble, corpus: BinaryCorpus, set_names: list[str]
) -> dict[str, ReferenceLoss | None]:
    """Compute the loss of a model on the reference translations of each test set.

    Args:
        model: The model.
        corpus: The binarized corpus.
        set_names: The names of the test sets in the corpus, such as `test.news`.

    Returns:
        The losses by the names of the test sets in params.yaml, such as `news`.

    Raises:
        UserError: A file of a test set is damaged.
    """
    # All files are checked first, so that a damaged one is reported at once and not after minutes.
    for set_name in set_names:
        corpus.verify(set_name)
    losses = {}
    for set_name in set_names:
        losses[_test_name(set_name)] = reference_loss(model, corpus, set_name)
    return losses


def _test_name(set_name: str) -> str:
    """Return the name of a test set in params.yaml: `news` for `test.news` in a corpus."""
    return set_name.removeprefix(_TEST_PREFIX)


def _read_provenance(model_folder: Path) -> tuple[str, Averaged]:
    """Read which training a model comes from, and how its checkpoints were averaged.

    Args:
        model_folder: The folder of the averaged model, with model.json, which records both.

    Returns:
        The fingerprint of the training, a hash that identifies it; and the settings of the average.

    Raises:
        DamagedFile: model.json does not record them.
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
    translations: list[Hypothesis],
    source_file: Path,
) -> list[str]:
    """Turn the token ids of translations into text: join tokens to words, and words to sentences.

    Args:
        corpus: The binarized corpus.
        aligner: Turns token ids into words. With the setting `replace_unk`, it replaces UNK by a
            word of the source.
        set_name: The name of the test set, such as `test.news`.
        translations: The translation of each sentence.
        source_file: The tokenized source sentences.

    Raises:
        UserError: `source_file` has another number of lines than the test set.
    """
    source = corpus.side(set_name, corpus.source)
    line_count = count_lines(source_file)
    if line_count != len(source):
        raise UserError(
            f"{source_file} has {line_count} lines, but the test set has {len(source)}. {RERUN}"
        )
    lines = []
    for row, line in enumerate(read_lines(source_file)):
        ids = source[row]
        source_words = corpus.words_without_tag(line)
        tokens = translations[row].tokens
        output_words = aligner.output_words(ids.tolist(), source_words, tokens)
        # Each language has its own detokenizer. In a corpus of several translation directions, a
        # tag at the start of the source names the target language.
        detokenize = corpus.detokenizer(ids)
        lines.append(detokenize(output_words))
    return lines


def _attention_by_test(
    model: Transformer, corpus: BinaryCorpus, translations: Mapping[str, list[Hypothesis]]
) -> dict[str, list[SentenceAttention]]:
    """Compute the attention maps of the few sentences of each test set that the report shows.

    Args:
        model: The model.
        corpus: The binarized corpus.
        translations: The translations of each test set, by its name in the corpus (`test.news`).

    Returns:
        The maps by the name of the test set in params.yaml (`news`).
    """
    attention = {}
    for set_name, hypotheses in translations.items():
        source = corpus.side(set_name, corpus.source)
        sentences = []
        for row in select_sentences(source.lengths):
            tokens = hypotheses[row].tokens
            maps = compute_attention_maps(model, corpus, source[row].tolist(), tokens)
            sentences.append(SentenceAttention(line=row + 1, maps=maps))
        attention[_test_name(set_name)] = sentences
    return attention


def create_engine(model: ModelOrEnsemble, decode: Decode, sampler: Sampler | None = None) -> Engine:
    """Prepare a model for fast translation, and return an engine that translates with it.

    The model's weights are rounded to `decode.precision`, and copied in the order in which the
    library for matrix products reads them fastest.

    Args:
        model: A trained model, in float32, or an ensemble. It is changed.
        decode: The settings of the search.
        sampler: Gives random numbers to draw translations; None for beam search.

    Returns:
        The engine, which translates sentences.

    Raises:
        UserError: The beam is wider than the vocabulary, or the machine has no hardware for the
            precision.
    """
    vocabulary = model.projection.out_features
    if decode.beam > vocabulary:
        raise UserError(
            f"a beam of {decode.beam} is wider than the vocabulary of {vocabulary} tokens. "
            "Lower decode.beam"
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
    """Translate a test set, and return the best translation of each sentence.

    Args:
        engine: The engine that translates.
        corpus: The binarized corpus.
        set_name: The name of the test set, such as `test.news`.
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
            f"has {longest} tokens, EOS included. Raise model.max_positions ({max_length})"
        )
    lengths = corpus.search_lengths(source)
    return [outputs[0] for outputs in engine.search(source, lengths, progress=progress)]
